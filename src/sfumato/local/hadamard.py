"""Hadamard response: a few bits a report, and counts of the whole domain by one fast transform."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local._numbers import in_blocks
from sfumato.local.base import Aggregate, listed_numbers, register
from sfumato.local.coins import Coins, Odds, nearest
from sfumato.local.domain import Domain
from sfumato.local.examples import Example
from sfumato.local.hashing import Forced, response_loss
from sfumato.local.support import SupportAggregate, SupportRandomizer, price
from sfumato.loss import ResponseLoss
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_integer
from sfumato.numeric.frozen import freeze, shown

__all__ = ["HadamardAggregate", "HadamardResponse", "examples", "parities", "signs", "transform", "word_type"]

Words = NDArray[Any]
Counts = NDArray[np.int64]

_CHUNK = 1 << 15
_LONGEST = 8  # parities: a report is 2**8 − 1 additions then
_MOST = 1 << 24  # values of the domain: the transform holds a number for each


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class HadamardResponse(SupportRandomizer):
    """Sends a few randomly chosen bits of the Hadamard transform of a value, hidden by randomized response.

    A value is an index x of B bits. A person draws t masks of B bits uniformly; the t parities of mask AND x
    are a hash of x, and the response is that hash with probability p, otherwise another of the g = 2**t. The
    report is the masks with the response, and it supports each value that has the response as its hash. The
    hashes of x and x′ differ by that of x XOR x′, which is not 0, so that they agree with probability exactly
    1/g: this is local hashing with a linear family. Where t may be chosen freely its variance is at most 8 %
    above the optimum. The difference is the server's work: whether a value is supported is a mean of g
    characters, so that a report is g − 1 additions, whatever the domain, and one transform gives all counts.

    Attributes:
        epsilon: The price of one report.
        domain: The values.
        parities: How many are sent: t.

    Privacy:
        Claim: ε-DP, with the loss of randomized response over `loss.categories` values or less. Proof: the
        masks do not depend on the value. Given them, the response is the hash with probability f =
        (e^ε − 1)/(e^ε + g − 1) and otherwise uniform: randomized response over g answers. The loss between
        two values is that of `LocalHashing`, for p = e^ε/(e^ε + g − 1) and q = 1/g.
        Source: Nguyên, Xiao, Yang, Hui, Shin, Shin 2016 (t = 1); Acharya, Sun, Zhang 2019; Cormode, Maddock,
        Maple 2021 (t coefficients).
    """

    wire: ClassVar[str] = "hadamard.1"
    epsilon: Fraction
    domain: Domain
    parities: int
    _bits: int = field(compare=False)
    _coins: Coins = field(compare=False)
    _p: float = field(compare=False)
    _forced: float = field(compare=False)
    _loss: ResponseLoss = field(compare=False)

    def __init__(
        self, epsilon: Rational, domain: int | Sequence[Any] | Domain, *, parities: int | None = None
    ) -> None:
        """Choose how many parities a report holds: as given, or those of least variance within 64 bits.

        Raises:
            InvalidParameter: for an epsilon that is not positive or above 700, an unusable domain or one of
                more than 2**24 values, or parities that do not fit.
        """
        exact, values = price(epsilon), Domain(domain)
        if values.size > _MOST:
            raise InvalidParameter("The domain of a Hadamard response has at most 2**24 values.")
        bits = (values.size - 1).bit_length()
        most = min(64 // (bits + 1), _LONGEST)
        if parities is None:
            count = min(range(1, most + 1), key=lambda t: _excess(exact, t))
        else:
            count = as_integer(parities, "parities")
            if count > most:
                raise InvalidParameter(f"At most {most} parities can be in a report of this domain.")
        own = Odds(exact, Fraction((1 << count) - 1))
        freeze(self, epsilon=exact, domain=values, parities=count, _bits=bits, _coins=Coins(Forced(own)))
        freeze(self, _p=nearest(own), _forced=nearest(Forced(own)))
        freeze(self, _loss=response_loss(own, Fraction(1, 1 << count)))

    def __repr__(self) -> str:
        return shown(
            "HadamardResponse", epsilon=self.epsilon, domain=self.domain.to_json(), parities=self.parities
        )

    @property
    def loss(self) -> ResponseLoss:
        """What one report costs at most."""
        return self._loss

    @property
    def p(self) -> float:
        """The probability that a report supports the own value, e^ε/(e^ε + g − 1)."""
        return self._p

    @property
    def q(self) -> float:
        """The probability that a report supports a given other value, exactly 1/g."""
        return 1 / (1 << self.parities)

    @property
    def gap(self) -> float:
        """How much likelier the own value is, without the rounding of the difference."""
        return self._forced * (1 - self.q)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The shortest words that hold t masks and t bits."""
        return word_type(self.parities * (self._bits + 1))

    def _parameters(self) -> dict[str, Any]:
        return {"domain": self.domain.to_json(), "parities": self.parities}

    def encode(self, values: Any) -> Words:
        """One report for each value: from its last bits on, the response of t bits and the t masks.

        Raises:
            InvalidValue: for a value outside the domain, which is not shown; nothing was randomised then.
        """
        return in_blocks(self._respond, self.domain.indices(values), self.report_dtype, step=_CHUNK)

    def _respond(self, indices: NDArray[np.int64]) -> Words:
        """Masks and a uniform response, which the hash replaces where the coin says so; no branch on it."""
        wide = self.report_dtype.itemsize == 8
        size, used = indices.size, self.parities * (self._bits + 1)
        word = np.uint64 if wide else np.uint32
        reports: Words = random.current().words64(size) if wide else random.current().words32(size)
        reports &= word((1 << used) - 1)
        change = parities(reports, indices.astype(word), self.parities, self._bits)
        change ^= reports
        change &= word((1 << self.parities) - 1)
        change *= self._coins.toss(size)
        reports ^= change
        return reports

    def start(self) -> HadamardAggregate:
        """An aggregate without reports."""
        return HadamardAggregate(self)

    def _refuse_others(self, batch: Words) -> None:
        if batch.size and int(batch.max()) >> self.parities * (self._bits + 1):
            raise InvalidValue("A report has bits that no report of this randomizer has.")

    def _supports(self, batch: Words) -> Counts:
        total = self.start()
        total.add(batch)
        return total.supports


