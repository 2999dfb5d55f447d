"""A policy from action values to probabilities, for any q, with jax's transformations.

python examples/policy.py
"""

import jax
import jax.numpy as jnp

from tsallax.policies import tsallis_entropy, tsallis_policy, tsallis_value

Q = jnp.array([1.0, 0.95, 0.9, 0.5])
INDICES = jnp.array([0.5, 1.0, 1.5, 2.0, 3.0, jnp.inf])
ALPHA = 0.2


def policies() -> jax.Array:
    """One row per q, as the index broadcasts like any other number."""
    return tsallis_policy(Q, INDICES, ALPHA)


def gradient(q: float) -> jax.Array:
    """The gradient of the regularised value `max <pi,Q> + alpha H_q(pi)`: the policy itself."""
    return jax.grad(tsallis_value)(Q, q, ALPHA)


def alpha_for(wanted: float, q: float = 2.0) -> float:
    """The alpha at which the policy has the wanted entropy, by bisection."""

    def entropy(alpha):
        return tsallis_entropy(tsallis_policy(Q, q, alpha), q, 0.5)

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        enough = entropy(middle) > wanted
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    low, high = jax.lax.fori_loop(0, 40, halve, (jnp.float32(1e-3), jnp.float32(10)))
    return float((low + high) / 2)


def main() -> None:
    for q, pi in zip(INDICES, policies(), strict=True):
        shown = " ".join(f"{p:.3f}" for p in pi)
        print(f"q = {q:<4.1f} {shown}   {int((pi > 0).sum())} actions left")
    print("gradient of the value at q = 2:", " ".join(f"{p:.3f}" for p in gradient(2.0)))
    print(f"an entropy of 0.25 at q = 2 needs alpha = {alpha_for(0.25):.3f}")


if __name__ == "__main__":
    main()
