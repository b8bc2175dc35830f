"""The noise of a stream: calibrated once for all steps, on a public grid, with errors known beforehand."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.accounting import gaussian_sigma
from sfumato.continual.base import Floats
from sfumato.continual.course import Course, course_of_state
from sfumato.continual.factorisation import SCALE_BITS, Factorisation, last
from sfumato.errors import InvalidParameter
from sfumato.loss import GaussianLoss
from sfumato.mechanisms.gaussian import drawable_price, one_calibration
from sfumato.numeric.balls import sqrt_up
from sfumato.numeric.exact import Rational, as_integer, floor_log2, positive, probability
from sfumato.numeric.figures import gaussian_width
from sfumato.numeric.frozen import freeze, shown

__all__ = ["Continual"]

_WORD = 57  # bits for noise of one sigma and its products with coefficients, which leaves room for 16 sigmas
# A grid step is at most 2**-24 of sigma and 2**-10 of the sensitivity, but not below 2**-20 of that: 64 bits
# have to hold the values.
_FINER, _FINE, _FINEST = 24, 10, 20
_WIDE = 1 + 1e-6  # transforms in floats, and what is off in the recursion, are far below
_MARGIN = Fraction(1, 20)
_MOST_GROUPS = 10**8


@dataclass(frozen=True, init=False, repr=False)
class Continual:
    """Publishes integers step after step, by group, with noise that partly cancels in sums over many steps.

    The whole price is paid once, before the first step, whether or not the stream reaches its horizon. What
    is released are the numbers of each step; running totals, sums over windows and differences follow from
    them for free. `start` makes a new stream and `resume` goes on with one.

    Attributes:
        plan: How the noise of the steps hangs together.
        sensitivity: The most that one unit can change the numbers of one step, in L2 over all groups; exact.
        groups: How many numbers a step has; 0: they come later, as many as there are (`Course.widen`).
        moved: In how many of them one unit can change a number, over all steps: rounding is paid for these.
        exponent: Releases are whole multiples of 2**exponent. Values are held within ±2**61 of these, which
            is at least 2**40 times the sensitivity.

    Privacy:
        Claim: all releases of one course together have the curve of Gaussian noise with μ = √(2ρ), for
            streams that differ in at most `plan.touches` steps (`plan.apart` from one another), in each by at
            most `sensitivity` in L2 over the groups, and in at most `moved` groups over all steps; also where
            later values, and which groups there are, depend on earlier releases.
            Proof: docs/proofs/continual.md. Conditions: a secret is used for one stream and kept, as states
            are, from everybody who sees releases; and a step that was shown is never released again with
            other values (record what is released before it is shown, and show the record after a crash): its
            noise is the same, so that the difference would be seen.
    """

    plan: Factorisation
    sensitivity: Fraction
    groups: int
    moved: int
    exponent: int
    variance: int = field(repr=False)
    fine: int = field(repr=False)
    _told: str = field(compare=False)
    _loss: GaussianLoss = field(compare=False)

    def __init__(
        self,
        plan: Factorisation,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        *,
        sensitivity: Rational,
        groups: int = 1,
        moved: int | None = None,
        rho: Rational | None = None,
        sigma: Rational | None = None,
    ) -> None:
        """Fix the noise from the plan, the sensitivity and exactly one of epsilon with delta, rho, or sigma.

        Args:
            plan: From `choose`, or of one's own.
            epsilon: With delta, the price of the whole stream.
            delta: With epsilon.
            sensitivity: The most that one unit changes one step, in L2 over the groups.
            groups: How many numbers a step has; 0: groups come later.
            moved: In how many groups one unit can change a number, over all steps; needed where groups come
                later, and all of them by default.
            rho: The price in zero-concentrated terms.
            sigma: The standard deviation of the noise of the first step, in units of the values; what is
                drawn is a hair larger.

        Raises:
            InvalidParameter: for unusable numbers or none or several of the three ways.
        """
        one_calibration(epsilon, delta, rho, sigma)
        bound = positive(sensitivity, "sensitivity")
        count = as_integer(groups, "groups", least=1 if moved is None else 0)
        most = count if moved is None else as_integer(moved, "moved")
        if count > _MOST_GROUPS:
            raise InvalidParameter("groups must be at most 1e8: publish them as several streams.")
        point = None
        if epsilon is not None and delta is not None:
            point = positive(epsilon, "epsilon"), probability(delta, "delta")
            price = 1 / (2 * gaussian_sigma(drawable_price(point[0]), point[1]) ** 2)
        elif rho is not None:
            price = positive(rho, "rho")
        elif sigma is not None:
            price = (bound * plan.norm / positive(sigma, "sigma")) ** 2 / 2
        told = shown(
            "Continual", epsilon=epsilon, delta=delta, rho=rho, sigma=sigma, sensitivity=bound, groups=count
        )
        freeze(
            self, plan=plan, sensitivity=bound, groups=count, moved=most, _told=f"{told[:-1]}, plan={plan!r})"
        )
        self._place(1 / (2 * price))
        freeze(self, _loss=GaussianLoss(price, point))

    def _place(self, relative: Fraction) -> None:
        """The grid of releases, the finer one of the noise, and the variance on it, given that at norm 1."""
        plan, bound = self.plan, self.sensitivity
        size = floor_log2(relative * (plan.norm * bound) ** 2) // 2  # of sigma
        finest = size - (_WORD - plan.factor.bits)
        unit = floor_log2(bound)
        exponent = max(min(size - _FINER, unit - _FINE), unit - _FINEST, finest + SCALE_BITS)
        fine = exponent - finest
        change = bound / Fraction(2) ** exponent
        if exponent > 0:  # values are rounded to the grid: each group that changes may change by a step more
            change += Fraction(sqrt_up(Fraction(self.moved)))
        exact = plan.norm * change * 2**fine
        margin = 2 * plan.factor.slack * Fraction(sqrt_up(Fraction(plan.horizon * self.moved)))
        if margin > exact * _MARGIN or change > 2 * bound / Fraction(2) ** exponent:
            raise InvalidParameter(
                "The noise is too large beside the sensitivity, or the stream too long, for rounding to be "
                "paid for: use a larger epsilon or rho, fewer groups or a shorter horizon."
            )
        freeze(self, exponent=exponent, fine=fine, variance=math.ceil(relative * (exact + margin) ** 2))

    def __repr__(self) -> str:
        return self._told

    @property
    def loss(self) -> GaussianLoss:
        """What the whole stream costs, due before its first step."""
        return self._loss

    @property
    def rho(self) -> Fraction:
        """The same in zero-concentrated terms, exact."""
        return self._loss.rho

    @property
    def horizon(self) -> int:
        """How many steps there are at most."""
        return self.plan.horizon

    @property
    def grid(self) -> float:
        """The power of two that every release is a multiple of."""
        return math.ldexp(1.0, self.exponent)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise of the first step, to within a float's rounding."""
        return math.ldexp(math.sqrt(self.variance), self.exponent - self.fine)

    @property
    def memory(self) -> int:
        """Bytes of a course's state: some words a group, whatever the horizon."""
        return 8 * self.groups * self.plan.factor.words

    def deviation(self, weights: Sequence[float] | Floats, *, since: int = 0) -> float:
        """The standard deviation of a sum of the first releases with these weights; rounded wide.

        Args:
            weights: One a step, from the first.
            since: The step with which a group came that was not there before; weights before count nothing.
        """
        exact = self.plan.variance(weights, since=since) * self.sigma**2
        rounding = float(np.sum(np.asarray(weights, np.float64) ** 2)) * self.grid**2 / 4
        return math.sqrt((exact + rounding) * _WIDE)

    def deviations(self, window: int | None = None, *, since: int = 0) -> Floats:
        """The standard deviation of the total of the last `window` steps, after each step; None: all so far.

        Args:
            window: How many steps.
            since: The step with which a group came; before it there is nothing, with a deviation of 0.

        Raises:
            InvalidParameter: for too many steps to list (`Factorisation.variances`).
        """
        steps = np.maximum(np.arange(1, self.horizon + 1) - since, 0)
        rounded = np.minimum(steps, self.horizon if window is None else window) * self.grid**2 / 4
        exact = self.plan.variances(window, since=since) * self.sigma**2
        return np.asarray(np.sqrt((exact + rounded) * _WIDE))

    def deviation_running(self, time: int) -> float:
        """The standard deviation of the total of the first `time` steps."""
        return self.deviation(np.ones(self._time(time)))

    def deviation_window(self, time: int, window: int) -> float:
        """The standard deviation of the total of the last `window` of the first `time` steps."""
        return self.deviation(last(self._time(time), as_integer(window, "window")))

    def deviation_difference(self, earlier: int, later: int, *, window: int | None = None) -> float:
        """The standard deviation of the difference between the totals after `earlier` and `later` steps.

        Args:
            earlier: Steps of the first total.
            later: Steps of the second total, at least as many.
            window: Over how many steps each of them goes; None: over all so far.
        """
        first, second = self._time(earlier), self._time(later)
        if first > second:
            raise InvalidParameter(
                "A difference is between an earlier step and a later one: give them in that order."
            )
        length = self.horizon if window is None else as_integer(window, "window")
        weights = last(second, length)
        weights[:first] -= last(first, length)
        return self.deviation(weights)

    def width(self, deviation: float, confidence: Rational, *, size: int = 1) -> float:
        """Half the width of intervals for `size` sums of this deviation that all hold with this probability.

        For several, correlated as they are, the product of the single probabilities is a bound (Šidák 1967).
        """
        return gaussian_width(Fraction(deviation) ** 2, confidence, size, slack=Fraction(0))

    def _time(self, time: int) -> int:
        steps = as_integer(time, "time")
        if steps > self.horizon:
            raise InvalidParameter("time must be at most the horizon.")
        return steps

    def floats(self, units: NDArray[np.int64]) -> Floats:
        """Releases, or sums of them, as numbers: multiplied by the grid."""
        return np.asarray(np.asarray(units).astype(np.float64) * self.grid)

    @property
    def fingerprint(self) -> str:
        """A digest of all that decides the noise, but the secret."""
        told = {
            "plan": self.plan.record(),
            "variance": str(self.variance),
            "fine": self.fine,
            "exponent": self.exponent,
            "groups": self.groups,
        }
        if self.moved != self.groups:
            told["moved"] = self.moved
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    @staticmethod
    def secret() -> bytes:
        """A fresh secret for one stream: 32 unguessable bytes."""
        return random.salt(32)

    def start(self, secret: bytes, *, measure: int = 0) -> Course:
        """A stream from its first step on.

        Args:
            secret: Of this stream alone (`secret`).
            measure: Which of several streams with one secret it is, such as a count and a sum of the same
                rows, each with a price of its own.
        """
        return Course(self, secret, measure=measure)

    def resume(
        self, secret: bytes, state: bytes | None = None, *, time: int | None = None, measure: int = 0
    ) -> Course:
        """A stream that goes on where it was: from a saved state, or from the secret after `time` steps.

        Without a state all noise so far is derived again, which takes about as long as it took before.

        Raises:
            InvalidParameter: for a state that was not saved by this stream, or a time beyond its horizon.
        """
        if (state is None) == (time is None):
            raise InvalidParameter("Give a saved state or a time, and not both.")
        if state is not None:
            return course_of_state(self, secret, state, measure=measure)
        course = Course(self, secret, measure=measure)
        steps = as_integer(time or 0, "time", least=0)
        if steps > self.horizon:
            raise InvalidParameter("time must be at most the horizon.")
        for _ in range(steps):
            course.skip()
        return course
