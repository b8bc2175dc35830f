"""`PoissonRegression`: expected counts, by a few noisy steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import RESIDUAL_BITS
from sfumato.learn._weights.curves import decay
from sfumato.learn._weights.descent import WIDEST, Field, field
from sfumato.learn._weights.told import Summarised
from sfumato.learn.base import Learned
from sfumato.learn.examples import Example, Given
from sfumato.learn.kinds import PrivateRegressor
from sfumato.learn.linear import counted, spread_of
from sfumato.random import simulation

__all__ = ["PoissonRegression"]

Floats: TypeAlias = NDArray[np.float64]

_COUNTING, _SCALING, _BENDING = Fraction(4, 100), Fraction(6, 100), Fraction(15, 100)
_SPREADING = Fraction(1, 100)
_FIRST, _LAST = 4, 4
_EACH = (1 - _COUNTING - _SCALING - 2 * _BENDING - (_FIRST + _LAST) * _SPREADING) / (_FIRST + _LAST)
_HEAVIEST = 4.0  # rows of which more than so many times the mean is expected weigh no more
_FARTHEST = 0.5  # what a step may move the logarithm of what is expected by
_SHORTEST, _LONGEST = 1.0, 12.0


class PoissonRegression(Summarised, PrivateRegressor):
    """Counts whose logarithm is expected to be linear in the columns.

    Four careful steps through the second moments of the columns, then four of Newton's through the curvature
    that is measured there; the weights are the average of the last two. What is expected is never above the
    upper bound of the target.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise.
        bounds: What is public about each column.
        target_bounds: What the counts are clamped to: (0, the most that anyone has).

    Attributes:
        coef_: Weights in the columns' own scale; a column of categories has one for each of them
            (`coefficient_names_`).
        intercept_: What is added.

    Privacy:
        Claim: that of `PrivateEstimator`. Proof: `averages` of the target, `means`, `curvature`, averages of
        residuals' squares, and `gradients` cut to a length; shares, lengths and steps follow from noisy
        answers alone.
    """

    widest = WIDEST

    def _check(self) -> None:
        super()._check()
        if self._target_unbought() is not None:
            raise InvalidParameter(
                "Counts need declared bounds: target_bounds=(0, the most that anyone has)."
            )
        column = self._target_column()
        if column.lower != 0 or column.upper <= 0:
            raise InvalidParameter("Counts begin at 0: give target_bounds=(0, the most that anyone has).")

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        mean, variance, count = counted(rows, meter, _COUNTING)
        near = field(rows, meter, count, scaling=_SCALING, bending=_BENDING)
        mean = max(mean, min(1.0, 1 / count))
        weights = np.zeros((near.standard.width, 1))
        weights[-1] = np.log(mean)
        weights = _descended(near, weights, mean, float(np.sqrt(variance)))
        return {"weights": near.back(rows.design, weights)[:, 0]}

    def _set(self, learned: Learned) -> None:
        self._most = float(self._target_column().upper)
        self._weights = np.array(learned["weights"])
        self._weights[-1] += np.log(self._most)
        slopes, start = self.design_.own_scale(self._weights)
        self.coef_, self.intercept_ = slopes, float(start)
        self.coefficient_names_ = [coordinate.name for coordinate in self.design_.coordinates]

    def predict(self, X: Any) -> Floats:
        """The expected count of each row."""
        return np.asarray(np.exp(np.minimum(self._coordinates(X) @ self._weights, np.log(self._most))))


def _descended(near: Field, weights: Floats, mean: float, spread: float) -> Floats:
    """The average of the last two steps."""
    target = near.rows.target
    assert target is not None
    heaviest = min(1.0, _HEAVIEST * mean)

    def found(place: slice, margins: Floats) -> Floats:
        return np.asarray(decay(margins) - target[place, None] * 2.0**6)

    def weigh(_: slice, margins: Floats) -> Floats:
        return np.minimum(decay(margins) * (2.0**-RESIDUAL_BITS / heaviest), 1.0)

    bent, heavy = near.curvature, mean
    few = float(np.clip(np.sqrt(near.plenty) / 6, _SHORTEST, _LONGEST))
    later = np.zeros_like(weights)
    for step in range(_FIRST + _LAST):
        spread = spread_of(near, weights, found, spread, _SPREADING, most=spread)
        if step == _FIRST:
            bent, heavy = near.bent(weights, weigh, _BENDING), heaviest
        slope = near.gradient(weights, found, few * near.standard.length * spread, _EACH)
        weights = weights - near.held(near.rate * bent.solve(slope) / heavy, _FARTHEST)
        if step >= _FIRST + _LAST - 2:
            later += weights / 2
    return later


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few = simulation(0).uniform(-1, 1, (40, 2))
    counts = np.arange(40) % 4
    return (
        Example(
            "poisson: a row far off",
            lambda: PoissonRegression(epsilon=1, delta="1e-5", bounds=(-1, 1), target_bounds=(0, 9)),
            Given(few, counts),
            Given(np.vstack([few, [[1.0, -1.0]]]), np.append(counts, 9)),
        ),
    )
