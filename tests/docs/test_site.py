"""The documentation site: what is gathered for it, what is built, what a browser makes of it."""

import functools
import re
import tomllib
from pathlib import Path

import pytest
from tools import build_docs, reference

from support.browser import DESKTOP, PHONE, needs_browser, opened


def leaves(nav) -> list[str]:
    """The pages that the navigation names."""
    if isinstance(nav, str):
        return [nav]
    entries = nav.values() if isinstance(nav, dict) else nav
    return [page for entry in entries for page in leaves(entry)]


def navigation() -> list[str]:
    configuration = build_docs.configuration(build_docs.read_pages())
    return leaves(tomllib.loads(configuration)["project"]["nav"])


def test_every_page_is_in_the_navigation_once():
    written = [build_docs.home_of(path) for path in build_docs.pages()]
    made = [reference.page_of(module) for module in reference.MODULES]
    assert sorted(navigation()) == sorted([*written, *made])


@pytest.mark.parametrize(
    ("path", "text", "moved"),
    [
        ("docs/a.md", "[x](b.md#c) [y](#d)", "[x](b.md#c) [y](#d)"),
        ("docs/a.md", "[x](../src/t.py)", "[x](source/src/t.py.md)"),
        ("docs/sub/a.md", "[x](../../README.md) [y](../b.md)", "[x](../index.md) [y](../b.md)"),
        ("README.md", "[x](docs/b.md#c) [y](LICENSE)", "[x](b.md#c) [y](source/LICENSE.md)"),
        ("README.md", "![p](docs/figures/p.png)", "![p](figures/p.png)"),
        ("docs/a.md", "[x](https://example.org/a)", "[x](https://example.org/a)"),
    ],
)
def test_links_are_moved_with_their_page(path, text, moved):
    assert build_docs.moved_links(text, path) == moved


def test_names_become_links_and_code_stays():
    name = "`tsallax.policies.softmax`"
    linked = build_docs.linked_names(f"{name} `tsallax.nowhere.x` [{name}](b.md)", "sub/a.md")
    assert linked == (
        f"[{name}](../reference/policies.md#softmax) `tsallax.nowhere.x` [{name}](b.md)"
    )
    row = build_docs.linked_names(f"| {name} | `tsallax.nowhere.x` |", "sub/a.md")
    assert row == "| [`softmax`](../reference/policies.md#softmax) | `x` |"
    code = f"```text\n{name}\n```"
    upper = build_docs.outside_code(str.upper, f"a\n{code}\nb")
    assert upper == f"A\n{code}\nB"


@pytest.mark.parametrize("module", reference.MODULES)
def test_a_reference_page_has_every_public_name(module):
    page = reference.write_page(module)
    names = reference.public(reference.import_module(module))
    assert names
    for name in names:
        assert f"\n## {name}\n" in page or f"\n- [`{name}`](" in page


def test_a_reference_entry_shows_signature_fields_and_arguments():
    assert 'def greedy(Q: Float[Array, "*batch A"])' in reference.write_page("tsallax.policies")
    page = reference.write_page("tsallax.tabular")
    assert "- `noise`: standard deviation of the Gaussian error" in page
    assert "    gamma: Traced = 0.99  # discount" in reference.write_page("tsallax.types")
    assert "### Result.best" in reference.write_page("tsallax.api")


@functools.cache
def built() -> Path:
    assert build_docs.main() == 0
    return build_docs.SITE


def outside_requests(html: str) -> list[str]:
    """What a page loads from elsewhere; what it links to is no request."""
    tags = re.findall(r"<(?:script|img|iframe|link|source)\b[^>]*>", html)
    loaded = [
        url for tag in tags for url in re.findall(r"""(?:src|href)=["']?(\w+:[^"'\s>]+)""", tag)
    ]
    return [url for url in loaded if not url.startswith("data:")]


def test_an_outside_request_is_seen():
    html = '<a href="https://a.org"></a><script src="https://b.org/x.js"></script>'
    assert outside_requests(html) == ["https://b.org/x.js"]


@pytest.mark.slow
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere():
    pages = list(built().rglob("*.html"))
    assert {built() / page.replace(".md", ".html") for page in navigation()} <= set(pages)
    assert {page: bad for page in pages if (bad := outside_requests(page.read_text()))} == {}
    styles = "".join(path.read_text() for path in built().rglob("*.css"))
    assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", styles) == []


@pytest.mark.slow
def test_every_link_of_the_built_site_leads_somewhere():
    """Also those that are written as HTML or made by the theme, which strict mode does not see."""
    ids = {
        page: set(re.findall(r'\bid="?([^"\s>]+)', page.read_text()))
        for page in built().rglob("*.html")
        if page.name != "404.html"
    }
    broken = []
    for page in ids:
        for link in re.findall(r'<a\b[^>]*?href="([^"]*)"', page.read_text()):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if re.match(r"\w+:", link):
                continue
            if not target.exists() or (anchor and anchor not in ids.get(target, {anchor})):
                broken.append(f"{page.name}: {link}")
    assert broken == []


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("page", ["index", "start", "algorithms/tal", "performance"])
def test_a_page_opens_from_the_disk(page, size, dark):
    with opened(built() / f"{page}.html", size, dark, within=built()) as tab:
        assert tab.locator("h1").count() == 1
        width, shown = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= shown  # tables scroll on their own
        pictures = "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
        assert tab.evaluate(pictures)
        luminance = tab.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0]"
        )
        assert (int(luminance) < 128) == dark


@pytest.mark.slow
@needs_browser
def test_the_search_finds_a_page_from_the_disk():
    with opened(built() / "index.html", within=built()) as tab:
        tab.keyboard.press("Control+k")
        field = tab.locator("dialog input").first
        field.press_sequentially("sparsemax", delay=50)
        tab.locator("dialog a", has_text="sparsemax_value").first.wait_for()
        assert field.input_value() == "sparsemax"
