"""The sweep: what is done, tried again and reported; and real workers that are killed."""

import csv
import dataclasses
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from support import runs
from support.configs import paper
from support.studies import STUDY
from tsallax import cli
from tsallax.cli import sweep_runner
from tsallax.experiments import estimate, results, sweep
from tsallax.experiments.jobs import Job, join, make_jobs
from tsallax.experiments.local import Local
from tsallax.experiments.study import parse, settings
from tsallax.experiments.sweep import Answer
from tsallax.experiments.worker import work
from tsallax.learners import Metrics
from tsallax.storage.files import Directory, open_below
from tsallax.storage.run_folder import plain
from tsallax.training.config import to_json


def jobs_of(folder: Path, number: int = 4) -> list[Job]:
    numbers = [paper("CartPole-v1", q=(1.5 + i,)) for i in range(number)]
    return [Job(config, folder / str(i)) for i, config in enumerate(numbers)]


class Fake:
    """An executor that answers from a script: for each job, how its tries end."""

    def __init__(self, script: dict[Job, list[str]], slots: int = 2):
        self.script, self.slots = script, slots
        self.started: list[Job] = []
        self.running: list[Job] = []
        self.closed = False

    def start(self, job: Job) -> None:
        assert len(self.running) < self.slots
        assert job not in self.running
        self.started.append(job)
        self.running.append(job)

    def wait(self, seconds: float) -> list[Answer]:
        job = self.running.pop(0)
        end = self.script.get(job, ["done"]).pop(0) if self.script.get(job) else "done"
        if end in ("further", "back"):  # than it was before, then failed
            runs.new_folder(job.path, job.config, resume=job.path.exists()).close("failed")
            step = job.step() + (100 if end == "further" else -100)
            header = "step,seconds,steps_per_second"
            (job.path / "timing.csv").write_text(f"{header}\n{step},1,1\n")
            end = "failed"
        if end == "done":
            runs.new_folder(job.path, job.config, resume=job.path.exists()).close("done")
        return [Answer(job, end, "why")]

    def close(self) -> None:
        self.closed = True


def quiet(text: str) -> None:
    pass


def test_all_jobs_are_done_and_a_second_sweep_has_nothing_to_do(tmp_path):
    jobs = jobs_of(tmp_path)
    state = sweep.run(jobs, Fake({}), say=quiet)
    assert set(state.done) == set(jobs)
    again = Fake({})
    state = sweep.run(jobs, again, say=quiet)
    assert (again.started, set(state.done)) == ([], set(jobs))


def test_a_job_that_always_fails_is_tried_three_times_and_reported(tmp_path):
    jobs = jobs_of(tmp_path)
    fake = Fake({jobs[1]: ["failed"] * 9})
    state = sweep.run(jobs, fake, say=quiet)
    assert fake.started.count(jobs[1]) == 1 + sweep.RETRIES["failed"]
    assert state.failed == {jobs[1]: "why"}
    assert set(state.done) == set(jobs) - {jobs[1]}
    assert fake.closed


def test_a_job_whose_worker_is_lost_is_tried_more_often_than_one_that_fails(tmp_path):
    jobs = jobs_of(tmp_path)
    fake = Fake({jobs[0]: ["lost"] * 10, jobs[1]: ["lost"] * 11})
    state = sweep.run(jobs, fake, say=quiet)
    assert fake.started.count(jobs[0]) == fake.started.count(jobs[1]) == 11
    assert jobs[0] in state.done
    assert state.failed == {jobs[1]: "why"}


def test_a_job_that_comes_further_each_time_is_not_given_up(tmp_path):
    jobs = jobs_of(tmp_path, 1)
    fake = Fake({jobs[0]: ["further"] * 8})
    assert sweep.run(jobs, fake, say=quiet).done == jobs
    assert len(fake.started) == 9


def test_failing_now_earlier_and_now_later_is_given_up(tmp_path):
    jobs = jobs_of(tmp_path, 1)
    fake = Fake({jobs[0]: ["further", "further", *["back", "further"] * 9]})
    assert set(sweep.run(jobs, fake, say=quiet).failed) == set(jobs)
    assert len(fake.started) == 2 + sweep.RETRIES["failed"]


def test_a_job_that_another_process_has_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "WAIT", 0.0)
    jobs = jobs_of(tmp_path, 2)
    fake = Fake({jobs[0]: ["busy"] * 6})
    assert set(sweep.run(jobs, fake, say=quiet).done) == set(jobs)
    assert fake.started.count(jobs[0]) == 7


