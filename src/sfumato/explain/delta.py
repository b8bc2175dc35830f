"""A δ held against the number of people it is shared by."""

from __future__ import annotations

import math
import textwrap
from fractions import Fraction
from typing import Literal, TypeAlias

from flint import arb

from sfumato._dataclasses import dataclass
from sfumato.explain.figures import given, number_down, number_up
from sfumato.numeric.balls import ball, upper
from sfumato.numeric.exact import Rational, as_integer, decimal_up, delta_of

__all__ = ["DeltaAdvice", "Verdict", "delta_advice"]

Verdict: TypeAlias = Literal["none", "small", "usual", "large", "too large"]

_FAR = 100  # a hundredth of 1/size is far below it: the worst mechanism then shows somebody once in 100 times


@dataclass(frozen=True, slots=True)
class DeltaAdvice:
    """How a δ compares with the size of the data.

    Attributes:
        delta: the δ in question.
        size: the public number of units.
        exposed: size·δ, how many records the worst mechanism that δ allows reveals on average, rounded up.
        chance: 1 − (1 − δ)^size, how likely it is that this mechanism reveals anybody's, rounded up.
        rule: size^−1.1, the rule of thumb, rounded down.
        verdict: "none" (δ is 0), "small" (at most 1/(100·size)), "usual" (at most the rule, which is not far
            below 1/size: see `chance`), "large" (below 1/size only), "too large".
    """

    delta: float
    size: int
    exposed: float
    chance: float
    rule: float
    verdict: Verdict

    def __str__(self) -> str:
        shown, rule = f"δ = {given(self.delta)} for {self.size:,} units", number_down(self.rule)
        least = f"1/({_FAR}·size) = {number_down(Fraction(1, _FAR * self.size))}"
        said = {
            "none": f"{shown}: the guarantee is pure, and no outcome is set aside.",
            "small": f"{shown} is small: at most {least}.",
            "usual": f"{shown} meets the usual rule, size^−1.1 = {rule}, which is not far below 1/size; "
            f"{least} is.",
            "large": f"{shown} is below 1/size but above size^−1.1 = {rule}, the usual rule; lower it, best "
            f"to {least}.",
            "too large": f"{shown} is too large: it is not below 1/size. Take at most {rule}, best {least}.",
        }[self.verdict]
        why = (
            " Why it matters: to publish each record outright with probability δ is (0, δ)-private, and here "
            f"that would reveal {number_up(self.exposed)} records on average, and somebody's {self.odds}."
        )
        return textwrap.fill(said if self.verdict == "none" else said + why, 80)

    @property
    def odds(self) -> str:
        """`chance` in words: "in 35 of 100 cases"."""
        if self.chance >= 0.995:
            return "almost surely"
        if self.chance > 0.01:
            return f"in {math.ceil(Fraction(repr(self.chance)) * 100)} of 100 cases"
        return "in fewer than one of 100 cases" if self.chance else "never"


def delta_advice(delta: Rational, size: int) -> DeltaAdvice:
    """Whether δ is small enough for data about `size` units: far below 1/size, as a hundredth of it is.

    The usual rule, size^−1.1, is a weaker one: for any size that occurs it lets the worst mechanism show
    somebody's record in about size^−0.1 of all cases, a third of them for ten thousand units.

    Args:
        delta: the δ in question, exact.
        size: how many units the data is about. A public number (declared, or released before): the exact
            size of a table is itself private.

    Privacy:
        Claim: the mechanism that publishes each record independently with probability δ is (0, δ)-
        differentially private under add/remove, since one record more changes the law of the output by δ in
        total variation; it reveals size·δ records on average. So a δ of 1/size allows to betray one unit a
        release on average. Source: Dwork, Roth 2014, Sec. 2.3.
    """
    exact, units = delta_of(delta), as_integer(size, "size")
    rule = max(0.0, -upper(-(ball(units) ** (-arb(11) / 10))))
    chance = min(1.0, upper(-(ball(units) * (-ball(exact)).log1p()).expm1())) if exact else 0.0
    exposed = decimal_up(exact * units)
    return DeltaAdvice(decimal_up(exact), units, exposed, chance, rule, _verdict(exact, units))


def _verdict(delta: Fraction, size: int) -> Verdict:
    if not delta:
        return "none"
    if delta * size >= 1:
        return "too large"
    if delta * size * _FAR <= 1:
        return "small"
    # δ ≤ size^−1.1, without roots.
    return "usual" if delta**10 * size**11 <= 1 else "large"
