"""The binary-tree counter: a running count after every step, with noise that grows logarithmically."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable
from fractions import Fraction
from itertools import islice
from typing import Any, NoReturn

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue, Spent
from sfumato.loss import ConcentratedLoss, DiscreteLaplaceLoss
from sfumato.mechanisms._grid import LIMIT, bounded_add, check_reach
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.mechanisms.discrete_gaussian import discrete_gaussian_variance_up, sigma_of
from sfumato.mechanisms.geometric import discrete_laplace_variance
from sfumato.numeric.exact import Rational, as_integer, positive, probability
from sfumato.numeric.figures import PRECISION, ball, ceiling
from sfumato.numeric.frozen import freeze, shown

__all__ = ["TreeCounter", "examples"]


class _Progress:
    """The state of a counter: the sums of the blocks that make up the present, and the same with noise."""

    __slots__ = ("lock", "noisy", "process", "sums", "time")

    def __init__(self, levels: int) -> None:
        self.time = 0
        self.sums = [0] * levels
        self.noisy = [0] * levels
        self.lock = threading.Lock()
        self.process = os.getpid()

    def check(self) -> None:
        """Refuse to go on in a forked copy: two futures of one counter would be paid for once."""
        if os.getpid() != self.process:
            raise Spent(
                "The counter belongs to the process that made it: start another one, at its own price."
            )


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class TreeCounter(Mechanism):
    """Counts a stream of integers: `add` takes the next one and gives the private total so far.

    The whole price is paid at construction, whether or not the stream reaches its horizon. Every dyadic
    block of steps gets one noisy sum when it is complete, and a total adds up at most one block of each
    length. A counter is used once, by one stream: it cannot be copied or pickled, and refuses to count
    beyond its horizon.

    Args:
        horizon: The most steps that will be counted.
        epsilon: The price in pure terms (discrete Laplace noise); or
        rho: the price in zero-concentrated terms (discrete Gaussian noise): less noise for long streams.
        sensitivity: How much one person can move the whole stream, summed over all steps; a whole number.
            Whoever visits daily for a year, and is counted each time, moves it by 365.

    Privacy:
        Claim: all answers together are ε-DP, or ρ-zCDP, for streams whose differences over all steps add up
        to at most `sensitivity` in absolute value. Proof: with L = ⌊log₂ horizon⌋ + 1 block lengths, a step
        lies in at most one block of each length, so the block sums differ by at most L·Δ in L1; and at each
        length by at most Δ in L1, hence in L2, so by at most √L·Δ in L2. Each block sum is released once,
        with discrete Laplace noise of scale LΔ/ε (curve as for `Geometric`) or discrete Gaussian noise of
        variance LΔ²/(2ρ); the answers are sums of these, which is post-processing. Later values may depend
        on earlier answers: the bounds on the sums hold along every path, a chain of log-concave shifts may
        choose each shift by what came before (Dong, Roth, Su 2022, group privacy, applied to what is left
        after the first), and so may zCDP composition with a bound on the sum (Whitehouse, Ramdas, Rogers, Wu
        2023). Source: Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011.
    """

    horizon: int
    sensitivity: int
    epsilon: Fraction | None
    rho: Fraction | None
    _parameter: Fraction
    _loss: DiscreteLaplaceLoss | ConcentratedLoss
    _progress: _Progress

    def __init__(
        self,
        horizon: int,
        epsilon: Rational | None = None,
        *,
        rho: Rational | None = None,
        sensitivity: int,
    ) -> None:
        """Fix the noise from the horizon, the price and the sensitivity.

        Raises:
            InvalidParameter: for unusable numbers, or unless exactly one of epsilon and rho is given.
        """
        if (epsilon is None) == (rho is None):
            raise InvalidParameter("Give epsilon or rho, and not both.")
        steps, change = as_integer(horizon, "horizon"), as_integer(sensitivity, "sensitivity")
        levels = steps.bit_length()
        freeze(self, horizon=steps, sensitivity=change, epsilon=None, rho=None, _progress=_Progress(levels))
        if epsilon is not None:
            price, bound = positive(epsilon, "epsilon"), change * levels
            freeze(
                self,
                epsilon=price,
                _parameter=check_reach(bound / price),
                _loss=DiscreteLaplaceLoss(price / bound, bound),
            )
        elif rho is not None:
            price = positive(rho, "rho")
            check_reach(sigma_of(levels * change**2 / (2 * price)))
            freeze(
                self, rho=price, _parameter=levels * change**2 / (2 * price), _loss=ConcentratedLoss(price)
            )

    def __repr__(self) -> str:
        return shown(
            "TreeCounter",
            horizon=self.horizon,
            epsilon=self.epsilon,
            rho=self.rho,
            sensitivity=self.sensitivity,
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A counter cannot be pickled or copied: two streams would share noise that was paid for once."
        )

    def fresh(self) -> TreeCounter:
        """Another counter with the same parameters and noise of its own, to be paid for like the first."""
        other = object.__new__(TreeCounter)
        freeze(other, horizon=self.horizon, sensitivity=self.sensitivity, epsilon=self.epsilon, rho=self.rho)
        freeze(other, _parameter=self._parameter, _loss=self._loss, _progress=_Progress(self.levels))
        return other

    @property
    def levels(self) -> int:
        """How many lengths of blocks there are: ⌊log₂ horizon⌋ + 1."""
        return self.horizon.bit_length()

    @property
    def time(self) -> int:
        """How many steps were counted."""
        return self._progress.time

    @property
    def loss(self) -> DiscreteLaplaceLoss | ConcentratedLoss:
        """What the counter costs as a whole, due before the first step."""
        return self._loss

    @property
    def scale(self) -> float:
        """The scale of the noise of one block: the discrete Laplace scale, or the discrete Gaussian sigma."""
        return float(self._parameter) if self.epsilon is not None else math.sqrt(self._parameter)

    @property
    def blocks(self) -> int:
        """The most blocks that one answer adds up: the most ones in a binary number up to the horizon."""
        t = self.horizon
        return max(
            [t.bit_count()] + [(t >> (i + 1)).bit_count() + i for i in range(t.bit_length()) if t >> i & 1]
        )

    @property
    def variance(self) -> float:
        """The variance of the noisiest answer within the horizon, rounded up."""
        one = (
            discrete_laplace_variance(self._parameter)
            if self.epsilon is not None
            else discrete_gaussian_variance_up(self._parameter)
        )
        return math.nextafter(self.blocks * one, math.inf)

    @property
    def bias(self) -> float:
        """Zero: the noise is symmetric."""
        return 0.0

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """A half-width that holds for any `size` of the answers at once with probability `confidence`.

        A bound, not the quantile: Chernoff's for the noisiest answer, shared between `size` of them, with the
        moments of the discrete Laplace law, or sub-Gaussian (Canonne, Kamath, Steinke 2020) for the other.
        """
        answers = as_integer(size, "size")
        with ctx.workprec(PRECISION):
            exponent = (2 * answers / (1 - ball(probability(confidence, "confidence")))).log()
            if self.epsilon is not None:
                return float(_laplace_sum_width(self._parameter, self.blocks, exponent))
            # P(|sum| ≥ x) ≤ 2·exp(−x²/(2mσ²)), and the sum is a whole number.
            return float(ceiling((2 * self.blocks * ball(self._parameter) * exponent).sqrt()))

    def add(self, value: int | np.integer[Any]) -> int:
        """Count the next integer and give the private total so far.

        Raises:
            InvalidValue: for anything but an integer; nothing is counted then; outside the claim.
            Spent: beyond the horizon, or in a forked process.
        """
        step = _step_of(value)
        self._progress.check()
        with self._progress.lock:
            if self._progress.time >= self.horizon:
                raise Spent("The counter has reached its horizon: start another one, at its own price.")
            return self._count(step)

    def release(self, values: Iterable[int]) -> NDArray[np.int64]:
        """The private totals after each of the next integers: `add` for all of them, or for none.

        Raises:
            InvalidValue: for anything but integers; nothing is counted then; outside the claim.
            Spent: if the horizon comes before the last of them; nothing is counted then either.
        """
        single = isinstance(values, np.ndarray) and not values.ndim
        if single or not isinstance(values, Iterable) or isinstance(values, str | bytes):
            raise InvalidValue("A stream must be an iterable of integers.")
        # One more than can ever be counted tells that there are too many, even of an endless stream.
        steps = [_step_of(value) for value in islice(values, self.horizon + 1)]
        self._progress.check()
        with self._progress.lock:
            if len(steps) > self.horizon - self._progress.time:
                raise Spent(
                    "The stream goes beyond the counter's horizon, and nothing of it was counted: give fewer "
                    "values, or start another counter at its own price."
                )
            return np.array([self._count(step) for step in steps], np.int64)

    def _count(self, step: int) -> int:
        state = self._progress
        state.time += 1
        # The block that this step completes is as long as the lowest one in the binary form of the time.
        level = (state.time & -state.time).bit_length() - 1
        total = sum(state.sums[:level]) + step
        state.sums[: level + 1] = [0] * level + [total]
        state.noisy[: level + 1] = [0] * level + [bounded_add(total, self._noise())]
        return max(-LIMIT, min(LIMIT, sum(state.noisy)))

    def _noise(self) -> int:
        if self.epsilon is not None:
            return random.discrete_laplace(self._parameter)
        return random.discrete_gaussian(self._parameter)


def _step_of(value: object) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InvalidValue("Values must be integers, one a step: release takes a list of them.")
    return int(value)


def _laplace_sum_width(scale: Fraction, count: int, exponent: arb) -> int:
    """A whole w with P(|X_1 + … + X_count| > w) ≤ 2·exp(−exponent) for discrete Laplace X_i.

    By Chernoff's bound P(sum ≥ x) ≤ exp(count·κ(λ) − λx) for every λ in (0, 1/scale), with
    κ(λ) = 2·ln(1 − q) − ln(1 − q·e^λ) − ln(1 − q·e^−λ); any λ is sound, and a search finds a good one.
    """
    q = (-1 / ball(scale)).exp()

    def reach(part: Fraction) -> arb:
        rise = ball(part / scale)
        log_moment = 2 * (1 - q).log() - (1 - q * rise.exp()).log() - (1 - q * (-rise).exp()).log()
        return (count * log_moment + exponent) / rise

    low, high = Fraction(0), Fraction(1)
    for _ in range(40):  # the bound is quasi-convex in λ
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if reach(left) < reach(right) else (left, high)
    return max(0, ceiling(reach((low + high) / 2)))


def _example(
    name: str, horizon: int, epsilon: Rational | None = None, rho: Rational | None = None
) -> Example:
    left, right = (0,) * horizon, (1,) + (0,) * (horizon - 1)
    counter = TreeCounter(horizon, epsilon, rho=rho, sensitivity=1)

    def draw(side: Side, count: int) -> NDArray[np.int64]:
        values = left if side == "left" else right
        return np.array([counter.fresh().release(values) for _ in range(count)])

    return Example(name, counter, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("tree counter: pure", 2, epsilon=2),
        _example("tree counter: concentrated", 2, rho="0.5"),
    )
