"""`tsallax list`: the algorithms with their equations, the environments, the presets."""

from rich.console import Console
from rich.table import Table
from rich.text import Text


def run() -> None:
    """List algorithms, environments and presets."""
    from tsallax import envs
    from tsallax.envs.atari import GAMES
    from tsallax.operators import ACTOR_CRITICS, ALGORITHMS
    from tsallax.training.actor_settings import (
        ACTOR_CRITIC,
        ACTOR_CRITIC_ENVS,
        DISCRETE_ACTOR,
        DISCRETE_VECTORS,
    )
    from tsallax.training.presets import CHOICES, PRESETS
    from tsallax.training.tuned import GENERAL, PARALLEL, TUNED

    console = Console()
    table = Table(title="algorithms", title_justify="left", box=None, header_style="dim")
    for name in ("name", "target", "source", "own defaults"):
        table.add_column(name, overflow="fold")
    for row in (*ALGORITHMS.values(), *ACTOR_CRITICS.values()):
        numbers = ", ".join(f"{name} {value:g}" for name, value in row.defaults.items())
        table.add_row(row.name, Text(row.equation), row.source, numbers)  # [.] is not markup
    console.print(table)
    console.print("\nenvironments\n  compiled: " + ", ".join(envs.ids()), highlight=False)
    games = ", ".join(f"ALE/{game}-v5" for game in GAMES)
    console.print(f"  Atari: {games}, and every other game of the emulator", highlight=False)
    console.print(
        "  any other id of Gymnasium with discrete actions, or vectors within bounds (a Box), or "
        "package:Name-v0",
        highlight=False,
    )
    choices = {
        f"{name}, {preset}": own for name, by in CHOICES.items() for preset, own in by.items()
    }
    kinds = {"gym": "any vectors", "minatar": "MinAtar", "atari": "Atari, any images"}
    tuned = {f"{kinds[d]}, parallel": GENERAL[d]["parallel"] | PARALLEL[d] for d in kinds}
    tuned |= {f"{env}, {learner}": own for env, by in TUNED.items() for learner, own in by.items()}
    actors = {
        "any discrete actions, actor-critic": DISCRETE_ACTOR,
        "the same with vectors": DISCRETE_VECTORS,
        "any continuous actions, actor-critic": ACTOR_CRITIC,
    }
    actors |= {f"{env}, actor-critic": own for env, own in ACTOR_CRITIC_ENVS.items()}
    groups = {"tuned settings": tuned | actors, "the paper's tables": PRESETS, "choices": choices}
    for title, group in groups.items():
        console.print(f"\n{title}")
        for name, fields in group.items():
            words = ", ".join(f"{k.rstrip('_')} {_short(v)}" for k, v in fields.items())
            console.print(f"  {name}: {words}", highlight=False)


def _short(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
