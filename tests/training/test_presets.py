"""Which settings a run has if nothing is given: tuned, the paper's, or those of a file."""

import math

import pytest

import tsallax
from support import host_envs, tiny  # noqa: F401 (one registers)
from support.configs import paper
from tsallax.experiments.jobs import folder_name
from tsallax.training import tuned
from tsallax.training.config import FIELDS, Config, to_json
from tsallax.training.presets import OPEN, PRESETS, with_preset_file
from tsallax.training.resolve import resolve
from tsallax.training.stored_config import from_json


def test_what_is_not_given_is_tuned():
    config = resolve(Config("CartPole-v1"))
    assert (config.preset, config.learner, config.choices) == ("tuned", "parallel", None)
    assert config.steps == 300_032  # in whole rollouts of 16 x 32
    assert config.eval_every == -(-300_000 // 20)
    assert resolve(Config("CartPole-v1", preset="tuned")) == config == resolve(config)


@pytest.mark.parametrize(
    ("env", "name"),
    [("CartPole-v1", "gym"), ("MinAtar/Asterix", "minatar"), ("ALE/Pong-v5", "atari")],
)
def test_paper_is_the_table_of_the_domain(env, name):
    if name == "atari":
        pytest.importorskip("ale_py")
    by_word, by_name = (resolve(Config(env, preset=preset)) for preset in ("paper", name))
    assert by_word == by_name
    assert folder_name(by_word) == folder_name(by_name)
    assert (by_word.preset, by_word.learner, by_word.steps) == (name, "replay", 100_000)
    assert (by_word.eval_every, by_word.eval_episodes, by_word.choices) == (0, 10, "paper")


def test_the_digest_of_a_paper_run_is_as_before():
    """Folders of studies that were begun by older versions are found again."""
    assert folder_name(paper("CartPole-v1")).endswith("-591380d62ab8")


def test_choices_are_the_papers():
    assert resolve(Config("CartPole-v1", choices="sb3")).preset == "gym"
    with pytest.raises(ValueError, match="'sb3' are for the preset paper, not tuned"):
        resolve(Config("CartPole-v1", choices="sb3", preset="tuned"))


@pytest.mark.parametrize("env", tuned.TUNED)
def test_every_tuned_entry_is_complete_and_its_first_learner_is_chosen(env):
    config = resolve(Config(env))
    learner, own = next(iter(tuned.TUNED[env].items()))
    assert config.learner == learner
    for name, value in own.items():
        assert name in OPEN
        assert name == "steps" or getattr(config, name) == value, name
    assert resolve(config) == config
    assert from_json(to_json(config), 3) == config


def test_the_other_learner_has_its_own_settings():
    config = resolve(Config("CartPole-v1", learner="replay"))
    assert (config.learner, config.batch, config.num_envs) == ("replay", 128, None)
    assert config.preset == "tuned"
    with pytest.raises(
        ValueError, match="batch is no option of the parallel learner: give learner"
    ):
        resolve(Config("CartPole-v1", batch=32))


@pytest.mark.parametrize(
    ("env", "network", "hidden"),
    [
        ("tests/Naughty-v0", "mlp", (128, 128)),
        ("tests/Drop-v0", "nature", (512,)),
    ],
)
def test_an_unknown_environment_is_judged_by_what_it_shows(env, network, hidden):
    config = resolve(Config(env))
    assert (config.preset, config.learner) == ("tuned", "parallel")
    assert (config.network, config.hidden, config.clip_rewards) == (network, hidden, False)
    assert config.num_envs == tuned.PARALLEL["gym" if network == "mlp" else "atari"]["num_envs"]


def test_general_settings_exist_for_both_learners():
    assert set(tuned.GENERAL) == set(PRESETS)
    for by_learner in tuned.GENERAL.values():
        assert list(by_learner) == ["parallel", "replay"]


def write(path, text):
    path.write_text(text)
    return str(path)


def test_a_file_is_used_where_nothing_is_given(tmp_path):
    name = write(tmp_path / "mine.toml", "steps = 1e4\nlearning_rate = 0.1\nalpha = [1, 2]\n")
    config = with_preset_file(Config("CartPole-v1", preset=name, learning_rate=(0.2,)))
    assert config == Config("CartPole-v1", steps=10_000, learning_rate=(0.2,), alpha=(1.0, 2.0))
    found = resolve(config)
    assert (found.preset, found.alpha) == ("tuned", (1.0, 2.0))
    assert name not in str(to_json(found))


def test_a_file_may_name_its_algorithm(tmp_path):
    name = write(tmp_path / "mine.toml", 'algo = "dqn"')
    assert resolve(with_preset_file(Config("CartPole-v1", preset=name))).algo == "dqn"
    assert resolve(with_preset_file(Config("CartPole-v1", algo="al", preset=name))).algo == "al"


def test_a_file_may_stand_on_the_paper(tmp_path):
    name = write(tmp_path / "mine.toml", 'preset = "paper"\nbatch = 64\nhidden = [8]\nclip = -inf')
    found = resolve(with_preset_file(Config("CartPole-v1", preset=name)))
    assert found == paper("CartPole-v1", batch=64, hidden=(8,), clip=(-math.inf,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("betta = 1", "no option 'betta'; did you mean 'beta'"),
        ("seeds = 3", "no option 'seeds'; a preset cannot set it"),
        ("algo = 'dqm'", "unknown algorithm 'dqm'; did you mean 'dqn'"),
        ("beta = 'high'", "beta must be a number or several, not 'high'"),
        ("beta = ", "Invalid value"),
        ("preset = 'other.toml'", "preset must be one of"),
        ("beta = -1", "beta must be 0 or more, not -1"),
        ("hidden = 1.5", "hidden widths must be whole"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, text, message):
    name = write(tmp_path / "bad.toml", text)
    with pytest.raises(ValueError, match=message):
        resolve(with_preset_file(Config("CartPole-v1", preset=name)))


def test_an_endless_file_is_not_read(tmp_path):
    (tmp_path / "mine.toml").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="zero is not a regular file"):
        with_preset_file(Config("CartPole-v1", preset=str(tmp_path / "mine.toml")))


def test_a_run_folder_never_leads_to_a_file(tmp_path):
    """Its preset is a word; a path in it is refused, unread."""
    stored = {**to_json(paper("CartPole-v1")), "preset": str(tmp_path / "there.toml")}
    with pytest.raises(ValueError, match="preset must be one of"):
        from_json(stored, 3)


def test_python_takes_a_file_too(tmp_path):
    name = tmp_path / "tiny.toml"
    rows = [f"{n} = {x!r}" for n, x in tiny.SHAPE.items() if n != "hidden"]
    name.write_text("\n".join([*rows, "hidden = [8]"]))
    result = tsallax.train("CartPole-v1", preset=name, steps=120, time_limit=15, q=2.0)
    assert result.config == tiny.config(q=(2.0,), seeds=1, eval_every=0, eval_episodes=10)


def test_a_file_can_say_all_that_presets_say():
    said = {n for own in (*PRESETS.values(), *tuned.PARALLEL.values()) for n in own}
    assert said <= set(OPEN) < set(FIELDS)
