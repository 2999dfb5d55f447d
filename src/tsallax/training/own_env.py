"""A run in an environment that a user passes as a Python object instead of a name."""

from typing import Any

from tsallax.envs.own import Source, given_environment, own_name
from tsallax.training.checks import count_cells
from tsallax.training.config import Config
from tsallax.types import Environment

__all__ = ["Own", "check_copies", "given_environment", "own_settings"]

Own = Environment | Source


def own_settings(own: Own, given: dict[str, Any]) -> tuple[str, dict[str, Any], Any]:
    """Returns its name, the settings including those that follow from it, and a frame's spec."""
    if isinstance(own, Environment):
        return own_name(own), {**given, "loop": "compiled"}, None
    settings = {**given, "loop": "host"}
    if own.size:
        if given.get("learner") == "replay":
            raise ValueError(
                f"{own.name} is a vector environment, which needs the parallel learner"
            )
        settings = {"num_envs": own.size, **settings, "learner": "parallel"}
    one_hot = bool(given.get("one_hot"))
    shown = own.sight(one_hot).frame if given.get("network") is None else None
    return own_name(own), settings, shown


def check_copies(own: Own | None, config: Config) -> None:
    """Refuse a run that needs several copies of an environment of which there is only one."""
    if not isinstance(own, Source):
        return
    wanted = count_cells(config) * (config.num_envs or 1)
    if config.eval_every or wanted > max(own.size, 1):
        own.check_copies()
