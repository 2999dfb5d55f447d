"""The machine's own rate: only the matrix products of an update.

They are a forward pass of the online network at s, of the target at s', and for TAL of the target
at s; the gradient of the weights in every layer, of the inputs in all but the first. MinAtar's
convolution is a product over patches. Acting is not counted.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
from turns import Turns, arguments
from works import CONV

work, options = arguments()
updates = work.target_period // work.train_period
turns = Turns(0, work.train_period, settle=work.target_period)
passes = 3 if options.algo == "tal" else 2
if work.planes:
    shapes = [(64 * work.batch, 9 * work.planes, CONV)]
    sizes = (64 * CONV, *work.hidden, work.actions)
else:
    shapes, sizes = [], (4, *work.hidden, work.actions)
shapes += [(work.batch, i, o) for i, o in pairwise(sizes)]
x = [jnp.full((rows, i), 0.1) for rows, i, _ in shapes]
w = [jnp.full((i, o), 0.1) for _, i, o in shapes]
g = [jnp.full((rows, o), 0.1) for rows, _, o in shapes]


@jax.jit
def program(x, w, g):
    def update(carry, _):
        # A number from the last round scales each factor, so that none is computed only once.
        out = []
        for n in range(passes):
            out += [((n + carry) * xi) @ wi for xi, wi in zip(x, w, strict=True)]
        out += [((1 + carry) * xi).T @ gi for xi, gi in zip(x, g, strict=True)]
        out += [((1 + carry) * gi) @ wi.T for gi, wi in zip(g[1:], w[1:], strict=True)]
        return carry + 1e-9 * sum(o[0, 0] for o in out), None

    return jax.lax.scan(update, jnp.ones(()), None, length=updates)[0]


while True:
    program(x, w, g).block_until_ready()
    turns.done(work.target_period)
