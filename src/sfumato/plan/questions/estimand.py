"""What a column estimates, in one phrase: what is counted, and what limits leave of it."""

from __future__ import annotations

from sfumato._dataclasses import dataclass

__all__ = ["Estimand"]


@dataclass(frozen=True, slots=True)
class Estimand:
    """What is estimated, made from the plan alone.

    Attributes:
        what: What is counted, summed or averaged: `rows`, `mean of age over rows`.
        limit: What counts of a unit: `at most 6 of each patient counted`; empty where nothing can be cut.
    """

    what: str
    limit: str = ""

    @property
    def cut(self) -> bool:
        """Whether limits may leave something out."""
        return bool(self.limit)

    def __str__(self) -> str:
        return f"{self.what}, {self.limit}" if self.limit else self.what
