"""Choosing between models at the price that the choice has: `RandomSearch`, `HoldoutSearch`."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter, price
from sfumato.games import ModelSelection, RandomStopping
from sfumato.learn._choosing.prices import stopping_for
from sfumato.learn._choosing.scores import goodness, scoring_of, share_of
from sfumato.learn._choosing.trials import (
    Fitted,
    Given,
    adopt,
    candidates_of,
    fitted,
    held_out,
    model_of,
    records_of,
    refuse_session,
)
from sfumato.learn._core.design import UNIT
from sfumato.learn._core.habits import names_there
from sfumato.learn._core.records import Records
from sfumato.learn.base import PrivateEstimator
from sfumato.learn.examples import Search, flat
from sfumato.learn.linear import Ridge
from sfumato.loss import GaussianLoss, PrivacyLoss, compose
from sfumato.loss.parallel import parallel
from sfumato.mechanisms import Laplace
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_fraction, positive, probability, show

__all__ = ["HoldoutSearch", "RandomSearch", "SearchQuote"]


@dataclass(frozen=True, slots=True, repr=False)
class SearchQuote:
    """What a search will cost, before anything is read.

    Attributes:
        epsilon: The price of the whole.
        delta: Likewise.
        loss: Its curve.
        run: What one fit gets of it.
        words: All that in a sentence or two.
    """

    epsilon: Fraction
    delta: Fraction
    loss: PrivacyLoss
    run: GaussianLoss
    words: str

    def __str__(self) -> str:
        """The words."""
        return textwrap.fill(self.words, 80)

    def __repr__(self) -> str:
        return str(self)


class Chosen(NamedTuple):
    """The candidate that was chosen, with its model and its noisy score."""

    at: int
    score: float
    fitted: Fitted


def _best_can(name: str) -> Callable[[Any], bool]:
    def can(search: _Search) -> bool:
        model = getattr(search, "best_estimator_", search.estimator)
        return hasattr(model, name)

    return can


class _Search(MetaEstimatorMixin, BaseEstimator):
    """What both searches share: candidates, parts of the rows, and the chosen model's answers."""

    estimator: PrivateEstimator
    candidates: Any
    epsilon: Rational | None
    delta: Rational | None
    holdout: Rational
    scoring: str | None

    @property
    def loss(self) -> PrivacyLoss:
        """What the whole search costs."""
        raise NotImplementedError

    def __dir__(self) -> list[str]:
        """The names that there are, also of a search that has no price yet."""
        return names_there(self)

    def quote(self) -> SearchQuote:
        """What the whole search costs, in words too: free, and nothing is read."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, units: Any = None, target: Any = None) -> Self:
        """Learn and choose on arrays or a frame.

        Args:
            X: One row a record: an array, or an Arrow, pandas or Polars frame.
            y: What is to be learned, one a row.
            units: Whose row each is, where somebody has several: one id a row.
            target: Belongs to a fit on a session, which is refused here.

        Raises:
            InvalidParameter: for a session, and for declarations that are missing or contradict each other;
                nothing was read.
            InvalidValue: for what cannot be learned from.
        """
        refuse_session(X)
        if target is not None:
            raise InvalidParameter("target goes with a session, which no search takes: fit(X, y).")
        given, scoring = self._checked()
        first = model_of(self.estimator, given[0])
        records = records_of(first, X, y, units)
        self._take(given, self._choose(given, scoring, records), first)
        return self

    def _checked(self) -> tuple[tuple[Given, ...], str]:
        """All candidates, each of them possible, and the score; whatever can be refused is refused here."""
        given = candidates_of(self.candidates)
        models = [model_of(self.estimator, one) for one in given]
        share = as_fraction(self.holdout, "holdout")
        if not 0 < share < 1:
            raise InvalidParameter("holdout must lie between 0 and 1: the part that models are scored on.")
        self._prices()
        return given, scoring_of(models[0], self.scoring)

    def _prices(self) -> tuple[Fraction, Fraction]:
        if self.epsilon is None or self.delta is None:
            raise InvalidParameter("Say what the whole search may cost: epsilon=1, delta=1e-6.")
        return positive(self.epsilon, "epsilon"), probability(self.delta, "delta")

    def _choose(self, given: tuple[Given, ...], scoring: str, records: Records) -> Chosen:
        raise NotImplementedError

    def _take(self, given: tuple[Given, ...], chosen: Chosen, like: PrivateEstimator) -> None:
        """Makes the chosen model this search's."""
        model = model_of(self.estimator, given[chosen.at])
        if hasattr(like, "feature_names_in_"):
            model.feature_names_in_ = like.feature_names_in_
        adopt(model, chosen.fitted, self.loss)
        self.best_estimator_, self.best_index_ = model, chosen.at
        self.best_params_, self.best_score_ = dict(given[chosen.at]), chosen.score
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_

    @available_if(_best_can("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[Any]:
        """What the chosen model says of each row."""
        return np.asarray(self._model().predict(X))

    @available_if(_best_can("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The chosen model's probabilities."""
        return np.asarray(self._model().predict_proba(X))

    @available_if(_best_can("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The chosen model's margins."""
        return np.asarray(self._model().decision_function(X))

    @available_if(_best_can("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any) -> float:
        """How good the chosen model is on rows of one's own, without noise: for public rows alone."""
        return float(self._model().score(X, y))

    def _model(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags


class RandomSearch(_Search):
    """The best of a random number of private fits, each with parameters drawn from a list.

    A part of the units is held out. Each trial draws a candidate, fits it on the others and measures, with
    noise, how good it is on those held out; then a coin says whether to stop. The best trial's model,
    parameters and noisy score are released, and nothing about the other trials. What each fit may cost
    follows from the price of the whole.

    Args:
        estimator: A model of `sf.learn`; its own epsilon and delta are not used.
        candidates: A dictionary of lists, whose combinations are drawn from, or a list of dictionaries.
        epsilon: What the whole search costs.
        delta: Likewise.
        gamma: The probability of stopping after each trial: there are 1/gamma of them on average.
        holdout: The probability of being held out.
        scoring: "accuracy" or "brier" for classifiers (1 less half the squared distance of the probabilities
            from the truth), "squared_error" for regressors (1 less the squared distance in widths of the
            target's bounds); higher is better.

    Attributes:
        best_estimator_: The model of the best trial; its `loss` is that of the whole search.
        best_params_: Its parameters.
        best_score_: Its noisy score.
        best_index_: The number of its candidate.

    Privacy:
        Claim: all that is released is (epsilon, delta)-private, by `RandomStopping`'s theorem (Papernot,
        Steinke 2022, Thm. 2 with η = 1; Liu, Talwar 2019) over a trial that costs `run`. A trial: given the
        coins of `held_out`, a unit is either learned from, by a fit of that price, and the score is then a
        noisy function of what is released and of rows that do not change; or held out, the fit does not
        change, and the score is one Gaussian measurement of `goodness`, of the same price. The split is
        drawn once; given it all trials are independent draws from one law, as the theorem asks, and the
        mixture over splits costs no more (quasi-convexity). Conditions: the number of trials is never shown,
        so neither may be how long the search took; no trial fails (candidates are checked beforehand, and on
        arrays errors about the data are outside the claim); candidates, `gamma` and `holdout` are public.
    """

    def __init__(
        self,
        estimator: PrivateEstimator,
        candidates: Any,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        gamma: Rational = Fraction(1, 10),
        holdout: Rational = Fraction(1, 5),
        scoring: str | None = None,
    ) -> None:
        self.estimator, self.candidates = estimator, candidates
        self.epsilon, self.delta, self.gamma = epsilon, delta, gamma
        self.holdout, self.scoring = holdout, scoring

    @property
    def stopping(self) -> RandomStopping:
        """The random number of trials: what each costs, and what the best of them does."""
        return stopping_for(*self._prices(), probability(self.gamma, "gamma"))

    @property
    def loss(self) -> PrivacyLoss:
        """What the whole search costs: a Rényi curve, at most (epsilon, delta)."""
        return self.stopping.loss

    @property
    def run(self) -> GaussianLoss:
        """What one trial costs."""
        base = self.stopping.base
        assert isinstance(base, GaussianLoss)
        return base

    def quote(self) -> SearchQuote:
        """What the whole search costs, in words too: free, and nothing is read."""
        epsilon, delta = self._prices()
        many = len(candidates_of(self.candidates))
        words = (
            f"A random search over {many} candidate{'s' * (many > 1)}: epsilon {show(epsilon)}, delta "
            f"{float(delta):.4g} for all of it. About {self.stopping.expected_runs:.4g} trials are made, how "
            f"many is never shown, and each costs epsilon {self.run.epsilon(delta):.3g} at that delta."
        )
        return SearchQuote(epsilon, delta, self.loss, self.run, words)

    def _choose(self, given: tuple[Given, ...], scoring: str, records: Records) -> Chosen:
        held = held_out(records, as_fraction(self.holdout, "holdout"))
        learned, tested = records.taken(~held), records.taken(held)
        paid, exchange = self.run, records.exchange

        def trial() -> tuple[float, Chosen]:
            model = model_of(self.estimator, given[at := random.integers(len(given))])
            meters = (Meter.alone(paid, exchange=exchange) for _ in range(2))
            # A warning in each trial would tell how many there are.
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._trial(at, model, scoring, learned, tested, *meters)

        return self.stopping.select(trial)[1]

    def _trial(
        self,
        at: int,
        model: PrivateEstimator,
        scoring: str,
        learned: Records,
        tested: Records,
        fit: Meter,
        score: Meter,
    ) -> tuple[float, Chosen]:
        """One fit and its noisy score, each for the price of a trial: a unit is in one of the parts."""
        found = fitted(model, learned, fit)
        sums = score.noisy(goodness(model, tested, scoring), 1)
        # The number of units held out is the same for all, so that the difference says more than one sum.
        return float(sums[0] - sums[1]), Chosen(at, share_of(sums), found)


class HoldoutSearch(_Search):
    """One of a few private fits, chosen on units that were held out.

    All candidates are fitted on the same part, each for an equal share of the price; one is chosen by the
    exponential mechanism on how good they are on the other part, and its noisy score is measured there.

    Args:
        estimator: A model of `sf.learn`; its own epsilon and delta are not used.
        candidates: A dictionary of lists, whose combinations are tried, or a list of dictionaries.
        epsilon: What the whole search costs.
        delta: Likewise.
        holdout: The probability of being held out.
        scoring: As in `RandomSearch`.

    Attributes:
        best_estimator_: The chosen model; its `loss` is that of the whole search.
        best_params_: Its parameters.
        best_score_: Its noisy score.
        best_index_: The number of its candidate.

    Privacy:
        Claim: `loss`, at most (epsilon, delta): that of `ModelSelection` with a holdout apart, and of one
        noisy score more. The fits of all candidates add up to one Gaussian release of (epsilon, delta) for
        whoever is learned from; the choice and the score, ε/2 each, to a pure ε for whoever is held out
        (McSherry, Talwar 2007: scores rise by at most 1 together; Laplace noise on `goodness`, whose L1
        sensitivity is 1); nobody is in both parts (`held_out`), so they compose in parallel (McSherry 2009).
        Conditions: candidates and `holdout` are public.
    """

    def __init__(
        self,
        estimator: PrivateEstimator,
        candidates: Any,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        holdout: Rational = Fraction(1, 5),
        scoring: str | None = None,
    ) -> None:
        self.estimator, self.candidates = estimator, candidates
        self.epsilon, self.delta = epsilon, delta
        self.holdout, self.scoring = holdout, scoring

    @property
    def run(self) -> GaussianLoss:
        """What each candidate's fit costs."""
        return GaussianLoss(price(*self._prices()).rho / len(candidates_of(self.candidates)))

    @property
    def selection(self) -> ModelSelection:
        """The choice, with the fits that it is between."""
        half = self._prices()[0] / 2
        return ModelSelection(half, [self.run] * len(candidates_of(self.candidates)), holdout="apart")

    @property
    def _scoring_noise(self) -> Laplace:
        return Laplace(self._prices()[0] / 2, UNIT)

    @property
    def loss(self) -> PrivacyLoss:
        """What the whole search costs: the dearer of the two parts."""
        chosen = compose([self.selection.mechanism.loss, self._scoring_noise.loss])
        return parallel([price(*self._prices()), chosen], "add-remove")

    def quote(self) -> SearchQuote:
        """What the whole search costs, in words too: free, and nothing is read."""
        epsilon, delta = self._prices()
        many = len(candidates_of(self.candidates))
        words = (
            f"A search over {many} candidate{'s' * (many > 1)}: epsilon {show(epsilon)}, delta "
            f"{float(delta):.4g} for all of it. Each fit costs epsilon {self.run.epsilon(delta):.3g} at that "
            f"delta; the choice and its score, on units held out, epsilon {show(epsilon / 2)} each."
        )
        return SearchQuote(epsilon, delta, self.loss, self.run, words)

    def _choose(self, given: tuple[Given, ...], scoring: str, records: Records) -> Chosen:
        held = held_out(records, as_fraction(self.holdout, "holdout"))
        learned, tested = records.taken(~held), records.taken(held)
        meter = Meter.alone(price(*self._prices()))
        return self._among(given, scoring, learned, tested, meter)

    def _among(
        self, given: tuple[Given, ...], scoring: str, learned: Records, tested: Records, meter: Meter
    ) -> Chosen:
        models = [model_of(self.estimator, one) for one in given]
        fits = [fitted(model, learned, meter.part(Fraction(1, len(given)))) for model in models]
        sums = [goodness(model, tested, scoring).values for model in models]
        at = self.selection.mechanism.select([float(good) / UNIT for good, _ in sums])
        noisy = np.asarray(self._scoring_noise.release(sums[at])) / UNIT
        return Chosen(at, share_of(noisy), fits[at])


def searches() -> tuple[Search, ...]:
    """Searches on a few rows, and on the same with somebody who is far from them."""
    model = Ridge(bounds=(0, 1), target_bounds=(0, 1))
    few = {"left": 6, "right": 7}

    def example(name: str, search: _Search) -> Search:
        given, scoring = search._checked()
        tables = {side: np.zeros((size, 1)) for side, size in few.items()}
        tables["right"][-1] = 1
        records = {side: clone(model)._records(table, table[:, 0], None) for side, table in tables.items()}

        def draw(side: Side, count: int) -> NDArray[np.float64]:
            chosen = [search._choose(given, scoring, records[side]) for _ in range(count)]
            return np.array(
                [[one.score, one.at, *flat(one.fitted.design, one.fitted.learned)] for one in chosen]
            )

        return Search(name, search.loss, draw)

    candidates = {"alpha": [0, 10]}
    return (
        example(
            "choice: best of a random number of fits",
            RandomSearch(model, candidates, epsilon=4, delta="1e-3", gamma="0.5", holdout="0.5"),
        ),
        example(
            "choice: one of two fits on a holdout",
            HoldoutSearch(model, candidates, epsilon=4, delta="1e-3", holdout="0.5"),
        ),
    )
