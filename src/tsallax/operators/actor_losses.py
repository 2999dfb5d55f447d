"""The losses of an actor with discrete actions, for one state: logits z against action values Q.

The actor's policy is that of its logits at alpha = 1, so `Q/alpha` are the logits of the optimal
policy `pi*` for every entropy. docs/actor-critic.md derives both losses.
"""

import jax
from jaxtyping import Array, Float

from tsallax.operators.targets import expect, weighted_entropy
from tsallax.types import HParams, Policy


def policy_of_logits(z: Float[Array, "A"], hp: HParams, policy: Policy) -> Float[Array, "A"]:
    """`argmax_pi <pi,z> + H_q(pi)`."""
    return policy(z, hp._replace(alpha=1.0))


def fenchel_young_loss(
    z: Float[Array, "A"], Q: Float[Array, "A"], hp: HParams, policy: Policy
) -> Float[Array, ""]:
    """`max_pi (<pi,z> + H_q(pi)) - <pi*,z> - H_q(pi*)`, whose gradient in z is `pi - pi*`.

    By the envelope theorem pi is constant in the derivative of the maximum.
    """
    best, unit = policy(Q, hp), hp._replace(alpha=1.0)
    pi = jax.lax.stop_gradient(policy_of_logits(z, hp, policy))
    return expect(pi - best, z) + weighted_entropy(pi, unit) - weighted_entropy(best, unit)


def objective_loss(
    z: Float[Array, "A"], Q: Float[Array, "A"], hp: HParams, policy: Policy
) -> Float[Array, ""]:
    """`-<pi,Q> - alpha H_q(pi)`, SAC's. Its gradient is 0 for an action of probability 0."""
    pi = policy_of_logits(z, hp, policy)
    return -expect(pi, Q) - weighted_entropy(pi, hp)


ACTOR_LOSSES = {"fenchel-young": fenchel_young_loss, "objective": objective_loss}
