"""`Moments`: means, covariances and correlations of all columns at once."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sfumato import render
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Number
from sfumato.learn._core.design import Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import matrix, moments
from sfumato.learn.base import Learned, PrivateEstimator
from sfumato.learn.examples import Example, Given
from sfumato.numeric.exact import Rational

__all__ = ["Moments", "Scales", "Spread", "is_signed", "names_out"]

Floats: TypeAlias = NDArray[np.float64]

_CLEAR = 15
"""Correlations have an interval where both variances are this many times their own noise: coverage by
simulation is in the tests."""
_SEEN = 2
"""A column whose variance is less than so many times its own noise is taken to have none."""


class Scales(NamedTuple):
    """From coordinates to the columns' own numbers: own = coordinate·width + start."""

    width: Floats
    start: Floats

    @classmethod
    def of(cls, design: Design) -> Self:
        """Those of a design's coordinates; a category's is its own, 0 or 1."""
        width, start = np.ones(len(design.coordinates)), np.zeros(len(design.coordinates))
        for at, coordinate in enumerate(design.coordinates):
            column = design.columns[coordinate.column]
            if isinstance(column, Number):
                signed = design.is_signed(coordinate.column)
                width[at] = float((column.upper - column.lower) / (1 + signed))
                start[at] = float(column.lower) + signed * width[at]
        return cls(width, start)


class Spread(NamedTuple):
    """What a noisy matrix of second moments says, in coordinates.

    Attributes:
        rows: About how many there are, at least 1.
        mean: Of each coordinate.
        covariance: Of each pair; noise may have made it none that can be.
        noise: The standard deviation of the noise of each second moment, over the count.
    """

    rows: float
    mean: Floats
    covariance: Floats
    noise: float

    @classmethod
    def of(cls, learned: Learned) -> Self:
        """From `moments` and its `noise`."""
        whole = learned["moments"]
        count = max(1.0, float(whole[-1, -1]))
        mean = np.clip(whole[-1, :-1] / count, -1, 1)
        return cls(
            count, mean, whole[:-1, :-1] / count - np.outer(mean, mean), float(learned["noise"]) / count
        )

    def variance_noise(self) -> Floats:
        """The standard deviation of the noise of each variance, to first order."""
        variance = np.diag(self.covariance)
        return np.asarray(self.noise * np.sqrt(1 + 4 * self.mean**2 + (self.mean**2 - variance) ** 2))


