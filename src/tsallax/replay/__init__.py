"""Replay rings: `ring` on the device for compiled runs, `host` for host environments."""
