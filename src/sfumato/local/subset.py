"""Subset selection: a random set of values, of a fixed size, that favours sets with the own value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import combinations
from math import comb, expm1
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local import _bits
from sfumato.local.base import register
from sfumato.local.coins import Coins, Odds, nearest
from sfumato.local.domain import Domain
from sfumato.local.examples import Example, unpacked
from sfumato.local.packed import PackedRandomizer
from sfumato.local.support import price
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_integer
from sfumato.numeric.figures import ball
from sfumato.numeric.frozen import freeze, shown

__all__ = ["SubsetSelection", "examples"]

_MOST = 1 << 20


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class SubsetSelection(PackedRandomizer):
    """Reports a set of `size` values: with probability p the own one is in it; the rest are random.

    The least variance there is for frequencies, as far as constants matter (Ye, Barg 2018), at ⌈d/8⌉ bytes a
    report and more work than the others for the client.

    Attributes:
        epsilon: The price of a report.
        domain: The d values.
        size: How many values a report names; by default the number of least variance, near d/(e^ε + 1).

    Privacy:
        Claim: one report is ε-DP between any two values. Proof: with s the size, a set with the own value has
        probability p/C(d − 1, s − 1), one without it (1 − p)/C(d − 1, s); the ratio is
        p(d − s)/((1 − p)s) = e^ε for p = s·e^ε/(s·e^ε + d − s). Coin and choice are exact: a uniform set of s
        others, one member of which, chosen uniformly, makes way for the own value if the coin says so; what
        is left is a uniform set of s − 1 others. Everybody draws both. Source: Ye, Barg 2018; Wang et al.
        2016 ("ω-subset mechanism").
    """

    wire: ClassVar[str] = "subset.1"
    epsilon: Fraction
    domain: Domain
    size: int
    p: float = field(compare=False)
    q: float = field(compare=False)
    gap: float = field(compare=False)
    _own: Coins = field(compare=False)

    def __init__(
        self, epsilon: Rational, domain: int | Sequence[Any] | Domain, *, size: int | None = None
    ) -> None:
        """Fix the coin from the price and the sizes.

        Raises:
            InvalidParameter: for an unusable epsilon, domain or size.
        """
        exact, values = price(epsilon), Domain(domain)
        if values.size > _MOST:
            raise InvalidParameter(
                "Subsets of more than 2**20 values are too large to send; hash them first."
            )
        count = _best(exact, values.size) if size is None else as_integer(size, "size")
        if count >= values.size:
            raise InvalidParameter("size must be below the number of values, or a report says nothing.")
        odds = Odds(exact, Fraction(values.size - count, count))
        p, q, gap = _figures(exact, odds, values.size, count)
        freeze(self, epsilon=exact, domain=values, size=count, _own=Coins(odds), p=p, q=q, gap=gap)

    def __repr__(self) -> str:
        return shown("SubsetSelection", epsilon=self.epsilon, domain=self.domain.to_json(), size=self.size)

    def encode(self, values: Any) -> NDArray[np.uint8]:
        """A row of packed bits for each value, the first value of the domain in the lowest bit.

        Raises:
            InvalidValue: for a value outside the domain; nothing was randomised then.
        """
        places, bits = self.domain.indices(values), self.domain.size
        out = np.empty((places.size, _bits.width(bits)), np.uint8)
        starts = _bits.blocks(places.size, -(-bits // 8))
        for start in starts:
            out[start : start + starts.step] = self._sets(places[start : start + starts.step])
        return out

    def _sets(self, places: NDArray[np.int64]) -> NDArray[np.uint8]:
        row, others = np.arange(places.size), self.domain.size - 1
        rows, leaves = _sets_below(others, self.size, places.size)
        own = self._own.toss(places.size)
        rows[row, leaves] &= ~own
        # Others are the values but the own one, with the last value at its place.
        rows[:, others] = rows[row, places]
        rows[row, places] = own
        return np.packbits(rows, axis=1, bitorder="little")

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        PackedRandomizer._refuse_others(self, batch)  # super() misses classes with slots
        if np.any(np.bitwise_count(batch).sum(axis=1, dtype=np.int64) != self.size):
            raise InvalidValue(f"A report does not name {self.size} values.")

    def _parameters(self) -> dict[str, Any]:
        return {"domain": self.domain.to_json(), "size": self.size}


def _sets_below(bound: int, size: int, rows: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Uniform sets of `size` numbers below `bound`, a row each with a column to spare, and a uniform member.

    Floyd's algorithm (Bentley, Floyd 1987), in step for all rows: before a step the set is uniform among
    those of its size below j; a number up to j is drawn, and if it is there already, j itself is taken.
    """
    row, taken = np.arange(rows), np.zeros((rows, bound + 1), np.bool_)
    flat, first = taken.reshape(-1), row * (bound + 1)
    chosen = np.empty((size, rows), np.int64)
    for step, last in enumerate(range(bound - size, bound)):
        draw = random.integers(last + 1, rows)
        draw = np.where(flat[first + draw], last, draw)
        flat[first + draw] = True
        chosen[step] = draw
    return taken, chosen[random.integers(size, rows), row]


def _best(epsilon: Fraction, values: int) -> int:
    """The size with the least variance: one of the two beside d/(e^ε + 1)."""
    about = values / (expm1(epsilon) + 2)
    near = {min(max(1, int(about) + more), values - 1) for more in (0, 1)}

    def variance(size: int) -> float:
        _, q, gap = _figures(epsilon, Odds(epsilon, Fraction(values - size, size)), values, size)
        return q * (1 - q) / gap / gap

    return min(sorted(near), key=variance)


def _figures(epsilon: Fraction, odds: Odds, values: int, size: int) -> tuple[float, float, float]:
    """The floats p, q and p − q: q = (size − p)/(d − 1), since a report names `size` values in all."""
    p = nearest(odds)
    q = nearest(lambda: (size - odds()) / (values - 1))
    # p − q = (d·p − size)/(d − 1) = p(1 − e^−ε)(d − size)/(d − 1), without cancellation
    gap = nearest(lambda: odds() * -(-ball(epsilon)).expm1() * (values - size) / (values - 1))
    return p, q, gap


def _example(name: str, randomizer: SubsetSelection, left: int, right: int) -> Example:
    d, s = randomizer.domain.size, randomizer.size

    def pmf(side: Side) -> Mapping[Any, float]:
        own = left if side == "left" else right
        law = {}
        for chosen in combinations(range(d), s):
            row = tuple(int(i in chosen) for i in range(d))
            law[row] = (
                randomizer.p / comb(d - 1, s - 1) if own in chosen else (1 - randomizer.p) / comb(d - 1, s)
            )
        return law

    return Example(name, randomizer, left, right, read=unpacked(d), pmf=pmf, tight=0.8)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("subset selection", SubsetSelection(1, 6), 0, 5),
        _example("subset selection: three of nine", SubsetSelection("0.5", 9, size=3), 8, 3),
    )
