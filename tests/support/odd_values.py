"""One odd value among private ones: pairs of neighbours in many containers, and whether one row decides more.

A *pair* is a list of usual values and the same list with one odd value added, or in the place of another,
both in one kind of container. What a function gives for the two may differ in its numbers, never in type,
shape or status. A function is one of two kinds:

- **total**: no value raises. The neighbour has the same outline as the usual list.
- **alone**: a value that is none of the domain raises, which the docstring puts outside the claim. Then it
  must raise by itself: the same status and the same words, whatever the other values are.
"""

from __future__ import annotations

import random
from collections import UserList
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from sfumato.testing import seeded

__all__ = ["CONTAINERS", "ODD", "Found", "Target", "search"]

ODD: dict[str, Any] = {
    "half": 0.5, "true": True, "numpy true": np.True_, "none": None, "nan": float("nan"), "NA": pd.NA,
    "NaT": pd.NaT, "decimal": Decimal("0.1"), "decimal NaN": Decimal("sNaN"),
    "decimal 1e400": Decimal("1e400"), "fraction": Fraction(1, 3), "2**63": 2**63, "2**70": 2**70,
    "-2**70": -(2**70), "10**400": 10**400, "float32": np.float32(0.7), "int8": np.int8(1),
    "longdouble": np.longdouble(1), "complex": 1j, "complex64": np.complex64(1), "text": "x", "bytes": b"x",
    "surrogate": "\ud800", "digit": "\u0661", "number": "1", "nested": [1, 2, 3], "triple": (1.0, 2.0, 3.0),
    "inf": float("inf"), "-inf": float("-inf"), "minus zero": -0.0, "subnormal": 5e-324, "0-d": np.array(1.0),
    "0-d object": np.array(None, dtype=object), "array": np.ones(2), "date": datetime(2020, 1, 1),
    "datetime64": np.datetime64("2020-01-01", "ns"), "datetime64 NaT": np.datetime64("NaT"),
    "timedelta64": np.timedelta64(1, "ns"), "dict": {}, "negative": -1,
}  # fmt: skip
"""What may stand where a usual value is expected."""


def _objects(values: list[Any]) -> Any:
    made = np.empty(len(values), object)
    for place, value in enumerate(values):
        made[place] = value
    return made


def _typed(dtype: str) -> Callable[[list[Any]], Any]:
    def make(values: list[Any]) -> Any:
        if any(isinstance(each, list | tuple | np.ndarray | str | bytes | dict) for each in values):
            raise TypeError
        return np.array(values, dtype)

    return make


def _text(values: list[Any]) -> Any:
    if not all(isinstance(each, str) for each in values):
        raise TypeError
    return np.array(values, "U8")


CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "user list": UserList,
    "objects": _objects,
    "series": lambda values: pd.Series(_objects(values), dtype=object),
    "index": lambda values: pd.Index(_objects(values), dtype=object),
    "polars objects": lambda values: pl.Series("x", values, dtype=pl.Object),
    "generator": lambda values: (each for each in values),
    "int64": _typed("int64"),
    "int8": _typed("int8"),
    "uint64": _typed("uint64"),
    "float64": _typed("float64"),
    "float32": _typed("float32"),
    "bool": _typed("bool"),
    "U8": _text,
    "Int64": lambda values: pd.Series(values, dtype="Int64"),
    "Float64": lambda values: pd.Series(values, dtype="Float64"),
    "boolean": lambda values: pd.Series(values, dtype="boolean"),
    "pandas floats": lambda values: pd.Series(values, dtype="float64"),
    "polars Int64": lambda values: pl.Series("x", values, dtype=pl.Int64),
    "polars Float64": lambda values: pl.Series("x", values, dtype=pl.Float64),
    "arrow int64": lambda values: pa.array(values, pa.int64()),
    "arrow float64": lambda values: pa.array(values, pa.float64()),
    "arrow strings": lambda values: pa.array(values, pa.string()),
}
"""Containers, each of a type that no value decides; one that cannot hold a value raises."""

_PLAIN = ("list", "tuple", "user list", "objects", "series", "index", "polars objects", "generator")


