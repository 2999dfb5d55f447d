"""The options of `tsallax train`, in groups, from the declarations in `Config`."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Optional, get_args, get_origin

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from tsallax.training.config import FIELDS, OFF, ONLY
from tsallax.training.presets import CHOICES, COMMON, NAMED, OPTIMISER_EPS, PRESETS
from tsallax.training.tuned import GENERAL, PARALLEL

GROUPS = {
    "common": "What to train, and for how long.",
    "algorithm": "Hyper-parameters, of which several values make a grid; learner and schedule.",
    "network": "The network and its head.",
    "environment": "The environment and its own options.",
    "saving": "Evaluations and checkpoints.",
}


METAVARS = {"env": "ENV", "algo": "NAME", "preset": "{" + ",".join((*NAMED, "FILE")) + "}"}


def whole(text: str) -> int:
    """An integer, which may be written as 1e5 or 100_000."""
    value = float(text)
    if not value.is_integer():
        raise ValueError(f"{text} is not a whole number")
    return int(value)


def _spec(parse: Any, metavar: str, several: bool) -> PrimitiveConstructorSpec:
    return PrimitiveConstructorSpec(
        nargs="*" if several else 1,
        metavar=metavar,
        instance_from_str=lambda words: tuple(map(parse, words)) if several else parse(words[0]),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [_short(value)],
    )


def truth(words: list[str]) -> bool:
    """Parses `--layer-norm True`, or `--layer-norm` alone."""
    text = " ".join(words) or "True"
    if text not in ("True", "False"):
        raise ValueError(f"{text} is neither True nor False")
    return text == "True"


SWITCH = PrimitiveConstructorSpec(
    nargs="*",
    metavar="[{True,False}]",
    instance_from_str=truth,
    is_instance=lambda value: True,
    str_from_instance=lambda value: [str(value)],
)


def _type_of(field: dataclasses.Field) -> Any:
    """The type that tyro parses, by the type of the field."""
    kind = next((t for t in (field.type, *get_args(field.type)) if t in (int, float, bool)), None)
    if field.metadata["grid"]:
        return Annotated[Any, _spec(float, "FLOAT [FLOAT ...]", several=True)]
    if field.name == "hidden":
        return Annotated[Any, _spec(whole, "INT [INT ...]", several=True)]
    if kind is int:
        return Annotated[Any, _spec(whole, "INT", several=False)]
    if kind is float:
        return Annotated[Any, _spec(float, "FLOAT", several=False)]
    if kind is bool:
        return Annotated[Any, SWITCH]
    return field.type


def in_effect(name: str) -> str:
    """Describes the default of an option, per preset if presets differ.

    For `tuned` it is the general default: `tsallax list` has those of single environments.
    """
    default = FIELDS[name].default
    if default is not None:
        return f"default: {_short(default)}" if default != "" else ""
    if name == "optimiser_eps":
        return ", ".join(f"{optimiser} {eps:g}" for optimiser, eps in OPTIMISER_EPS.items())
    if name in OFF:
        return f"default: {OFF[name]}"
    if name in ASIDE:
        return ASIDE[name]
    paper = {d: {**COMMON, **own, **CHOICES["paper"][d]} for d, own in PRESETS.items()}
    tuned = {
        d: {**own, **PARALLEL[d], **GENERAL[d]["parallel"], "learner": "parallel"}
        for d, own in paper.items()
    }
    shown = {
        "tuned": "" if name in ONLY["replay"] else _by_domain(name, tuned),
        "paper": _by_domain(name, tuned if name in ONLY["parallel"] else paper),
    }
    if not shown["tuned"] or shown["tuned"] == shown["paper"]:
        return shown["paper"] and f"default: {shown['paper']}"
    return "; ".join(f"{preset}: {words}" for preset, words in shown.items())


ASIDE = {
    "algo": "default: tal, or tal-ac for continuous actions",
    "preset": "default: tuned; paper, if choices are given",
    "choices": "default: paper, with its preset",
    "eval_every": "tuned: a twentieth of the steps; paper: 0",
}


def _by_domain(name: str, domains: dict[str, dict[str, Any]]) -> str:
    found = {domain: _short(own[name]) for domain, own in domains.items() if name in own}
    if len(found) == len(domains) and len(set(found.values())) == 1:
        return next(iter(found.values()))
    return ", ".join(f"{domain} {value}" for domain, value in found.items())


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_short, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _group(name: str, others: Mapping[str, Any]) -> type:
    entries = []
    for field in FIELDS.values():
        if field.metadata["group"] != name:
            continue
        literal = get_origin(field.type) is Literal
        metavar = "{" + ",".join(get_args(field.type)) + "}" if literal else None
        given = others.get(field.name, field.default)
        hint = f"default: {_short(given)}" if field.name in others else in_effect(field.name)
        about = tyro.conf.arg(
            name=field.name.rstrip("_"),
            help=field.metadata["help"],
            help_behavior_hint=f"({hint})" if hint else " ",
            aliases=field.metadata["aliases"] or None,
            metavar=METAVARS.get(field.name, metavar),
            prefix_name=False,
        )
        marks = (tyro.conf.Positional, about) if field.name == "env" else (about,)
        kind = _type_of(field)
        if field.default is None and get_origin(kind) is not Annotated:
            kind = Optional[kind]  # noqa: UP045 (a type that is known only at run time)
        default = dataclasses.field(default=given)
        entries.append((field.name, Annotated[kind, *marks], default))
    made = dataclasses.make_dataclass(name, entries, frozen=True)
    made.__doc__ = GROUPS[name]
    return made


def config_options(**others: Any) -> type:
    """A dataclass with a field for each group of options; `others` are a command's own defaults."""
    groups = {name: _group(name, others) for name in GROUPS}
    entries = [(name, group, dataclasses.field(default=group())) for name, group in groups.items()]
    return dataclasses.make_dataclass("options", entries, frozen=True)
