"""A question, its noise and its price in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never

from sfumato.mechanisms import AdaptiveSelection
from sfumato.plan.expressions.written import written, written_argument, written_rows
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.selecting import Selection
from sfumato.plan.questions.aggregates import Estimator, Linear
from sfumato.plan.questions.aggregates._average import Average
from sfumato.plan.questions.bounding import Bounding
from sfumato.plan.questions.nodes import LEVEL, Key, Measured, Measurement
from sfumato.plan.questions.others import searched_of
from sfumato.plan.questions.relations import Rows
from sfumato.plan.questions.sensitivity import is_exchange
from sfumato.plan.questions.sources import is_joined_below
from sfumato.render import shown
from sfumato.schema import PrivacyUnit

__all__ = [
    "NOT_A_LIFETIME",
    "count_notes",
    "exact",
    "figure",
    "keys_in_words",
    "measurement_in_words",
    "noise_in_words",
    "selection_note",
    "selections_in_words",
    "spoken",
    "unit_notes",
]


_NEARLY = Fraction(999, 1000)


def exact(value: Fraction) -> str:
    """An exact number as a short decimal where it is one, else to six digits."""
    short = f"{float(value):.15g}"
    return short if Fraction(short) == value else f"{float(value):.6g}"


def figure(value: float) -> str:
    """A half-width to three digits, rounded up."""
    if not math.isfinite(value) or value <= 0:
        return "∞" if value > 0 else "0"
    unit = Fraction(10) ** min(0, math.floor(math.log10(value)) - 2)
    up = math.ceil(Fraction(value) * (1 - Fraction(1, 10**12)) / unit) * unit
    return shown(int(up)) if up.denominator == 1 else f"{float(up):.15g}"


def measurement_in_words(measurement: Measurement, unit: PrivacyUnit) -> str:
    """What is read, in a few words."""
    argument = measurement.argument
    name = "" if argument is None else written_argument(argument)
    match measurement.kind:
        case "rows":
            return "number of rows"
        case "units":
            return f"number of {unit.column}" if unit.column else "number of rows"
        case "present":
            anyone = measurement.per == "total" and measurement.upper == 1
            rows = "rows" if argument is None else written_rows(argument)
            return f"number of {unit.column} with {name}" if anyone else f"number of {rows}"
        case "values":
            return f"number of values of {name}"
        case "cells":
            return f"number of rows in each cell of {name}"
        case "sum":
            return _sum_in_words(measurement, unit, name)
        case unknown:
            assert_never(unknown)


def _sum_in_words(measurement: Measurement, unit: PrivacyUnit, name: str) -> str:
    grain = Fraction(1, 1 << measurement.bits)
    low, high = (exact(bound * grain) for bound in (measurement.lower, measurement.upper))
    whose = {"row": "each", "total": f"each {unit.column}'s", "average": f"the average of each {unit.column}"}
    return f"sum of {name}, {whose[measurement.per]} in {low}..{high}"


def noise_in_words(noise: Noise) -> str:
    """The law of the noise and its spread."""
    return f"{noise.law}, {'sd' if noise.law == 'gaussian' else 'scale'} {noise.scale:.3g}"


def keys_in_words(keys: tuple[Key, ...], groups: int | None) -> str:
    """How many groups there are, and by what."""
    if not keys:
        return "one, of all rows"
    if groups is None:
        return f"those that are found, by {', '.join(written(key.expression, 30) for key in keys)}"
    return f"{groups:,} by {', '.join(written(key.expression, 30) for key in keys)}"


def selections_in_words(measured: Measured) -> list[str]:
    """What each selection of groups is about; those of the levels of one rank are selected together."""
    ranks = searched_of(measured)
    if len(ranks) < 2:
        return ["groups that enough units share"]
    return [f"{_groups_by(measured, rank)} that enough units share" for rank in ranks]


def selection_note(selections: Sequence[Selection], measured: Measured) -> str:
    """Which groups will be reported where they are not public, and what becomes of the others."""
    first, ranks = selections[0], searched_of(measured)
    if isinstance(first, AdaptiveSelection):
        return _weights_note(first)
    rule = (
        f"Groups are reported that more than {first.threshold} units share, after noise; one of "
        f"{_surely(first)[1]} is {_surely(first)[0]} reported."
    )
    if not measured.levels:
        return f"{rule} Others are left out, and the bars hold for those shown."
    rule += f" These are {_groups_by(measured, ranks[0])}."
    for selection, rank in zip(selections[1:], ranks[1:], strict=True):
        rule += (
            f" For {_groups_by(measured, rank)} it is {selection.threshold}, and "
            f"{' '.join(_surely(selection))}, unless a part of one is reported already."
        )
    return (
        f"{rule} What others have is in rows of other keys, one beside the groups that begin alike, so that "
        f"every level has all of it; the column {LEVEL} says what a row is about."
    )


def _weights_note(selection: AdaptiveSelection) -> str:
    """The same where groups are found by weight."""
    alone, spread = selection.least(_NEARLY, degree=1), selection.least(_NEARLY)
    return (
        f"Groups are reported whose units weigh more than {selection.threshold:.4g} together, after noise: a "
        "unit in one group weighs 1 there, one in n groups 1/√n in each. That is nearly always so for "
        f"{alone} units in one group each, and for {spread} in {selection.groups} each. Groups that a first "
        "round finds leave what their units weigh to others. What is not found is left out, and the bars "
        "hold for the groups shown."
    )


def _surely(selection: Selection) -> tuple[str, str]:
    """How many units are always, or nearly always, enough."""
    if selection.certain is None:
        return "nearly always", f"{selection.least(_NEARLY)}"
    return "always", f"{selection.certain}"


def _groups_by(measured: Measured, levels: Sequence[tuple[int, ...]]) -> str:
    """Groups of some levels by their keys: `groups by city and day, and groups by age`."""
    keys = [" and ".join(written(measured.keys[key].expression, 30) for key in level) for level in levels]
    return "groups by " + ", and groups by ".join(keys)


def count_notes(rows: int, estimators: Sequence[Estimator], measured: Measured) -> list[str]:
    """What the declared number of rows is used for, or why it is not."""
    if any(isinstance(estimator, Linear) and estimator.rows is not None for estimator in estimators):
        return [
            f"The number of rows, {rows:,}, is declared and public: it is not measured, and what is asked of "
            "all rows takes it as it is."
        ]
    if not any(
        isinstance(estimator, Average) or (isinstance(estimator, Linear) and estimator.averages)
        for estimator in estimators
    ):
        return []
    if measured.keys or measured.predicate is not None:
        return [f"Of the {rows:,} rows, how many are in a group or pass a condition is private."]
    return [
        f"Of the {rows:,} rows, how many have a number is private: have the column declared as not nullable, "
        "or write COALESCE(x, 0) with a value within its bounds, and no count is measured."
    ]


NOT_A_LIFETIME = (
    "not a lifetime: whoever is in the data for 12 times as long may lose 12 times this epsilon, at a delta "
    "that grows faster than that"
)
"""What a price does not say where units are windows of time (docs/proofs/windows.md)."""


def unit_notes(
    read: Rows,
    unit: PrivacyUnit,
    *,
    bounding: Bounding,
    keyed: bool,
    rows: bool,
    units: bool,
    steps: bool = False,
) -> list[str]:
    """What one unit's rows count for: the quantity that is estimated.

    Args:
        read: Whose rows they are.
        unit: The unit with the limits of the question.
        bounding: How units are held within them.
        keyed: Whether there are groups.
        rows: Whether rows are counted or summed.
        units: Whether units are counted.
        steps: Whether this is about a step of a series.
    """
    notes = []
    if unit.column is None and read.owner is not None:
        rest = "nothing is weighted or left out."
        if is_joined_below(read.source):
            rest = "of many rows that meet in a join below, only some are looked at."
        notes.append(f"Each {read.owner} has one row here and counts once; {rest}")
    elif unit.column is None:
        notes.append("Each row is a privacy unit: right only where nobody can have two rows.")
    else:
        notes += bounding.notes(unit, keyed=keyed, rows=rows, units=units)
        if steps and notes:
            notes.append(
                f"These limits are for each step by itself: a {unit.column} with rows in several steps "
                "counts in each of them, up to the limits."
            )
    if read.unit.window is not None:
        anew = "; each is counted anew in every one of them" if units else ""
        notes.append(f"Protects {read.unit}, {NOT_A_LIFETIME}{anew}.")
    if is_exchange(unit):
        notes.append("Protects what a unit's rows say (exchange), not whether the unit is in the table.")
    return notes


def spoken(unit: PrivacyUnit, read: Rows) -> PrivacyUnit:
    """The unit under the name that people know it by, also where another table names it."""
    if unit.column is None or read.owner is None:
        return unit
    name = str(unit).removeprefix("one ") if unit.window is not None else read.owner
    return PrivacyUnit(name, max_groups=unit.max_groups, max_rows=unit.max_rows, adjacency=unit.adjacency)
