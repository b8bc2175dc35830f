"""Planted bugs in the reading of a query, each of which the property test must catch.

What is not here because nothing about privacy rests on it:

* NaN taken for the upper bound: it stays within the clamp. A wrong answer, but no larger step.
* Rounding to the nearest instead of toward zero inside the clamp: both ends are whole, so it stays inside.
* Weights from all rows of a unit instead of those that pass WHERE: they are only smaller.

Rows outside the public keys that use up weight would be sound as well; that their keys do not even leave the
engine is held to by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlglot import exp

from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.dialect import Dialect
from sfumato.plan.questions import sensitivity as claims
from sfumato.plan.questions.nodes import Measurement
from sfumato.plan.questions.sensitivity import WEIGHT, Sensitivity
from sfumato.schema import PrivacyUnit
from sfumato.sql.write import lower as lowering
from sfumato.sql.write import parts as shared

__all__ = ["MUTANTS", "Mutant"]

_WIDE = 2**53
Patch = tuple[object, str, Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted bug: what to put in place of what.

    Attributes:
        patches: Module, name and new value.
        adjacency: Of the tables on which it shows, if it does not on all.
        by: A word of the sentence in which it is caught.
        about: What is in the queries on which it shows.
    """

    patches: tuple[Patch, ...]
    adjacency: str | None = None
    by: str = "moves by"
    about: str = ""

    @contextmanager
    def planted(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for module, name, value in self.patches:
                patch.setattr(module, name, value)
            yield


_fixed_point, _share, _weighted = lowering.fixed_point, shared.share, lowering.weighted
_rows, _by_pairs, _by_weighted_rows = (
    shared.Parts.rows,
    lowering._by_pairs,
    lowering._by_weighted_rows,
)
_sensitivity = claims.sensitivity


def _clamped(change: Callable[[Measurement], tuple[int, int]]) -> Mutant:
    """Another clamp than the claimed one; products are made in 128 bits, so that none fails instead."""

    def clamp(value: Any, measurement: Measurement, dialect: Dialect) -> exp.Expr:
        if measurement.kind == "cells":  # a wrong number of a cell is no move but a failure
            return _fixed_point(value, measurement, dialect)
        lower, upper = change(measurement)
        wide = replace(measurement, lower=max(lower, -_WIDE), upper=min(upper, _WIDE))
        return _fixed_point(value, wide, dialect)

    def product(
        units: exp.Expr, weight: exp.Expr, measurement: Measurement, most: int, dialect: Dialect
    ) -> exp.Expr:
        return _weighted(units, weight, replace(measurement, upper=_WIDE), most, dialect)

    clamps = tuple((module, "fixed_point", clamp) for module in (lowering, shared))
    return Mutant((*clamps, (lowering, "weighted", product)))


def _whole(most: int, size: exp.Expr, dialect: Dialect) -> exp.Expr:
    """A full weight for every row or group, however many there are."""
    del most, size, dialect
    return exp.cast(exp.Literal.number(WEIGHT), "BIGINT")


def _unlimited(parts: Any) -> exp.Select:
    """A full weight in every group of a unit; rows are weighed as they should be."""

    def share(most: int, size: exp.Expr, dialect: Dialect) -> exp.Expr:
        return (_whole if isinstance(size, exp.Count) else _share)(most, size, dialect)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "share", share)
        return _by_pairs(parts)


def _rounded_up(most: int, size: exp.Expr, dialect: Dialect) -> exp.Expr:
    found = _share(most, size, dialect)
    raised = exp.Add(
        this=found.this.copy(), expression=exp.Sub(this=found.expression.copy(), expression=_one())
    )
    return exp.IntDiv(this=exp.Paren(this=raised), expression=found.expression)


def _one() -> exp.Expr:
    return exp.Literal.number(1)


def _with_nobody(parts: Any, **options: Any) -> exp.Select:
    """Rows without a unit as well: as one more unit."""
    found = _rows(parts, **options)
    for condition in list(found.find_all(exp.Not)):
        if isinstance(condition.this, exp.Is) and condition.this.this.name == UNIT_COLUMN:
            condition.replace(exp.true())
    return found