@dataclass(frozen=True)
class Target:
    """A function of a private column.

    Attributes:
        name: Unique.
        call: Takes a column, gives what is released.
        base: A usual list of so many values, from a generator.
        total: Whether no value raises; otherwise each raises by itself.
        grows: Whether a neighbour may have one row more; else one is exchanged.
        outline: What of the answer must not differ.
        docs: Where the docstrings say that a refusal is outside the claim.
    """

    name: str
    call: Callable[[Any], Any]
    base: Callable[[random.Random, int], list[Any]]
    total: bool = True
    grows: bool = True
    outline: Callable[[Any], Any] | None = None
    docs: tuple[Any, ...] = ()


@dataclass
class Found:
    """Pairs searched, those that were answered, pairs that no container could hold, and each finding."""

    pairs: int = 0
    answered: int = 0
    unheld: int = 0
    refused: int = 0
    findings: list[str] = field(default_factory=list)


def outline_of(answer: Any) -> Any:
    """The type and shape of an answer, without its length along the first axis."""
    if isinstance(answer, np.ndarray):
        return "array", answer.dtype.str, answer.shape[1:]
    if isinstance(answer, Mapping):
        return "mapping", tuple((key, outline_of(value)) for key, value in answer.items())
    if isinstance(answer, tuple):
        return "tuple", tuple(map(outline_of, answer))
    if isinstance(answer, list):
        return "list", tuple(sorted({str(outline_of(each)) for each in answer}))
    if is_dataclass(answer):
        names = [each for each in answer.__dataclass_fields__ if not each.startswith("_")]
        return type(answer).__name__, tuple((name, outline_of(getattr(answer, name))) for name in names)
    return type(answer).__name__


def _status(target: Target, make: Callable[[list[Any]], Any], values: list[Any], seed: str) -> Any:
    column = make(values)
    try:
        with seeded(seed):
            answer = target.call(column)
    except Exception as error:
        return "raises", type(error).__name__, str(error)
    return "gives", (target.outline or outline_of)(answer)


def _held(make: Callable[[list[Any]], Any], values: list[Any]) -> bool:
    try:
        make(values)
    except Exception:
        return False
    return True


def _neighbour(target: Target, draw: random.Random, values: list[Any], odd: Any) -> list[Any]:
    near = list(values)
    place = draw.randrange(len(near) + target.grows)
    if target.grows and draw.random() < 0.6:
        near.insert(place, odd)
    else:
        near[place % len(near)] = odd
    return near


def _documented(target: Target) -> bool:
    return any("outside the claim" in " ".join((each.__doc__ or "").split()) for each in target.docs)


def _pairs(seed: str, target: Target, each: int) -> Iterator[tuple[random.Random, str, str]]:
    draw = random.Random(f"{seed}/{target.name}")
    for odd in ODD:
        typed = [name for name in CONTAINERS if name not in _PLAIN]
        for container in (*draw.sample(_PLAIN, each), draw.choice(typed)):
            yield draw, odd, container


def search(targets: list[Target], seed: str = "odd", each: int = 2) -> Found:
    """Random pairs for each target and odd value: `each` containers of objects and one of a declared type."""
    found = Found()
    for target in targets:
        for draw, name, container in _pairs(seed, target, each):
            make, odd = CONTAINERS[container], ODD[name]
            size = draw.randrange(3, 9)
            usual, other = target.base(draw, size), target.base(draw, size)
            near, beside = (_neighbour(target, draw, values, odd) for values in (usual, other))
            if not all(_held(make, values) for values in (usual, other, near, beside)):
                found.unheld += 1
                continue
            found.pairs += 1
            first, second = (_status(target, make, values, f"{seed}{size}") for values in (usual, near))
            found.answered += first[0] == second[0] == "gives"
            if first[0] == "raises" and second == first:
                continue  # refused by its declared type
            if target.total:
                if first != second:
                    found.findings.append(f"{target.name}, {name} in {container}: {first} and {second}")
                continue
            third = _status(target, make, beside, f"{seed}{size}")
            found.refused += second[0] == "raises"
            if second != third:
                found.findings.append(f"{target.name}, {name} in {container}: {second} beside {third}")
            elif second[0] == "gives" and second != first:
                found.findings.append(f"{target.name}, {name} in {container}: {first} became {second}")
            elif second[0] == "raises" and (second[1] != "InvalidValue" or not _documented(target)):
                found.findings.append(
                    f"{target.name}, {name} in {container}: refused, undocumented: {second}"
                )
    return found
