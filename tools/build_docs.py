"""Build the documentation site: `python tools/build_docs.py`, or `make docs`.

The Markdown is gathered under build/docs first: README.md becomes the front page, what is said of
the algorithms and the API reference are generated, files outside docs/ that a page links to become
pages of source, a name such as `tsallax.policies.softmax` becomes a link to its entry, and
equations become MathML. Then zensical makes HTML of it, strictly: a link or an anchor that leads
nowhere fails the build.

    python tools/build_docs.py --write-tables

writes only what is generated from the table of algorithms back to the files of docs/.
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

from tools import algorithm_docs, family, reference, typeset  # noqa: E402

from tsallax.report.explorer import explorer_page  # noqa: E402

BUILD, SITE = ROOT / "build", ROOT / "site"
NAVIGATION = "    # The pages of the algorithms come here.\n"  # a line of zensical.toml
TOP = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
ASSETS = ("iframe-worker.js", "site.css")
PICTURE = ".png"
FAMILY = "docs/figures/family.svg"
LANGUAGES = {".py": "py", ".toml": "toml"}
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def home_of(path: str) -> str:
    """The place of a file of the repository in the site."""
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
    """The text of the file `path` with its links adapted to its place in the site."""

    def move(match: re.Match[str]) -> str:
        link = match[1]
        if re.match(r"\w+:|#", link):
            return match[0]
        there, hash_, anchor = link.partition("#")
        target = os.path.normpath(PurePosixPath(path).parent / there).replace(os.sep, "/")
        return f"]({relative(home_of(target), home_of(path))}{hash_}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", move, text)


def linked_names(text: str, page: str) -> str:
    """Links dotted names to their entries in the reference; tables show only their last part."""

    def link(match: re.Match[str]) -> str:
        row, dotted = match.string.startswith("|"), match[1]
        shown, home = dotted.rpartition(".")[2] if row else dotted, reference_of(dotted)
        return f"[`{shown}`]({relative(home, page)})" if home else f"`{shown}`"

    name = re.compile(r"(?<!\[)`(tsallax(?:\.\w+)+)`")
    return "\n".join(name.sub(link, line) for line in text.split("\n"))


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
    """The files outside docs/ to which the file `path` links."""
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
    """A text of the file `path` with its links for the site."""
    return linked_names(moved_links(text, path), home_of(path))


def read_pages() -> dict[str, str]:
    """The pages by their paths, with their generated blocks updated."""
    read = algorithm_docs.with_missing_pages({p: (ROOT / p).read_text() for p in pages()})
    return {path: algorithm_docs.filled(path, markdown) for path, markdown in read.items()}


def configuration(read: dict[str, str]) -> str:
    """zensical.toml with the algorithms in its navigation."""
    before, mark, after = (ROOT / "zensical.toml").read_text().partition(NAVIGATION)
    assert mark, f"zensical.toml has no line {NAVIGATION!r}"
    return before + algorithm_docs.navigation(read) + "\n" + after


def stage(build: Path = BUILD) -> None:
    """Write everything that zensical reads into a separate folder."""
    docs = build / "docs"
    shutil.rmtree(docs, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "figures", docs / "figures")
    read = read_pages()
    for path, markdown in read.items():
        text = outside_code(functools.partial(settled, path), markdown)
        write(docs / home_of(path), typeset.to_mathml(text))
    for path in sorted(set().union(*(outside(text, path) for path, text in read.items()))):
        if home_of(path) == path:
            (docs / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, docs / path)
        else:
            write(docs / home_of(path), source_page(path))
    for module in reference.MODULES:
        write(docs / reference.page_of(module), reference.write_page(module))
    for name in ASSETS:
        write(docs / "assets" / name, (ROOT / "tools" / name).read_text())
    write(docs / "assets" / "explorer.html", explorer_page())
    write(docs / home_of(FAMILY), family.draw())
    write(build / "zensical.toml", configuration(read))


def write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def write_tables() -> None:
    """Update the files of docs/ from the table of algorithms."""
    for path, markdown in {**read_pages(), FAMILY: family.draw()}.items():
        target = ROOT / path
        if not target.exists() or target.read_text() != markdown:
            write(target, markdown)
            print(f"wrote {path}")


def make_site(build: Path = BUILD) -> int:
    """Run `stage`, build the site in `build`/site, and return the exit code of zensical."""
    stage(build)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    return subprocess.run([*command, "-f", str(build / "zensical.toml")]).returncode


def main(*options: str) -> int:
    if options == ("--write-tables",):
        write_tables()
        return 0
    if options:
        print(__doc__)
        return 2
    code = make_site()
    if code == 0:
        shutil.rmtree(SITE, ignore_errors=True)
        shutil.move(BUILD / "site", SITE)
        print("the site is in site/: open site/index.html")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
