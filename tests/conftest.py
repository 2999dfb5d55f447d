"""Strict everywhere: shapes are checked, ranks are not promoted silently, warnings are errors."""

import gc
import os
from pathlib import Path

# Equal programs are compiled once: the processes of a session, and later sessions, share them.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent / ".jax_cache"))
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
# Most of the suite's time is compilation, most of that for speed which tests do not need.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"
    " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # else a page about each program that is loaded

from jaxtyping import install_import_hook

install_import_hook("tsallax", "beartype.beartype")

import jax  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")
settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("default")
# Tracing makes many objects that live on: Python's default looks through them every 700.
gc.set_threshold(100_000, 50, 50)


@pytest.fixture(scope="session")
def good_runs(tmp_path_factory):
    """Two algorithms on one environment, two seeds in folders of their own; only to be read."""
    from support import runs

    root = tmp_path_factory.mktemp("good")
    for algo, level in (("tal", 100.0), ("dqn", 50.0)):
        for seed in (0, 1):
            runs.write_run(root / f"{algo}-{seed}", level=level, algo=algo, first_seed=seed)
    return root


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a compiled run of two seeds and two values of q; only to be read."""
    from support import tiny

    return tiny.train(tmp_path_factory.mktemp("finished") / "run")
