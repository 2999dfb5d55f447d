"""Folders as the commands make them, to be harmed: small, and each trained only once."""

import contextlib
import dataclasses
import io
import shutil
from pathlib import Path

from support import runs, tiny
from support.hub_server import COMMIT
from tsallax import cli
from tsallax.storage.files import Directory
from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.driver import Silent, train_into

# Entries of a run folder that need not be there, but may be in the place of what is written.
NEW = (
    *("run.json.part", "metrics.csv.part", "weights.safetensors.part", "best.safetensors.part"),
    *("curves.png", "curves.png.part", "play.gif", "play.gif.part", "play.part.gif", "play.mp4"),
    *("checkpoints/.part-000000000120", "checkpoints/step-000000000120", "tensorboard", "wandb"),
    *("checkpoints/.old-step-000000000080", ".lock", "\x1b[31mred.gif", "[bold]x.mp4"),
)
TUNE_NEW = ("best.toml", "best.toml.part", "search.png", "search.png.part", "journal.jsonl.part")
TUNE = [
    *("CartPole-v1", "--preset", "paper", "--learner", "parallel", "--hidden", "8"),
    *("--num-envs", "2", "--rollout", "20", "--minibatches", "2", "--target-period", "40"),
    *("--seeds", "2", "--steps", "160", "--trials", "2", "--width", "2", "--confirm", "1"),
    *("--confirm-seeds", "2"),
]


def config() -> Config:
    return tiny.config(save_seconds=1e-9, save_steps=1)


def make_run_folder(path: Path) -> None:
    """A run that was stopped after two of its three periods, with two checkpoints."""
    run = make_run(config())
    asked = iter([False, True])
    with contextlib.redirect_stdout(io.StringIO()):
        train_into(run, path, Silent(), lambda: next(asked), lambda folder: b"picture")


def make_done_folder(path: Path, stopped: Path) -> None:
    shutil.copytree(stopped, path)
    train_into(
        make_run(config()), path, Silent(), picture=lambda folder: b"x", say=lambda text: None
    )


def make_results(path: Path) -> None:
    """Tables of three studies, as `tsallax reproduce --scale quick` leaves them."""
    row = {"seeds": 3, "level": 100.0}
    common = {"env": "CartPole-v1", "policy": "paper", "log_weight": ""}
    runs.write_results(path / "quick" / "random", [{**row, "labels": {**common, "algo": "dqn"}}])
    several = [
        {**row, "level": level, "labels": {**common, "algo": algo, "q": "2"}}
        for algo, level in (("tal", 400.0), ("tsallis-dqn", 300.0), ("mt-dqn", 200.0))
    ]
    runs.write_results(path / "quick" / "fig2", several)
    runs.write_results(path / "quick" / "fig5", several)


def make_search(path: Path) -> None:
    """A search for settings that is finished."""
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.main(["tune", *TUNE, "--out", str(path)]) == 0


def make_agents(path: Path) -> None:
    """Two of the agents that come with the package, in a folder of their own."""
    from tsallax.training.trained import ROOT

    for name in ("CartPole-v1", "Acrobot-v1"):
        shutil.copytree(ROOT / name, path / name)


class FolderHub:
    """In the place of the Hub's client: a folder is the repository."""

    def __init__(self, folder: Path):
        self.folder = folder

    def files_of(self, client: object, repo: str, revision: str) -> tuple[str, dict[str, int]]:
        from tsallax.storage.portable import LIMITS

        with Directory(self.folder) as folder:
            regular = {}
            for name in filter(folder.has, LIMITS):
                with contextlib.suppress(ValueError):
                    regular[name] = folder.size(name)
        return COMMIT, regular

    def download(self, repo: str, commit: str, name: str, folder: Directory) -> None:
        from tsallax.storage.files import write_all
        from tsallax.storage.portable import LIMITS

        with Directory(self.folder) as source, folder.create(name) as file:
            write_all(file, source.read(name, LIMITS[name]))

    def create_repo(self, *_: object, **__: object) -> None: ...

    def create_commit(self, repo: str, operations: list, **_: object) -> object:
        @dataclasses.dataclass
        class Made:
            commit_url: str = f"https://hub/{repo}/commit/{COMMIT}"

        return Made()
