"""A study: which settings to run and how to plot them, from a short TOML file.

title = "Does q matter on Breakout?"
rows = ["env"]                  # fields that make the rows of the picture
columns = ["alpha"]             # and its columns
curves = ["algo", "q"]          # and the curves in one panel

[common]                        # fields of a run, for every block; the preset is the paper's
env = "MinAtar/Breakout"
steps = 200_000
seeds = 3

[[runs]]                        # a block: every combination of its values is a setting
algo = ["tal", "tsallis-dqn"]
q = [1.5, 2, 3]
alpha = [0.01, 0.03]

[[scales.quick]]                # optional: the first rule whose `match` fits the environment
match = ["MinAtar/*"]
steps = 20_000
only = { q = [2] }              # settings with other values are omitted
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from tsallax.operators import ALGORITHMS
from tsallax.spelling import suggest
from tsallax.storage.files import plain_name, read_named
from tsallax.storage.toml_file import LARGEST, parse_toml
from tsallax.training.config import CLOSED, FIELDS, NUMBERS, Config
from tsallax.training.resolve import resolve

LISTS = {"hidden"}  # fields of which a list is one value
KEYS = ("title", "about", "metric", "rows", "columns", "curves", "common", "runs", "primary")
RECORDED = ("episode_return", "action_gap", "max_q", "entropy", "support", "kl", "loss")
SHARED = "paper"  # the name of the scales that the paper's figures share
MOST_SETTINGS = 10_000  # per study


class Setting(NamedTuple):
    """A configuration with one value for each number, and its labels in the study."""

    labels: dict[str, Any]
    config: Config


@dataclass(frozen=True)
class Study:
    name: str
    title: str
    blocks: tuple[dict[str, Any], ...]
    about: str = ""
    metric: str = "episode_return"
    rows: tuple[str, ...] = ("env",)
    columns: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()  # default: the other fields that distinguish its settings
    scales: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    primary: dict[str, str] = field(default_factory=dict)  # claim: the reading that decides it

    @property
    def keys(self) -> list[str]:
        """The fields that distinguish its settings, which are their labels in its table."""
        named = {name for block in self.blocks for name in block}
        drop = {"seeds", "first_seed", "steps"}
        return ["env", "algo", *(n for n in FIELDS if n in named - drop - {"env", "algo"})]


def names() -> list[str]:
    """The studies that ship with the package, the paper's figures first."""
    found = [Path(f.name).stem for f in _folder().iterdir() if f.name.endswith(".toml")]
    order = {name: (not name.startswith("fig"), len(name), name) for name in found}
    return sorted(set(found) - {"scales"}, key=order.__getitem__)


def load(name: str) -> Study:
    """Load a study that ships with the package, by its name."""
    if name not in names():
        raise ValueError(f"there is no study {name!r}; {suggest(name, names())}")
    return parse((_folder() / f"{name}.toml").read_text(), name)


def read(path: Path) -> Study:
    """Read a user's own study from a TOML file."""
    return parse(read_named(path, LARGEST), path.stem)


def parse(text: str, name: str) -> Study:
    """Parse a study; errors name the place of what is not valid."""
    plain_name(name)  # the folder of its results has this name
    table = parse_toml(text, name)
    _known(table, (*KEYS, "scales"), name)
    common, runs = table.get("common", {}), table.get("runs", [])
    tables = isinstance(runs, list) and runs and all(isinstance(block, dict) for block in runs)
    if not isinstance(common, dict) or not tables:
        raise ValueError(f"{name} has nothing to run: it needs a [[runs]] table")
    blocks = tuple(
        _block({**common, **block}, f"{name}, [[runs]] {i}") for i, block in enumerate(runs, 1)
    )
    scales = table.get("scales", {})
    if scales == SHARED:
        scales = parse_toml((_folder() / "scales.toml").read_text(), "scales")
    for scale, rules in _table(scales, f"{name}, scales").items():
        plain_name(scale)
        for rule in rules:
            _check_rule(rule, f"{name}, [[scales.{scale}]]")
    own: dict[str, Any] = {key: str(table[key]) for key in ("about", "metric") if key in table}
    for key in ("rows", "columns", "curves"):
        if key in table:
            own[key] = _names(table[key], f"{name}, {key}")
    if own.get("metric", RECORDED[0]) not in RECORDED:
        raise ValueError(f"{name}: metric must be one of {', '.join(RECORDED)}")
    primary = table.get("primary", {})
    if not isinstance(primary, dict) or not all(isinstance(v, str) for v in primary.values()):
        raise ValueError(f'{name}, [primary] must name a reading per claim, such as C1 = "..."')
    return Study(name, str(table.get("title", name)), blocks, scales=scales, primary=primary, **own)


