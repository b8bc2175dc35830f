"""Numbers as code and as words."""

from __future__ import annotations

import re
from fractions import Fraction

from sfumato.plan.prices.words import figure

__all__ = ["literal", "price_of", "rounded"]


def literal(exact: Fraction) -> str:
    """The number as Python takes it: 1, 0.1, 1e-6, or the text "1/3"."""
    if exact.denominator == 1 and abs(exact) < 10**15:
        return str(exact.numerator)
    short = re.sub(r"e-0?", "e-", repr(float(exact)))
    return short if Fraction(short) == exact else f'"{exact}"'


def rounded(error: float) -> str:
    """A half-width to three digits, rounded up."""
    return figure(error)


def price_of(epsilon: Fraction, delta: Fraction, *, used: bool) -> str:
    """A price in words.

    Args:
        epsilon: That was said.
        delta: That was said.
        used: Whether the delta is spent.
    """
    if not delta:
        return f"epsilon {literal(epsilon)}, pure (delta 0)"
    if used:
        return f"epsilon {literal(epsilon)}, delta {literal(delta)}"
    return f"epsilon {literal(epsilon)} (the delta of {literal(delta)} is not needed)"
