"""The six comparisons: which one holds with the sides exchanged, and which one where it does not."""

from __future__ import annotations

__all__ = ["FLIPPED", "NEGATED"]

FLIPPED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
"""a ∘ b is b ∘′ a."""

NEGATED = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
}
"""NOT a ∘ b is a ∘′ b; where either is NULL, both are."""
