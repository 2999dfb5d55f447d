"""tsallax: value-based deep reinforcement learning with Tsallis entropy, in JAX.

The names below are imported when they are first used (PEP 562), so that `import tsallax` and the
command line respond at once: jax alone takes a second or more to import.
"""

from tsallax._process import collect_rarely, is_command, listen

if is_command():
    listen()
    collect_rarely()

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tsallax._jaxlib import guard

if TYPE_CHECKING:  # the table below for type checkers and editors
    from tsallax import envs, operators, policies, stats, tabular, types
    from tsallax.api import Model, Result, StopTraining, load, load_agent, train
    from tsallax.operators import ALGORITHMS, make_hparams
    from tsallax.policies import tsallis_policy, tsallis_value
    from tsallax.types import Bootstrap, HParams

__version__ = "0.1.0"

# A public name has one row here, one in `__all__` and one import above; a test compares the three.
_LAZY = {
    "ALGORITHMS": "tsallax.operators",
    "Bootstrap": "tsallax.types",
    "HParams": "tsallax.types",
    "Model": "tsallax.api",
    "Result": "tsallax.api",
    "StopTraining": "tsallax.api",
    "load": "tsallax.api",
    "load_agent": "tsallax.api",
    "make_hparams": "tsallax.operators",
    "train": "tsallax.api",
    "tsallis_policy": "tsallax.policies",
    "tsallis_value": "tsallax.policies",
}
_ROOMS = (
    "envs",
    "operators",
    "policies",
    "stats",
    "tabular",
    "types",
)  # modules reachable as attributes: `tsallax.envs`

__all__ = [
    "ALGORITHMS",
    "Bootstrap",
    "HParams",
    "Model",
    "Result",
    "StopTraining",
    "__version__",
    "envs",
    "load",
    "load_agent",
    "make_hparams",
    "operators",
    "policies",
    "stats",
    "tabular",
    "train",
    "tsallis_policy",
    "tsallis_value",
    "types",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"tsallax.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value  # later uses do not call this function
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if not is_command():
    guard()
