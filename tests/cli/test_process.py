"""The command as a process: closed pipes, signals, workers that stop answering."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import tiny
from support.studies import STUDY
from tsallax.experiments import local, sweep
from tsallax.experiments.jobs import make_jobs
from tsallax.experiments.local import Local
from tsallax.experiments.study import parse, settings
from tsallax.storage.files import open_below
from tsallax.storage.run_folder import read_about

SOURCES = Path(__file__).parents[2] / "src"
COMMAND = [sys.executable, "-m", "tsallax"]
OWN = {**os.environ, "PYTHONPATH": str(SOURCES)}


@pytest.mark.slow
def test_a_closed_pipe_stops_printing_not_training(tmp_path):
    """As `tsallax train ... | head -1` does: its reader is gone before the first line."""
    read, write = os.pipe()
    os.close(read)
    command = [*COMMAND, "train", tiny.ENV, *tiny.flags(), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, env=OWN)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
    assert read_about(tmp_path / "run").status == "done"


@pytest.mark.slow
def test_a_closed_terminal_stops_printing_not_training(tmp_path):
    """As after `tsallax train ... & disown`: writing to the terminal is an error from then on."""
    ours, terminal = os.openpty()
    os.close(ours)
    command = [*COMMAND, "train", tiny.ENV, *tiny.flags(), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, env=OWN)
    os.close(terminal)
    assert (done.returncode, done.stderr) == (0, b"")
    assert read_about(tmp_path / "run").status == "done"


def test_without_standard_output_nothing_is_printed_and_nothing_fails():
    """As `tsallax ... >&-` does, or a service that closes what it does not need."""
    closed = ["sh", "-c", 'exec "$@" >&-', "sh"]
    done = subprocess.run([*closed, *COMMAND, "--version"], stderr=subprocess.PIPE, env=OWN)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_message_for_a_closed_standard_error_reaches_no_other_file(tmp_path):
    """A file that is opened later would bear its number, and get what is said to the terminal."""
    code = (
        "import os, sys; from tsallax.cli.output import lasting_output; lasting_output(); "
        "number = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT); os.write(2, b'stopping')"
    )
    path = tmp_path / "metrics.csv"
    closed = ["sh", "-c", 'exec "$@" 2>&-', "sh"]
    done = subprocess.run([*closed, sys.executable, "-c", code, str(path)], env=OWN)
    assert (done.returncode, path.read_bytes()) == (0, b"")


def small_jobs(folder: Path):
    return make_jobs(settings(parse(STUDY, "small")), folder / "runs", width=4)


@pytest.mark.slow
def test_a_worker_that_stops_answering_is_killed_and_its_job_tried_again(tmp_path, monkeypatch):
    """SIGSTOP: the process is there, but does nothing. A worker lives if it says so."""
    monkeypatch.setattr(local, "SILENCE", 3.0)
    monkeypatch.setattr(local, "BEAT", 0.5)
    jobs, said, stopped = small_jobs(tmp_path)[:1], [], []
    executor = Local(open_below(tmp_path, "logs"), 1)

    def show(state: sweep.Progress) -> None:
        worker = executor.workers[0]
        if not stopped and worker.process is not None:
            os.kill(worker.process.pid, signal.SIGSTOP)
            stopped.append(worker.process.pid)

    state = sweep.run(jobs, executor, show, say=said.append)
    assert state.done == jobs
    assert len(said) == 1
    assert "gave no sign of life for 3 s and was killed" in said[0]


def test_a_worker_that_has_just_finished_does_not_wait_for_another_job(tmp_path):
    """A signal that came with the last period is answered by `done`, not by an end."""
    executor = Local(open_below(tmp_path, "logs"), 1)
    job = small_jobs(tmp_path)[0]
    executor.start(job)
    while not (answers := executor.wait(1.0)):
        pass
    assert [answer.end for answer in answers] == ["done"]
    process = executor.workers[0].process
    assert process is not None
    assert process.poll() is None
    executor.workers[0].stop = lambda: None  # it noted the signal during its job
    executor.close()
    assert process.returncode == 0


@pytest.mark.slow
def test_one_sigterm_ends_a_sweep_at_the_next_period(tmp_path):
    (tmp_path / "small.toml").write_text(STUDY.replace("320", "20_000_000"))
    command = [*COMMAND, "sweep", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out")]
    child = subprocess.Popen([*command, "--width", "4"], stdout=-1, stderr=-1, env=OWN)
    while not list(tmp_path.glob("out/runs/*/metrics.csv")) and child.poll() is None:
        time.sleep(0.1)
    time.sleep(5)
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=120)
    assert child.returncode == 130
    assert b"the same command resumes from here" in out
    found = {read_about(path).status for path in (tmp_path / "out" / "runs").iterdir()}
    assert found == {"stopped"}
