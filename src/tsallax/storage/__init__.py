"""Everything that a run keeps on disk. No other room opens, writes or removes files of a run."""
