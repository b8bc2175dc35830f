"""A δ held against the number of people it is shared by."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from flint import arb

from sfumato.loss._balls import ball, upper
from sfumato.numeric.exact import Rational, as_integer, decimal_up, delta_of

__all__ = ["DeltaAdvice", "Verdict", "delta_advice"]

Verdict: TypeAlias = Literal["none", "small", "large", "too large"]


@dataclass(frozen=True, slots=True)
class DeltaAdvice:
    """How a δ compares with the size of the data.

    Attributes:
        delta: the δ in question.
        size: the public number of units.
        exposed: size·δ, how many records the worst mechanism that δ allows reveals on average, rounded up.
        rule: size^−1.1, the rule of thumb, rounded down.
        verdict: "none" (δ is 0), "small" (at most the rule), "large" (below 1/size only), "too large".
    """

    delta: float
    size: int
    exposed: float
    rule: float
    verdict: Verdict

    def __str__(self) -> str:
        shown, rule = f"δ = {self.delta:g} for {self.size:,} units", f"{self.rule:.2g}"
        said = {
            "none": f"{shown}: the guarantee is pure, and no outcome is set aside.",
            "small": f"{shown} is small enough: at most {rule}, which is size^−1.1, a usual rule.",
            "large": f"{shown} is below 1/size but above size^−1.1 = {rule}, a usual rule; lower it.",
            "too large": f"{shown} is too large: it is not below 1/size. Take at most {rule}.",
        }[self.verdict]
        why = (
            " Why it matters: to publish each record outright with probability δ is (0, δ)-private, and here "
            f"that would reveal {self.exposed:.2g} records on average."
        )
        return textwrap.fill(said if self.verdict == "none" else said + why, 80)


def delta_advice(delta: Rational, size: int) -> DeltaAdvice:
    """Whether δ is small enough for data about `size` units: far below 1/size, as size^−1.1 is.

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
    return DeltaAdvice(decimal_up(exact), units, decimal_up(exact * units), rule, _verdict(exact, units))


def _verdict(delta: Fraction, size: int) -> Verdict:
    if not delta:
        return "none"
    if delta * size >= 1:
        return "too large"
    # δ ≤ size^−1.1, without roots.
    return "small" if delta**10 * size**11 <= 1 else "large"
