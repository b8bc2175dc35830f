"""How far one privacy unit can move a measurement, in the integers that leave the engine."""

from __future__ import annotations

from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.plan.questions.bounding import Bounding
from sfumato.plan.questions.bounding._lemmas import (
    WEIGHT,
    Sensitivity,
    Vector,
    anywhere,
    is_exchange,
    rows_in_group,
)
from sfumato.plan.questions.bounding.reweight import Reweight
from sfumato.plan.questions.nodes import Measured, Measurement
from sfumato.schema import PrivacyUnit

__all__ = [
    "WEIGHT",
    "Sensitivity",
    "in_one_group",
    "is_exchange",
    "rows_in_group",
    "sensitivities",
    "sensitivity",
    "sensitivity_in",
    "sensitivity_of_sums",
    "step",
]

_BY_WEIGHTS = Reweight()


def sensitivity(
    measurement: Measurement,
    unit: PrivacyUnit,
    *,
    groups: int | None,
    keyed: bool = True,
    bounding: Bounding = _BY_WEIGHTS,
) -> Sensitivity:
    """The exact L1 and L2 sensitivity of a measurement.

    Args:
        measurement: What is read.
        unit: Whose privacy is protected.
        groups: Over how many groups it is read; None: over any number.
        keyed: Whether there are grouping keys at all; a count of units without any is not weighted.
        bounding: How units are held within their limits.

    Privacy:
        *Units of many rows.* What the way of bounding proves: `plan.questions.bounding` has one file for
        each, with the statement that its proof rests on.

        *Each row is a unit.* It adds a number in [−q, p] to one group, with p = max(upper, 0) and q =
        max(−lower, 0), or counts 1: the lemma `anywhere`.

        *Distinct values*, however units are bounded. A unit vouches for at most max_rows pairs of group and
        value, chosen by a keyed hash like groups (`sql.write.choice.by_values`); a value counts where some
        unit vouches for it. Without the unit the counts fall by at most one for each of its pairs: max_rows
        in L1 and, if all are in one group, in L2; twice that under exchange.

        Conditions: the clamp to [lower, upper] and the choice are applied by the statement that is run. No
        declared fact about the data is used.

    Raises:
        InvalidParameter: for a measurement that this way does not bound.
    """
    if measurement.kind == "values":
        most = (1 if unit.column is None else unit.max_rows) * (2 if is_exchange(unit) else 1)
        return Sensitivity(most, most * most)
    vector = Vector(measurement, unit, groups if keyed else 1, keyed)
    if unit.column is None:
        return anywhere(measurement.ends, vector)
    bounding.check(vector)
    return bounding.sensitivity(vector)


def in_one_group(measurement: Measurement, measured: Measured) -> int:
    """How far one unit moves a measurement in any one group of a question, on one level, for a choice by it.

    Privacy:
        Claim: the coordinate of each single group moves by at most this between neighbours. A unit adds to a
        group a number between the `ends` of its way of bounding, a row that is a unit one between those of
        the measurement; without keys that group is the only one. Added or removed, that number is the change,
        at most its larger end; exchanged, the change is the difference of two such numbers, at most the sum
        of both ends.

    Raises:
        InvalidParameter: for distinct values and cells, which are not one number for each group.
    """
    unit = measured.unit
    if measurement.kind in ("values", "cells"):
        raise InvalidParameter("Only rows, units and sums are one number for each group.")
    ends = measurement.ends
    if unit.column is not None:
        vector = Vector(measurement, unit, measured.groups if measured.keys else 1, bool(measured.keys))
        measured.bounding.check(vector)
        ends = measured.bounding.ends(vector)
    return sum(ends) if is_exchange(unit) else max(ends)


def step(
    measurement: Measurement, unit: PrivacyUnit, *, keyed: bool = True, bounding: Bounding = _BY_WEIGHTS
) -> Fraction:
    """What one unit of the integers is worth: the natural value is the integer times this."""
    plain = unit.column is None or measurement.kind == "values" or measurement.per != "row"
    weighted = not plain and bounding.is_weighted(Vector(measurement, unit, None, keyed))
    return Fraction(1, (WEIGHT if weighted else 1) << measurement.bits)


def sensitivities(measured: Measured) -> tuple[Sensitivity, ...]:
    """The sensitivity of each measurement of a question."""
    unit = measured.unit
    return tuple(sensitivity_in(measurement, measured, unit) for measurement in measured.measurements)


def sensitivity_in(measurement: Measurement, measured: Measured, unit: PrivacyUnit) -> Sensitivity:
    """The sensitivity of a measurement over all groups of a question, on all its levels.

    Privacy:
        The groups of one level are a partition of the same weighted rows, or what is left of one after some
        were dropped, so that each level by itself has the sensitivity of `sensitivity`; over n levels both
        the absolute and the squared differences add up. Levels of groups that are not public have lines
        (`plan.questions.others`) that several groups of a unit can be on: each has the sensitivity that the
        way of bounding proves for lines. Where each row is a unit, that is the same.
    """
    count = max(1, len(measured.levels))
    groups, bounding = measured.groups, measured.bounding
    if measured.levels and measured.is_open and unit.column is not None and measurement.kind != "values":
        single = sensitivity_of_sums(measurement, measured)
    else:
        single = sensitivity(measurement, unit, groups=groups, keyed=bool(measured.keys), bounding=bounding)
    return Sensitivity(single.l1 * count, single.l2_squared * count)


def sensitivity_of_sums(measurement: Measurement, measured: Measured) -> Sensitivity:
    """The sensitivity of any sums of a question's groups, each group in one of the sums at most.

    Privacy:
        Where each row is a unit, a row is in one group and so in one sum: the lemma `anywhere`. Units of many
        rows: what the way of bounding proves for lines, since several groups of a unit can be in one sum.

    Raises:
        InvalidParameter: for distinct values, of which several groups can have the same.
    """
    if measurement.kind == "values":
        raise InvalidParameter("Distinct values of groups do not add up to those of their sum.")
    vector = Vector(measurement, measured.unit, measured.groups)
    if measured.unit.column is None:
        return anywhere(measurement.ends, vector)
    measured.bounding.check(vector)
    return measured.bounding.on_lines(vector)