class Moments(PrivateEstimator):
    """Means, covariances and correlations of all columns, from one noisy matrix of second moments.

    Where somebody has so many rows that they are shortened, these count for less, in all figures alike.

    Attributes:
        count_: About how many rows there are.
        mean_: Of each coordinate, in its column's own scale; a category's is its share of the rows.
        covariance_: Of each pair; the nearest matrix that can be one.
        correlation_: Of each pair, between −1 and 1; 0 beside a column without a spread that can be seen.
        feature_names_out_: What the coordinates are, in order: `age`, `sex=F`.

    Privacy:
        Claim: that of `PrivateEstimator`: one Gaussian measurement of `sums.moments`. Intervals are computed
        from it and the public law of its noise.
    """

    signed = True

    def __init__(
        self, epsilon: Rational | None = None, delta: Rational | None = None, bounds: Any = None
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds

    def mean_interval(self, confidence: float = 0.95) -> Floats:
        """Where the means of the rows are, each with this confidence: a pair a coordinate.

        It is about the rows that were fitted, clamped to their bounds, not about a population that they are
        drawn from. Fieller's intervals: with M the exact sum and n the exact count, the noise of M − m·n has
        a variance of σ²(1 + m²) at the true mean m, so that coverage is exact up to rounding, at any n.
        Where the count cannot be told from none, the interval is all that the bounds allow.
        """
        check_is_fitted(self, "design_")
        z, (width, start) = _deviations(confidence), Scales.of(self.design_)
        sums, count = self._raw[-1, :-1], self._raw[-1, -1]
        noise = (z * self._noise) ** 2
        low, high = np.where(is_signed(self.design_), -1.0, 0.0), np.ones(len(sums))
        if count > 0 and count**2 > noise:
            middle = sums * count
            reach = np.sqrt(np.maximum(0, middle**2 - (count**2 - noise) * (sums**2 - noise)))
            ends = (middle - reach) / (count**2 - noise), (middle + reach) / (count**2 - noise)
            low, high = np.clip(ends[0], low, high), np.clip(ends[1], low, high)
        return np.column_stack([low * width + start, high * width + start])

    def correlation_interval(self, confidence: float = 0.95) -> Floats:
        """Where the correlations of the rows are, each with this confidence: a pair for each pair.

        About the rows that were fitted, as in `mean_interval`. To first order in the noise; −1 to 1 where
        a variance is less than 15 times its own noise, since no figure is honest there.
        """
        check_is_fitted(self, "design_")
        z, spread = _deviations(confidence), self._spread
        variance = np.diag(spread.covariance)
        clear = (
            (variance > 0)
            & (variance >= _CLEAR * spread.variance_noise())
            & (spread.rows > _CLEAR * self._noise)
        )
        deviations = np.sqrt(np.where(clear, variance, 1.0))
        related = spread.covariance / np.outer(deviations, deviations)
        half = z * _correlation_noise(spread, deviations, related)
        ends = np.clip(np.stack([related - half, related + half], axis=-1), -1, 1)
        ends[~np.logical_and.outer(clear, clear)] = (-1.0, 1.0)
        ends[np.arange(len(ends)), np.arange(len(ends))] = 1.0
        return np.asarray(ends)

    def summary(self, confidence: float = 0.95) -> str:
        """A table of the means with their intervals, and of the standard deviations."""
        ends = self.mean_interval(confidence)
        reach = np.abs(ends - self.mean_[:, None]).max(axis=1)
        columns = {
            "column": self.feature_names_out_.tolist(),
            "mean": [
                render.with_bar(*pair) for pair in zip(self.mean_.tolist(), reach.tolist(), strict=True)
            ],
            "deviation": [float(f"{value:.3g}") for value in np.sqrt(np.diag(self.covariance_))],
        }
        about = f"About {self.count_:,.0f} rows; the means are theirs, each with {confidence:.0%} confidence."
        return f"{render.text_table(columns)}\n{about}"

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        total = moments(rows)
        return {
            "moments": matrix(meter.noisy(total, 1), rows.design.width),
            "noise": np.array(meter.sigma(total.sensitivity, 1) * float(total.step)),
        }

    def _set(self, learned: Learned) -> None:
        self._raw, self._noise = learned["moments"], float(learned["noise"])
        self._spread = spread = Spread.of(learned)
        width, start = Scales.of(self.design_)
        possible = _possible(spread.covariance)
        self.count_ = spread.rows
        self.mean_ = spread.mean * width + start
        self.covariance_ = possible * np.outer(width, width)
        deviations = np.sqrt(np.diag(possible))
        seen = (np.diag(spread.covariance) > _SEEN * spread.variance_noise()) & (width > 0)
        by = np.outer(deviations, deviations) * np.outer(seen, seen)
        related = np.divide(possible, by, out=np.zeros_like(possible), where=by > 0)
        self.correlation_ = np.clip(related, -1, 1)
        np.fill_diagonal(self.correlation_, 1.0)
        self.feature_names_out_ = names_out(self.design_)


def names_out(design: Design) -> NDArray[np.object_]:
    """What the coordinates of a design are, in order."""
    return np.array([coordinate.name for coordinate in design.coordinates], dtype=object)


def is_signed(design: Design) -> NDArray[np.bool_]:
    """Which coordinates go from −1 to 1, and not from 0."""
    return np.array([design.is_signed(coordinate.column) for coordinate in design.coordinates])


def _deviations(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise InvalidParameter("confidence must lie between 0 and 1, such as 0.95.")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _correlation_noise(spread: Spread, deviations: Floats, related: Floats) -> Floats:
    """The standard deviation of each correlation's noise, to first order.

    A covariance moves by dS_ab − m_a·dM_b − m_b·dM_a + (m_a·m_b − c_ab)·dn over the count, and a correlation
    r by dc_ab/(s_a·s_b) − r/2·(dc_aa/s_a² + dc_bb/s_b²); all of dS, dM, dn have the same noise.
    """
    mean = spread.mean / deviations
    one = 1 / np.outer(deviations, deviations)
    own = related / 2 / deviations**2
    of_mean = (related * mean[:, None] - mean[None, :]) / deviations[:, None]
    of_count = np.outer(mean, mean) - related * (mean[:, None] ** 2 + mean[None, :] ** 2) / 2
    squares = one**2 + own**2 + own.T**2 + of_mean**2 + of_mean.T**2 + of_count**2
    return np.asarray(spread.noise * np.sqrt(squares))


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
