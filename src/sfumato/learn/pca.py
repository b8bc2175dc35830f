"""`PCA`: the directions in which the rows are spread the most."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.fits.meter import Meter, Total
from sfumato.learn._core.design import UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import matrix, moments
from sfumato.learn.base import Learned, PrivateEstimator
from sfumato.learn.examples import Example, Given
from sfumato.learn.moments import Scales, Spread
from sfumato.numeric.exact import Rational, as_integer

__all__ = ["LENGTHS", "PCA", "components", "length_bound", "lengths"]

Floats: TypeAlias = NDArray[np.float64]

LENGTHS = Fraction(1, 20)
"""The share that finds out how long rows are."""
_BEYOND = 0.02
"""About this part of the rows may be longer than what they are shortened to."""
_RUNGS = 24


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """The directions of the greatest spread, in the columns' own scale, from noisy second moments.

    A small share of the price finds out how long most rows are, as coordinates between −1 and 1; longer ones
    are shortened to that. The others pay for all second moments at once, whose noise is in proportion to it.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise.
        bounds: What is public about each column.
        n_components: How many directions are kept; None: all.

    Attributes:
        components_: A direction a row, of length 1, the greatest spread first.
        explained_variance_: The variance along each. Noise makes the largest variances of a matrix larger;
            this is taken away as far as the known level of the noise explains it. Directions that noise
            alone could show share what is left over of the variance evenly.
        explained_variance_ratio_: The same as parts of the variance of all columns together.
        clear_components_: How many of them stand out of the noise; the later ones are directions of chance.
        mean_: Of each coordinate, in its own scale.
        n_components_: How many directions are kept.

    Privacy:
        Claim: that of `PrivateEstimator`: one Gaussian measurement of `lengths`, and one of `sums.moments`
        with a bound that follows from it.
    """

    signed = True

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        *,
        n_components: int | None = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.n_components = n_components

    def transform(self, X: Any) -> Floats:
        """Rows as coordinates along the components; columns are clamped to their bounds first."""
        own = self._coordinates(X)[:, : len(self.mean_)] * self._scales.width + self._scales.start
        return np.asarray((own - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows with these coordinates along the components, in the columns' own scale."""
        check_is_fitted(self, "design_")
        places = np.asarray(X, dtype=np.float64)
        if places.ndim != 2 or places.shape[1] != self.n_components_:
            raise InvalidValue(f"X must have {self.n_components_} columns, one a component.")
        return np.asarray(places @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def _check(self) -> None:
        super()._check()
        if self.n_components is not None:
            as_integer(self.n_components, "n_components", least=1)

    def _design_of(self, bounds: Any, names: list[str]) -> Design:
        design = super()._design_of(bounds, names)
        most = len(design.coordinates)
        if self.n_components is not None and self.n_components > most:
            raise InvalidParameter(
                f"n_components={self.n_components} is too many: there are {most} coordinates."
            )
        return design

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        bound = length_bound(meter.noisy(lengths(rows), LENGTHS), rows.design.most)
        total = moments(rows, bound)
        share = 1 - LENGTHS
        return {
            "moments": matrix(meter.noisy(total, share), rows.design.width),
            "noise": np.array(meter.sigma(total.sensitivity, share) * float(total.step)),
        }

    def _set(self, learned: Learned) -> None:
        spread, self._scales = Spread.of(learned), Scales.of(self.design_)
        width, start = self._scales
        variances, directions, clear = components(spread, width)
        kept = len(variances) if self.n_components is None else self.n_components
        whole = float(variances.sum())
        self.n_components_, self.clear_components_ = kept, min(clear, kept)
        self.mean_, self.components_ = spread.mean * width + start, directions.T[:kept].copy()
        self.explained_variance_ = variances[:kept]
        self.explained_variance_ratio_ = variances[:kept] / whole if whole > 0 else np.zeros(kept)


def _ladder(most: int) -> list[Fraction]:
    """What rows may be shortened to: squares from 1 to the most there can be, in even ratios."""
    rungs = {Fraction(round(64 * most ** (at / _RUNGS)), 64) for at in range(_RUNGS + 1)}
    return sorted(rungs | {Fraction(most)})


def lengths(rows: Rows) -> Total:
    """How many units have squares that add up to how much, on the ladder.

    Privacy:
        Claim: adding or removing a unit moves one count by 1, since it is on one rung, by its own rows.
    """
    ends = [float(rung * UNIT**2) for rung in _ladder(rows.design.most)]
    squares = rows.squares()
    if rows.units is not None and len(rows):
        squares = np.add.reduceat(squares, np.flatnonzero(np.r_[True, np.diff(rows.units) != 0]))
    rungs = np.minimum(np.searchsorted(ends, squares), len(ends) - 1)
    return Total(np.bincount(rungs, minlength=len(ends)).astype(np.int64), Fraction(1), Fraction(1))


def length_bound(counts: Floats, most: int) -> Fraction:
    """The shortest rung that few are beyond, by noisy counts."""
    beyond = counts.sum() - np.cumsum(counts)
    return _ladder(most)[int(np.flatnonzero(np.r_[beyond[:-1] <= _BEYOND * counts.sum(), True])[0])]


def components(spread: Spread, width: Floats) -> tuple[Floats, Floats, int]:
    """The variances along all directions, the directions as columns, and how many stand out of the noise.

    Args:
        spread: In coordinates.
        width: What each coordinate is multiplied with first.
    """
    values, directions = np.linalg.eigh(spread.covariance * np.outer(width, width))
    order = np.argsort(values)[::-1]
    values, directions = values[order], directions[:, order]
    # As scikit-learn does: the largest weight of each direction is positive.
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(len(values))]
    directions = directions * np.where(largest < 0, -1.0, 1.0)
    variances, clear = _corrected(values, _noise_along(spread, width, directions))
    return variances, directions, clear


