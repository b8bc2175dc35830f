"""Shares in words."""

from __future__ import annotations

__all__ = ["percent"]


def percent(share: float) -> str:
    """A share as a percentage: 97.5%, and 0.011% rather than 0.0%."""
    return f"{share:.1%}" if share >= 0.001 or share == 0 else f"{share * 100:.2g}%"
