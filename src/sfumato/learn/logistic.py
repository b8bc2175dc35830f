"""`LogisticRegression`: the chances of declared classes, by a few noisy steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Meter
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import RESIDUAL_BITS
from sfumato.learn._weights.curves import chances, logistic
from sfumato.learn._weights.descent import WIDEST, Field, field
from sfumato.learn._weights.standard import Curvature, averages
from sfumato.learn._weights.trust import Trusted, trust_signs
from sfumato.learn.base import Learned
from sfumato.learn.examples import Example, Given
from sfumato.learn.kinds import PrivateClassifier
from sfumato.numeric.exact import Rational
from sfumato.random import simulation

__all__ = ["LogisticRegression"]

Floats: TypeAlias = NDArray[np.float64]

_COUNTING, _SCALING, _BENDING = Fraction(3, 100), Fraction(7, 100), Fraction(15, 100)
_REST = 1 - _COUNTING - _SCALING - _BENDING
_STEPS, _FIRST, _LAST = 12, 3, 4
_MOMENTUM = 0.5
_PLENTY = 400.0  # from here on gradients are not cut at all, and their own curvature can be measured
_SHORTEST = 0.5  # in lengths of a row
_FARTHEST = 2.0  # what a step may move margins by


class LogisticRegression(Trusted, PrivateClassifier):
    """Logistic regression with two classes, or multinomial with more.

    Classes are counted, columns are standardised and their second moments measured, all with noise; then
    twelve steps go along noisy gradients, each through the inverse of a matrix that no curvature of the loss
    exceeds (Böhning and Lindsay 1988; for several classes Böhning 1992), and the weights are the average of
    the last six. With two classes and many rows, three steps are enough to measure the curvature itself, and
    four of Newton's follow. There is no penalty: where there is little to learn from, steps are short and
    the ridge of the matrix, the size of its noise, is large.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise.
        bounds: What is public about each column.
        classes: All labels that there can be.

    Attributes:
        classes_: The labels, sorted.
        coef_: Weights in the columns' own scale: a line for the second class of two, or for each of more. A
            column of categories has one weight for each (`coefficient_names_`).
        intercept_: What is added; one for each line.

    Privacy:
        Claim: that of `PrivateEstimator`. Proof: `averages` of labels, `means`, `curvature`, and `gradients`
        cut to a length; shares, lengths and steps follow from noisy answers alone.
    """

    widest = WIDEST

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        classes: Any = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        several = len(self._listed())
        counts, count = _counted(rows, meter, several)
        near = field(rows, meter, count, scaling=_SCALING, bending=_BENDING)
        start = np.zeros((near.standard.width, several if several > 2 else 1))
        logs = np.log(counts / counts.sum())
        start[-1] = logs - logs.mean() if several > 2 else logs[1] - logs[0]
        found = _residuals(near.rows, several)
        bent, covariance = near.curvature, np.zeros((near.standard.width,) * 2)
        if several > 2 or near.plenty < _PLENTY:
            weights, plenty = _descended(near, start, found, _STEPS, _REST / _STEPS), 0.0
        else:
            weights, covariance, bent = _newton(near, start, found)
            plenty = near.plenty
        return {
            "weights": near.back(rows.design, weights),
            "covariance": near.standard.back(near.standard.back(covariance).T),
            "signs": trust_signs(near, bent, plenty),
        }

    def _set(self, learned: Learned) -> None:
        self._set_classes()
        self._weights = np.asarray(learned["weights"])
        slopes, start = self.design_.own_scale(self._weights)
        self.coef_, self.intercept_ = slopes.T.copy(), np.atleast_1d(start)
        self.coefficient_names_ = [coordinate.name for coordinate in self.design_.coordinates]
        self._trust(np.asarray(learned["covariance"]), learned["signs"])

    def _refusal(self) -> str | None:
        if len(self.classes_) > 2:
            return "they are not worked out for more than two classes"
        return super()._refusal()

    def odds_ratios(self, level: float = 0.95) -> Floats:
        """By what the odds of the second class grow for each column's 1 more, and an interval for it.

        Args:
            level: How often the interval holds the true ratio.

        Returns:
            A line for each weight, the intercept left out: the ratio, the interval's lower and upper end.

        Raises:
            InvalidParameter: if the level is not between 0 and 1.
            NotCertified: where intervals are not known to hold.
        """
        ends = self.confidence_intervals(level)[:-1]
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(np.column_stack([self.coef_[0], ends])))

    def decision_function(self, X: Any) -> Floats:
        """The margin of each row: of the second class of two, or of each of more."""
        margins = self._coordinates(X) @ self._weights
        return np.asarray(margins[:, 0] if margins.shape[1] == 1 else margins)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        margins = self.decision_function(X)
        place = (margins > 0).astype(np.intp) if margins.ndim == 1 else margins.argmax(axis=1)
        return np.asarray(self.classes_[place])

    def predict_proba(self, X: Any) -> Floats:
        """The chance of each class, a line a row."""
        margins = self.decision_function(X)
        whole = np.column_stack([np.zeros_like(margins), margins]) if margins.ndim == 1 else margins
        grown = np.exp(whole - whole.max(axis=1, keepdims=True))
        return np.asarray(grown / grown.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of those chances."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny)))


def _counted(rows: Rows, meter: Meter, several: int) -> tuple[Floats, float]:
    """About how many units are in each class, none of them fewer than noise can hide, and in all."""
    target = rows.target
    assert target is not None

    lines = ((place, (target[place, None] == np.arange(several)) * 2.0**20) for place in rows.slices())
    noisy = meter.noisy(averages(rows, lines, several, Fraction(1)), _COUNTING)
    noise = meter.sigma(1, _COUNTING)
    return np.maximum(noisy, noise), float(max(noisy.sum(), 2 * noise))


def _residuals(rows: Rows, several: int) -> Any:
    target = rows.target
    assert target is not None
    whole = 2.0**RESIDUAL_BITS

    def two(place: slice, margins: Floats) -> Floats:
        found = logistic(margins)
        found -= target[place, None] * whole
        return found

    def more(place: slice, margins: Floats) -> Floats:
        return np.asarray(chances(margins) - (target[place, None] == np.arange(several)) * whole)

    return two if several == 2 else more


def _descended(near: Field, weights: Floats, found: Any, steps: int, share: Fraction) -> Floats:
    """The average of the later half of some steps through a matrix that bounds the curvature."""
    lines = weights.shape[1]
    # A residual of two classes is one number; of more it is a vector whose numbers add up to 0.
    flatness, longer = (4.0, 1.0) if lines == 1 else (2.0, np.sqrt(2))
    length = _length(near) * longer
    speed, later = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(steps):
        slope = near.gradient(weights, found, length, share)
        if lines > 1:
            slope = slope - slope.mean(axis=1, keepdims=True)
        speed = _MOMENTUM * speed + flatness * near.curvature.solve(slope)
        weights = weights - near.rate * speed
        if step >= steps // 2:
            later += weights
    return later / (steps - steps // 2)


def _newton(near: Field, weights: Floats, found: Any) -> tuple[Floats, Floats, Curvature]:
    """Newton's steps, the covariance of their average, and the curvature that they went through."""
    share = _REST / (_FIRST + _LAST + 1)
    weights = _descended(near, weights, found, _FIRST, share)

    def weigh(_: slice, margins: Floats) -> Floats:
        chance = logistic(margins) * 2.0**-RESIDUAL_BITS
        return 4 * chance * (1 - chance)

    bent = near.bent(weights, weigh, share)
    length, later = near.curvature.longest, np.zeros_like(weights)
    for step in range(_LAST):
        slope = near.gradient(weights, found, length, share)
        weights = weights - near.held(4 * bent.solve(slope), _FARTHEST)
        if step >= _LAST - 2:
            later += weights / 2
    noise = bent.matrix / 4 / near.count + np.eye(len(weights)) * near.noise(length, share) ** 2 / 2
    return later, 16 * bent.solve(bent.solve(noise).T), bent


def _length(near: Field) -> float:
    """What gradients are cut to; at most as far as any goes: a residual is at most 1, and rows are held."""
    share = max(float(np.sqrt(near.plenty)) / 16, _SHORTEST)
    return min(share * near.standard.length, near.curvature.longest)


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    rng = simulation(0)
    few, labels = rng.uniform(-1, 1, (40, 2)), rng.integers(0, 3, 40)
    far = np.vstack([few, [[1.0, -1.0]]])
    return (
        Example(
            "logistic: a row at the corner",
            lambda: LogisticRegression(epsilon=1, delta="1e-5", bounds=(-1, 1), classes=[0, 1]),
            Given(few, labels % 2),
            Given(far, np.append(labels % 2, 1)),
        ),
        Example(
            "logistic: three classes, somebody with many rows",
            lambda: LogisticRegression(epsilon=2, delta="1e-5", bounds=(-1, 1), classes=[0, 1, 2]),
            Given(few, labels, units=np.arange(40)),
            Given(
                np.vstack([few, np.ones((5, 2))]),
                np.append(labels, [2] * 5),
                units=np.append(np.arange(40), [40] * 5),
            ),
        ),
    )
