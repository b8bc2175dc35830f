"""Estimates whose groups have noise of several laws: one answer, with the intervals of its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import Rational
from sfumato.plan.answers.boxes import Box
from sfumato.plan.answers.covering import LeftOut
from sfumato.plan.answers.estimate import Estimates

__all__ = ["Joined", "joined"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Joined(Estimates):
    """An answer in which each part of the groups has intervals of its own.

    Values, keys and the order of rows are those of the whole.

    Attributes:
        parts: Which rows of the whole each part has, and its estimates.
    """

    parts: tuple[tuple[NDArray[np.int64], Estimates], ...] = field(repr=False)

    def interval(self, name: str, confidence: Rational = 0.95) -> Box:
        """As that of each part."""
        return self._ends(lambda part: part.interval(name, confidence))

    def covering(self, name: str, confidence: Rational = 0.95) -> Box:
        """As that of each part."""
        return self._ends(lambda part: part.covering(name, confidence))

    def given(self, left_out: LeftOut) -> Joined:
        """The same where other bounds on what limits left out are taken to hold."""
        parts = tuple((rows, part.given(left_out)) for rows, part in self.parts)
        return replace(self, _cover=replace(self._cover, left_out=left_out), parts=parts)

    def _ends(self, of: Callable[[Estimates], Box]) -> Box:
        low, high = np.empty(len(self.rows)), np.empty(len(self.rows))
        for rows, part in self.parts:
            low[rows], high[rows] = of(part)
        return low, high


def joined(whole: Estimates, parts: Sequence[Estimates]) -> Joined:
    """The estimates of a whole with the intervals of its parts.

    Args:
        whole: Of all groups; nothing but keys decides which rows it shows, and in which order.
        parts: Of the first groups, of those after them, and so on, each asked as the whole was.
    """
    place = np.empty(len(whole.rows), np.int64)
    place[whole.rows] = np.arange(len(whole.rows))
    placed, begin = list[tuple[NDArray[np.int64], Estimates]](), 0
    for part in parts:
        placed.append((place[begin + part.rows], part))
        begin += len(part.rows)
    return Joined(
        whole.columns,
        whole.rows,
        whole.intervals,
        whole.keys,
        whole._expressions,
        whole._solver,
        whole._cover,
        parts=tuple(placed),
    )
