"""Algorithm 1 for environments on the host.

Acting and updating are the agent's own functions; stepping and the replay are in NumPy. A random
draw depends on the seed and the step alone.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from tsallax.agents import AgentState
from tsallax.agents.actor_critic import ActorAgent
from tsallax.envs.host import HostEnvs
from tsallax.learners import (
    ActorMetrics,
    AnyAgent,
    Arrays,
    Metrics,
    Notes,
    Period,
    Schedule,
    Tick,
    epsilon_at,
    metrics_of,
    periods,
    with_weights,
)
from tsallax.learners.host import Episodes, generators, word
from tsallax.learners.host_programs import Cells, Held, Programs, make_programs
from tsallax.learners.rollout import by_policy, evaluate_host, side_by_side
from tsallax.networks import Params
from tsallax.replay.host import HostRing, tables
from tsallax.storage import reader, tensors
from tsallax.storage.tensors import Spec
from tsallax.types import HParams, allowed_at, bare


@dataclass
class State:
    """The complete state of a run, except for the internal states of the environments."""

    step: Int[np.ndarray, "cells"]
    programs: Programs
    held: Held  # the agents' states, as the programs hold them
    replay: HostRing
    episodes: Episodes
    diverged: Int[np.ndarray, "cells"]
    failures: dict[int, str] = field(default_factory=dict)  # cells whose environment failed
    kept: dict[int, AgentState] = field(default_factory=dict)  # their states before the failure

    @property
    def agent(self) -> AgentState:
        """The agents of all cells, with a leading axis; donated to the next update."""
        return self.programs.stack(self.held)

    @property
    def alive(self) -> Bool[np.ndarray, "cells"]:
        alive = np.ones(len(self.step), bool)
        alive[list(self.failures)] = False
        return alive


class ReplayOnHost:
    """The learner of environments that are Python objects.

    Args:
        make_envs: makes the given number of environments.
        frame: the spec of a frame of one environment, perhaps `Masked`.
        agent: the agent.
        hp: the numbers of each cell.
        seeds: the seed of each cell.
        schedule: when the agent acts, updates and copies its target network.
        buffer: replay capacity of each cell, in transitions.
        stack: frames per observation; 0 for a single frame without a stack axis.
        apart: run the cells' programs one after the other instead of vmapped.
    """

    def __init__(
        self,
        make_envs: Callable[[int], HostEnvs],
        frame: Any,
        agent: AnyAgent,
        hp: HParams,
        seeds: list[int],
        schedule: Schedule,
        buffer: int,
        stack: int = 0,
        apart: bool = False,
    ):
        self.make_envs, self.frame, self.hp, self.seeds = make_envs, bare(frame), hp, seeds
        self.agent = agent
        self.kept: dict[str, Any] = {
            "dimensions": agent.dimensions if isinstance(agent, ActorAgent) else None,
            "masks": 0 if allowed_at(frame) is None else allowed_at(frame).shape[0],
            "prioritised": schedule.prioritised,
        }
        self.schedule, self.buffer, self.stack = schedule, buffer, stack
        self.programs = make_programs(agent, hp, seeds, apart=apart or len(seeds) == 1)

    @cached_property
    def envs(self) -> HostEnvs:
        """The environments, made when first needed and closed when training ends."""
        return self.make_envs(len(self.seeds))

    def start(self, params: Params | None = None) -> State:
        state = self._blank()
        if params is not None:
            state.held = self.programs.unstack(with_weights(state.agent, params))
        state.replay.begin(self.envs.reset(self.seeds))
        self._note_failures(state)
        return state

    def _blank(self) -> State:
        cells = len(self.seeds)
        frame = self.frame.shape, self.frame.dtype
        ring = HostRing(cells, self.buffer, *frame, self.stack, **self.kept)
        zeros = np.zeros(cells, int)
        return State(zeros, self.programs, self.programs.init(), ring, Episodes(cells), zeros - 1)

    def params(self) -> Params:
        return jax.eval_shape(lambda: self.programs.stack(self.programs.init())).params

    def save(self, state: State) -> tuple[Arrays, Notes]:
        own = {"step": state.step, "diverged": state.diverged}
        replay = {f"replay.{name}": x for name, x in state.replay.arrays().items()}
        failures = {str(cell): why for cell, why in state.failures.items()}
        arrays = {**own, **replay, **tensors.flatten({"agent": state.agent})}
        return arrays, {"used": state.replay.used, "stopped": failures}

    def layout(self, notes: Mapping[str, Any]) -> dict[str, Spec]:
        most = self.buffer + max(self.stack, 1)
        used = notes.get("used", most)
        if not isinstance(used, int) or not 0 < used <= most:
            raise ValueError(f"the replay has {most:,} slots, not {used!r}")
        cells = len(self.seeds)
        replay = tables(cells, used, self.frame.shape, self.frame.dtype, **self.kept)
        agent = jax.eval_shape(lambda: self.programs.stack(self.programs.init()))
        return {
            **{name: Spec((cells,), np.int64) for name in ("step", "diverged")},
            **{f"replay.{name}": Spec(*shape) for name, shape in replay.items()},
            **tensors.specs_of({"agent": agent}),
        }

    def restore(self, arrays: Mapping[str, np.ndarray], notes: Mapping[str, Any]) -> State:
        """A saved state, in new episodes: an environment's own state cannot be saved.

        The seeds of the new episodes are a function of seed and step.
        """
        state = self._blank()
        state.step, state.diverged = arrays["step"].copy(), arrays["diverged"].copy()
        agent = reader.unflatten({"agent": state.agent}, arrays)["agent"]
        state.held = self.programs.unstack(agent)
        start = "replay."
        state.replay.fill(
            {n.removeprefix(start): x for n, x in arrays.items() if n.startswith(start)}
        )
        state.failures = {int(cell): str(why) for cell, why in notes["stopped"].items()}
        state.kept = {cell: self.programs.take(state.held, cell) for cell in state.failures}
        fresh = [int(draw.integers(2**31)) for draw in generators(self.seeds, int(state.step[0]))]
        self.envs.failures.update(state.failures)
        state.replay.restart(state.alive, self.envs.reset(fresh))
        self._note_failures(state)
        return state

    def train(self, state: State, tick: Tick) -> Iterator[Period]:
        """Train to the end; the state passed in is changed in place."""
        schedule, period = self.schedule, self.schedule.train_period
        try:
            for shape in periods(schedule, int(state.step[0])):
                losses: list[Any] = []
                length = (shape.idle + shape.updates) * period
                for step in range(int(state.step[0]), int(state.step[0]) + length):
                    self._environment_step(state, step)
                    if (step + 1) % period == 0 and step + 1 > schedule.warmup:
                        losses += [self._update(state, step, i) for i in range(schedule.updates)]
                    tick(step + 1, state.episodes)
                metrics = self._close_period(state, losses, shape.copy)
                params = state.agent.params
                yield Period(int(state.step[0]), state, params, metrics, dict(state.failures))
        finally:
            self.envs.close()
            del self.envs

    def evaluate(
        self, params: Params, episodes: int, greedy: bool, seed: int = 0
    ) -> Float[np.ndarray, "cells episodes"]:
        """Evaluate in separate environments."""
        cells, held = len(self.seeds), self.programs.unstack(params)
        envs = self.make_envs(cells * side_by_side(cells, episodes))
        try:
            if self.kept["dimensions"] is None:
                act = by_policy(partial(self.programs.policy, held))
            else:
                act = partial(self.programs.choose, held)
            return evaluate_host(envs, act, cells, self.stack, episodes, greedy, seed)
        finally:
            envs.close()

    def _environment_step(self, state: State, step: int) -> None:
        observation = state.replay.current()
        action = np.asarray(self.programs.act(state.held, observation, step))
        moves = self.envs.step(action)
        state.step += 1
        self._note_failures(state)
        reward = np.clip(moves.reward, -1, 1) if self.schedule.clip_rewards else moves.reward
        state.replay.add(
            state.alive,
            action,
            reward,
            moves.terminated,
            moves.truncated & ~moves.terminated,
            moves.over,
            moves.final,
            moves.observation,
        )
        state.episodes.add(moves.reward, moves.over & state.alive)

    def _update(self, state: State, step: int, i: int) -> Float[Cells, "cells"]:
        """The i-th update after this step."""
        draw = step + i * self.schedule.steps  # different for each update
        random, replay, n = generators(self.seeds, draw), state.replay, self.schedule.n_step
        take = replay.take if n == 1 else partial(replay.segments, n=n)
        if replay.priorities is None:
            batch = take(replay.draw(random, self.schedule.batch))
            state.held, loss = self.programs.update(state.held, batch, word(draw))
        else:
            at, leaves = replay.draw_by_priority(random, self.schedule.batch)
            drawn = take(at), leaves, state.step
            update = self.programs.weighted_update
            state.held, loss, leaves = update(state.held, drawn, word(draw))
            replay.priorities.renew(at, np.asarray(leaves))
        bad = ~np.isfinite(loss) & (state.diverged < 0)
        state.diverged = np.where(bad, step + 1, state.diverged)
        return loss

    def _close_period(self, state: State, losses: list[Any], copy: bool) -> Metrics | ActorMetrics:
        step, episodes = int(state.step[0]), state.episodes
        for cell, kept in state.kept.items():  # failed cells were updated on old data
            state.held = self.programs.put(state.held, cell, kept)
        batch = state.replay.sample(generators(self.seeds, step), self.schedule.batch)
        probed = self.programs.metrics(state.held, batch.observation)
        ended = episodes.means(len(self.seeds))
        numbers: dict[str, Any] = {
            **ended,
            "loss": np.mean(losses, 0) if losses else np.full(len(self.seeds), np.nan),
            "epsilon": np.asarray(jax.vmap(epsilon_at, (None, 0))(jnp.asarray(step), self.hp)),
            **{name: np.asarray(x) for name, x in probed.items()},
        }
        numbers = {name: np.where(state.alive, x, np.nan) for name, x in numbers.items()}
        numbers |= {"step": state.step.copy(), "episodes": ended["episodes"]}
        metrics = metrics_of(self.agent)(diverged=state.diverged, **numbers)  # type: ignore[arg-type]
        episodes.clear()
        if copy:
            state.held = self.programs.copy_target(state.held)
        return metrics

    def _note_failures(self, state: State) -> None:
        """Keep the agent of each cell whose environment failed, as it was then."""
        for cell, message in self.envs.failures.items():
            if cell not in state.failures:
                state.failures[cell] = f"stopped at step {int(state.step[0]):,}: {message}"
                state.kept[cell] = self.programs.take(state.held, cell)
        if not state.alive.any():
            raise ValueError(f"every environment failed; the first {state.failures[0]}")
