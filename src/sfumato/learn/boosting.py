"""Gradient boosting: shapes of columns, and of pairs of them, boosted in private rounds over bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Number
from sfumato.learn._core.design import UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._shapes.additive import TARGET_SHARE, Additive, column_codes, places_of
from sfumato.learn._shapes.bins import codes_of, declared_cuts, own_edges
from sfumato.learn._shapes.outcomes import Classes, Numbers, Outcome, chances
from sfumato.learn._shapes.tallies import Tallies
from sfumato.learn.base import Learned, PrivateEstimator
from sfumato.learn.examples import Example, Given
from sfumato.learn.kinds import PrivateClassifier, PrivateRegressor
from sfumato.numeric.exact import Rational

__all__ = [
    "ColumnShape",
    "GradientBoosting",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "PairShape",
]

Floats: TypeAlias = NDArray[np.float64]

_MOST_COLUMNS = 1023
_MOST_ROUNDS = 1000


class ColumnShape(NamedTuple):
    """What one column adds to the score.

    Attributes:
        name: The column's.
        edges: Where bins of a number begin, but the first; None: it has categories.
        categories: The categories; None: it is a number.
        scores: What each bin adds, one column an output; the last line of categories is for all others.
    """

    name: str
    edges: Floats | None
    categories: tuple[Any, ...] | None
    scores: Floats


class PairShape(NamedTuple):
    """What two columns add to the score together, beyond what each adds.

    Attributes:
        names: Of both.
        groups: For each, the group of each of its bins.
        scores: By the groups of both; the last axis is the output.
    """

    names: tuple[str, str]
    groups: tuple[NDArray[np.int64], NDArray[np.int64]]
    scores: Floats


class _Boosting(PrivateEstimator):
    """What boosted classifiers and regressors share."""

    bins: Any
    interactions: Any
    rounds: int

    def _check(self) -> None:
        super()._check()
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int | np.integer):
            raise InvalidParameter("rounds must be a whole number.")
        if not 1 <= self.rounds <= _MOST_ROUNDS:
            raise InvalidParameter(f"rounds must be 1 to {_MOST_ROUNDS}.")
        if isinstance(self.interactions, int | np.integer) and not 0 <= self.interactions <= 100:
            raise InvalidParameter("interactions must be 0 to 100, or a list of pairs of columns.")

    def _design_of(self, bounds: Any, names: list[str]) -> Design:
        design = super()._design_of(bounds, names)
        if len(design.columns) > _MOST_COLUMNS:
            raise InvalidParameter(f"Boosting takes at most {_MOST_COLUMNS} columns.")
        declared_cuts(self.bins, design.columns)
        self._declared_pairs(design)
        return design

    def _declared_pairs(self, design: Design) -> list[tuple[int, int]] | None:
        """The declared pairs as numbers of columns; None: they are to be found."""
        given = self.interactions
        if isinstance(given, int | np.integer) and not isinstance(given, bool):
            return None
        places = {column.name: at for at, column in enumerate(design.columns)}
        found = list[tuple[int, int]]()
        for pair in given if isinstance(given, Sequence) and not isinstance(given, str) else [given]:
            if not isinstance(pair, Sequence) or len(pair) != 2 or pair[0] == pair[1]:
                raise InvalidParameter("interactions must be a number, or a list of pairs of columns.")
            if any(name not in places for name in pair):
                raise InvalidParameter("interactions names a column that there is not.")
            one, other = sorted((places[pair[0]], places[pair[1]]))
            found.append((one, other))
        return list(dict.fromkeys(found))

    def _outcome(self, rows: Rows, tallies: Tallies, meter: Meter) -> Outcome:
        raise NotImplementedError

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        tallies = Tallies(rows)
        outcome = self._outcome(rows, tallies, meter)
        fit = Additive(rows, tallies, outcome, meter, 1 - TARGET_SHARE)
        fit.bin_columns(declared_cuts(self.bins, rows.design.columns))
        pairs = self._declared_pairs(rows.design)
        most = int(self.interactions) if pairs is None else len(pairs)
        for past in range(self.rounds):
            if past == self.rounds // 2:
                fit.add_pairs(most, pairs)
            fit.sweep(self.rounds - past, self.rounds)
        return fit.released(most)

    def _set(self, learned: Learned) -> None:
        self.intercept_ = np.array(learned["start"])
        self._longest = float(learned["longest"])
        self.shapes_ = list[ColumnShape]()
        self._tables = list[NDArray[np.uint16] | None]()
        sizes = list[int]()
        for at, column in enumerate(self.design_.columns):
            if isinstance(column, Number):
                cuts = learned["cuts"][at]
                cuts = cuts[cuts <= UNIT]
                edges, categories, size = own_edges(column, cuts), None, len(cuts) + 1
                self._tables.append(codes_of(cuts))
            else:
                edges, categories, size = None, column.values, len(column.values) + 1
                self._tables.append(None)
            scores = np.array(learned["scores"][at, :size])
            self.shapes_.append(ColumnShape(column.name, edges, categories, scores))
            sizes.append(size)
        self.bins_ = {
            shape.name: shape.categories if shape.edges is None else shape.edges for shape in self.shapes_
        }
        self.interactions_ = list[PairShape]()
        self._pairs = [(int(one), int(other)) for one, other in learned["pairs"] if one >= 0]
        for (one, other), table in zip(self._pairs, learned["crossed"], strict=False):
            groups = tuple(np.array(learned["groups"][each, : sizes[each]]) for each in (one, other))
            names = (self.shapes_[one].name, self.shapes_[other].name)
            self.interactions_.append(PairShape(names, (groups[0], groups[1]), np.array(table)))

    def _scores(self, X: Any) -> Floats:
        """The score of each row, one column an output."""
        check_is_fitted(self, "design_")
        design, columns = self._columns(X, reset=False)
        integers = design.integers(columns)
        places = places_of(design)
        codes = [
            column_codes(integers[:, place], table) for place, table in zip(places, self._tables, strict=True)
        ]
        scores = np.tile(self.intercept_, (len(integers), 1))
        for shape, code in zip(self.shapes_, codes, strict=True):
            scores += shape.scores[code]
        for pair, (one, other) in zip(self.interactions_, self._pairs, strict=True):
            scores += pair.scores[pair.groups[0][codes[one]], pair.groups[1][codes[other]]]
        return scores


class GradientBoostingClassifier(PrivateClassifier, _Boosting):
    """Boosted shapes of columns, and of pairs of columns, that predict a row's class.

    The score is a sum of shapes: for each column a step function over its bins, for some pairs a table.
    Bins of numbers are declared, or made from a noisy histogram bought with a tenth of the price. Rounds go
    through all shapes, each fitted to noisy sums of residuals; pairs are found from noisy sums halfway.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise.
        bounds: What is public about each column: see `PrivateEstimator`.
        classes: All classes.
        bins: None: bought; a number of equally wide bins for all columns of numbers; or a dictionary by
            column of such numbers or of edges, where columns that are not named are bought.
        interactions: How many pairs of columns may get a table, found from noisy sums; or a list of pairs.
        rounds: How often each shape is fitted.

    Attributes:
        classes_: The classes, sorted.
        intercept_: The score that all rows begin at, one an output.
        bins_: By column: where bins begin, or the categories.
        shapes_: What each column adds to the score, as `ColumnShape`s.
        interactions_: What pairs add, as `PairShape`s.

    Privacy:
        Claim: that of `PrivateEstimator`: `Tallies` of counts and of residuals that are looked up and cut
        for each row by itself, each with noise from one meter; a unit's rows share the weight of one.
    """

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        classes: Any = None,
        *,
        bins: Any = None,
        interactions: Any = 8,
        rounds: int = 8,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes
        self.bins, self.interactions, self.rounds = bins, interactions, rounds

    def _outcome(self, rows: Rows, tallies: Tallies, meter: Meter) -> Outcome:
        target = np.asarray(rows.target, np.uint16)
        return Classes.bought(len(self._listed()), tallies, target, meter, TARGET_SHARE)

    def _set(self, learned: Learned) -> None:
        self._set_classes()
        super()._set(learned)

    def decision_function(self, X: Any) -> Floats:
        """The log-odds of the second of two classes, or of each of several against the rest."""
        chance = chances(self._scores(X), self._longest)
        held = np.clip(chance, 1e-12, 1 - 1e-12)
        odds = np.log(held) - np.log1p(-held)
        return np.asarray(odds[:, 0] if len(self.classes_) == 2 else odds)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`."""
        chance = chances(self._scores(X), self._longest)
        if len(self.classes_) == 2:
            return np.hstack([1 - chance, chance])
        return np.asarray(chance / chance.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])


