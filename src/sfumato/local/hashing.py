"""Local hashing: a report is a random hash function and a slice of its range that likely holds the value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.local.base import register
from sfumato.local.coins import Coins, Odds, nearest
from sfumato.local.domain import Domain
from sfumato.local.examples import Example
from sfumato.local.support import SupportRandomizer, price
from sfumato.loss import ResponseLoss
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational
from sfumato.numeric.figures import ball
from sfumato.numeric.frozen import freeze, shown

__all__ = ["Forced", "LocalHashing", "examples", "response_loss", "spread", "supported"]

_CHUNK = 1 << 15  # reports taken at a time: they and their hashes stay in the cache
_FEW = 1 << 11
_NARROW = 16  # bits of an index that 32-bit words serve
_FINE = 20  # bits of a hash that say whether it lies in the slice, or fewer for large domains
_PRECISE = 4096  # bits: e^700 is subtracted
_GOLDEN = 0x9E3779B97F4A7C15


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class LocalHashing(SupportRandomizer):
    """Optimised local hashing, with a hash function for each person and as little error as there can be.

    Indices are spread over B bits (`spread`, a bijection); words have w = 32 bits for B ≤ 16 and 64 above. A
    report is a random multiplier a and an offset c. It supports each value x whose hash a·x − c, modulo 2**w,
    lies in the slice 0 … length − 1. The offset is uniform, and no news; but with the probability `forced` it
    is one that puts the own value at a uniform place of the slice. The slice is 1/(e^ε + 1) of the range, as
    near as its unit of at least 2**(B − 1) allows, so that the own value is supported with probability 1/2 or
    very near it: the optimum of Wang, Blocki, Li, Jha 2017, without rounding their e^ε + 1 buckets.

    Any other value is supported with probability exactly q = length/2**w. Given the hash t of the own value,
    that of another is t + a·(x′ − x): uniform over the words that agree with t in the last k bits, where 2**k
    is the largest power that divides x′ − x. As k < B and the slice is a multiple of 2**(B − 1), it holds the
    share q of those, whatever t is. Reports of different people share nothing, so that a count of supports
    has exactly the variance of independent coins. (A few functions shared by many people would be quicker to
    count, and wrong: who collides with a frequent value does so in all of its reports.)

    Attributes:
        epsilon: The price of one report.
        domain: The values.
        length: Of the slice.

    Privacy:
        Claim: ε-DP, with the loss of randomized response over `loss.categories` values or less. Proof: a does
        not depend on the value. Given a, an offset has probability (1 − f)/2**w, and f/length more if it
        supports the value, with f = q(e^ε − 1)/(1 + q(e^ε − 1)) for `forced`: the ratio is e^ε. Between two
        values the log-ratio is ε with probability p(1 − q), −ε with probability (1 − p)q, otherwise 0: a pair
        that shows one answer at ε with probability s = p(1 − q) + (1 − p)q. Response over k values is such a
        pair with s = (e^ε + 1)/(e^ε + k − 1); to show an answer less often is post-processing, so that
        the largest whole k whose s is not below ours gives an upper bound.
        Source: Wang, Blocki, Li, Jha 2017; hashing by multiplication, Dietzfelbinger 1996.
    """

    wire: ClassVar[str] = "hashing.1"
    epsilon: Fraction
    domain: Domain
    length: int = field(compare=False)
    _bits: int = field(compare=False)
    _word: int = field(compare=False)
    _shift: int = field(compare=False)
    _coins: Coins = field(compare=False)
    _p: float = field(compare=False)
    _gap: float = field(compare=False)
    _loss: ResponseLoss = field(compare=False)

    def __init__(self, epsilon: Rational, domain: int | Sequence[Any] | Domain) -> None:
        """Choose the slice for a price and a domain.

        Raises:
            InvalidParameter: for an epsilon that is not positive or above 700, or an unusable domain.
        """
        exact, values = price(epsilon), Domain(domain)
        bits = (values.size - 1).bit_length()
        word = 32 if bits <= _NARROW else 64
        shift = max(bits - 1, word - _FINE)
        length = max(1, round((1 << (word - shift)) * nearest(Odds(-exact)))) << shift
        share = Fraction(length, 1 << word)
        own = Odds(exact, (1 - share) / share)
        freeze(self, epsilon=exact, domain=values, length=length, _bits=bits, _word=word, _shift=shift)
        freeze(self, _coins=Coins(Forced(own)), _p=nearest(own), _gap=nearest(_Gap(own, share)))
        freeze(self, _loss=response_loss(own, share))

    def __repr__(self) -> str:
        return shown("LocalHashing", epsilon=self.epsilon, domain=self.domain.to_json())

    @property
    def loss(self) -> ResponseLoss:
        """What one report costs at most."""
        return self._loss

    @property
    def p(self) -> float:
        """The probability that a report supports the own value, f + (1 − f)q."""
        return self._p

    @property
    def q(self) -> float:
        """The probability that a report supports a given other value, exactly."""
        return float(Fraction(self.length, 1 << self._word))

    @property
    def gap(self) -> float:
        """How much likelier the own value is, p − q, without the rounding of the difference."""
        return self._gap

    @property
    def forced(self) -> float:
        """How often the report is made to support the own value, the nearest float."""
        return nearest(Forced(Odds(self.epsilon, Fraction((1 << self._word) - self.length, self.length))))

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """Words of 32 or 64 bits."""
        return np.dtype(np.uint32 if self._word == 32 else np.uint64)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """A multiplier and an offset."""
        return (2,)

    def encode(self, values: Any) -> NDArray[Any]:
        """One report (a, c) for each value.

        Raises:
            InvalidValue: for a value outside the domain, which is not shown; nothing was randomised then.
        """
        indices = self.domain.indices(values)
        reports = np.empty((indices.size, 2), self.report_dtype)
        for start in range(0, indices.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            reports[part, 0], reports[part, 1] = self._drawn(self._keys(indices[part]))
        return reports

    def _drawn(self, keys: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """A multiplier and an offset for each. All is drawn for everybody, whether it is used or not."""
        stream, word = random.current(), keys.dtype.type
        draw = stream.words32 if self._word == 32 else stream.words64
        multipliers, offsets = draw(keys.size), draw(keys.size)
        # A uniform place in the slice; its last bits are those of the offset that it may replace.
        places = random.integers(self.length >> self._shift, keys.size).astype(keys.dtype)
        places <<= word(self._shift)
        places |= offsets & word((1 << self._shift) - 1)
        own = multipliers * keys
        own -= places
        own ^= offsets
        own *= self._coins.toss(keys.size)
        offsets ^= own  # the offset itself, or the one that supports the value
        return multipliers, offsets

    def _keys(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        return spread(indices.astype(self.report_dtype), self._bits)

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        """Every pair of words is a report."""

    def _supports(self, batch: NDArray[Any]) -> NDArray[np.int64]:
        keys = self._keys(np.arange(self.domain.size))
        return supported(batch[:, 0], batch[:, 1], keys, self.length)


@dataclass(frozen=True, slots=True)
class Forced:
    """f = p(1 − e^−ε), which is irrational: a ratio of polynomials in e^ε, a transcendental number."""

    own: Odds

    def __call__(self) -> arb:
        """The ball."""
        return self.own() * -(-ball(self.own.epsilon)).expm1()


@dataclass(frozen=True, slots=True)
class _Gap:
    """p − q = f(1 − q)."""

    own: Odds
    share: Fraction

    def __call__(self) -> arb:
        return Forced(self.own)() * ball(1 - self.share)


def response_loss(own: Odds, share: Fraction) -> ResponseLoss:
    """The loss of a support protocol whose hashes are pairwise independent, from p and q.

    It is `LocalHashing.loss`, with k rounded down: (1 − p)q = 1/(e^ε + k − 1).
    """
    with ctx.workprec(_PRECISE):
        count = 1 / ((1 - own()) * ball(share)) - ball(own.epsilon).exp() + 1
        whole = count.lower().floor().unique_fmpz()
    return ResponseLoss(own.epsilon, 2 if whole is None else min(max(2, int(whole)), 2**62))


def supported(
    multipliers: NDArray[Any], offsets: NDArray[Any], keys: NDArray[Any], length: int
) -> NDArray[np.int64]:
    """How many reports (a, c) have a·x − c below `length`, for each key x; all are words of one type."""
    counts = np.zeros(keys.size, np.int64)
    limit = keys.dtype.type(length)
    for start in range(0, multipliers.size, _CHUNK):
        a = np.ascontiguousarray(multipliers[start : start + _CHUNK])
        c = np.ascontiguousarray(offsets[start : start + _CHUNK])
        if a.size <= _FEW:
            # Many keys at a time, as few reports are less work than a call.
            step = _CHUNK // a.size
            for place in range(0, keys.size, step):
                table = keys[place : place + step, None] * a
                table -= c
                counts[place : place + step] += np.count_nonzero(table < limit, axis=1)
            continue
        hashes, inside = np.empty_like(a), np.empty(a.size, np.bool_)
        for place, key in enumerate(keys):
            np.multiply(a, key, out=hashes)
            np.subtract(hashes, c, out=hashes)
            np.less(hashes, limit, out=inside)
            counts[place] += np.count_nonzero(inside)
    return counts


def spread(indices: NDArray[Any], bits: int) -> NDArray[Any]:
    """A fixed bijection of the numbers of so many bits that leaves no progression a progression.

    The hashes of three numbers in a progression are not independent. Neighbours in a domain, whose counts are
    often added up, are not a progression here, so that their errors add up like independent ones.
    """
    word = indices.dtype.type
    mask, half, odd = word((1 << bits) - 1), word((bits + 1) // 2), word(_GOLDEN & ((1 << bits) - 1) | 1)
    mixed: NDArray[Any] = indices & mask
    for _ in range(3):
        mixed ^= mixed >> half
        mixed *= odd
        mixed &= mask
    mixed ^= mixed >> half
    return mixed


def _example(name: str, randomizer: LocalHashing, left: int, right: int) -> Example:
    """What tells two values apart is which of them the report supports."""
    keys = randomizer._keys(np.array([left, right]))

    def read(reports: NDArray[Any]) -> NDArray[Any]:
        inside = reports[:, :1] * keys - reports[:, 1:] < randomizer.length
        seen: NDArray[Any] = 2 * inside[:, 0] + inside[:, 1]
        return seen

    def pmf(side: Side) -> dict[int, float]:
        p, q = randomizer.p, randomizer.q
        one, other = (2, 1) if side == "left" else (1, 2)
        return {3: p * q, one: p * (1 - q), other: (1 - p) * q, 0: (1 - p) * (1 - q)}

    return Example(name, randomizer, left, right, read, pmf)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("local hashing", LocalHashing(1, 1024), 3, 700),
        _example("local hashing: two values", LocalHashing(2, 2), 0, 1),
        _example("local hashing: long words", LocalHashing("0.5", 100_000), 0, 99_999),
    )
