"""The five MinAtar games (Young and Tian, 2019), state-exact; the rules: docs/minatar-rules.md."""

from collections.abc import Callable

from tsallax.envs.base import Environment
from tsallax.envs.minatar import asterix, breakout, freeway, seaquest, space_invaders

GAMES: dict[str, Callable[..., Environment]] = {
    "MinAtar/Asterix": asterix.make,
    "MinAtar/Breakout": breakout.make,
    "MinAtar/Freeway": freeway.make,
    "MinAtar/Seaquest": seaquest.make,
    "MinAtar/SpaceInvaders": space_invaders.make,
}
