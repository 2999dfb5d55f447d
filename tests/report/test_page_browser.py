"""The page of `tsallax report` in a real browser: drawn, switched, by keyboard, never fooled."""

import json
import shutil

import numpy as np
import pytest

from support import runs
from support.browser import DESKTOP, PHONE, needs_browser, opened
from tsallax.report import video

pytestmark = [pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two environments, two algorithms, two q, five seeds; one unfinished, one with a clip."""
    root = tmp_path_factory.mktemp("page") / "sweep"
    for env, level in (("CartPole-v1", 100.0), ("Acrobot-v1", 10.0)):
        for algo, more in (("tal", 0.0), ("tsallis-dqn", 2.0)):
            for q in (2.0, 3.0):
                path = root / f"{env}-{algo}-{q:g}"
                late = (algo, q) == ("tal", 3.0)
                own = {"level": level * q + more, "algo": algo, "q": (q,)}
                runs.write_run(path, env, seeds=4 if late else 5, **own)
                if late:
                    how = {"first_seed": 4, "rows": 6, "status": "stopped"}
                    runs.write_run(root / f"{env}-late", env, **own, **how)
    frames = [np.full((48, 64, 3), shade, np.uint8) for shade in (0, 90, 200)]
    video.write_video(path / "play.gif", iter(frames), 10)
    if video.ffmpeg():
        video.write_video(path / "play.mp4", iter(frames), 10)
    return runs.write_page(root)


def test_charts_are_drawn(page):
    with opened(page) as tab:
        lines = tab.locator("path.curve").evaluate_all("all => all.map(p => p.getAttribute('d'))")
        drawn = [line for line in lines if line != "M0 7H34"]  # the legend's
        assert len(drawn) == 4
        assert sorted(line.count("L") + line.count("M") for line in drawn) == [10, 10, 10, 10]
        assert tab.locator("path.band").evaluate_all(
            "all => all.every(p => p.getAttribute('d').includes('L'))"
        )
        boxes = tab.locator("path.curve").evaluate_all("all => all.map(p => p.getBBox().height)")
        assert sum(height > 100 for height in boxes) == 4
        names = tab.locator("svg text.label").all_text_contents()
        assert sorted(names) == [f"{a}, q = {q}" for a in ("tal", "tsallis-dqn") for q in "23"]
        told = tab.locator("svg[role=img]").get_attribute("aria-label")
        assert "tal, q = 2: 2.47 to 24.7;" in told
        assert tab.locator("#problems td").all_text_contents()[:2] == [
            "Acrobot-v1-late", "stopped early at step 6,000 of 10,000",
        ]  # fmt: skip


def places(tab):
    return tab.locator("#charts path.curve").evaluate_all("a => a.map(p => p.getAttribute('d'))")


def test_switches_change_the_charts(page):
    with opened(page) as tab:
        seen = [places(tab)]

        def changed(count):
            seen.append(places(tab))
            assert seen[-1] not in seen[:-1]
            assert len(seen[-1]) == 2 * count  # with the legend's

        tab.get_by_label("environment", exact=True).select_option("CartPole-v1")
        changed(4)
        tab.get_by_label("metric").select_option("action_gap")
        changed(4)
        assert "action gap" in tab.locator("figcaption").inner_text()
        tab.get_by_label("mean ± standard deviation").check()
        changed(4)
        assert tab.locator("#charts th").all_text_contents()[1:] == ["mean", "sd", "seeds"]
        tab.get_by_label("logarithmic").check()
        changed(4)
        tab.get_by_role("group", name="algorithm").get_by_label("tal", exact=True).uncheck()
        changed(2)
        assert tab.locator("#scores tbody tr").count() == 2
        tab.get_by_label("one chart for each").select_option("q")
        assert tab.locator("figure").count() == 2
        tab.get_by_role("group", name="q", exact=True).get_by_label("3").uncheck()
        assert tab.locator("figure").count() == 1
        tab.get_by_role("group", name="algorithm").get_by_label("tsallis-dqn").uncheck()
        assert tab.locator("figure").count() == 0
        assert "No curve is chosen" in tab.locator("#charts").inner_text()


def test_scores_and_comparisons(page):
    """By hand, on Acrobot: seeds have 0, 1, 4, 9, 16 above 20 (tal) or 22 (tsallis-dqn) at q = 2.

    IQM of these is 14/3, the mean 6; of 25 pairs tal wins 9. A score is 0.95 of it.
    """
    with opened(page) as tab:
        rows = [row.split("\t") for row in tab.locator("#scores tbody tr").all_inner_texts()]
        assert [row[0] for row in rows] == [
            "tsallis-dqn, q = 3", "tal, q = 3", "tsallis-dqn, q = 2", "tal, q = 2",
        ]  # fmt: skip
        assert [(row[1], row[5], row[6]) for row in rows] == [
            ("34.8", "5 of 5", ""), ("30.9", "4 of 5", "1 not at the end"),
            ("25.3", "5 of 5", ""), ("23.4", "5 of 5", ""),
        ]  # fmt: skip
        low, high = map(float, rows[3][2].split(" to "))
        assert 19 <= low < 23.4 < high < 34.2
        assert rows[3][4] == "24.7 ± 5.6"
        pairs = [row.split("\t") for row in tab.locator("#pairs tbody tr").all_inner_texts()]
        assert pairs[0][:3] == ["tsallis-dqn, q = 2", "tal, q = 2", "0.64"]
        low, high = map(float, pairs[0][3].split(" to "))
        assert 0.1 < low < 0.64 < high <= 1
        assert [row[5] for row in pairs] == ["5, 5", "5, 4"]
        assert len(pairs) == 2


def values(tab):
    """Head and first row: step, middle, interval, seeds."""
    head = tab.locator("table.values th").first.inner_text()
    row = tab.locator("table.values tbody tr").first.locator("td").all_inner_texts()
    return [head, *row[2:]]


def test_values_follow_the_pointer_and_the_keys(page):
    with opened(page) as tab:
        step, iqm, interval, seeds = values(tab)
        assert (step, iqm, seeds) == ("step 10,000", "24.7", "5")
        low, high = map(float, interval.split(" to "))
        assert 20 <= low < 24.7 < high <= 36
        box = tab.locator("svg[role=img]").bounding_box()
        tab.mouse.move(box["x"] + 60, box["y"] + 100)
        assert values(tab)[:2] == ["step 1,000", "2.47"]
        tab.locator("input[type=range]").focus()
        tab.keyboard.press("ArrowRight")
        assert values(tab)[:2] == ["step 2,000", "4.93"]
        assert tab.locator("input[type=range]").get_attribute("aria-valuetext") == "step 2,000"
        tab.get_by_label("mean ± standard deviation").check()
        assert values(tab) == ["step 10,000", "26", "± 5.9", "5"]
        seeds = tab.locator("table.values tbody tr td:last-child").all_inner_texts()
        assert sorted(seeds) == ["4", "5", "5", "5"]


def test_the_keyboard_reaches_everything(page):
    with opened(page) as tab:
        wanted = tab.evaluate(
            "[...document.querySelectorAll('button,select,input,summary')].filter(e =>"
            " e.checkVisibility() && (e.type !== 'radio' || e.checked)).length"
        )
        reached = set()
        for _ in range(wanted + 20):
            tab.keyboard.press("Tab")
            found = tab.evaluate(
                "(() => { const e = document.activeElement, s = getComputedStyle(e);"
                " const all = [...document.querySelectorAll('button,select,input,summary')];"
                " return [all.indexOf(e), s.outlineStyle, e.accessibleName ?? '',"
                " e.labels?.length || e.textContent.length || (e.ariaLabel ?? '').length]; })()"
            )
            if found[0] >= 0:
                reached.add(found[0])
                assert found[1] == "solid"
                assert found[3]
        assert len(reached) == wanted
        tab.get_by_label("metric").focus()
        before = places(tab)
        tab.keyboard.press("ArrowDown")
        assert places(tab) != before
        assert tab.evaluate("document.activeElement.tagName") == "SELECT"
        tab.get_by_role("group", name="algorithm").get_by_label("tal", exact=True).focus()
        tab.keyboard.press("Space")
        assert len(places(tab)) == len(before) / 2


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark(page, dark):
    def luminance(tab):
        colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(",")))

    with opened(page, dark=dark) as tab:
        assert (luminance(tab) < 200) == dark
        tab.locator("#theme").click()
        assert (luminance(tab) < 200) != dark
        tab.locator("#theme").click()
        assert (luminance(tab) < 200) == dark


def test_clips_play_when_they_are_asked_to(page):
    with opened(page) as tab:
        assert tab.locator("#clips img").get_attribute("src") is None
        for summary in tab.locator("#clips summary").all():
            summary.click()
        tab.wait_for_function("document.querySelector('#clips img').naturalWidth === 64")
        if video.ffmpeg():
            tab.wait_for_function("document.querySelector('#clips video').videoWidth === 64")


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_does_not_scroll_sideways(page, dark):
    with opened(page, PHONE, dark) as tab:
        for summary in tab.locator("summary").all():
            summary.click()
        for metric in tab.get_by_label("metric").locator("option").all():
            tab.get_by_label("metric").select_option(metric.get_attribute("value"))
            assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        tab.set_viewport_size(DESKTOP)
        tab.wait_for_function("document.querySelector('#charts svg').clientWidth > 900")


def test_damage_is_on_the_page(tmp_path):
    root = tmp_path / "some"
    runs.write_run(root / "good")
    shutil.copytree(root / "good", root / "old")
    about = json.loads((root / "old" / "run.json").read_text())
    (root / "old" / "run.json").write_text(json.dumps(about | {"schema": 1}))
    with opened(runs.write_page(root)) as tab:
        assert "has schema 1" in tab.locator("#problems").inner_text()
        assert len(places(tab)) == 2


def test_it_opens_where_there_is_most_and_shows_all(tmp_path):
    """No episode of Breakout ended, Acrobot has one run, CartPole two."""
    root = tmp_path / "some"
    runs.write_run(root / "one", "Acrobot-v1")
    empty = runs.write_run(root / "none", "MinAtar/Breakout") / "metrics.csv"
    text = empty.read_text().splitlines()
    place = text[0].split(",").index("episodes")
    rows = [line.split(",") for line in text[1:]]
    kept = [",".join([*row[:place], "0", *row[place + 1 :]]) for row in rows]
    empty.write_text("\n".join([text[0], *kept, ""]))
    for algo in ("tal", "dqn"):
        runs.write_run(root / algo, algo=algo)
    with opened(runs.write_page(root)) as tab:
        chosen = tab.get_by_label("environment", exact=True)
        assert chosen.locator("option:checked").inner_text() == "CartPole-v1"
        assert tab.locator("svg text.label").all_text_contents() == ["tal", "dqn"]
        chosen.select_option("MinAtar/Breakout")
        assert tab.get_by_label("metric").input_value() != "episode_return"
        chosen.select_option("all of them")
        titles = tab.locator("figcaption").all_inner_texts()
        assert len(titles) == tab.locator("#scores table").count() == 3
        assert tab.evaluate("document.activeElement.tagName") in ("SELECT", "BODY")


def test_a_single_point_has_a_mark(tmp_path):
    runs.write_run(tmp_path / "some" / "short", rows=1, status="stopped")
    with opened(runs.write_page(tmp_path / "some")) as tab:
        (line,) = (d for d in places(tab) if d != "M0 7H34")
        assert "L" not in line
        assert tab.locator("svg[role=img] path.mark").count() == 2  # its own, and that of its name
