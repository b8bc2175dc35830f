"""`LinearRegression` and `Ridge`: least squares by a few noisy steps, with intervals where they hold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Number
from sfumato.learn._core.design import UNIT
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import RESIDUAL_BITS, Residuals
from sfumato.learn._weights.descent import WIDEST, Field, Sandwich, field
from sfumato.learn._weights.standard import averages, inverse_of
from sfumato.learn._weights.trust import Trusted, may_be_told, plenty_of, trust_signs
from sfumato.learn.base import Learned
from sfumato.learn.examples import Example, Given
from sfumato.learn.kinds import PrivateRegressor
from sfumato.numeric.balls import sqrt_up
from sfumato.numeric.exact import Rational, as_fraction
from sfumato.random import simulation

__all__ = ["LinearRegression", "Ridge"]

Floats: TypeAlias = NDArray[np.float64]

_COUNTING, _SCALING, _BENDING = Fraction(4, 100), Fraction(6, 100), Fraction(20, 100)
_SPREADING, _VARYING, _LOST, _LEANING = (Fraction(part, 100) for part in (1, 4, 3, 3))
_REST = 1 - _COUNTING - _SCALING - _BENDING
_EACH = (_REST - 4 * _SPREADING) / 5
_STEPS = (_EACH,) * 2, (_EACH,) * 3
_FIRST = Fraction(6, 100)
_LAST_TOLD = (_REST - 2 * _SPREADING - _VARYING - _LOST - _LEANING - 2 * _FIRST) / 2
_STEPS_TOLD = (_FIRST,) * 2, (_LAST_TOLD,) * 2
_SHORTEST, _LONGEST = 1.0, 16.0  # to how many of their spreads residuals are cut
_SKEWED, _SKEWED_TOLD = 0.3, 3.0  # how much the bias of a cut counts, where errors are exponential
_BEYOND = 0.75  # what is cut off is so much of what is left, where errors have tails like log-normal ones
_SLIGHT = 0.4  # noise that is so much of the spread of sampling makes intervals 8 % wider
_LOOSE = 1.2  # 2·0.14 divided by 0.23, what one more part of an interval's width holds more
_WIDEST = 0.25  # no variance in [0, 1] is more
_UNIFORM = 1 / 12  # that of a mean that may be anywhere


class LinearRegression(Trusted, PrivateRegressor):
    """Least squares.

    Columns are standardised and their second moments measured with noise. A few steps then go along noisy
    gradients, each through the inverse of those moments, as Newton's would; residuals are cut to a few of
    their own spreads, which are measured on the way: as many as make bias and noise together small. The
    weights are the average of the later steps. There is no penalty: where there is little to learn from,
    the ridge of the matrix, the size of its noise, keeps steps short. Where intervals can be told, a part of
    the price pays for what they need: how rows' own gradients vary, and which of them are cut.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise.
        bounds: What is public about each column.
        target_bounds: What the target is clamped to.

    Attributes:
        coef_: Weights in the columns' own scale; a column of categories has one for each of them
            (`coefficient_names_`).
        intercept_: What is added.

    Privacy:
        Claim: that of `PrivateEstimator`. Proof: `averages` of the target, `means`, `curvature`, averages of
        residuals' squares, `gradients` cut to a length, and `products` of them; shares, lengths and steps
        follow from noisy answers alone.
    """

    widest = WIDEST

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        mean, variance, count = counted(rows, meter, _COUNTING)
        near = field(rows, meter, count, scaling=_SCALING, bending=_BENDING)
        weights = np.zeros((near.standard.width, 1))
        weights[-1] = mean
        penalty = np.append(self._penalty(rows) * near.standard.rate**2 / count, 0.0)
        told = may_be_told(near, rows.design) and not penalty.any()
        weights, covariance = _descended(near, weights, penalty, float(np.sqrt(variance)), told=told)
        return {
            "weights": near.back(rows.design, weights)[:, 0],
            "covariance": near.standard.back(near.standard.back(covariance).T),
            "signs": trust_signs(near, near.curvature, plenty_of(near)),
        }

    def _penalty(self, rows: Rows) -> Floats:
        """What the square of each coordinate's weight costs."""
        return np.zeros(len(rows.design.coordinates))

    def _set(self, learned: Learned) -> None:
        column = self._target_column()
        lower, span = float(column.lower), float(column.upper - column.lower)
        self._weights = learned["weights"] * span
        self._weights[-1] += lower
        slopes, start = self.design_.own_scale(self._weights)
        self.coef_, self.intercept_ = slopes, float(start)
        self.coefficient_names_ = [coordinate.name for coordinate in self.design_.coordinates]
        self._trust(np.asarray(learned["covariance"]) * span**2, learned["signs"])

    def predict(self, X: Any) -> Floats:
        """The expected target of each row."""
        return np.asarray(self._coordinates(X) @ self._weights)


