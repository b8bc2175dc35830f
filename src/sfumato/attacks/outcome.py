"""What an attack reached, beside what a guess would have reached: counts, intervals and words."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.attacks.percent import percent
from sfumato.errors import InvalidParameter
from sfumato.numeric.shares import clopper_pearson, count_range, dealt_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.attacks.power import Power

__all__ = ["Outcome", "Tally", "compare"]

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Tally:
    """A number of hits in a number of trials."""

    hits: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials or self.trials < 1:
            raise InvalidParameter("A tally needs at least one trial, and no more hits than trials.")

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
            the same attack where it cannot work (people who are not in the table, a random order). None
            where nothing that was given can tell.
        guessing: Who guesses, in words: "a coin", "the same attack on people who are not in the table".
        target: What was attacked, in words: "exact averages", "averages at epsilon 1".
        confidence: Of all intervals.
        detail: Further figures, by name.
        undecided: Why there is no verdict, as a sentence that says what would give one; empty if there is
            one.
        power: How surely the attack would notice a leak, measured on a planted twin. None where it works,
            since a finding needs none, or where there is no verdict for another reason.
        dealt: Whether what made somebody a hit knew nothing of who belongs to which tally. If the attack
            cannot work, that is as if dealt out, and Fisher's exact test compares the two.
    """

    attack: str
    success: str
    reached: Tally
    guess: Tally | float | None
    guessing: str
    target: str = ""
    confidence: float = 0.99
    detail: Mapping[str, Any] = field(default_factory=dict)
    undecided: str = ""
    power: Power | None = None
    dealt: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise InvalidParameter("confidence must lie strictly between 0 and 1.")
        if self.guess is None:
            if not self.undecided:
                raise InvalidParameter("Without a guess there is no verdict: say in undecided why.")
        elif not isinstance(self.guess, Tally) and not 0 <= self.guess <= 1:
            raise InvalidParameter("What a guess reaches is a probability, from 0 to 1.")
        if self.dealt and not isinstance(self.guess, Tally):
            raise InvalidParameter("People are dealt out between two tallies: give the guess as one.")

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
        """The share of trials in which a guess succeeds; NaN where there is no guess."""
        if self.guess is None:
            return math.nan
        return self.guess.rate if isinstance(self.guess, Tally) else float(self.guess)

    @property
    def baseline_interval(self) -> tuple[float, float]:
        """The rates that somebody who only guesses reaches in as many trials, at this confidence.

        Where the guess was measured, its own uncertainty takes half of what may go wrong; where people were
        as if dealt out, all of it is in one exact test. NaN where there is no guess.
        """
        if self.guess is None:
            return math.nan, math.nan
        alpha = (1 - self.confidence) / 2
        if self.dealt and isinstance(self.guess, Tally):
            least, most = dealt_range(self.guess.hits, self.guess.trials, self.reached.trials, alpha)
            return least / self.reached.trials, most / self.reached.trials
        low, high = self._guess_limits(alpha / 2)
        alpha = alpha / 2 if isinstance(self.guess, Tally) else alpha
        least, most = count_range(low, high, self.reached.trials, alpha)
        return least / self.reached.trials, most / self.reached.trials

    def _guess_limits(self, alpha: float) -> tuple[float, float]:
        """Where the probability of a guess lies: exactly where it is known."""
        if isinstance(self.guess, Tally):
            low, high = clopper_pearson(self.guess.hits, self.guess.trials, alpha)
            return float(low), float(high)
        return float(self.guess or 0.0), float(self.guess or 0.0)

    @property
    def beats(self) -> bool | None:
        """Whether the rate is above all that a guess reaches, whatever the power; None without a guess."""
        return None if self.guess is None else self.rate > self.baseline_interval[1]

    @property
    def works(self) -> bool | None:
        """Whether the attack did better than a guess, beyond what luck explains; None without a verdict.

        False is an all-clear, and given only where the attack would have noticed a leak (`power`).
        """
        return None if self.undecided else self.beats

    @property
    def within(self) -> bool | None:
        """Whether what the attack reached is what a guess reaches; None without a verdict."""
        low, high = self.baseline_interval
        return None if self.undecided else low <= self.rate <= high

    def allowed(self, epsilon: float, *, delta: float = 0.0) -> float | None:
        """The most that an (epsilon, delta) lets the attack reach, as far as the guess is known.

        A guess that was measured is taken at the upper end of its interval: by luck it was seen less often.

        Args:
            epsilon: Of all that was released, for one person.
            delta: The same.

        Privacy:
            Claim: where the guess is the same attack on a release without the person, and the release is
            (ε, δ)-DP for that change, a hit has probability at most min(e^ε·g + δ, 1 − e^−ε·(1 − g − δ)),
            where g is that of the guess. Proof: the definition for the event of a hit, and for its
            complement the other way round (Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015).

        Returns:
            A probability; None where there is no guess.
        """
        if self.guess is None:
            return None
        return _most(self._guess_limits((1 - self.confidence) / 2)[1], epsilon, delta)

    def keeps(self, epsilon: float, *, delta: float = 0.0) -> bool | None:
        """Whether an (epsilon, delta) allows the rate; if not, luck does not explain it.

        The rate, too, is given the room of its interval. None where there is no guess.
        """
        most = self.allowed(epsilon, delta=delta)
        return None if most is None else self.interval[0] <= most

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
            "baseline": None if self.guess is None else self.baseline,
            "baseline_interval": None if self.guess is None else list(self.baseline_interval),
            "guessing": self.guessing,
            "confidence": self.confidence,
            "works": self.works,
            "power": None if self.power is None else self.power.to_dict(),
            "detail": dict(self.detail),
        } | ({"undecided": self.undecided} if self.undecided else {})

    def plot(self, *, path: str | os.PathLike[str] | None = None) -> Figure:
        """The rate with its interval, over the band that a guess reaches."""
        return compare([self], path=path)

    @property
    def words(self) -> tuple[str, str, str]:
        """What was reached, what a guess reaches, and the verdict: a sentence each."""
        low, high = self.interval
        against = f" against {self.target}" if self.target else ""
        return (
            f"{self.attack}{against}: {self.success} in {self.reached.hits:,} of {self.reached.trials:,} "
            f"({percent(self.rate)}, {self.confidence:.0%} interval {percent(low)} to {percent(high)}).",
            self._guess_words(),
            f"No verdict: {self.undecided}"
            if self.undecided
            else "It works."
            if self.works
            else f"No better than a guess.{self._power_words()}",
        )

    def _power_words(self) -> str:
        if self.power is None:
            return ""
        return f" A leak ({self.power.leak}) would be noticed {self.power.words}."

    def _guess_words(self) -> str:
        if self.guess is None:
            return "What a guess would reach is not known."
        least, most = map(percent, self.baseline_interval)
        # A guess that was counted, too, is itself a sample: its range is wider than that of a known one.
        both = ", both counts being samples," if isinstance(self.guess, Tally) else ""
        return (
            f"A guess ({self.guessing}) reaches {percent(self.baseline)}; in as many trials{both} "
            f"{least} to {most}."
        )

    def __str__(self) -> str:
        return "\n".join(textwrap.fill(line, _WIDTH, break_on_hyphens=False) for line in self.words)


def _most(guess: float, epsilon: float, delta: float) -> float:
    """The most that a probability may become under an (epsilon, delta)."""
    factor = math.exp(min(epsilon, 700.0))
    return min(1.0, factor * guess + delta, max(guess, 1 - (1 - guess - delta) / factor))


def compare(
    outcomes: Sequence[Outcome], *, title: str = "", path: str | os.PathLike[str] | None = None
) -> Figure:
    """A picture of outcomes side by side: plain answers above, private ones below, the guess as a band.

    Raises:
        InvalidParameter: if there is none.
    """
    from sfumato.plots.attacks import success_rates

    if not outcomes:
        raise InvalidParameter("There is no outcome to draw; give at least one.")
    return success_rates(
        [outcome.target or outcome.attack for outcome in outcomes],
        [outcome.rate for outcome in outcomes],
        [outcome.interval for outcome in outcomes],
        [None if outcome.undecided else outcome.baseline_interval for outcome in outcomes],
        title=title or f"{outcomes[0].attack}: {outcomes[0].success}",
        confidence=outcomes[0].confidence,
        path=path,
    )