class HadamardAggregate(SupportAggregate):
    """The sum of the characters that each report consists of.

    Attributes:
        sums: For each mask, how often its parity was sent as 0, less how often as 1.
    """

    __slots__ = ("sums",)
    randomizer: HadamardResponse

    def __init__(self, randomizer: HadamardResponse) -> None:
        Aggregate.__init__(self, randomizer)
        self.sums = np.zeros(1 << randomizer._bits, np.int64)

    @property
    def supports(self) -> Counts:  # type: ignore[override]
        """How many reports support each value: whether one does is the mean of its g characters there."""
        randomizer = self.randomizer
        counts = (transform(self.sums)[: randomizer.domain.size] + self.count) >> randomizer.parities
        return cast(Counts, counts)

    def _add(self, batch: Words) -> None:
        randomizer = self.randomizer
        size = self.sums.size
        step = max(_CHUNK, 2 * size)
        for start in range(0, batch.size, step):
            for places in signs(batch[start : start + step], randomizer.parities, randomizer._bits):
                counts = np.bincount(places, minlength=2 * size)
                self.sums += counts[:size]
                self.sums -= counts[size:]

    def _merged(self, other: Self) -> Self:
        total = type(self)(self.randomizer)
        total.sums = self.sums + other.sums
        return total

    def _state(self) -> list[int]:
        return self.sums.tolist()

    def _restore(self, state: Any) -> None:
        listed = listed_numbers(state, self.sums.size)
        total = self.count * ((1 << self.randomizer.parities) - 1)
        if int(np.abs(listed).sum()) > total or (int(listed.sum()) - total) % 2:
            raise InvalidValue("These are not sums of reports of this randomizer.")
        self.sums = listed


def word_type(bits: int) -> np.dtype[Any]:
    """The shortest unsigned type of so many bits."""
    return np.dtype(np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64)


def parities(reports: Words, keys: Words, count: int, bits: int) -> Words:
    """The parities of mask AND key, as so many last bits; the masks stand before the last `count` bits."""
    word = reports.dtype.type
    out = np.zeros_like(reports)
    mask = word((1 << bits) - 1)
    for place in range(count):
        masked = reports >> word(count + place * bits)
        masked &= mask  # the keys have no more bits, but what follows may hold other things
        masked &= keys
        odd = np.bitwise_count(masked)
        odd &= np.uint8(1)
        out |= odd.astype(reports.dtype) << word(place)
    return out


def signs(reports: Words, count: int, bits: int) -> Iterator[NDArray[np.int64]]:
    """The characters that reports consist of, without the constant: each as its mask, plus 2**bits for −1."""
    words = reports.astype(np.int64) if reports.dtype.itemsize < 8 else reports.view(np.int64)
    mask = (1 << bits) - 1
    masks: list[NDArray[np.int64]] = [np.zeros_like(words)]
    for place in range(count):
        one = (words >> (count + place * bits)) & mask
        one |= ((words >> place) & 1) << bits  # the sign goes along, as the parity of the bits chosen
        masks += [other ^ one for other in masks]
        yield from masks[1 << place :]


def transform(values: Counts) -> Counts:
    """The exact Walsh–Hadamard transform of the first axis: out[x] = Σ values[y]·(−1)^(parity of x AND y).

    Each step puts sums and differences of the two halves side by side (Pease 1968), so that all steps are
    alike and walk through memory in order.
    """
    current, following = values.copy(), np.empty_like(values)
    half = len(values) // 2
    for _ in range(len(values).bit_length() - 1):
        np.add(current[:half], current[half:], out=following[0::2])
        np.subtract(current[:half], current[half:], out=following[1::2])
        current, following = following, current
    return current


def _excess(epsilon: Fraction, count: int) -> float:
    """What of the variance depends on the number of parities: (e^ε + g − 1)²/(g − 1), over e^ε."""
    ratio = ((1 << count) - 1) * math.exp(-epsilon)
    return (1 + ratio) * (1 + ratio) / ratio


def _example(name: str, randomizer: HadamardResponse, left: int, right: int) -> Example:
    """What tells two values apart is which of them the report supports."""

    def read(reports: Words) -> NDArray[Any]:
        count, bits = randomizer.parities, randomizer._bits
        word = reports.dtype.type
        response = reports & word((1 << count) - 1)
        hashes = [parities(reports, np.full_like(reports, value), count, bits) for value in (left, right)]
        seen: NDArray[Any] = 2 * (hashes[0] == response) + (hashes[1] == response)
        return seen

    def pmf(side: Side) -> dict[int, float]:
        p, q = randomizer.p, randomizer.q
        one, other = (2, 1) if side == "left" else (1, 2)
        return {3: p * q, one: p * (1 - q), other: (1 - p) * q, 0: (1 - p) * (1 - q)}

    return Example(name, randomizer, left, right, read, pmf)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("Hadamard response", HadamardResponse(1, 1024), 3, 700),
        _example("Hadamard response: one parity", HadamardResponse("0.5", 2), 0, 1),
        _example("Hadamard response: long words", HadamardResponse(3, 50_000), 7, 49_999),
    )
