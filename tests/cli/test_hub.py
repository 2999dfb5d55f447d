"""Runs that travel: pushed and pulled by the Hub's own client, against a small Hub on loopback."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.hub_server import Hub
from tsallax import cli, load
from tsallax.storage import portable
from tsallax.storage.run_folder import BEST, RUN, WEIGHTS

REPO = "me/cartpole-tal"
# The client's own business, with its own package for requests.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture(scope="module")
def hub():
    with Hub() as hub:
        yield hub


@pytest.fixture(autouse=True)
def _here(hub, tmp_path, monkeypatch):
    """The client reads its settings when it is imported: set before, and again in what it kept."""
    own = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": "hf_test"}
    own |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(
        constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        hub.url + "/{repo_id}/resolve/{revision}/{filename}",
    )
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.chdir(tmp_path)
    hub.repos.clear()
    hub.listed.clear()
    hub.tokens.clear()


@pytest.fixture
def pushed(hub, finished):
    assert cli.main(["push", str(finished), REPO]) == 0
    return hub.repos[REPO]


def refused(capsys, *words: str) -> str:
    """The one line that a command leaves; nothing else, and no folder."""
    assert cli.main(["pull", REPO, *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("tsallax: ")
    assert said.err.count("\n") == 1
    assert not Path("runs/cartpole-tal").exists()
    return said.err


def test_what_is_pushed_is_pulled_to_the_bit(hub, finished, pushed):
    """Pulled by a process of its own, which has nothing but HF_ENDPOINT to go by."""
    command = [sys.executable, "-m", "tsallax", "pull", REPO]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(
        "tal on CartPole-v1, 4 runs side by side: 2 settings x 2 seeds, return "
    )
    assert done.stderr == ""
    there = Path("runs/cartpole-tal")
    assert {p.name for p in there.iterdir()} == set(pushed) - {"README.md"}
    for path in there.iterdir():
        assert path.read_bytes() == (finished / path.name).read_bytes()
    assert "checkpoints" in {p.name for p in finished.iterdir()}  # which stay where they are
    assert load(there, best=True).predict([0.0] * 4)[0] in (0, 1)
    assert set(hub.tokens) == {"Bearer hf_test"}  # of the environment, as the client has it


def test_the_page_of_a_run(pushed, finished):
    """Its metadata by the Hub's own reader; the score by hand: the mean of the best evaluations."""
    from huggingface_hub import ModelCard

    card = ModelCard(pushed["README.md"].decode())
    best = json.loads((finished / RUN).read_text())["best"]["return"]
    assert card.data.library_name == "tsallax"
    assert {"CartPole-v1", "tal", "reinforcement-learning"} <= set(card.data.tags)
    (result,) = card.data.eval_results
    assert (result.dataset_name, result.metric_type) == ("CartPole-v1", "mean_reward")
    assert result.metric_value == round(sum(best) / 4, 2)
    assert result.metric_name == "mean return of the best weights, 4 agents, 2 episodes each"
    for line in (
        "# tal on CartPole-v1",
        "![Learning curves](curves.png)",
        "tsallax pull me/cartpole-tal --out runs/cartpole-tal",
        'model = tsallax.load("runs/cartpole-tal", best=True)',
        "| `target_period` | `40` |",
        "| `q` | `1.5 3` |",
    ):
        assert line in card.text.splitlines(), line
    rows = [line for line in card.text.splitlines() if line.startswith("| q = ")]
    assert [row.split(" | ")[:2] for row in rows] == [["| q = 1.5", "2"], ["| q = 3", "2"]]


def test_a_name_cannot_break_the_page(hub, finished, tmp_path):
    """A tag with a newline, a table's rule, an escape and the end of the metadata."""
    run = shutil.copytree(finished, tmp_path / "run")
    about = json.loads((run / RUN).read_text())
    about["config"]["tag"] = "a|b\n---\n# x\x1b[31m`<script>"
    (run / RUN).write_text(json.dumps(about))
    assert cli.main(["push", str(run), REPO]) == 0
    text = hub.repos[REPO]["README.md"].decode()
    assert "| `tag` | `a\\|b\\n---\\n# x\\x1b[31m<script>` |" in text.splitlines()


def test_only_the_files_of_a_run_are_taken(hub, pushed, capsys):
    pushed |= {
        "../../evil": b"x",
        "setup.py": b"raise SystemExit",
        "checkpoints/x": b"x",
        ".lock": b"",
    }
    assert cli.main(["pull", REPO, "--out", "new"]) == 0
    assert {p.name for p in Path("new").iterdir()} <= set(portable.LIMITS)
    assert {p.name for p in Path().iterdir()} <= {"new", "home"}


