"""What a newcomer sees first: help that fits a screen, and says nothing that is not so."""

import contextlib
import io
import re
import subprocess
import sys
from importlib import import_module

import pytest
import tyro

from tsallax import cli
from tsallax.cli import train, tune
from tsallax.cli.help_page import help_page, refusal
from tsallax.training.config import Config
from tsallax.training.resolve import resolve

SCREEN = (80, 24)


def help_of(name: str, capsys, monkeypatch, *words: str) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    arguments = [*([name] if name else []), *(words or ["--help"])]
    with contextlib.suppress(SystemExit):  # by which tyro's own help ends
        assert cli.main(arguments) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("name", ["", *cli.COMMANDS])
def test_help_fits_a_screen(name, capsys, monkeypatch):
    """Lines as a terminal of 80 columns breaks them."""
    lines = help_of(name, capsys, monkeypatch)
    assert lines[0].startswith(f"usage: tsallax {name}".rstrip())
    assert max(map(len, lines)) <= SCREEN[0]
    assert len(lines) < SCREEN[1]  # and the next prompt


@pytest.mark.parametrize("name", sorted({*cli.COMMANDS} - {"train", "tune"}))
def test_help_has_every_option_that_is_there(name):
    """Each option that the help names is understood, and no other is."""
    run = import_module(cli.COMMANDS[name].module).run
    boxed = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(boxed):
        tyro.cli(run, args=["--help"], config=(tyro.conf.FlagCreatePairsOff,))
    understood = set(re.findall(r"^(?:│| ) (?:-o PATH, )?(--[a-z-]+)", boxed.getvalue(), re.M)) - {
        "--help"
    }
    assert set(re.findall(r"^  .*?(--[a-z-]+)", help_page(name, run), re.M)) == understood


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["train", "CartPole-v1", "--seed", "3"],
            "--seed, 3; perhaps you meant --seeds or --first-seed.",
        ),
        (["train", "CartPole-v1", "--q", "two"], "--q: could not convert string to float: 'two'."),
        (["reproduce", "fig1", "--scale", "tiny"], "Expected one of ('smoke', 'quick', 'long',"),
        (["push", "runs/first"], "missing: REPO USER/NAME, which is created if it does not exist."),
    ],
    ids=lambda words: words[0],
)
def test_a_command_line_that_is_not_understood_is_refused_in_one_line(words, said, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"tsallax {words[0]}: ")
    assert said in line
    assert line.endswith(f" Options: tsallax {words[0]} --help")


@pytest.mark.parametrize("module", [train, tune], ids=["train", "tune"])
def test_first_help_has_only_options_that_are_there(module, capsys, monkeypatch):
    """Each is among all options, each example is a command line that is understood."""
    name = module.__name__.rpartition(".")[2]
    everything = "\n".join(help_of(name, capsys, monkeypatch, "--help-all"))
    first = re.findall(r"^  (--[a-z-]+)", module.HELP, re.M)
    assert len(first) >= 7
    for option in first:
        assert re.search(rf"{option} (?!-)", everything), option
    assert all(len(line) <= SCREEN[0] for line in module.HELP.splitlines())
    examples = re.findall(r"^  tsallax (\w+) (.+?)(?:  .*)?$", module.HELP, re.M)
    assert len(examples) == 3
    for command, words in examples:
        assert callable(cli.parse(command, words.split()))


def test_defaults_of_the_first_help_are_in_effect():
    said = dict(re.findall(r"--(\w+) .*\(default: ([\w./-]+)\)", train.HELP))
    call = cli.parse("train", ["CartPole-v1"])
    common = call.keywords["options"].common
    assert "(default: tal, continuous actions: tal-ac)" in train.HELP
    usual = [resolve(Config(env)).algo for env in ("CartPole-v1", "Pendulum-v1")]
    assert usual == ["tal", "tal-ac"]
    assert said["seeds"] == str(common.seeds)
    own = cli.parse("tune", ["CartPole-v1"]).keywords
    told = dict(re.findall(r"--(\w+) .*\(default: (\d+)\)", tune.HELP))
    assert told == {
        "trials": str(own["trials"]),
        "seeds": str(own["options"].common.seeds),
        "confirm": str(own["confirm"]),
    }


NASTY = "\x1b[31mred\nline"


@pytest.mark.parametrize(
    "words",
    [
        ["train", "CartPole-v1", f"--{NASTY}"],
        ["train", "CartPole-v1", "--q", NASTY],
        ["train", "CartPole-v1", "--network", NASTY],
        ["explore", NASTY],
        ["play", "run", NASTY],
    ],
    ids=lambda words: f"{words[0]}-{len(words)}",
)
def test_a_word_that_is_not_understood_is_shown_without_control_characters(words, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 2
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "\\x1b[31mred" in said.err


def test_help_does_not_wait_for_jax():
    """Of the command itself; a subcommand's options may need it."""
    code = "import sys; from tsallax.cli import main; main(['--help']); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")


def test_a_refusal_without_a_frame_is_one_line_as_well():
    assert refusal("play", "no\nsuch option\n").startswith("tsallax play: no such option. Options")
