"""A run that is stopped and resumed is the run that was never stopped, to the bit."""

import dataclasses
import json
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

from support import host_envs, tiny  # noqa: F401 (one registers)
from support.configs import paper
from support.faults import processes
from tsallax import cli
from tsallax.storage import checkpoint, reader, tensors
from tsallax.storage.files import Directory
from tsallax.training.build import make_run
from tsallax.training.driver import Silent, make_folder, periods
from tsallax.training.resume import resume

STEPS = 160  # the ring goes round
CARTPOLE = tiny.config(steps=STEPS)
PARALLEL = paper(
    "CartPole-v1",
    learner="parallel",
    hidden=(8,),
    seeds=2,
    num_envs=2,
    rollout=20,
    minibatches=2,
    target_period=40,
    steps=STEPS,
    eval_every=80,
)
ACTOR = tiny.config(
    algo="tal-ac", automatic_alpha=True, preset=None, learner="replay", warmup=20, steps=STEPS
)
HOST = tiny.config(tiny.HOST, q=(2.0,), steps=STEPS)
PARTS = {"double": True, "dueling": True, "n_step": 3, "prioritised": True, "tau": (0.05,)}


def interrupted(config, stops, tmp_path):
    """Every period, from processes that each know only what the last one saved."""
    seen = []
    for stop in [*stops, config.steps]:
        run = make_run(config)
        folder = make_folder(tmp_path, run, resume=bool(seen))
        told = []
        state = resume(run, folder, told.append) if seen else run.learner.start()
        assert len(told) == bool(seen), "nothing was refused"
        for progress in periods(run, state, Silent()):
            period = progress.period
            arrays, notes = run.learner.save(period.state)
            folder.add_metrics(period.metrics, progress.evaluation)
            # The next period uses up the state.
            kept = jax.tree.map(np.array, arrays)
            seen.append(progress._replace(period=period._replace(state=kept)))
            if period.step == stop:
                folder.save_checkpoint(period.step, arrays, notes)
                break
        folder.folder.close()
    return seen


@pytest.mark.parametrize(
    "config",
    [
        CARTPOLE,
        PARALLEL,
        pytest.param(ACTOR, marks=pytest.mark.slow),
        pytest.param(tiny.config(steps=STEPS, updates=2, **PARTS), marks=pytest.mark.slow),
    ],
    ids=["replay", "parallel", "discrete actor", "parts"],
)
def test_compiled_runs_are_resumed_to_the_bit(config, tmp_path):
    whole = interrupted(config, [], tmp_path / "whole")
    parts = interrupted(config, [80], tmp_path / "parts")
    assert [p.period.step for p in parts] == [40, 80, 120, 160]
    for a, b in zip(whole, parts, strict=True):
        jax.tree.map(np.testing.assert_array_equal, a.period.metrics, b.period.metrics)
        assert (a.evaluation is None) == (b.evaluation is None)
        if a.evaluation is not None:
            np.testing.assert_array_equal(a.evaluation, b.evaluation)
        assert a.period.state.keys() == b.period.state.keys()
        for name, array in a.period.state.items():
            np.testing.assert_array_equal(array, b.period.state[name])


def test_host_runs_lose_nothing_but_the_running_episode(tmp_path):
    parts = interrupted(HOST, [80], tmp_path)
    assert [p.period.step for p in parts] == [40, 80, 120, 160]
    table = pd.read_csv(tmp_path / "metrics.csv")
    assert list(table.step) == sorted([40, 80, 120, 160] * 2)
    assert np.isfinite(table.loss).all()
    np.testing.assert_array_equal(parts[-1].period.state["step"], [160, 160])


def test_arrays_of_every_width_are_saved(tmp_path):
    arrays = {str(x): np.arange(3).astype(x) for x in (jnp.bfloat16, np.float16, np.uint64)}
    specs = {name: tensors.Spec(x.shape, x.dtype) for name, x in arrays.items()}
    with Directory(tmp_path) as folder:
        digest = tensors.write(folder, "x", arrays)
        back = reader.read(folder, "x", specs, digest)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)
    with pytest.raises(ValueError, match="weights has the type complex64"):
        tensors.header({"weights": tensors.Spec((3,), np.complex64)})


