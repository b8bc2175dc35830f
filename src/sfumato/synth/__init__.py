"""Synthetic tables: rows of the same shape as a private table's, which anyone may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import lazy

if TYPE_CHECKING:
    from sfumato.synth.leveling import LevelCounts, LevelsQuote, levels, quote_levels

# Loaded on first use.
_HOMES = {
    "leveling": "LevelCounts LevelsQuote levels quote_levels",
}

__all__ = [
    "LevelCounts",
    "LevelsQuote",
    "levels",
    "quote_levels",
]

__getattr__, __dir__ = lazy(globals(), _HOMES)
