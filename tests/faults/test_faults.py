"""A small part of `make faults`: see tests/support/faults."""

import pytest

from support.faults import disks, fuzz, hostile, readers
from support.faults.__main__ import COMMANDS, PARTS, READERS, own_process

QUICK = ("report", "watch", "evaluate", "train --resume", "agents", "claims")


def each(names, quick):
    return [n if n in quick else pytest.param(n, marks=pytest.mark.slow) for n in names]


@pytest.mark.parametrize("name", each(COMMANDS, QUICK))
def test_hostile_folders_are_answered_or_refused_in_one_line(name, tmp_path):
    assert hostile.attack(name, 25, tmp_path, seed=1).startswith("25, ")


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_as_far_as_they_make_sense(name, tmp_path):
    assert readers.damaged(name, 60, tmp_path, seed=1).startswith("60, ")


def test_fuzzed_commands_run_or_say_why(tmp_path):
    assert fuzz.commands(80, tmp_path, seed=1).startswith("80, ")


def test_fuzzed_studies_run_or_say_why(tmp_path):
    assert fuzz.studies(80, tmp_path, seed=1).startswith("80, ")


def test_a_save_stopped_anywhere_leaves_a_whole_checkpoint(tmp_path):
    assert int(disks.saves(tmp_path)) >= 10


def test_a_bad_disk_loses_nothing(tmp_path):
    assert int(disks.operations("replay", tmp_path, every=61)) >= 6


TASKS = {task.what: task for part in PARTS.values() for task in part}


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    [
        "SIGKILL: replay",
        "SIGKILL: host parallel",
        "SIGHUP",
        "SIGSTOP and SIGCONT",
        "output that nobody reads",
        "SIGINT while Python imports",
        "folders moved, removed, made anew under a live run",
        "a disk that is really full",
        "workers of a local sweep",
    ],
)
def test_a_tenth_of_what_needs_processes(what):
    _, survived, said, _ = own_process(TASKS[what], 0.1)
    assert survived, said
