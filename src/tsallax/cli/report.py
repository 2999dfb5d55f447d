"""`tsallax report`: runs and results as one HTML page."""

from pathlib import Path
from typing import Annotated

import tyro

from tsallax._jaxlib import use_cache
from tsallax.report.page import html, troubles
from tsallax.report.page.gather import gather
from tsallax.spelling import counted, printable
from tsallax.storage.files import write_named


def run(
    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUNS")],
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report.html"),
    no_clips: bool = False,
) -> None:
    """Write a page of runs: curves, scores, comparisons, claims, configurations, videos.

    The page is one file that makes no requests. It lists what is damaged or unfinished.

    Args:
        folders: runs of `tsallax train`, results of `tsallax reproduce`, or folders that contain
            them.
        out: the page.
        no_clips: leave out the videos of `tsallax play`.
    """
    if not folders:
        raise ValueError("give one or more folders of runs")
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"the page's name ends in .html, not {out.name!r}")
    if out.is_dir() or not out.parent.is_dir():
        raise FileNotFoundError(f"{out} cannot be written: no folder for it, or a folder itself")
    use_cache()  # claims on tabular MDPs are compiled
    found = gather(folders)
    if no_clips:
        found = found._replace(clips=[])
    page = html(found)
    write_named(out, page.encode())
    faults, tables = troubles(found), counted(len(found.results), "table")
    for name, what in faults[:10]:
        print(f"{printable(name)}: {printable(what)}")
    if len(faults) > 10:
        print(f"... and {len(faults) - 10} more, on the page")
    print(f"{counted(len(found.runs), 'run')}, {tables} of results")
    print(f"page {printable(out)}, {len(page) / 1e6:.1f} MB")
