"""A choice of groups: a unit counts in few of its groups, chosen by a keyed hash, and fully there."""

from __future__ import annotations

from typing import ClassVar

from sfumato._dataclasses import dataclass
from sfumato.plan.questions.bounding._lemmas import (
    WEIGHT,
    Ends,
    Sensitivity,
    Vector,
    in_few_groups,
    rows_in_group,
)
from sfumato.plan.questions.bounding.base import Bounding, Needs, Scope, Shape, several
from sfumato.plan.questions.bounding.reweight import Reweight
from sfumato.schema import PrivacyUnit

__all__ = ["Choose"]


@dataclass(frozen=True, slots=True)
class Choose(Bounding):
    """A unit counts in at most max_groups groups; what it has in others is lost.

    Privacy:
        The statement. With k = max_groups and r = max_rows // max_groups, at least 1, `sql.write.choice`
        makes one line for each unit in each of its groups, ranks a unit's lines by a hash of unit, group and
        a key, ties broken by the group, and keeps

        ```
        rank <= k        of a unit's groups: its own rows and the key decide, nothing of another unit
        w = (r·WEIGHT) // max(n, r)       for each of its n rows in such a group, times the clamped number
        clamp(total)     or its total or average there, where the bounds are for that
        1                where units are counted
        ```

        So a unit adds to at most k groups, and to each a number in [−q′, p′]: r·WEIGHT times the ends of one
        row, or the ends of the clamp on its total, or 1. That is the lemma `in_few_groups`. With one group
        only, or without keys, r is max_rows.

        Conditions: choice, weights and clamp are in the statement that is run. No declared fact about the
        data is used.
    """

    name: ClassVar[str] = "choose"
    order: ClassVar[int] = 1
    shape: ClassVar[Shape] = Shape.CHOICE
    holds: ClassVar[str] = "A choice of groups holds rows, units and their figures in groups"
    asked: ClassVar[bool] = True
    few_groups: ClassVar[bool] = True

    def serves(self, needs: Needs) -> bool:
        """Whatever is asked."""
        del needs
        return True

    def beside(self, *, is_open: bool) -> Bounding:
        """Weights."""
        del is_open
        return Reweight()

    def fits(self, vector: Vector) -> bool:
        """All but cells: groups and cells would be chosen together."""
        return vector.measurement.kind != "cells"

    def is_weighted(self, vector: Vector) -> bool:
        """Rows are, units count 1."""
        return not vector.counts_units

    def ends(self, vector: Vector) -> Ends:
        """What a unit moves one of the groups by that are chosen for it."""
        if vector.counts_units:
            return 1, 0
        if vector.measurement.per != "row":
            return vector.measurement.ends
        return vector.ends(WEIGHT * rows_in_group(vector.unit, keyed=vector.groups != 1))

    def sensitivity(self, vector: Vector) -> Sensitivity:
        """By `in_few_groups`."""
        return in_few_groups(self.ends(vector), vector)

    def rows_limit(self, scope: Scope) -> str:
        """Of rows in each of the chosen groups."""
        if not scope.keyed:
            return Reweight().rows_limit(scope)
        groups = several(scope.unit.max_groups, "group")
        return f"at most {rows_in_group(scope.unit)} of each {scope.whose} in each of at most {groups}"

    def notes(self, unit: PrivacyUnit, *, keyed: bool, rows: bool, units: bool) -> list[str]:
        """Where there is one group, nothing is chosen: that is what weights say."""
        if not keyed or not (rows or units):
            return Reweight().notes(unit, keyed=keyed, rows=rows, units=units)
        return [
            f"Each {unit.column} counts in at most {several(unit.max_groups, 'group')}, chosen by a keyed "
            f"hash of {unit.column} and group, and as at most {several(rows_in_group(unit), 'row')} in each; "
            f"rows in others are lost, and so are rows without {unit.column}."
        ]
