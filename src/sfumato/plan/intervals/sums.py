"""How wide a sum of many independent noises is: the exact law, in ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.errors import InvalidParameter
from sfumato.plan.intervals.noise import Noise

__all__ = ["width_of_sum"]

_APART = 1 + 2.0**-7  # scales that are closer are moved apart before partial fractions are taken
_BITS = 512
_STEPS = 60
_WIDER = 1 + 2.0**-40


def width_of_sum(terms: Sequence[tuple[float, Noise]], risk: float) -> float:
    """The half-width that |Σ a·X| exceeds with probability at most `risk`.

    Gaussians: a quantile. Laplaces: Σ c_i·e^(−t/A_i) with c_i = Π A_i²/(A_i² − A_j²), the partial fractions
    of the characteristic function, in ball arithmetic since they cancel. Scales that are closer than 1 % are
    moved apart, outwards, which only widens (Anderson 1955: all laws here are symmetric and unimodal).

    Args:
        terms: Factors of the noises, which are independent and all of one family.
        risk: Of both sides together.

    Raises:
        InvalidParameter: if Gaussian noise is mixed with other noise.
    """
    if not terms:
        return 0.0
    noises = [(abs(factor), noise.continuous()) for factor, noise in terms]
    slack = math.fsum(factor * noise.slack for factor, noise in noises)
    scales = [factor * noise.scale for factor, noise in noises]
    laws = {noise.law for _, noise in noises}
    if laws == {"gaussian"}:
        from scipy import special

        return (math.hypot(*scales) * math.sqrt(2) * float(special.erfcinv(risk)) + slack) * _WIDER
    if "gaussian" in laws:
        raise InvalidParameter("A sum of noises is all Gaussian or all Laplace.")
    return (_laplace_width(scales, risk) + slack) * _WIDER


def _laplace_width(scales: list[float], risk: float) -> float:
    from flint import arb, ctx

    ordered = sorted(scale for scale in scales if scale > 0)
    for place in range(1, len(ordered)):
        ordered[place] = max(ordered[place], ordered[place - 1] * _APART)
    before, ctx.prec = ctx.prec, _BITS
    try:
        balls = [arb(scale) for scale in ordered]
        factors = []
        for i, one in enumerate(balls):
            factor = arb(1)
            for j, other in enumerate(balls):
                if i != j:
                    factor /= 1 - (other / one) ** 2
            factors.append(factor)
        low, high = 0.0, sum(ordered) * (math.log(len(ordered) / risk) + 1)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            tail = sum(
                (factor * (-arb(middle) / one).exp() for factor, one in zip(factors, balls, strict=True)),
                arb(0),
            )
            if tail.upper() <= risk:
                high = middle
            else:
                low = middle
        return high
    finally:
        ctx.prec = before
