"""`KMeans`: centres of clusters, by a few rounds of sums and counts with noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._clusters.cells import MOST_COLUMNS, Cells, Lengths, cells, farthest, nearest, weights_of
from sfumato.learn._clusters.seeding import gathered
from sfumato.learn._core.design import UNIT
from sfumato.learn._core.habits import Refused
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import matrix, moments
from sfumato.learn.base import Learned, PrivateEstimator
from sfumato.learn.examples import Example, Given
from sfumato.learn.moments import Scales, Spread, is_signed
from sfumato.learn.pca import components, length_bound, lengths
from sfumato.numeric.exact import Rational, as_integer
from sfumato.random import Simulation, simulation

__all__ = ["KMeans"]

Floats: TypeAlias = NDArray[np.float64]

_LENGTHS, _SPREAD, _SEEDS = Fraction(2, 100), Fraction(18, 100), Fraction(30, 100)
"""The shares of what comes before the rounds: how long rows are, their second moments, the seeds' cells."""
_FEWEST, _MOST, _CLEAR = 2, 8, 4
"""The number of rounds: one for each 4 times that a cluster's sum is above its noise, within limits."""
_SETTLED = 0.01
"""Centres that moved by less than this part of the usual squared distance have one round more."""
_REACH = 1.5
"""Rows are shortened to so many times the usual distance from their centre."""
_COUNT, _SQUARE = 0.4, 0.12
"""What a count, and a squared distance, weigh beside a row's way from its centre: sums matter most (Su et al.
2016 give them the larger share, too), the more as a centre moves less."""
_SEEDS_EACH, _DRAWN = 10, 12
"""At most so many seeds a cluster, each of them the middle of about so many draws."""
_MOST_CLUSTERS = 1000


class KMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, PrivateEstimator):
    """Centres of clusters, in the columns' own scale: Lloyd's rounds on noisy sums and counts.

    A fifth of the price finds how far rows spread and in which directions. Ten seeds a cluster (fewer where
    the noise is large) are laid out along these, and three tenths give the mean and the number of the rows
    nearest to each; k-means on these few public points gives the first centres. The rest pays for 2 to 8
    rounds, the last of which has all that is left once centres hardly move. Each round measures, for the rows
    nearest to each centre, the sum of their ways from it and their number. Ways are shortened to 1.5 times
    the usual distance, as the round before saw it, so that noise is in proportion to the clusters and not to
    the declared box. A centre moves by what it can be sure of (James–Stein); one without rows stays.

    There is no `labels_`: which cluster a training row is in is a fact about that row. `predict` says it of
    rows of one's own.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise.
        bounds: What is public about each column.
        n_clusters: How many centres.
        random_state: Of the seeds' places, which are public; noise does not depend on it.

    Attributes:
        cluster_centers_: One a row, in the columns' own scale.
        n_iter_: How many rounds there were.

    Privacy:
        Claim: that of `PrivateEstimator`: one Gaussian measurement of `pca.lengths`, one of `sums.moments`,
        one of `cells` around the seeds, and one of `cells` a round; seeds, centres, lengths and the number of
        rounds follow from noisy answers before them and public parameters.
    """

    signed = True
    widest = MOST_COLUMNS

    labels_ = Refused(
        "There is no labels_: which cluster a training row is in is a fact about that row. Use predict on "
        "rows of your own."
    )

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        *,
        n_clusters: int = 8,
        random_state: int = 0,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.n_clusters, self.random_state = n_clusters, random_state

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The number of the centre that is nearest to each row, after clamping."""
        check_is_fitted(self, "design_")
        scales = Scales.of(self.design_)
        weights = weights_of(scales.width)
        return nearest(self._whole(X) * weights, np.rint(self._centres * weights * UNIT))

    def transform(self, X: Any) -> Floats:
        """The distance of each row from each centre, after clamping."""
        check_is_fitted(self, "design_")
        scales = Scales.of(self.design_)
        own = self._whole(X) / UNIT * scales.width + scales.start
        apart = [np.sqrt(((own - centre) ** 2).sum(axis=1)) for centre in self.cluster_centers_]
        return np.column_stack(apart)

    def fit_predict(self, X: Any, y: Any = None, **given: Any) -> NDArray[np.intp]:
        """Fits, and says which centre is nearest to each row; what it says is as private as the rows."""
        return self.fit(X, y, **given).predict(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters)

    def _whole(self, X: Any) -> Floats:
        return np.rint(self._coordinates(X)[:, : self._centres.shape[1]] * UNIT)

    def _check(self) -> None:
        super()._check()
        if as_integer(self.n_clusters, "n_clusters") > _MOST_CLUSTERS:
            raise InvalidParameter(f"n_clusters must be at most {_MOST_CLUSTERS}.")
        as_integer(self.random_state, "random_state", least=0)

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        lloyd = _Lloyd(rows, meter)
        spread = lloyd.spread()
        state = lloyd.seeded(spread, int(self.n_clusters), simulation(int(self.random_state)))
        left = 1 - _LENGTHS - _SPREAD - _SEEDS
        # How many times its noise the sum of a cluster of average size is, were there one round.
        clear = spread.rows / (meter.sigma(1, left) * self.n_clusters * math.sqrt(len(lloyd.weights)))
        rounds = int(min(max(_FEWEST, clear / _CLEAR), _MOST))
        each, done = left / rounds, 1
        while done < rounds and not state.settled:
            state, left, done = lloyd.moved(state, each), left - each, done + 1
        state = lloyd.moved(state, left)  # the last round has all that is left
        return {"centres": state.centres / lloyd.weights / UNIT, "rounds": np.array(done)}

    def _set(self, learned: Learned) -> None:
        scales = Scales.of(self.design_)
        self._centres, self.n_iter_ = learned["centres"], int(learned["rounds"])
        self.cluster_centers_ = self._centres * scales.width + scales.start


class _State(NamedTuple):
    """Centres in weighted coordinates.

    Attributes:
        centres: One a row.
        within: The usual squared distance of a row from the nearest of them.
        settled: Whether the last round hardly moved them.
    """

    centres: Floats
    within: float
    settled: bool = False


class _Measured(NamedTuple):
    """Noisy cells, what their noise is, and what ways were shortened to."""

    cells: Cells
    of_way: float
    of_count: float
    radius: float


class _Lloyd:
    """The steps of a fit; everything but `cells`, `lengths` and `moments` is public."""

    def __init__(self, rows: Rows, meter: Meter) -> None:
        self.rows, self.meter = rows, meter
        self.weights = weights_of(Scales.of(rows.design).width)
        self.lower, self.upper = (
            np.where(is_signed(rows.design), -1.0, 0.0) * self.weights * UNIT,
            self.weights * UNIT,
        )

    def spread(self) -> Spread:
        """How far, and in which directions, rows are spread."""
        bound = length_bound(self.meter.noisy(lengths(self.rows), _LENGTHS), self.rows.design.most)
        total = moments(self.rows, bound)
        noise = self.meter.sigma(total.sensitivity, _SPREAD) * float(total.step)
        noisy = matrix(self.meter.noisy(total, _SPREAD), self.rows.design.width)
        return Spread.of({"moments": noisy, "noise": np.array(noise)})

    def seeded(self, spread: Spread, number: int, draw: Simulation) -> _State:
        """The first centres, from the cells of many seeds around the mean of all rows."""
        variances, directions, clear = components(spread, self.weights * UNIT)
        # A mean that may be all noise is drawn to the middle of the box.
        middle = self.within_box(spread.mean * self.upper / (1 + (2 * spread.noise) ** 2))
        whole = min(max(float(variances.sum()), 1.0), float((self.upper**2).sum()) / 3)
        # So many clusters lie in so many directions; the others would only add noise.
        used = min(clear, number) or len(variances)
        kept, deviations = directions[:, :used], np.sqrt(np.maximum(variances[:used], 0))
        noise = self.meter.sigma(_weighing(_REACH * math.sqrt(whole)).sensitivity, _SEEDS)
        affordable = spread.rows * math.sqrt(whole / used) / (2 * noise)
        seeds = int(min(max(number, affordable), _SEEDS_EACH * number))
        drawn = draw.standard_normal((_DRAWN * seeds, used)) * deviations
        laid = gathered(drawn, np.ones(len(drawn)), seeds, draw, starts=1)
        measured = self.measured(self.within_box(middle + laid @ kept.T), whole, _SEEDS, around=middle)
        ways = _sure(measured, kept) @ kept.T
        counts = measured.cells.counts
        seen = counts > 2 * measured.of_count
        if not seen.any():
            seen, counts = np.full(seeds, True), np.ones(seeds)
        points, mass = middle + ways[seen], counts[seen]
        centres = gathered(points, mass, number, draw)
        apart = np.stack([((points - centre) ** 2).sum(axis=1) for centre in centres])
        between = ((centres[apart.argmin(axis=0)] - middle) ** 2).sum(axis=1)
        return _State(self.within_box(centres), _left(measured, float(mass @ between) / float(mass.sum())))

    def moved(self, state: _State, share: Fraction) -> _State:
        """The centres after one more round."""
        measured = self.measured(state.centres, state.within, share)
        ways = _sure(measured)
        counts = np.maximum(measured.cells.counts, 0.0)
        gained = float(counts @ (ways**2).sum(axis=1)) / max(1.0, float(counts.sum()))
        left = _left(measured, gained)
        return _State(self.within_box(state.centres + ways), left, settled=gained < _SETTLED * left)

    def measured(
        self, centres: Floats, within: float, share: Fraction, around: Floats | None = None
    ) -> _Measured:
        """The noisy cells of some centres; ways are from the centres, or from one point."""
        given = _weighing(min(_REACH * math.sqrt(within), farthest(self.weights)))
        total = cells(self.rows, self.weights, centres, given, around)
        noise = self.meter.sigma(given.sensitivity, share)
        found = Cells.of(self.meter.noisy(total, share), given, len(centres))
        return _Measured(found, noise, noise / given.number, given.radius)

    def within_box(self, points: Floats) -> Floats:
        """Points as whole numbers within the bounds."""
        return np.rint(np.clip(points, self.lower, self.upper))


def _weighing(radius: float) -> Lengths:
    whole = max(1, int(radius))
    return Lengths(whole, max(1, int(_COUNT * whole)), max(1, int(_SQUARE * whole)))


def _sure(measured: _Measured, kept: Floats | None = None) -> Floats:
    """The mean way of each cell as far as noise does not explain it, and no longer than a row's can be.

    Args:
        measured: The noisy cells.
        kept: Directions, as columns, in which the ways are told; None: all.
    """
    sums = measured.cells.ways if kept is None else measured.cells.ways @ kept
    squares = np.maximum((sums**2).sum(axis=1), 1e-300)
    # James and Stein's estimate, drawn to no way at all.
    factors = np.maximum(0.0, 1 - max(sums.shape[1] - 2, 0.5) * measured.of_way**2 / squares)
    means = sums * (factors / np.maximum(measured.cells.counts, 2 * measured.of_count))[:, None]
    long = np.maximum(np.sqrt((means**2).sum(axis=1)), 1e-300)
    return np.asarray(means * np.minimum(1.0, measured.radius / long)[:, None])


def _left(measured: _Measured, gained: float) -> float:
    """The usual squared distance from the new centres: what it was, without what they gained."""
    rows = max(1.0, float(np.maximum(measured.cells.counts, 0.0).sum()))
    square = min(max(measured.cells.squares / rows, 0.0), 1.0) * measured.radius**2
    return max(square - gained, square / 20, 1.0)


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few = np.array([[-0.5, -0.5], [-0.5, -0.5], [0.5, 0.5], [0.5, 0.5]])
    return (
        Example(
            "clusters: a row at the corner",
            lambda: KMeans(epsilon=1, delta="1e-5", bounds=(-1, 1), n_clusters=2),
            Given(few),
            Given(np.vstack([few, [[1.0, -1.0]]])),
        ),
        Example(
            "clusters: somebody with many rows",
            lambda: KMeans(epsilon=50, delta="1e-5", bounds=([0, 0], [1, 40]), n_clusters=2),
            Given(few, units=[0, 1, 2, 2]),
            Given(np.vstack([few, [[1.0, 40.0]] * 3, [[0.0, 40.0]] * 3]), units=[0, 1, 2, 2, *[3] * 6]),
        ),
    )