def _noise_along(spread: Spread, width: Floats, directions: Floats) -> Floats:
    """How far the noise moves each direction, ‖N·u‖, by the mean of its square, to first order.

    In coordinates a covariance has the noise dS − m·dMᵀ − dM·mᵀ + (m·mᵀ − C)·dn, over the count.
    """
    turned = width[:, None] * directions
    along = spread.mean @ turned
    of_count = np.outer(spread.mean, along) - spread.covariance @ turned
    lengths = np.einsum("ij,ij->j", turned, turned)
    each = (
        np.outer(1 + spread.mean**2, lengths)
        + along**2
        + 2 * np.outer(spread.mean, along) * turned
        + of_count**2
    )
    # The part along u itself moves its variance both ways, and is no bias.
    others = (len(width) - 1) / len(width)
    return np.asarray(spread.noise * np.sqrt(others * (width[:, None] ** 2 * each).sum(axis=0)))


def _corrected(values: Floats, noise: Floats) -> tuple[Floats, int]:
    """Variances without what noise adds to them, and how many stand out of it.

    A variance v beside noise of length t shows as v + t²/v where v > t, and is hidden among noise up to 2t
    otherwise (Benaych-Georges, Nadakuditi 2011, Thm. 2.1). The sum of all has no such bias.
    """
    clear = int(np.cumprod(values > 2 * noise).sum())
    shown = values[:clear]
    found = (shown + np.sqrt(np.maximum(0, shown**2 - 4 * noise[:clear] ** 2))) / 2
    found = np.minimum.accumulate(found)
    hidden = len(values) - clear
    rest = max(0.0, float(values.sum() - found.sum())) / max(1, hidden)
    rest = min(rest, float(found[-1])) if clear else rest
    return np.concatenate([found, np.full(hidden, rest)]), clear


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few = np.full((4, 2), 0.25)
    return (
        Example(
            "components: a row at the corner",
            lambda: PCA(epsilon=1, delta="1e-5", bounds=(-1, 1)),
            Given(few),
            Given(np.vstack([few, [[1.0, -1.0]]])),
        ),
        Example(
            "components: somebody with many rows",
            lambda: PCA(epsilon=3, delta="1e-5", bounds=(0, 1), n_components=1),
            Given(few, units=[0, 1, 2, 2]),
            Given(np.vstack([few, np.ones((6, 2))]), units=[0, 1, 2, 2, *[3] * 6]),
        ),
    )
