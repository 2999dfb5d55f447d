"""Experience replay."""

from tsallax.replay.ring import Ring, make_ring

__all__ = ["Ring", "make_ring"]
