"""Initial weights from another run: read once and kept in the folder of the new run."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from tsallax.networks.dense import Params
from tsallax.storage.files import Directory
from tsallax.storage.reader import array_shapes
from tsallax.storage.run_folder import BEST, INITIAL, RUN, WEIGHTS, About, plain, read_about
from tsallax.storage.tensors import specs_of
from tsallax.training.build import Run
from tsallax.training.config import OFF, to_json
from tsallax.training.final import best_cell
from tsallax.training.stored_config import load_arrays
from tsallax.training.trained import run_folder

# Options that must agree between two runs of a named network; layer norm has no weights.
SHAPE = ("network", "hidden", "layer_norm", "dueling", "head", "quantiles", "stack")


class Initial(NamedTuple):
    params: Params  # of one cell, with a leading axis of 1
    source: dict[str, Any]  # where they come from, for run.json


def take_initial(run: Run) -> Initial:
    """Read the weights of the run that the configuration names in `init_from`."""
    path = run_folder(run.config.init_from)
    about = read_about(path)
    try:
        return _take(run, path, about)
    except (KeyError, TypeError):
        raise ValueError(f"{path} has a damaged {RUN}") from None


def _take(run: Run, path: Path, about: About) -> Initial:
    there, cell = about.everything, run.config.init_cell
    best = run.config.init_weights == "best" and BEST in there.get("files", {})
    name, cells = BEST if best else WEIGHTS, len(there["cells"])
    _check_shapes(run, path, about, name)
    found = load_arrays(path, about, _of(run, cells), name)
    if cell is None:
        cell = int(np.argmax(_finite(there["best"]["return"]))) if best else best_cell(path)
    if not 0 <= cell < cells:
        raise ValueError(f"{path} has cells 0 to {cells - 1}, not {cell}")
    source = {"run": run.config.init_from, "weights": "best" if best else "last", "cell": cell}
    source |= {"env": about.config["env"], "algo": about.config["algo"], **there["cells"][cell]}
    return Initial(jax.tree.map(lambda x: x[cell : cell + 1], found), source)


def kept_initial(run: Run, path: Path) -> Initial:
    """Read the initial weights kept in the run's own folder, else from the other run again."""
    about = read_about(path)
    if INITIAL not in about.everything.get("files", {}):
        return take_initial(run)
    return Initial(load_arrays(path, about, _of(run, 1), INITIAL), about.everything["initial"])


def _of(run: Run, cells: int) -> Params:
    """The shapes of this run's parameters for `cells` cells."""
    shapes = run.learner.params()
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((cells, *x.shape[1:]), x.dtype), shapes)


def _finite(returns: Any) -> Float[np.ndarray, "cells"]:
    return np.nan_to_num(np.array(returns, float), nan=-np.inf)


def _check_shapes(run: Run, path: Path, about: About, name: str) -> None:
    """Refuse a different network, and report what differs."""
    here, there = plain(to_json(run.config)), about.config
    if here["network"] != "own":
        for option in SHAPE:
            one, other = (x.get(option, OFF.get(option)) for x in (there, here))
            if one != other:
                raise ValueError(
                    f"{path} has another network: {option} is {one} there and {other} here"
                )
    with Directory(path) as folder:
        found = {key: shape[1:] for key, shape in array_shapes(folder, name).items()}
    wanted = {key: spec.shape[1:] for key, spec in specs_of(run.learner.params()).items()}
    for key in sorted(found.keys() | wanted.keys()):
        if found.get(key) != wanted.get(key):
            raise ValueError(
                f"{path} has another network: {key} is {_size(found.get(key))} there and "
                f"{_size(wanted.get(key))} here"
            )


def _size(shape: tuple[int, ...] | None) -> str:
    return "missing" if shape is None else " x ".join(map(str, shape)) or "a number"
