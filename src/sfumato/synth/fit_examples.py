"""Fits of neighbouring tables, ready to be run: what the kit for fits and an auditor hold to their claim."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.fits.meter import Meter, price
from sfumato.fits.searching import gate_of, search_price
from sfumato.ledger import Budget
from sfumato.loss import GaussianLoss, PrivacyLoss
from sfumato.mechanisms.base import Side
from sfumato.schema import Bool, ColumnType, Enum, Int, PrivacyUnit, PrivateTable, Text
from sfumato.session import Session
from sfumato.session.reading import RowsRead
from sfumato.synth.fitting import released
from sfumato.synth.planning import SynthPlan, planned
from sfumato.synth.released import Released
from sfumato.synth.totals import Totals

__all__ = ["SynthFit", "fits", "plan_of", "read_of", "released_line"]

Lines: TypeAlias = Sequence[Sequence[int | str | None]]
"""Columns, each with a number or a text for each row."""

_PAID = price(2, "0.01")  # where some hundred samples show most of what is wrong
_NOISE, _REST, _RISK = search_price(4, "0.02")
_SEARCHED = price(_NOISE, _REST)
_SCHEMA: dict[str, ColumnType] = {
    "sex": Enum("F", "M", nullable=False),
    "member": Bool(nullable=False),
    "stage": Int(0, 2),
    "age": Int(0, 70, nullable=False),
    "city": Text(),
}


@dataclass(frozen=True, slots=True)
class SynthFit:
    """A fit, and two neighbouring tables as they are read for it.

    Attributes:
        name: Short and unique.
        plan: All that is public of it.
        left: One table.
        right: The same with a unit added or removed, or another one where units are exchanged.
        loss: The price of its noise.
        risk: The probability with which a text that one unit alone has may be shown.
    """

    name: str
    plan: SynthPlan
    left: RowsRead
    right: RowsRead
    loss: GaussianLoss = _PAID
    risk: Fraction = Fraction(0)

    @property
    def claim(self) -> PrivacyLoss:
        """What all of it costs."""
        return gate_of(self.loss, self.risk).loss

    def released(self, side: Side, meter: Meter) -> Released:
        """What a fit releases of one side's table."""
        return released(self.plan, self.left if side == "left" else self.right, meter)

    def draw(self, side: Side, count: int) -> NDArray[np.float64]:
        """What that many fits release, a line of numbers each."""
        sides = (self.left.texts, self.right.texts)
        texts = {place: sorted({text for side in sides for text in side[place]}) for place in self.left.texts}
        return np.array([released_line(self.released(side, self._meter()), texts) for _ in range(count)])

    def _meter(self) -> Meter:
        return Meter.alone(self.loss, exchange=self.plan.wanted.exchange, risk=self.risk)


def plan_of(unit: PrivacyUnit, schema: Mapping[str, ColumnType], **wanted: Any) -> SynthPlan:
    """The plan of a fit of a table that is declared so; it has no rows, since a plan reads none.

    Args:
        unit: Whose privacy is protected; its column is `who`.
        schema: The columns.
        wanted: What `planned` takes, where it is not the usual.
    """
    usual = {"method": "auto", "columns": None, "workload": None, "memory": 16, "parameters": None}
    rows = pa.table({name: pa.nulls(0) for name in ("who", *schema)})
    table = PrivateTable("people", source=rows, unit=unit, schema=dict(schema))
    with Session(table, budget=Budget(1, "0.01")) as session:
        return planned(session, None, **(usual | wanted))


def read_of(columns: Lines, units: Sequence[int] | None = None) -> RowsRead:
    """Rows as an engine gives them: steps, places of values and texts, None where there is none."""
    missing = [np.array([value is None for value in column], bool) for column in columns]
    texts = {
        place: tuple(sorted({value for value in column if isinstance(value, str)}))
        for place, column in enumerate(columns)
        if any(isinstance(value, str) for value in column)
    }
    values = [
        np.array(
            [texts[at].index(value) if isinstance(value, str) else value or 0 for value in column], np.int16
        )
        for at, column in enumerate(columns)
    ]
    owners = None if units is None else np.array(units, np.int64)
    return RowsRead(tuple(values), tuple(missing), owners, texts)


