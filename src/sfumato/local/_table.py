"""Tables of hashed counts, of fixed size, from one report a person: what sketches and prefix trees share."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local._numbers import in_blocks
from sfumato.local.base import listed_numbers
from sfumato.local.estimates import Floats
from sfumato.local.hadamard import HadamardResponse, parities, signs, transform
from sfumato.local.support import intervals
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_integer
from sfumato.numeric.frozen import freeze

__all__ = ["Keys", "Sums", "Table", "law_of_pair"]

Keys = NDArray[np.uint64]

_CHUNK = 1 << 15
_MOST = 1 << 24  # cells of a table
_SAFE = 3.0  # deviations that are added to the estimated collisions


@dataclass(frozen=True, slots=True, init=False)
class Table:
    """Rows of hashed counts: each row has its own public hash function into as many cells.

    A report is a row, drawn uniformly, and a Hadamard response about the cell of the key in that row.

    Attributes:
        rows: How many, a power of two.
        response: The response, over the cells.
        salt: What the hash functions follow from.
    """

    rows: int
    response: HadamardResponse
    salt: str
    _multipliers: Keys = field(compare=False, repr=False)
    _offsets: Keys = field(compare=False, repr=False)

    def __init__(self, epsilon: Rational, rows: int, width: int, salt: str, *, spare: int = 0) -> None:
        """Fix the functions; `spare` bits of a report are left for other things.

        Raises:
            InvalidParameter: unless rows and width are powers of two of which a report of 64 bits can tell.
        """
        for size, name, most in ((rows, "rows", 1 << 16), (width, "width", 1 << 16)):
            if as_integer(size, name, least=2) > most or size & (size - 1):
                raise InvalidParameter(f"{name} must be a power of two, at most 2**16.")
        if rows * width > _MOST:
            raise InvalidParameter("A table has at most 2**24 cells, rows times width.")
        room = (65 - rows.bit_length() - spare) // width.bit_length()
        response = HadamardResponse(epsilon, width)
        if response.parities > room:
            response = HadamardResponse(epsilon, width, parities=room)
        drawn = hashlib.shake_256(f"sfumato count-mean sketch 1 {salt}".encode()).digest(16 * rows)
        functions = np.frombuffer(drawn, "<u8").astype(np.uint64)
        freeze(self, rows=rows, response=response, salt=salt)
        freeze(self, _multipliers=functions[:rows], _offsets=functions[rows:])

    @property
    def width(self) -> int:
        """How many cells a row has."""
        return self.response.domain.size

    @property
    def used(self) -> int:
        """The bits of a report: those of the response, and those of the row before them."""
        return self._answer + self.rows.bit_length() - 1

    @property
    def _answer(self) -> int:
        return self.response.parities * self.width.bit_length()

    def cells(self, rows: NDArray[Any] | int, keys: Keys) -> NDArray[np.uint64]:
        """The cells of keys of 48 bits, each in its row.

        The first bits of a·x + b modulo 2**64, with uniform a and b, are exactly pairwise independent where
        the bits of x and of a cell are at most 65 together (Dietzfelbinger 1996).
        """
        hashed: Keys = self._multipliers[rows] * keys
        hashed += self._offsets[rows]
        hashed >>= np.uint64(65 - self.width.bit_length())
        return hashed

    def encode(self, keys: Keys) -> NDArray[np.uint64]:
        """One report for each key."""
        return in_blocks(self._respond, keys, np.dtype(np.uint64), step=_CHUNK)

    def _respond(self, keys: Keys) -> NDArray[np.uint64]:
        rows = random.integers(self.rows, keys.size)
        answers = self.response.encode(self.cells(rows, keys).astype(np.int64)).astype(np.uint64)
        answers |= rows.astype(np.uint64) << np.uint64(self._answer)
        return answers

    def supported(self, reports: Keys, key: int) -> NDArray[np.bool_]:
        """Which reports support a key."""
        rows = (reports >> np.uint64(self._answer)).astype(np.int64)
        cells = self.cells(rows, np.full(reports.size, key, np.uint64))
        count = self.response.parities
        hashes = parities(reports, cells, count, self.width.bit_length() - 1)
        same: NDArray[np.bool_] = hashes == reports & np.uint64((1 << count) - 1)
        return same

    def places(self, reports: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of reports, and where in all sums their characters go, twice as many if −1; flat."""
        rows = (reports >> np.uint64(self._answer)).astype(np.int64)
        answers = reports & np.uint64((1 << self._answer) - 1)
        size, width, bits = self.rows * self.width, self.width, self.width.bit_length() - 1
        cells = [
            rows * width + (hashed & (width - 1)) + size * (hashed >> bits)
            for hashed in signs(answers, self.response.parities, bits)
        ]
        return rows, np.concatenate(cells)


