"""`tsallax list`: the algorithms with their equations, the environments, the presets."""

from rich.console import Console
from rich.table import Table


def run() -> None:
    """List algorithms, environments and presets."""
    from tsallax import envs
    from tsallax.operators import ALGORITHMS
    from tsallax.training.config import CHOICES, PRESETS

    console = Console()
    table = Table(title="algorithms", title_justify="left", box=None, header_style="dim")
    for name in ("name", "target", "source"):
        table.add_column(name, overflow="fold")
    for row in ALGORITHMS.values():
        table.add_row(row.name, row.equation, row.source)
    console.print(table)
    console.print("\nenvironments")
    for name in envs.ids():
        console.print(f"  {name}", highlight=False)
    for title, group in (("presets", PRESETS), ("choices", CHOICES)):
        console.print(f"\n{title}")
        for name, fields in group.items():
            words = ", ".join(f"{k} {_short(v)}" for k, v in fields.items())
            console.print(f"  {name}: {words}", highlight=False)


def _short(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