class Ridge(LinearRegression):
    """Least squares with a penalty on the squares of the weights, as scikit-learn's.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise.
        bounds: What is public about each column.
        target_bounds: What the target is clamped to.
        alpha: The penalty: Σ(y − ŷ)² + alpha·Σcoef² is made small. Public.
    """

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        target_bounds: Any = None,
        *,
        alpha: Rational = 1,
    ) -> None:
        super().__init__(epsilon, delta, bounds, target_bounds)
        self.alpha = alpha

    def _check(self) -> None:
        super()._check()
        if as_fraction(self.alpha, "alpha") < 0:
            raise InvalidParameter("alpha must be 0 or more.")

    def _penalty(self, rows: Rows) -> Floats:
        spans = [
            float(column.upper - column.lower) if isinstance(column, Number) else 1.0
            for column in (rows.design.columns[coordinate.column] for coordinate in rows.design.coordinates)
        ]
        squares = np.array([1 / span**2 if span > 0 else 0.0 for span in spans])
        return float(as_fraction(self.alpha, "alpha")) * squares

    def _refusal(self) -> str | None:
        if as_fraction(self.alpha, "alpha") > 0:
            return "a penalty draws the weights to 0, and an interval would be about the drawn ones"
        return super()._refusal()


def counted(rows: Rows, meter: Meter, share: Fraction) -> tuple[float, float, float]:
    """About the mean and the variance of the target, as a part of its range, and how many units there are."""
    target = rows.target
    assert target is not None
    longest = Fraction(21, 16)  # 1, at most 1/2, and at most 1/4

    def line(place: slice) -> Floats:
        near = target[place] - UNIT / 2
        ones = np.full(len(near), 2.0**20)
        return np.column_stack([ones, near * 2.0**6, np.floor(near * near * 2.0**-8)])

    lines = ((place, line(place)) for place in rows.slices())
    noisy = meter.noisy(averages(rows, lines, 3, longest), share)
    noise = meter.sigma(sqrt_up(longest), share)
    count = float(max(noisy[0], 2 * noise))
    # Where noise could put the mean anywhere, the middle is a better guess than what it says.
    near = float(np.clip(noisy[1] / count, -0.5, 0.5)) * _UNIFORM / (_UNIFORM + (noise / count) ** 2)
    variance = float(np.clip(noisy[2] / count - near**2, min(noise / count, _WIDEST), _WIDEST))
    return near + 0.5, variance, count


def _descended(
    near: Field, weights: Floats, penalty: Floats, spread: float, *, told: bool
) -> tuple[Floats, Floats]:
    """The average of the later steps, and the covariance of what it is off by, where that can be told."""
    target = near.rows.target
    assert target is not None
    found = residuals(target)
    bent, ridge = near.curvature.matrix + np.diag(penalty), near.curvature.ridge
    inverse = inverse_of(bent)
    first, last = _STEPS_TOLD if told else _STEPS
    spreads = len(first) + 1 if told else len(first + last)
    most = spread * near.curvature.longest / near.standard.length
    few = _few(near, float(np.trace(inverse)), sum(last, Fraction(0)), told=told)
    # With a large ridge steps are too short, and what they miss is on the same side each time.
    momentum = 0.5 * ridge / (1 + ridge)
    speed, later, certain = np.zeros_like(weights), np.zeros_like(weights), 0.0
    for step, share in enumerate(first + last):
        if 0 < step < spreads:
            spread = spread_of(near, weights, found, spread, _SPREADING, most=most if told else spread)
        length = few * near.standard.length * spread
        slope = near.gradient(weights, found, length, share) + penalty[:, None] * weights
        speed = momentum * speed + inverse @ slope
        weights = weights - near.rate * speed
        if step >= len(first):
            part = 1 / near.noise(length, share) ** 2
            later, certain = later + part * weights, certain + part
    later = later / certain
    if not told:
        return later, np.zeros_like(inverse)
    within = near.sandwich(later, found, length, (_VARYING, _LOST))
    leaning = near.gradient(later, near.only_cut(found, length), length, _LEANING)
    return later, _covariance(near, within, 1 / certain, leaning)


