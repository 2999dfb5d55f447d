"""The doctor's verdicts, the refusal of bad versions, a command line that starts without jax."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

import tsallax
from tsallax import _jaxlib, cli
from tsallax.cli import compiler_checks, doctor
from tsallax.cli.compiler_checks import Check, Verdict

ROOT = Path(__file__).parents[2]
WRONG = next(v for v, fault in _jaxlib.KNOWN_BAD.items() if fault.wrong)
SLOW = next(v for v, fault in _jaxlib.KNOWN_BAD.items() if not fault.wrong)


def python(*arguments: str, path: tuple[Path, ...] = (), **environment: str):
    """Run a fresh interpreter on this source tree, with the compiler that a user has."""
    search = os.pathsep.join(map(str, [*path, ROOT / "src"]))
    env = {k: v for k, v in os.environ.items() if k not in (_jaxlib.OVERRIDE, "XLA_FLAGS")}
    env |= {"PYTHONPATH": search} | environment
    return subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True)


# --- The doctor ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_this_machine_passes():
    run = python("-m", "tsallax", "doctor")
    assert run.returncode == 0, run.stdout + run.stderr
    for check in compiler_checks.CHECKS:
        assert check.name in run.stdout
    for name in (*doctor.PACKAGES, "python", "devices", "cores", "ale-py", "playwright"):
        assert name in run.stdout
    assert "FAILS" not in run.stdout
    assert "\x1b" not in run.stdout, "colours without a terminal"


def break_down() -> Verdict:
    raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("check", "code", "mark"),
    [
        (Check("probe", "x#1", lambda: Verdict(True, "fine")), 0, "ok"),
        (Check("probe", "x#1", lambda: Verdict(False, "off")), 1, "FAILS"),
        (Check("probe", "x#1", break_down), 1, "FAILS"),
        (Check("probe", "x#1", lambda: Verdict(False, "off"), required=False), 0, "note"),
    ],
)
def test_exit_code_follows_the_required_checks(monkeypatch, capsys, check, code, mark):
    monkeypatch.setattr(compiler_checks, "CHECKS", (check,))
    assert cli.main(["doctor"]) == code
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "probe" in line] == [mark]


def test_a_missing_package_fails(monkeypatch, capsys):
    monkeypatch.setattr(
        compiler_checks, "CHECKS", (Check("probe", "", lambda: Verdict(True, "fine")),)
    )
    monkeypatch.setattr(doctor, "PACKAGES", ("jax", "no-such-package"))
    assert cli.main(["doctor"]) == 1
    assert "no-such-package  not installed" in capsys.readouterr().out


# --- Each check can fail -------------------------------------------------------------------------


def test_matvec_counts_one_wrong_row(monkeypatch):
    assert compiler_checks.wrong_rows(100, np.float32) == 0
    monkeypatch.setattr(compiler_checks.jax, "jit", lambda f: lambda x: f(x).at[-1].mul(1.001))
    assert compiler_checks.wrong_rows(100, np.float32) == 1


def test_shift_counts_wrong_elements():
    assert compiler_checks.wrong_elements(lambda x: x) == 83 * 84


def test_repeats_sees_one_different_bit():
    values = iter([1.0, 1.0, np.nextafter(1.0, 2.0)])
    assert not compiler_checks.repeats(lambda: np.asarray(next(values)), calls=3).ok
    assert compiler_checks.repeats(lambda: np.asarray(1.0), calls=3).ok


def test_threads_may_differ_by_rounding_only():
    one = np.linspace(0, 1, 10)
    assert compiler_checks.same(one, one + 1e-7).ok
    assert not compiler_checks.same(one, one + 1e-3).ok
    assert not compiler_checks.same(one, one * np.nan).ok


def test_growth_sees_a_copy_of_the_array():
    assert compiler_checks.growth(lambda array, t: array + 1, steps=30) > compiler_checks.GROWTH


# --- Versions ------------------------------------------------------------------------------------


def test_wrong_version_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(_jaxlib, "version", lambda name: WRONG)
    monkeypatch.delenv(_jaxlib.OVERRIDE, raising=False)
    with pytest.raises(ImportError) as refusal:
        _jaxlib.guard()
    for part in (WRONG, _jaxlib.KNOWN_BAD[WRONG].issue, f"jaxlib=={_jaxlib.PINNED}"):
        assert part in str(refusal.value)

    row = cli.Command("tsallax.cli.doctor", "guarded, unlike the real one")
    monkeypatch.setitem(cli.COMMANDS, "train", row)
    assert cli.main(["train"]) == 1
    assert str(refusal.value) in capsys.readouterr().err

    monkeypatch.setattr(
        compiler_checks, "CHECKS", (Check("probe", "", lambda: Verdict(True, "fine")),)
    )
    assert cli.main(["doctor"]) == 1, "the doctor runs, and says so"
    assert str(refusal.value) in capsys.readouterr().out

    monkeypatch.setenv(_jaxlib.OVERRIDE, "1")
    _jaxlib.guard()


def test_slow_version_warns(monkeypatch):
    monkeypatch.setattr(_jaxlib, "version", lambda name: SLOW)
    monkeypatch.delenv(_jaxlib.OVERRIDE, raising=False)
    with pytest.warns(RuntimeWarning, match=_jaxlib.KNOWN_BAD[SLOW].issue):
        _jaxlib.guard()


def test_good_version_is_silent(monkeypatch):
    monkeypatch.setattr(_jaxlib, "version", lambda name: _jaxlib.PINNED)
    _jaxlib.guard()  # warnings are errors here


def test_import_on_a_wrong_version(tmp_path):
    """The real thing, but for the version in the package's metadata."""
    metadata = tmp_path / f"jaxlib-{WRONG}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: jaxlib\nVersion: {WRONG}\n")
    refused = python("-c", "import tsallax", path=(tmp_path,))
    assert refused.returncode == 1
    assert f"BadJaxlibError: jaxlib {WRONG} is known to be bad" in refused.stderr
    assert python("-c", "import tsallax", path=(tmp_path,), TSALLAX_ANY_JAXLIB="1").returncode == 0
    # The command itself starts, or its doctor could not explain: as a module and as a script.
    script = tmp_path / "tsallax"
    script.write_text("import sys, tsallax.cli\nsys.exit(tsallax.cli.main())")
    for command in (["-m", "tsallax"], [str(script)]):
        run = python(*command, "--help", path=(tmp_path,))
        assert run.returncode == 0, run.stderr


