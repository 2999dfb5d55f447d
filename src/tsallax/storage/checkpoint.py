"""Checkpoints: the complete state of a run, in files that cannot run code.

A checkpoint is a folder with the arrays and a manifest. It is written under another name, synced
and renamed, so that a folder named `step-...` is complete. A damaged one is always refused.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from tsallax.storage import tensors
from tsallax.storage.files import Directory
from tsallax.storage.reader import is_whole, read
from tsallax.storage.tables import METRICS, TIMING
from tsallax.storage.tensors import Digest, Spec

SCHEMA = 2
FOLDER, ARRAYS, MANIFEST = "checkpoints", "state.safetensors", "manifest.json"
LONGEST = 1 << 20  # most bytes of a manifest
KEEP = 2  # number of checkpoints kept per run


class OtherVersionError(ValueError):
    """The checkpoint is whole, but another version of tsallax wrote it, which can read it."""


class Saved(NamedTuple):
    """The contents of a checkpoint."""

    step: int
    arrays: dict[str, np.ndarray]
    about: dict[str, Any]


def save(
    run: Directory, step: int, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]
) -> None:
    """Write a checkpoint into the run's folder, then delete all but the last ones.

    `about` is other information that is needed to resume; it must be JSON.
    """
    with run.subfolder(FOLDER, create=True) as root:
        _remove_leftovers(root)
        name, part = f"step-{step:012d}", f".part-{step:012d}"
        with root.subfolder(part, create=True) as new:
            digest = tensors.write(new, ARRAYS, arrays)
            body = {"schema": SCHEMA, "step": step, "arrays": digest._asdict(), "about": about}
            new.write(MANIFEST, _manifest(body))
            new.sync()
        if root.has(name):  # the run has resumed from an earlier checkpoint
            _drop(root, name)
        root.rename(part, name)
        root.sync()
        for old in _steps(root)[:-KEEP]:
            _drop(root, old)


def drop_after(run: Directory, step: int) -> None:
    """Delete checkpoints of later steps: refused ones must not outlive those saved next."""
    if run.has(FOLDER):
        with run.subfolder(FOLDER) as root:
            for name in _steps(root):
                if int(name.removeprefix("step-")) > step:
                    _drop(root, name)


def drop_before(run: Directory, step: int) -> None:
    """Delete all checkpoints except that of this step; if it is missing, the whole folder."""
    if newest_first(run)[:1] != [f"step-{step:012d}"]:
        run.remove(FOLDER)
        return
    with run.subfolder(FOLDER) as root:
        for old in _steps(root)[:-1]:
            _drop(root, old)


def newest_first(run: Directory) -> list[str]:
    """The names of a run's checkpoints, newest first."""
    if not run.has(FOLDER):
        return []
    with run.subfolder(FOLDER) as root:
        return _steps(root)[::-1]


def newest(
    run: Directory,
    configs: Collection[str],
    expected: Callable[[dict[str, Any]], Mapping[str, Spec]],
) -> tuple[Saved | None, list[str]]:
    """The newest intact checkpoint of these configurations, and why newer ones were refused.

    Refused checkpoints are deleted, but none is if the newest whole one is another version's: the
    run would start anew, and what that version can resume from would be lost.
    """
    saved, refused = None, []
    for name in newest_first(run):
        try:
            about = read_manifest(run, name)["about"]
            if not _is_of_run(about):
                raise ValueError(f"checkpoint {name} is no run's: its manifest says too little")
            if about["config"] not in configs:
                raise ValueError(f"checkpoint {name} is of another configuration")
            saved = load(run, name, expected(about["run"]))
            break
        except OtherVersionError:
            raise
        except ValueError as error:
            refused.append(str(error))
    drop_after(run, -1 if saved is None else saved.step)
    return saved, refused


def load(run: Directory, name: str, expected: Mapping[str, Spec]) -> Saved:
    """Load a checkpoint with exactly the `expected` arrays, else raise a one-line `ValueError`."""
    body = read_manifest(run, name)
    wanted, kind = Digest(**body["arrays"]), ValueError
    try:
        with run.subfolder(FOLDER) as root, root.subfolder(name) as folder:
            try:
                arrays = read(folder, ARRAYS, expected, wanted)
            except ValueError:
                kind = OtherVersionError if is_whole(folder, ARRAYS, wanted) else ValueError
                raise
    except (ValueError, OSError) as error:
        other = " of another version" if kind is OtherVersionError else ""
        raise kind(f"checkpoint {name}{other}: {error}") from None
    return Saved(body["step"], arrays, body["about"])


def read_manifest(run: Directory, name: str) -> dict[str, Any]:
    """Read the manifest of a checkpoint; it must be what this version writes, byte for byte."""
    try:
        with run.subfolder(FOLDER) as root, root.subfolder(name) as folder:
            text = folder.read(MANIFEST, LONGEST)
        body = json.loads(text)["body"]
        schema, whole = body["schema"], text == _manifest(body)
    except (ValueError, KeyError, TypeError, RecursionError, OSError):
        raise ValueError(f"checkpoint {name} has no whole {MANIFEST}") from None
    if schema != SCHEMA:
        found = str(schema)[:20]
        kind = OtherVersionError if whole and type(schema) is int else ValueError
        raise kind(f"checkpoint {name} has schema {found}; this version reads {SCHEMA}")
    if not whole or not _is_body(body) or name != f"step-{body['step']:012d}":
        raise ValueError(f"checkpoint {name} is damaged: its manifest does not agree")
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


def _is_of_run(about: dict[str, Any]) -> bool:
    """Returns whether it has the structure that `RunFolder.save_checkpoint` writes."""
    sizes, notes = about.get("sizes"), about.get("run")
    return (
        isinstance(about.get("config"), str)
        and isinstance(notes, dict)
        and isinstance(notes.get("stopped", {}), dict)
        and isinstance(sizes, dict)
        and sizes.keys() == {METRICS, TIMING}
        and all(type(size) is int and size >= 0 for size in sizes.values())
    )


def _manifest(body: Mapping[str, Any]) -> bytes:
    """The body with its sha256, in the only form that is accepted."""
    inner = json.dumps(body, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(inner.encode()).hexdigest()
    return f'{{"body":{inner},"sha256":"{digest}"}}\n'.encode()


def _steps(root: Directory) -> list[str]:
    return [name for name in root.names() if re.fullmatch(r"step-\d{12}", name)]


def _drop(root: Directory, name: str) -> None:
    """Rename, then delete, so that a partly deleted checkpoint does not count as one."""
    root.rename(name, f".old-{name}")
    root.remove(f".old-{name}")


def _remove_leftovers(root: Directory) -> None:
    """Remove what an interrupted save left behind."""
    for name in root.names():
        if re.fullmatch(r"\.(part|old)-.*", name):
            root.remove(name)
