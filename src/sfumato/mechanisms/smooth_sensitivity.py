"""Smooth sensitivity: noise fitted to how much *this* data could move the answer, without telling it."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import ApproximateLoss, PrivacyLoss, PureLoss
from sfumato.mechanisms import _private_scale as laws
from sfumato.mechanisms._median import Median, median_of
from sfumato.mechanisms._scores import Number, exact_number, nearest
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.numeric.exact import Rational, delta_of, float_down, floor_log2, nonnegative, positive
from sfumato.numeric.figures import PRECISION, ball, failure, laplace_width, up, upper
from sfumato.numeric.frozen import freeze, shown

__all__ = ["Median", "SmoothNoise", "SmoothSensitivity", "examples", "median_of"]

SmoothNoise: TypeAlias = Literal["student", "cauchy", "laplace"]

# Answers are multiples of a power of two about 2**-40 of the largest possible change.
_BITS = 40
# A smooth bound may be off by a relative 2**-41 from float arithmetic: the scale is widened by 2**-40, and
# neighbours' scales are taken to differ by a factor of up to e^(β + 2**-39).
_WIDER, _ROUGHER = 1 + Fraction(1, 2**40), Fraction(1, 2**39)
_MOST = 1000
_TOO_SMALL = "epsilon is too small here, no usable smoothness is left: use a larger one."
_DEGREES = {"student": 4, "cauchy": 1}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SmoothSensitivity(Mechanism):
    """Adds noise in proportion to a smooth bound on the local sensitivity.

    The caller works out, for the data x, a bound S(x) with |f(x) − f(x')| ≤ S(x) and S(x) ≤ e^β·S(x') for all
    neighbours x', with β = `beta`: for instance S(x) = max_k e^(−βk)·A_k(x), A_k the largest local
    sensitivity within k changes. `median_of(…).smooth(beta)` does it for medians. S is as private as the
    data.

    Attributes:
        epsilon: The price.
        bound: The most that the answer can move between any two neighbours (its global sensitivity); public.
        delta: 0, or the δ of the Laplace kind.
        noise: "student" (t with 4 degrees of freedom, finite variance; pure), "cauchy" (pure; no mean, but
            the roughest bounds will do) or "laplace" (lightest tails; needs a delta).
        beta: The smoothness that S must have.

    Privacy:
        Claim: ε-DP with Student's or Cauchy noise, (ε, δ)-DP with Laplace noise, under the two conditions
        on S above (met up to a relative 2**-41, which is paid for).

        Pure: noise σZ with σ = S/s and Z Student's t with d degrees of freedom (Cauchy: d = 1). For the
            laws at (y, σ) and (y', σ') the greatest log-ratio is *exactly* (d+1)/2·D + (d−1)/2·ln(σ/σ'),
            where cosh D = 1 + ((y−y')²/d + (σ−σ')²)/(2σσ'), the hyperbolic distance of the points y + iσ√d.
            Proof: with R(z) = (σ/σ')·((z−y')² + dσ'²)/((z−y)² + dσ²) the log-ratio is (d+1)/2·ln R +
            (d−1)/2·ln(σ/σ'), and R is a quotient of two quadratic forms of determinant 1 in (z, 1), whose
            extremes have product 1 and sum 2·cosh D. With |y−y'| = s·min(σ, σ') and σ, σ' a factor e^λ
            apart, D is the distance to a point that moves along a geodesic at unit speed in λ, hence
            convex, so that the worst λ in [0, β] is 0 or β. Both are held to ε, which gives s. Sources: the
            framework is Nissim, Raskhodnikova, Smith 2007; Bun, Steinke 2019 has
            Student's t with the bound s(d+1)/(2√d) + (d+1)β in place of the exact value.

        Laplace: σ = 2S/ε, so a shift costs at most ε/2. With σ/σ' = e^λ, the loss at an output |z|σ away is
        at most ε/2 − λ + |z|(e^λ − 1), |z| standard exponential. For λ ≤ 0 that is at most ε/2 + β ≤ ε; for
        λ > 0, E[(1 − e^(ε−L))+] ≤ (1 − e^−λ)·exp(−(ε/2 + λ)/(e^λ − 1)), which increases in λ, and `beta` is
        the largest β at which it is at most δ. (The source has the smaller β = ε/(2 ln(2/δ)).)

        The private scale shows nowhere but in the answer: answers lie on a grid fixed by `bound`, the noise
        is drawn by scaling one lazily known real number (no table per scale), `error` and `variance` do not
        know it. S is clamped to between a grid step and `bound`, which keeps both conditions. Time: the
        number of random bits does not depend on S, except with a probability of about 2**-38/ε, but
        Python's arithmetic on long integers is not constant-time.
    """

    epsilon: Fraction
    bound: Fraction
    delta: Fraction
    noise: SmoothNoise
    beta: float = field(compare=False)
    _shift: Fraction = field(compare=False)
    _step: Fraction = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        bound: Rational,
        *,
        delta: Rational = 0,
        noise: SmoothNoise | None = None,
    ) -> None:
        """Fix noise and smoothness from the price.

        Raises:
            InvalidParameter: for parameters out of range, or a delta with pure noise, or none with Laplace
                noise.
        """
        price, most, slip = positive(epsilon, "epsilon"), positive(bound, "bound"), delta_of(delta)
        kind: SmoothNoise = noise or ("laplace" if slip else "student")
        if kind not in ("student", "cauchy", "laplace"):
            raise InvalidParameter('noise must be "student", "cauchy" or "laplace".')
        if (kind == "laplace") != (slip > 0):
            raise InvalidParameter(
                "Laplace noise needs a delta above 0; Student's and Cauchy noise are pure and take none."
            )
        if price <= _ROUGHER:
            raise InvalidParameter(_TOO_SMALL)
        if kind != "laplace" and price > _MOST:
            raise InvalidParameter(f"epsilon above {_MOST} leaves no noise to draw: use a smaller one.")
        if kind == "laplace":
            shift, rough = price / 2, _laplace_roughness(price, slip)
        else:
            shift, rough = _student_split(price, _DEGREES[kind])
        beta = float_down(rough - _ROUGHER)
        if beta <= 0:
            raise InvalidParameter(_TOO_SMALL)
        step = Fraction(2) ** (floor_log2(most) - _BITS)
        freeze(self, epsilon=price, bound=most, delta=slip, noise=kind, beta=beta, _shift=shift, _step=step)

    def __repr__(self) -> str:
        parameters = {"epsilon": self.epsilon, "bound": self.bound, "delta": self.delta}
        return shown("SmoothSensitivity", **parameters, noise=self.noise)

    @property
    def loss(self) -> PrivacyLoss:
        """Pure ε, or (ε, δ) with Laplace noise."""
        return ApproximateLoss(self.epsilon, self.delta) if self.delta else PureLoss(self.epsilon)

    def release(self, value: Number, smooth: Number) -> float:
        """The value with noise in proportion to `smooth`.

        Args:
            value: The exact answer.
            smooth: S, a `beta`-smooth bound on the local sensitivity; private.

        Raises:
            InvalidValue: if either is not a finite number, or the bound is negative; outside the claim.
        """
        bound = Fraction(exact_number(smooth))
        if bound < 0:  # no bound on a distance is: it must come from a mistake, and not from the data
            raise InvalidValue(
                "The smooth sensitivity must be at least 0: use median_of(…).smooth(mechanism.beta)."
            )
        scale = self._scale(bound)
        centre, unit = Fraction(exact_number(value)) / self._step, scale / self._step
        if self.noise == "laplace":
            noisy = laws.add_exponential_tails(centre, unit)
        elif self.noise == "student":
            noisy = laws.add_student(centre, unit)
        else:
            noisy = laws.add_cauchy(centre, unit)
        return nearest(noisy * self._step)

    def _scale(self, smooth: Fraction) -> Fraction:
        return min(max(smooth, self._step), self.bound) * _WIDER / self._shift

    def error(self, confidence: Rational, *, size: int = 1, smooth: Rational | None = None) -> float:
        """The half-width of the noise for a *supposed* smooth sensitivity, an exact quantile, rounded up.

        Args:
            confidence: The probability that the noise is within it.
            size: How many answers it holds for at once.
            smooth: The smooth sensitivity to suppose, a public guess; the true one is private and must not
                be shown.
        """
        if smooth is None:
            raise InvalidParameter(
                "The error depends on the private smooth sensitivity: say which one to suppose, smooth=…."
            )
        scale, slack = self._scale(nonnegative(smooth, "smooth")), self._step / 2
        if self.noise == "laplace":
            return laplace_width(scale, confidence, size, slack=slack)
        quantile = laws.student_tail if self.noise == "student" else laws.cauchy_tail
        with ctx.workprec(PRECISION):
            return up(ball(scale) * quantile(failure(confidence, size) / 2) + ball(slack))

    @property
    def variance(self) -> None:
        """None: it depends on the private scale."""
        return None

    @property
    def bias(self) -> float | None:
        """Zero up to half a grid step, the noise being symmetric; None for Cauchy noise: it has no mean."""
        return None if self.noise == "cauchy" else 0.0


def _student_split(epsilon: Fraction, degrees: int) -> tuple[Fraction, Fraction]:
    """S and β that together cost exactly ε at worst (s rounded down).

    With c = s²/(2d): the worst pair of equal scales costs ε iff c = cosh(2ε/(d+1)) − 1; that of scales a
    factor e^β apart iff c = e^β·(cosh((2ε − (d−1)β)/(d+1)) − cosh β). β is half of what it could be with no
    shift at all, or the most that costs no shift.
    """
    with ctx.workprec(PRECISION):

        def allowed(beta: Fraction) -> arb:
            inner = ball((2 * epsilon - (degrees - 1) * beta) / (degrees + 1))
            return ball(beta).exp() * (inner.cosh() - ball(beta).cosh())

        equal = ball(2 * epsilon / (degrees + 1)).cosh() - 1
        shares = (epsilon / degrees * Fraction(k, 64) for k in range(63, 32, -1))
        beta = next((b for b in shares if allowed(b) > equal), epsilon / (2 * degrees))
        beta = Fraction(float_down(beta))
        least = min(-upper(-equal), -upper(-allowed(beta)))
        return -upper(-ball(2 * degrees * least).sqrt()), beta


def _laplace_roughness(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest β with β ≤ ε/2 and (1 − e^−β)·exp(−(ε/2 + β)/(e^β − 1)) ≤ δ, rounded down."""
    half = float(epsilon / 2)
    target = math.log(delta.numerator) - math.log(delta.denominator)

    def log_delta(beta: float) -> float:
        return math.log(-math.expm1(-beta)) - (half + beta) / math.expm1(beta)

    low, high = 0.0, min(half, 700.0)
    if log_delta(high) > target:
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if log_delta(middle) > target else (middle, high)
        high = low
    # A relative 1e-9 of β is far more than the rounding of these formulas.
    return Fraction(high * (1 - 1e-9))


def _example(name: str, mechanism: SmoothSensitivity) -> Example:
    """The worst pair: smooth bounds a factor e^β apart, answers apart by the smaller one."""
    left, right = (0.0, math.exp(mechanism.beta)), (1.0, 1.0)

    def draw(side: Side, count: int) -> NDArray[np.float64]:
        value, smooth = left if side == "left" else right
        return np.array([mechanism.release(value, smooth) for _ in range(count)])

    return Example(name, mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("smooth sensitivity: student", SmoothSensitivity(2, 64)),
        _example("smooth sensitivity: cauchy", SmoothSensitivity(2, 64, noise="cauchy")),
        _example("smooth sensitivity: laplace", SmoothSensitivity(2, 64, delta="0.01")),
    )
