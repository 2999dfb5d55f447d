"""`tsallax play`: a video of a trained agent, with its policy next to the picture."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.text import Text

from tsallax._jaxlib import use_cache
from tsallax.api import load
from tsallax.cli import minatar_terminal
from tsallax.cli.common import check_counts, check_seed, which_run
from tsallax.envs import GAMES, make, ready
from tsallax.envs.host import make_host
from tsallax.learners.rollout import Moment, by_policy, host_moments, moments
from tsallax.report import video
from tsallax.report.moment_words import number, summary
from tsallax.spelling import install, printable
from tsallax.training.build import make_cells
from tsallax.training.config import Config, varied
from tsallax.training.final import best_cell
from tsallax.training.stored_config import read_run
from tsallax.types import Masked

FPS = {"Acrobot-v1": 15, **dict.fromkeys(GAMES, 10)}  # slow enough to read the bars


def run(
    folder: Annotated[
        Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[RUN]", help_behavior_hint=" ")
    ] = None,
    /,
    out: Path | None = None,
    cell: int | None = None,
    episodes: int = 1,
    seed: int = 0,
    greedy: bool = False,
    best: bool = False,
    steps: int = 1000,
    fps: int | None = None,
    terminal: bool = False,
    agent: str = "",
    env: str = "",
) -> int:
    """Write a video of a trained agent: the environment, and pi with the actions that it rules out.

    Args:
        folder: a run's folder.
        out: the video, .mp4 or .gif; if not given, RUN/play.mp4 or NAME.mp4 (.gif: no ffmpeg).
        cell: which of the `cells` of its run.json; if not given, the best one.
        episodes: number of episodes, those that `tsallax evaluate` plays with this seed.
        seed: seed of the episodes.
        greedy: act by argmax Q instead of a sample of pi.
        best: use the weights with the best evaluation during training, not the last ones.
        steps: maximum number of steps per episode.
        fps: steps per second; if not given, it depends on the environment.
        terminal: show a MinAtar game in the terminal, and write no video.
        agent: a trained agent that ships with tsallax, instead of RUN; see `tsallax agents`.
        env: the run's own environment, if it is `package:Name`, to allow that import.
    """
    check_counts(episodes=episodes, steps=steps, fps=1 if fps is None else fps)
    check_seed(seed)
    use_cache()
    source, best = which_run(folder, agent, best)
    config = read_run(source, env)[0]
    stem = source / "play" if folder else Path(source.name)  # an agent's folder is not written to
    path = _target(stem, out, terminal, config.env)
    cell = best_cell(source) if cell is None else cell
    model = load(source, cell, env=env, best=best)
    title = _title(config, cell, greedy)
    speed = fps or FPS.get(config.env, 15 if config.env.startswith("ALE/") else 30)
    ends: list[Moment] = []
    how = {"episodes": episodes, "seed": seed, "greedy": greedy, "steps": steps}
    if config.loop == "compiled":
        made = ready(make(config.env, **config.env_options))
        told = _noting(moments(made, model.agent, model.params, model.hp, **how), ends)
    else:
        masks = isinstance(model.observation, Masked)
        given = {"render": True, "masks": masks, **config.env_options}
        made = make_host(config.env, 1, config.env_timeout, **given)
        policy = (lambda seen: model.policy(*seen)) if masks else model.policy
        act = by_policy(policy) if masks else model.act
        told = _noting(host_moments(made, policy, act, stack=config.stack, **how), ends)
    try:
        if path is None:
            minatar_terminal.show(told, made.action_names, title, speed, Console())
        else:
            _write(path, told, made.action_names, title, speed)
    except KeyboardInterrupt:
        left = "" if path is None else f", {printable(path)} is not written"
        print(f"stopped{left}", file=sys.stderr)
        return 130
    for end in ends:
        most = ", the most that --steps allows" if end.step == steps else ""
        score = number(end.total)
        print(f"episode {end.episode}: {end.step:,} steps{most}, return {score}")
    if path is not None:
        print(f"video {printable(path)}")
    return 0


def _target(stem: Path, out: Path | None, terminal: bool, env_id: str) -> Path | None:
    """The path of the video, or None for the terminal; invalid combinations are refused."""
    if not terminal:
        path = out or _default(stem)
        video.check_target(path)
        return path
    if out is not None:
        raise ValueError("--terminal writes no video: leave out --out, or --terminal")
    if env_id not in GAMES:
        raise ValueError(f"--terminal is for MinAtar's games; {env_id} has no grid of cells")
    return None


def _default(stem: Path) -> Path:
    if video.ffmpeg():
        return stem.with_name(f"{stem.name}.mp4")
    print(f"no ffmpeg here, so this is a GIF; for MP4: {install('video')}")
    return stem.with_name(f"{stem.name}.gif")


def _title(config: Config, cell: int, greedy: bool) -> str:
    one = make_cells(config)[cell]
    names = [n for n in one.numbers if n == "q" or n in varied(config)]
    acting = ", acting by argmax Q" if greedy else ""
    numbers = [f"{name} = {one.numbers[name]:g}" for name in names]
    return ", ".join([f"{config.algo} on {config.env}", f"seed {one.seed}", *numbers]) + acting


def _noting(told: Iterable[Moment], ends: list[Moment]) -> Iterator[Moment]:
    for moment in told:
        yield moment
        if moment.action is None:
            ends.append(moment)


def _write(
    path: Path, told: Iterable[Moment], names: tuple[str, ...], title: str, fps: int
) -> None:
    console, what = Console(), f"writing {printable(path)}"
    if not console.is_terminal:
        print(f"{what} ...", flush=True)
    with console.status(Text(f"{what}: compiling ...")) as status:

        def frames() -> Iterator[video.Frame]:
            for moment in told:
                image = video.frame(moment, names, title)
                # The last frame of an episode is shown for a second.
                yield from [image] * (fps if moment.action is None else 1)
                status.update(Text(f"{what}: {summary(moment)}"))

        video.write_video(path, frames(), fps)
