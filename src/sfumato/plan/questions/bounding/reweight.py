"""Weights: all rows of a unit count, each for a part of one where there are many."""

from __future__ import annotations

from typing import Any, ClassVar

from sfumato._dataclasses import dataclass
from sfumato.plan.questions.bounding._lemmas import (
    WEIGHT,
    Ends,
    Sensitivity,
    Vector,
    anywhere,
    in_few_groups,
)
from sfumato.plan.questions.bounding.base import Bounding, Needs, Scope, Shape, several
from sfumato.schema import PrivacyUnit

__all__ = ["Reweight"]


@dataclass(frozen=True, slots=True)
class Reweight(Bounding):
    """A unit with more than max_rows rows has each of them weighted down equally; none is left out.

    Privacy:
        The statement. With R = max_rows·WEIGHT and k = max_groups, `sql.write.lower` gives

        ```
        each of a unit's n rows     w = R // max(n, max_rows)         times its clamped number, or 1
        each of a unit's m groups   g = (k·WEIGHT) // max(m, k)       where units are counted
        ```

        where n and m are of the rows that count: of a unit, of a public key, behind the condition.

        *Rows.* Let p = max(upper, 0) and q = max(−lower, 0): a row adds a number in [−q, p] times w to one
        group, or nothing. Since n·w ≤ R, what a unit adds over the groups is a point of the convex hull of
        0, R·p·e_g and −R·q·e_g: the lemma `anywhere`, with R·p and R·q.

        *Units.* A unit adds g ≤ WEIGHT to each of its groups, and m·g ≤ k·WEIGHT in all. The points with
        coordinates from 0 to WEIGHT and a sum of at most k·WEIGHT are the convex hull of those that have
        WEIGHT in at most k groups and 0 elsewhere; norms of them, and of differences of two, are largest at
        such: the lemma `in_few_groups`, with WEIGHT and 0. Without keys a unit counts 1 in the one group.

        Conditions: the weights and the clamp are in the statement that is run. No declared fact about the
        data is used.
    """

    name: ClassVar[str] = "reweight"
    order: ClassVar[int] = 0
    shape: ClassVar[Shape] = Shape.WEIGHTS
    holds: ClassVar[str] = "Weights hold rows and units"
    asked: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True

    def to_wire(self) -> dict[str, Any]:
        """Nothing: it was there before there were others."""
        return {}

    def serves(self, needs: Needs) -> bool:
        """Public groups, and bounds for each row."""
        return not needs.choice

    @property
    def lacking(self) -> tuple[str, str]:
        """Groups have to be chosen."""
        return (
            "Weights fit public groups and bounds for each row; this question needs a choice of groups.",
            "Leave bounding out, or list the keys and give bounds for each row.",
        )

    def fits(self, vector: Vector) -> bool:
        """All that is bounded row by row."""
        return vector.measurement.per == "row"

    def is_weighted(self, vector: Vector) -> bool:
        """Always, but for units that are in one group anyway."""
        return vector.keyed or not vector.counts_units

    def ends(self, vector: Vector) -> Ends:
        """All the weight of a unit can be in one group."""
        if vector.counts_units:
            return (WEIGHT if vector.keyed else 1), 0
        return vector.ends(vector.unit.max_rows * WEIGHT)

    def sensitivity(self, vector: Vector) -> Sensitivity:
        """By `in_few_groups` for units, by `anywhere` for rows."""
        lemma = in_few_groups if vector.counts_units else anywhere
        return lemma(self.ends(vector), vector)

    def rows_limit(self, scope: Scope) -> str:
        """Of rows in all groups together."""
        return f"at most {scope.unit.max_rows} of each {scope.whose} counted"

    def notes(self, unit: PrivacyUnit, *, keyed: bool, rows: bool, units: bool) -> list[str]:
        """Of rows and of units."""
        notes = []
        if rows:
            notes.append(
                f"Each {unit.column} counts as at most {several(unit.max_rows, 'row')}: those with more have "
                "each of their rows weighted down equally, those with no more count fully. Rows without "
                f"{unit.column} are left out."
            )
        if units and keyed:
            notes.append(
                f"A {unit.column} that is in more than {several(unit.max_groups, 'group')} counts for a part "
                "of one in each of its groups."
            )
        return notes
