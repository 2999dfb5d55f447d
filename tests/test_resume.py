"""A run that is stopped and goes on is the run that was never stopped, to the bit."""

import json
import os
import shutil
import signal
import subprocess
import time

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

import faults
import host_envs  # noqa: F401 (registers)
from tsallax import cli
from tsallax.training import checkpoint, tensors
from tsallax.training.conduct import Interrupt, resume
from tsallax.training.config import Config, resolve
from tsallax.training.folder import Folder, last_checkpoint
from tsallax.training.run import make_run
from tsallax.training.session import session

FIELDS = {
    "steps": 160,
    "hidden": (8,),
    "target_period": 40,
    "batch": 8,
    "buffer": 60,  # the ring goes round
    "seeds": 2,
    "eval_every": 80,
    "eval_episodes": 1,
}
CARTPOLE = Config("CartPole-v1", **FIELDS, time_limit=15, q=(1.5, 2.0))


def interrupted(config, stops, tmp_path):
    """Every period's metrics, from processes that each know only what the last one saved."""
    seen, state = [], None
    for stop in [*stops, config.steps]:
        run = make_run(config)  # nothing compiled or drawn is shared with the last one
        folder = Folder(tmp_path, config, run.cells, resume=bool(seen))
        if seen:
            saved, refused = last_checkpoint(tmp_path, config, run.specs)
            assert not refused
            folder.rewind(saved.about["sizes"])
            state = run.thaw(saved.arrays, saved.about["run"])
        else:
            state = run.start()
        for period in session(run, state):
            folder.add(period.metrics, period.evaluation)
            seen.append(period)
            if period.step == stop:
                folder.checkpoint(period.step, *run.freeze(period.state))
                break
        os.close(folder._lock)
    return seen


def test_compiled_runs_go_on_to_the_bit(tmp_path):
    config = resolve(CARTPOLE)
    run = make_run(config)
    whole = list(session(run, run.start()))
    parts = interrupted(config, [80], tmp_path)
    assert [p.step for p in parts] == [40, 80, 120, 160]
    for a, b in zip(whole, parts, strict=True):
        jax.tree.map(np.testing.assert_array_equal, a.metrics, b.metrics)
        assert (a.evaluation is None) == (b.evaluation is None)
        if a.evaluation is not None:
            np.testing.assert_array_equal(a.evaluation, b.evaluation)
    last, other = run.freeze(whole[-1].state)[0], run.freeze(parts[-1].state)[0]
    assert last.keys() == other.keys()
    for name in last:
        np.testing.assert_array_equal(last[name], other[name])


def test_host_runs_lose_nothing_but_the_running_episode(tmp_path):
    config = resolve(Config("tests/Naughty-v0", **FIELDS))
    parts = interrupted(config, [80], tmp_path)
    assert [p.step for p in parts] == [40, 80, 120, 160]
    table = pd.read_csv(tmp_path / "metrics.csv")
    assert list(table.step) == sorted([40, 80, 120, 160] * 2)
    assert np.isfinite(table.loss).all()
    np.testing.assert_array_equal(parts[-1].state.step, [160, 160])


def test_arrays_of_every_width_are_saved(tmp_path):
    arrays = {str(x): np.arange(3).astype(x) for x in (jnp.bfloat16, np.float16, np.uint64)}
    digest = tensors.write(tmp_path / "x", arrays)
    back = tensors.read(tmp_path / "x", tensors.specs(arrays), digest)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)
    with pytest.raises(ValueError, match="weights has the type complex64"):
        tensors.header({"weights": tensors.Spec((3,), np.complex64)})


def test_the_host_replay_is_kept(tmp_path):
    config = resolve(Config("tests/Naughty-v0", **{**FIELDS, "stack": 2, "network": "mlp"}))
    run = make_run(config)
    state = next(iter(session(run, run.start()))).state
    arrays, about = run.freeze(state)
    assert run.specs(about).keys() == arrays.keys()
    other = make_run(config)
    back = other.thaw(arrays, about)
    generators = lambda: [np.random.default_rng(i) for i in range(2)]  # noqa: E731
    at = {name: getattr(state.replay, name).copy() for name in ("newest", "filled", "starts")}
    assert (back.replay.newest == at["newest"] + 1).all()  # a new episode
    old, new = state.replay.sample(generators(), 500), back.replay.sample(generators(), 500)
    for cell in range(2):
        seen = {x.tobytes() for x in old.observation[cell]}
        assert {x.tobytes() for x in new.observation[cell]} <= seen
    assert not back.replay.starts[:, back.replay.newest].any()


@pytest.fixture(scope="module")
def checkpointed(tmp_path_factory):
    path = tmp_path_factory.mktemp("resume")
    config = resolve(CARTPOLE)
    run = make_run(config)
    folder = Folder(path, config, run.cells)
    for period in session(run, run.start()):
        folder.add(period.metrics, period.evaluation)
        folder.checkpoint(period.step, *run.freeze(period.state))
    os.close(folder._lock)
    return path, config, run


