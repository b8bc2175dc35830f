"""Sums of prices: how they are kept, and how they are read back."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sfumato.ledger.budget import Budget, Totals
from sfumato.ledger.receipt import fraction

__all__ = ["settled", "totals_of"]

# Exact sums of unlike fractions grow with every one; beyond this they are rounded up, to a grid far below the
# smallest delta that is accepted (1e-300).
_LONGEST = 4096
_GRID = 2**1200


def settled(total: Fraction) -> Fraction:
    """A sum as it is kept: exact while it is short, else rounded up by less than 2**-1200."""
    if total.denominator.bit_length() <= _LONGEST:
        return total
    return Fraction(-(-total.numerator * _GRID // total.denominator), _GRID)


def totals_of(sums: Mapping[str, str], budget: Budget) -> Totals:
    """Sums as a receipt has them, in the order of the budget's units; nothing before the first one."""
    if not sums:
        return (Fraction(0),) * len(budget.units)
    return tuple([fraction(sums[unit]) for unit in budget.units])
