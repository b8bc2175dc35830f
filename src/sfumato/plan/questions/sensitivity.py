"""How far one privacy unit can move a measurement, in the integers that leave the engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.plan.questions.nodes import Bounding, Measured, Measurement
from sfumato.schema import PrivacyUnit

__all__ = [
    "WEIGHT",
    "Sensitivity",
    "in_one_group",
    "rows_in_group",
    "sensitivities",
    "sensitivity",
    "sensitivity_in",
    "step",
]

WEIGHT = 2**30
"""The integer weight of one whole row of a user-level unit; a unit with more rows gives each a part of it."""

_ROOT_BITS = 64


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The most that neighbouring tables differ by in one measurement, over all its groups together.

    Attributes:
        l1: In the sum of absolute differences.
        l2_squared: In the sum of squared differences.
    """

    l1: int
    l2_squared: int

    @property
    def l2(self) -> Fraction:
        """The root of `l2_squared`, exact where it is whole and else rounded up by less than 2**-64."""
        root = math.isqrt(self.l2_squared)
        if root * root == self.l2_squared:
            return Fraction(root)
        return Fraction(math.isqrt(self.l2_squared << 2 * _ROOT_BITS) + 1, 1 << _ROOT_BITS)


def sensitivity(
    measurement: Measurement,
    unit: PrivacyUnit,
    *,
    groups: int | None,
    keyed: bool = True,
    bounding: Bounding = "reweight",
) -> Sensitivity:
    """The exact L1 and L2 sensitivity of a measurement.

    Args:
        measurement: What is read.
        unit: Whose privacy is protected.
        groups: Over how many groups it is read; None: over any number.
        keyed: Whether there are grouping keys at all; a count of units without any is not weighted.
        bounding: How units are held within their limits.

    Privacy:
        Let p = max(upper, 0) and q = max(−lower, 0): a row adds a number in [−q, p] to one group, or nothing.

        *Weights.* A unit's rows have weights of at most R = max_rows·WEIGHT in total (1 for row units), so
        the vector v that a unit adds over the groups lies in the convex hull of 0, R·p·e_g and −R·q·e_g. Add
        or remove one unit: the change is v, and a norm is largest at a vertex: R·max(p, q) in L1 and in L2.
        Exchange: the change is v − v′, and a convex function of (v, v′) is largest at a pair of vertices: in
        one group R(p + q), in two groups R·2·max(p, q) in L1 and R²·max((p + q)², 2p², 2q²) in squared L2.
        For counts (q = 0) that is the histogram's 1 and 1, or 2 and √2. Ranks of a prepared table leave a
        unit at most max_rows rows of weight 1: the same with R = max_rows. Cells of a grid are groups here.
        A count of units gives each of a unit's g groups WEIGHT·k // max(g, k) with k = max_groups: at most
        WEIGHT each and k·WEIGHT in all, so the squared L2 norm is at most k·WEIGHT². Exchange moves at most
        2k such coordinates by at most WEIGHT each, in all by 2k·WEIGHT.

        *Choice.* A unit counts in at most k = max_groups groups, which are chosen by its own rows and a key,
        and adds a number in [−q′, p′] to each: its rows there have weights of at most r·WEIGHT in total, with
        r = max_rows // max_groups, or the clamp is on its total or average there; units count 1. So k·max in
        L1 and k·max² in squared L2; under exchange j of the groups can be the same, j ≥ 2k − groups, where
        the two differ by at most p′ + q′, and both norms are linear in j.

        *Choice when the table was prepared.* The ranks of a unit's groups, and of its rows in each, follow
        from its own rows and a key, so that `group <= k AND place <= r` leaves it rows in at most k groups
        and at most r of weight 1 in each, of which a condition only takes some: the numbers above with r for
        r·WEIGHT. One row of a unit in a group has place 1 at most: units count 1.

        *Distinct values.* A unit vouches for at most max_rows pairs of group and value, chosen like groups; a
        value counts where somebody vouches for it. Without the unit the counts fall by at most one for each
        of its pairs: max_rows in L1 and, if all are in one group, in L2; twice that under exchange.

        Conditions: the clamp to [lower, upper], the weights and the choice are applied by the statement that
        is run, and what ranks leave of a unit by its guard. No declared fact about the data is used.
    """
    exchange = unit.adjacency == "exchange"
    if measurement.kind == "values":
        most = (unit.max_rows if unit.column is not None else 1) * (2 if exchange else 1)
        return Sensitivity(most, most * most)
    if bounding == "choose" and unit.column is not None:
        within = groups if keyed else 1
        return _chosen(measurement, unit, within, _weight(measurement, unit, keyed=within != 1))
    if bounding == "grouped" and unit.column is not None:
        if not keyed or measurement.kind == "cells" or measurement.per != "row":
            raise InvalidParameter("Ranks of groups hold rows and units in groups, and nothing else.")
        return _chosen(measurement, unit, groups, rows_in_group(unit))
    if measurement.kind == "units" and unit.column is not None:
        size = WEIGHT if keyed else 1
        touched = _few(unit.max_groups * (2 if exchange else 1), groups) if keyed else 1
        return Sensitivity(touched * size, touched * size * size)
    cells = measurement.kind == "cells"
    most, least = (1, 0) if cells else (max(measurement.upper, 0), max(-measurement.lower, 0))
    reach = 1 if unit.column is None else unit.max_rows * (WEIGHT if bounding == "reweight" else 1)
    return _anywhere(most * reach, least * reach, exchange=exchange, single=groups == 1 and not cells)


