"""What a way of bounding is: how a unit with many rows or groups is held within its limits.

To add one, write a file here with a `Bounding`: what it keeps of a unit, the shape of the statement that does
so, the proof of its sensitivity, and its words. A statement of a new shape is named in `Shape` and written in
`sql.write.lower`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.plan.questions.bounding._lemmas import Ends, Sensitivity, Vector, anywhere, rows_in_group
from sfumato.schema import PrivacyUnit

__all__ = ["Bounding", "Needs", "Scope", "Shape", "several"]


class Shape(Enum):
    """The statements that hold a unit within its limits; `sql.write.lower` has each."""

    WEIGHTS = "rows that find the weight of their unit"
    CHOICE = "pairs of unit and group, ranked by a keyed hash"
    RANKS = "rows whose ranks are low, as they were given when the table was prepared"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a question needs of the way in which its units are bounded.

    Attributes:
        keyed: Whether there are groups.
        is_open: Whether some are to be found in the data.
        totals: Whether a unit's total or average in a group has bounds of its own.
        units: Whether units are counted.
        sums: Whether something is measured by sums and counts, not beside them.
        condition: Whether rows have to pass one.
    """

    keyed: bool
    is_open: bool
    totals: bool
    units: bool
    sums: bool
    condition: bool

    @property
    def choice(self) -> bool:
        """Whether a unit must count in few groups, and wholly there."""
        return self.is_open or self.totals


@dataclass(frozen=True, slots=True)
class Scope:
    """What the words about a limit are said of.

    Attributes:
        unit: The unit with the limits of the question, under the name that people know it by.
        keyed: Whether there are groups.
        groups: How many; None: that is not public.
    """

    unit: PrivacyUnit
    keyed: bool
    groups: int | None

    @property
    def whose(self) -> str:
        """What a unit is called."""
        return str(self.unit.column)

    @property
    def few(self) -> bool:
        """Whether no unit can be in more groups than may count."""
        return not self.keyed or (self.groups is not None and self.groups <= self.unit.max_groups)


