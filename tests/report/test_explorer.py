"""The policy explorer as one meets it: the command, and the page in a real browser."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.browser import DESKTOP, PHONE, needs_browser, opened
from tsallax import cli
from tsallax.policies import softmax

NAMES = ("exact", "softmax", "sparsemax", "paper", "paper-normalised")
ITERATIONS = 200


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    assert cli.main(["explore", "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def browsed(written):
    with opened(written) as page:
        yield page


@pytest.fixture
def page(browsed):
    browsed.reload()
    return browsed


# --- The command ---------------------------------------------------------------------------------


def test_the_command_says_where_the_page_is(tmp_path, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(shown.append(url)) or len(shown) == 1)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["explore"]) == 0
    assert capsys.readouterr().out == "explorer.html\n"
    assert not shown
    assert cli.main(["explore", "--open"]) == 0
    assert shown == [(tmp_path / "explorer.html").as_uri()]
    assert cli.main(["explore", "--open"]) == 2, "no browser"
    assert "no browser was found: open explorer.html" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_is_one_line(tmp_path, capsys):
    assert cli.main(["explore", "-o", str(tmp_path / "nowhere" / "explorer.html")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_page_is_complete_in_itself(written):
    text = written.read_text()
    assert not re.search(r"""(src|href)=["'](?!data:,|#)|@import|url\((?!#)""", text)
    assert not re.search(r"\$\w+", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))
    security = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert security is not None
    assert security[1].startswith("default-src 'none'; ")
    assert "unsafe" not in security[1]


# --- What is on the screen -----------------------------------------------------------------------


def card(page, name):
    return page.locator(f"[data-policy='{name}']")


def fact(page, name, key):
    return card(page, name).locator(f"[data-fact='{key}']").inner_text()


def numbers_shown(page, name):
    return card(page, name).locator(".bars b").all_inner_texts()


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("preset", ["A tie", "q = 3/2: a sum of 2.25"])
def test_bars_are_as_long_as_their_numbers(page, preset):
    page.get_by_role("button", name=preset).click()
    for name in NAMES:
        texts = numbers_shown(page, name)
        numbers = [float(text.replace("ruled out", "0")) for text in texts]
        rows = card(page, name).locator(".bars li").all()
        assert len(rows) == page.locator("#actions > div").count()
        for row, number in zip(rows, numbers, strict=True):
            track, fill = (row.locator(part).bounding_box() for part in (".track", ".fill"))
            share = fill["width"] / (track["width"] - 2)  # without its frame
            assert share == pytest.approx(number / max(1, *numbers), abs=0.01)


@pytest.mark.slow
@needs_browser
def test_the_preset_at_three_halves_sums_to_two_and_a_quarter(page):
    page.get_by_role("button", name="q = 3/2: a sum of 2.25").click()
    assert fact(page, "paper", "total") == "2.250"
    assert "no policy" in card(page, "paper").locator(".note").inner_text()
    assert card(page, "paper").locator(".one").count() == 3, "the line at 1"
    assert fact(page, "paper-normalised", "total") == "1.000"
    assert "2.25 times too large" in page.locator("#lesson").inner_text()


@pytest.mark.slow
@needs_browser
def test_the_other_presets_show_what_they_say(page):
    def load(name):
        page.get_by_role("button", name=name, exact=True).click()
        return {name: numbers_shown(page, name) for name in NAMES}

    shown = load("A tie")
    assert shown["exact"][:2] == ["0.500", "0.500"]
    assert shown["paper-normalised"] == ["1.000", *["ruled out"] * 3]
    shown = load("One best action")
    assert shown["exact"] == shown["sparsemax"] == ["1.000", *["ruled out"] * 3]
    assert 0.25 < 1 - float(shown["softmax"][0]) < 0.35
    shown = load("Unsafe actions ruled out")
    assert shown["exact"][2:] == ["ruled out"] * 2
    assert 1 / 20 < sum(map(float, shown["softmax"][2:])) < 1 / 15
    shown = load("q → 1")
    with jax.enable_x64(True):
        limit = softmax(jnp.array([1, 0.7, 0.4, 0]), 0.25)
    np.testing.assert_allclose([float(p) for p in shown["exact"]], limit, atol=0.01)
    shown = load("q = \N{MINUS SIGN}1: no exact policy")
    assert shown["exact"] == []
    assert "no policy maximises" in card(page, "exact").inner_text()
    assert shown["paper"] == ["1.155", "2.000"], "docs/errata.md, section 9"


