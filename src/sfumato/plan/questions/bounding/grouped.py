"""Ranks of groups: of a table prepared for a grouping a unit's first groups count, and first rows in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sfumato._dataclasses import dataclass
from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN
from sfumato.plan.questions.bounding._lemmas import Ends, Sensitivity, Vector, in_few_groups, rows_in_group
from sfumato.plan.questions.bounding.base import Bounding, Needs, Scope, Shape, several
from sfumato.plan.questions.bounding.prepared import Prepared
from sfumato.plan.questions.bounding.reweight import Reweight
from sfumato.schema import PrivacyUnit

__all__ = ["Grouped"]


@dataclass(frozen=True, slots=True)
class Grouped(Bounding):
    """A unit counts in at most max_groups groups, with few rows in each, chosen when the table was prepared.

    Privacy:
        The statement. With k = max_groups and r = max_rows // max_groups, at least 1, `sql.write.lower` reads
        rows with

        ```
        WHERE group <= k AND place <= r
        ```

        and each adds its clamped number, or 1, to one group; where units are counted, rows of place 1 do.
        `engines.prepare` ranks the groups of a unit, and its rows in each, from its own rows and a key, and
        `sql.write.ranks.guard` refuses a table in which that filter leaves a unit rows in more than k groups,
        more than r in one, or two of place 1 there. A condition only takes some of them. So a unit adds to
        at most k groups a number in [−r·q, r·p] with p = max(upper, 0) and q = max(−lower, 0), or 1: the
        lemma `in_few_groups`.

        Conditions: the clamp and the ranks are in the statement that is run, and its guard is run on the same
        rows. No declared fact about the data is used.
    """

    name: ClassVar[str] = "grouped"
    order: ClassVar[int] = 2
    shape: ClassVar[Shape] = Shape.RANKS
    holds: ClassVar[str] = "Ranks of groups hold rows and units in groups"
    few_groups: ClassVar[bool] = True

    def serves(self, needs: Needs) -> bool:
        """What groups by just these columns, with some exceptions.

        Not where a unit's total or average in a group is bounded, since that is made of all its rows there;
        not for quantiles and distinct values alone, which are counted over all groups together; and not where
        units are counted behind a condition: a unit counts by its first row in a group, and one whose first
        row does not pass would be lost, however many others do.
        """
        if needs.totals or not needs.keyed or not (needs.sums or needs.is_open):
            return False
        return not needs.condition or not (needs.is_open or needs.units)

    def replaces(self, other: Bounding | None, needs: Needs, *, own: bool) -> bool:
        """For its own grouping: where the question leaves it open, or a choice has no condition before it."""
        before = other is None or (other.shape is Shape.CHOICE and not needs.condition)
        return own and before and self.serves(needs)

    def beside(self, *, is_open: bool) -> Bounding:
        """Ranks of rows, which the table has too; weights for groups that are found first."""
        return Reweight() if is_open else Prepared()

    def fits(self, vector: Vector) -> bool:
        """Rows and units of the groups that the ranks are of."""
        return vector.keyed and vector.measurement.kind != "cells" and vector.measurement.per == "row"

    def is_weighted(self, vector: Vector) -> bool:
        """Every row that is read counts 1."""
        del vector
        return False

    def ends(self, vector: Vector) -> Ends:
        """All rows of a unit in one of its groups; a unit counts once there."""
        return (1, 0) if vector.counts_units else vector.ends(rows_in_group(vector.unit))

    def sensitivity(self, vector: Vector) -> Sensitivity:
        """By `in_few_groups`."""
        return in_few_groups(self.ends(vector), vector)

    def ranks(self, unit: PrivacyUnit) -> Mapping[str, int]:
        """Those of a unit's groups, and of its rows in each."""
        return {GROUP_COLUMN: unit.max_groups, PLACE_COLUMN: rows_in_group(unit)}

    def tells_touched(self, *, condition: bool) -> bool:
        """Without a condition: whoever has more groups, or rows in one, than count."""
        return not condition

    def rows_limit(self, scope: Scope) -> str:
        """Of rows in each of the first groups."""
        groups = several(scope.unit.max_groups, "group")
        return f"at most {rows_in_group(scope.unit)} of each {scope.whose} in each of at most {groups}"

    def units_limit(self, scope: Scope) -> str:
        """The groups are the first among all that the table has, listed here or not."""
        return f"each in at most {several(scope.unit.max_groups, 'group')}"

    def notes(self, unit: PrivacyUnit, *, keyed: bool, rows: bool, units: bool) -> list[str]:
        """Of groups, and of rows in each."""
        del keyed, rows, units
        return [
            f"Each {unit.column} counts in at most {several(unit.max_groups, 'group')} and with at most "
            f"{several(rows_in_group(unit), 'row')} in each, chosen when the table was prepared for this "
            "grouping: among all groups and before any condition, so that a selective WHERE or a short list "
            "of keys sees fewer of them than it could."
        ]

    def quantile_notes(self, unit: PrivacyUnit) -> list[str]:
        """They are asked of the rows' own ranks."""
        return [f"For quantiles at most {unit.max_rows} of its rows count, in all groups together."]
