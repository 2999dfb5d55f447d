"""A small run of every learner, as words of the command line."""

from typing import Any, NamedTuple

SHAPE = {"preset": "paper", "hidden": 8, "target_period": 40, "seeds": 2}
REPLAY = {**SHAPE, "buffer": 100, "batch": 8}
ROLLOUTS = {**SHAPE, "learner": "parallel", "num_envs": 4, "rollout": 10}
ACTOR = {"algo": "tal-ac", "hidden": 8, "batch": 8, "buffer": 100, "warmup": 20, "seeds": 2}
HOST = "host_envs:tests/Naughty-v0"  # tests/support is on the path
PARTS = {"double": True, "dueling": True, "n_step": 3, "prioritised": True, "tau": 0.05}


class Learner(NamedTuple):
    """A run of few, short periods.

    Args:
        env: its environment.
        options: its shape, without lengths.
        length: steps that take about a second once the program is compiled.
        exact: whether it is resumed to the bit; the environments of a host cannot be saved.
    """

    env: str
    options: dict[str, Any]
    length: int
    exact: bool = True

    def words(self, steps: int, **more: Any) -> list[str]:
        """What follows `tsallax train`."""
        fields = {"eval_every": 80, "eval_episodes": 2, **self.options, "steps": steps, **more}
        found = [self.env]
        for name, value in fields.items():
            several = value if isinstance(value, tuple) else (value,)
            found += [f"--{name.replace('_', '-')}", *(str(x) for x in several if x is not True)]
        return found


LEARNERS = {
    "replay": Learner("CartPole-v1", {**REPLAY, "q": (1.5, 3.0), "time_limit": 15}, 8_000),
    "MinAtar": Learner("MinAtar/Freeway", {**REPLAY, "time_limit": 100}, 2_000),
    "parts": Learner("CartPole-v1", {**REPLAY, **PARTS}, 8_000),
    "parallel": Learner("CartPole-v1", {**ROLLOUTS, "target_period": 400}, 40_000),
    "discrete actor": Learner("CartPole-v1", {**ACTOR, "automatic_alpha": True}, 6_000),
    "continuous actor": Learner("Pendulum-v1", {**ACTOR, "density": "q-gaussian"}, 4_000),
    "host replay": Learner(HOST, REPLAY, 2_000, exact=False),
    "host parallel": Learner(HOST, {**ROLLOUTS, "target_period": 400}, 20_000, exact=False),
    "host actor": Learner("box_envs:tests/Reach-v0", ACTOR, 1_000, exact=False),
}
