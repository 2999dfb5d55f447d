"""`tsallax explore`: the policy explorer, a page for the browser."""

import webbrowser
from pathlib import Path
from typing import Annotated

import tyro

from tsallax.report.explorer import explorer_page
from tsallax.storage.files import write_named


def run(
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("explorer.html"),
    show: Annotated[bool, tyro.conf.arg(name="open")] = False,
) -> None:
    """Write the policy explorer: one HTML file that needs no network.

    Sliders for q, alpha and the action values beside the exact policy, softmax, sparsemax and the
    paper's approximation; and a small MDP on which advantage learning widens the action gap.

    Args:
        out: the file.
        show: open it in the browser.
    """
    write_named(out, explorer_page().encode())  # as bytes: the hashes assume "\n"
    print(out)
    if show and not webbrowser.open(out.resolve().as_uri()):
        raise OSError(f"no browser was found: open {out} in one")
