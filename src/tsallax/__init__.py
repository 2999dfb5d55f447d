"""tsallax: value-based deep reinforcement learning with Tsallis entropy, in JAX."""

from tsallax._version import __version__
from tsallax.policies import tsallis_policy, tsallis_value

__all__ = ["__version__", "tsallis_policy", "tsallis_value"]
