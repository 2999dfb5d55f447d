"""What the host loop compiles, over the learners of all cells.

They are held *together*, with a leading axis, for vmapped programs, or *apart*, for the programs of
one cell, called for each in turn: faster where `vmap` gains nothing (docs/performance.md).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Key

from tsallax.agents import Agent, Learner
from tsallax.training.loop import epsilon_at, look_at_policy
from tsallax.types import HParams

Held: TypeAlias = Any  # a tree of every cell, as its programs hold it: theirs alone to look into
Cells: TypeAlias = jax.Array | np.ndarray


class Programs(NamedTuple):
    """Arrays lead with the cells, but for what is held; `step` is shared."""

    init: Callable[[], Held]
    act: Callable[..., Int[Cells, "cells"]]  # (held, observation, step)
    update: Callable[..., tuple[Held, Float[Cells, "cells"]]]  # (held, batch, step); uses held up
    look: Callable[..., dict[str, Float[Cells, "cells"]]]  # (held, seen)
    copy: Callable[[Held], Held]  # the target
    policy: Callable[..., tuple[Float[Cells, "cells A"], Float[Cells, "cells A"]]]  # (params, obs.)
    stack: Callable[[Held], Any]  # with a leading axis, perhaps in the same buffers
    unstack: Callable[[Any], Held]  # in buffers of its own
    take: Callable[[Held, int], Any]  # a cell's own, on the host
    put: Callable[[Held, int, Any], Held]


class One(NamedTuple):
    """The functions of one cell."""

    act: Callable[..., Int[jax.Array, ""]]
    update: Callable[..., tuple[Learner, Float[jax.Array, ""]]]
    look: Callable[..., dict[str, Float[jax.Array, ""]]]


def make_programs(agent: Agent, hp: HParams, seeds: list[int], apart: bool) -> Programs:
    keys = jax.vmap(lambda key: jax.random.split(key, 3))(
        jnp.stack([jax.random.key(seed) for seed in seeds])
    )
    return (_apart if apart else _together)(agent, _one(agent), hp, keys)


def _one(agent: Agent) -> One:
    def act(params, observation, hp, key, step):
        k_act = jax.random.fold_in(key, step)
        return agent.act(params, observation, epsilon_at(step, hp), hp, k_act)

    def update(learner, batch, hp, key, step):
        return agent.update(learner, batch, hp, jax.random.fold_in(key, step))

    return One(act, update, partial(look_at_policy, agent))


def _own(tree: Any) -> Any:
    """In buffers that no two leaves share: all are donated."""
    return jax.tree.map(jnp.copy, tree)


def _together(agent: Agent, one: One, hp: HParams, keys: Key[jax.Array, "cells 3"]) -> Programs:
    @jax.jit
    def act(params, observation, step):
        return jax.vmap(one.act, (0, 0, 0, 0, None))(params, observation, hp, keys[:, 1], step)

    @partial(jax.jit, donate_argnums=0)
    def update(held, batch, step):
        return jax.vmap(one.update, (0, 0, 0, 0, None))(held, batch, hp, keys[:, 2], step)

    @jax.jit
    def look(held, seen):
        return jax.vmap(one.look)(held, seen, hp)

    policy = jax.jit(jax.vmap(agent.policy))
    return Programs(
        init=lambda: _own(jax.jit(jax.vmap(agent.init))(keys[:, 0])),
        act=lambda held, observation, step: act(held.params, observation, step),
        update=update,
        look=look,
        copy=lambda held: _own(jax.vmap(agent.copy_target)(held)),
        policy=lambda params, observation: policy(params, observation, hp),
        stack=lambda held: held,
        unstack=lambda tree: jax.tree.map(jnp.array, tree),
        take=lambda held, cell: jax.tree.map(lambda x: np.array(x[cell]), held),
        put=lambda held, cell, own: jax.tree.map(lambda x, y: x.at[cell].set(y), held, own),
    )


def _apart(agent: Agent, one: One, hp: HParams, keys: Key[jax.Array, "cells 3"]) -> Programs:
    """A tuple is held. Numbers and keys are arguments, so that all cells have one program."""
    init, hps = jax.jit(agent.init), _rows(hp)
    act = _in_turn(jax.jit(one.act), hps, _rows(keys[:, 1]))
    step_up = _in_turn(jax.jit(one.update, donate_argnums=0), hps, _rows(keys[:, 2]))
    look, policy = (_in_turn(jax.jit(function), hps) for function in (one.look, agent.policy))

    def update(held, batch, step):
        held, losses = zip(*step_up(held, batch, step), strict=True)
        return held, _gather(losses)

    def put(held, cell, own):
        return *held[:cell], jax.tree.map(jnp.array, own), *held[cell + 1 :]

    return Programs(
        init=lambda: tuple(_own(init(key)) for key in keys[:, 0]),
        act=lambda held, observation, step: _gather(
            act([learner.params for learner in held], observation, step)
        ),
        update=update,
        look=lambda held, seen: _gather(look(held, seen)),
        copy=lambda held: tuple(_own(agent.copy_target(learner)) for learner in held),
        policy=lambda params, observation: _gather(policy(params, observation)),
        stack=lambda held: _stack(*held),
        unstack=lambda tree: tuple(jax.tree.map(jnp.array, own) for own in _rows(tree)),
        take=lambda held, cell: jax.tree.map(np.array, held[cell]),
        put=put,
    )


def _in_turn(function: Callable[..., Any], *own: Sequence[Any]) -> Callable[..., list[Any]]:
    """Of each cell: (what is held, its row of `data`, its `own`, what is shared)."""
    mine = list(zip(*own, strict=True))

    def call(held, data, *shared):
        rows = zip(held, _rows(data), mine, strict=True)
        return [function(tree, row, *numbers, *shared) for tree, row, numbers in rows]

    return call


def _rows(tree: Any) -> list[Any]:
    """The trees of which it is the stack."""
    count = len(jax.tree.leaves(tree)[0])
    return [jax.tree.map(lambda x, at=i: x[at], tree) for i in range(count)]


@jax.jit
def _stack(*rows: Any) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *rows)


def _gather(rows: Sequence[Any]) -> Any:
    """Their stack on the host. All have been dispatched before the first is waited for."""
    return jax.tree.map(lambda *x: np.stack([np.asarray(one) for one in x]), *rows)
