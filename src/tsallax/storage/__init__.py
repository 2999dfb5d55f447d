"""Everything that a run keeps on disk. No other package opens, writes or removes a run's files."""