def _few(near: Field, flat: float, share: Fraction, *, told: bool) -> float:
    """How many spreads of its own a residual is cut to: what makes bias and noise together small.

    Errors are taken to be skewed like a part of exponential ones, which a cut at c of their spreads moves by
    e^−(c + 1) of one; noise grows with c. Where intervals are told, bias must be small beside them; elsewhere
    nothing is cut wider than what there is to learn from allows.

    Args:
        near: The rows.
        flat: The trace of the inverse of their second moments.
        share: Of the price, that later steps have together.
        told: Whether intervals are told.
    """
    cuts = np.arange(4 * _SHORTEST, 4 * _LONGEST + 1) / 4
    noise = near.noise(near.standard.length, share)
    skewed = _SKEWED_TOLD if told else _SKEWED
    few = float(cuts[np.argmin((skewed * np.exp(-cuts - 1)) ** 2 + flat * (cuts * noise) ** 2)])
    allowed = math.sqrt(near.plenty) / 6
    if told:
        return min(max(few, min(allowed, _SLIGHT / (noise * math.sqrt(near.count)))), _LONGEST)
    return min(few, max(allowed, _SHORTEST))


def _covariance(near: Field, within: Sandwich, noise: float, leaning: Floats) -> Floats:
    """Of weights: what rows' own gradients vary by and the noise, through the curvature of what is not cut.

    Where errors are skewed, what is cut moves the weights to one side. How much is not known, but that rows
    are cut on one side is: the square of what it may come to is counted as if it were variance.

    Args:
        near: The rows.
        within: What rows give gradients.
        noise: The variance of the noise of each entry of a gradient.
        leaning: About the mean of what rows give a gradient that are cut.
    """
    bent, eye = near.curvature, np.eye(near.standard.width)
    # Without the ridge, which after some steps is gone from the weights.
    values, directions = np.linalg.eigh(bent.matrix - bent.ridge * eye - within.lost)
    inverse = (directions / np.maximum(values, bent.ridge)) @ directions.T
    values, directions = np.linalg.eigh(within.spread)
    spread = (directions * np.maximum(values, within.noise)) @ directions.T / near.count
    moved = _BEYOND * inverse @ leaning
    whole = inverse @ (spread + noise * eye) @ inverse + moved @ moved.T
    # An interval by a variance that is off by a relative error e holds about 0.14·e² less often.
    loose = np.sqrt(2) * within.noise / near.count * (inverse @ inverse)
    return np.asarray(whole + _LOOSE * loose @ inverse_of(whole) @ loose)


def residuals(target: NDArray[np.integer]) -> Residuals:
    """What a prediction is above the target, in whole multiples of 2**-20 of its range."""

    def found(place: slice, margins: Floats) -> Floats:
        whole = np.rint(margins * 2.0**RESIDUAL_BITS)
        return np.asarray(np.clip(whole - target[place, None] * 2.0**6, -(2.0**22), 2.0**22))

    return found


def spread_of(
    near: Field, weights: Floats, found: Residuals, spread: float, share: Fraction, *, most: float
) -> float:
    """About the spread of residuals, each counted by how long its row is.

    Args:
        near: The rows.
        weights: What residuals are at.
        found: The residuals.
        spread: What it was before.
        share: Of the price.
        most: What it is at most.
    """
    farthest = 4 * spread * 2.0**RESIDUAL_BITS

    def line(place: slice, margins: Floats) -> Floats:
        far = found(place, margins) * (near.lengths(place) / farthest)[:, None]
        return np.asarray(np.floor(np.minimum(far**2, 1) * 2.0**20))

    noisy = near.average(weights, line, share)
    square = (max(noisy, 0.0) + near.averaging(share)) * (4 * spread) ** 2
    return min(most, float(np.sqrt(square)))


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    rng = simulation(0)
    few = rng.uniform(-1, 1, (40, 2))
    target = few[:, 0] - few[:, 1]
    return (
        Example(
            "linear: a row far off",
            lambda: LinearRegression(epsilon=1, delta="1e-5", bounds=(-1, 1), target_bounds=(-2, 2)),
            Given(few, target),
            Given(np.vstack([few, [[1.0, -1.0]]]), np.append(target, -2.0)),
        ),
        Example(
            "ridge: somebody with many rows",
            lambda: Ridge(epsilon=2, delta="1e-5", bounds=(-1, 1), target_bounds=(-2, 2), alpha=3),
            Given(few, target, units=np.arange(40)),
            Given(
                np.vstack([few, np.ones((5, 2))]),
                np.append(target, [2.0] * 5),
                units=np.append(np.arange(40), [40] * 5),
            ),
        ),
    )
