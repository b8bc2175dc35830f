"""What of the mechanisms grows, the order that one answer should have, and values that are far apart.

`ORDERS` says of each mechanism what docs/mechanisms.md says in its column "cost of one answer", and `GROWTHS`
has a case for each size that an order names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from benchmarks import mechanism_answers as answers
from benchmarks.mechanism_answers import ADDITIVE, CHOICES, GROUPS, SELECTIONS, STEPS, THRESHOLDS, Answer

Law: TypeAlias = Literal["linear", "slow", "none"]

NUMBERS = (1, 1_000, 100_000, 1_000_000, 3_000_000)
FEWER = (1, 100, 10_000, 30_000, 100_000)  # of a mechanism that draws many candidates for each
READ = (1, 10_000, 1_000_000, 3_000_000, 10_000_000)  # values of an array, in blocks of up to 65,536
ROWS = (100, 1_000, 100_000, 1_000_000, 3_000_000)
HORIZONS = (2**10, 2**12, 2**15, 2**17, 2**20)
CELLS = 1_000_000  # where D grows
MANY = 100_000  # numbers, candidates, values, people, groups, cells or rows where nothing grows
SCALES = (1, 10**3, 10**6, 10**9)

ORDERS = {
    **dict.fromkeys(ADDITIVE, "O(d)"),
    **dict.fromkeys(CHOICES, "O(n)"),
    "TopK": "O(kn)",
    **dict.fromkeys(THRESHOLDS, "O(values read)"),
    "RandomizedResponse": "O(n)",
    "TreeCounter": "O(log T) a step",
    "Continual": "O(log T) a step and group",
    "ProposeTestRelease": "O(1), after your distance",
    "SmoothSensitivity": "O(1), after your bound",
    **dict.fromkeys(SELECTIONS, "O(groups)"),
    "AdaptiveSelection": "O(groups) a round",
    "Quantiles": "O(groups × cells × levels)",
    "NestedQuantiles": "O(groups × cells × D)",
    "SampleAndAggregate": "O(n log n), and the function on each part",
}
"""The order of one answer, in the words of docs/mechanisms.md."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What one answer takes while one size grows and all else stays.

    Attributes:
        name: Of the mechanism.
        over: What grows, as its order names it; "" where the order is about something else.
        unit: One of what grows, in words, and several.
        ready: From a size to the call that is timed; what it does before is not.
        sizes: Five or so, over two orders of magnitude or more.
        law: How the time should follow: "linear", up to a logarithm; "slow", not faster than `count`;
            "none", where no order is stated.
        how: Other sizes, or what is timed where it is not an answer.
        steps: How many answers one call gives.
        count: What "slow" times should follow.
    """

    name: str
    over: str
    unit: tuple[str, str]
    ready: Callable[[int], Answer]
    sizes: tuple[int, ...] = NUMBERS
    law: Law = "linear"
    how: str = ""
    steps: int = 1
    count: Callable[[int], float] = float


@dataclass(frozen=True, slots=True)
class Values:
    """The same answer for two private values that are far apart and alike in all that is public."""

    name: str
    one: tuple[str, Answer]
    other: tuple[str, Answer]


def _flat(_: int) -> float:
    return 1.0


def _growths() -> Iterator[Growth]:
    for name in ADDITIVE:
        sizes, unit = FEWER if name == "BoundedLaplace" else NUMBERS, ("number", "numbers")
        yield Growth(name, "d", unit, lambda d, name=name: answers.added(name, d), sizes)
    for name in CHOICES:
        sizes = (10, *NUMBERS[1:]) if name == "TopK" else NUMBERS
        unit, how = ("candidate", "candidates"), "k = 10" if name == "TopK" else ""
        yield Growth(name, "n", unit, lambda n, name=name: answers.chosen(name, n), sizes, how=how)
    unit, sizes = ("choice", "choices"), (1, 3, 10, 30, 100)
    yield Growth("TopK", "k", unit, lambda k: answers.top(k, 10_000), sizes, how="n = 10,000")
    unit = ("value", "values read")
    for name in THRESHOLDS:
        how = "an array" if name == "AboveThreshold" else ""
        yield Growth(
            name, "values read", unit, lambda size, name=name: answers.searched(name, size), READ, how=how
        )
        if name == "AboveThreshold":
            yield Growth(
                name,
                "values read",
                unit,
                lambda size, name=name: answers.searched(name, size, lazily=True),
                (1, 10, 100, 1_000, 10_000),
                how="an iterator, one value at a time",
            )
    yield Growth("RandomizedResponse", "n", ("person", "people"), answers.responded)
    yield from _streams()
    yield from _fitted()
    yield from _grouped()
    yield from _ranked()
    yield Growth("SampleAndAggregate", "n", ("row", "rows"), answers.parted, ROWS, how="means of 100 parts")
    yield Growth(
        "SampleAndAggregate",
        "part",
        ("part", "parts"),
        lambda parts: answers.parted(MANY, parts),
        (10, 100, 1_000, 10_000, 100_000),
        how="means of parts of 100,000 rows",
    )


def _streams() -> Iterator[Growth]:
    unit, how = ("step", "steps T"), "one step"
    yield Growth("TreeCounter", "T", unit, answers.counted, HORIZONS, "slow", how, STEPS, math.log2)
    how = f"one step of {GROUPS:,} groups"
    yield Growth("Continual", "T", unit, answers.streamed, HORIZONS, "slow", how, count=math.log2)
    yield Growth(
        "Continual",
        "group",
        ("group", "groups"),
        lambda groups: answers.streamed(2**12, groups),
        (1, 1_000, 10_000, 30_000, 100_000),
        how="one step, T = 4,096",
    )
    yield Growth(
        "Continual", "", ("step", "steps T"), answers.planned, HORIZONS[:4], "none", "choosing a plan, once"
    )


def _fitted() -> Iterator[Growth]:
    """Mechanisms that need something to be worked out before."""
    unit = ("row", "rows")
    for name, ready, before, how in (
        ("ProposeTestRelease", answers.proposed_from, answers.distance_of, "median_of(rows).distance(bound)"),
        ("SmoothSensitivity", answers.smoothed_from, answers.bound_of, "median_of(rows).smooth(beta)"),
    ):
        yield Growth(name, "1", unit, ready, ROWS, "slow", "the answer alone", count=_flat)
        yield Growth(name, "", unit, before, ROWS, how=f"before the answer: `{how}`")


def _grouped() -> Iterator[Growth]:
    unit = ("group", "groups")
    for name in SELECTIONS:
        how = "both rounds, from the weights of groups" if name == "AdaptiveSelection" else ""
        yield Growth(name, "groups", unit, lambda groups, name=name: answers.selected(name, groups), how=how)
    yield Growth(
        "AdaptiveSelection",
        "",
        ("unit", "units"),
        answers.joined,
        (10, 100, 1_000, 10_000, 100_000),
        how="`release`, from units × 100 groups",
    )


def _ranked() -> Iterator[Growth]:
    for name in ("Quantiles", "NestedQuantiles"):
        yield Growth(
            name,
            "cells",
            ("cell", "cells"),
            lambda cells, name=name: answers.ranked(name, answers.weights(1, cells)),
            (100, 10_000, 100_000, 300_000, 1_000_000),
            how="1 group, 3 levels",
        )
        yield Growth(
            name,
            "groups",
            ("group", "groups"),
            lambda groups, name=name: answers.ranked(name, answers.weights(groups, 100)),
            (1, 100, 1_000, 3_000, 10_000),
            how="100 cells, 3 levels",
        )
    unit = ("level", "levels")
    yield Growth(
        "Quantiles",
        "levels",
        unit,
        lambda count: answers.ranked("Quantiles", answers.weights(1, 10_000), count),
        (1, 3, 10, 30, 100),
        how="1 group, 10,000 cells",
    )
    yield Growth(
        "NestedQuantiles",
        "D",
        unit,
        lambda count: answers.ranked("NestedQuantiles", answers.weights(1, CELLS), count),
        (1, 3, 7, 31, 127),
        "slow",
        "1 group, 1,000,000 cells; D = 1, 2, 3, 5, 7",
        count=int.bit_length,
    )


GROWTHS = tuple(_growths())


def values() -> Iterator[Values]:
    """Pairs of private values, made when they are asked for."""
    for name in ADDITIVE:
        far = 50.0 if name == "BoundedLaplace" else 1e6
        for size, said in ((1, "one number"), (MANY, f"{MANY:,} numbers")):
            other = f"{said} of {far:,.0f}", answers.added(name, size, far)
            yield Values(name, (f"{said} of 0", answers.added(name, size)), other)
    for name in CHOICES:
        other = "scores within 1e6", answers.chosen(name, MANY, 2e5)
        yield Values(name, ("scores within 1", answers.chosen(name, MANY, 0.2)), other)
    for name in THRESHOLDS:
        other = "values of −1e9", answers.searched(name, MANY, -1e9)
        yield Values(name, ("values of −1e3", answers.searched(name, MANY, -1e3)), other)
    other = "all say yes", answers.responded(MANY, 1)
    yield Values("RandomizedResponse", ("all say no", answers.responded(MANY)), other)
    other = "steps of 1e6", answers.counted(2**20, 10**6)
    yield Values("TreeCounter", ("steps of 0", answers.counted(2**20, 0)), other)
    other = "steps of 1e6", answers.streamed(2**12, value=10**6)
    yield Values("Continual", ("steps of 0", answers.streamed(2**12, value=0)), other)
    other = "a distance of 1e6", answers.proposed(5e5, 10**6)
    yield Values("ProposeTestRelease", ("a distance of 0", answers.proposed(0.0, 0)), other)
    other = "a bound of 1e6", answers.smoothed(5e5, 1e6)
    yield Values("SmoothSensitivity", ("a bound of 0", answers.smoothed(0.0, 0.0)), other)
    other = "groups of 10 units, all hidden", answers.selected("AdaptiveSelection", MANY, 10)
    one = "groups of 1 unit, all hidden", answers.selected("AdaptiveSelection", MANY, 1)
    yield Values("AdaptiveSelection", one, other)
    for name in SELECTIONS:
        other = "groups of 1e6 units", answers.selected(name, MANY, 10**6)
        yield Values(name, ("groups of 1 unit", answers.selected(name, MANY, 1)), other)
    even, heavy = np.full((1, MANY), 5), np.zeros((1, MANY), np.int64)
    heavy[0, MANY // 2] = 5 * MANY
    for name in ("Quantiles", "NestedQuantiles"):
        other = "all rows in one cell", answers.ranked(name, heavy)
        yield Values(name, ("rows in all cells", answers.ranked(name, even)), other)
    other = "rows of 1e6", answers.parted(MANY, value=1e6)
    yield Values("SampleAndAggregate", ("rows of 0", answers.parted(MANY, value=0.0)), other)