@pytest.mark.slow
@needs_browser
def test_sliders_and_fields_move_the_bars(page):
    before = numbers_shown(page, "softmax")
    page.get_by_label("Q(a3), slider").press("ArrowRight")
    assert page.get_by_label("Q(a3)", exact=True).input_value() == "0.25"
    assert numbers_shown(page, "softmax") != before
    alpha = page.locator("#alpha-field")
    alpha.fill("10")
    assert page.locator("#alpha input[type=range]").input_value() == "1"
    spread = numbers_shown(page, "softmax")
    assert max(map(float, spread)) < 0.27, "all but uniform"
    alpha.fill("0")
    assert "0.001" in page.locator("#alpha output").inner_text()
    assert numbers_shown(page, "softmax") == spread, "a wrong number changes nothing"
    page.get_by_role("button", name="∞", exact=True).click()
    assert page.locator("#q-field").input_value() == ""
    assert numbers_shown(page, "exact") == ["0.500", "0.500", "ruled out", "ruled out"]
    page.locator("#q input[type=range]").press("ArrowLeft")
    assert page.locator("#q-field").input_value() == "5.95"


@pytest.mark.slow
@needs_browser
def test_actions_come_and_go(page):
    add = page.get_by_role("button", name="Add an action")
    for _ in range(4):
        add.click()
    assert add.is_disabled()
    assert len(numbers_shown(page, "exact")) == 8
    for _ in range(6):
        page.get_by_role("button", name="remove a1", exact=True).press("Enter")
    assert page.get_by_role("button", name="remove a1", exact=True).is_disabled()
    assert len(numbers_shown(page, "exact")) == 2


@pytest.mark.slow
@needs_browser
def test_the_chain_follows_its_controls(page):
    def gaps():
        return [
            float(re.search(r"gap ([0-9.]+)", text)[1])
            for text in page.locator("#legend > span").all_inner_texts()
        ]

    wide, plain = gaps()
    assert wide > 5 * plain
    curve = page.locator("polyline.own")
    assert len(curve.get_attribute("points").split(" ")) == ITERATIONS
    before = curve.get_attribute("points")
    page.locator("#chain-iteration-field").fill("200")
    assert gaps()[0] > 2 * wide
    assert curve.get_attribute("points") == before
    page.locator("#chain-beta-field").fill("0")
    own, plain = gaps()
    assert own == plain
    assert curve.get_attribute("points") != before
    for state, (left, right) in enumerate(page.evaluate("runs.own.at(-1).pi"), 1):
        texts = page.locator(f"#strip [data-state='{state}'] text").all_text_contents()
        assert [float(text[2:]) for text in texts] == pytest.approx([left, right], abs=5e-4)
    assert page.locator("#states td").count() == 6 * 5


@pytest.mark.slow
@needs_browser
def test_every_control_has_a_name_and_takes_the_focus(page):
    controls = page.locator("input, button, summary, [tabindex='0']")
    assert controls.count() > 40
    enabled = 0
    page.evaluate("document.body.focus()")
    for control in controls.all():
        label = "e => (e.labels?.[0] ?? e).textContent || e.getAttribute('aria-label')"
        assert control.evaluate(label).strip()
        enabled += control.is_enabled()
    seen = set()
    for _ in range(enabled):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)")
        )
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert len(seen) == enabled


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_it_fits_and_can_be_read(page, size, dark):
    page.set_viewport_size(size)
    page.emulate_media(color_scheme="dark" if dark else "light")
    assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
    ground = page.evaluate(LUMINANCE, ["html", "backgroundColor"])
    assert (ground < 0.1) if dark else (ground > 0.9)
    for selector in ("p", ".note", ".out b", ".facts dt", "figcaption", "button:enabled"):
        low, high = sorted([ground, page.evaluate(LUMINANCE, [selector, "color"])])
        assert (high + 0.05) / (low + 0.05) >= 4.5, selector  # WCAG's AA


LUMINANCE = r"""([selector, colour]) => {
    const text = getComputedStyle(document.querySelector(selector))[colour];
    const [r, g, b] = text.match(/\d+/g).map((x) => x / 255)
        .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}"""
