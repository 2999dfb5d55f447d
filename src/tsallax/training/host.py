"""Algorithm 1 around environments that live on the host.

Acting and updating are the compiled loop's own functions; stepping and the replay are NumPy's. A
random draw depends on the seed and the step alone.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tsallax.agents import Agent
from tsallax.envs.host import HostEnvs, Moves
from tsallax.networks import Params
from tsallax.replay import HostRing
from tsallax.replay.host import tables
from tsallax.training import freeze
from tsallax.training.compiled import cycles
from tsallax.training.config import Config
from tsallax.training.evaluate import CAP
from tsallax.training.host_programs import Cells, make_programs
from tsallax.training.host_state import Episodes, HostState
from tsallax.training.loop import Metrics, epsilon_at
from tsallax.training.model import draw_actions
from tsallax.training.tensors import Spec
from tsallax.types import HParams

Tick = Callable[[int], None]  # told the step now and then, between periods too


def draws(seeds: list[int], step: int) -> list[np.random.Generator]:
    """For the batch of this step: a function of seed and step, so that nothing has to be saved."""
    return [np.random.default_rng([seed, step]) for seed in seeds]


class HostLoop:
    """The loop of one run: `start`, `train`, `evaluate`.

    Args:
        make_envs: makes so many environments.
        frame: what one of them gives.
        agent: the run's.
        hp: of each cell.
        seeds: of each cell.
        config: resolved.
    """

    def __init__(
        self,
        make_envs: Callable[[int], HostEnvs],
        frame: jax.ShapeDtypeStruct,
        agent: Agent,
        hp: HParams,
        seeds: list[int],
        config: Config,
    ):
        self.make_envs, self.frame, self.agent, self.hp = make_envs, frame, agent, hp
        self.seeds, self.config = seeds, config
        # A grouped convolution, which `vmap` makes, is slow on a CPU.
        grouped = config.network == "nature" and jax.default_backend() == "cpu"
        self.programs = make_programs(agent, hp, seeds, apart=len(seeds) == 1 or grouped)

    @cached_property
    def envs(self) -> HostEnvs:
        """Made when they are needed, closed when training ends."""
        return self.make_envs(len(self.seeds))

    def start(self) -> HostState:
        state = self._blank()
        state.replay.begin(self.envs.reset(self.seeds))
        self._stop_failed(state)
        return state

    def _blank(self) -> HostState:
        cells = len(self.seeds)
        ring, zeros = self._ring(cells, self.config.buffer), np.zeros(cells, int)
        held = self.programs.init()
        return HostState(zeros, self.programs, held, ring, Episodes(cells), zeros - 1)

    def specs(self, about: Mapping[str, Any]) -> dict[str, Spec]:
        """What a frozen state holds that said this `about` itself; all there can be, if nothing."""
        spec, most = self.frame, self.config.buffer + max(self.config.stack, 1)
        used = about.get("used", most)
        if not isinstance(used, int) or not 0 < used <= most:
            raise ValueError(f"the replay has {most:,} slots, not {used!r}")
        cells = len(self.seeds)
        replay = tables(cells, used, spec.shape, spec.dtype)
        numbers = {"step": Spec((cells,), np.int64), "diverged": Spec((cells,), np.int64)}
        learner = jax.eval_shape(lambda: self.programs.stack(self.programs.init()))
        return {
            **numbers,
            **{f"replay.{name}": Spec(*shape) for name, shape in replay.items()},
            **freeze.specs({"learner": learner}),
        }

    def thaw(self, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> HostState:
        """A saved state, in new episodes: an environment's own state cannot be saved.

        The seeds of the new episodes are a function of seed and step.
        """
        state = self._blank()
        state.thaw(arrays, about)
        step = int(state.step[0])
        fresh = [int(draw.integers(2**31)) for draw in draws(self.seeds, step)]
        self.envs.failures.update(state.stopped)
        state.replay.restart(state.alive, self.envs.reset(fresh))
        self._stop_failed(state)
        return state

    def train(
        self, state: HostState, tick: Tick | None = None
    ) -> Iterator[tuple[HostState, Metrics]]:
        """The state and metrics after each target period; the state passed in is changed."""
        config = self.config
        try:
            for shape in cycles(config, int(state.step[0])):
                losses = []
                length = (shape["idle"] + shape["updates"]) * config.train_period
                for step in range(int(state.step[0]), int(state.step[0]) + length):
                    self._environment_step(state, step)
                    if (step + 1) % config.train_period == 0 and step + 1 > config.warmup:
                        for i in range(config.updates):
                            losses.append(self._update(state, step, i))
                    if tick:
                        tick(step + 1)
                yield state, self._close_period(state, losses, bool(shape["copy"]))
        finally:
            self.envs.close()
            del self.envs

    def evaluate(
        self, params: Params, episodes: int, greedy: bool, seed: int = 0
    ) -> Float[np.ndarray, "cells episodes"]:
        """Raw returns of the same `episodes` seeds for every cell, in environments of their own."""
        envs = self.make_envs(len(self.seeds))
        try:
            return self._play(envs, params, episodes, greedy, seed)
        finally:
            envs.close()

    def _play(
        self, envs: HostEnvs, params: Params, episodes: int, greedy: bool, seed: int
    ) -> Float[np.ndarray, "cells episodes"]:
        held = self.programs.unstack(params)
        found = []
        for episode in range(episodes):
            ring = self._ring(len(self.seeds), 1)
            ring.begin(envs.reset([seed + episode] * len(self.seeds)))
            total, open_ = np.zeros(len(self.seeds)), np.ones(len(self.seeds), bool)
            random = np.random.default_rng([seed, episode])
            for _ in range(envs.time_limit or CAP):
                Q, pi = map(np.asarray, self.programs.policy(held, ring.current()))
                draw = random.random()  # shared: a cell's episode does not depend on the others
                action = Q.argmax(-1) if greedy else draw_actions(pi, draw)
                moves = envs.step(action)
                total += np.where(open_, moves.reward, 0)
                open_ &= ~moves.over
                open_[list(envs.failures)] = False
                ring.follow(moves.over, moves.observation)
                if not open_.any():
                    break
            total[list(envs.failures)] = np.nan
            found.append(total)
        return np.stack(found, -1)

    def _ring(self, cells: int, capacity: int) -> HostRing:
        spec = self.frame
        return HostRing(cells, capacity, spec.shape, spec.dtype, self.config.stack)

    def _environment_step(self, state: HostState, step: int) -> None:
        observation = state.replay.current()
        action = np.asarray(self.programs.act(state.held, observation, step))
        moves = self.envs.step(action)
        state.step += 1
        self._stop_failed(state)
        reward = np.clip(moves.reward, -1, 1) if self.config.clip_rewards else moves.reward
        _add(state.replay, state.alive, action, reward, moves)
        state.episodes.add(moves.reward, moves.over & state.alive)

    def _update(self, state: HostState, step: int, i: int) -> Float[Cells, "cells"]:
        """The i-th update after this step."""
        draw = step + i * self.config.steps  # the same for no two updates
        batch = state.replay.sample(draws(self.seeds, draw), self.config.batch)
        state.held, loss = self.programs.update(state.held, batch, draw)
        bad = ~np.isfinite(loss) & (state.diverged < 0)
        state.diverged = np.where(bad, step + 1, state.diverged)
        return loss

    def _close_period(self, state: HostState, losses: list[Any], copy: bool) -> Metrics:
        step, episodes = int(state.step[0]), state.episodes
        for cell, kept in state.kept.items():  # a stopped cell's column went on with old data
            state.held = self.programs.put(state.held, cell, kept)
        seen = state.replay.sample(draws(self.seeds, step), self.config.batch).observation
        cells = len(self.seeds)
        numbers: dict[str, Any] = {
            "episode_return": episodes.mean(episodes.returns),
            "episode_length": episodes.mean(episodes.lengths),
            "loss": np.mean(losses, 0) if losses else np.full(cells, np.nan),
            "epsilon": np.asarray(jax.vmap(epsilon_at, (None, 0))(jnp.asarray(step), self.hp)),
            **{name: np.asarray(x) for name, x in self.programs.look(state.held, seen).items()},
        }
        numbers = {name: np.where(state.alive, x, np.nan) for name, x in numbers.items()}
        numbers |= {"step": state.step.copy(), "episodes": episodes.ended}
        metrics = Metrics(diverged=state.diverged, **numbers)  # type: ignore[arg-type]
        episodes.clear()
        if copy:
            state.held = self.programs.copy(state.held)
        return metrics

    def _stop_failed(self, state: HostState) -> None:
        """Keep what a cell had learned when its environment failed."""
        for cell, message in self.envs.failures.items():
            if cell not in state.stopped:
                state.stopped[cell] = f"stopped at step {int(state.step[0]):,}: {message}"
                state.kept[cell] = self.programs.take(state.held, cell)
        if not state.alive.any():
            raise ValueError(f"every environment failed; the first {state.stopped[0]}")


def _add(ring: HostRing, cells, action, reward, moves: Moves) -> None:
    cut = moves.truncated & ~moves.terminated
    ring.add(
        cells, action, reward, moves.terminated, cut, moves.over, moves.final, moves.observation
    )
