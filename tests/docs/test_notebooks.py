"""The notebooks run from top to bottom, and are stored as they ran."""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST = 500_000  # bytes of a notebook with its pictures


def read(path: Path) -> dict:
    return json.loads(path.read_text())


def codes(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def kinds(cell: dict) -> list[tuple]:
    """What a cell shows: texts and pictures, not what they say.

    A text may arrive in several parts, whose number depends on the moment.
    """
    parts = [
        (out["output_type"], out.get("name"), *sorted(out.get("data", ())))
        for out in cell["outputs"]
    ]
    return [part for part, before in zip(parts, [(), *parts], strict=False) if part != before]


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["first_steps", "study_of_q"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_with_what_it_shows(path):
    """Every cell was run in order, and none failed or left warnings."""
    notebook = read(path)
    cells = codes(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    shown = [out for cell in cells for out in cell["outputs"]]
    assert len(shown) >= 4
    assert not [out for out in shown if out["output_type"] == "error"]
    assert not [out for out in shown if out.get("name") == "stderr"]
    assert sum("image/png" in out.get("data", ()) for out in shown) >= 2
    assert path.stat().st_size < MOST
    assert str(ROOT) not in path.read_text()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_installs_the_package_where_it_is_missing(path):
    """By its name alone: no addresses in the cells, which a reader would have to trust."""
    first, *rest = ("".join(cell["source"]) for cell in codes(read(path)))
    assert "%pip install --quiet tsallax\n" in first
    assert first.startswith("try:\n    import tsallax\nexcept ImportError:")
    for source in (first.replace("%pip", "# %pip"), *rest):
        ast.parse(source)
    text = "".join("".join(cell["source"]) for cell in read(path)["cells"])
    assert not re.search(r"https?://|git\+", text)
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_run_is_one_line_that_is_written_over(path):
    """However many periods it has: one output with a bar, and the last thing that it said."""
    (cell,) = [c for c in codes(read(path)) if "progress=True" in "".join(c["source"])]
    bars = [
        "".join(out["data"]["text/html"])
        for out in cell["outputs"]
        if "<progress" in "".join(out.get("data", {}).get("text/html", ""))
    ]
    assert len(bars) == 1
    assert re.search(
        r'value="(\d+)" .*> [\d,]+ / [\d,]+ steps   in (\d+m )?\d+s   return ', bars[0]
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_it_runs_and_shows_what_is_stored(path, tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.delenv("XLA_FLAGS", raising=False)  # as a reader runs it, at full speed
    notebook = nbformat.read(path, 4)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=None, kernel_name="python3", resources=where).execute()
    assert [kinds(cell) for cell in codes(notebook)] == [kinds(cell) for cell in codes(read(path))]
