"""Texts from outside with markup and scripts: the page of `tsallax report` shows them as text."""

import numpy as np
import pytest

from support import runs
from support.browser import DESKTOP, PHONE, needs_browser, opened
from tsallax.experiments import judging
from tsallax.experiments.claims import CLAIMS

pytestmark = [pytest.mark.slow, needs_browser]

CASES = [
    "<script>pwned=1</script>",
    "</script><script>alert(1)</script>",
    "</SCRIPT ><ScRiPt>alert(2)</sCrIpT>",
    "<!--<script>",
    "--><script>alert(3)</script>",
    "<![CDATA[<script>alert(4)</script>]]>",
    "<img src=x onerror=alert(5)>",
    "<img src=x onerror='alert(6)' ",
    '"><img src=x onerror=alert(7)>',
    "'><svg onload=alert(8)>",
    "<svg><script>alert(9)</script></svg>",
    '<svg><animate onbegin=alert(10) attributeName=x dur=1s>',
    "<svg><a xlink:href=javascript:alert(11)><text y=20>x</text></a></svg>",
    "<math><mtext></mtext><mglyph><style><img src onerror=alert(12)>",
    "<body onload=alert(13)>",
    "<iframe src=javascript:alert(14)></iframe>",
    "<iframe srcdoc='<script>alert(15)</script>'>",
    "<object data=data:text/html,<script>alert(16)</script>>",
    "<embed src=//example.invalid/x.swf>",
    "<link rel=stylesheet href=//example.invalid/x.css>",
    "<meta http-equiv=refresh content='0;url=//example.invalid/'>",
    "<base href=//example.invalid/>",
    "<form action=//example.invalid/><button autofocus onfocus=alert(17)>x",
    "<details open ontoggle=alert(18)>",
    "<input autofocus onfocus=alert(19)>",
    "<video><source onerror=alert(20)></video>",
    "<style>*{display:none!important}</style>",
    "</style><style>@import '//example.invalid/y.css';</style>",
    "}*{background:url(//example.invalid/z)}",
    "expression(alert(21))",
    "javascript:alert(22)",
    "data:text/html,<script>alert(23)</script>",
    "</title><script>alert(24)</script>",
    "</textarea><script>alert(25)</script>",
    "</noscript><img src=x onerror=alert(26)>",
    "</option></select><img src=x onerror=alert(27)>",
    "<template><script>alert(28)</script></template>",
    "{{data}} {{script}} ${alert(29)} #{alert(30)} <%= alert(31) %>",
    "{{constructor.constructor('alert(32)')()}}",
    "`;alert(33)//",
    "';alert(34)//",
    '";alert(35)//',
    "\\u003cscript\\u003ealert(36)\\u003c/script\\u003e",
    "&lt;script&gt;alert(37)&lt;/script&gt;",
    "&#60;script&#62;alert(38)&#x3c;/script&#x3e; &amp; &nbsp; &notanentity;",
    "%3Cscript%3Ealert(39)%3C/script%3E",
    "\uff1cscript\uff1ealert(40)\uff1c/script\uff1e",
    "+ADw-script+AD4-alert(41)+ADw-/script+AD4-",
    "line\u2028separators\u2029and\x85ends\r\n\ttabs",
    "right \u202eto left\u202d and \u2066isolates\u2069 \u200fmarks",
    "zero\u200bwidth\ufeff and e\u0301\u0301\u0301\u0301\u0301 piles",
    "\x00nul\x00",
    "\x1b[31mred\x1b[0m\x07\x7f",
    "lone \ud83d surrogate \udc00",
    "\U0001f468\u200d\U0001f4bb",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "null",
    "1e999",
    "-" * 200 + "x" * 90,
    "../../../etc/passwd",
    "'; DROP TABLE runs; --",
    "  spaces  inside   ",
]  # fmt: skip
TAGS = {
    "html", "head", "meta", "link", "title", "style", "body", "header", "h1", "h2", "button", "p",
    "noscript", "main", "section", "form", "div", "footer", "script", "table", "caption", "thead",
    "tbody", "tr", "th", "td", "label", "select", "option", "fieldset", "legend", "input", "figure",
    "figcaption", "svg", "line", "text", "path", "circle", "details", "summary", "ul", "li",
}  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Every text that comes from outside is a case: folders, fields, reasons, titles, labels."""
    root = tmp_path_factory.mktemp("hostile") / "runs"
    for i, case in enumerate(CASES):
        name = f"{i} {case}".replace("/", "\u2215").replace("\x00", "")
        name = name.encode("utf-8", "replace").decode()[:80] + "\udcff"  # a byte that is no UTF-8
        names = {"env": case, "algo": case, "tag": case}
        status = "stopped" if i % 3 else "done"
        runs.write_run(root / name, status=status, stopped={0: case}, names=names)
    labels = [{"env": "e", "algo": "a", CASES[0]: case} for case in (CASES[0], CASES[6])]
    rows = [{"labels": own, "seeds": 2, "level": 1.0} for own in labels]
    about = {"title": CASES[1], "scale": CASES[6], "machine": CASES[9], "study": "fig1"}
    failed = {case: case for case in CASES}
    runs.write_results(root / "<b>study", rows, **about, failed=failed, unfinished=CASES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "CLAIMS", CLAIMS[:12])  # the last two are compiled, not read
        return runs.write_page(root)


UNITS = "s => Array.from({length: s.length}, (_, i) => s.charCodeAt(i))"


def units(text):
    """UTF-16, as the browser counts: half a surrogate pair does not survive the way otherwise."""
    return tuple(np.frombuffer(text.encode("utf-16-le", "surrogatepass"), np.uint16).tolist())


def texts(tab, selector):
    return set(
        map(
            tuple,
            tab.locator(selector).evaluate_all(f"all => all.map(e => ({UNITS})(e.textContent))"),
        )
    )


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_text_from_outside_stays_text(hostile, size):
    assert len(CASES) >= 40
    with opened(hostile, size) as tab:
        wanted = {units(case) for case in CASES}
        assert wanted <= texts(tab, "#switches option")  # environments
        assert wanted <= texts(tab, "#configs td")  # tags
        reasons = texts(tab, "#problems td")
        assert {units(f"seed 0: {case}") for case in CASES} <= reasons
        assert {units(f"{case} failed: {case}") for case in CASES} <= reasons
        assert {units(c.name) for c in (hostile.parent / "runs").iterdir()} <= reasons | texts(
            tab, "#configs td"
        )
        assert tab.evaluate("typeof pwned") == "undefined"
        assert tab.evaluate("document.scripts.length") == 2
        found = tab.evaluate(
            "[...new Set([...document.querySelectorAll('*:not(#about > a)')].map(e => e.tagName))]"
        )
        assert {tag.lower() for tag in found} <= TAGS
        odd = tab.evaluate(
            "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).map(a => a.name)"
            ".filter(n => /^(on|style$|srcdoc|action|href|src$|xlink)/.test(n) )"
        )
        assert set(odd) <= {"href", "style"}
        assert tab.locator("[href]").evaluate_all("a => a.map(e => e.getAttribute('href'))") == [
            "data:,",
            "#problems",
        ]
        for i in (0, 20, 40, len(CASES) - 1):
            tab.get_by_label("environment", exact=True).select_option(index=i)
            name = tab.get_by_label("environment", exact=True).evaluate(
                "s => s.selectedOptions[0].textContent"
            )
            assert name in tab.locator("figcaption").text_content()
        tab.get_by_label("results").select_option(index=1)
        assert tab.get_by_role("group", name=CASES[0]).get_by_label(CASES[6]).count() == 1
        assert CASES[1] in tab.locator("#studies").text_content()
        assert tab.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_a_script_from_outside_would_not_run(tmp_path):
    """The policy, apart from the care with text: markup that is put in does nothing."""
    harmed = tmp_path / "harmed.html"
    runs.write_run(tmp_path / "runs")
    text = runs.write_page(tmp_path / "runs").read_text()
    bad = "<script>pwned = 1</script><img src=x:y onerror='pwned = 1'>"
    harmed.write_text(text.replace("<main>", f"<main>{bad}"))

    def look():
        with opened(harmed) as tab:
            found.append(tab.evaluate("typeof pwned"))
            with pytest.raises(Exception, match="TrustedHTML"):
                tab.evaluate("document.body.innerHTML = '<b>x'")

    found = []
    with pytest.raises(AssertionError, match="Content Security Policy"):
        look()
    assert found == ["undefined"]
