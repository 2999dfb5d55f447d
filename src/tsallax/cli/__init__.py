"""The `tsallax` command: one row per subcommand, which is imported only when it is called.

`tyro` parses the options of a subcommand from the signature of its function. It does not select the
subcommand: both of its ways of doing so import every subcommand first (and with them jax), and
neither suggests a correction of a mistyped one.
"""

import contextlib
import functools
import io
import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

from tsallax import __version__
from tsallax.spelling import printable


class Command(NamedTuple):
    module: str  # its function `run` takes the options and returns None or the exit code
    summary: str
    guarded: bool = True  # refuses to start on a jaxlib that computes wrong numbers


COMMANDS = {
    "train": Command("tsallax.cli.train", "train an agent: all seeds and settings as one program"),
    "watch": Command("tsallax.cli.watch", "show a run in another process"),
    "evaluate": Command(
        "tsallax.cli.evaluate", "play whole episodes with a trained agent: its returns"
    ),
    "play": Command("tsallax.cli.play", "make a video of a trained agent and its policy"),
    "agents": Command("tsallax.cli.agents", "list the trained agents that come with tsallax"),
    "export": Command("tsallax.cli.export", "write a trained policy as an ONNX file"),
    "reproduce": Command(
        "tsallax.cli.reproduce", "run the studies: the paper's figures and others"
    ),
    "sweep": Command("tsallax.cli.sweep", "run your own study: environments x algorithms x ..."),
    "tune": Command("tsallax.cli.tune", "search for hyper-parameters that work on an environment"),
    "claims": Command("tsallax.cli.claims", "judge the paper's claims C1 to C14 by the results"),
    "report": Command("tsallax.cli.report", "write runs and results as one HTML page"),
    "push": Command("tsallax.cli.push", "upload a run to the Hugging Face Hub, with a model card"),
    "pull": Command("tsallax.cli.pull", "download a run from the Hugging Face Hub"),
    "explore": Command(
        "tsallax.cli.explore",
        "write an interactive page about policies and action gaps",
        guarded=False,
    ),
    "list": Command(
        "tsallax.cli.listing", "list the algorithms with their equations, environments, presets"
    ),
    "bench": Command("tsallax.cli.bench", "measure the compiled loop against matrix products"),
    "doctor": Command(
        "tsallax.cli.doctor", "check the versions, the compiler and the extras", guarded=False
    ),
}


def usage() -> str:
    width = max(map(len, COMMANDS))
    rows = [f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: tsallax [--help] [--version] COMMAND ...",
            "",
            "Deep reinforcement learning with Tsallis entropy, in JAX.",
            "",
            *rows,
            "",
            "`tsallax COMMAND --help` lists the options of a command.",
        ]
    )


def unknown(word: str) -> str:
    near = get_close_matches(word, COMMANDS, n=1)
    hint = f"Perhaps you meant: tsallax {near[0]}" if near else f"Commands: {', '.join(COMMANDS)}"
    return f"tsallax: there is no command {word!r}. {hint}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the `tsallax` command and return its exit code: 2 for an invalid command line."""
    try:
        if arguments is None:
            from tsallax.cli.output import lasting_output

            lasting_output()
        return _run(*((sys.argv[1:] if arguments is None else arguments) or ["--help"]))
    except KeyboardInterrupt:
        print("tsallax: stopped", file=sys.stderr, flush=True)
        if arguments is None:
            sys.stdout.flush()
            os._exit(130)  # a running compilation would delay the exit of the process, and crash it
        return 130


def _run(name: str, *arguments: str) -> int:
    if name in ("-h", "--help"):
        print(usage())
        return 0
    if name == "--version":
        print(f"tsallax {__version__}")
        return 0
    if name not in COMMANDS:
        print(unknown(name), file=sys.stderr)
        return 2
    command = COMMANDS[name]
    # Loading a cached program would print pages of notes on pseudo-features of the compiler.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if command.guarded:
        from tsallax._jaxlib import BadJaxlibError, guard

        try:
            guard()
        except BadJaxlibError as error:
            print(f"tsallax: {error}", file=sys.stderr)
            return 1

    try:
        return parse(name, arguments)() or 0
    except (ValueError, OSError) as error:
        print(f"tsallax: {one_line(error)}", file=sys.stderr)
        return 2


def parse(name: str, words: Sequence[str]) -> Callable[[], int | None]:
    """Parse the command line of a subcommand, and return its call, which has not run yet.

    A command with very many options has its own help with the most important ones (`HELP` of its
    module), and all of them in `--help-all`. Errors are one line, without control characters.
    """
    import tyro

    from tsallax.cli.help_page import help_page, refusal

    module = import_module(COMMANDS[name].module)
    if not {"-h", "--help"}.isdisjoint(words):
        print(module.HELP if hasattr(module, "HELP") else help_page(name, module.run))
        raise SystemExit(0)  # as tyro's own help does

    @functools.wraps(module.run)
    def asked(*arguments: Any, **options: Any) -> Callable[[], int | None]:
        return functools.partial(module.run, *arguments, **options)

    words = ["--help" if word == "--help-all" else word for word in words]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            flags = (tyro.conf.FlagCreatePairsOff,)  # --best without --no-best
            return tyro.cli(asked, prog=f"tsallax {name}", args=words, config=flags)
    finally:
        if said.getvalue():
            print(printable(refusal(name, said.getvalue())), file=sys.stderr)


def one_line(error: Exception) -> str:
    """The message of an error that a user can fix, without the operating system's error number."""
    if isinstance(error, OSError) and error.strerror:
        return printable(
            f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        )
    return printable(error)
