"""Strict everywhere: shapes are checked, ranks are not promoted silently, warnings are errors."""

from jaxtyping import install_import_hook

install_import_hook("tsallax", "beartype.beartype")

import jax  # noqa: E402
from hypothesis import settings  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")
settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("default")
