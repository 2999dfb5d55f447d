"""What several subcommands share: the run that they are for, and checks of their numbers."""

from pathlib import Path

from tsallax.spelling import printable


def unmarked(text: object) -> str:
    """The same for a table of `rich`, which would take [words in brackets] for its own marks."""
    from rich.markup import escape

    return escape(printable(text))


def which_run(folder: Path | None, agent: str, best: bool) -> tuple[Path, bool]:
    """The folder that a command is for, and whether for its best weights: all an agent has."""
    from tsallax.training.trained import agent_folder

    if (folder is None) == (not agent):
        raise ValueError("give the folder of a run or --agent NAME; `tsallax agents` lists them")
    return (agent_folder(agent), True) if folder is None else (folder, best)


def check_counts(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")


def check_seed(seed: int) -> None:
    """A seed of episodes is an argument of a compiled program, so it must fit an int32."""
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed must be between 0 and 2^31 - 1, not {seed}")
