"""What an update costs, counted in the compiled program: a guard without a clock.

A forward pass of a batch takes `2 * batch * weights` operations; an update needs the online network
forwards and backwards, backwards without the inputs of its first layer. With the target network's
values known that is all there is; everything else together may add a little.
"""

import re
from itertools import pairwise

import jax
import jax.numpy as jnp
import pytest

from support.configs import paper
from support.hlo import AS_USERS
from tsallax import envs
from tsallax.training.build import make_run
from tsallax.types import Transition

GYM = list(pairwise((4, 512, 512, 2)))
CONV, DENSE = 8 * 8 * 9 * 4 * 16, [(1024, 128), (128, 6)]  # multiplications of one image


def products(env: str, batch: int) -> float:
    """Operations of the matrix products, by hand."""
    if env == "CartPole-v1":
        weights = sum(i * o for i, o in GYM)
        return 2 * batch * (3 * weights - 4 * 512)
    return 2 * batch * (2 * CONV + 3 * sum(i * o for i, o in DENSE))


def compiled(env: str, algo: str):
    config = paper(env, algo=algo)
    run = make_run(config)
    state = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype),
        run.learner.shapes().agent,
    )
    hp = jax.tree.map(lambda x: x[0], run.hp)
    n, shape = config.batch, run.observation.shape
    actions = envs.make(env).num_actions
    batch = jax.eval_shape(lambda: transitions(n, shape, run.observation.dtype))
    ends = tuple(jax.ShapeDtypeStruct((n, actions), jnp.float32) for _ in range(2))
    program = jax.jit(run.agent.update, donate_argnums=0)
    return program.lower(state, batch, hp, jax.random.key(0), ends).compile(AS_USERS)


def transitions(n, shape, dtype):
    zeros = jnp.zeros(n)
    seen = jnp.zeros((n, *shape), dtype)
    return Transition(seen, zeros.astype(jnp.int32), zeros, zeros > 0, seen)


@pytest.mark.parametrize(
    ("env", "more", "megabytes"), [("CartPole-v1", 1.03, 23), ("MinAtar/Breakout", 1.09, 12.5)]
)
@pytest.mark.parametrize("algo", ["tal", "dqn"])
def test_an_update_is_its_matrix_products_and_little_else(env, more, megabytes, algo):
    cost = compiled(env, algo).cost_analysis() or {}
    needed = products(env, paper(env).batch)
    assert needed <= cost["flops"] < more * needed
    assert cost["bytes accessed"] < megabytes * 1e6


def test_the_largest_gradient_needs_no_transpose():
    """A product with a transposed left factor, the gradient of the weights, is a slow one."""
    text = compiled("CartPole-v1", "tal").as_text() or ""
    products = re.findall(r"= f32\[512,512\]\S* dot\(.*lhs_contracting_dims=\{(\d)\}", text)
    assert products == ["1"]
