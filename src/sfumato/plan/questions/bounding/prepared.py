"""Ranks of rows: of a prepared table a unit's first rows count, and the others do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sfumato._dataclasses import dataclass
from sfumato.engines.base import RANK_COLUMN
from sfumato.plan.questions.bounding._lemmas import Ends, Sensitivity, Vector, anywhere
from sfumato.plan.questions.bounding.base import Bounding, Needs, Scope, Shape
from sfumato.schema import PrivacyUnit

__all__ = ["Prepared"]


@dataclass(frozen=True, slots=True)
class Prepared(Bounding):
    """Of each unit max_rows rows count, chosen when the table was prepared.

    Privacy:
        The statement. `sql.write.lower` reads rows with

        ```
        WHERE rank <= max_rows
        ```

        and each adds its clamped number, or 1, to one group: a number in [−q, p] with p = max(upper, 0) and
        q = max(−lower, 0). `engines.prepare` ranks a unit's rows from 1 on, and `sql.write.ranks.guard`
        refuses a table that has more than max_rows rows of a unit up to that rank, whatever the ranks say. A
        condition only takes some of them. So what a unit adds is a point of the convex hull of 0, R·p·e_g and
        −R·q·e_g with R = max_rows: the lemma `anywhere`.

        Conditions: the clamp and the ranks are in the statement that is run, and its guard is run on the same
        rows. No declared fact about the data is used.
    """

    name: ClassVar[str] = "prepared"
    order: ClassVar[int] = 3
    shape: ClassVar[Shape] = Shape.RANKS
    holds: ClassVar[str] = "Ranks of rows hold rows"

    def serves(self, needs: Needs) -> bool:
        """What is counted row by row over public groups."""
        return not (needs.choice or needs.units)

    def replaces(self, other: Bounding | None, needs: Needs, *, own: bool) -> bool:
        """Where the question leaves it open."""
        del needs, own
        return other is None

    def fits(self, vector: Vector) -> bool:
        """No units: their first row may be in another group, or fail a condition."""
        return not vector.counts_units and vector.measurement.per == "row"

    def is_weighted(self, vector: Vector) -> bool:
        """Every row that is read counts 1."""
        del vector
        return False

    def ends(self, vector: Vector) -> Ends:
        """All rows of a unit can be in one group."""
        return vector.ends(vector.unit.max_rows)

    def sensitivity(self, vector: Vector) -> Sensitivity:
        """By `anywhere`."""
        return anywhere(self.ends(vector), vector)

    def ranks(self, unit: PrivacyUnit) -> Mapping[str, int]:
        """Those of a unit's rows."""
        return {RANK_COLUMN: unit.max_rows}

    def tells_touched(self, *, condition: bool) -> bool:
        """Never: ranks were given before any condition, and are not seen there."""
        del condition
        return False

    def rows_limit(self, scope: Scope) -> str:
        """Of rows in all groups together, whatever a condition takes of them."""
        return f"at most {scope.unit.max_rows} of each {scope.whose} counted"

    def notes(self, unit: PrivacyUnit, *, keyed: bool, rows: bool, units: bool) -> list[str]:
        """Of rows."""
        del keyed
        if not (rows or units):
            return []
        return [
            f"Of each {unit.column} at most {unit.max_rows} rows count, chosen when the table was prepared "
            "and before any condition: a selective WHERE sees fewer of them than it could."
        ]