class Sums:
    """Reports of a table, added up; nothing in it grows with their number.

    Attributes:
        table: What the reports are about.
        characters: The sums of the characters of responses, by row.
        people: How many reported, by row.
    """

    __slots__ = ("_known", "_squares", "characters", "people", "table")

    def __init__(self, table: Table) -> None:
        self.table = table
        self.characters = np.zeros((table.rows, table.width), np.int64)
        self.people = np.zeros(table.rows, np.int64)
        self._known: NDArray[np.int64] | None = None
        self._squares: float | None = None

    def add(self, reports: NDArray[np.uint64]) -> None:
        """Add reports that are known to be of this table."""
        self._known = self._squares = None
        flat, size = self.characters.reshape(-1), self.characters.size
        step = max(_CHUNK, size)
        for start in range(0, reports.size, step):
            rows, places = self.table.places(reports[start : start + step])
            self.people += np.bincount(rows, minlength=self.table.rows)
            if places.size * 8 > size:
                counts = np.bincount(places, minlength=2 * size)
                flat += counts[:size] - counts[size:]
            else:
                negative = places >= size
                np.add.at(flat, places - size * negative, 1 - 2 * negative.astype(np.int64))

    def merged(self, other: Sums) -> Sums:
        """Both together."""
        sums = Sums(self.table)
        sums.characters, sums.people = self.characters + other.characters, self.people + other.people
        return sums

    def written(self) -> list[int]:
        """All numbers, as plain data."""
        return [*self.people.tolist(), *self.characters.reshape(-1).tolist()]

    @classmethod
    def read(cls, table: Table, listed: Any, count: int | None) -> Sums:
        """What `written` gave, of so many reports if their number is known.

        Raises:
            InvalidValue: if these cannot be sums of reports.
        """
        sums = cls(table)
        numbers = listed_numbers(listed, sums.people.size + sums.characters.size)
        sums.people, sums.characters = numbers[: table.rows], numbers[table.rows :].reshape(table.rows, -1)
        most = sums.people * ((1 << table.response.parities) - 1)
        right = sums.people.min() >= 0 and count in (None, int(sums.people.sum()))
        if not right or np.any(np.abs(sums.characters).sum(1) > most):
            raise InvalidValue("These are not sums of reports of this randomizer.")
        return sums

    def supports(self) -> NDArray[np.int64]:
        """How many reports of each row support each cell; transformed once."""
        if self._known is None:
            moved = transform(np.ascontiguousarray(self.characters.T))
            self._known = (moved.T + self.people[:, None]) >> self.table.response.parities
        return self._known

    def counted(self, keys: Keys) -> NDArray[np.int64]:
        """How many reports support each key: the cells that it has in all rows, together."""
        counts = np.zeros(keys.size, np.int64)
        for start in range(0, keys.size, _CHUNK):
            part, total = keys[start : start + _CHUNK], counts[start : start + _CHUNK]
            for row, cells in enumerate(self.supports()):
                total += cells.take(self.table.cells(row, part).view(np.int64))
        return counts

    def collisions(self) -> float:
        """An upper estimate of Σ c², c the people of one value in one row: what collisions are made of.

        In a row with n people, the squared counts of cells add up to G + (n² − G)/m on average over hash
        functions, G being that row's part of the sum; the squares of estimated counts are larger by the
        estimates' own variance. Three deviations are added, and G is at least the number of people.
        """
        if self._squares is not None:
            return self._squares
        response, width = self.table.response, self.table.width
        people = self.people.astype(np.float64)
        cells = (self.supports() - people[:, None] * response.q) / response.gap
        own = response.p * (1 - response.p) / response.gap**2
        noise = people * (own + (width - 1) * response.variance)
        squares = (cells * cells).sum(1) - noise - people * people / width
        total = float(squares.sum()) * width / (width - 1)
        deviation = float(np.sqrt(2.0 * width * np.square(people * (response.variance + own / width)).sum()))
        self._squares = max(total + _SAFE * deviation, float(people.sum()))
        return self._squares

    def lump(self, width: float) -> float:
        """What collisions may add beyond their variance, at so many deviations, to an estimated count.

        They come in lumps, of all people that a frequent value has in a row. The tail of a sum of lumps of at
        most b is that of the normal law, width·deviation, plus b·width²/6 (Bernstein). A lump is at most the
        root of its row's part of `collisions`, or some deviations of a count above that of an average row.
        """
        part = self.collisions() / self.table.rows
        return (math.sqrt(part) + _SAFE * math.sqrt(math.sqrt(part))) * width * width / 6

    def estimate(self, keys: Keys, confidence: float) -> tuple[Floats, Floats, Floats]:
        """Counts of keys with the ends of their intervals."""
        counts, people = self.counted(keys), int(self.people.sum())
        response, shared = self.table.response, 1 / self.table.width
        # People in the key's own cells: those who have the key, and one in m of the others.
        inside: Floats = (counts.astype(np.float64) - people * response.q) / response.gap
        low, high = intervals(counts, people, response.p, response.q, confidence)
        width = float(-special.ndtri((1 - confidence) / 2))
        spread = width * width * self.collisions() * shared * (1 - shared)
        below = np.sqrt(np.square(np.maximum(inside - low, 0)) + spread) + self.lump(width)
        above = np.sqrt(np.square(np.maximum(high - inside, 0)) + spread)
        middle = (inside - people * shared) / (1 - shared)
        return (
            middle,
            np.clip(middle - below / (1 - shared), 0, people),
            np.clip(middle + above / (1 - shared), 0, people),
        )


def law_of_pair(tables: Sequence[Table], lefts: Keys, rights: Keys, side: Side) -> dict[int, float]:
    """The law of twice "supports the left key" plus "supports the right one", if the one of a side reports.

    Each table has its own two keys. Where they share a cell, a report supports both or none.
    """
    p, q = tables[0].response.p, tables[0].response.q
    same = 0
    for table, left, right in zip(tables, lefts, rights, strict=True):
        rows = np.arange(table.rows)
        cells = [table.cells(rows, np.full(table.rows, key, np.uint64)) for key in (left, right)]
        same += int(np.count_nonzero(cells[0] == cells[1]))
    shared = same / sum(table.rows for table in tables)
    one, other = (2, 1) if side == "left" else (1, 2)
    apart = {3: p * q, one: p * (1 - q), other: (1 - p) * q, 0: (1 - p) * (1 - q)}
    joined = {3: p, one: 0.0, other: 0.0, 0: 1 - p}
    return {seen: (1 - shared) * apart[seen] + shared * joined[seen] for seen in range(4)}
