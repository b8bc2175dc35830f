"""What a price promises about an attack: how often it may succeed at most, beside how often it did."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass

if TYPE_CHECKING:
    from sfumato.attacks import Outcome

__all__ = ["Promise"]


@dataclass(frozen=True, slots=True)
class Promise:
    """What a release promises about an attack whose guess is the same attack without the person."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def to_dict(self, outcome: Outcome) -> dict[str, object]:
        """The most that it allows, and whether the outcome keeps to it."""
        epsilon, delta = self._floats()
        return {
            "allowed": outcome.allowed(epsilon, delta=delta),
            "keeps": outcome.keeps(epsilon, delta=delta),
        }

    def _floats(self) -> tuple[float, float]:
        """Epsilon, which beyond 700 allows anything, and delta."""
        return float(min(self.epsilon, Fraction(700))), float(self.delta)

    def verdict(self, outcome: Outcome, verdict: str, style: str | None) -> tuple[str, str | None]:
        """The verdict with what epsilon allows, and its style."""
        from sfumato.attacks.percent import percent
        from sfumato.numeric.exact import show

        epsilon, delta = self._floats()
        most = outcome.allowed(epsilon, delta=delta)
        if most is None:
            return verdict, style
        name = f"epsilon {show(self.epsilon)}"
        if not outcome.keeps(epsilon, delta=delta):
            cause = "are the people of the control of the same kind?"
            return f"More than {name} allows, which is {percent(most)}: {cause}", "bad"
        if outcome.works:
            return f"Better than a guess, and within what {name} allows: {percent(most)}.", None
        return f"{verdict} {name.capitalize()} allows this attack {percent(most)}.", style
