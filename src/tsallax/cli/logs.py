"""Live logs: TensorBoard and Weights & Biases. Each is imported only when it is asked for."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np

from tsallax.learners import Ended
from tsallax.spelling import install
from tsallax.storage.files import open_below
from tsallax.training.config import Config
from tsallax.training.driver import Progress, Watcher

Log = Literal["tensorboard", "wandb"]
Write = Callable[[int, dict[str, float]], None]


class Logged:
    """A watcher that also writes each cell's metrics to logs.

    The logs are opened with the first metrics: before that the run's folder may not exist.
    """

    def __init__(
        self,
        watcher: Watcher,
        names: Sequence[Log],
        path: Path,
        config: Config,
        labels: Sequence[str],
    ):
        self.watcher, self.start = watcher, lambda: make_writers(names, path, config)
        self.labels = [label.replace(" ", "_").replace("=", "_") for label in labels]
        self.writers: list[Write] | None = None

    def begin_at(self, step: int) -> None:
        self.watcher.begin_at(step)

    def tick(self, step: int, episodes: Ended | None = None) -> None:
        self.watcher.tick(step, episodes)

    def __call__(self, progress: Progress) -> None:
        self.watcher(progress)
        if self.writers is None:
            self.writers = self.start()
        columns = progress.period.metrics._asdict()
        if progress.evaluation is not None:
            columns["eval_return"] = progress.evaluation.mean(-1)
        values = {
            f"{name}/{label}": float(value)
            for name, column in columns.items()
            if name != "step"
            for label, value in zip(self.labels, np.asarray(column), strict=True)
            if np.isfinite(value)
        }
        for write in self.writers:
            write(progress.period.step, {**values, "steps_per_second": progress.speed})


PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb"}


def check_logs(names: Sequence[Log]) -> None:
    """Refuse logs whose package is missing, before the run begins."""
    for name in names:
        if find_spec(PACKAGES[name]) is None:
            raise ValueError(f"{PACKAGES[name]} is not installed: {install('logs')}")


def make_writers(names: Sequence[Log], path: Path, config: Config) -> list[Write]:
    makers = {"tensorboard": tensorboard, "wandb": weights_and_biases}
    for name in names:
        open_below(path, name).close()  # refuses a link, which the logger would follow
    return [makers[name](path, config) for name in dict.fromkeys(names)]


def tensorboard(path: Path, config: Config) -> Write:
    """Event files in the run's folder: `tensorboard --logdir RUN`."""
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(str(path / "tensorboard"))
    writer.add_text("config", "\n".join(f"    {k}: {v}" for k, v in asdict(config).items()))

    def write(step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return write


def weights_and_biases(path: Path, config: Config) -> Write:
    """A run of the project `tsallax`; offline with WANDB_MODE=offline."""
    import wandb

    run = wandb.init(project="tsallax", name=path.name, dir=str(path), config=asdict(config))
    return lambda step, values: run.log(values, step=step)
