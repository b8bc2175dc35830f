"""Partition selection: which of many unknown groups may be shown, and with what count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue, NotCertified
from sfumato.loss import ApproximateLoss
from sfumato.mechanisms._coins import Coin
from sfumato.mechanisms._lattice import fold
from sfumato.mechanisms._numbers import integers_of
from sfumato.mechanisms._survivors import MARGIN, Counts, counts_of, example_of, limits
from sfumato.mechanisms.base import Example, Mechanism
from sfumato.numeric.exact import Rational, as_integer, float_down, positive, probability
from sfumato.numeric.figures import PRECISION, ball, up, upper
from sfumato.numeric.frozen import freeze, shown

__all__ = ["PartitionSelection", "examples"]

_FLATTEST, _STEEPEST = Fraction(1, 2**49), 700  # for one group: noise fits in int64, e^ε in a float
_MOST = 1 << 16  # bits after which a comparison is given up


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PartitionSelection(Mechanism):
    """Shows the groups that enough units are in, each with a noisy count, and no others.

    For group keys that are themselves private. Each unit counts 1 in at most `groups` groups. A group of n
    units survives if n plus noise is above a public threshold, strictly; a group of none never does, so that
    keys which do not occur need not be listed. At its share of the price, no mechanism of any kind keeps a
    group with a larger probability, for any n.

    Attributes:
        epsilon: The price of the whole release, exact.
        delta: The probability with which a unit may give itself away, in all its groups together, exact.
        groups: In how many groups one unit counts, at most.
        exchange: Whether neighbours differ in *exchanging* one unit for another (so that up to 2·groups
            groups change) rather than in adding or removing one.

    Privacy:
        Claim: `release` (the survivors *and* their noisy counts) is (ε, δ)-DP, if each unit adds 1 to the
        counts of at most `groups` groups and nothing to others. Proof.

        *One group*, at ε' = ε/g and δ' = δ/g. Let π(0) = 0 and π(n + 1) = min(e^ε'·π(n) + δ',
        1 − e^−ε'·(1 − π(n) − δ'), 1): no (ε', δ')-DP way to keep or drop a group keeps one of n units with a
        larger probability, for any n (Desfontaines, Voss, Gipson, Mandayam 2022, "Differentially private
        partition selection"). Draw J with P(J = j) = p(j) = π(j + 1) − π(j); keep the group if J < n, which
        has probability π(n), and show n + c − J, which is above the threshold c just then. (i) p is
        log-concave: as long as the first bound is least, each p is e^ε' times the one before; from where the
        second is least it stays so and each p is e^−ε' times the one before; the ratio between the two parts
        lies between those factors, since either bound was least on its side; and the last p, cut off by the
        third bound, is no more than e^−ε' times its forerunner. (ii) So the ratio of the laws of n + 1 − J
        and n − J is monotone, and of all events the worst is {J < m} or its complement: what δ' must cover is
        π(m + 1) − e^ε'·π(m) in one direction and (1 − π(m)) − e^ε'·(1 − π(m + 1)) in the other, for some m,
        and the first two bounds of the recursion say that both are at most δ'. (iii) So n + c − J is
        (ε', δ')-DP, and to hide it unless it is above c is post-processing. Where δ' is such that
        ln((e^ε' − 1 + 2δ')/((e^ε' + 1)δ'))/ε' is a whole number k, c − J has the k-truncated symmetric
        geometric law of the same paper; for other δ' that law (with k rounded up) keeps less than π does.

        *All groups.* Keys that do not occur have the count 0, never survive and may be thought listed. One
        unit more or less moves at most g = groups counts, each by 1; the noise of groups is independent, so
        the g prices add up (basic composition of mechanisms fixed in advance; nothing is adaptive). An
        exchanged unit leaves at most `groups` groups and enters as many: g = 2·groups. The law is drawn
        exactly: where its parts end is decided in ball arithmetic, and coins and geometric draws are exact.
    """

    epsilon: Fraction
    delta: Fraction
    groups: int
    exchange: bool
    _law: _Law = field(compare=False)
    _threshold: int = field(compare=False)
    _loss: ApproximateLoss = field(compare=False)

    def __init__(
        self, epsilon: Rational, delta: Rational, *, groups: int = 1, exchange: bool = False
    ) -> None:
        """Fix the noise and the threshold from the price and the number of groups that one unit is in.

        Raises:
            InvalidParameter: for unusable numbers, or a price that leaves too little for each group.
        """
        price, risk = positive(epsilon, "epsilon"), probability(delta, "delta")
        touched = as_integer(groups, "groups") * (2 if exchange else 1)
        law = _Law.of(price / touched, positive(risk / touched, "delta for each group"))
        freeze(self, epsilon=price, delta=risk, groups=int(groups), exchange=bool(exchange), _law=law)
        freeze(self, _threshold=law.centre(), _loss=ApproximateLoss(price, risk))

    def __repr__(self) -> str:
        price = {"epsilon": self.epsilon, "delta": self.delta}
        return shown("PartitionSelection", **price, groups=self.groups, exchange=self.exchange or None)

    @property
    def loss(self) -> ApproximateLoss:
        """What one release costs, whatever the number of groups in the data."""
        return self._loss

    @property
    def per_group(self) -> tuple[Fraction, Fraction]:
        """The epsilon and the delta that each group is released at, exact."""
        return self._law.rate, self._law.risk

    @property
    def threshold(self) -> int:
        """A group survives if its noisy count is above this, strictly."""
        return self._threshold

    @property
    def certain(self) -> int:
        """The least count that always survives."""
        return self._law.length

    @property
    def variance(self) -> float:
        """The variance of a count's noise, survival aside, rounded up."""
        with ctx.workprec(self._law.precision):
            first, second = self._law.moments()
            return up(second - first * first)

    @property
    def bias(self) -> float:
        """The mean of a count's noise, survival aside: at most 1/2 either way, the nearest float.

        The optimal law is symmetric only where delta happens to fit a whole number. The bias is public: take
        it off a noisy count for an unbiased one. The counts of *survivors* are biased upwards beside it,
        which `interval` accounts for.
        """
        with ctx.workprec(self._law.precision):
            return float((self._threshold - self._law.rising + 1 - self._law.moments()[0]).mid())

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The least whole w with P(|noise| ≤ w for all of `size` groups) ≥ confidence, survival aside."""
        law, centre = self._law, self._threshold
        exact, count = probability(confidence, "confidence"), as_integer(size, "size")
        low, high = -1, max(centre, law.length - 1 - centre)
        with ctx.workprec(law.precision):
            wanted = (ball(exact).log() / count).exp()
            while high - low > 1:
                width = (low + high) // 2
                if law.kept(centre + width + 1) - law.kept(centre - width) >= wanted:
                    high = width
                else:
                    low = width
        return float(high)

    def keep_probability(self, count: int) -> float:
        """The probability that a group of so many units survives, rounded down."""
        units = as_integer(count, "count", least=0)
        with ctx.workprec(self._law.precision):
            return max(0.0, float_down(-upper(-self._law.kept(units))))

    def least(self, chance: Rational) -> int:
        """The least count that survives with at least this probability."""
        wanted, low, high = ball(probability(chance, "chance")), 0, self.certain
        with ctx.workprec(self._law.precision):
            while high - low > 1:
                count = (low + high) // 2
                low, high = (low, count) if self._law.kept(count) >= wanted else (count, high)
        return high

    def release(self, counts: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which groups survive, and their noisy counts (0 for the others), in the shape of `counts`.

        Args:
            counts: How many units are in each group, integers of at least 0; those beyond 2**61 are clamped.

        Raises:
            InvalidValue: for anything but integers, and for negative ones; outside the claim.
        """
        true = counts_of(counts)
        noisy = true + (self._threshold - self._law.draw(true.size)).reshape(true.shape)
        kept = noisy > self._threshold
        return kept, np.where(kept, noisy, 0)

    def interval(self, noisy: ArrayLike, confidence: Rational) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Limits of the true counts of survivors, from their noisy counts (post-processing, free).

        For each survivor the interval holds its true count with at least this probability *given that it
        survived*, whatever the count: the law of noise given survival is inverted, half of the failure on
        either side, so that a small group which was lucky is not mistaken for a large one. Rounded wide (by
        less than 1e-10 of a probability).

        Args:
            noisy: Noisy counts of groups that survived.
            confidence: The probability for each interval, on its own.

        Raises:
            InvalidValue: if one of them is not above the threshold.
        """
        alpha = float(1 - probability(confidence, "confidence")) / 2
        above = integers_of(noisy) - (self._threshold + 1)
        if above.size and above.min() < 0:
            raise InvalidValue("Only groups that survived have an interval: give their noisy counts alone.")
        # Beyond the length of the law nothing is conditioned on, and limits move along with the count.
        held, place = np.unique(np.minimum(above, self._law.length), return_inverse=True)
        beyond, place = np.maximum(above - self._law.length, 0), place.reshape(above.shape)
        low, high = self._law.limits(held, alpha)
        return low[place] + beyond, high[place] + beyond


@dataclass(frozen=True, slots=True)
class _Law:
    """P(J = j) = p(j), the steps of the optimal chance π to keep a group: π(n) = P(J < n).

    p(0) = δ and p(j) = δ·e^(jε) for j < `rising`; then `falling` more, each e^−ε times the one before, and a
    last one that makes the sum 1.
    """

    rate: Fraction
    risk: Fraction
    rising: int
    falling: int
    precision: int
    _rises: Coin | None = field(init=False, repr=False, compare=False)
    _ends: Coin | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Both chances are irrational, since e^ε is transcendental, where such a coin is made.
        freeze(self, _rises=Coin(self.rise) if self.rising > 1 else None)
        freeze(self, _ends=Coin(self._end) if self.falling else None)

    @classmethod
    def of(cls, rate: Fraction, risk: Fraction) -> _Law:
        """The law of one group's epsilon and delta.

        The first bound is least up to the last n with π(n) ≤ (1 − δ)/(e^ε + 1), that is with
        e^(nε) ≤ (e^ε − 1 + 2δ)/(δ(e^ε + 1)), and the third one after the first i with 1 − π(rising + i) ≤ δ,
        that is with e^(iε) ≥ (e^ε − 1 + 2δ − δe^(rising·ε))/(δe^ε). Equality would make e^ε the root of a
        polynomial with rational coefficients, which it is not (Lindemann), but for i = 0 and δ = 1/2.
        """
        if not _FLATTEST <= rate <= _STEEPEST:
            raise InvalidParameter(
                "epsilon must lie between about 2e-15 and 700 for each group that a unit is in."
            )

        def peak() -> arb:
            x, delta = ball(rate).exp(), ball(risk)
            return ((ball(rate).expm1() + 2 * delta) / (delta * (x + 1))).log() / ball(rate)

        def end() -> arb:
            x, delta = ball(rate).exp(), ball(risk)
            rest = ball(rate).expm1() + 2 * delta - delta * (ball(rate) * rising).exp()
            return (rest / (delta * x)).log() / ball(rate)

        # Differences of powers of e^−ε lose up to four times the length of 1/ε, and of δ twice.
        bits = 2 * PRECISION + 4 * _length(1 / rate) + 2 * _length(1 / risk)
        rising = _floor(peak, bits) + 1
        falling = 0 if risk >= Fraction(1, 2) else max(0, _floor(end, bits) + 1)
        return cls(rate, risk, rising, falling, bits)

    @property
    def length(self) -> int:
        """How many values J has: 0 … length − 1."""
        return self.rising + self.falling + 1

    def rise(self) -> arb:
        """P(J < rising), at the current precision (as all balls here)."""
        return ball(self.risk) * (ball(self.rate) * self.rising).expm1() / ball(self.rate).expm1()

    def dropped(self, count: int) -> arb:
        """1 − π(count) behind the peak, for rising ≤ count < length."""
        foot = ball(self.risk) / ball(self.rate).expm1()
        return (-ball(self.rate) * (count - self.rising)).exp() * (1 - self.rise() + foot) - foot

    def kept(self, count: int) -> arb:
        """π(count), for any whole number."""
        if count <= 0 or count >= self.length:
            return arb(0 if count <= 0 else 1)
        if count > self.rising:
            return 1 - self.dropped(count)
        return ball(self.risk) * (ball(self.rate) * count).expm1() / ball(self.rate).expm1()

    def moments(self) -> tuple[arb, arb]:
        """E[D] and E[D²] for D = J − (rising − 1), the place relative to the end of the rising part."""
        rise, last = self.rise(), self.dropped(self.length - 1)
        fall, end = 1 - rise - last, self.falling + 1
        back, back2 = _geometric_moments(self.rate, self.rising)
        if not self.falling:
            return last - rise * back, last + rise * back2
        on, on2 = _geometric_moments(self.rate, self.falling)
        first = -rise * back + fall * (1 + on) + last * end
        return first, rise * back2 + fall * (1 + 2 * on + on2) + last * end * end

    def centre(self) -> int:
        """The whole number nearest to E[J]."""
        with ctx.workprec(self.precision):
            return self.rising - 1 + math.floor(upper(self.moments()[0]) + Fraction(1, 2))

    def draw(self, size: int) -> NDArray[np.int64]:
        """Independent values of J, exactly: first which part, then the place in it."""
        rises = random.bernoulli(self.risk, size) if self._rises is None else self._rises.toss(size)
        ends = np.full(size, True) if self._ends is None else self._ends.toss(size)
        falls = ~rises & ~ends
        places = np.full(size, self.length - 1)
        places[rises] = self.rising - 1 - fold(self.rate, self.rising, int(rises.sum()))
        places[falls] = self.rising + fold(self.rate, max(1, self.falling), int(falls.sum()))
        return places

    def _end(self) -> arb:
        """P(J = length − 1 | J ≥ rising)."""
        return self.dropped(self.length - 1) / (1 - self.rise())

    def limits(self, above: NDArray[np.int64], alpha: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The least and the greatest n for which neither tail at n − J = above + 1, given J < n, is ≤ alpha.

        The upper tail P(n − J ≥ above + 1 | J < n) = π(n − above)/π(n) grows with n and the lower one,
        1 − π(n − above − 1)/π(n), falls, because π is log-concave (as sums of log-concave p are): so each
        limit is where a tail becomes small, found by bisection. An n is left out only where its tail is
        surely small, so that what floats do not tell makes the interval wider. It is never empty: given
        survival, n + 1 − J exceeds n − J by at most 1, in law.
        """
        # Exponents up to 691 = ln 1e300 are off by 3e-13 at most, and where a share is computed as one minus
        # the rest it is above 0.13: a quotient is off by less than MARGIN.
        share = self._shares()
        return limits(
            (
                np.zeros_like(above),
                above + self.length,
                lambda n: share(n - above) * (1 + MARGIN) <= alpha * share(n),
            ),
            (
                above + 1,
                above + self.length + 1,
                lambda n: 1 - share(n - above - 1) / share(n) + MARGIN <= alpha,
            ),
        )

    def _shares(self) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
        """π in floats, vectorised; each part is a sum of positive terms, counted from its own end."""
        with ctx.workprec(self.precision):
            last = self.dropped(self.length - 1)
            foot = self.kept(self.length - 1) - self.kept(self.length - 2)
            rate, risk, end, step = float(self.rate), float(self.risk), float(last.mid()), float(foot.mid())

        def ramp(first: float, terms: NDArray[np.int64]) -> NDArray[np.float64]:
            """first·(1 + e^ε + … ), so many terms."""
            total = first * np.exp(rate * (terms - 1)) * (np.expm1(-rate * terms) / math.expm1(-rate))
            return np.asarray(total)

        def share(n: NDArray[np.int64]) -> NDArray[np.float64]:
            rising = ramp(risk, np.clip(n, 0, self.rising))
            falling = 1 - end - ramp(step, np.clip(self.length - 1 - n, 0, self.falling))
            return np.where(n <= self.rising, rising, np.where(n < self.length, falling, 1.0))

        return share


def _length(exact: Fraction) -> int:
    """The bits before the point."""
    return math.ceil(exact).bit_length()


def _floor(value: Callable[[], arb], precision: int) -> int:
    """⌊value⌋ of a real number that is not whole, at whatever precision it takes."""
    while precision < _MOST:
        with ctx.workprec(precision):
            whole = value().floor().unique_fmpz()
        if whole is not None:
            return int(whole)
        precision *= 2
    raise NotCertified("The end of a selection's noise could not be told.")


def _geometric_moments(rate: Fraction, length: int) -> tuple[arb, arb]:
    """E[M] and E[M²] for P(M = i) ∝ e^(−rate·i) on 0, …, length − 1."""
    m, q = length, (-ball(rate)).exp()
    end = (-ball(rate) * (m - 1)).exp()
    gap = -(-ball(rate)).expm1()
    total = -(-ball(rate) * m).expm1() / gap
    first = q * (1 - m * end + (m - 1) * q * end) / gap**2
    square = q * (1 + q - m * m * end + (2 * m * m - 2 * m - 1) * q * end - (m - 1) ** 2 * q * q * end)
    return first / total, square / gap**3 / total


def _example(name: str, mechanism: PartitionSelection, left: Counts, right: Counts) -> Example:
    def law(n: int) -> dict[int, float]:
        shares = [mechanism.keep_probability(j) for j in range(n + 1)]
        steps = {mechanism.threshold + n - j: shares[j + 1] - shares[j] for j in range(n)}
        return {0: 1 - shares[n]} | {count: p for count, p in steps.items() if p > 0}

    return example_of(name, mechanism, mechanism.release, left, right, law)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("partition selection", PartitionSelection(1, "0.01"), 4, 5),
        _example("partition selection: few units", PartitionSelection("0.5", "0.05"), 2, 3),
        _example("partition selection: two groups", PartitionSelection(2, "0.02", groups=2), (4, 4), (5, 5)),
        _example(
            "partition selection: exchange", PartitionSelection(2, "0.02", exchange=True), (5, 4), (4, 5)
        ),
    )
