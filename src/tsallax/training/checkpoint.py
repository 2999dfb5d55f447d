"""Checkpoints: everything that a run is, in files that cannot run code.

A checkpoint is a folder with the arrays and a manifest. It is written under another name, synced,
and renamed: what bears the name `step-...` is whole. A damaged one is refused, whatever the damage.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tsallax.training import tensors
from tsallax.training.tensors import Digest, Spec

SCHEMA = 1
FOLDER, ARRAYS, MANIFEST = "checkpoints", "state.safetensors", "manifest.json"
LONGEST = 1 << 20  # bytes of a manifest


class Saved(NamedTuple):
    """A checkpoint that was read."""

    step: int
    arrays: dict[str, np.ndarray]
    about: dict[str, Any]


def save(
    run: Path, step: int, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any], keep: int = 2
) -> Path:
    """Write a checkpoint of the run folder, then drop all but the last `keep`.

    `about` is what else is to be known at a resume; it must be JSON.
    """
    root = run / FOLDER
    root.mkdir(exist_ok=True)
    _sweep(root)
    path, part = root / f"step-{step:012d}", root / f".part-{step:012d}"
    part.mkdir()
    digest = tensors.write(part / ARRAYS, arrays)
    body = {"schema": SCHEMA, "step": step, "arrays": digest._asdict(), "about": dict(about)}
    _write_synced(part / MANIFEST, _manifest(body))
    _sync(part)
    if path.exists():  # of a run that went back behind it
        _drop(path)
    part.rename(path)
    _sync(root)
    for old in steps(run)[:-keep]:
        _drop(old)
    return path


def drop_after(run: Path, step: int) -> None:
    """All that claim to be later: refused ones must not outlive what is saved from here on."""
    for path in steps(run):
        if int(path.name.removeprefix("step-")) > step:
            _drop(path)


def remove(run: Path) -> None:
    """All checkpoints of a run folder."""
    drop_after(run, -1)
    if (run / FOLDER).is_dir() and not (run / FOLDER).is_symlink():
        _sweep(run / FOLDER)
        (run / FOLDER).rmdir()


def steps(run: Path) -> list[Path]:
    """The checkpoints of a run folder, oldest first."""
    root = run / FOLDER
    if root.is_symlink() or not root.is_dir():
        return []
    return sorted(p for p in root.iterdir() if re.fullmatch(r"step-\d{12}", p.name))


def load(path: Path, expected: Mapping[str, Spec]) -> Saved:
    """A checkpoint with exactly the `expected` arrays; else a `ValueError` of one line."""
    body = read_manifest(path)
    try:
        arrays = tensors.read(path / ARRAYS, expected, Digest(**body["arrays"]))
    except ValueError as error:
        raise ValueError(f"checkpoint {path.name}: {error}") from None
    return Saved(body["step"], arrays, body["about"])


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint, if it is what this version writes, byte for byte."""
    if path.is_symlink():
        raise ValueError(f"checkpoint {path.name} is a link")
    try:
        with tensors.open_regular(path / MANIFEST) as file:
            text = file.read(LONGEST)
        body = json.loads(text)["body"]
        schema, whole = body["schema"], text == _manifest(body)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"checkpoint {path.name} has no whole {MANIFEST}") from None
    if schema != SCHEMA:
        found = str(schema)[:20]
        raise ValueError(f"checkpoint {path.name} has schema {found}; this version reads {SCHEMA}")
    if not whole or not _is_body(body) or path.name != f"step-{body['step']:012d}":
        raise ValueError(f"checkpoint {path.name} is damaged: its manifest does not agree")
    return body


def _is_body(body: Any) -> bool:
    arrays, about = body.get("arrays"), body.get("about")
    return (
        body.keys() == {"schema", "step", "arrays", "about"}
        and type(body["step"]) is int
        and isinstance(arrays, dict)
        and {name: type(x) for name, x in arrays.items()} == {"size": int, "sha256": str}
        and isinstance(about, dict)
    )


def _manifest(body: Mapping[str, Any]) -> bytes:
    """The body with its own sha256, in the one form that is accepted."""
    inner = json.dumps(body, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(inner.encode()).hexdigest()
    return f'{{"body":{inner},"sha256":"{digest}"}}\n'.encode()


def _sweep(root: Path) -> None:
    """Remove what an interrupted save left."""
    for rest in root.glob(".*-*"):
        _erase(rest)


def _drop(path: Path) -> None:
    """Under another name first, so that a half-deleted checkpoint is none."""
    gone = path.with_name(f".old-{path.name}")
    path.rename(gone)
    _erase(gone)


def _erase(path: Path) -> None:
    """Whatever it is; of a link, the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _write_synced(path: Path, text: bytes) -> None:
    with path.open("xb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
