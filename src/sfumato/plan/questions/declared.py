"""A profile that is declared from public knowledge: nothing is read for it, and there is no noise in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import Rational
from sfumato.plan.questions.laddered import Laddered
from sfumato.plan.questions.likely import Goal, Tables

__all__ = ["Declared"]


@dataclass(frozen=True, slots=True, repr=False)
class Declared(Laddered):
    """How many units have how many rows at most, as the steward declares.

    It serves as a `Profile` does, and what follows from it holds for tables that keep it: no more units have
    more than n rows than it has above n, and none has more than its last step.

    Privacy:
        Nothing rests on it. It chooses limits and widens intervals; limits are held in the statements that
        are run, whatever the data are. Declaring it tells it: it comes from what is public, not from rows.

    Attributes:
        rungs: Numbers of rows, in order; the last is the ceiling.
        units: How many units at most have up to so many rows, and more than the rung before.
    """

    rungs: tuple[int, ...]
    units: tuple[int, ...]

    @classmethod
    def of(cls, profile: Mapping[int, int]) -> Declared:
        """The profile with these units up to each number of rows."""
        rungs = tuple(sorted(profile))
        return cls(rungs, tuple(profile[rung] for rung in rungs))

    @property
    def counted(self) -> str:  # type: ignore[override]
        """What units have so many of."""
        return "rows"

    @property
    def holds(self) -> str:
        """What the numbers promise."""
        return "Declared, without noise: at most so many."

    @property
    def ceiling(self) -> int:
        """The most rows that a unit has."""
        return self.rungs[-1]

    @property
    def rows(self) -> tuple[int, ...]:
        """How many rows those units have at most."""
        return tuple(rung * many for rung, many in zip(self.rungs, self.units, strict=True))

    def errors(self, confidence: Rational = 0.95) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """No number is off: there is no noise."""
        del confidence
        return (0.0,) * len(self.rungs), (0.0,) * len(self.rungs)

    def most_cut(self, limit: int, risk: float = 0.0) -> float:
        """At least as many rows as are cut where at most so many of each unit count, at no risk."""
        del risk
        return float(
            sum(many * max(0, rung - limit) for rung, many in zip(self.rungs, self.units, strict=True))
        )

    def best_limit(self, goals: Sequence[Goal], groups: int = 1) -> int:
        """The rung with the least error in a group if all is as declared, as of `Profile.best_limit`."""
        table = Tables(np.array([self.units], dtype=np.float64), np.array([self.rungs], dtype=np.float64))
        return table.best_limit(goals, self.rungs, groups)

    def limit_within(self, error: float, groups: int = 1) -> int:
        """The least rung at which no more rows are cut of a group, about, than the error that is accepted."""
        return next(rung for rung in self.rungs if self.most_cut(rung) <= error * groups)

    def within(self, owner: str) -> str:
        """For which tables its bounds hold, to go on with a sentence."""
        return f"where the rows of each {owner} are no more than declared"
