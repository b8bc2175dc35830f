"""Adaptive choice for very wide tables: a tree of pairs at once, then many sets of columns a round."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from sfumato.synth.methods.adaptive import Adaptive

__all__ = ["Wide"]

_EACH = 10  # so many columns for each set that is chosen in a round


class Wide(Adaptive):
    """As the adaptive method, with few rounds, so that time does not grow with rounds times columns.

    The first round chooses sets that join all columns without a circle, as a tree of pairs does; each later
    one a set for every ten columns, by one look at the model.
    """

    name = "wide"

    def together(self, columns: int) -> Iterator[int]:
        """All that a tree has in the first round, then one for every ten columns."""
        return itertools.chain([max(columns - 1, 1)], itertools.repeat(max(columns // _EACH, 1)))
