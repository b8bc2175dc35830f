"""Unary encoding: a bit for every value of the domain, each randomised by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.local import _bits
from sfumato.local.base import register
from sfumato.local.coins import Coins, Odds, nearest
from sfumato.local.domain import Domain
from sfumato.local.examples import Example, unpacked
from sfumato.local.packed import PackedRandomizer
from sfumato.local.support import price
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational
from sfumato.numeric.figures import ball
from sfumato.numeric.frozen import freeze, shown

__all__ = ["UnaryEncoding", "examples", "law_of_bits"]


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class UnaryEncoding(PackedRandomizer):
    """Reports one bit for each value of the domain: the own bit is 1 with probability p, others with q.

    Symmetric: every bit is turned round with probability 1/(e^(ε/2) + 1). Optimised: the own bit is a fair
    coin, and others are 1 with probability 1/(e^ε + 1): fewer wrong ones, which matters more where most bits
    are wrong. A report has ⌈d/8⌉ bytes: 128 for 1024 values.

    Attributes:
        epsilon: The price of a report.
        domain: The values.
        optimised: Which of the two.

    Privacy:
        Claim: one report is ε-DP between any two values. Proof: bits are independent, and two values change
        the law of two of them; the ratio is at most p(1 − q)/((1 − p)q), which is (e^(ε/2))² or
        1·e^ε. Coins are exact and every bit is drawn before the own one is put in place. Source: Erlingsson,
        Pihur, Korolova 2014 (symmetric); Wang, Blocki, Li, Jha 2017 (optimised).
    """

    wire: ClassVar[str] = "unary.1"
    epsilon: Fraction
    domain: Domain
    optimised: bool
    p: float = field(compare=False)
    q: float = field(compare=False)
    gap: float = field(compare=False)
    _own: Coins = field(compare=False)
    _others: Coins = field(compare=False)

    def __init__(
        self, epsilon: Rational, domain: int | Sequence[Any] | Domain, *, optimised: bool = True
    ) -> None:
        """Fix the coins from the price.

        Raises:
            InvalidParameter: for an unusable epsilon or domain.
        """
        if not isinstance(optimised, bool):
            raise InvalidParameter("optimised is True or False.")
        exact = price(epsilon)
        own = Fraction(1, 2) if optimised else Odds(exact / 2)
        others = Odds(-exact if optimised else -exact / 2)
        freeze(self, epsilon=exact, domain=Domain(domain), optimised=optimised)
        freeze(self, _own=Coins(own), _others=Coins(others))
        freeze(self, p=0.5 if isinstance(own, Fraction) else nearest(own), q=nearest(others))
        # Both gaps are half of a hyperbolic tangent, without cancellation.
        freeze(self, gap=nearest(lambda: _tangent(exact / (2 if optimised else 4)) / (2 if optimised else 1)))

    def __repr__(self) -> str:
        return shown(
            "UnaryEncoding", epsilon=self.epsilon, domain=self.domain.to_json(), optimised=self.optimised
        )

    def encode(self, values: Any) -> NDArray[np.uint8]:
        """A row of packed bits for each value, the first value of the domain in the lowest bit.

        Raises:
            InvalidValue: for a value outside the domain; nothing was randomised then.
        """
        return drawn(self.domain.indices(values), self.domain.size, self._own, self._others)

    def _parameters(self) -> dict[str, Any]:
        return {"domain": self.domain.to_json(), "optimised": self.optimised}


def drawn(places: NDArray[np.int64], bits: int, own: Coins, others: Coins) -> _bits.Bytes:
    """Rows of so many bits, all tosses of `others` but the one at the place, which is a toss of `own`."""
    size = _bits.width(bits)
    out = np.empty((places.size, size), np.uint8)
    starts = _bits.blocks(places.size, size)
    for start in starts:
        rows = out[start : start + starts.step]
        rows[:] = others.packed(rows.size).reshape(rows.shape)
        _bits.put(rows, places[start : start + starts.step], own.toss(len(rows)))
        _bits.trim(rows, bits)
    return out


def _tangent(x: Fraction) -> arb:
    return ball(x).tanh()


def law_of_bits(p: float, q: float, own: int, bits: int) -> dict[tuple[int, ...], float]:
    """The law of rows of independent bits, by listing them all."""
    chances = [p if i == own else q for i in range(bits)]
    return {
        row: float(np.prod([c if bit else 1 - c for bit, c in zip(row, chances, strict=True)]))
        for row in product((0, 1), repeat=bits)
    }


def _example(name: str, randomizer: UnaryEncoding, left: int, right: int) -> Example:
    def pmf(side: Side) -> Mapping[Any, float]:
        return law_of_bits(
            randomizer.p, randomizer.q, left if side == "left" else right, randomizer.domain.size
        )

    small: Callable[[Side], Mapping[Any, float]] | None = pmf if randomizer.domain.size <= 10 else None
    return Example(name, randomizer, left, right, read=unpacked(randomizer.domain.size), pmf=small, tight=0.8)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("unary encoding: optimised", UnaryEncoding(1, 5), 0, 4),
        _example("unary encoding: symmetric", UnaryEncoding(1, 5, optimised=False), 1, 2),
        _example("unary encoding: optimised, nine values", UnaryEncoding(2, 9), 8, 7),
    )
