"""The paper's tables of hyper-parameters, and what it does not say. Facts only."""

import math
from typing import Any

# Tables 1 to 3 of the paper. SAL's law as the text prints it is the algorithm `sal-printed`.
PRESETS: dict[str, dict[str, Any]] = {
    "gym": {
        "network": "mlp",
        "hidden": (512, 512),
        "optimiser": "adam",
        "learning_rate": (1e-3,),
        "batch": 128,
        "buffer": 50_000,
        "train_period": 4,
        "target_period": 2500,
        "epsilon": (0.01,),
        "epsilon_end": (0.01,),
        "alpha": (0.03,),
        "beta": (0.99,),
    },
    "minatar": {
        "network": "minatar-conv",
        "hidden": (128,),
        "optimiser": "rmsprop",
        "learning_rate": (2.5e-4,),
        "batch": 32,
        "buffer": 100_000,
        "train_period": 1,
        "target_period": 1000,
        "epsilon": (1.0,),
        "epsilon_end": (0.05,),
        "alpha": (0.03,),
        "beta": (0.9,),
    },
    "atari": {
        "network": "nature",
        "head": "quantile",
        "hidden": (512,),
        "optimiser": "adam",
        "learning_rate": (1e-4,),
        "batch": 32,
        "buffer": 1_000_000,
        "train_period": 4,
        "target_period": 8000,
        "epsilon": (1.0,),
        "epsilon_end": (0.01,),
        "alpha": (10.0,),
        "beta": (0.9,),
        "stack": 4,
        "clip_rewards": True,
    },
}
COMMON: dict[str, Any] = {"head": "scalar", "clip_rewards": False}
# The text is silent on these: as it prints its loss, or as its base library did then.
CHOICES: dict[str, dict[str, Any]] = {
    "paper": {"loss": "squared", "max_grad_norm": (math.inf,), "acting": "pi", "warmup": 0},
    "sb3": {"loss": "huber", "max_grad_norm": (10.0,), "acting": "argmax", "warmup": 50_000},
}