def in_one_group(measurement: Measurement, measured: Measured) -> int:
    """How far one unit moves a measurement in any one group of a question, on one level, for a choice by it.

    Privacy:
        Claim: the coordinate of each single group moves by at most this between neighbours. In the words of
        `sensitivity`: by weights a unit adds to a group a number in [−R·q, R·p], or WEIGHT to a count of
        units; by choice one in [−q′, p′]; without keys that group is the only one. Added or removed, that
        number is the change, at most its larger end; exchanged, the change is the difference of two such
        numbers, at most the sum of both ends.

    Raises:
        InvalidParameter: for distinct values and cells, which are not one number for each group.
    """
    unit = measured.unit
    if measurement.kind in ("values", "cells"):
        raise InvalidParameter("Only rows, units and sums are one number for each group.")
    if measured.bounding in ("choose", "grouped") and unit.column is not None:
        keyed = bool(measured.keys) and measured.groups != 1
        ranked = measured.bounding == "grouped"
        reach = rows_in_group(unit) if ranked else _weight(measurement, unit, keyed=keyed)
        most, least = _in_one_group(measurement, reach)
    elif measurement.kind == "units" and unit.column is not None:
        most, least = (WEIGHT if measured.keys else 1), 0
    else:
        reach = (
            1 if unit.column is None else unit.max_rows * (WEIGHT if measured.bounding == "reweight" else 1)
        )
        most, least = max(measurement.upper, 0) * reach, max(-measurement.lower, 0) * reach
    return most + least if unit.adjacency == "exchange" else max(most, least)


def _anywhere(most: int, least: int, *, exchange: bool, single: bool = False) -> Sensitivity:
    """Of what a unit adds as a point of the convex hull of 0, most·e_g and −least·e_g over all groups g."""
    one, both = max(most, least), most + least
    if not exchange:
        return Sensitivity(one, one * one)
    if single:
        return Sensitivity(both, both * both)
    return Sensitivity(2 * one, max(both * both, 2 * one * one))


def _few(number: int, groups: int | None) -> int:
    return number if groups is None else min(number, groups)


def _in_one_group(measurement: Measurement, reach: int) -> tuple[int, int]:
    """How far up and down a unit moves a measurement in one of the groups that are chosen for it.

    The weights of its rows there, or its total there, reach so far.
    """
    if measurement.kind == "units":
        return 1, 0
    return max(measurement.upper, 0) * reach, max(-measurement.lower, 0) * reach


