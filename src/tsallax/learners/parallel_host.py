"""Many host environments at once, without a replay: Gymnasium's, or the Atari emulator's batch.

Acting on all environments is one call, and so is learning from a rollout. The environments wait
while the network learns: docs/parallel.md has the cost.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from tsallax.agents import Agent, AgentState
from tsallax.envs.host import HostEnvs
from tsallax.learners import (
    Arrays,
    Metrics,
    Notes,
    Period,
    Tick,
    epsilon_at,
    policy_metrics,
    with_weights,
)
from tsallax.learners.device import keys_of, over_cells
from tsallax.learners.host import Episodes, FrameStack, generators, in_cells
from tsallax.learners.parallel_update import Played, Rollouts, act, learn, plan, returns
from tsallax.learners.rollout import by_policy, evaluate_host, side_by_side
from tsallax.networks import Params
from tsallax.storage import reader, tensors
from tsallax.storage.tensors import Spec
from tsallax.types import HParams, stacked


@dataclass
class State:
    """The complete state of a run, except for the internal states of the environments."""

    step: Int[np.ndarray, "cells"]
    agent: AgentState
    diverged: Int[np.ndarray, "cells"]
    frames: FrameStack
    episodes: Episodes
    failures: dict[int, str] = field(default_factory=dict)  # cells with an environment that failed

    @property
    def alive(self) -> Bool[np.ndarray, "cells"]:
        return ~np.isin(np.arange(len(self.step)), list(self.failures))


class Programs(NamedTuple):
    """Compiled programs. The leading axis of every argument and result is the cells."""

    init: Callable[..., AgentState]
    act: Callable[..., tuple[jax.Array, jax.Array]]
    atoms: Callable[..., jax.Array]
    update: Callable[..., tuple[AgentState, jax.Array]]
    metrics: Callable[..., dict[str, jax.Array]]
    policy: Callable[..., tuple[jax.Array, jax.Array]]


@lru_cache(maxsize=32)
def make_programs(agent: Agent, shape: Rollouts, cells: int, apart: bool) -> Programs:
    """The programs for `cells` vmapped or, with `apart`, in sequence in the same program."""

    def act_cell(state, observation, step, hp, key):
        return act(agent, state, observation, step, hp, jax.random.fold_in(key, step))

    def update_cell(state, seen, Z_next, step, hp, key):
        k_draw, k_learn = jax.random.split(jax.random.fold_in(key, step))
        y = returns(agent, shape, state, seen, Z_next, hp, k_draw)
        return learn(agent, shape, state, seen, y, step, hp, k_learn)

    def compiled(function, **options):
        if apart and cells > 1:
            return jax.jit(lambda *x: jax.lax.map(lambda one: function(*one), x), **options)
        return jax.jit(over_cells(function, cells), **options)

    return Programs(
        init=compiled(agent.init),
        act=compiled(act_cell),
        atoms=compiled(lambda state, observation: agent.atoms(state.params, observation)),
        update=compiled(update_cell),
        metrics=compiled(partial(policy_metrics, agent)),
        policy=compiled(jax.vmap(agent.policy, (None, 0, None))),
    )


class ParallelOnHost:
    """The parallel learner of environments that are Python objects.

    Args:
        make_envs: makes the given number of environments.
        frame: the spec of a frame of one environment, perhaps `Masked`.
        agent: the agent.
        hp: the numbers of each cell.
        seeds: the seed of each cell.
        shape: the shape of the rollouts.
        stack: frames per observation; 0 for a single frame without a stack axis.
        apart: run the cells one after the other instead of vmapped.
    """

    def __init__(
        self,
        make_envs: Callable[[int], HostEnvs],
        frame: Any,
        agent: Agent,
        hp: HParams,
        seeds: list[int],
        shape: Rollouts,
        stack: int = 0,
        apart: bool = False,
    ):
        self.make_envs, self.frame, self.agent, self.hp = make_envs, frame, agent, hp
        self.seeds, self.shape, self.stack = seeds, shape, stack
        # Programs do not depend on the length of a run.
        self.programs = make_programs(agent, shape._replace(steps=0), len(seeds), apart)
        self.k_agent, self.k_act, self.k_learn = jnp.moveaxis(
            jax.vmap(_three)(keys_of(seeds)), 1, 0
        )

    @cached_property
    def envs(self) -> HostEnvs:
        """The environments, made when first needed and closed when training ends."""
        return self.make_envs(len(self.seeds) * self.shape.envs)

    def start(self, params: Params | None = None) -> State:
        zeros = np.zeros(len(self.seeds), int)
        agent = with_weights(self.programs.init(self.k_agent), params)
        return self._begin(zeros, agent, zeros - 1, {})

    def _begin(
        self,
        step: Int[np.ndarray, "cells"],
        agent: AgentState,
        diverged: Int[np.ndarray, "cells"],
        failures: dict[int, str],
    ) -> State:
        """A state at the start of new episodes, whose seeds are a function of seed and step."""
        for cell, why in failures.items():
            every = range(cell * self.shape.envs, (cell + 1) * self.shape.envs)
            self.envs.failures.update(dict.fromkeys(every, why))
        draws = generators(self.seeds, int(step[0]))
        fresh = np.concatenate([draw.integers(2**31, size=self.shape.envs) for draw in draws])
        frames = FrameStack(self.envs.reset(fresh.tolist()), self.stack)
        state = State(step, agent, diverged, frames, Episodes(len(fresh)), failures)
        self._note_failures(state)
        return state

    def params(self) -> Params:
        return jax.eval_shape(self.programs.init, self.k_agent).params

    def save(self, state: State) -> tuple[Arrays, Notes]:
        own = {"step": state.step, "diverged": state.diverged}
        failures = {str(cell): why for cell, why in state.failures.items()}
        return {**own, **tensors.flatten({"agent": state.agent})}, {"stopped": failures}

    def layout(self, notes: Mapping[str, Any]) -> dict[str, Spec]:
        own = {name: Spec((len(self.seeds),), np.int64) for name in ("step", "diverged")}
        agent = jax.eval_shape(self.programs.init, self.k_agent)
        return {**own, **tensors.specs_of({"agent": agent})}

    def restore(self, arrays: Mapping[str, np.ndarray], notes: Mapping[str, Any]) -> State:
        """A saved state, in new episodes: an environment's own state cannot be saved."""
        agent = jax.eval_shape(self.programs.init, self.k_agent)
        return self._begin(
            arrays["step"].copy(),
            reader.unflatten({"agent": agent}, arrays)["agent"],
            arrays["diverged"].copy(),
            {int(cell): str(why) for cell, why in notes["stopped"].items()},
        )

    def train(self, state: State, tick: Tick) -> Iterator[Period]:
        """Train to the end; the state passed in is changed in place."""
        try:
            for rollouts in plan(self.shape, int(state.step[0])):
                losses = [self._rollout(state, tick) for _ in range(rollouts)]
                metrics = self._close_period(state, np.mean(losses, 0))
                params = state.agent.params
                yield Period(int(state.step[0]), state, params, metrics, dict(state.failures))
        finally:
            self.envs.close()
            del self.envs

    def evaluate(
        self, params: Params, episodes: int, greedy: bool, seed: int = 0
    ) -> Float[np.ndarray, "cells episodes"]:
        """Evaluate in separate environments."""
        cells = len(self.seeds)
        envs = self.make_envs(cells * side_by_side(cells, episodes))
        try:
            policy = lambda seen: self.programs.policy(params, seen, self.hp)  # noqa: E731
            act = by_policy(policy)
            return evaluate_host(envs, act, cells, self.stack, episodes, greedy, seed)
        finally:
            envs.close()

    def _rollout(self, state: State, tick: Tick) -> Float[np.ndarray, "cells"]:
        """T steps of every environment and the updates on them; returns the loss."""
        played, Z_next = self._play(state, tick)
        agent, loss = self.programs.update(
            state.agent, played, Z_next, state.step, self.hp, self.k_learn
        )
        if state.failures:  # failed cells keep the agent that they had
            alive = jnp.asarray(state.alive)
            agent = jax.tree.map(lambda new, old: _rows(alive, new, old), agent, state.agent)
        state.agent, loss = agent, np.asarray(loss)
        bad = ~np.isfinite(loss) & (state.diverged < 0) & state.alive
        state.diverged = np.where(bad, state.step, state.diverged)
        return loss

    def _play(self, state: State, tick: Tick) -> tuple[Played, Float[np.ndarray, "..."]]:
        steps: list[Played] = []
        ends: dict[int, np.ndarray] = {}  # atoms at the final observations of truncated episodes
        for t in range(self.shape.length):
            observation = self._of_cells(state.frames.current)
            action, Z = self.programs.act(state.agent, observation, state.step, self.hp, self.k_act)
            action = np.asarray(action)
            moves = self.envs.step(action.reshape(-1))
            cut = moves.truncated & ~moves.terminated
            if cut.any():
                final = self._of_cells(state.frames.after(moves.final))
                ends[t] = np.asarray(self.programs.atoms(state.agent, final))
            state.step = state.step + self.shape.envs
            self._note_failures(state)
            state.frames.push(moves.observation, moves.over)
            state.episodes.add(moves.reward, moves.over & np.repeat(state.alive, self.shape.envs))
            given = map(self._of_cells, (moves.reward, moves.terminated, cut))
            each: list[Any] = [observation, np.asarray(Z), action, *given]
            steps.append(Played(*each))
            tick(int(state.step[0]), state.episodes)
        last = self.programs.atoms(state.agent, self._of_cells(state.frames.current))
        Z_next = np.stack([*(step.Z for step in steps[1:]), np.asarray(last)], 1)
        for t, Z in ends.items():
            cut = np.asarray(steps[t].truncated)
            Z_next[:, t][cut] = Z[cut]
        columns: list[Any] = [stacked(x, 1) for x in zip(*steps, strict=True)]
        return Played(*columns), Z_next

    def _of_cells(self, seen: Any) -> Any:
        return in_cells(seen, len(self.seeds))

    def _close_period(self, state: State, loss: Float[np.ndarray, "cells"]) -> Metrics:
        observation = self._of_cells(state.frames.current)
        probed = self.programs.metrics(state.agent, observation, self.hp)
        epsilon = jax.vmap(epsilon_at)(jnp.asarray(state.step), self.hp)
        ended = state.episodes.means(len(self.seeds))
        numbers = {**ended, "loss": loss, "epsilon": epsilon, **probed}
        numbers = {n: np.where(state.alive, np.asarray(x), np.nan) for n, x in numbers.items()}
        numbers |= {"step": state.step.copy(), "episodes": ended["episodes"]}
        state.episodes.clear()
        state.agent = state.agent._replace(target_params=state.agent.params)
        return Metrics(diverged=state.diverged, **numbers)  # type: ignore[arg-type]

    def _note_failures(self, state: State) -> None:
        for index, message in self.envs.failures.items():
            cell = index // self.shape.envs
            if cell not in state.failures:
                state.failures[cell] = f"stopped at step {int(state.step[0]):,}: {message}"
        if not state.alive.any():
            raise ValueError(f"every environment failed; the first {state.failures[0]}")


def _three(key: jax.Array) -> jax.Array:
    return jax.random.split(key, 3)


def _rows(
    chosen: Bool[jax.Array, "cells"], new: jax.Array, old: jax.Array
) -> Shaped[jax.Array, "cells ..."]:
    return jnp.where(chosen.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
