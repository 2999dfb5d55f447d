"""The trained agents that ship with the package, one per environment: run folders, no code.

Each has one cell and its best weights; `agent` in its `run.json` records how it was chosen and its
score. tools/train_agents.py makes them.
"""

from pathlib import Path
from typing import Any, NamedTuple

from tsallax.spelling import suggest
from tsallax.storage.files import Directory
from tsallax.storage.run_folder import RUN, read_about

ROOT = Path(__file__).parents[1] / "trained"
PREFIX = "agent:"  # of a name that is given instead of a run folder


class Agent(NamedTuple):
    """The description of a trained agent, without its weights."""

    name: str  # the environment
    algo: str
    q: float
    steps: int  # training steps up to these weights
    chosen_from: int  # number of seeds
    mean: float  # mean return
    standard_error: float
    size: int  # bytes


def agents() -> list[Agent]:
    """All trained agents, sorted by name."""
    return [_describe(path) for path in _folders().values()]


def agent_folder(name: str) -> Path:
    """The run folder of a trained agent."""
    known = _folders()
    if name not in known:
        raise ValueError(f"there is no trained agent {name!r}; {suggest(name, known)}")
    return known[name]


def run_folder(text: str) -> Path:
    """The folder of a run, or of a trained agent given as `agent:NAME`."""
    return agent_folder(text.removeprefix(PREFIX)) if text.startswith(PREFIX) else Path(text)


def _folders() -> dict[str, Path]:
    paths = filter(Path.is_dir, ROOT.iterdir())
    found = {str(read_about(path).config.get("env")): path for path in paths}
    return dict(sorted(found.items()))


def _describe(path: Path) -> Agent:
    about: dict[str, Any] = read_about(path).everything
    with Directory(path) as folder:
        size = sum(map(folder.size, folder.names()))
    try:
        config, own, score = about["config"], about["agent"], about["agent"]["score"]
        return Agent(
            str(config["env"]),
            str(config["algo"]),
            float(about["cells"][0]["q"]),
            int(about["best"]["step"][0]),
            int(own["chosen_from"]),
            float(score["mean"]),
            float(score["standard_error"]),
            size,
        )
    except (LookupError, TypeError, ValueError, OverflowError):
        raise ValueError(f"{path} has a damaged {RUN}") from None