def test_the_last_two_are_kept_and_readable_by_safetensors(checkpointed):
    path, _, run = checkpointed
    assert [p.name[-3:] for p in checkpoint.steps(path)] == ["120", "160"]
    assert load_file(checkpoint.steps(path)[0] / checkpoint.ARRAYS).keys() == run.specs({}).keys()


def test_a_damaged_one_is_said_and_the_one_before_is_taken(checkpointed, tmp_path):
    path, config, run = checkpointed
    newest = checkpoint.steps(path)[-1] / checkpoint.ARRAYS
    good = newest.read_bytes()
    newest.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    saved, refused = last_checkpoint(path, config, run.specs)
    newest.write_bytes(good)
    assert saved.step == 120
    assert len(refused) == 1
    assert "damaged" in refused[0]


@pytest.mark.parametrize("bad", [1, 2])
def test_a_run_goes_on_from_before_refused_ones_and_keeps_what_it_saves(
    checkpointed, tmp_path, bad
):
    path, config, run = checkpointed
    own = tmp_path / "run"
    shutil.copytree(path, own)
    for newest in checkpoint.steps(own)[-bad:]:
        (newest / checkpoint.MANIFEST).write_text("{}")
    folder = Folder(own, config, run.cells, resume=True)
    told = []
    state = resume(run, folder, told.append)
    start = int(state.step[0])
    assert start == {1: 120, 2: 0}[bad]
    assert len(told) == bad + 1
    for period in session(run, state):
        folder.checkpoint(period.step, *run.freeze(period.state))
        assert last_checkpoint(own, config, run.specs)[0].step == period.step
        assert len(checkpoint.steps(own)) == min(2, (period.step - start) // 40 + (bad == 1))
    os.close(folder._lock)


@pytest.mark.parametrize(
    "lie", [{"config": 1}, {"sizes": {}}, {"sizes": {"metrics.csv": -1}}, {"run": []}]
)
def test_a_manifest_of_nobodys_run_is_refused(checkpointed, tmp_path, lie):
    path, config, run = checkpointed
    own = tmp_path / "run"
    shutil.copytree(path, own)
    for saved in checkpoint.steps(own):
        body = checkpoint.read_manifest(saved)
        (saved / checkpoint.MANIFEST).write_bytes(
            checkpoint._manifest({**body, "about": {**body["about"], **lie}})
        )
    saved, refused = last_checkpoint(own, config, run.specs)
    assert saved is None
    assert all("says too little" in why for why in refused)
    assert len(refused) == 2


def test_a_resumed_run_still_knows_its_weights(checkpointed, tmp_path):
    path, config, run = checkpointed
    own = tmp_path / "run"
    shutil.copytree(path, own)
    about = json.loads((own / "run.json").read_text())
    about["files"] = {"weights.safetensors": {"size": 1, "sha256": "0"}}
    (own / "run.json").write_text(json.dumps(about))
    folder = Folder(own, config, run.cells, resume=True)
    os.close(folder._lock)
    assert json.loads((own / "run.json").read_text())["files"] == about["files"]


def test_another_configuration_is_refused(checkpointed):
    path, _, run = checkpointed
    other = resolve(Config("CartPole-v1", **FIELDS, time_limit=15, q=(1.5, 2.5)))
    saved, refused = last_checkpoint(path, other, run.specs)
    assert saved is None
    assert all("another configuration" in why for why in refused)


def test_two_processes_do_not_share_a_folder(checkpointed, capsys):
    path, config, run = checkpointed
    folder = Folder(path, config, run.cells, resume=True)
    assert cli.main(["train", "--resume", str(path)]) == 2
    assert "in use by another process" in capsys.readouterr().err
    os.close(folder._lock)  # as the system does for a process that died


COMMAND = [
    *("CartPole-v1", "--hidden", "8", "--batch", "8", "--buffer", "500", "--seeds", "2"),
    *("--target-period", "40", "--steps", "4000", "--save-seconds", "0.1"),
]


def test_two_signals_stop_at_once():
    told = []
    with Interrupt(lambda: told.append(None)) as interrupt:
        assert not interrupt.asked
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt.asked
        assert len(told) == 1
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.slow
def test_a_signal_saves_and_the_same_command_goes_on(tmp_path, capsys):
    whole, stopped, cache = (tmp_path / name for name in ("a", "b", "cache"))
    faults.finish(COMMAND, whole, cache)
    child = subprocess.Popen(faults.command(COMMAND, stopped), env=faults.environment(cache))
    metrics = stopped / "metrics.csv"
    while not metrics.exists() or metrics.stat().st_size < 2_000:
        time.sleep(0.02)
    child.send_signal(signal.SIGTERM)
    assert child.wait() == 130
    assert json.loads((stopped / "run.json").read_text())["status"] == "stopped"
    assert b"goes on from step" in faults.finish(COMMAND, stopped, cache)
    for name in faults.KEPT:
        assert (whole / name).read_bytes() == (stopped / name).read_bytes()
    assert not (stopped / "checkpoints").exists()
    assert cli.main(["train", "--resume", str(stopped)]) == 0
    assert "is done" in capsys.readouterr().out
