"""A study of four small runs, for tests of those who carry it out."""

STUDY = """
title = "small"
columns = ["q"]

[common]
env = "CartPole-v1"
steps = 320
seeds = 2
hidden = [8]
batch = 8
buffer = 100
target_period = 40
time_limit = 15

[[runs]]
algo = ["tal", "tsallis-dqn"]
q = [1.5, 3]
"""
