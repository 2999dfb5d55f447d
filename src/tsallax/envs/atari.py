"""Atari games through ale-py's own vector environment (extra `atari`).

Frames are 84x84 in greyscale, the maximum of the last two of four emulator frames. They are
returned one by one, and the replay stacks them. Rewards are raw scores; the learner clips them.
"""

import re
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from jaxtyping import Int, Shaped, UInt8

from tsallax.envs.host import Moves
from tsallax.spelling import install
from tsallax.types import Box

# Our choice, with dense and sparse rewards, easy and hard exploration; the paper names only
# KungFuMaster.
GAMES = (
    "Alien", "Asterix", "BeamRider", "Breakout", "Enduro", "Freeway", "Hero", "KungFuMaster",
    "MsPacman", "Pong", "Qbert", "RoadRunner", "Seaquest", "SpaceInvaders", "VideoPinball",
)  # fmt: skip


def snake(name: str) -> str:
    """Converts `KungFuMaster` to `kung_fu_master`, the emulator's spelling."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def rom_of(env_id: str) -> str:
    """The ROM of `ALE/Pong-v5`; an unknown game is refused, with the nearest name as a hint."""
    from difflib import get_close_matches

    try:
        from ale_py import roms
    except ImportError:
        raise ValueError(f"{env_id} needs another package: {install('atari')}") from None
    found = re.fullmatch(r"ALE/(\w+)-v5", env_id)
    known = set(roms.get_all_rom_ids())
    if found and snake(found[1]) in known:
        return snake(found[1])
    names = {"".join(part.capitalize() for part in rom.split("_")) for rom in known}
    near = get_close_matches(env_id.removeprefix("ALE/").removesuffix("-v5"), names, n=1)
    hint = f"did you mean 'ALE/{near[0]}-v5'?" if near else "an example is 'ALE/Pong-v5'"
    raise ValueError(f"unknown environment {env_id!r}; {hint}")


def action_names(rom: str) -> tuple[str, ...]:
    """The actions of the game's minimal set, in the order of the vector environment."""
    from ale_py import ALEInterface, LoggerMode, roms

    ALEInterface.setLoggerMode(LoggerMode.Error)
    emulator = ALEInterface()
    emulator.loadROM(str(roms.get_rom_path(rom)))
    return tuple(action.name for action in emulator.getMinimalActionSet())


class AtariEnvs:
    """`n` games of one kind, stepped by the emulator's own threads.

    Args:
        env_id: such as `ALE/Pong-v5`.
        n: number of environments.
        sticky: probability of repeating the last action in a frame.
        noop_max: most idle steps at the start of an episode.
        fire_reset: press FIRE at the start of games that wait for it.
        episodic_life: a lost life is a termination for the learner; the game continues.
        time_limit: most steps of four frames per episode.
    """

    def __init__(
        self,
        env_id: str,
        n: int,
        sticky: float = 0.0,
        noop_max: int = 30,
        fire_reset: bool = True,
        episodic_life: bool = False,
        time_limit: int = 27_000,
    ):
        from ale_py.vector_env import AtariVectorEnv

        self.count, self.failures = n, {}
        self.action_box: Box | None = None
        self.episodic_life = episodic_life
        self.time_limit: int | None = time_limit
        self.envs = AtariVectorEnv(
            rom_of(env_id),
            num_envs=n,
            stack_num=1,
            reward_clipping=False,
            repeat_action_probability=sticky,
            noop_max=noop_max,
            use_fire_reset=fire_reset,
            max_num_frames_per_episode=4 * time_limit,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
        self.observation = jax.ShapeDtypeStruct((84, 84), jnp.uint8)
        self.action_names = action_names(rom_of(env_id))
        self.lives, self.shown = np.zeros(n, int), np.zeros((84, 84), np.uint8)

    def gives_masks(self) -> bool:
        """Always false, as a game allows every action of its set."""
        return False

    def reset(self, seeds: Sequence[int | None]) -> Shaped[np.ndarray, "n 84 84"]:
        given = np.array([seed for seed in seeds if seed is not None], np.int32)
        only = {"reset_mask": np.array([seed is not None for seed in seeds])}
        partly = {"options": only} if len(given) < len(seeds) else {}
        observation, info = self.envs.reset(seed=given, **partly)
        self.lives, self.shown = info["lives"].copy(), observation[0, 0].copy()
        return observation[:, 0]

    def step(self, actions: Int[np.ndarray, "n"]) -> Moves:
        observation, reward, terminated, truncated, info = self.envs.step(np.maximum(actions, 0))
        observation, over = observation[:, 0].copy(), terminated | truncated
        final = observation
        if over.any():
            final = np.where(over[:, None, None], info["final_obs"][:, 0], observation)
        self.shown = final[0]
        lost, self.lives = info["lives"] < self.lives, info["lives"].copy()
        if self.episodic_life:
            terminated = terminated | (lost & ~over)
        return Moves(observation, reward.astype(np.float32), terminated, truncated, over, final)

    def picture(self) -> UInt8[np.ndarray, "84 84 3"]:
        """The last frame of the first game, as the agent sees it."""
        return np.repeat(self.shown[:, :, None], 3, -1)

    def close(self) -> None:
        self.envs.close()
