"""How a unit's weight is spread over its groups, where these are found by weight in two rounds."""

from __future__ import annotations

from typing import Any

from sfumato._dataclasses import dataclass

__all__ = ["Spread"]


@dataclass(frozen=True, slots=True)
class Spread:
    """What a statement that weighs groups is told (`mechanisms.adaptive_selection`): all of it is public.

    Attributes:
        steps: Up to which number of groups a unit has which integer weight in each; beyond the last, none.
        without: The groups that the first round found, which count no more; None: this is the first round.
    """

    steps: tuple[tuple[int, int], ...]
    without: tuple[tuple[Any, ...], ...] | None = None

    @property
    def round(self) -> int:
        """The first or the second."""
        return 1 if self.without is None else 2