def _by_groups(parts: Any) -> exp.Select:
    """The weight of a row from the unit's rows in its own group, as if groups were separate questions."""
    found = _by_weighted_rows(parts)
    window = exp.Window(
        this=exp.Count(this=exp.Star(), big_int=True),
        partition_by=[exp.column(name, quoted=True) for name in ("u", *parts.keys)],
    )
    weight = _share(parts.unit.max_rows, window, parts.dialect)
    rows = parts.rows(units=True)
    inner = exp.Select().select(exp.Star(), exp.alias_(weight, "w", quoted=True)).from_(rows.subquery("r"))
    found.set("joins", [])
    return found.from_(inner.subquery("r"), copy=False)


def _claim(change: Callable[[Sensitivity, Measurement, PrivacyUnit], Sensitivity]) -> Patch:
    def changed(measurement: Measurement, unit: PrivacyUnit, **options: Any) -> Sensitivity:
        return change(_sensitivity(measurement, unit, **options), measurement, unit)

    return (claims, "sensitivity", changed)


def _upper_only(measurement: Measurement, unit: PrivacyUnit, **options: Any) -> Sensitivity:
    if measurement.upper <= 0:  # a claim of nothing has no price, which would hide the bug in an error
        return _sensitivity(measurement, unit, **options)
    return _sensitivity(replace(measurement, lower=max(measurement.lower, 0)), unit, **options)


def _as_if_removed(measurement: Measurement, unit: PrivacyUnit, **options: Any) -> Sensitivity:
    one = PrivacyUnit.row() if unit.column is None else _removing(unit)
    return _sensitivity(measurement, one, **options)


def _removing(unit: PrivacyUnit) -> PrivacyUnit:
    return PrivacyUnit.from_dict({**unit.to_dict(), "adjacency": "add-remove"})


def _one_sign(claim: Sensitivity, measurement: Measurement, unit: PrivacyUnit) -> Sensitivity:
    """Exchange in squared L2 as for counts, where values cannot have two signs."""
    if unit.adjacency != "exchange" or measurement.kind != "sum" or claim.l1 % 2:
        return claim
    return Sensitivity(claim.l1, 2 * (claim.l1 // 2) ** 2)


def _one_row(claim: Sensitivity, measurement: Measurement, unit: PrivacyUnit) -> Sensitivity:
    if measurement.kind == "units" or unit.column is None:
        return claim
    return Sensitivity(claim.l1 // unit.max_rows, claim.l2_squared // unit.max_rows**2)


def _one_group(claim: Sensitivity, measurement: Measurement, unit: PrivacyUnit) -> Sensitivity:
    if measurement.kind != "units" or unit.column is None:
        return claim
    size = min(claim.l1, WEIGHT)
    return Sensitivity(size, size * size)


def _everywhere(*_: Any) -> exp.Expr:
    return exp.true()


def _unguarded(units: exp.Expr, weight: exp.Expr, *_: Any) -> exp.Expr:
    return exp.Mul(this=units, expression=weight)


MUTANTS: dict[str, Mutant] = {
    "no upper clamp": _clamped(lambda m: (m.lower, _WIDE)),
    "no lower clamp": _clamped(lambda m: (-_WIDE, m.upper)),
    "declared bounds trusted": _clamped(lambda _: (-_WIDE, _WIDE)),
    "clamp one unit too wide": _clamped(lambda m: (m.lower - 1, m.upper + 1)),
    "rows not weighed": Mutant(((shared, "share", _whole),)),
    "weights rounded up": Mutant(((shared, "share", _rounded_up),)),
    "rows weighed group by group": Mutant(((lowering, "_by_weighted_rows", _by_groups),)),
    "groups of a unit not limited": Mutant(((lowering, "_by_pairs", _unlimited),), about="DISTINCT uid"),
    "rows without a unit kept": Mutant(((shared.Parts, "rows", _with_nobody),)),
    "keys not filtered": Mutant(((shared, "among", _everywhere),), by="not public"),
    "products in 64 bits": Mutant(((lowering, "weighted", _unguarded),), by="EngineFailed"),
    "claim from the upper bound alone": Mutant(((claims, "sensitivity", _upper_only),)),
    "claim of one row": Mutant((_claim(_one_row),)),
    "claim of one group": Mutant((_claim(_one_group),), about="DISTINCT uid"),
    "exchange claimed as removal": Mutant(((claims, "sensitivity", _as_if_removed),), adjacency="exchange"),
    "exchange of two signs claimed as of one": Mutant((_claim(_one_sign),), adjacency="exchange"),
}
