"""`tsallax agents`: the trained agents that ship with the package."""

from rich.console import Console
from rich.table import Table

from tsallax.cli.common import unmarked

BELOW = """
The score is the mean return of 100 episodes, with its standard error. Actions are
sampled from pi. The episodes were used neither for training nor for choosing
among the seeds.

  tsallax play --agent NAME                    make a video
  tsallax evaluate --agent NAME                play episodes, print returns
  tsallax export --agent NAME                  write an ONNX file
  tsallax train NAME --init-from agent:NAME    start a run from its weights
  tsallax.load_agent("NAME")                   load it in Python"""


def run() -> None:
    """List the trained agents that come with tsallax."""
    from tsallax.training.trained import agents

    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("name")
    table.add_column("algorithm")
    for name in ("q", "steps", "best of", "score", "size"):
        table.add_column(name, justify="right")
    for one in agents():
        table.add_row(
            unmarked(one.name),
            unmarked(one.algo),
            f"{one.q:g}",
            f"{one.steps:,}",
            f"{one.chosen_from} seed{'s' if one.chosen_from > 1 else ''}",
            f"{one.mean:.1f} +- {one.standard_error:.1f}",
            f"{one.size / 1e6:.2f} MB",
        )
    console = Console(highlight=False)
    console.print(table)
    console.print(BELOW)
