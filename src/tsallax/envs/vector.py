"""Gymnasium's vector environments, with the interface of learners.

For a learner the next episode starts in the step in which one ends, whatever the vector's own
autoreset mode.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from jaxtyping import Bool, Int, UInt8

from tsallax.envs.actions import action_box
from tsallax.envs.host import Moves, attempt
from tsallax.envs.spaces import MASK, EnvironmentStoppedError, sight_of
from tsallax.types import Box, stacked


class VectorEnvs:
    """The first `n` environments of as many vectors as necessary.

    Args:
        name: the name in messages.
        n: number of environments; the rest of the last vector is stepped but not used.
        source: makes vectors, and takes them back.
        timeout: seconds that a step or reset may take; 0 for no limit.
        one_hot: encode discrete observations as one-hot vectors.
        masks: whether they provide action masks, see `gives_masks`.
    """

    def __init__(self, name: str, n: int, source: Any, timeout: float, one_hot: bool, masks: bool):
        self.count, self.timeout, self.source, self.failures = n, timeout, source, {}
        first = source.make()
        if not isinstance(first.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            source.give_back(first)
            raise ValueError(
                f"{name} cannot be reset one by one: give a SyncVectorEnv, an AsyncVectorEnv or a "
                "function that makes a single environment"
            )
        self.size = first.num_envs
        self.vectors = [first, *(source.make() for _ in range(-(-n // self.size) - 1))]
        self.same_step = first.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP
        spaces = first.single_observation_space, first.single_action_space
        self.action_box: Box | None = action_box(name, spaces[1])  # no learner supports it yet
        self.sight = sight_of(name, *spaces, one_hot, masks)
        self.observation = self.sight.observation
        self.first_action = int(getattr(spaces[1], "start", 0))
        self.action_names = tuple(map(str, range(self.sight.actions)))
        self.time_limit: int | None = None  # handled by the environments themselves
        self.idle = np.zeros(len(self.vectors) * self.size, int)  # for environments not used
        self.begun = False

    def gives_masks(self) -> bool:
        """Returns whether the first vector, which is reset, provides action masks."""
        return bool(self._try(0, lambda: MASK in self.vectors[0].reset(seed=0)[1]))

    def reset(self, seeds: Sequence[int | None]) -> Any:
        padded = [*seeds, *[None] * (len(self.idle) - len(seeds))]
        rows = [self.sight.blank() for _ in padded]
        for v in range(len(self.vectors)):
            own = padded[self._of(v)]
            chosen = np.array([seed is not None or not self.begun for seed in own])
            self._reset(v, own, chosen, rows)
        self.begun = True
        return stacked(rows[: self.count])

    def step(self, actions: Int[np.ndarray, "n"]) -> Moves:
        asked, total = self.idle.copy(), len(self.idle)
        asked[: self.count] = np.where(actions >= 0, actions, asked[: self.count])
        start, final = [self.sight.blank()] * total, [self.sight.blank()] * total
        reward, terminated, truncated = (
            np.zeros(total),
            np.zeros(total, bool),
            np.zeros(total, bool),
        )
        for v, vector in enumerate(self.vectors):
            at = self._of(v)
            chosen = asked[at] + self.first_action
            given = self._try(v, lambda vector=vector, chosen=chosen: vector.step(chosen))
            if given is None:
                continue
            seen, reward[at], terminated[at], truncated[at], info = given
            over, last = terminated[at] | truncated[at], terminated[at]
            if not self.same_step:
                self._read(v, seen, info, "step", np.ones(self.size, bool), final, last)
                self._reset(v, [None] * self.size, over, start)
                continue
            self._read(v, seen, info, "step", ~over, final)
            if over.any():  # observations are initial ones; the final ones are in the info
                self._read(v, info["final_obs"], info["final_info"], "step", over, final, last)
                self._read(v, seen, info, "reset", over, start)
        for i in np.flatnonzero(~np.isfinite(reward[: self.count])):
            self.failures.setdefault(int(i), f"step gave the reward {reward[i]}")
            reward[i] = 0
        n, over = self.count, terminated | truncated
        now = [start[i] if over[i] else final[i] for i in range(n)]
        numbers = reward[:n].astype(np.float32), terminated[:n], truncated[:n], over[:n]
        return Moves(stacked(now), *numbers, stacked(final[:n]))

    def picture(self) -> UInt8[np.ndarray, "1 1 3"]:
        """An empty picture, as vectors are not rendered."""
        return np.zeros((1, 1, 3), np.uint8)

    def close(self) -> None:
        for vector in self.vectors:
            self.source.give_back(vector)

    def _of(self, v: int) -> slice:
        return slice(v * self.size, (v + 1) * self.size)

    def _reset(
        self, v: int, seeds: list[int | None], chosen: Bool[np.ndarray, "size"], rows: list[Any]
    ) -> None:
        if not chosen.any():
            return
        options = {"reset_mask": chosen}
        given = self._try(v, lambda: self.vectors[v].reset(seed=seeds, options=options))
        if given is not None:
            seen, info = given
            self._read(v, seen, info, "reset", chosen, rows)

    def _read(
        self,
        v: int,
        seen: Any,
        info: dict[str, Any],
        call: str,
        chosen: Bool[np.ndarray, "size"],
        rows: list[Any],
        last: Bool[np.ndarray, "size"] | None = None,
    ) -> None:
        """Put the observations of the chosen environments of a vector into `rows`."""
        for j in np.flatnonzero(chosen):
            i = v * self.size + int(j)
            own = {MASK: info[MASK][j]} if MASK in info and info[f"_{MASK}"][j] else {}
            if own:
                self.idle[i] = int(np.argmax(own[MASK]))
            if i >= self.count or i in self.failures:
                continue
            try:
                rows[i] = self.sight.read(seen[j], own, call, last is not None and bool(last[j]))
            except EnvironmentStoppedError as failure:
                self.failures[i] = str(failure)

    def _try(self, v: int, call: Callable[[], Any]) -> Any:
        """Returns the result of the call, or None if the vector has failed, now or before."""
        every = range(self.count)[self._of(v)]
        if all(i in self.failures for i in every):
            return None
        found, why = attempt(self.timeout, call)
        if why:
            self.failures.update({i: why for i in every if i not in self.failures})
        return found
