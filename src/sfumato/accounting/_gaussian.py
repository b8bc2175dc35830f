"""The Gaussian noise for a target, exact and by the classic formula; and the choice at the price of noise."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx

from sfumato.errors import InvalidParameter, NotCertified
from sfumato.loss.gaussian import gaussian_meets
from sfumato.numeric.balls import ball, exact_upper
from sfumato.numeric.exact import Rational, float_down, nonnegative, positive, probability

__all__ = ["gaussian_classic", "gaussian_sigma", "selection_epsilon"]

_LARGEST = 10**15
_BITS = 192


def gaussian_sigma(epsilon: Rational, delta: Rational, sensitivity: Rational = 1) -> Fraction:
    """The least standard deviation that gives (ε, δ), rounded up by less than 1e-12 of itself.

    Args:
        epsilon: ε ≥ 0; 0 is allowed and asks for total variation δ.
        delta: δ in (0, 1).
        sensitivity: the L2 sensitivity.

    Returns:
        An exact `Fraction` (a float times the sensitivity), so that the variance drawn is the one that was
        proven; `float(sigma)` shows it.

    Privacy:
        Claim: noise of this σ (or more) on a function of this L2 sensitivity is (ε, δ)-DP, and no σ smaller
        by 1e-12 of it is.
        Source: Balle, Wang 2018, Thm. 8: δ(μ) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) increases in μ =
        sensitivity/σ. The inequality is decided in ball arithmetic at the returned value, so it holds for the
        number itself, not for a rounding of it.
    """
    exact, target = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
    if exact > _LARGEST:
        raise InvalidParameter("epsilon must be at most 1e15: beyond it hardly any noise is left.")
    sigma = _start(exact, target)
    # Walk out from the starting float until one side fails and the other holds, then halve; both sides are
    # certified.
    step = 2.0**-40
    if _holds(Fraction(sigma), exact, target):
        high, low = sigma, sigma / (1 + step)
        while _holds(Fraction(low), exact, target):
            step = min(step * 16, 1.0)
            high, low = low, low / (1 + step)
    else:
        low, high = sigma, sigma * (1 + step)
        while not _holds(Fraction(high), exact, target):
            step = min(step * 16, 1.0)
            low, high = high, high * (1 + step)
    while high - low > 2.0**-44 * high:
        middle = low + (high - low) / 2
        low, high = (low, middle) if _holds(Fraction(middle), exact, target) else (middle, high)
    return Fraction(high) * positive(sensitivity, "sensitivity")


def gaussian_classic(epsilon: Rational, delta: Rational, sensitivity: Rational = 1) -> float:
    """√(2 ln(1.25/δ))·sensitivity/ε: the textbook formula, for contrast only. Use `gaussian_sigma`.

    Privacy:
        Claim: none above ε = 1. Source: Dwork, Roth 2014, Thm. A.1 proves (ε, δ) for 0 < ε < 1 only, where it
        wastes noise (at ε = 1, δ = 1e-6 it asks for 25 % more than needed). Above 1 it is unproven, and from
        about ε = 8 to 9 on it is *false*: the noise is too small (a test shows the exact δ above the target
        at ε = 10). No mechanism of this package calls it.
    """
    exact, target = positive(epsilon, "epsilon"), probability(delta, "delta")
    return math.sqrt(2 * math.log(1.25 / float(target))) * float(positive(sensitivity, "sensitivity") / exact)


def selection_epsilon(rho: Rational) -> Fraction:
    """The greatest ε at which the exponential mechanism costs no more than Gaussian noise of this ρ.

    Args:
        rho: ρ = μ²/2.

    Returns:
        2·ln(Φ(μ/2)/Φ(−μ/2)), rounded down by less than 1e-15 of itself; it is at least 4·√(ρ/π), which is
        taken where ρ is beyond all use.

    Privacy:
        Claim: what has bounded range ε, as the exponential mechanism at ε has (`BoundedRangeLoss`), is μ-GDP;
        for no larger ε is all that has it. Source: Dong, Durfee, Rogers 2020, for the worst pairs; the rest
        is proved in docs/proofs/selection.md. The figure is the lower end of a ball.
    """
    exact = positive(rho, "rho")
    with ctx.workprec(_BITS):
        root = ball(exact).sqrt() / 2  # erfc(±root)/2 is Φ(∓μ/2)
        best = -2 * (2 * root.erf() / root.erfc()).log1p()
        least = exact_upper(best if best.is_finite() else -8 * root / arb.pi().sqrt())
    if least is None:
        raise NotCertified("No epsilon is proven for a rho of this size.")
    return Fraction(float_down(-least))


def _holds(sigma: Fraction, epsilon: Fraction, target: Fraction) -> bool:
    return gaussian_meets(1 / (2 * sigma * sigma), epsilon, target)


def _start(epsilon: Fraction, target: Fraction) -> float:
    """A float near the answer: bisection on a logarithmic scale, at low precision."""
    low, high = -740.0, 740.0
    while high - low > 2.0**-30:
        middle = (low + high) / 2
        if _holds(Fraction(math.exp(middle / 1.05)), epsilon, target):
            high = middle
        else:
            low = middle
    start = math.exp(high / 1.05)
    if not 0 < start < math.inf:
        raise NotCertified("No standard deviation between 1e-300 and 1e300 gives this epsilon and delta.")
    return start
