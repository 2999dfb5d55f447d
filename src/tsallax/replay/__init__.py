"""Replay rings: one on the device for compiled runs, one on the host."""

from tsallax.replay.host import HostRing
from tsallax.replay.known import know
from tsallax.replay.ring import Ring, State, make_ring

__all__ = ["HostRing", "Ring", "State", "know", "make_ring"]
