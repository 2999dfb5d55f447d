"""purejaxql's PQN, the authors' own, unchanged and with the settings of its own files.

It is one compiled program, which evaluates during training and returns at the end. The time counted
is that of compilation, and the share of its run before the first evaluation at the goal. Its
evaluations cannot be excluded, so they are small, 20 environments each. As it cannot be stopped,
Breakout ends after 3 of 10 million steps; rates decay as in the full run.

Its imports for the command line and logs are not needed, and replaced by empty modules.
"""

import sys
import types
from pathlib import Path
from typing import Any

import gymnax
import jax
import numpy as np
import yaml
from tasks import Stopwatch, answer, attempt

EPISODES = 20  # least number of episodes per evaluation
STAND_INS = ("hydra", "omegaconf", "safetensors", "safetensors.flax", "wandb")


class _Anything(types.ModuleType):
    """A module that has every name; its objects do nothing, also as decorators."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: lambda function: function


def make_train(name: str, checkout: Path) -> tuple[Any, dict[str, Any]]:
    """The `make_train` of purejaxql for a task, and the settings."""
    for module in STAND_INS:
        sys.modules[module] = _Anything(module)
    sys.path.insert(0, str(checkout))
    kind = {"cartpole": "cartpole", "breakout": "minatar"}[name]
    file = checkout / f"purejaxql/config/alg/pqn_{kind}.yaml"
    own = {"WANDB_MODE": "disabled", "TEST_NUM_ENVS": EPISODES}
    config = yaml.safe_load(file.read_text()) | own
    numbers = ("TOTAL_TIMESTEPS", "TOTAL_TIMESTEPS_DECAY")  # 5e5 is a string in YAML
    config |= {key: float(config[key]) for key in numbers}
    if name == "cartpole":
        from purejaxql.pqn_gymnax import make_train
    else:
        from purejaxql.pqn_minatar import make_train
        from sticky import breakout

        # TOTAL_TIMESTEPS_DECAY stays, and an evaluation comes every 100,000 steps.
        config |= {"TOTAL_TIMESTEPS": 3e6, "TEST_INTERVAL": 1 / 30}
        game = breakout()
        gymnax.make = lambda _: game  # gymnax's has three actions, without sticky ones
    return make_train(config), config


def main() -> None:
    asked, watch = attempt(), Stopwatch()
    train, config = make_train(asked.name, Path(asked.checkout).resolve())
    key = jax.random.PRNGKey(asked.seed)
    program = jax.jit(train).lower(key).compile()
    compiled = watch.seconds()
    metrics = jax.device_get(jax.block_until_ready(program(key))["metrics"])
    run = watch.seconds() - compiled
    returns, updates = metrics["test/returned_episode_returns"], int(config["NUM_UPDATES"])
    # Returns before the first evaluation are those of the untrained network.
    first = int(updates * config["TEST_INTERVAL"]) - 1
    reached = [n for n in np.flatnonzero(returns >= asked.task.goal) if n >= first]
    last = int(reached[0]) if reached else updates - 1
    seconds = compiled + run * (last + 1) / updates
    steps = int(metrics["env_step"][last])
    answer(bool(reached), seconds, steps, float(returns[last]))


if __name__ == "__main__":
    main()
