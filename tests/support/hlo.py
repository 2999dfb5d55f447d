"""What a compiled program does with long arrays, read from its text: a guard without a clock."""

import re

# What users' programs are made of: the suite turns this off, which chooses other instructions.
AS_USERS = {"xla_cpu_use_fusion_emitters": True}
INSTRUCTION = re.compile(r"%[\w.-]+ = \w+\[([\d,]*)\]\S* ([\w-]+)\(")
IN_PLACE = {"dynamic-update-slice", "scatter", "fusion"}
FREE = {"parameter", "get-tuple-element", "bitcast"}


def assert_writes_in_place(compiled, length: int, least: int) -> None:
    """Nothing makes an array that long but writes in place; donated arrays are reused.

    A copy, a select, a sort or a permutation of a ring of `length` would be seen by its shape.
    (XLA's own count of bytes is of no use: it counts a whole array for one gathered row.)

    Args:
        compiled: a program whose long arrays are donated.
        length: arrays with an axis of at least this length are long.
        least: their bytes, or somewhat less.
    """
    long = {
        operation
        for sizes, operation in INSTRUCTION.findall(compiled.as_text())
        if any(int(n) >= length for n in sizes.split(",") if n)
    }
    assert long & IN_PLACE
    assert long <= IN_PLACE | FREE
    memory = compiled.memory_analysis()
    assert memory.alias_size_in_bytes > least
    assert memory.temp_size_in_bytes < least / 2
