"""What an attack reached, beside what a guess would have reached: counts, intervals and words."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidParameter
from sfumato.numeric.shares import clopper_pearson, count_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Outcome", "Tally", "compare"]

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Tally:
    """So many hits in so many trials."""

    hits: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials or self.trials < 1:
            raise InvalidParameter("a tally needs at least one trial, and no more hits than trials.")

    @property
    def rate(self) -> float:
        """Hits over trials."""
        return self.hits / self.trials

    def interval(self, confidence: float) -> tuple[float, float]:
        """Where the probability of a hit lies, at this confidence (Clopper and Pearson 1934)."""
        low, high = clopper_pearson(self.hits, self.trials, (1 - confidence) / 2)
        return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attack reached, and what a guess would have.

    Steward-only where the data is real: an outcome counts against the truth, and nothing pays for it.

    Attributes:
        attack: Its name.
        success: What counts as a hit, in words: "the bit of a person is reconstructed".
        reached: The hits of the attack.
        guess: The hits of somebody who has not seen what was released: a known probability, or a tally of
            the same attack where it cannot work (people who are not in the table, a random order).
        guessing: Who guesses, in words: "a coin", "the same attack on people who are not in the table".
        target: What was attacked, in words: "exact averages", "averages at epsilon 1".
        confidence: Of all intervals.
        detail: Further figures, by name.
    """

    attack: str
    success: str
    reached: Tally
    guess: Tally | float
    guessing: str
    target: str = ""
    confidence: float = 0.99
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise InvalidParameter("confidence must lie strictly between 0 and 1.")
        if not isinstance(self.guess, Tally) and not 0 <= self.guess <= 1:
            raise InvalidParameter("what a guess reaches is a probability, from 0 to 1.")

    @property
    def rate(self) -> float:
        """The share of trials in which the attack succeeded."""
        return self.reached.rate

    @property
    def interval(self) -> tuple[float, float]:
        """Where the probability of success lies."""
        return self.reached.interval(self.confidence)

    @property
    def baseline(self) -> float:
        """The share of trials in which a guess succeeds."""
        return self.guess.rate if isinstance(self.guess, Tally) else float(self.guess)

    @property
    def baseline_interval(self) -> tuple[float, float]:
        """The rates that somebody who only guesses reaches in as many trials, at this confidence.

        Where the guess was measured, its own uncertainty takes half of what may go wrong.
        """
        alpha = (1 - self.confidence) / 2
        if isinstance(self.guess, Tally):
            low, high = clopper_pearson(self.guess.hits, self.guess.trials, alpha / 2)
            least, most = count_range(float(low), float(high), self.reached.trials, alpha / 2)
        else:
            least, most = count_range(self.baseline, self.baseline, self.reached.trials, alpha)
        return least / self.reached.trials, most / self.reached.trials

    @property
    def works(self) -> bool:
        """Whether the attack did better than a guess would have, but by luck."""
        return self.rate > self.baseline_interval[1]

    @property
    def within(self) -> bool:
        """Whether what the attack reached is what a guess reaches."""
        low, high = self.baseline_interval
        return low <= self.rate <= high

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain values."""
        return {
            "attack": self.attack,
            "target": self.target,
            "success": self.success,
            "hits": self.reached.hits,
            "trials": self.reached.trials,
            "rate": self.rate,
            "interval": list(self.interval),
            "baseline": self.baseline,
            "baseline_interval": list(self.baseline_interval),
            "guessing": self.guessing,
            "confidence": self.confidence,
            "works": self.works,
            "detail": dict(self.detail),
        }

    def plot(self, *, path: str | os.PathLike[str] | None = None) -> Figure:
        """The rate with its interval, over the band that a guess reaches."""
        return compare([self], path=path)

    @property
    def words(self) -> tuple[str, str, str]:
        """What was reached, what a guess reaches, and the verdict: a sentence each."""
        low, high = self.interval
        least, most = self.baseline_interval
        against = f" against {self.target}" if self.target else ""
        return (
            f"{self.attack}{against}: {self.success} in {self.reached.hits:,} of {self.reached.trials:,} "
            f"({_percent(self.rate)}, {self.confidence:.0%} interval {_percent(low)} to {_percent(high)}).",
            f"A guess ({self.guessing}) reaches {_percent(self.baseline)}; in as many trials "
            f"{_percent(least)} to {_percent(most)}.",
            "It works." if self.works else "No better than a guess.",
        )

    def __str__(self) -> str:
        return "\n".join(textwrap.fill(line, _WIDTH, break_on_hyphens=False) for line in self.words)


def _percent(share: float) -> str:
    """A share as a percentage: 97.5%, and 0.011% rather than 0.0%."""
    return f"{share:.1%}" if share >= 0.001 or share == 0 else f"{share * 100:.2g}%"


def compare(
    outcomes: Sequence[Outcome], *, title: str = "", path: str | os.PathLike[str] | None = None
) -> Figure:
    """A picture of outcomes side by side: plain answers above, private ones below, the guess as a band.

    Raises:
        InvalidParameter: if there is none.
    """
    from sfumato.plots.attacks import success_rates

    if not outcomes:
        raise InvalidParameter("there is no outcome to draw; give at least one.")
    return success_rates(
        [each.target or each.attack for each in outcomes],
        [each.rate for each in outcomes],
        [each.interval for each in outcomes],
        [each.baseline_interval for each in outcomes],
        title=title or f"{outcomes[0].attack}: {outcomes[0].success}",
        confidence=outcomes[0].confidence,
        path=path,
    )