@dataclass(frozen=True, slots=True)
class Bounding(ABC):
    """A way of bounding: what counts of a unit, and how far that moves what is read.

    All that is said here of a unit is about one with a column; where each row is a unit, nothing is bounded.
    """

    name: ClassVar[str]
    """On record, in fingerprints, and for those who ask for it."""
    order: ClassVar[int]
    """Of several that serve a question, the one that comes first is taken."""
    shape: ClassVar[Shape]
    """Which statement does it."""
    holds: ClassVar[str]
    """What it holds within limits, in words."""
    asked: ClassVar[bool] = False
    """Whether a question may ask for it; else it is taken where a prepared table serves."""
    few_groups: ClassVar[bool] = False
    """Whether a unit counts in at most max_groups groups, and in others not at all."""
    adds_up: ClassVar[bool] = False
    """Whether a unit's part in a group is the sum of its parts in finer ones, as on several levels."""

    def __str__(self) -> str:
        return self.name

    def to_wire(self) -> dict[str, Any]:
        """What a fingerprint has of it."""
        return {"bounding": self.name}

    # What it serves.

    @abstractmethod
    def serves(self, needs: Needs) -> bool:
        """Whether it can answer a question with these needs."""

    @property
    def lacking(self) -> tuple[str, str]:
        """Why a question that asked for it is refused, and what to do."""
        return f"This question cannot be bounded by {self.name!r}.", "Leave bounding out."

    def replaces(self, other: Bounding | None, needs: Needs, *, own: bool) -> bool:
        """Whether ranks of a prepared table take the place of what a question asks for.

        Args:
            other: What it asks for; None: what fits.
            needs: What it needs.
            own: Whether it groups by just the columns that the table was prepared for.
        """
        del other, needs, own
        return False

    def beside(self, *, is_open: bool) -> Bounding:
        """What bounds units in the questions beside: over all groups together, as if none were chosen."""
        del is_open
        return self

    # What a unit moves.

    @abstractmethod
    def fits(self, vector: Vector) -> bool:
        """Whether there is a claim for it."""

    @abstractmethod
    def is_weighted(self, vector: Vector) -> bool:
        """Whether one row or unit of full weight counts `WEIGHT` in what is read, and not 1."""

    @abstractmethod
    def ends(self, vector: Vector) -> Ends:
        """How far up and down a unit moves any one group."""

    @abstractmethod
    def sensitivity(self, vector: Vector) -> Sensitivity:
        """The exact L1 and L2 sensitivity, as the class proves it."""

    def on_lines(self, vector: Vector) -> Sensitivity:
        """The sensitivity over lines that are sums of groups, each group on one line at most.

        Privacy:
            The lines of a level (`plan.questions.others`) are fixed by the list of groups that was selected.
            What a unit adds over the groups is Σ cᵢ·e_g(i) of at most k = max_groups terms with cᵢ in
            [−q, p], or a mean of such; several of these groups can be on one line, that of a common key or of
            other keys. Each term then lies in the convex set H of 0, p·e_l and −q·e_l over the lines l, hence
            their sum in k·H: the lemma `anywhere` with k·p and k·q. So a unit moves a level by at most k·max
            in L1 and (not √k but) k·max in L2; all is reached where its groups are on one line. Rows that are
            weighed or ranked over all groups together are in the hull of one term, k = 1. Condition: the list
            is fixed; it was released before, and what it cost composes (`plan.prices.bundle`).
        """
        terms = vector.unit.max_groups if self.few_groups or vector.counts_units else 1
        most, least = self.ends(vector)
        return anywhere((most * terms, least * terms), vector)

    def surely(self, unit: PrivacyUnit, *, keyed: bool) -> int:
        """So many rows of each unit count at least, or all of them if it has fewer, whatever its groups.

        Rows that are weighed or ranked over all groups: max_rows in all. Where few groups are kept with few
        rows of each, a unit with n rows has either all of its groups kept, and so min(n, rows in a group) of
        them at least, or max_groups of them with a row each.
        """
        if self.few_groups and keyed:
            return min(rows_in_group(unit), unit.max_groups)
        return unit.max_rows

    def check(self, vector: Vector) -> None:
        """Refuses what nothing is claimed for.

        Raises:
            InvalidParameter: for such a measurement.
        """
        if not self.fits(vector):
            raise InvalidParameter(f"{self.holds}, and nothing else.")

    def ranks(self, unit: PrivacyUnit) -> Mapping[str, int]:
        """Up to which ranks of a prepared table rows are read, by column; empty: none are looked at."""
        del unit
        return {}

    # What is said of it.

    def tells_touched(self, *, condition: bool) -> bool:
        """Whether it can be told which units it cuts, behind a condition or without one."""
        del condition
        return True

    @abstractmethod
    def rows_limit(self, scope: Scope) -> str:
        """How many of a unit's rows count, as a phrase that ends what a column estimates."""

    def units_limit(self, scope: Scope) -> str:
        """In how many groups a unit counts where units are counted; empty where none can be left out."""
        return "" if scope.few else f"each in at most {several(scope.unit.max_groups, 'group')}"

    def once(self, scope: Scope) -> bool:
        """Whether a unit's rows in a group count as one, so that units are counted there and not rows."""
        return self.few_groups and scope.keyed and rows_in_group(scope.unit) == 1

    @abstractmethod
    def notes(self, unit: PrivacyUnit, *, keyed: bool, rows: bool, units: bool) -> list[str]:
        """What one unit's rows count for: the quantity that is estimated.

        Args:
            unit: The unit with the limits of the question.
            keyed: Whether there are groups.
            rows: Whether rows are counted or summed.
            units: Whether units are counted.
        """

    def quantile_notes(self, unit: PrivacyUnit) -> list[str]:
        """What else is to be said where quantiles are asked for beside."""
        del unit
        return []


def several(number: int, noun: str) -> str:
    """So many of something, in words."""
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
