"""`tsallax pull`: downloads a run folder from the Hugging Face Hub as untrusted data."""

from pathlib import Path
from typing import Annotated

import tyro

from tsallax.cli import hub
from tsallax.cli.display import title
from tsallax.spelling import printable
from tsallax.storage.files import Directory
from tsallax.storage.portable import check_size, check_whole
from tsallax.storage.run_folder import RUN


def run(
    repo: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="REPO")],
    /,
    out: Path | None = None,
    revision: str = "",
    env: str = "",
) -> int:
    """Download a run from the Hugging Face Hub, to play, evaluate or load it.

    Only the files of a run's folder are taken, as data: nothing of it is executed. A folder that is
    damaged, unfinished or too large is refused.

    Args:
        repo: USER/NAME, as `tsallax push` was given it.
        out: a new folder; runs/NAME if not given.
        revision: a branch, tag or commit; the newest if not given.
        env: the run's own environment, if it is `package:Name`, to allow that import.
    """
    client = hub.make_client()
    target = out or Path("runs") / repo.rpartition("/")[2]
    if target.exists():
        raise FileExistsError(f"{target} is there already: choose another folder with --out")
    with hub.in_one_line(repo):
        commit, sizes = hub.files_of(client, repo, revision)
    if RUN not in sizes:
        raise ValueError(f"{repo} is no run of tsallax: it has no {RUN}")
    for name, size in sizes.items():
        check_size(name, size)
    try:
        with Directory(target, create=True) as folder, hub.in_one_line(repo):
            for name in sizes:
                hub.download(repo, commit, name, folder)
        words = _checked(target, env)
    except BaseException:
        with Directory(target.parent) as around:
            around.remove(target.name)
        raise
    print(f"{words}, {sum(sizes.values()) / 1e6:.1f} MB: {printable(target)}")
    print(f"a video of it: tsallax play {printable(target)}")
    return 0


def _checked(path: Path, env: str) -> str:
    """Describe a downloaded run; refuse it if it is incomplete or not as its configuration says."""
    from tsallax.training.build import make_run
    from tsallax.training.final import folder_scores, in_words
    from tsallax.training.stored_config import load_weights, read_run

    check_whole(path)
    config, about = read_run(path, env)
    # Host environments and a user's own networks may be missing here: `load` compares them.
    if config.loop == "compiled" and config.network != "own":
        load_weights(path, about, make_run(config).learner.params())
    with Directory(path) as folder:
        return f"{printable(title(config))}, {in_words(folder_scores(folder))}"