def test_the_priorities_of_the_host_are_kept():
    """To the bit, sums included; the slot that a new episode starts in has none."""
    run = make_run(dataclasses.replace(HOST, stack=2, **PARTS))
    *_, last = periods(run, run.learner.start(), Silent())
    state = last.period.state
    arrays, notes = run.learner.save(state)
    assert run.learner.layout(notes).keys() == arrays.keys()
    back = run.learner.restore(arrays, notes).replay
    kept = state.replay.priorities
    assert len(np.unique(kept.leaves)) > 20
    np.testing.assert_array_equal(back.priorities.largest, kept.largest)
    gone = (back.newest[:, None] + np.arange(back.window)) % back.slots
    np.put_along_axis(kept.leaves, gone, 0, 1)
    np.testing.assert_array_equal(back.priorities.leaves, kept.leaves)
    kept.fill(kept.leaves.copy(), kept.largest)
    jax.tree.map(np.testing.assert_array_equal, back.priorities.sums, kept.sums)


def test_the_host_replay_is_kept(tmp_path):
    config = dataclasses.replace(HOST, stack=2)
    run = make_run(config)
    state = next(periods(run, run.learner.start(), Silent())).period.state
    arrays, notes = run.learner.save(state)
    assert run.learner.layout(notes).keys() == arrays.keys()
    back = make_run(config).learner.restore(arrays, notes)
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
    """The folder of a run whose process died after its last checkpoint; only to be read."""
    path = tmp_path_factory.mktemp("resume")
    run = make_run(CARTPOLE)
    folder = make_folder(path, run)
    for period, evaluation, *_ in periods(run, run.learner.start(), Silent()):
        folder.add_metrics(period.metrics, evaluation)
        folder.save_checkpoint(period.step, *run.learner.save(period.state))
    folder.folder.close()
    return path, run


@pytest.fixture
def own(checkpointed, tmp_path):
    """A copy to be written to."""
    path, run = checkpointed
    return shutil.copytree(path, tmp_path / "run"), run


def saved_in(path):
    """The checkpoints of a run folder, oldest first."""
    return sorted((path / checkpoint.FOLDER).iterdir())


def last_checkpoint(path, run):
    folder = make_folder(path, run, resume=True)
    try:
        return folder.last_checkpoint(run.learner.layout)
    finally:
        folder.folder.close()


def test_the_last_two_are_kept_and_readable_by_safetensors(checkpointed):
    path, run = checkpointed
    assert [p.name[-3:] for p in saved_in(path)] == ["120", "160"]
    arrays = load_file(saved_in(path)[0] / checkpoint.ARRAYS)
    assert arrays.keys() == run.learner.layout({}).keys()


def test_a_damaged_one_is_said_and_the_one_before_is_taken(own):
    path, run = own
    newest = saved_in(path)[-1] / checkpoint.ARRAYS
    good = newest.read_bytes()
    newest.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    saved, refused = last_checkpoint(path, run)
    assert saved.step == 120
    assert len(refused) == 1
    assert "damaged" in refused[0]


