"""A run folder of tsallax 0.1 (schema 2), and what that version made of it.

Writes `schema2-run/` and `schema2_run.json`. Run with the sources of commit 8e037f7 on the path:

    PYTHONPATH=<checkout of 8e037f7>/src python tests/golden/make_schema2_run.py

The picture is left out: it is large, and nothing reads it.
"""

import json
from pathlib import Path

import numpy as np

import tsallax
from tsallax import cli

HERE = Path(__file__).parent
RUN = HERE / "schema2-run"
STATES = np.random.default_rng(0).uniform(-1, 1, (3, 4)).astype(np.float32)
FLAGS = (
    "--preset paper --seeds 2 --q 1.5 3 --hidden 8 --batch 8 --buffer 100 --target-period 40 "
    "--steps 120 --eval-every 80 --eval-episodes 2"
)


def main() -> None:
    if not RUN.exists():
        assert cli.main(["train", "CartPole-v1", *FLAGS.split(), "--out", str(RUN)]) == 0
        (RUN / "curves.png").unlink()
    models = [tsallax.load(RUN, cell) for cell in range(4)]
    found = [[x.tolist() for x in model.policy(STATES)] for model in models]
    (HERE / "schema2_run.json").write_text(json.dumps({"states": STATES.tolist(), "cells": found}))


if __name__ == "__main__":
    main()
