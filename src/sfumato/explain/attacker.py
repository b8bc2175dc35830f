"""What an attacker can do who wants to know whether one unit is in the data, and knows everything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, NotCertified
from sfumato.explain.figures import given, percent_down, percent_given, percent_up
from sfumato.loss import PrivacyLoss
from sfumato.numeric.balls import ball, upper
from sfumato.numeric.exact import Rational, decimal_up, delta_of, float_up, probability
from sfumato.numeric.rounding import LIBRARY, Floats, U, up

__all__ = ["Posterior", "advantage", "posterior", "tradeoff"]

# Where the curve is read: enough points that a bound is within a few millionths of the best one for a few
# rates, and never so many that a curve that is slow to compute takes minutes. A rate is done when several
# rounds in turn have brought it nothing that matters.
_ROUNDS, _MOST_POINTS, _MATTERS, _IDLE = 26, 320, 1e-8, 5
_FARTHEST = 700.0  # beyond, e^ε is not a float
_TOLD = 40.0  # beyond, e^−ε is lost beside 1
# Many curves are slow to certify at exact multiples of their parameters, such as 0, where they have kinks.
# Points are placed beside those, which costs nothing that can be seen.
_FIRST, _SECOND, _SPLIT = 2.0**-13, 0.2437, 0.4871


def tradeoff(loss: PrivacyLoss, false_positive_rates: Sequence[float] | Floats | float) -> Floats:
    """The best true-positive rate that any attacker can reach at each false-positive rate, rounded up.

    The attacker decides, from all that was released, whether one unit is in the data. A false positive is to
    say so of a unit that is not.

    Args:
        loss: the loss of all that the attacker sees.
        false_positive_rates: one rate or an array of them, each from 0 to 1.

    Returns:
        An array of the same shape. It is a ceiling for every attacker; where the loss is that of a known law
        (Laplace, Gaussian, randomized response) some attacker reaches it.

    Privacy:
        Claim: with false-positive rate a, every test has TPR ≤ e^ε·a + δ(ε) and TPR ≤ 1 − e^−ε·(1−a−δ(ε)) for
        every ε ≥ 0, whichever of the two inputs holds the unit. Source: Kairouz, Oh, Viswanath 2015, Thm.
        2.1; Dong, Roth, Su 2022, Prop. 2.12 (the infimum over ε is the trade-off curve of a symmetric loss).
        Where the infimum is sought affects how tight a figure is, not whether it holds. For a loss known as
        a pure ε alone the two lines at that ε are the curve.
    """
    rates = np.asarray(false_positive_rates, dtype=np.float64)
    if not np.all((rates >= 0) & (rates <= 1)):
        raise InvalidParameter("false_positive_rates must lie between 0 and 1.")
    return ceilings(loss, rates.ravel(), rounds=_ROUNDS).reshape(rates.shape)


def ceilings(loss: PrivacyLoss, rates: Floats, *, rounds: int) -> Floats:
    """What `tradeoff` gives, with the work that is put into tightness as a choice: 5 rounds are 3 digits."""
    curve = _Curve(loss, rates)
    best = curve.bounds(rates).min(axis=1)
    idle = np.zeros(len(rates), dtype=np.int64)
    for _ in range(rounds):
        if not curve.refine(rates[idle < _IDLE]):
            break
        bounds = np.minimum(best, curve.bounds(rates).min(axis=1))
        idle = np.where(bounds < best * (1 - _MATTERS), 0, idle + 1)
        best = bounds
    best = np.where(rates == 0, curve.floor, best)
    return np.clip(np.where(rates == 1, 1.0, best), rates, 1.0)


def quick_advantage(loss: PrivacyLoss) -> float:
    """What `advantage` gives, to about four digits and still rounded up, read beside the kink at 0.

    Privacy:
        Claim: (ε, δ) bounds the total variation distance by (e^ε − 1 + 2δ)/(e^ε + 1). Source: Kairouz, Oh,
        Viswanath 2015, Thm. 2.1 at equal error rates.
    """
    epsilon = _scale(loss) * _FIRST
    return min(
        1.0,
        float(
            up(
                (math.expm1(epsilon) + 2 * loss.delta(Fraction(epsilon))) / (math.exp(epsilon) + 1),
                4 * LIBRARY,
            )
        ),
    )


def _scale(loss: PrivacyLoss) -> float:
    """About where the curve of a loss falls; a guess that affects tightness only."""
    known = loss.concentrated
    guesses = [] if loss.pure is None else [float_up(loss.pure)]
    if known is not None and known[0]:
        guesses.append(math.sqrt(2 * float_up(known[0])))
    return min([*guesses, _TOLD]) if guesses else max(loss.delta(0), 1e-12)


class _Curve:
    """Points (ε, δ(ε)) of a loss, more of them where they matter."""

    def __init__(self, loss: PrivacyLoss, rates: Floats) -> None:
        self._loss = loss
        self._known: dict[float, float] = {}
        if loss.pure == 0:
            self._known[0.0] = 0.0
            return
        positive = np.concatenate([rates[rates > 0], 1 - rates[rates < 1]])
        least = float(positive.min()) if len(positive) else 1.0
        scale = _scale(loss)
        pure, point = loss.pure, loss.approximate
        last = _FARTHEST if pure is None else min(_FARTHEST, float_up(pure))
        self._read(min(last, scale * _FIRST))
        if last < _FARTHEST:
            self._read(last)
        if point is not None and float_up(point[0]) < last:
            self._read(float_up(point[0]))
        epsilon = scale * _SECOND
        while epsilon < last:
            if self._read(epsilon) <= least * 1e-7 or epsilon > max(_TOLD, -math.log(least)):
                break
            epsilon *= 2

    def _read(self, epsilon: float) -> float:
        if epsilon not in self._known:
            try:
                self._known[epsilon] = self._loss.delta(Fraction(epsilon))
            except NotCertified:
                self._known[epsilon] = 1.0  # nothing is known there; the other points still hold
        return self._known[epsilon]

    @property
    def floor(self) -> float:
        """The least δ read so far: the most that is found with no false alarm at all."""
        return min(self._known.values())

    def bounds(self, rates: Floats) -> Floats:
        """For each rate (rows) the ceiling that each point known so far (columns) proves, rounded up."""
        epsilons = np.array(sorted(self._known))
        deltas = np.array([self._known[epsilon] for epsilon in epsilons.tolist()])
        with np.errstate(under="ignore"):
            small = np.exp(epsilons) * rates[:, None] + deltas
            # 1 − e^−ε·(1−a−δ), as a sum of positive terms.
            large = -np.expm1(-epsilons) + np.exp(-epsilons) * (rates[:, None] + deltas)
        return up(np.minimum(small, large), LIBRARY + 4 * U)

    def refine(self, rates: Floats) -> bool:
        """Read the curve halfway to the neighbours of every best point; whether there was anything to."""
        epsilons = sorted(self._known)
        if not len(rates) or len(epsilons) == 1:
            return False
        best = set(np.argmin(self.bounds(rates), axis=1).tolist())
        gaps = sorted({gap for place in best for gap in (place - 1, place) if 0 <= gap < len(epsilons) - 1})
        wide = [g for g in gaps if epsilons[g + 1] - epsilons[g] > 1e-9 * epsilons[g + 1]]
        if 0 in best and epsilons[0]:
            self._read(0.0)
        if not wide or len(epsilons) + len(wide) > _MOST_POINTS:
            return False
        for gap in wide:
            self._read(epsilons[gap] + (epsilons[gap + 1] - epsilons[gap]) * _SPLIT)
        return True


def advantage(loss: PrivacyLoss) -> float:
    """The most by which any attacker's true-positive rate exceeds the false-positive rate, rounded up.

    That is δ(0), the total variation distance; guessing "in" or "out" with even odds, the attacker is right
    at most (1 + advantage)/2 of the time.

    Privacy:
        Claim: TPR − FPR ≤ δ(0). Source: (0, δ)-differential privacy is a bound on the total variation
        distance (Kairouz, Oh, Viswanath 2015, Thm. 2.1 at ε = 0).
    """
    return loss.delta(0)


@dataclass(frozen=True, slots=True)
class Posterior:
    """How far a belief that one unit is in the data can move.

    Attributes:
        prior: the belief before the release, as it was given.
        smallest: no release can lower the belief below this, rounded down.
        largest: no release can raise it above this, rounded up.
        failure: the probability of the noise with which it may leave these bounds; 0 for a pure loss.
        epsilon: the factor e^±epsilon by which the odds move at most, rounded up; infinity if unbounded.
    """

    prior: float
    smallest: float
    largest: float
    failure: float
    epsilon: float

    def __str__(self) -> str:
        kept = f"a belief of {percent_given(self.prior)} stays between {percent_down(self.smallest)}"
        tail = f", except with probability {given(self.failure)}" if self.failure else ""
        return f"{kept} and {percent_up(self.largest)}{tail}"


def posterior(loss: PrivacyLoss, prior: Rational, *, failure: Rational = 0) -> Posterior:
    """The largest and the smallest belief that one unit is in the data, after seeing the release.

    Args:
        loss: the loss of all that the attacker sees.
        prior: the attacker's belief before, strictly between 0 and 1.
        failure: a probability, over the noise, with which the belief may leave the bounds. A loss without a
            pure ε promises nothing at 0: then the bounds are 0 and 1, because any belief may follow from
            some outcome, however unlikely.

    Privacy:
        Claim: an attacker who knows all the other units and has this prior ends, with probability at least
        1 − `failure` over the noise (and whichever of the two inputs is true), with a belief within the
        bounds. For a pure ε: p·e^ε/(1−p+p·e^ε) by Bayes' rule, always. Otherwise, with P and Q the laws of
        the release with and without the unit and L = log P/Q: δ(ε) ≥ E_P[(1 − e^(ε−L))₊] ≥
        P(L > t)·(1 − e^(ε−t)) for t > ε, and likewise for Q(L < −t), with P(L < −t) ≤ e^−t·Q(L < −t). So the
        odds leave e^±t with probability at most δ(ε)·(1 + e^−t)/(1 − e^(ε−t)) under P, and under Q. The
        argument is that of Kasiviswanathan, Smith 2014 for (ε, δ), with the whole curve instead of one
        point. "Except with probability δ the odds stay within e^±ε" is *not* what (ε, δ) means.
    """
    p, aside = probability(prior, "prior"), delta_of(failure, "failure")
    odds = _odds(loss, aside)
    if odds is None:
        return Posterior(float(p), 0.0, 1.0, decimal_up(aside), math.inf)
    # p·e^ε/(1−p+p·e^ε) = 1/(1 + (1−p)/p·e^−ε), and the same with −ε.
    against = ball((1 - p) / p)
    shrink = (-ball(odds)).exp()
    largest = min(1.0, upper(1 / (1 + against * shrink)))
    smallest = max(0.0, -upper(-shrink / (shrink + against)))
    pure = loss.pure
    failed = Fraction(0) if pure is not None and pure <= odds else aside
    return Posterior(float(p), smallest, largest, decimal_up(failed), decimal_up(odds))


def _odds(loss: PrivacyLoss, failure: Fraction) -> Fraction | None:
    """A t such that the odds stay within e^±t but with probability `failure`; None if there is none."""
    odds = loss.pure
    if failure:
        for power in range(1, 25):
            share = Fraction(1, 2**power)
            # With δ(ε) ≤ share·failure/2 the bound above is at most `failure` at t = ε − log(1 − share).
            epsilon = loss.epsilon(failure * share / 2)
            if not math.isfinite(epsilon):
                break
            beyond = Fraction(upper(-ball(1 - share).log()))
            t = Fraction(repr(epsilon)) + beyond
            odds = t if odds is None else min(odds, t)
    return odds
