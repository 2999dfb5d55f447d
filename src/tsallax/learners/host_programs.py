"""The compiled programs of the host learner, for the agents of all cells.

The agents' states are held *together*, with a leading axis, for vmapped programs, or *apart*, for
the programs of one cell, called for each in turn: faster where `vmap` gains nothing
(docs/performance.md). Numbers and keys are arguments, so that runs of one shape share programs.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key, Shaped

from tsallax.agents import Agent, AgentState
from tsallax.agents.actor_critic import ActorAgent
from tsallax.learners import AnyAgent, epsilon_at, policy_metrics
from tsallax.learners.device import keys_of, own_buffers
from tsallax.replay.priorities import importance_at, importance_weights, priority_of
from tsallax.types import HParams

Held: TypeAlias = Any  # the state of all cells, opaque outside the programs
Cells: TypeAlias = jax.Array | np.ndarray


class Programs(NamedTuple):
    """The leading axis of all arrays except `Held` is the cells; `step` is shared."""

    init: Callable[[], Held]
    act: Callable[..., Shaped[Cells, "cells ..."]]  # (held, observation, step)
    update: Callable[..., tuple[Held, Float[Cells, "cells"]]]  # (held, batch, step); donates held
    # (held, (batch, priorities, steps so far), step): also returns the new priorities
    weighted_update: Callable[..., tuple[Held, Float[Cells, "cells"], Float[Cells, "cells batch"]]]
    metrics: Callable[..., dict[str, Float[Cells, "cells"]]]  # (held, observations)
    copy_target: Callable[[Held], Held]
    policy: Callable[..., tuple[Cells, Cells]]  # (params, observations): Q and pi (cells, batch, A)
    choose: Callable[..., Float[Cells, "cells batch D"]]  # (params, observations, uniform, greedy)
    stack: Callable[[Held], Any]  # adds a leading axis, perhaps without a copy
    unstack: Callable[[Any], Held]  # always a copy
    take: Callable[[Held, int], Any]  # the state of one cell, on the host
    put: Callable[[Held, int, Any], Held]


class Functions(NamedTuple):
    """The compiled functions of one cell, or of all of them."""

    init: Callable[..., AgentState]
    act: Callable[..., Any]
    update: Callable[..., Any]
    weighted_update: Callable[..., Any]
    metrics: Callable[..., Any]
    policy: Callable[..., Any]
    choose: Callable[..., Any]


def make_programs(agent: AnyAgent, hp: HParams, seeds: list[int], apart: bool) -> Programs:
    keys = jax.vmap(lambda key: jax.random.split(key, 3))(keys_of(seeds))
    return (_apart if apart else _together)(agent, hp, keys)


@lru_cache(maxsize=32)
def _functions(agent: AnyAgent, apart: bool) -> Functions:
    def act(params, observation, hp, key, step):
        k_act = jax.random.fold_in(key, step)
        return agent.act(params, observation, epsilon_at(step, hp), hp, k_act)

    def update(state, batch, hp, key, step):
        return agent.update(state, batch, hp, jax.random.fold_in(key, step))

    def weighted_update(state, drawn, hp, key, step):
        batch, leaves, now = drawn
        weights = importance_weights(leaves, importance_at(now, hp))
        key = jax.random.fold_in(key, step)
        assert isinstance(agent, Agent)
        state, loss, errors = agent.weighted_update(state, batch, hp, key, weights)
        return state, loss, priority_of(errors, hp)

    def over(function, axes: Any = 0):
        return function if apart else jax.vmap(function, axes)

    def choose(params, given, hp, greedy):
        """Continuous actions from pairs of an observation and its uniform numbers."""
        assert isinstance(agent, ActorAgent)
        by = agent.choose
        one = lambda params, given, hp: by(params, given[0], hp, given[1], greedy)  # noqa: E731
        return over(jax.vmap(one, (None, 0, None)))(params, given, hp)

    own_but_step = (0, 0, 0, 0, None)

    return Functions(
        init=jax.jit(over(agent.init)),
        act=jax.jit(over(act, own_but_step)),
        update=jax.jit(over(update, own_but_step), donate_argnums=0),
        weighted_update=jax.jit(over(weighted_update, own_but_step), donate_argnums=0),
        metrics=jax.jit(over(partial(policy_metrics, agent))),
        policy=jax.jit(over(jax.vmap(agent.policy, (None, 0, None)))),
        choose=jax.jit(choose, static_argnums=3),
    )


def _together(agent: AnyAgent, hp: HParams, keys: Key[jax.Array, "cells 3"]) -> Programs:
    all_cells = _functions(agent, apart=False)
    copy = jax.vmap(agent.copy_target)
    return Programs(
        init=lambda: own_buffers(all_cells.init(keys[:, 0])),
        act=lambda held, seen, step: all_cells.act(held.params, seen, hp, keys[:, 1], step),
        update=lambda held, batch, step: all_cells.update(held, batch, hp, keys[:, 2], step),
        weighted_update=lambda held, drawn, step: all_cells.weighted_update(
            held, drawn, hp, keys[:, 2], step
        ),
        metrics=lambda held, seen: all_cells.metrics(held, seen, hp),
        copy_target=lambda held: own_buffers(copy(held)),
        policy=lambda params, seen: all_cells.policy(params, seen, hp),
        choose=lambda params, seen, draws, greedy: all_cells.choose(
            params, (seen, draws), hp, greedy
        ),
        stack=lambda held: held,
        unstack=lambda tree: jax.tree.map(jnp.array, tree),
        take=lambda held, cell: jax.tree.map(lambda x: np.array(x[cell]), held),
        put=lambda held, cell, own: jax.tree.map(lambda x, y: x.at[cell].set(y), held, own),
    )


def _apart(agent: AnyAgent, hp: HParams, keys: Key[jax.Array, "cells 3"]) -> Programs:
    """The programs of one cell, called for each in turn; `Held` is a tuple of states."""
    one, hps = _functions(agent, apart=True), _rows(hp)
    act = _in_turn(one.act, hps, _rows(keys[:, 1]))
    step_up = _in_turn(one.update, hps, _rows(keys[:, 2]))
    step_up_weighted = _in_turn(one.weighted_update, hps, _rows(keys[:, 2]))
    metrics, policy, choose = (_in_turn(f, hps) for f in (one.metrics, one.policy, one.choose))

    def update(held, batch, step):
        held, losses = zip(*step_up(held, batch, step), strict=True)
        return held, _gather(losses)

    def weighted_update(held, drawn, step):
        held, losses, leaves = zip(*step_up_weighted(held, drawn, step), strict=True)
        return held, _gather(losses), _gather(leaves)

    def put(held, cell, own):
        return *held[:cell], jax.tree.map(jnp.array, own), *held[cell + 1 :]

    return Programs(
        init=lambda: tuple(own_buffers(one.init(key)) for key in keys[:, 0]),
        act=lambda held, seen, step: _gather(act([own.params for own in held], seen, step)),
        update=update,
        weighted_update=weighted_update,
        metrics=lambda held, seen: _gather(metrics(held, seen)),
        copy_target=lambda held: tuple(own_buffers(agent.copy_target(own)) for own in held),
        policy=lambda params, seen: _gather(policy(params, seen)),
        choose=lambda params, seen, draws, greedy: _gather(choose(params, (seen, draws), greedy)),
        stack=lambda held: _stack(*held),
        unstack=lambda tree: tuple(jax.tree.map(jnp.array, own) for own in _rows(tree)),
        take=lambda held, cell: jax.tree.map(np.array, held[cell]),
        put=put,
    )


def _in_turn(function: Callable[..., Any], *own: Sequence[Any]) -> Callable[..., list[Any]]:
    """Calls `function` for each cell with (its state, its row of `data`, its `own`, `shared`)."""
    mine = list(zip(*own, strict=True))

    def call(held, data, *shared):
        rows = zip(held, _rows(data), mine, strict=True)
        return [function(tree, row, *numbers, *shared) for tree, row, numbers in rows]

    return call


def _rows(tree: Any) -> list[Any]:
    """The trees of which `tree` is the stack."""
    count = len(jax.tree.leaves(tree)[0])
    return [jax.tree.map(lambda x, at=i: x[at], tree) for i in range(count)]


@jax.jit
def _stack(*rows: Any) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *rows)


def _gather(rows: Sequence[Any]) -> Any:
    """The stack of `rows` on the host. All are dispatched before the first is waited for."""
    return jax.tree.map(lambda *x: np.stack([np.asarray(one) for one in x]), *rows)
