"""The terms on which an answer is asked for: the arguments of `quote` and `release`, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Literal, TypeVar

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, delta_of, positive, probability
from sfumato.plan.prices.split import Mechanics
from sfumato.plan.questions.bounding import Bounding, asked_for

__all__ = ["Terms"]

T = TypeVar("T", bound=str)

_LAWS: tuple[Mechanics, ...] = ("laplace", "gaussian")
_BOUNDS: tuple[Literal["auto"], ...] = ("auto",)


@dataclass(frozen=True, slots=True)
class Terms:
    """What an answer may cost or how far off it may be, and how it is to be measured; all exact.

    Attributes:
        epsilon: The price.
        delta: How much delta the answer may use; None: what the budget spares for it.
        error: Half-widths by column, or one for all, in place of a price.
        confidence: At which half-widths hold and are shown.
        mechanism: The noise, where it is not left to the quote.
        bounding: How units are held within their limits, where it is not left to the question.
        bounds: Whether bounds for numbers that have none are bought first.
        touched: Whether to report which share of the units is clamped or cut.
        profile: Whether a profile of how many rows units have is bought first, where there is none; None: as
            the table's limits ask for.
        spare: What the budget spares of delta for a question that names none.
        spare_told: Where that comes from, in a phrase.
        once: Whether groups must be found by what is read once: not in two rounds.
        steps: Of a series, in how many steps one unit can be, at most; None: the question is no series.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    error: Mapping[str, Rational] | Rational | None = None
    confidence: Fraction = Fraction(95, 100)
    mechanism: Mechanics | None = None
    bounding: Bounding | None = None
    bounds: Literal["auto"] | None = None
    touched: bool = False
    profile: bool | None = None
    spare: Fraction = Fraction(0)
    spare_told: str = ""
    once: bool = False
    steps: int | None = None

    @property
    def available(self) -> Fraction:
        """The delta that the answer may use."""
        return self.spare if self.delta is None else self.delta

    @classmethod
    def of(
        cls,
        epsilon: Rational | None = None,
        *,
        delta: Rational | None = None,
        error: Mapping[str, Rational] | Rational | None = None,
        confidence: Rational = 0.95,
        mechanism: str | None = None,
        bounding: str | None = None,
        bounds: str | None = None,
        touched: bool = False,
        profile: bool | None = None,
    ) -> Terms:
        """The terms that an analyst gives.

        Raises:
            InvalidParameter: if one of them is not a number in its range, or no such word.
        """
        return cls(
            None if epsilon is None else positive(epsilon, "epsilon"),
            None if delta is None else delta_of(delta),
            error,
            probability(confidence, "confidence"),
            _one_of(mechanism, _LAWS, 'mechanism is "laplace" or "gaussian"'),
            None if bounding is None else asked_for(bounding),
            _one_of(bounds, _BOUNDS, 'bounds is "auto" or left out'),
            bool(touched),
            None if profile is None else bool(profile),
        )

    def after(self, epsilon: Fraction | None, delta: Fraction | None) -> Terms:
        """The same with the price that the text itself names, where the analyst gave none."""
        if self.epsilon is not None or self.error is not None:
            epsilon = self.epsilon
        return replace(self, epsilon=epsilon, delta=delta if self.delta is None else self.delta)


def _one_of(word: str | None, words: tuple[T, ...], rule: str) -> T | None:
    chosen = next((allowed for allowed in words if allowed == word), None)
    if word is not None and chosen is None:
        raise InvalidParameter(f"{rule}, not {str(word)[:40]!r}.")
    return chosen
