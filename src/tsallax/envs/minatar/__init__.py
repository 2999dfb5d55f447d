"""The five MinAtar games (Young and Tian, 2019), state-exact; the rules: docs/minatar-rules.md."""

from collections.abc import Callable
from functools import partial

from tsallax.envs.base import Environment
from tsallax.envs.minatar import asterix, breakout, freeway, seaquest, space_invaders
from tsallax.envs.minatar.common import environment

GAMES: dict[str, Callable[..., Environment]] = {
    game.RULES.id: partial(environment, game.RULES)
    for game in (asterix, breakout, freeway, seaquest, space_invaders)
}
