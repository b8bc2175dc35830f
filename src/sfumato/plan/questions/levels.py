"""The groups of several levels of public keys: which there are on each of them, and what they are made of."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.questions.nodes import Key

__all__ = ["Stage", "stages_of", "told_apart"]

Group: TypeAlias = tuple[Any, ...]
Level: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The groups of one level, in the order of its keys' lists.

    Attributes:
        rows: Their values, None for the keys that the level leaves out.
        index: In which of them each cell is; cells are the combinations of all keys that there are.
    """

    rows: tuple[Group, ...]
    index: NDArray[np.int64]

    @property
    def is_finest(self) -> bool:
        """Whether each group is one cell."""
        return len(self.rows) == len(self.index)


def stages_of(
    keys: Sequence[Key], levels: Sequence[Level], together: Sequence[Group] | None
) -> tuple[Stage, ...]:
    """The groups of each level of a question whose keys are all public.

    A level has the groups that its keys have in some combination of all keys: no group is there that nothing
    finer can be in, so that each is the sum of the cells in it.

    Args:
        keys: The keys with their lists.
        levels: Which keys each level has.
        together: The combinations of all keys that there are; None: every one.
    """
    lists = [told_apart(key.values or ()) for key in keys]
    if together is None:
        return tuple(_full_stage(lists, level) for level in levels)
    ranks = [{value: place for place, value in enumerate(values)} for values in lists]
    rows = {tuple(rank[value] for rank, value in zip(ranks, row, strict=True)) for row in together}
    codes = np.array(sorted(rows), dtype=np.int64).reshape(len(rows), len(lists))
    return tuple(_stage(lists, codes, level) for level in levels)


def told_apart(values: Sequence[Any]) -> tuple[Any, ...]:
    """A list without repetitions."""
    return tuple(dict.fromkeys(values))


def _full_stage(lists: Sequence[tuple[Any, ...]], level: Level) -> Stage:
    """A level of all combinations."""
    sizes = tuple(map(len, lists))
    own = tuple(size if key in level else 1 for key, size in enumerate(sizes))
    index = np.broadcast_to(np.arange(math.prod(own), dtype=np.int64).reshape(own), sizes).reshape(-1)
    columns = [values if key in level else (None,) for key, values in enumerate(lists)]
    return Stage(tuple(itertools.product(*columns)), index)


def _stage(lists: Sequence[tuple[Any, ...]], codes: NDArray[np.int64], level: Level) -> Stage:
    """A level of the cells of which this is known: the place of each key's value in its list."""
    if not level:
        return Stage(((None,) * len(lists),), np.zeros(len(codes), dtype=np.int64))
    index, first = np.zeros(len(codes), dtype=np.int64), np.zeros(0, dtype=np.int64)
    for key in sorted(level):
        # One key after the other, each time with as few numbers as there are groups: none is ever large.
        joined = index * len(lists[key]) + codes[:, key]
        _, first, index = np.unique(joined, return_index=True, return_inverse=True)
    columns = [
        [values[code] for code in codes[first, key]] if key in level else itertools.repeat(None, len(first))
        for key, values in enumerate(lists)
    ]
    return Stage(tuple(zip(*columns, strict=True)), index.reshape(-1).astype(np.int64))
