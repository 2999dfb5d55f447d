"""A run: its configuration, its training and evaluation, and its run folder."""
