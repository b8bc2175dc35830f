"""How many rows units have: a noisy profile on a public ladder, and what a limit on rows cuts away.

Each unit with an id is in one cell of the ladder 1, 2, 5, 10, … T by its number of rows in the whole table;
of each cell the units and their rows are measured. A profile is bought once and serves every question about
the table: a condition, a grouping or a join with a public table only takes rows of a unit away.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import Rational
from sfumato.plan.expressions.normal import normal
from sfumato.plan.expressions.tree import Call, Column, Expression, call, literal
from sfumato.plan.intervals.noise import Noise, risk_of
from sfumato.plan.intervals.sums import width_of_sum
from sfumato.plan.questions.laddered import Laddered
from sfumato.plan.questions.likely import Goal, Tables, likely_tables
from sfumato.plan.questions.nodes import (
    AggregateCall,
    Joined,
    Key,
    Measured,
    Measurement,
    PerUnit,
    Public,
    Scan,
    Source,
    Windowed,
)
from sfumato.plan.questions.relations import Readable, as_rows
from sfumato.schema import PrivacyUnit
from sfumato.schema.unit import CEILING

__all__ = ["Profile", "ladder", "profile_question", "profiled"]

Floats: TypeAlias = NDArray[np.float64]

WEIGHT = 2**30
"""What a unit at the upper end of its cell adds to that cell's measured rows: they are exact integers."""

_ROWS = "rows"


def ladder(ceiling: int) -> tuple[int, ...]:
    """The upper ends of the cells: 1, 2, 5, 10, … up to the ceiling, which is the last."""
    steps = (step * 10**power for power in range(len(str(ceiling))) for step in (1, 2, 5))
    return (*(step for step in steps if step < ceiling), ceiling)


def profiled(source: Source) -> str | None:
    """The table whose profile bounds the rows of each unit here; None: no single table's does.

    A unit has at most as many rows as in that table: conditions, keys and windows add none, and a public
    table has at most one row to look up for each. Two private tables side by side, or one after the other,
    have more.
    """
    match source:
        case Scan():
            return source.table
        case Joined():
            own = source.left.source
            return profiled(own) if source.is_public and not isinstance(own, Public) else None
        case PerUnit() | Windowed():
            return profiled(source.source)
        case _:
            return None


