"""tsallax: value-based deep reinforcement learning with Tsallis entropy, in JAX."""

from tsallax._version import __version__

__all__ = ["__version__"]