def _weight(measurement: Measurement, unit: PrivacyUnit, *, keyed: bool = True) -> int:
    """What the rows of a unit weigh in one of the groups that are chosen for it."""
    return WEIGHT * rows_in_group(unit, keyed=keyed) if measurement.per == "row" else 1


def _chosen(measurement: Measurement, unit: PrivacyUnit, groups: int | None, reach: int) -> Sensitivity:
    """Of a measurement that a unit moves in `max_groups` groups at most."""
    most, least = _in_one_group(measurement, reach)
    touched, one = _few(unit.max_groups, groups), max(most, least)
    if unit.adjacency != "exchange":
        return Sensitivity(touched * one, touched * one * one)
    shared = 0 if groups is None else max(0, 2 * touched - groups)
    both = most + least
    options = [
        (same * both + 2 * (touched - same) * one, same * both * both + 2 * (touched - same) * one * one)
        for same in (shared, touched)
    ]
    return Sensitivity(max(l1 for l1, _ in options), max(l2 for _, l2 in options))


def rows_in_group(unit: PrivacyUnit, *, keyed: bool = True) -> int:
    """How many rows a unit weighs in one of the groups that are chosen for it."""
    return max(1, unit.max_rows // unit.max_groups) if keyed else unit.max_rows


def step(
    measurement: Measurement, unit: PrivacyUnit, *, keyed: bool = True, bounding: Bounding = "reweight"
) -> Fraction:
    """What one unit of the integers is worth: the natural value is the integer times this."""
    ranked = bounding in ("prepared", "grouped")
    weighted = unit.column is not None and measurement.kind != "values" and not ranked
    if measurement.kind == "units" and (bounding == "choose" or not keyed):
        weighted = False
    if measurement.per != "row":
        weighted = False
    return Fraction(1, (WEIGHT if weighted else 1) << measurement.bits)


def sensitivities(measured: Measured) -> tuple[Sensitivity, ...]:
    """The sensitivity of each measurement of a question."""
    unit = measured.unit
    return tuple(sensitivity_in(each, measured, unit) for each in measured.measurements)


def sensitivity_in(measurement: Measurement, measured: Measured, unit: PrivacyUnit) -> Sensitivity:
    """The sensitivity of a measurement over all groups of a question, on all its levels.

    Privacy:
        The groups of one level are a partition of the same weighted rows, or what is left of one after some
        were dropped, so that each level by itself has the sensitivity of `sensitivity`; over n levels both
        the absolute and the squared differences add up.

        *Levels of groups that are not public.* The lines of a level (`plan.questions.others`) are fixed by
        the list of groups that was selected, and each group is on at most one of them. But several of the k
        = max_groups groups that are chosen for a unit can be on the same line, that of a common key or of
        other keys: what it adds to a level is Σ cᵢ·e_l(i) over at most k lines l(i), not all different, with
        cᵢ in [−q′, p′]. Each term lies in the convex set H of 0, p′·e_l and −q′·e_l, hence their sum in k·H,
        which is the hull of *Weights* with k·p′ and k·q′ for R·p and R·q: a unit moves a level by at most
        k·max in L1 and (not √k but) k·max in L2; exchange by 2k·max and k²·max((p′ + q′)², 2p′², 2q′²) in
        squared L2. All are reached where a unit's groups are on one line. Where each row is a unit, k = 1
        and nothing changes. Condition: the list is fixed; it was released before, and what it cost composes
        (`plan.prices.bundle`).
    """
    count = max(1, len(measured.levels))
    if measured.levels and measured.is_open and measured.bounding == "choose" and unit.column is not None:
        most, least = (
            unit.max_groups * end for end in _in_one_group(measurement, _weight(measurement, unit))
        )
        found = _anywhere(most, least, exchange=unit.adjacency == "exchange")
    else:
        found = sensitivity(
            measurement, unit, groups=measured.groups, keyed=bool(measured.keys), bounding=measured.bounding
        )
    return Sensitivity(found.l1 * count, found.l2_squared * count)
