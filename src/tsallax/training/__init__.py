"""A run: its configuration, Algorithm 1 as one compiled program, evaluation, the run folder."""