def test_the_pins_follow_the_table():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    specifiers = {r.name: r.specifier for r in map(Requirement, project["dependencies"])}
    constraints = (ROOT / "constraints.txt").read_text().splitlines()
    for name in ("jax", "jaxlib"):
        assert _jaxlib.PINNED in specifiers[name]
        assert f"{name}=={_jaxlib.PINNED}" in constraints
        for bad in _jaxlib.KNOWN_BAD:
            assert bad not in specifiers[name], f"{name} {bad} can still be installed"


def test_the_page_on_versions_names_every_fault():
    page = (ROOT / "docs" / "jax-versions.md").read_text()
    faults = [part for v, fault in _jaxlib.KNOWN_BAD.items() for part in (v, fault.issue)]
    for part in (_jaxlib.PINNED, *faults, *(check.issue for check in compiler_checks.CHECKS)):
        assert part in page, part


# --- The command line and the package ------------------------------------------------------------


def test_help_imports_no_jax():
    code = """if True:
        import sys
        from tsallax.cli import main
        assert main(["--help"]) == 0
        import tsallax
        heavy = {"jax", "jaxlib", "numpy", "tyro", "rich"} & set(sys.modules)
        assert not heavy, heavy
        assert tsallax.HParams().gamma == 0.99
        assert "jax" in sys.modules, "then the test above sees nothing"
    """
    run = python("-c", code)
    assert run.returncode == 0, run.stderr
    for name, command in cli.COMMANDS.items():
        assert name in run.stdout
        assert command.summary in run.stdout


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.split() == ["tsallax", tsallax.__version__]


def test_a_mistyped_command_is_guessed(capsys):
    assert cli.main(["docter"]) == 2
    assert "Perhaps you meant: tsallax doctor" in capsys.readouterr().err
    assert cli.main(["xyz"]) == 2
    assert "Commands: train" in capsys.readouterr().err


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(name, capsys):
    try:
        code = cli.main([name, "--help"])
    except SystemExit as end:  # the parser's own way to end
        code = end.code
    assert code == 0
    assert f"tsallax {name}" in capsys.readouterr().out


def test_lazy_names_agree():
    """The table, `__all__` and what type checkers see are three lists of the same names."""
    tree = ast.parse(Path(tsallax.__file__).read_text())
    block = next(n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n))
    seen = {
        alias.name: statement.module
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert seen == tsallax._LAZY | dict.fromkeys(tsallax._ROOMS, "tsallax")
    assert {*seen, "__version__"} == set(tsallax.__all__) == set(dir(tsallax))
    for name, module in tsallax._LAZY.items():
        assert getattr(tsallax, name) is getattr(sys.modules[module], name)
    for name in tsallax._ROOMS:
        assert getattr(tsallax, name) is sys.modules[f"tsallax.{name}"]
    with pytest.raises(AttributeError, match="no attribute 'HParam'"):
        _ = tsallax.HParam  # pyright: ignore[reportAttributeAccessIssue]
