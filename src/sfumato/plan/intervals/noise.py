"""The public law of a measurement's noise, in the units that an analyst reads."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, TypeAlias, assert_never

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import Gaussian, Geometric, Laplace
from sfumato.numeric.exact import Rational, float_up, probability

__all__ = ["Law", "Noise", "risk_of"]

Law: TypeAlias = Literal["laplace", "geometric", "gaussian"]

_WIDER = 1 + 2.0**-49  # what a handful of roundings in floats can take off a quantile
_GRID = Fraction(1, 2) + Fraction(1, 2**63)  # of a grid step: rounding to the grid, and the input before it


def risk_of(confidence: Rational) -> float:
    """1 − confidence, taken before the rounding to floats: the probability that an interval may miss."""
    return float(1 - probability(confidence, "confidence"))


@dataclass(frozen=True, slots=True)
class Noise:
    """The law of released minus exact for one measurement: noise of a known law, then rounding.

    Attributes:
        law: `laplace` or `gaussian`, continuous; `geometric`, on the whole numbers.
        scale: b of the Laplace law (the geometric one has P(k) ∝ exp(−|k|/b)), σ of the Gaussian.
        slack: How much further than the noise a released number can be off, through rounding of any kind.
        whole: Whether exact and released numbers are both whole, so that widths are too.
        rounding: The part of the slack that comes from rounding to whole numbers: a half or nothing.
    """

    law: Law
    scale: float
    slack: float = 0.0
    whole: bool = False
    rounding: float = 0.0

    def __post_init__(self) -> None:
        if self.law not in ("laplace", "geometric", "gaussian"):
            raise InvalidParameter("The law of noise is laplace, geometric or gaussian.")
        if not (0 < self.scale < math.inf and 0 <= self.slack < math.inf):
            raise InvalidParameter("Noise takes a positive scale and a slack of at least 0, both finite.")

    @classmethod
    def of(
        cls, mechanism: Laplace | Geometric | Gaussian, unit: Fraction = Fraction(1), *, rounded: bool = False
    ) -> Noise:
        """The noise of a mechanism that releases integers counting `unit`s.

        Args:
            mechanism: What draws it, on the integers.
            unit: What one integer step means: 2**-bits, and 2**-30 of that where rows are weighted.
            rounded: Whether answers are rounded to whole numbers afterwards.

        Raises:
            InvalidParameter: for any other mechanism, or noise beyond the range of floats.
        """
        half = 0.5 if rounded else 0.0
        if isinstance(mechanism, Geometric):
            if unit == 1:
                return cls("geometric", mechanism.scale, whole=True)
            slack = (Fraction(_overhang(mechanism.scale)) + Fraction(1, 2**48)) * unit
            wide = float_up(slack + Fraction(half))
            return cls("laplace", _scaled(mechanism.scale, unit), wide, rounding=half)
        if not isinstance(mechanism, Laplace | Gaussian):
            raise InvalidParameter("The noise of a measurement is Laplace, Geometric or Gaussian.")
        slack = Fraction(mechanism.grid) * _GRID * unit + Fraction(half)
        law: Law = "laplace" if isinstance(mechanism, Laplace) else "gaussian"
        return cls(law, _scaled(mechanism.scale, unit), float_up(slack), rounded and unit == 1, half)

    @property
    def variance(self) -> float:
        """The variance of the noise itself, without what rounding adds (at most slack²)."""
        square = self.scale * self.scale
        match self.law:
            case "gaussian":
                return square
            case "laplace":
                return 2 * square
            case "geometric":
                return 0.5 / math.sinh(0.5 / self.scale) ** 2 if self.scale > 1 / 1400 else 0.0
            case unknown:
                assert_never(unknown)

    def quantile(self, confidence: Rational) -> float:
        """The half-width w with P(|released − exact| ≤ w) ≥ confidence, rounded up.

        The least such w for continuous noise (and the slack), and the least whole one for whole numbers.
        """
        return self.width(risk_of(confidence))

    def width(self, risk: float) -> float:
        """The half-width that is exceeded with probability at most `risk`, rounded up.

        Geometric: the least whole w with 2q^(w+1)/(1 + q) ≤ risk, q = exp(−1/b). Whole numbers with other
        noise: exact and released differ by the rounded noise, which is at most w when the noise is at most
        w + 1/2.
        """
        if risk <= 0:
            return math.inf
        if risk >= 1:
            return 0.0
        match self.law:
            case "gaussian":
                from scipy import special

                wide = self.scale * math.sqrt(2) * float(special.erfcinv(risk)) * _WIDER
            case "laplace":
                wide = -self.scale * math.log(risk) * _WIDER
            case "geometric":
                rate = math.log1p(math.exp(-1 / self.scale))
                return max(0.0, float(math.ceil(self.scale * (math.log(2 / risk) - rate) * _WIDER - 1)))
            case unknown:
                assert_never(unknown)
        if not self.whole:
            return (wide + self.slack) * _WIDER
        return max(0.0, float(math.ceil((wide + self.slack) * _WIDER - 1)))

    def tail(self, width: float) -> float:
        """A bound on P(|released − exact| > width): exact for the noise, wide for the slack."""
        if self.law == "geometric":
            rate = 1 / self.scale
            whole = math.floor(width) + 1
            return min(1.0, 2 * math.exp(-rate * whole) / (1 + math.exp(-rate))) if width >= 0 else 1.0
        reach = math.floor(width) + 1 if self.whole else width
        reach -= self.slack
        if reach <= 0:
            return 1.0
        match self.law:
            case "laplace":
                return math.exp(-reach / self.scale)
            case "gaussian":
                return math.erfc(reach / self.scale / math.sqrt(2))
            case unknown:
                assert_never(unknown)

    @property
    def unrounded(self) -> Noise:
        """The law before numbers are rounded to whole ones."""
        if not self.rounding:
            return self
        return Noise(self.law, self.scale, max(0.0, self.slack - self.rounding) * _WIDER)

    def continuous(self, *, alone: bool = False) -> Noise:
        """A continuous law that can replace this one in any sum, with the slack that makes up for it.

        Geometric noise X and Laplace noise Y of the same b can be drawn together so that X − Y lies within
        [c − 1, c] where they are positive, and mirrored below: c = b·ln(2/(1 + q)), q = exp(−1/b). Proof:
        P(X ≥ k) = q^k/(1 + q) and P(Y ≥ y) = q^y/2 agree at y = k − c, so let X = k where k − c ≤ Y <
        k + 1 − c for k ≥ 1, likewise below zero, and 0 in between. Since √q ≤ (1 + q)/2 (arithmetic and
        geometric mean), 0 ≤ c ≤ 1/2, and always |X − Y| ≤ 1 − c: the slack in any sum, whatever is added.

        Args:
            alone: Whether everything that is added to it is continuous, symmetric and unimodal. Then
                P(|aX + Z| > t) grows with |X| (Anderson 1955), |X| ≤ |Y| + c, and the slack is c.
        """
        if self.law != "geometric":
            return Noise(self.law, self.scale, self.slack)
        over = _overhang(self.scale)
        return Noise("laplace", self.scale, ((1 - over if alone else over) + self.slack) * _WIDER + 2.0**-48)


def _overhang(scale: float) -> float:
    """1 − b·ln(2/(1 + exp(−1/b))): from 1/2 for wide noise to 1 for hardly any."""
    return 1 - scale * math.log1p(math.tanh(0.5 / scale))


def _scaled(scale: float, unit: Fraction) -> float:
    try:
        return float(Fraction(scale) * unit)
    except OverflowError:
        raise InvalidParameter("The noise is too large for floats: rescale the column.") from None
