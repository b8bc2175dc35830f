"""Heavy hitters: the frequent values of a domain too large to list, found by their prefixes."""

from __future__ import annotations

import hashlib
import math
import string
from collections.abc import Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local._symbols import Symbols
from sfumato.local._table import Keys, Sums, Table, law_of_pair
from sfumato.local.base import Aggregate, Randomizer, register
from sfumato.local.estimates import Floats, Frequencies, sure_of
from sfumato.local.examples import Example
from sfumato.loss import ResponseLoss
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_integer, probability
from sfumato.numeric.frozen import freeze, shown

__all__ = ["Found", "HeavyAggregate", "HeavyHitters", "examples"]

Digits = NDArray[np.uint16]

_FIRST = 1 << 16  # prefixes that the first level tells apart, at most
_FURTHER = 1 << 11  # continuations of a prefix by one level, at most
_CLEAR = 3.5  # deviations by which a prefix stands out that is looked into, as one in 4000 does by chance
_KEPT = 512  # prefixes that go on from one level to the next, at most
_ROWS, _WIDTH = 256, 1024


@dataclass(frozen=True, slots=True)
class Found(Frequencies):
    """The frequent values that were found, the most frequent first.

    All intervals hold together with the confidence, and so does that nothing is listed which nobody has.

    Attributes:
        resolution: Each value that at least this share of the people have is found with the confidence.
    """

    resolution: float

    def consistent(self) -> Floats:
        """The counts, made smaller in proportion where they add up to more than the people."""
        total = float(self.counts.sum())
        return self.counts * min(1.0, self.people / total) if total > 0 else self.counts


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class HeavyHitters(Randomizer[Found]):
    """Finds the values that many people have, among whole numbers of many bits or texts.

    A value is a row of symbols. Each person draws one of the levels, and reports the prefix of their value
    that belongs to it, once, at the whole epsilon, to the level's table of hashed counts
    (`CountMeanSketch`). The server lists the prefixes of the first level, keeps those that may be frequent,
    lists their continuations, and so on; the last level has whole values, and its people give the counts.

    Attributes:
        epsilon: The price of the one report.
        bits: Of the whole numbers 0 … 2**bits − 1; None for texts.
        length: The most characters of a text; None for numbers.
        alphabet: Its characters; None for numbers.
        salt: A public number that the hash functions follow from.
        levels: How many symbols the prefix of each level has.

    Privacy:
        Claim: ε-DP, with the loss of the Hadamard response over the cells of a table. Proof: level and row do
        not depend on the value, and the report is a response about a function of it; a person reports at one
        level only, so that nothing is split. Source: Bassily, Nissim, Stemmer, Thakurta 2017 (prefix trees,
        people divided among levels); Apple's Differential Privacy Team 2017 (the table).
    """

    wire: ClassVar[str] = "heavy.1"
    epsilon: Fraction
    bits: int | None
    length: int | None
    alphabet: str | None
    salt: int
    levels: tuple[int, ...] = field(compare=False)
    _symbols: Symbols = field(compare=False)
    _tables: tuple[Table, ...] = field(compare=False)
    _factors: Keys = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        *,
        bits: int | None = None,
        length: int | None = None,
        alphabet: str | None = None,
        salt: int = 0,
    ) -> None:
        """Look for whole numbers of `bits` bits, or for texts of up to `length` characters of an alphabet.

        The alphabet is the small letters, digits, space, point and hyphen unless given.

        Raises:
            InvalidParameter: unless one of bits and length is given, or if they are unusable.
        """
        if (bits is None) == (length is None) or (alphabet is not None and length is None):
            raise InvalidParameter("Give bits, to look for whole numbers, or length, to look for texts.")
        if length is not None and alphabet is None:
            alphabet = string.ascii_lowercase + string.digits + " .-"
        symbols = Symbols.of(bits, length or 0, alphabet)
        number = as_integer(salt, "salt", least=0)
        levels = tuple(_levels(symbols.base, symbols.length))
        spare = (len(levels) - 1).bit_length()
        tables = tuple(
            Table(epsilon, _ROWS, _WIDTH, f"{number} level {level}", spare=spare)
            for level in range(len(levels))
        )
        drawn = hashlib.shake_256(f"sfumato prefixes 1 {number}".encode()).digest(8 * (symbols.length + 1))
        freeze(self, epsilon=tables[0].response.epsilon, bits=bits, length=length, alphabet=alphabet)
        freeze(self, salt=number, levels=levels, _symbols=symbols, _tables=tables)
        freeze(self, _factors=np.frombuffer(drawn, "<u8").astype(np.uint64))

    def __repr__(self) -> str:
        return shown("HeavyHitters", epsilon=self.epsilon, **self._parameters())

    @property
    def loss(self) -> ResponseLoss:
        """What one report costs at most."""
        return self._tables[0].response.loss

    @property
    def variance(self) -> float:
        """The variance that one report adds to the estimated count of a rare value, collisions aside."""
        return len(self.levels) * self._tables[0].response.variance

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """Words of 64 bits."""
        return np.dtype(np.uint64)

    def _parameters(self) -> dict[str, Any]:
        given = {"bits": self.bits, "length": self.length, "alphabet": self.alphabet, "salt": self.salt}
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote down.

        Raises:
            InvalidParameter: for anything else.
        """
        given = dict(data)
        try:
            if given.pop("kind") != cls.wire:
                raise InvalidParameter(f"These are not parameters of {cls.wire!r}.")
            return cls(given.pop("epsilon"), **given)
        except (KeyError, TypeError, ValueError):
            raise InvalidParameter(f"The parameters of {cls.wire!r} are not complete or not known.") from None

    def encode(self, values: Any) -> NDArray[np.uint64]:
        """One report for each value.

        Raises:
            InvalidValue: for any other value; it is not shown, nothing was randomised.
        """
        digits = self._symbols.digits(values)
        levels = random.integers(len(self.levels), len(digits))
        reports = np.empty(len(digits), np.uint64)
        # Everybody's prefixes are hashed at every level, so that time does not follow a person's own.
        for level, keys in enumerate(self._keys(digits)):
            mine, table = levels == level, self._tables[level]
            reports[mine] = table.encode(keys[mine]) | np.uint64(level << table.used)
        return reports

    def _keys(self, digits: Digits) -> Iterator[Keys]:
        """48 bits for the prefixes of each level that the rows are long enough for.

        The first bits of Σ rᵢ·dᵢ + r modulo 2**64, exactly pairwise independent over the factors r where
        symbols have at most 16 bits (Dietzfelbinger 1996; Thorup 2015): two prefixes agree in one of 2**48.
        """
        total = np.full(len(digits), self._factors[-1])
        columns = np.ascontiguousarray(digits.T)
        for place, column in enumerate(columns, 1):
            total += self._factors[place - 1] * column
            if place in self.levels:
                yield total >> np.uint64(16)

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        if batch.size and int(batch.max()) >> self._tables[0].used >= len(self.levels):
            raise InvalidValue("A report has bits that no report of this randomizer has.")

    def start(self) -> HeavyAggregate:
        """An aggregate without reports."""
        return HeavyAggregate(self)


class HeavyAggregate(Aggregate[Found]):
    """A table for each level.

    Attributes:
        sums: The tables, added up.
    """

    __slots__ = ("sums",)
    randomizer: HeavyHitters

    def __init__(self, randomizer: HeavyHitters) -> None:
        super().__init__(randomizer)
        self.sums = [Sums(table) for table in randomizer._tables]

    def estimate(self, confidence: float = 0.95) -> Found:
        """The values that somebody has for sure, with their counts; see `find`.

        Raises:
            InvalidValue: without reports at every level.
        """
        return self.find(None, confidence)

    def find(self, threshold: float | None = None, confidence: float = 0.95) -> Found:
        """All values that at least the share `threshold` of the people have, with their counts.

        Listed are the values whose interval ends above the threshold and begins above 0. With the confidence,
        none of them is nobody's, and all intervals hold; each value above the threshold is listed with the
        confidence, by itself. Without a threshold, what stands out is listed.

        Raises:
            InvalidValue: without reports at every level, or if so many people cannot settle the threshold.
        """
        level = sure_of(confidence)
        share = None if threshold is None else float(probability(threshold, "threshold"))
        if not all(sums.people.any() for sums in self.sums):
            raise InvalidValue("There are too few reports: every level needs some.")
        randomizer, last = self.randomizer, len(self.sums) - 1
        miss = float(-special.ndtri((1 - level) / 2 / (last + 1)))
        prefixes, floor = np.zeros((1, 0), np.uint16), 0.0
        for place, sums in enumerate(self.sums):
            prefixes = randomizer._symbols.continued(prefixes, randomizer.levels[place])
            if place < last:
                wanted = _least(sums, _CLEAR + miss)
                floor = max(floor, wanted)
                prefixes = self._kept(prefixes, sums, wanted if share is None else max(share, wanted), miss)
        # As many intervals as values are looked at: those listed are chosen by what they hold.
        sure = 1 - (1 - level) / 2 / max(len(prefixes), 1)
        width = float(-special.ndtri((1 - sure) / 2))
        beyond = self.sums[last].lump(width) / int(self.sums[last].people.sum())
        resolution = max(floor, _least(self.sums[last], width + miss) + beyond)
        if share is not None and share < resolution:
            raise InvalidValue(
                f"So few people cannot settle a threshold below {resolution:.2g}: take that or more."
            )
        keys = self._last(prefixes)
        middle, low, high = self._scaled(self.sums[last], *self.sums[last].estimate(keys, sure), width)
        order = np.argsort(-middle, kind="stable")
        order = order[((low > 0) & (high >= (share or 0.0) * self.count))[order]]
        values = randomizer._symbols.values(prefixes[order])
        return Found(values, middle[order], low[order], high[order], level, self.count, min(resolution, 1.0))

    def _kept(self, prefixes: Digits, sums: Sums, wanted: float, miss: float) -> Digits:
        """The prefixes that may be as frequent as wanted; one that is gets lost with the chance of `miss`."""
        confidence = 1 - 2 * float(special.ndtr(-miss))
        middle, _, high = self._scaled(sums, *sums.estimate(self._last(prefixes), confidence), miss)
        best = np.argsort(-middle, kind="stable")[:_KEPT]
        kept: Digits = prefixes[best[high[best] >= wanted * self.count]]
        return kept

    def _last(self, prefixes: Digits) -> Keys:
        *_, keys = self.randomizer._keys(prefixes)
        return keys

    def _scaled(
        self, sums: Sums, middle: Floats, low: Floats, high: Floats, width: float
    ) -> tuple[Floats, Floats, Floats]:
        """From the people of a level to all people: who they are is a matter of chance as well."""
        people = int(sums.people.sum())
        scale, left = self.count / people, 1 - people / self.count
        # The share at the upper end, or a half, has the largest variance that is possible.
        share = np.clip(high / people, 1 / people, 0.5)
        drawn = width * width * people * left * share * (1 - share)
        below = np.sqrt(np.square(np.maximum(middle - low, 0)) + drawn)
        above = np.sqrt(np.square(np.maximum(high - middle, 0)) + drawn)
        return (
            middle * scale,
            np.maximum(middle - below, 0) * scale,
            np.minimum((middle + above) * scale, self.count),
        )

    def _add(self, batch: NDArray[Any]) -> None:
        used = self.randomizer._tables[0].used
        levels = batch >> np.uint64(used)
        reports = batch & np.uint64((1 << used) - 1)
        for level, sums in enumerate(self.sums):
            sums.add(reports[levels == level])

    def _merged(self, other: Self) -> Self:
        total = type(self)(self.randomizer)
        total.sums = [mine.merged(theirs) for mine, theirs in zip(self.sums, other.sums, strict=True)]
        return total

    def _state(self) -> list[list[int]]:
        return [sums.written() for sums in self.sums]

    def _restore(self, state: Any) -> None:
        if not isinstance(state, list) or len(state) != len(self.sums):
            raise InvalidValue("These are not sums of reports of this randomizer.")
        restored = [Sums.read(s.table, part, None) for s, part in zip(self.sums, state, strict=True)]
        if sum(int(sums.people.sum()) for sums in restored) != self.count:
            raise InvalidValue("These are not sums of reports of this randomizer.")
        self.sums = restored


def _least(sums: Sums, width: float) -> float:
    """The share that stands out by so many deviations of its estimate.

    The variance of an estimated share s is (v + c·s)/people, or less: v the noise of a rare value with its
    collisions, and c for what the own answers vary more and for who is at the level by chance.
    """
    response, people = sums.table.response, int(sums.people.sum())
    rare = response.variance + sums.collisions() / sums.table.width / people
    slope = 1 + max(response.p * (1 - response.p) / response.gap**2 - response.variance, 0.0)
    part = width * width / people
    return (part * slope + math.sqrt((part * slope) ** 2 + 4 * part * rare)) / 2


def _levels(base: int, length: int) -> Iterator[int]:
    """How many symbols prefixes have: as many as can be listed first, then as many more at a time."""
    done = _power(base, _FIRST)
    while done < length:
        yield done
        done += _power(base, _FURTHER)
    yield length


def _power(base: int, most: int) -> int:
    """The largest number of symbols, at least 1, that have at most so many combinations."""
    count = 1
    while base ** (count + 1) <= most:
        count += 1
    return count


def _example(name: str, randomizer: HeavyHitters, left: Any, right: Any) -> Example:
    """What tells two values apart is which of them the report supports."""
    rows = randomizer._symbols.digits([left, right])
    keys = np.array(list(randomizer._keys(rows)))

    def read(reports: NDArray[Any]) -> NDArray[Any]:
        used = randomizer._tables[0].used
        seen = np.zeros(reports.size, np.int64)
        for level, table in enumerate(randomizer._tables):
            mine = reports >> np.uint64(used) == level
            here = reports[mine] & np.uint64((1 << used) - 1)
            both = [table.supported(here, int(key)) for key in keys[level]]
            seen[mine] = 2 * both[0] + both[1]
        return seen

    def pmf(side: Side) -> dict[int, float]:
        return law_of_pair(randomizer._tables, keys[:, 0], keys[:, 1], side)

    return Example(name, randomizer, left, right, read, pmf)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("heavy hitters: numbers", HeavyHitters(1, bits=32), 5, 2**32 - 1),
        _example("heavy hitters: texts", HeavyHitters(1, length=8), "tea", "coffee"),
    )
