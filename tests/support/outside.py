"""What must stay as it is."""

import stat
from pathlib import Path


def snapshot(root: Path) -> dict[Path, tuple]:
    """Every entry below a folder, with all that a write, a removal or a new entry would change."""
    found = {}
    for path in (root, *sorted(root.rglob("*"))):
        about = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
        found[path] = about.st_mode, about.st_mtime_ns, about.st_size, content
    return found
