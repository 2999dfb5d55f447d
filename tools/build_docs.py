"""Build the documentation site: `python tools/build_docs.py`, or `make docs`.

The Markdown is gathered under build/docs first: README.md is the front page, the API reference is
written, files outside docs/ that a page links to become pages of source, and a name such as
`tsallax.policies.softmax` becomes a link to its entry. Then zensical makes HTML of it, strictly: a
link or an anchor that leads nowhere ends the build.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import reference  # noqa: E402

from tsallax.report.explorer import explorer_page  # noqa: E402

STAGE = ROOT / "build" / "docs"
TOP = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
ASSETS = ("iframe-worker.js", "site.css")
PICTURE = ".png"
LANGUAGES = {".py": "py", ".toml": "toml"}
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def home_of(path: str) -> str:
    """Where a file of the repository stands in the site."""
    if path in TOP:
        return TOP[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return path if Path(path).suffix == PICTURE else f"source/{path}.md"


def relative(target: str, page: str) -> str:
    return os.path.relpath(target, PurePosixPath(page).parent).replace(os.sep, "/")


def outside_code(change: Callable[[str], str], markdown: str) -> str:
    """`change` applied to everything but fenced code."""
    parts = FENCE.split(markdown)
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))


def moved_links(text: str, path: str) -> str:
    """Links of the file `path` as they must read where it stands in the site."""

    def move(match: re.Match[str]) -> str:
        link = match[1]
        if re.match(r"\w+:|#", link):
            return match[0]
        there, hash_, anchor = link.partition("#")
        target = os.path.normpath(PurePosixPath(path).parent / there).replace(os.sep, "/")
        return f"]({relative(home_of(target), home_of(path))}{hash_}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", move, text)


def linked_names(text: str, page: str) -> str:
    """Dotted names that the reference describes, as links to it."""

    def link(match: re.Match[str]) -> str:
        home = reference_of(match[1])
        return f"[`{match[1]}`]({relative(home, page)})" if home else match[0]

    return re.sub(r"(?<!\[)`(tsallax(?:\.\w+)+)`", link, text)


@functools.cache
def reference_of(dotted: str) -> str | None:
    if dotted in reference.MODULES:
        return reference.page_of(dotted)
    module, _, name = dotted.rpartition(".")
    try:
        return reference.homes().get(id(getattr(import_module(module), name)))
    except (AttributeError, ModuleNotFoundError):
        return None


def outside(markdown: str, path: str) -> set[str]:
    """Files that are no part of docs/, to which the file `path` links."""
    links = re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", FENCE.sub("", markdown))
    paths = (os.path.normpath(PurePosixPath(path).parent / x) for x in links if ":" not in x)
    return {p for p in paths if p not in TOP and not p.startswith("docs/")}


def source_page(path: str) -> str:
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"# {path}\n\n````{language}\n{(ROOT / path).read_text()}````\n"


def pages() -> list[str]:
    """The Markdown files that are pages of the site."""
    return [*TOP, *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]


def settled(path: str, text: str) -> str:
    """A text of the file `path` as it reads in the site."""
    return linked_names(moved_links(text, path), home_of(path))


def stage() -> None:
    """Everything that zensical reads, under build/docs."""
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "figures", STAGE / "figures")
    read = {path: (ROOT / path).read_text() for path in pages()}
    for path, markdown in read.items():
        write(home_of(path), outside_code(functools.partial(settled, path), markdown))
    for path in sorted(set().union(*(outside(text, path) for path, text in read.items()))):
        if home_of(path) == path:
            copy(path)
        else:
            write(home_of(path), source_page(path))
    for module in reference.MODULES:
        write(reference.page_of(module), reference.write_page(module))
    for name in ASSETS:
        write(f"assets/{name}", (ROOT / "tools" / name).read_text())
    write("assets/explorer.html", explorer_page())


def write(page: str, text: str) -> None:
    target = STAGE / page
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def copy(path: str) -> None:
    target = STAGE / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / path, target)


def main() -> int:
    stage()
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    code = subprocess.run(command, cwd=ROOT).returncode
    if code == 0:
        print("the site is in site/: open site/index.html")
    return code


if __name__ == "__main__":
    sys.exit(main())
