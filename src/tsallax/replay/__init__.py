"""Replay rings: `ring` on the device for compiled runs, `host` for environments of the host."""