@pytest.mark.parametrize("bad", [1, 2])
def test_a_run_is_resumed_from_before_refused_ones_and_keeps_what_it_saves(own, bad):
    path, run = own
    for newest in saved_in(path)[-bad:]:
        (newest / checkpoint.MANIFEST).write_text("{}")
    folder, told = make_folder(path, run, resume=True), []
    state = resume(run, folder, told.append)
    start = int(state.step[0])
    assert start == {1: 120, 2: 0}[bad]
    assert len(told) == bad + 1
    for period, *_ in periods(run, state, Silent()):
        folder.save_checkpoint(period.step, *run.learner.save(period.state))
        assert saved_in(path)[-1].name == f"step-{period.step:012d}"
        assert len(saved_in(path)) == min(2, (period.step - start) // 40 + (bad == 1))
    folder.folder.close()
    assert last_checkpoint(path, run)[0].step == 160


@pytest.mark.parametrize(
    "lie", [{"config": 1}, {"sizes": {}}, {"sizes": {"metrics.csv": -1}}, {"run": []}]
)
def test_a_manifest_of_nobodys_run_is_refused(own, lie):
    path, run = own
    for saved in saved_in(path):
        with Directory(path) as folder:
            body = checkpoint.read_manifest(folder, saved.name)
        (saved / checkpoint.MANIFEST).write_bytes(
            checkpoint._manifest({**body, "about": {**body["about"], **lie}})
        )
    saved, refused = last_checkpoint(path, run)
    assert saved is None
    assert all("says too little" in why for why in refused)
    assert len(refused) == 2


@pytest.mark.parametrize("other", ["schema", "arrays"])
def test_what_another_version_can_resume_from_is_refused_and_kept(own, other):
    """It was deleted, and the run began anew: days of training were lost by an upgrade."""
    path, run = own
    layout = run.learner.layout
    for saved in saved_in(path) if other == "schema" else ():
        with Directory(path) as folder:
            body = checkpoint.read_manifest(folder, saved.name)
        (saved / checkpoint.MANIFEST).write_bytes(checkpoint._manifest({**body, "schema": 3}))
    if other == "arrays":
        layout = lambda notes: dict(sorted(run.learner.layout(notes).items())[1:])  # noqa: E731
    kept = ["metrics.csv", *(f"checkpoints/{x.name}/{checkpoint.ARRAYS}" for x in saved_in(path))]
    before = [(path / name).read_bytes() for name in kept]
    folder = make_folder(path, run, resume=True)
    with pytest.raises(ValueError, match=r"160( of another version| has schema 3)"):
        folder.last_checkpoint(layout)
    folder.folder.close()
    assert [(path / name).read_bytes() for name in kept] == before


def test_a_resumed_run_still_knows_its_weights(own):
    path, run = own
    about = json.loads((path / "run.json").read_text())
    about["files"] = {"weights.safetensors": {"size": 1, "sha256": "0"}}
    (path / "run.json").write_text(json.dumps(about))
    make_folder(path, run, resume=True).folder.close()
    assert json.loads((path / "run.json").read_text())["files"] == about["files"]


def test_another_configuration_is_refused(own):
    path, _ = own
    saved, refused = last_checkpoint(path, make_run(tiny.config(steps=STEPS, q=(1.5, 2.5))))
    assert saved is None
    assert all("another configuration" in why for why in refused)


def test_two_processes_do_not_share_a_folder(own, capsys):
    path, run = own
    folder = make_folder(path, run, resume=True)
    assert cli.main(["train", "--resume", str(path)]) == 2
    assert "in use by another process" in capsys.readouterr().err
    folder.folder.close()  # as the system does for a process that died


COMMAND = ["CartPole-v1", *tiny.flags(steps=4000, eval_every=0, save_seconds=0.1)]


@pytest.mark.slow
def test_a_signal_saves_and_the_same_command_resumes(tmp_path, capsys):
    whole, stopped, cache = (tmp_path / name for name in ("a", "b", "cache"))
    processes.finish(COMMAND, whole, cache)
    child = subprocess.Popen(processes.command(COMMAND, stopped), env=processes.environment(cache))
    metrics = stopped / "metrics.csv"
    while not metrics.exists() or metrics.stat().st_size < 2_000:
        time.sleep(0.02)
    child.send_signal(signal.SIGTERM)
    assert child.wait() == 130
    assert json.loads((stopped / "run.json").read_text())["status"] == "stopped"
    assert b"resumes from step" in processes.finish(COMMAND, stopped, cache)
    for name in processes.KEPT:
        assert (whole / name).read_bytes() == (stopped / name).read_bytes()
    assert [path.name[-4:] for path in (stopped / "checkpoints").iterdir()] == ["4000"]
    assert cli.main(["train", "--resume", str(stopped)]) == 0
    assert "is done" in capsys.readouterr().out