def settings(study: Study, scale: str = "", seeds: int = 0) -> list[Setting]:
    """Every setting of the study at a scale, resolved and without duplicates.

    `seeds`, unless it is 0, replaces the scale's own number.
    """
    if scale and scale not in study.scales:
        there = ", ".join(study.scales) or "none"
        raise ValueError(f"{study.name} has no scale {scale!r}; there are: {there}")
    rules = study.scales.get(scale, [])
    count = sum(math.prod(map(len, block.values())) for block in study.blocks)
    if count > MOST_SETTINGS:
        many = f"{count:,}" if count < 10**12 else f"{count:.1e}"
        raise ValueError(f"{study.name} has {many} settings; at most {MOST_SETTINGS:,} are run")
    found = [
        setting
        for block in study.blocks
        for values in itertools.product(*block.values())
        if (setting := _setting(study, dict(zip(block, values, strict=True)), rules, seeds))
    ]
    unique: dict[Any, Setting] = {}
    for setting in found:
        first = unique.setdefault(tuple(setting.labels.items()), setting)
        if first.config != setting.config:
            odd = [n for n in FIELDS if getattr(first.config, n) != getattr(setting.config, n)]
            raise ValueError(
                f"{study.name}: two settings are alike but for {', '.join(odd)}, "
                f"of which a study has one value each: {setting.labels}"
            )
    if not unique:
        raise ValueError(f"{study.name} has nothing to run at scale {scale!r}")
    named: dict[tuple[str, ...], Setting] = {}
    for setting in unique.values():
        first = named.setdefault(label_texts(study, setting), setting)
        if first is not setting:
            raise ValueError(
                f"{study.name}: two settings are alike to six digits, which is all that a table "
                f"tells apart: {first.labels} and {setting.labels}"
            )
    return list(unique.values())


def label_texts(study: Study, setting: Setting) -> tuple[str, ...]:
    """How the study's table labels a setting."""
    return tuple(label_text(setting.labels[key]) for key in study.keys)


def label_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _setting(
    study: Study, values: dict[str, Any], rules: list[dict[str, Any]], seeds: int
) -> Setting | None:
    rule = _rule(str(values.get("env", "")), rules)
    for name, allowed in rule.get("only", {}).items():
        if values.get(name, "") not in allowed:
            return None
    own = {n: v for n, v in rule.items() if n not in ("match", "only")}
    own |= {"seeds": seeds} if seeds else {}
    run = {**values, **own}
    labels = {key: _label(run.get(key, "")) for key in study.keys}
    try:
        given = {n: _value(n, v) for n, v in run.items()}
        if given.get("q", (None,))[0] in CLOSED:
            given["policy"] = "exact"  # one run for all of them
        config = resolve(Config(**{"preset": "paper", **given}))
        if config.stop_at is not None and config.seeds > 1:
            raise ValueError(
                "stop_at ends each seed at a step of its own, and a table has as many rows of "
                "each: leave it out, or run one seed"
            )
        return Setting({**labels, "algo": config.algo}, config)
    except (TypeError, AttributeError):
        raise ValueError(f"{study.name}: a value of the wrong kind in {values}") from None
    except ValueError as error:
        raise ValueError(f"{study.name}: {error}") from None


def _label(value: Any) -> Any:
    return "-".join(map(str, value)) if isinstance(value, list) else value


def _rule(env: str, rules: Iterable[dict[str, Any]]) -> dict[str, Any]:
    fits = (rule for rule in rules if any(fnmatch(env, m) for m in rule.get("match", ["*"])))
    return next(fits, {})


def _value(name: str, value: Any) -> Any:
    if name in NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} must be a number, not {value!r}")
        return (float(value),)
    return tuple(value) if name in LISTS else value


def _block(fields: Mapping[str, Any], place: str) -> dict[str, list[Any]]:
    """Maps each field to the list of its values."""
    _known(fields, FIELDS, place)
    block = {}
    for name, value in fields.items():
        if (name, value) == ("algo", "all"):
            value = list(ALGORITHMS)
        if value == []:
            raise ValueError(f"{place}: {name} is an empty list, which leaves nothing to run")
        several = isinstance(value, list) and (name not in LISTS or isinstance(value[0], list))
        block[name] = value if several else [value]
        for one in block[name]:
            if not isinstance(one, list if name in LISTS else str | int | float):
                raise ValueError(f"{place}: {name} cannot be {str(one)[:40]}")
    if "env" not in block:
        raise ValueError(f"{place}: which env?")
    return block


def _check_rule(rule: Mapping[str, Any], place: str) -> None:
    _known(rule, (*FIELDS, "match", "only"), place)
    match = rule.get("match", [])
    if not isinstance(match, list) or not all(isinstance(pattern, str) for pattern in match):
        raise ValueError(f'{place}: match must be a list, such as ["MinAtar/*"]')
    only = rule.get("only", {})
    if not isinstance(only, dict) or not all(isinstance(v, list) for v in only.values()):
        raise ValueError(f"{place}: only must be a table of lists, such as {{ q = [2, 3] }}")
    _known(only, FIELDS, f"{place}, only")


def _known(found: Mapping[str, Any], allowed: Iterable[str], place: str) -> None:
    for name in found:
        if name not in allowed:
            near = get_close_matches(name, list(allowed), 1)
            raise ValueError(
                f"{place}: unknown field {name!r}"
                + (f"; did you mean {near[0]!r}?" if near else "")
            )


def _names(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise ValueError(f"{place} must be a list of fields")
    _known(dict.fromkeys(value), FIELDS, place)
    return tuple(value)


def _table(value: Any, place: str) -> dict[str, list[dict[str, Any]]]:
    if not isinstance(value, dict) or not all(
        isinstance(rules, list) and all(isinstance(rule, dict) for rule in rules)
        for rules in value.values()
    ):
        raise ValueError(f"{place} must be [[scales.NAME]] tables")
    return value


def _folder() -> Any:
    return resources.files("tsallax.experiments") / "studies"
