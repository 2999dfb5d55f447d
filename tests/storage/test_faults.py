"""A small part of `make faults`: see tests/support/faults.py."""

from support import damage, faults


def test_a_save_stopped_anywhere_leaves_a_whole_checkpoint(tmp_path):
    assert faults.interrupted_saves(tmp_path) >= 10


def test_damaged_checkpoints_are_refused(tmp_path):
    assert damage.damaged_checkpoints(400, tmp_path) == "400"


def test_fuzzed_commands_run_or_say_why(tmp_path):
    assert damage.fuzzed_commands(60, tmp_path, seed=1).startswith("60")


def test_a_bad_disk_loses_nothing(tmp_path):
    assert faults.bad_disks(tmp_path, every=23) >= 4
