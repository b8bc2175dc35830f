"""`LogisticRegression`: the chances of declared classes, by a few noisy steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Meter, Total
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import RESIDUAL_BITS
from sfumato.learn._weights.curves import chances, logistic
from sfumato.learn._weights.descent import WIDEST, Field, field
from sfumato.learn._weights.standard import Curvature, averages
from sfumato.learn._weights.trust import Trusted, trust_signs
from sfumato.learn.base import Learned
from sfumato.learn.examples import Example, Given
from sfumato.learn.kinds import PrivateClassifier
from sfumato.random import simulation

__all__ = ["LogisticRegression"]

Floats: TypeAlias = NDArray[np.float64]

_COUNTING, _SCALING, _BENDING = Fraction(3, 100), Fraction(7, 100), Fraction(15, 100)
_REST = 1 - _COUNTING - _SCALING - _BENDING
_STEPS = 12
_MOMENTUM = 0.5
_LINE = Fraction(5, 100)  # for the first gradient, where there is plenty
_SLOPE, _BENT = Fraction(6, 100), Fraction(8, 100)  # for each of the next, and for the curvature beside it
_MOST_STEPS = 4  # of these
_SHORT = 0.1  # a step that moves margins by no more leaves the curvature about as it was
_NOISY, _NOISIER = 2.5, 1.5  # so many times its noise, of one weight and on average, says little more
_LONG = 0.5  # where margins moved by more than this since the curvature was measured, it is not known
_OFF = 0.2  # what steps that have not settled may leave out, in standard errors
_SATURATED = 5 / 9  # no more than half as long again: from too far out, steps would lead farther
_PLENTY = 400.0  # from here on gradients are not cut at all, and their own curvature can be measured
_SHORTEST = 0.5  # in lengths of a row
_FARTHEST = 2.0  # what a step may move margins by on average
_FARTHER = 3.0  # and those that one column moves most


class LogisticRegression(Trusted, PrivateClassifier):
    """Logistic regression with two classes, or multinomial with more.

    Classes are counted, columns are standardised and their second moments measured, all with noise; then
    twelve steps go along noisy gradients, each through the inverse of a matrix that no curvature of the loss
    exceeds (Böhning and Lindsay 1988; for several classes Böhning 1992), and the weights are the average of
    the last six. With two classes and many rows, steps are Newton's: they begin where a first gradient leads
    if margins are normal, measure the curvature on the way until they are short, four times at most, and
    the last has most of the price. There is no penalty: where there is little to learn from, steps are short
    and the ridge of the matrix, the size of its noise, is large.

    Intervals and odds ratios are told under the conditions of `Trusted`, where the curvature at the weights
    themselves is at least 40 times its noise in every direction (which takes a few times as many rows where
    chances are near 0 or 1, or a class is rare), and where the last step was no longer than noise makes it.
    How often they hold over columns, correlations, chances, widths and prices is measured by
    `benchmarks/learn_coverage_logistic.py`.

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
        Claim: that of `PrivateEstimator`. Proof: counts of labels, `means`, `Bending`, and `gradients` cut
        to a length; shares, lengths and steps follow from noisy answers alone.
    """

    widest = WIDEST
    _unclear = (
        f"{Trusted._unclear}, or too few rows leave their class in doubt: one is rare, or nearly certain"
    )

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        several = len(self._listed())
        counts, count = _counted(rows, meter, several)
        near = field(rows, meter, count, scaling=_SCALING, bending=_BENDING)
        start = np.zeros((near.standard.width, several if several > 2 else 1))
        logs = np.log(counts / counts.sum())
        start[-1] = logs - logs.mean() if several > 2 else logs[1] - logs[0]
        found = _residuals(near.rows, several)
        enough = several == 2 and near.plenty >= _PLENTY
        fitted = _newton(near, start, found) if enough else _descended(near, start, found)
        return {
            "weights": near.back(rows.design, fitted.weights),
            "covariance": near.standard.back(near.standard.back(fitted.covariance).T),
            "signs": trust_signs(near, fitted.bent, near.plenty if enough else 0.0),
            "settled": np.array(fitted.settled),
        }

    def _set(self, learned: Learned) -> None:
        self._set_classes()
        self._weights = np.asarray(learned["weights"])
        slopes, start = self.design_.own_scale(self._weights)
        self.coef_, self.intercept_ = slopes.T.copy(), np.atleast_1d(start)
        self.coefficient_names_ = [coordinate.name for coordinate in self.design_.coordinates]
        self._trust(np.asarray(learned["covariance"]), learned["signs"])
        self._settled = bool(learned["settled"])

    def _refusal(self) -> str | None:
        if len(self.classes_) > 2:
            return "they are not worked out for more than two classes"
        refusal = super()._refusal()
        if refusal is None and not self._settled:
            return "steps were still long at the end, as where some column alone decides the class"
        return refusal

    def odds_ratios(self, level: float = 0.95) -> Floats:
        """The factor by which the odds of the second class grow per unit of a column, with an interval.

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
        """The probability of each class, one line for each row."""
        margins = self.decision_function(X)
        whole = np.column_stack([np.zeros_like(margins), margins]) if margins.ndim == 1 else margins
        grown = np.exp(whole - whole.max(axis=1, keepdims=True))
        return np.asarray(grown / grown.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of those probabilities."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny)))


def _counted(rows: Rows, meter: Meter, several: int) -> tuple[Floats, float]:
    """About how many units are in each class, none of them fewer than noise can hide, and in all.

    Privacy:
        Claim: adding or removing a unit moves the counts by at most 1 in L2. Proof: a row is in one class at
        most; where a unit has several, `averages`.
    """
    target = rows.target
    assert target is not None

    if rows.units is None:
        each = [np.count_nonzero(target == label) for label in range(several)]
        total = Total(np.array(each, np.int64), Fraction(1), Fraction(1))
    else:
        lines = ((place, (target[place, None] == np.arange(several)) * 2.0**20) for place in rows.slices())
        total = averages(rows, lines, several, Fraction(1))
    noisy = meter.noisy(total, _COUNTING)
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


class _Fitted(NamedTuple):
    """Weights of standardised coordinates, and what is known of them.

    Attributes:
        weights: A column for each line.
        covariance: Of what they are off by, of sampling and noise; zeros where it is not known.
        bent: The curvature that the last step went through.
        settled: Whether the last step was no longer than noise makes it, or so short that none would follow.
    """

    weights: Floats
    covariance: Floats
    bent: Curvature
    settled: bool


def _descended(near: Field, weights: Floats, found: Any) -> _Fitted:
    """The average of the later half of some steps through a matrix that bounds the curvature."""
    lines, share = weights.shape[1], _REST / _STEPS
    # A residual of two classes is one number; of more it is a vector whose numbers add up to 0.
    flatness, longer = (4.0, 1.0) if lines == 1 else (2.0, np.sqrt(2))
    length = _length(near) * longer
    speed, later = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(_STEPS):
        slope = near.gradient(weights, found, length, share)
        if lines > 1:
            slope = slope - slope.mean(axis=1, keepdims=True)
        speed = _MOMENTUM * speed + flatness * near.curvature.solve(slope)
        weights = weights - near.rate * speed
        if step >= _STEPS // 2:
            later += weights
    unknown = np.zeros((len(weights), len(weights)))
    return _Fitted(later / (_STEPS - _STEPS // 2), unknown, near.curvature, settled=False)


def _newton(near: Field, weights: Floats, found: Any) -> _Fitted:
    """Newton's steps: what a step is off by hardly matters after the next.

    So the first are cheap, as many as it takes until one is short, and the last has all that is left.
    """

    def weigh(_: slice, margins: Floats) -> Floats:
        chance = logistic(margins) * 2.0**-RESIDUAL_BITS
        return 4 * chance * (1 - chance)

    length, left = near.curvature.longest, _REST - _LINE
    weights = _as_if_normal(near, weights, near.gradient(weights, found, length, _LINE))
    noise, known = near.noise(length, _SLOPE), near.noise(length, _LINE)
    for _ in range(_MOST_STEPS):
        slope, bent = near.gradient_and_bent(weights, found, weigh, length, (_SLOPE, _BENT))
        step = _held(near, 4 * bent.solve(slope))
        weights, left, moved = weights - step, left - _SLOPE - _BENT, _moved(near, step).max()
        if _short(near, step) or not _beyond(near, step, bent, float(np.hypot(noise, known))).any():
            break
        known = noise
    last, slope = near.noise(length, left), near.gradient(weights, found, length, left)
    step = _held(near, 4 * bent.solve(slope))
    # The curvature is off by about as much as margins moved since, and what the last step is off by with it.
    off = min(moved, 1.0)
    through = 4 * bent.solve(np.eye(len(weights)))
    covariance = 4 * bent.inverse / near.count + (last**2 + (off * noise) ** 2) * through @ through
    beyond = _beyond(near, step, bent, float(np.hypot(noise, last)))
    errors = np.sqrt(np.append(np.diag(covariance), np.sum(covariance * near.curvature.matrix)))
    since = float(moved + _moved(near, step).max())
    settled = since <= _LONG and bool((beyond * since <= _OFF * errors).all())
    return _Fitted(weights - step, covariance, bent, settled)


def _moved(near: Field, step: Floats) -> Floats:
    """By how much each weight's step moves the margins that it moves most, and all of them on average.

    Longer rows than usual count less, and what is left of a column's variance tells how far they are.
    """
    left = np.sqrt(np.diag(near.curvature.matrix))
    reach = np.maximum(near.standard.reach, near.curvature.longest / left)
    reach[-1] = 1.0
    return np.asarray(np.append(np.abs(step[:, 0]) * reach, near.moved(step)))


def _short(near: Field, step: Floats) -> bool:
    """Whether a step moves margins by so little that the curvature stays about as it was."""
    most = float((np.abs(step[:, 0]) * near.standard.reach).max())
    return max(most, near.moved(step)) <= _SHORT


def _beyond(near: Field, step: Floats, bent: Curvature, noise: float) -> Floats:
    """How much longer a step is than noise makes it: of each weight, and on average over margins."""
    through = 4 * noise * bent.solve(np.eye(len(step)))
    each = np.sqrt(np.sum(through**2, axis=1))
    whole = np.sqrt(np.sum(through * (near.curvature.matrix @ through)))
    seen = np.append(np.abs(step[:, 0]), near.moved(step))
    return np.asarray(np.maximum(seen - np.append(_NOISY * each, _NOISIER * whole), 0))


def _as_if_normal(near: Field, weights: Floats, slope: Floats) -> Floats:
    """The weights that a gradient at no slopes would lead to if margins were normal.

    With a chance c overall and margins of spread s, the slope of the mean chance is about c·(1 − c)·k with
    k = 1/√(1 + π·s²/8) (MacKay 1992), and a gradient is that times second moments times weights (Stein).
    """
    chance = 1 / (1 + np.exp(-weights[-1]))
    step = -near.curvature.solve(slope) / (chance * (1 - chance))
    longer = 1 / np.sqrt(1 - min(near.moved(step) ** 2 * np.pi / 8, _SATURATED))
    return np.asarray(weights * longer + _held(near, step * longer))


def _held(near: Field, step: Floats) -> Floats:
    """A step, made shorter where it would lead so far that there is no curvature left."""
    most = float((np.abs(step[:, 0]) * near.standard.reach).max())
    return near.held(step * min(1.0, _FARTHER / most) if most > 0 else step, _FARTHEST)


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
