"""`tsallax push`: uploads a run folder to a model repository of the Hugging Face Hub."""

from pathlib import Path
from typing import Annotated, Any

import tyro

from tsallax import __version__
from tsallax.cli import hub
from tsallax.spelling import counted, printable


def run(
    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    repo: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="REPO")],
    /,
    private: bool = False,
    env: str = "",
) -> int:
    """Upload a run to the Hugging Face Hub: configuration, metrics, weights, curves, video.

    The model card is generated: scores, settings, how to load the run. run.json is uploaded
    unchanged, with the command line of the run; checkpoints and logs are not uploaded.

    Args:
        folder: a finished run's folder.
        repo: USER/NAME, which is created if it does not exist.
        private: make a new repository visible only to you.
        env: the run's own environment, if it is `package:Name`, to allow that import.
    """
    from tsallax.report.card import model_card
    from tsallax.storage.portable import read_portable

    client = hub.make_client()
    files = read_portable(folder)
    card = model_card(folder, repo, env)
    files["README.md"] = f"---\n{_metadata(card)}---\n\n{card.body}".encode()
    with hub.in_one_line(repo):
        from huggingface_hub import CommitOperationAdd

        client.create_repo(repo, private=private, exist_ok=True)
        made = client.create_commit(
            repo,
            [CommitOperationAdd(name, data) for name, data in files.items()],
            commit_message=f"{card.config.algo} on {card.config.env}, by tsallax {__version__}",
        )
    size = sum(map(len, files.values())) / 1e6
    print(f"{counted(len(files), 'file')}, {size:.1f} MB: {printable(made.commit_url)}")
    print(f"anyone with access: tsallax pull {printable(repo)}")
    return 0


def _metadata(card: Any) -> str:
    """The metadata for the Hub's search and leaderboards, as YAML."""
    from huggingface_hub import EvalResult, ModelCardData

    env, algo = card.config.env, card.config.algo
    score = EvalResult(
        task_type="reinforcement-learning",
        task_name="reinforcement learning",
        dataset_type=env,
        dataset_name=env,
        metric_type="mean_reward",
        metric_name=card.measured,
        metric_value=round(card.score, 2),
    )
    data = ModelCardData(
        library_name="tsallax",
        tags=[env, algo, "reinforcement-learning", "deep-reinforcement-learning", "jax"],
        model_name=algo,
        eval_results=[score] if card.score == card.score else None,  # NaN: no episode ended
    )
    return data.to_yaml() + "\n"
