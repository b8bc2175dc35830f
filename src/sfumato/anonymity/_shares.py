"""Shares of rows as text."""

from __future__ import annotations

__all__ = ["percent"]


def percent(share: float) -> str:
    """A share of the rows, never 0.0 % or 100.0 % unless it is."""
    if 0 < share < 0.001:
        return "<0.1 %"
    return ">99.9 %" if 0.999 < share < 1 else f"{100 * share:.1f} %"
