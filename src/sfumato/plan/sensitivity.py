"""How far one privacy unit can move a measurement, in the integers that leave the engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.plan.nodes import Measured, Measurement
from sfumato.schema import PrivacyUnit

__all__ = ["WEIGHT", "Sensitivity", "sensitivities", "sensitivity", "step"]

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
    measurement: Measurement, unit: PrivacyUnit, *, groups: int, keyed: bool = True
) -> Sensitivity:
    """The exact L1 and L2 sensitivity of a measurement.

    Args:
        measurement: What is read.
        unit: Whose privacy is protected.
        groups: Over how many groups it is read.
        keyed: Whether there are grouping keys at all; a count of units without any is not weighted.

    Privacy:
        Let p = max(upper, 0) and q = max(−lower, 0): a row adds a number in [−q, p] to one group, or nothing.
        A unit's rows have weights of at most R = max_rows·WEIGHT in total (1 for row units), so the vector v
        that a unit adds over the groups lies in the convex hull of 0, R·p·e_g and −R·q·e_g. Add or remove one
        unit: the change is v, and a norm is largest at a vertex: R·max(p, q) in L1 and in L2.
        Exchange: the change is v − v′, and a convex function of (v, v′) is largest at a pair of vertices: in
        one group R(p + q), in two groups R·2·max(p, q) in L1 and R²·max((p + q)², 2p², 2q²) in squared L2.
        For counts (q = 0) that is the histogram's 1 and 1, or 2 and √2.
        A count of units gives each of a unit's g groups WEIGHT·k // max(g, k) with k = max_groups: at most
        WEIGHT each and k·WEIGHT in all, so the squared L2 norm is at most k·WEIGHT². Exchange moves at most
        2k such coordinates by at most WEIGHT each, in all by 2k·WEIGHT.
        Conditions: the clamp to [lower, upper] and the weights are applied by the statement that is run. No
        declared fact about the data is used.
    """
    exchange = unit.adjacency == "exchange"
    if measurement.kind == "units" and unit.column is not None:
        size = WEIGHT if keyed else 1
        touched = min(groups, unit.max_groups * (2 if exchange else 1)) if keyed else 1
        return Sensitivity(touched * size, touched * size * size)
    most, least = max(measurement.upper, 0), max(-measurement.lower, 0)
    reach = 1 if unit.column is None else unit.max_rows * WEIGHT
    one = max(most, least) * reach
    if not exchange:
        return Sensitivity(one, one * one)
    both = (most + least) * reach
    if groups == 1:
        return Sensitivity(both, both * both)
    return Sensitivity(2 * one, max(both * both, 2 * one * one))


def step(measurement: Measurement, unit: PrivacyUnit, *, keyed: bool = True) -> Fraction:
    """What one unit of the integers is worth: the natural value is the integer times this."""
    weighted = unit.column is not None and (keyed or measurement.kind != "units")
    return Fraction(1, (WEIGHT if weighted else 1) << measurement.bits)


def sensitivities(measured: Measured) -> tuple[Sensitivity, ...]:
    """The sensitivity of each measurement of a question."""
    unit = PrivacyUnit.from_dict(dict(measured.unit))
    groups, keyed = len(measured.combinations), bool(measured.keys)
    return tuple(sensitivity(each, unit, groups=groups, keyed=keyed) for each in measured.measurements)
