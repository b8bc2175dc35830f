"""Totals that are declared public: for which places, and what follows from them for the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.synth._levels.grid import Floats
from sfumato.synth._levels.tree import ALL, Tree

__all__ = ["PublicTotals", "public_totals"]

Integers: TypeAlias = NDArray[np.int64]

_MOST = 2**40


@dataclass(frozen=True, slots=True)
class PublicTotals:
    """What is public of the totals of places: declared, and never read from a table.

    Attributes:
        declared: By level, the numbers of the places whose total is declared, with it.
        fixed: For each level, which places have a total that is declared, or that follows since all within
            are declared.
        least: For each level and place that total, or what the totals within it add up to at least.
    """

    declared: tuple[dict[int, int], ...]
    fixed: tuple[NDArray[np.bool_], ...]
    least: tuple[Integers, ...]

    @property
    def known(self) -> list[Floats]:
        """For each level the public totals; NaN where there is none."""
        return [np.where(fixed, least, np.nan) for fixed, least in zip(self.fixed, self.least, strict=True)]

    def words(self, tree: Tree) -> str:
        """Such as `the totals of state (4 places)`; empty: none is declared."""
        said = [
            f"{name} ({len(places):,} place{'' if len(places) == 1 else 's'})"
            for name, places in zip(tree.names, self.declared, strict=True)
            if places
        ]
        return f"the totals of {', '.join(said)}" if said else ""


def public_totals(tree: Tree, declared: Mapping[str, Any] | None) -> PublicTotals:
    """The public totals of a declaration.

    Args:
        tree: The places.
        declared: By level a dictionary from places to totals; of `ALL`, the one total.

    Raises:
        InvalidParameter: for an unknown level or place, a total that is no whole number from 0, or totals
            that contradict each other.
    """
    if declared is not None and not isinstance(declared, Mapping):
        raise InvalidParameter('invariants takes totals by level: {"state": {"north": 40_000}}.')
    found: list[dict[int, int]] = [{} for _ in tree.names]
    for name, totals in (declared or {}).items():
        level = tree.level(name)
        if name == ALL and not isinstance(totals, Mapping):
            totals = {(): totals}
        if not isinstance(totals, Mapping):
            raise InvalidParameter(f"The invariants of {name} must be a dictionary from places to totals.")
        for place, total in totals.items():
            whole = as_integer(total, f"The total of {str(place)[:60]!r}", least=0)
            if whole > _MOST:
                raise InvalidParameter(f"The total of {str(place)[:60]!r} must be at most 2**40.")
            found[level][tree.place(level, place)] = whole
    return _followed(tree, found)


def _followed(tree: Tree, declared: list[dict[int, int]]) -> PublicTotals:
    fixed: list[NDArray[np.bool_]] = []
    least: list[Integers] = []
    for level in reversed(range(len(tree))):
        size = tree.sizes(level)
        own_fixed, own_least = np.zeros(size, bool), np.zeros(size, np.int64)
        if fixed:
            own_fixed = tree.added_up(level, (~fixed[0]).astype(np.int64)) == 0
            own_least = tree.added_up(level, least[0])
        for place, total in declared[level].items():
            if total < own_least[place] or (own_fixed[place] and total != own_least[place]):
                value = tree.paths[level][place][-1:] or (ALL,)
                raise InvalidParameter(
                    f"The public totals within {str(value[0])[:60]!r} contradict its own: make them add up."
                )
            own_fixed[place], own_least[place] = True, total
        fixed.insert(0, own_fixed)
        least.insert(0, own_least)
    return PublicTotals(tuple(declared), tuple(fixed), tuple(least))