def profile_question(table: Readable, ceiling: int, keys: Sequence[Expression] = ()) -> Measured:
    """The question how many units and rows are in each cell of the ladder, over the whole table.

    Units with more rows than the ceiling are counted as having that many. With keys it is their groups that
    are counted in place of their rows: one line for each unit and group, then one for each unit.

    Privacy:
        There is one line for each unit (`PerUnit`), in one cell of public number. It adds 1 to the units of
        that cell, and n·⌊2**30/u⌋ ≤ 2**30 to its rows, where n is the number of its rows up to the upper end
        u. So each measurement moves by at most 1, or 2**30, in one cell; under exchange in two. The lines of
        a unit's groups follow from its own rows alone, and so does their number: the same holds for groups.
    """
    rows, rungs = as_rows(table), ladder(ceiling)
    counted = rows.source
    if keys:
        counted = PerUnit(counted, None, tuple((f"key {i}", key) for i, key in enumerate(keys)), ())
    number = Column(_ROWS)
    cells: list[Expression] = []
    parts: list[Expression] = []
    for place, rung in enumerate(rungs):
        within = [] if rung == rungs[-1] else [call("less_equal", number, literal(rung))]
        cells += [*within, literal(place)]
        held = call("least", number, literal(rung))
        parts += [*within, call("multiply", held, literal(WEIGHT // rung))]
    cell, part = (
        normal(parts[0] if len(parts) == 1 else Call("case", tuple(parts))) for parts in (cells, parts)
    )
    return Measured(
        table=rows.name,
        version=rows.version,
        unit=PrivacyUnit.row(adjacency=rows.unit.adjacency),
        predicate=None,
        keys=(Key(cell, tuple(range(len(rungs)))),),
        combinations=tuple((place,) for place in range(len(rungs))),
        measurements=(Measurement("rows"), Measurement("sum", part, 0, WEIGHT)),
        source=PerUnit(counted, None, (), ((_ROWS, AggregateCall("count")),)),
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Profile(Laddered):
    """Noisy numbers of units and of their rows in the cells of a ladder; all of this is post-processing.

    Attributes:
        rungs: The upper ends of the cells; the last is the ceiling.
        units: How many units are in each cell, with noise.
        rows: How many rows these have, with noise.
        noise: Of each number of units; of each number of rows, once for each row of the cell's upper end.
        counted: What units have so many of: rows, or groups.
    """

    rungs: tuple[int, ...]
    units: Floats
    rows: Floats
    noise: tuple[Noise, Noise]
    counted: str = "rows"

    @classmethod
    def of(
        cls,
        ceiling: int,
        units: ArrayLike,
        weighted: ArrayLike,
        noises: Sequence[Noise],
        counted: str = "rows",
    ) -> Profile:
        """The profile from what was measured.

        Args:
            ceiling: The most rows that a unit is taken to have.
            units: Of each cell.
            weighted: The weighted rows of each cell.
            noises: Of both.
            counted: What they are numbers of: rows, or groups.
        """
        rungs = ladder(ceiling)
        rows = np.asarray(weighted, dtype=np.float64) / [WEIGHT // rung for rung in rungs]
        single, summed = noises
        coarse = (1 + 2 * ceiling / WEIGHT) / WEIGHT  # 1/⌊W/u⌋ ≤ u/W·(1 + 2u/W)
        spread = Noise(summed.law, summed.scale * coarse, summed.slack * coarse)
        return cls(rungs, np.asarray(units, dtype=np.float64), rows, (single, spread), counted)

    @property
    def ceiling(self) -> int:
        """The most rows that a unit is taken to have: what is said here holds for tables within it."""
        return self.rungs[-1]

    def errors(self, confidence: Rational = 0.95) -> tuple[Floats, Floats]:
        """How far off the noisy units and rows of each cell are at most, each with this confidence."""
        units, rows = (_width((1,), noise, risk_of(confidence)) for noise in self.noise)
        return np.full(len(self.rungs), units), rows * np.asarray(self.rungs, dtype=np.float64)

    def within(self, owner: str) -> str:
        """For which tables its bounds hold, to go on with a sentence."""
        return f"where no {owner} has more than {self.ceiling:,} rows{self.advice}"

    @property
    def advice(self) -> str:
        """What to do about the ceiling where nobody declared one; else empty."""
        return " (declare a smaller ceiling if you know one)" if self.ceiling == CEILING else ""

    def most_cut(self, limit: int, risk: float) -> float:
        """More rows than are cut where at most so many of each unit count, but for a probability of `risk`.

        For whatever table within the ceiling, and for all limits at once: also for one that was chosen by
        this profile.

        With S_j the rows of the cell up to u_j, and T the ceiling: a unit with n ≤ u rows loses
        max(0, n − R) ≤ n·max(0, 1 − R/u), so that all lose at most L(R) = Σ S_j·max(0, 1 − R/u_j). The noisy
        figures give L(R) + Σ max(0, u_j − R)·X_j with independent symmetric X_j. From the top cell down, the
        weights over 1 − R/T are c_j·u_j with c_j = max(0, 1 − R/u_j)/(1 − R/T) falling from 1: a convex
        combination of the partial sums of u_j·X_j from the top. So none exceeds (1 − R/T)·w unless one of
        those partial sums exceeds w, and that has at most twice the probability that the whole sum does
        (Lévy): w is exceeded by |Σ u_j·X_j| with probability `risk`.
        """
        if limit >= self.ceiling:
            return 0.0
        share = np.maximum(0.0, 1 - limit / np.asarray(self.rungs))
        wide = _width(self.rungs, self.noise[1], risk) * (1 - limit / self.ceiling)
        return max(0.0, float(share @ self.rows) + wide)

    def most_units(self, limit: int, risk: float) -> float:
        """More units than have more than so many rows, for all limits at once, but for a risk of `risk`.

        Those are in cells whose upper end is above the limit: a partial sum from the top, of whose noise none
        exceeds w but with at most twice the probability that the whole sum does (Lévy), as in `most_cut`.
        """
        above = np.asarray(self.rungs) > limit
        if not above.any():
            return 0.0
        wide = _width((1,) * len(self.rungs), self.noise[0], risk)
        return max(0.0, float(self.units[above].sum()) + wide)

    def best_limit(self, goals: Sequence[Goal], groups: int = 1) -> int:
        """The rung with the least expected error in a group, of the noise and of the rows that are cut.

        Args:
            goals: What is asked for.
            groups: Among how many groups the rows are spread.
        """
        return self._likely.best_limit(goals, self.rungs, groups)

    def limit_within(self, error: float, groups: int = 1) -> int:
        """The least rung that probably cuts no more rows of a group than the error that is accepted."""
        cut = np.median(self._likely.cut(np.array(self.rungs, dtype=np.float64)), axis=0)
        return next(rung for rung, lost in zip(self.rungs, cut, strict=True) if lost <= error * groups)

    @property
    def _likely(self) -> Tables:
        return likely_tables(self.rungs, tuple(self.units.tolist()), tuple(self.rows.tolist()), self.noise)


@functools.lru_cache(maxsize=64)
def _width(rungs: tuple[int, ...], noise: Noise, risk: float) -> float:
    return width_of_sum([(float(rung), noise) for rung in rungs], risk)