def test_workers_do_not_compile_the_same_program_at_once(tmp_path):
    q = [paper("CartPole-v1", algo=a, q=(x,)) for a in ("tal", "mt-dqn") for x in (3.0, 4.0)]
    jobs = [Job(config, tmp_path / str(i)) for i, config in enumerate(q)]
    fake = Fake({})
    sweep.run(jobs, fake, say=quiet)
    assert [job.config.algo for job in fake.started[:2]] == ["tal", "mt-dqn"]


def test_a_sweep_that_is_asked_to_stop_closes_its_executor(tmp_path):
    fake = Fake({})
    state = sweep.run(jobs_of(tmp_path), fake, asked=lambda: bool(fake.started), say=quiet)
    assert fake.closed
    assert state.waiting


def test_joining_keeps_a_number_left_open_apart():
    numbers = (None, (1.0,))
    configs = [paper("CartPole-v1", algo="mt-dqn", log_weight=n) for n in numbers]
    for order in (configs, configs[::-1]):
        assert {config.log_weight for config in join(order, width=8)} == set(numbers)


def test_a_folder_that_another_process_has_is_busy_and_a_damaged_one_fails(tmp_path):
    """A damaged folder would be waited for in vain."""
    job = jobs_of(tmp_path, 1)[0]
    order = {"config": plain(to_json(job.config)), "path": str(job.path)}
    with_lock = runs.new_folder(job.path, job.config)
    assert set(work(**order)) == {"busy"}
    with_lock.close("failed")
    (job.path / "run.json").write_text("{")
    assert set(work(**order)) == {"error"}


# --- Real workers ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, bytes]:
    return carry_out(tmp_path_factory.mktemp("undisturbed"))


def carry_out(folder: Path, meddle=None) -> dict[str, bytes]:
    """Every file of the small study's runs that must not depend on what befell them."""
    study = parse(STUDY, "small")
    jobs = make_jobs(settings(study), folder / "runs", width=4)  # the shape of support.tiny
    executor = Local(open_below(folder, "logs"))
    if meddle is not None:
        threading.Thread(target=meddle, args=(executor,), daemon=True).start()
    state = sweep.run(jobs, executor, say=quiet)
    assert (len(state.done), state.failed) == (2, {})
    with Directory(folder) as opened:
        results.collect(study, settings(study), jobs, opened)
    names = ("metrics.csv", "weights.safetensors")
    found = {f"{j.path.name}/{n}": (j.path / n).read_bytes() for j in jobs for n in names}
    return {**found, "table": (folder / "metrics.csv").read_bytes()}


def test_the_table_has_every_setting_seed_and_period(undisturbed):
    rows = list(csv.DictReader(undisturbed["table"].decode().splitlines()))
    assert len(rows) == 4 * 2 * 8
    assert {(r["algo"], r["q"], r["seed"]) for r in rows} == {
        (a, q, s) for a in ("tal", "tsallis-dqn") for q in ("1.5", "3") for s in ("0", "1")
    }


def test_a_number_left_open_is_another_setting(tmp_path):
    """Each row of the table belongs to one run: an open weight is not a weight of 1."""
    text = STUDY.replace('["tal", "tsallis-dqn"]\nq = [1.5, 3]', '"mt-dqn"')
    study = parse(text + '\n[[runs]]\nalgo = "mt-dqn"\nlog_weight = 1\n', "small")
    jobs = make_jobs(settings(study), tmp_path / "runs", width=1)
    for job in jobs:
        weight = job.config.log_weight[0] if job.config.log_weight else 7.0
        folder = runs.new_folder(job.path, job.config)
        folder.add_metrics(Metrics(*(np.full(1, weight) for _ in Metrics._fields)), None)
        folder.close("done")
    with Directory(tmp_path) as opened:
        assert results.collect(study, settings(study), jobs, opened) == 4
    curves = results.read_table(tmp_path / "metrics.csv")
    found = {curve.labels["log_weight"]: curve.columns["loss"] for curve in curves}
    np.testing.assert_array_equal(found[""], np.full((2, 1), 7.0))
    np.testing.assert_array_equal(found["1"], np.full((2, 1), 1.0))


@pytest.mark.slow
def test_killed_workers_change_nothing(undisturbed, tmp_path):
    kills = []

    def meddle(executor: Local) -> None:
        end = time.monotonic() + 60
        while len(kills) < 4 and time.monotonic() < end:
            time.sleep(1.5)
            for worker in executor.workers[len(kills) % 2 :]:
                if worker.process is not None and worker.process.poll() is None and worker.job:
                    os.kill(worker.process.pid, signal.SIGKILL)
                    kills.append(worker)
                    break

    assert carry_out(tmp_path, meddle) == undisturbed
    assert kills


