"""Adaptive choice for very wide tables: a tree of pairs at once, then many sets of columns a round."""

from __future__ import annotations

from sfumato.synth.methods.adaptive import Adaptive

__all__ = ["Wide"]

_EACH = 10  # so many columns for each set that is chosen in a round


class Wide(Adaptive):
    """As the adaptive method, with few rounds, so that time does not grow with rounds times columns.

    The first round chooses sets that join all columns without a circle, as a tree of pairs does; each later
    one a set for every ten columns, by one look at the model.
    """

    name = "wide"

    def together(self, columns: int, turn: int) -> int:
        """All that a tree has in the first turn, then one for every ten columns."""
        return max(columns - 1 if turn == 0 else columns // _EACH, 1)