def test_metrics_that_do_not_say_whose_they_are_are_not_pushed(hub, finished, tmp_path, capsys):
    path = shutil.copytree(finished, tmp_path / "run")
    table = path / "metrics.csv"
    table.write_text(table.read_text().replace("seed,q,", "seed,other,", 1))
    assert cli.main(["push", str(path), REPO]) == 2
    assert "does not say before the step which setting a row is of" in capsys.readouterr().err
    (path / "run.json").write_text(
        (finished / "run.json").read_text().replace('"return": [', '"return": [[], ', 1)
    )
    shutil.copy(finished / "metrics.csv", table)
    assert cli.main(["push", str(path), REPO]) == 0  # what is no number is none


def test_damaged_or_hostile_content_is_one_line(hub, pushed, capsys):
    capsys.readouterr()
    good = dict(pushed)
    about = json.loads(good[RUN])

    def changed(**fields) -> bytes:
        return json.dumps({**about, **fields}).encode()

    cases = {
        "damaged run.json": {RUN: good[RUN][:-20]},
        "a damaged run.json": {RUN: b"[" * 100_000},
        "weights.safetensors is damaged": {WEIGHTS: good[WEIGHTS][:-1] + b"\1"},
        "best.safetensors is damaged": {BEST: good[BEST] + b"more"},
        "is no finished run": {RUN: changed(status="running")},
        "no weights": {RUN: changed(files={})},
        "do not agree on initial": {"initial.safetensors": b"x"},
        "needs 'turtle'": {RUN: changed(config={**about["config"], "env": "turtle:Evil-v0"})},
        "unknown environment": {RUN: changed(config={**about["config"], "env": "\x1b[31mred\n"})},
        "has other fields": {RUN: changed(config={**about["config"], "more": 1})},
        "weights.safetensors has": {RUN: changed(config={**about["config"], "hidden": [10**9]})},
        "metrics.csv": {"metrics.csv": b"a,b\n1,2\n"},
        "is no run of tsallax": {RUN: None},
    }
    for words, files in cases.items():
        pushed.clear()
        pushed.update({n: x for n, x in {**good, **files}.items() if x is not None})
        said = refused(capsys)
        assert words in said, (words, said)
        assert said[:-1].isprintable()


def test_a_file_that_is_too_large_is_not_taken(hub, pushed, capsys, monkeypatch):
    """Neither one that the listing says is large, nor one that turns out to be."""
    capsys.readouterr()
    hub.listed["metrics.csv"] = 1 << 40
    assert "metrics.csv has 1,099,511,627,776 bytes; at most 268,435,456" in refused(capsys)
    hub.listed["metrics.csv"] = 1
    monkeypatch.setitem(portable.LIMITS, "metrics.csv", 1000)
    assert "metrics.csv has" in refused(capsys)


def test_what_the_hub_refuses_is_one_line(hub, finished, pushed, capsys, monkeypatch):
    capsys.readouterr()
    assert cli.main(["pull", "me/nothing"]) == 2
    assert "there is no me/nothing on the Hub, or you may not see it" in capsys.readouterr().err
    assert cli.main(["pull", "a b/c d"]) == 2
    assert "a repository is USER/NAME, not 'a b/c d'" in capsys.readouterr().err
    Path("taken").mkdir()
    assert cli.main(["pull", REPO, "--out", "taken"]) == 2
    assert "taken is there already" in capsys.readouterr().err
    monkeypatch.delenv("HF_TOKEN")
    assert cli.main(["push", str(finished), REPO]) == 2
    assert "hf auth login, or HF_TOKEN" in capsys.readouterr().err
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert cli.main(["pull", REPO]) == 2
    assert capsys.readouterr().err.startswith("tsallax: the Hub did not answer: ")


def test_an_unfinished_run_is_not_pushed(hub, finished, tmp_path, capsys):
    run = shutil.copytree(finished, tmp_path / "run")
    (run / WEIGHTS).unlink()
    assert cli.main(["push", str(run), REPO]) == 2
    assert "do not agree on weights.safetensors" in capsys.readouterr().err
    assert hub.repos == {}


def test_without_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for words in (["push", "runs/x", REPO], ["pull", REPO]):
        assert cli.main(words) == 2
        assert "install 'tsallax[hub]'" in capsys.readouterr().err


def test_the_client_is_not_imported_by_other_commands():
    code = "import sys, tsallax.cli.hub, tsallax.cli.push, tsallax.cli.pull, tsallax.api\n"
    code += "print('huggingface_hub' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
