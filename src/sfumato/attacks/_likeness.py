"""Whom whole synthetic rows describe: the few people they are like, where nobody else is nearly as like."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.anonymity.codes import Codes
from sfumato.attacks._mixed import Column, distances
from sfumato.attacks.matching import grouped

__all__ = ["Likeness", "telling"]

_FEW = 4  # the most people that a row may describe together; five are a usual least crowd
_APART = 8  # times as far away as the people described is the next one
_NOBODY = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """Which people are alike, and which of them a table has rows of, or near them.

    Attributes:
        people: For each person the number of their combination of values.
        rows: For each row of the table the number of its own.
        alike: For each person how many have the same values, they themselves among them.
        near: The rows that are like somebody without being the same, once for each person they describe.
        whom: The person that each of these describes.
        crowd: How many people it describes.
    """

    people: Codes
    rows: Codes
    alike: Codes
    near: Codes
    whom: Codes
    crowd: Codes

    @classmethod
    def of(cls, columns: Sequence[Column], *, people: int, table: int, looked_at: Codes) -> Likeness:
        """How like the rows of one table are to those of another.

        Args:
            columns: All columns of both.
            people: Which table has the people.
            table: Which one has the rows.
            looked_at: The rows that may be near somebody without being the same. Those that are the same are
                all found.
        """
        count = len(columns[0].parts[people])
        codes = [
            np.unique(np.concatenate([column.parts[people], column.parts[table]]), return_inverse=True)[1]
            for column in columns
        ]
        cells = grouped([code.astype(np.int64) for code in codes])
        mine, theirs = cells.of_row[:count], cells.of_row[count:]
        alike = np.bincount(mine, minlength=len(cells.sizes))
        strange = looked_at[alike[theirs[looked_at]] == 0]
        taken: list[Codes | None] = [None] * len(columns[0].parts)
        taken[table] = strange
        near = _near([column.take(taken) for column in columns], table, people)
        return cls(mine, theirs, alike[mine], strange[near[0]], near[1], near[2])

    def described(self, kept: Codes, copied: Codes) -> Codes:
        """For each person the fewest people among whom a row describes them; a huge number if none does.

        Args:
            kept: The rows of the table that count.
            copied: People whose rows are in the table besides.
        """
        held = np.concatenate([self.rows[kept], self.people[copied]])
        crowd: Codes = np.where(np.isin(self.people, held), self.alike, _NOBODY)
        counts = np.isin(self.near, kept)
        np.minimum.at(crowd, self.whom[counts], self.crowd[counts])
        return crowd


def _near(columns: Sequence[Column], table: int, people: int) -> tuple[Codes, Codes, Codes]:
    """The rows that are near a few people and far from all others; whom they describe, and among how many."""
    nothing = np.zeros(0, dtype=np.int64)
    rows, whom, crowd = [nothing], [nothing], [nothing]
    count = len(columns[0].parts[people])
    for some, apart in distances(columns, table, people):
        last = min(_FEW + 1, count)
        nearest = np.argpartition(apart, last - 1, axis=1)[:, :last]
        far = np.take_along_axis(apart, nearest, axis=1)
        order = far.argsort(axis=1)
        nearest, far = np.take_along_axis(nearest, order, axis=1), np.take_along_axis(far, order, axis=1)
        # The fewest people after whom there is a gap.
        is_gap = _APART * far[:, :-1] <= far[:, 1:]
        for size in range(1, is_gap.shape[1] + 1):
            own = np.flatnonzero(is_gap[:, size - 1] & ~is_gap[:, : size - 1].any(axis=1))
            rows.append(np.repeat(some.start + own, size))
            whom.append(nearest[own, :size].ravel())
            crowd.append(np.full(len(own) * size, size))
    return np.concatenate(rows), np.concatenate(whom), np.concatenate(crowd)


def telling(described: Codes, alike: Codes) -> int:
    """Among how many people at most somebody has to be described so that copies show most clearly.

    Few are described by chance where crowds must be small, and few copies are there. So it is what gives the
    largest number of standard deviations, if copies are of anybody; between equals the smaller one. It looks
    at all people together, not at who is behind the table, so that no choice is in anybody's favour.

    Args:
        described: For each person among how few people a row describes them.
        alike: For each person how many have the same values.
    """

    def clearness(most: int) -> float:
        by_now = float(np.mean(described <= most))
        gained = float(np.mean(alike <= most)) - by_now
        return gained / math.sqrt(by_now * (1 - by_now) + 1 / len(alike))

    return max(range(1, _FEW + 1), key=lambda most: (clearness(most), -most))
