"""Fits of neighbouring pairs of linked tables, ready to be run: what the kit and an auditor check."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.fits.meter import Meter, price
from sfumato.ledger import Budget
from sfumato.loss import GaussianLoss
from sfumato.mechanisms.base import Side
from sfumato.schema import Bool, ColumnType, Enum, Int, PrivacyUnit, PrivateTable
from sfumato.schema.unit import Adjacency
from sfumato.session import Session
from sfumato.session.reading import RowsRead
from sfumato.synth.fit_examples import read_of, released_line
from sfumato.synth.linked import linked_released
from sfumato.synth.linked_tables import LinkedReleased
from sfumato.synth.linking import LinkedPlan, linked_plan

__all__ = ["Family", "LinkedFit", "family_rows", "linked_fits", "linked_plan_of"]

Family: TypeAlias = tuple[Sequence[int | None], Sequence[Sequence[int | None]]]
"""A parent's cells, and those of each of its children."""

_PAID = price(2, "0.01")
_PARENT: dict[str, ColumnType] = {"sex": Enum("F", "M", nullable=False), "age": Int(0, 40)}
_CHILD: dict[str, ColumnType] = {"kind": Enum("a", "b", "c", nullable=False), "urgent": Bool()}


@dataclass(frozen=True, slots=True)
class LinkedFit:
    """A fit of two linked tables, and two neighbouring pairs of them as they are read for it.

    Attributes:
        name: Short and unique.
        plan: All that is public of it.
        left: One pair, joined.
        right: The same with a parent and all of its children added or removed, or with another one.
        loss: The price.
        risk: Nothing is searched for.
    """

    name: str
    plan: LinkedPlan
    left: RowsRead
    right: RowsRead
    loss: GaussianLoss = _PAID
    risk: Fraction = Fraction(0)

    def released(self, side: Side, meter: Meter) -> LinkedReleased:
        """What a fit releases of one side's tables."""
        return linked_released(self.plan, self.left if side == "left" else self.right, meter)

    def draw(self, side: Side, count: int) -> NDArray[np.float64]:
        """What that many fits release, a line of numbers each."""
        texts = dict[int, list[str]]()  # all of them are listed
        lines = []
        for _ in range(count):
            found = self.released(side, Meter.alone(self.loss, exchange=self.plan.wanted.exchange))
            lines.append(np.concatenate([released_line(part, texts) for part in found]))
        return np.array(lines)


def linked_plan_of(
    parent: dict[str, ColumnType],
    child: dict[str, ColumnType],
    *,
    most: int,
    adjacency: Adjacency = "add-remove",
    method: str = "auto",
    workload: Any = None,
) -> LinkedPlan:
    """The plan of a fit of two tables that are declared so; they have no rows, since a plan reads none."""
    tables = (
        PrivateTable(
            "people",
            source=pa.table({name: pa.nulls(0) for name in ("who", *parent)}),
            unit=PrivacyUnit("who", max_rows=1, adjacency=adjacency),
            schema={"who": Int()} | parent,
        ),
        PrivateTable(
            "visits",
            source=pa.table({name: pa.nulls(0) for name in ("who", *child)}),
            unit=PrivacyUnit.via("people", on="who", max_rows=most, adjacency=adjacency),
            schema={"who": Int()} | child,
        ),
    )
    with Session(*tables, budget=Budget(1, "0.01")) as session:
        return linked_plan(
            session, ["people", "visits"], method=method, columns=None, workload=workload, memory=16
        )


def family_rows(plan: LinkedPlan, families: Sequence[Family]) -> RowsRead:
    """Families as an engine gives them: a line for each child, or one without a child."""
    lines, units = list[list[int | None]](), list[int]()
    nobody: list[int | None] = [None] * (len(plan.link.children) + 1)
    for unit, (parent, children) in enumerate(families):
        beside = [[*child, 0] for child in children] or [nobody]
        lines += [[*parent, *one] for one in beside]
        units += [unit] * len(beside)
    width = len(plan.link.parents) + len(nobody)
    columns = [[line[at] for line in lines] for at in range(width)]
    return read_of(columns, units)


@cache
def linked_fits() -> tuple[LinkedFit, ...]:
    """Somebody comes with all children, or alone, or leaves for somebody else."""
    few: list[Family] = [((0, 3), [(0, 1), (2, None)]), ((1, None), []), ((1, 40), [(1, 0)])]
    crowd: Family = ((1, 20), [(2, 1)] * 3)
    return (
        _fit("linked mst: somebody with three children", few, [crowd], method="mst"),
        _fit("linked independent: somebody without children", few, [((0, 7), [])], method="independent"),
        _fit(
            "linked adaptive: two families exchanged",
            few,
            [crowd],
            [((0, 2), [])],
            method="adaptive",
            adjacency="exchange",
        ),
    )


def _fit(
    name: str, families: list[Family], one: list[Family], other: list[Family] | None = None, **wanted: Any
) -> LinkedFit:
    plan = linked_plan_of(_PARENT, _CHILD, most=3, **wanted)
    left, right = ([*families, *more] for more in (one, other or []))
    return LinkedFit(f"synth {name}", plan, family_rows(plan, left), family_rows(plan, right))
