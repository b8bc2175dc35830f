"""A figure together with its certified error."""

from __future__ import annotations

import math

from sfumato._dataclasses import dataclass
from sfumato.errors import NotCertified

__all__ = ["Bracket"]


@dataclass(frozen=True, slots=True)
class Bracket:
    """Two floats between which the true figure lies.

    Privacy:
        The upper end is the answer: whoever computes a bracket proves lower ≤ truth ≤ upper, so a privacy
        figure read from `upper` is never below the truth.
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper) or self.lower > self.upper:
            raise NotCertified(
                "The two ends of a computed bracket contradict each other, so no figure is given."
            )

    @property
    def width(self) -> float:
        """How far apart the ends are; 0 where both are infinite."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def meets(self, relative: float = 1e-6, absolute: float = 1e-9) -> bool:
        """Whether the width is at most `relative` times the lower end plus `absolute`."""
        return self.width <= relative * abs(self.lower) + absolute

    def join(self, other: Bracket) -> Bracket:
        """The bracket of the larger of two figures."""
        return Bracket(max(self.lower, other.lower), max(self.upper, other.upper))

    def clip(self, least: float, most: float = math.inf) -> Bracket:
        """The bracket of the figure clamped to [least, most]."""
        return Bracket(min(max(self.lower, least), most), min(max(self.upper, least), most))

    def __str__(self) -> str:
        return f"{self.lower!r} to {self.upper!r}"
