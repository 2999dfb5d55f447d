"""Studies: the paper's figures as data, sweeps over many runs, and the verdict on each claim."""