GradientBoosting = GradientBoostingClassifier


class GradientBoostingRegressor(PrivateRegressor, _Boosting):
    """Boosted shapes of columns, and of pairs of columns, that predict a number.

    As `GradientBoostingClassifier`, with squared errors. How far a residual may reach is found from a noisy
    histogram of the target: what is farther counts as that far.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise.
        bounds: What is public about each column: see `PrivateEstimator`.
        target_bounds: What the target is clamped to.
        bins: See `GradientBoostingClassifier`.
        interactions: Likewise.
        rounds: Likewise.

    Attributes:
        intercept_: The prediction that all rows begin at, as a share of the way between the target's bounds.
        bins_: By column: where bins begin, or the categories.
        shapes_: What each column adds, as `ColumnShape`s in the same scale.
        interactions_: What pairs add, as `PairShape`s.

    Privacy:
        Claim: that of `PrivateEstimator`: `Tallies` of counts and of residuals that are cut for each row by
        itself, each with noise from one meter; a unit's rows share the weight of one.
    """

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        target_bounds: Any = None,
        *,
        bins: Any = None,
        interactions: Any = 8,
        rounds: int = 8,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.target_bounds = epsilon, delta, bounds, target_bounds
        self.bins, self.interactions, self.rounds = bins, interactions, rounds

    def _outcome(self, rows: Rows, tallies: Tallies, meter: Meter) -> Outcome:
        return Numbers.bought(tallies, np.asarray(rows.target), meter, TARGET_SHARE)

    def predict(self, X: Any) -> Floats:
        """The number that is expected of each row, within the target's bounds."""
        column = self._target_column()
        share = np.clip(self._scores(X)[:, 0], 0, 1)
        return np.asarray(float(column.lower) + share * float(column.upper - column.lower))


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few, labels = np.full((4, 2), 0.25), [0, 0, 1, 0]
    one_more = np.vstack([few, [[0.75, 0.75]]])

    def two(**given: Any) -> GradientBoostingClassifier:
        return GradientBoostingClassifier(2, "1e-5", (0, 1), [0, 1], rounds=1, interactions=0, **given)

    return (
        Example(
            "boosting: a row of the other class",
            lambda: two(bins=2),
            Given(few, labels),
            Given(one_more, [*labels, 1]),
        ),
        Example(
            "boosting: bins bought",
            lambda: two(),
            Given(few, labels),
            Given(one_more, [*labels, 1]),
        ),
        Example(
            "boosting: somebody with many rows, and a pair",
            lambda: GradientBoostingClassifier(
                2, "1e-5", (0, 1), [0, 1, 2], bins=3, rounds=2, interactions=[("x0", "x1")]
            ),
            Given(few, labels, [0, 1, 2, 3]),
            Given(np.vstack([few, np.ones((5, 2))]), [*labels, 2, 2, 2, 1, 2], [0, 1, 2, 3, 4, 4, 4, 4, 4]),
        ),
        Example(
            "boosting: a number at its bound",
            lambda: GradientBoostingRegressor(2, "1e-5", (0, 1), (0, 1), bins=2, rounds=2),
            Given(few, [0.1, 0.2, 0.1, 0.4]),
            Given(one_more, [0.1, 0.2, 0.1, 0.4, 1.0]),
        ),
    )
