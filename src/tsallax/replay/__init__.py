"""Replay rings: one on the device for compiled runs, one on the host."""

from tsallax.replay.host import HostRing
from tsallax.replay.ring import Ring, State, make_ring
from tsallax.replay.target_cache import cache_target_values

__all__ = ["HostRing", "Ring", "State", "cache_target_values", "make_ring"]
