"""`Moments`: means, covariances and correlations of all columns at once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.learn._core.meter import Meter
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import matrix, moments
from sfumato.learn.base import Learned, PrivateEstimator
from sfumato.learn.examples import Example, Given
from sfumato.numeric.exact import Rational

__all__ = ["Moments"]

Floats: TypeAlias = NDArray[np.float64]


class Moments(PrivateEstimator):
    """Means, covariances and correlations of all columns, from one noisy matrix of second moments.

    Attributes:
        count_: About how many rows there are.
        mean_: Of each coordinate, in its column's own scale; a category's is its share of the rows.
        covariance_: Of each pair; the nearest matrix that can be one.
        correlation_: Of each pair, between −1 and 1; 0 beside a column without a spread that can be seen.

    Privacy:
        Claim: that of `PrivateEstimator`: one Gaussian measurement of `sums.moments`.
    """

    signed = True

    def __init__(
        self, epsilon: Rational | None = None, delta: Rational | None = None, bounds: Any = None
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        return {"moments": matrix(meter.noisy(moments(rows), 1), rows.design.width)}

    def _set(self, learned: Learned) -> None:
        whole = learned["moments"]
        self.count_ = max(1.0, float(whole[-1, -1]))
        means = np.clip(whole[-1, :-1] / self.count_, -1, 1)
        spread = _possible(whole[:-1, :-1] / self.count_ - np.outer(means, means))
        slopes, start = self.design_.own_scale(np.vstack([np.eye(len(means)), np.zeros(len(means))]))
        # From a coordinate back to the column's own scale: the other way round than weights go.
        rates = np.diag(slopes)
        widths = np.divide(1.0, rates, out=np.zeros_like(rates), where=rates > 0)
        self.mean_ = (means - start) * widths + np.where(rates > 0, 0.0, -start)
        self.covariance_ = spread * np.outer(widths, widths)
        deviations = np.sqrt(np.diag(spread))
        by = np.outer(deviations, deviations)
        related = np.divide(spread, by, out=np.zeros_like(spread), where=by > 0)
        self.correlation_ = np.clip(related, -1, 1)
        np.fill_diagonal(self.correlation_, 1.0)


def _possible(spread: Floats) -> Floats:
    """The nearest matrix without negative directions."""
    values, directions = np.linalg.eigh((spread + spread.T) / 2)
    return np.asarray((directions * np.maximum(values, 0)) @ directions.T)


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few = np.zeros((3, 2))
    return (
        Example(
            "moments: a row at the corner",
            lambda: Moments(epsilon=1, delta="1e-5", bounds=(-1, 1)),
            Given(few),
            Given(np.vstack([few, [[1.0, 1.0]]])),
        ),
        Example(
            "moments: somebody with many rows",
            lambda: Moments(epsilon=2, delta="1e-5", bounds=(0, 1)),
            Given(few, units=[0, 1, 2]),
            Given(np.vstack([few, np.ones((5, 2))]), units=[0, 1, 2, 3, 3, 3, 3, 3]),
        ),
        Example(
            "moments: bounds that are bought",
            lambda: Moments(epsilon=4, delta="1e-5", bounds="auto"),
            Given(np.full((20, 2), 3.0)),
            Given(np.vstack([np.full((20, 2), 3.0), [[1e6, -1e6]]])),
        ),
    )