@pytest.mark.slow
def test_separate_jobs_give_the_same_table(undisturbed, tmp_path):
    """Seeds and numbers in one program or in several: the same rows, to rounding."""
    study = parse(STUDY, "small")
    jobs = make_jobs(settings(study), tmp_path / "runs")
    assert len(jobs) == 4
    sweep.run(jobs, Local(open_below(tmp_path, "logs")), say=quiet)
    with Directory(tmp_path) as opened:
        results.collect(study, settings(study), jobs, opened)
    separate = (tmp_path / "metrics.csv").read_text().splitlines()
    for one, two in zip(separate, undisturbed["table"].decode().splitlines(), strict=True):
        for a, b in zip(one.split(","), two.split(","), strict=True):
            assert a == b or float(a) == pytest.approx(float(b), rel=1e-3, abs=1e-5)


def test_the_command_draws_and_has_nothing_to_do_again(tmp_path, capsys):
    (tmp_path / "small.toml").write_text(STUDY.replace("320", "160"))
    command = ["sweep", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out")]
    command += ["--width", "4", "--workers", "1"]
    assert cli.main(command) == 0
    assert "on one core" in capsys.readouterr().out
    folder = tmp_path / "out/small"
    assert {p.name for p in folder.iterdir()} == {
        "about.json", "metrics.csv", "small.png", "small.svg"
    }  # fmt: skip
    before = {p: p.read_bytes() for p in folder.iterdir()}
    assert cli.main(command) == 0
    assert "; 0 to be done" in capsys.readouterr().out
    assert {p: p.read_bytes() for p in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", "-1"], "cannot be negative"),
        (["--width", "-1"], "cannot be negative"),
        (["--gpus", "1"], "give --executor ray"),
        (["--address", "here:6379"], "give --executor ray"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options, words, tmp_path, capsys):
    (tmp_path / "small.toml").write_text(STUDY)
    assert cli.main(["sweep", str(tmp_path / "small.toml"), *options]) == 2
    assert words in capsys.readouterr().err


def test_braces_in_the_name_of_a_scale_are_no_places_for_others(tmp_path, capsys):
    """They were filled in, after all runs of the sweep, which ended in a traceback."""
    (tmp_path / "small.toml").write_text(STUDY + '\n[[scales."{x}"]]\nsteps = 160\n')
    command = ["sweep", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out")]
    assert cli.main([*command, "--scale", "{x}", "--draw-only"]) == 0
    assert "nothing is done yet" in capsys.readouterr().out


def test_a_cell_without_a_result_in_a_run_that_is_done_is_said(tmp_path, capsys):
    (tmp_path / "small.toml").write_text(STUDY)
    for job in make_jobs(settings(parse(STUDY, "small")), tmp_path / "out" / "runs", 2):
        own = {"algo": job.config.algo, "q": job.config.q, "hidden": (8,), "target_period": 40}
        small = {"batch": 8, "buffer": 100, "steps": 320, "seeds": 2, "time_limit": 15}
        runs.write_run(job.path, stopped={1: "stopped at step 100: it broke"}, **own, **small)
    command = ["sweep", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out")]
    assert cli.main([*command, "--width", "2"]) == 1
    out = capsys.readouterr().out
    assert out.count("cell 1 stopped at step 100: it broke") == 4
    about = json.loads((tmp_path / "out" / "small" / "about.json").read_text())
    assert len(about["failed"]) == 4
    assert about["command"] == "tsallax sweep small.toml"


def test_a_cell_that_always_fails_is_said(tmp_path, capsys):
    text = STUDY.replace('"CartPole-v1"', '["CartPole-v1", "NoSuchPlace-v0"]')
    (tmp_path / "small.toml").write_text(text)
    assert cli.main(["sweep", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out")]) == 2
    assert "NoSuchPlace" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_killed_ten_times_gives_the_results_of_an_undisturbed_one(tmp_path):
    """The whole command, at random moments; its workers see that they are alone and stop."""
    text = STUDY.replace("[1.5, 3]", "[0.5, 1.5, 3, 4]").replace("320", "16_000")
    (tmp_path / "small.toml").write_text(text)
    command = [sys.executable, "-m", "tsallax", "sweep", str(tmp_path / "small.toml"), "--out"]
    begin = time.monotonic()
    subprocess.run([*command, str(tmp_path / "whole")], check=True, stdout=subprocess.DEVNULL)
    length, draw, kills = time.monotonic() - begin, random.Random(0), 0
    while kills < 10:
        child = subprocess.Popen([*command, str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
        try:
            assert child.wait(draw.uniform(0.05, 0.4) * length) == 0
            shutil.rmtree(tmp_path / "killed")  # it was done before it could be killed: once more
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            kills += 1
    subprocess.run([*command, str(tmp_path / "killed")], check=True, stdout=subprocess.DEVNULL)
    for whole in sorted((tmp_path / "whole").glob("**/*")):
        if whole.suffix in (".csv", ".safetensors", ".png") and whole.name != "timing.csv":
            killed = tmp_path / "killed" / whole.relative_to(tmp_path / "whole")
            assert killed.read_bytes() == whole.read_bytes(), whole.name


def small_sweep(folder: Path, text: str, *options: str) -> list[str]:
    """Run the command of a study without running anything."""
    (folder / "small.toml").write_text(text)
    command = ["sweep", str(folder / "small.toml"), "--out", str(folder / "out"), "--draw-only"]
    assert cli.main([*command, *options]) == 0
    return (folder / "out" / "small" / "metrics.csv").read_text().splitlines()


def test_what_the_table_holds_is_not_run_again(tmp_path, capsys):
    """A table outlives its run folders, as long as the study means the same runs."""
    for job in make_jobs(settings(parse(STUDY, "small")), tmp_path / "out" / "runs", 1):
        folder = runs.new_folder(job.path, job.config)
        for step in (160, 320):
            numbers = {"step": step, "loss": 7.0 + job.config.first_seed}
            row = (np.full(1, numbers.get(name, 1.0)) for name in Metrics._fields)
            folder.add_metrics(Metrics(*row), None)
        folder.close("done")
    table = small_sweep(tmp_path, STUDY)
    assert len(table) == 1 + 4 * 2 * 2
    shutil.rmtree(tmp_path / "out" / "runs")
    capsys.readouterr()
    assert small_sweep(tmp_path, STUDY) == table
    assert "0 to be done; 8 in the tables already" in capsys.readouterr().out
    small = tmp_path / "out" / "small"
    assert small_sweep(tmp_path, STUDY, "--seeds", "1") == table
    about = json.loads((small / "about.json").read_text())
    assert (about["jobs"], about["done"]) == (8, 8)  # what fewer seeds would need is not all
    capsys.readouterr()
    assert small_sweep(tmp_path, STUDY, "--seeds", "3") == table
    assert "4 to be done; 8 in the tables already" in capsys.readouterr().out
    about = json.loads((small / "about.json").read_text())
    assert (about["done"], len(about["unfinished"])) == (8, 4)
    # Another batch is another run, though the table's labels are the same.
    cli.main(["sweep", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out"), "--draw-only"])
    changed = STUDY.replace("buffer = 100", "buffer = 90")
    (tmp_path / "small.toml").write_text(changed)
    capsys.readouterr()
    cli.main(["sweep", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out"), "--draw-only"])
    assert "8 to be done\n" in capsys.readouterr().out


def test_what_is_to_be_done_is_found_in_linear_time(tmp_path, monkeypatch):
    """Whose rows a table holds is looked up: not every job is compared with every setting."""
    real, calls = dataclasses.replace, []
    monkeypatch.setattr(dataclasses, "replace", lambda x, **own: calls.append(0) or real(x, **own))

    def work(folder: Path, number: int) -> int:
        calls.clear()
        grid = [1.5 + i / 64 for i in range(number)]
        (tmp_path / "small.toml").write_text(STUDY.replace("[1.5, 3]", str(grid)))
        command = ["sweep", str(tmp_path / "small.toml"), "--out", str(folder), "--draw-only"]
        assert cli.main(command) == 0
        return len(calls)

    few, many = work(tmp_path / "few", 6), work(tmp_path / "many", 24)
    assert many <= 4.5 * few


def test_the_estimate_is_of_what_is_left_and_a_job_has_one_core(tmp_path, monkeypatch, capsys):
    """By hand: of 3.6 operations per step, 1,000 steps take an hour at one per second."""
    monkeypatch.setattr(estimate, "matmul_rate", lambda: 1.0)
    monkeypatch.setattr(estimate, "operations", lambda config: 3.6 if config.batch == 8 else 0.001)
    large, small = paper("CartPole-v1", steps=2000, batch=8), paper("CartPole-v1", steps=2000)
    jobs = [Job(large, tmp_path / "large"), Job(small, tmp_path / "small")]
    assert estimate.core_hours(jobs) == pytest.approx(2 * (1 + 0.001 / 3.6))
    monkeypatch.setattr(Job, "step", lambda job: 1000 if job.config == large else 0)
    assert estimate.core_hours(jobs) == pytest.approx(1 + 2 * 0.001 / 3.6)
    sweep_runner.estimate(jobs, sweep_runner.Where(workers=2))
    sweep_runner.estimate(jobs[:1], sweep_runner.Where(workers=2))
    both, alone = capsys.readouterr().out.splitlines()
    assert both.endswith("at least 1h 00m on one core, 30m 01s on 2, by the updates alone")
    assert alone.endswith("at least 1h 00m on one core, 1h 00m on 1, by the updates alone")
