"""Extends a finished run: its configuration with more steps."""

from dataclasses import replace

import numpy as np

from tsallax.storage.run_folder import About
from tsallax.training.config import FIELDS, Config
from tsallax.training.resolve import resolve

EXTENDING = ("steps", "schedule_steps", "stop_at")  # the options allowed for a resumed run


def extended(config: Config, about: About, given: Config) -> Config:
    """The configuration of a run to be continued, with the options `given` for that.

    Schedules keep their length and then hold their final values, unless `schedule_steps` gives a
    new length. A `stop_at` that the run has already reached no longer ends it.
    """
    unset = Config(given.env)
    asked = [name for name in FIELDS if getattr(given, name) != getattr(unset, name)]
    if not asked:
        return config
    if set(asked) - set(EXTENDING):
        raise ValueError(
            "a resumed run has its own configuration and folder: of the options, only "
            f"{', '.join(EXTENDING)} can be given"
        )
    if "steps" not in asked:
        raise ValueError("give --steps, the number of steps to which the run is extended")
    reached = about.status == "done" and _reached(config, about)
    stop_at = given.stop_at if given.stop_at is not None or reached else config.stop_at
    schedule = given.schedule_steps or config.schedule_steps or config.steps
    longer = resolve(replace(config, steps=given.steps, schedule_steps=schedule, stop_at=stop_at))
    if longer == config:  # the same command was given again
        return config
    if longer.steps < config.steps + (not reached):
        raise ValueError(f"this run has {config.steps:,} steps already: give more to extend it")
    if config.learning_rate_end and max(config.learning_rate_end) == 0 and schedule < longer.steps:
        raise ValueError(
            f"the step size of this run ends at 0 after {schedule:,} steps: give new schedules "
            f"with --schedule-steps {given.steps}"
        )
    return longer


def _reached(config: Config, about: About) -> bool:
    """Returns whether a run ended because every cell had reached `stop_at`."""
    if config.stop_at is None:
        return False
    try:
        found = np.array(about.everything["best"]["return"], float)
    except (KeyError, TypeError, ValueError):
        return False
    return bool(found.size and (found >= config.stop_at).all())