@cache
def fits() -> tuple[SynthFit, ...]:
    """Somebody comes, or leaves for somebody else, whose rows move the counts as far as they can."""
    rows, several = PrivacyUnit.row(), PrivacyUnit("who", max_rows=3)
    exchanged = PrivacyUnit("who", max_rows=2, adjacency="exchange")
    three = ["sex", "member", "stage"]
    triple: dict[str, Any] = {"columns": three, "workload": [three]}
    few: list[list[int | None]] = [[0, 1, 1, 0], [0, 1, 0, 1], [None, 2, 2, 2]]
    return (
        _fit("independent: one more", rows, few[:1], [[0]], method="independent", columns=["sex"]),
        _fit("mst: one more", rows, few, [[1], [1], [0]], method="mst", columns=three),
        _fit("adaptive: a triple, one more", rows, few, [[1], [1], [0]], method="adaptive", **triple),
        _fit("fixed: a triple, one more", rows, few, [[1], [1], [0]], method="fixed", **triple),
        _fit("wide: three columns, one more", rows, few, [[1], [1], [0]], method="wide", columns=three),
        _fit(
            "adaptive: totals and a rule that rows break, one more",
            rows,
            few,
            [[1], [0], [0]],
            method="adaptive",
            columns=three,
            constraints=[Totals("sex", {"F": 90, "M": 10}), "member OR stage > 0"],
        ),
        _fit(
            "mst: many cells, somebody with three rows",
            several,
            [[0, 1, 1, 0], [7, 12, 30, 7]],
            [[0] * 3, [70] * 3],
            method="mst",
            columns=["sex", "age"],
        ),
        _fit(
            "adaptive: two rows exchanged",
            exchanged,
            few[:2],
            [[1] * 2, [1] * 2],
            [[0] * 2, [1] * 2],
            method="adaptive",
            columns=three[:2],
        ),
        _fit(
            "mst: texts, somebody with three of which two are nobody else's",
            several,
            [["Bonn"] * 41 + ["Ulm"] * 40 + ["Weil", "Weil", None], [0, 1] * 42],
            [["Ulm", "Aix", "Zug"], [1] * 3],
            method="mst",
            columns=["city", "sex"],
        ),
        _fit(
            "fixed: texts, somebody with one three times",
            several,
            [["Bonn"] * 40 + ["Ulm"] * 40],
            [["Ulm"] * 3],
            method="fixed",
            columns=["city"],
        ),
        _fit(
            "independent: texts, exchanged",
            PrivacyUnit.row(adjacency="exchange"),
            [["Bonn"] * 30 + ["Ulm"] * 30],
            [["Aix"]],
            [["Ulm"]],
            method="independent",
            columns=["city"],
        ),
    )


def _fit(
    name: str,
    unit: PrivacyUnit,
    rows: Lines,
    one: Lines,
    other: Lines | None = None,
    **wanted: Any,
) -> SynthFit:
    """A fit of some rows and of these with somebody's: one's own on the left, and another's on the right."""
    with_one, with_other = (
        [[*column, *more] for column, more in zip(rows, added, strict=True)]
        for added in (one, other or [[] for _ in rows])
    )

    def read(columns: Lines) -> RowsRead:
        many = len(columns[0])
        units = [min(at, len(rows[0])) for at in range(many)]
        return read_of(columns, units if unit.column is not None else None)

    plan = plan_of(unit, _SCHEMA, **wanted)
    paid = (_SEARCHED, _RISK) if plan.searches else (_PAID, Fraction(0))
    return SynthFit(f"synth {name}", plan, read(with_one), read(with_other), *paid)


def released_line(found: Released, texts: Mapping[int, Sequence[str]]) -> NDArray[np.float64]:
    """What was released, in as many numbers whatever was chosen.

    The sizes of units; for each fine cell of each column its coarse one, its weight, the counts of the model
    and of the measured ones, and its own noisy count; and how often each pair and triple of columns was
    measured. Of columns whose texts are found, those of each text that one of the tables has, 0 where it was
    not shown.
    """
    model, marginals = found.learned.model, found.learned.marginals
    parts = [found.sizes, np.array([model.total])]
    for at, cut in enumerate(found.cuts):
        sums, weights = np.zeros(cut.size), 0.0
        for marginal in marginals:
            if at in marginal.clique:
                rest = tuple(axis for axis, place in enumerate(marginal.clique) if place != at)
                counts = marginal.values.sum(axis=rest)
                weight = counts.size / (marginal.values.size * marginal.sigma**2)
                sums, weights = sums + weight * counts, weights + weight
        fine = found.fine[at].cells if at in found.fine else np.zeros(len(cut.place))
        told = np.array(
            [cut.place, cut.weight, model.marginal((at,))[cut.place], (sums / weights)[cut.place], fine]
        )
        if at in texts:
            known = found.found[at]
            of_texts = [told[:, known.index(text)] if text in known else np.zeros(5) for text in texts[at]]
            told = np.array([*of_texts, *told[:, len(known) :].T])
        parts.append(np.ravel(told))
    measured = [marginal.clique for marginal in marginals]
    places = range(len(found.cuts))
    together = [*itertools.combinations(places, 2), *itertools.combinations(places, 3)]
    parts.append(np.array([measured.count(clique) for clique in together]))
    return np.concatenate([np.asarray(part, np.float64) for part in parts])
