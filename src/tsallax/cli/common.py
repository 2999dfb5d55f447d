"""Shared parts of several subcommands: selection of their run, and checks of their numbers."""

from pathlib import Path

from tsallax.spelling import printable


def unmarked(text: object) -> str:
    """`printable` for `rich`, with brackets escaped, which `rich` would interpret as markup."""
    from rich.markup import escape

    return escape(printable(text))


def which_run(folder: Path | None, agent: str, best: bool) -> tuple[Path, bool]:
    """The run folder for a command, and whether to use its best weights: an agent has no others."""
    from tsallax.training.trained import agent_folder

    if (folder is None) == (not agent):
        raise ValueError("give the folder of a run or --agent NAME; `tsallax agents` lists them")
    return (agent_folder(agent), True) if folder is None else (folder, best)


def check_counts(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")


def check_seed(seed: int) -> None:
    """Refuse a seed that does not fit an int32, as it is an argument of a compiled program."""
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed must be between 0 and 2^31 - 1, not {seed}")
