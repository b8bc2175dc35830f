"""Calibration: the least noise for a target, found from the side that holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

from sfumato.accounting._gaussian import gaussian_classic, gaussian_sigma
from sfumato.errors import InvalidParameter, NotCertified
from sfumato.loss import DiscreteGaussianLoss, GaussianLoss, LaplaceLoss, PrivacyLoss
from sfumato.numeric.balls import ball, exact_upper
from sfumato.numeric.exact import (
    Rational,
    as_fraction,
    as_integer,
    delta_of,
    float_down,
    float_up,
    nonnegative,
    positive,
    probability,
)

__all__ = [
    "calibrate",
    "discrete_gaussian_variance",
    "gaussian_classic",
    "gaussian_sigma",
    "laplace_scale",
    "noise_multiplier",
]

Make = Callable[[Fraction], PrivacyLoss]
_MOST_STEPS = 200


def calibrate(
    make: Make,
    epsilon: Rational,
    delta: Rational,
    *,
    low: Rational,
    high: Rational,
    tolerance: float = 1e-6,
) -> float:
    """The least parameter between `low` and `high` whose loss meets (ε, δ), rounded up.

    Args:
        make: gives the loss at a parameter (an exact `Fraction`); a larger parameter must mean less loss,
            like a noise scale.
        epsilon: the ε to meet.
        delta: the δ to meet.
        low: a positive parameter to start from; if it already meets the target, it is the answer.
        high: a parameter that meets the target.
        tolerance: how far above the least parameter the answer may lie, relatively.

    Raises:
        InvalidParameter: if even `high` does not meet the target, or `make` does not give a loss.

    Privacy:
        Claim: the loss at the returned number (taken as the decimal it shows) meets (ε, δ): that was checked
        at the number itself with the loss's own curve, rounded up. Monotony is needed only for the answer to
        be the *least*.
    """
    excess = _excess(make, epsilon, delta)
    bottom, top = float_up(positive(low, "low")), float_down(positive(high, "high"))
    if not bottom < top:
        raise InvalidParameter("low must be below high.")
    if excess(bottom) <= 0:
        return bottom
    if excess(top) > 0:
        raise InvalidParameter(
            "Even the largest parameter does not meet the target: raise `high`, epsilon or delta."
        )
    return _search(excess, bottom, top, tolerance)


def noise_multiplier(epsilon: Rational, delta: Rational, rate: Rational, steps: int) -> float:
    """The least σ (in sensitivities) for Gaussian releases on fresh Poisson samples, rounded up.

    Args:
        epsilon: the ε to meet after all steps.
        delta: the δ to meet, in (0, 1).
        rate: the probability that a unit is in a step's sample: the expected batch size over the number of
            units. Every unit is drawn independently in every step (Poisson sampling); batches of a shuffled
            table are not such samples.
        steps: how many releases, each on a fresh sample.

    Returns:
        σ over sensitivity: in training, the noise on a sum of clipped gradients has the standard deviation of
        this multiplier times the clipping norm.

    Privacy:
        Claim: `(GaussianLoss(1/(2σ²)).sampled(rate) * steps)` meets (ε, δ) under add/remove: checked at the
        returned number with the composed curve, both directions, error included (see `calibrate`,
        `loss.SampledLoss`).
    """
    goal, failure = positive(epsilon, "epsilon"), probability(delta, "delta")
    share, count = positive(rate, "rate"), as_integer(steps, "steps")
    if share < Fraction(1, 10**12):
        raise InvalidParameter("rate must be at least 1e-12: below it a step sees nobody.")
    single = gaussian_sigma(goal, failure)
    if share == 1:
        # √steps · σ, rounded up.
        multiplier = exact_upper(ball(single) * ball(Fraction(count)).sqrt())
        if multiplier is None:
            raise NotCertified("No finite noise was found for this target.")
        return float_up(multiplier)

    def make(sigma: Fraction) -> PrivacyLoss:
        return GaussianLoss(1 / (2 * sigma * sigma)).sampled(share) * count

    excess = _excess(make, goal, failure)
    # The central limit says where to look (Bu, Dong, Long, Su 2020); it proves nothing and decides nothing.
    ratio = 1 / (float(single) * float(share) * math.sqrt(count))
    guess = 1 / math.sqrt(math.log1p(ratio * ratio))
    return _search(excess, *_around(excess, guess), 1e-6)


def laplace_scale(
    epsilon: Rational, delta: Rational = 0, *, k: int = 1, sensitivity: Rational = 1, rate: Rational = 1
) -> Fraction:
    """The least Laplace scale for k queries at a total (ε, δ), rounded up.

    With a rate, each query runs on a fresh Poisson sample. The scale is an exact `Fraction`, so that the one
    drawn is the one that was proven; `float(scale)` shows it.

    Privacy:
        Claim: k releases of L1 sensitivity `sensitivity` at this scale meet (ε, δ). At δ = 0 it is exact:
        each inner ε is log(1 + (e^(ε/k) − 1)/rate). Otherwise checked with the composed curve (see
        `calibrate`).
    """
    goal, failure, count = positive(epsilon, "epsilon"), delta_of(delta), as_integer(k, "k")
    width, share = positive(sensitivity, "sensitivity"), positive(rate, "rate")
    if share > 1:
        raise InvalidParameter("The sampling rate must be at most 1.")
    if share == 1:
        plain = count / goal
    else:
        exact = exact_upper(1 / (ball(goal / count).expm1() / ball(share)).log1p())
        if exact is None:
            raise NotCertified("No finite scale was found for this target.")
        plain = exact
    if failure == 0:
        return plain * width

    def make(scale: Fraction) -> PrivacyLoss:
        return LaplaceLoss(1 / scale).sampled(share) * count

    excess = _excess(make, goal, failure)
    # Where k losses look like one Gaussian is a good place to start; it decides nothing.
    guess = float(gaussian_sigma(goal, failure)) * math.sqrt(count) * float(share)
    found_scale = as_fraction(_search(excess, *_around(excess, guess, float_up(plain)), 1e-6), "scale")
    return min(found_scale, plain) * width


def discrete_gaussian_variance(epsilon: Rational, delta: Rational, sensitivity: int = 1) -> Fraction:
    """A variance parameter of scalar discrete Gaussian noise that meets (ε, δ), rounded up.

    Privacy:
        Claim: noise of this parameter on an integer function of this sensitivity is (ε, δ)-DP, by the exact
        lattice curve at the returned number. Source: Canonne, Kamath, Steinke 2020. The continuous
        calibration is not used: it may be too small.
    """
    goal, failure = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
    width = as_integer(sensitivity, "sensitivity")

    def make(variance: Fraction) -> PrivacyLoss:
        return DiscreteGaussianLoss(variance, Fraction(width))

    excess = _excess(make, goal, failure)
    start = float(gaussian_sigma(goal, failure, width)) ** 2
    return as_fraction(_search(excess, *_around(excess, start), 1e-9), "variance")


def _excess(make: Make, epsilon: Rational, delta: Rational) -> Callable[[float], float]:
    """How far a parameter misses the target: at most 0 exactly where the rounded-up curve meets it."""
    goal, failure = nonnegative(epsilon, "epsilon"), delta_of(delta)
    bound = float_down(failure) if failure else float_down(goal)

    @cache
    def excess(parameter: float) -> float:
        loss = make(as_fraction(parameter, "parameter"))
        if not isinstance(loss, PrivacyLoss):
            raise InvalidParameter(
                f"make must give a loss, not {type(loss).__name__}; return mechanism.loss."
            )
        cost = loss.delta(goal) if failure else loss.epsilon(0)
        if cost <= bound:
            return min(0.0, math.log(max(cost, 1e-320)) - math.log(max(bound, 1e-320)))
        return max(5e-324, math.log(cost) - math.log(max(bound, 1e-320))) if cost < math.inf else 1e6

    return excess


def _around(excess: Callable[[float], float], guess: float, most: float = math.inf) -> tuple[float, float]:
    """A bracket [fails, holds] around a guess; `most` is a parameter that is known to hold."""
    low = high = min(guess, most)
    step = 1.02
    if high < most and (before := excess(high)) > 0:
        while True:
            high = min(low * step, most)
            if high == most or (value := excess(high)) <= 0:
                return low, high
            # A little beyond where the straight line through the last two points meets the target.
            steep = (before - value) / math.log(step)
            line = math.exp(min(1.1 * value / steep, 10.0)) if steep > 0 else math.inf
            low, before, step = high, value, min(max(line, 1.02), max(1.5, step * step))
    while excess(low := high / step) <= 0:
        high, step = low, step * step
    return low, high


def _search(excess: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """The end that holds of a bracket [fails, holds], once it is narrower than `tolerance`.

    Each step goes to where a curve through the closest points so far, in (log x, log δ), meets the target,
    and a little past it, so that the answer closes the bracket from the other side; a halving step where that
    leaves the bracket or does not pay.
    """
    left, right = math.log(low), math.log(high)
    seen = [(left, excess(low)), (right, excess(high))]
    width = right - left
    for step in range(_MOST_STEPS):
        if right - left <= tolerance:
            break
        root = _root(sorted(seen, key=lambda point: abs(point[1]))[:3])
        aim = 0.4 * tolerance if right - root > root - left else -0.4 * tolerance
        middle = root + aim
        stuck = step % 4 == 3 and right - left > width / 8
        if step % 4 == 3:
            width = right - left
        if stuck or not left < middle < right:
            middle = left + (right - left) / 2
        value = excess(math.exp(middle))
        seen.append((middle, value))
        if value > 0:
            left = middle
        else:
            right, high = middle, math.exp(middle)
    return high


def _root(points: list[tuple[float, float]]) -> float:
    """Where the polynomial in y through the points (x, y) is at y = 0; not a number where two share a y."""
    if len({y for _, y in points}) < len(points):
        return math.nan
    return math.fsum(
        x * math.prod(other / (other - y) for _, other in points if other != y) for x, y in points
    )
