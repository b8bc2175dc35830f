"""How far a unit moves a vector of numbers, one for each group: two lemmas that all ways of bounding use."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias, assert_never

from sfumato._dataclasses import dataclass
from sfumato.plan.questions.measurement import Measurement
from sfumato.schema import PrivacyUnit

__all__ = [
    "WEIGHT",
    "Ends",
    "Sensitivity",
    "Vector",
    "anywhere",
    "in_few_groups",
    "is_exchange",
    "rows_in_group",
]

WEIGHT = 2**30
"""The integer weight of one whole row of a user-level unit; a unit with more rows gives each a part of it."""

Ends: TypeAlias = tuple[int, int]
"""How far up and how far down, both at least 0."""

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


@dataclass(frozen=True, slots=True)
class Vector:
    """What a sensitivity is of: one measurement, a number for each group.

    Attributes:
        measurement: What is read.
        unit: Whose privacy is protected.
        groups: Over how many groups; None: over any number.
        keyed: Whether there are grouping keys at all.
    """

    measurement: Measurement
    unit: PrivacyUnit
    groups: int | None
    keyed: bool = True

    @property
    def counts_units(self) -> bool:
        """Whether units are counted."""
        return self.measurement.kind == "units"

    def ends(self, reach: int) -> Ends:
        """How far rows that weigh so much together move one group."""
        most, least = self.measurement.ends
        return most * reach, least * reach


def anywhere(ends: Ends, vector: Vector) -> Sensitivity:
    """What a unit adds is a point of the convex hull of 0, p·e_g and −q·e_g over all groups g.

    Args:
        ends: p and q.
        vector: Of what.

    Privacy:
        Lemma. Add or remove a unit: the change is such a point v, and a norm is largest at a vertex:
        max(p, q) in L1 and in L2. Exchange: the change is v − v′, and a convex function of (v, v′) is largest
        at a pair of vertices: in one group p + q, in two groups 2·max(p, q) in L1 and
        max((p + q)², 2p², 2q²) in squared L2. For counts (q = 0) that is the histogram's 1 and 1, or 2 and
        √2. Cells of a grid are groups here.
    """
    one, both = max(ends), sum(ends)
    if not is_exchange(vector.unit):
        return Sensitivity(one, one * one)
    if vector.groups == 1 and vector.measurement.kind != "cells":
        return Sensitivity(both, both * both)
    return Sensitivity(2 * one, max(both * both, 2 * one * one))


def in_few_groups(ends: Ends, vector: Vector) -> Sensitivity:
    """A unit adds a number in [−q, p] to each of at most k = max_groups groups.

    Args:
        ends: p and q.
        vector: Of what.

    Privacy:
        Lemma. Add or remove a unit: k·max(p, q) in L1 and k·max(p, q)² in squared L2. Exchange: j of the
        groups can be the same, j ≥ 2k − groups, where the two differ by at most p + q; in the others, 2(k−j)
        of them, by at most max(p, q). Both norms are linear in j, and largest at one of its ends. With fewer
        groups than k, their number stands for k.
    """
    groups, one, both = vector.groups, max(ends), sum(ends)
    few = vector.unit.max_groups if groups is None else min(vector.unit.max_groups, groups)
    if not is_exchange(vector.unit):
        return Sensitivity(few * one, few * one * one)
    shared = 0 if groups is None else max(0, 2 * few - groups)
    options = [
        (same * both + 2 * (few - same) * one, same * both * both + 2 * (few - same) * one * one)
        for same in (shared, few)
    ]
    return Sensitivity(max(l1 for l1, _ in options), max(l2 for _, l2 in options))


def is_exchange(unit: PrivacyUnit) -> bool:
    """Whether neighbours have another unit in a unit's place; else one is added or removed."""
    match unit.adjacency:
        case "exchange":
            return True
        case "add-remove":
            return False
        case unknown:
            assert_never(unknown)


def rows_in_group(unit: PrivacyUnit, *, keyed: bool = True) -> int:
    """How many rows a unit weighs in one of the groups that are chosen for it."""
    return max(1, unit.max_rows // unit.max_groups) if keyed else unit.max_rows
