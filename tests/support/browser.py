"""A real browser for the tests of pages: Debian's Chromium, driven by Playwright.

`opened(path)` yields a page and fails the test for an error on the console or a request to anywhere
but the file itself. Where there is no browser the tests are left out, and pytest says so.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(
    BROWSER is None or find_spec("playwright") is None,
    reason="no Chromium or no Playwright here: the tests of the pages are left out",
)


@contextmanager
def opened(
    path: Path, size: dict[str, int] = DESKTOP, dark: bool = False, within: Path | None = None
) -> Iterator:
    """The file in a new browser; what went wrong there fails the test at the end.

    A page of a site may also load the files under `within`.
    """
    from playwright.sync_api import sync_playwright

    trouble: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        context = browser.new_context(viewport=size, color_scheme="dark" if dark else "light")
        page = context.new_page()
        page.on("console", lambda m: m.type in ("error", "warning") and trouble.append(m.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda d: (trouble.append(f"dialog: {d.message}"), d.dismiss()))
        own = path.resolve().as_uri()
        site = None if within is None else f"{within.resolve().as_uri()}/"
        page.on("request", lambda r: _is_outside(r.url, own, site) and trouble.append(r.url))
        page.goto(own)
        try:
            yield page
        finally:
            browser.close()
    assert not trouble, trouble


def _is_outside(url: str, own: str, site: str | None) -> bool:
    known = ("data:", "blob:", *((site,) if site else ()))
    return not url.startswith(known) and url.partition("#")[0] != own
