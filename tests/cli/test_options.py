"""The options of `tsallax train`: each explained, in a group, with the field's own spellings."""

import contextlib
import io
import os
import re
from unittest import mock

import pytest

from tsallax import cli
from tsallax.cli.config_options import GROUPS, in_effect
from tsallax.training.config import FIELDS


def asked(*arguments):
    """The configuration that a command line asks for."""
    with mock.patch("tsallax.training.build.make_run", side_effect=ValueError("asked")) as make:
        assert cli.main(["train", *arguments]) == 2
    return make.call_args.args[0]


@pytest.fixture(scope="module")
def help_text():
    """As a terminal of 200 columns shows it, without the frames."""
    out = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": "200"}),
        contextlib.redirect_stdout(out),
        pytest.raises(SystemExit) as end,
    ):
        cli.main(["train", "--help-all"])
    assert end.value.code == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


def test_every_option_has_a_text_and_a_group(help_text):
    words = " ".join(re.sub("[│╭╮╰╯─]", " ", help_text).split())
    for name, field in FIELDS.items():
        assert field.metadata["group"] in GROUPS
        assert len(field.metadata["help"]) > 8, name
        option = "ENV" if name == "env" else f"--{name.rstrip('_').replace('_', '-')}"
        assert re.search(rf"(^| ){option}\b", words), name
        assert " ".join(field.metadata["help"].split())[:40] in words, name


def test_the_groups_are_shown(help_text):
    for group, text in GROUPS.items():
        assert re.search(rf"{group} options", help_text), group
        assert text in " ".join(re.sub("[│╭╮╰╯─]", " ", help_text).split())


def test_no_default_is_shown_that_is_none(help_text):
    assert not re.search(r"\bNone\b", help_text)


def test_the_value_in_effect_is_shown_per_preset():
    assert in_effect("batch") == "default: gym 128, minatar 32, atari 32"
    assert in_effect("num_envs") == "default: gym 16, minatar 128, atari 8"
    assert in_effect("gamma") == "default: 0.99"
    assert in_effect("stack") == "default: gym 0, minatar 0, atari 4"
    assert in_effect("learner") == "tuned: parallel; paper: replay"
    assert in_effect("beta") == (
        "tuned: gym 0.3, minatar 0.5, atari 0.5; paper: gym 0.99, minatar 0.9, atari 0.9"
    )
    assert in_effect("tag") == ""


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--lr", "1e-4", "3e-4"], {"learning_rate": (1e-4, 3e-4)}),
        (["--learning-rate", "1e-4"], {"learning_rate": (1e-4,)}),
        (["--total-timesteps", "1e3"], {"steps": 1024}),  # in rollouts of 16 x 32
        (["--steps", "2_000"], {"steps": 2048}),
        (["--warmup", "0", "--choices", "sb3", "--steps", "1e5"], {"warmup": 128}),
        (["--choices", "sb3", "--steps", "1e5"], {"warmup": 50_000}),
        (["--hidden", "64", "32"], {"hidden": (64, 32)}),
        (["--q", "inf", "1.5"], {"q": (float("inf"), 1.5)}),
        (["--clip-rewards", "True"], {"clip_rewards": True}),
        (["--clip-rewards"], {"clip_rewards": True}),
        (["--layer-norm", "False", "--duelling"], {"layer_norm": False, "dueling": True}),
        (["--preset", "paper", "--double", "--n-step", "3"], {"double": True, "n_step": 3}),
        (["--learner", "replay", "--prioritized", "--polyak", "0.1"], {"tau": (0.1,)}),
        (["--preset", "paper", "--double", "False"], {"double": None}),
        (["--head", "quantile"], {"head": "quantile"}),
        ([], {"q": (2.0,), "preset": "tuned", "num_envs": 16, "batch": None}),
        (["--preset", "paper"], {"q": (2.0,), "preset": "gym", "batch": 128, "num_envs": None}),
    ],
)
def test_the_spellings_of_the_field(arguments, found):
    config = asked("CartPole-v1", *arguments)
    assert {name: getattr(config, name) for name in found} == found


def test_a_stack_of_0_on_atari_is_0():
    pytest.importorskip("ale_py")
    assert asked("ALE/Pong-v5").stack == 4
    assert asked("ALE/Pong-v5", "--stack", "0").stack == 0


@pytest.mark.parametrize(
    "words",
    [
        *(("--steps", "1.5"), ("--steps", "1e400"), ("--seeds", "two"), ("--q",), ("--q", "x")),
        *(("--double", "yes"), ("--double", "True", "True")),
    ],
)
def test_what_is_no_number_is_refused(words, capsys):
    try:
        code = cli.main(["train", "CartPole-v1", *words])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err
