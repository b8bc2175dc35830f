"""Choosing between models at the price that the choice has: `RandomSearch`, `HoldoutSearch`."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sfumato import random
from sfumato.fits.meter import Meter, price
from sfumato.games import ModelSelection, RandomStopping
from sfumato.learn._choosing.prices import calibrated, stopping_for
from sfumato.learn._choosing.scores import goodness, share_of
from sfumato.learn._choosing.searching import Candidates, Chosen, Searching, SearchQuote, Terms, price_told
from sfumato.learn._choosing.trials import candidates_of, fitted, held_out, models_of
from sfumato.learn._core.design import UNIT
from sfumato.learn._core.records import Records
from sfumato.learn.base import PrivateEstimator
from sfumato.learn.examples import Search, flat
from sfumato.learn.linear import Ridge
from sfumato.loss import ApproximateLoss, GaussianLoss, PrivacyLoss, compose
from sfumato.loss.parallel import parallel
from sfumato.mechanisms import Laplace
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_fraction, probability, show

__all__ = ["HoldoutSearch", "RandomSearch", "SearchQuote"]


class RandomSearch(Searching):
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

    _mechanism = "gaussian, best of a random number"

    @property
    def stopping(self) -> RandomStopping:
        """The random number of trials: what each costs, and what the best of them does."""
        return self._stopping(self._terms())

    def _stopping(self, terms: Terms) -> RandomStopping:
        return stopping_for(terms.epsilon, terms.delta, probability(self.gamma, "gamma"))

    def _loss(self, terms: Terms) -> PrivacyLoss:
        return calibrated(self._stopping(terms).loss, terms.epsilon, terms.delta)

    def _run(self, terms: Terms) -> GaussianLoss:
        base = self._stopping(terms).base
        assert isinstance(base, GaussianLoss)
        return base

    def _words(self, terms: Terms, many: int, where: str = "", spared: str = "") -> str:
        run, runs = self._run(terms), self._stopping(terms).expected_runs
        return (
            f"A random search over {many} candidate{'s' * (many > 1)}{where}: {price_told(terms, spared)}. "
            f"About {runs:.4g} trials are made, how many is never shown, and each costs epsilon "
            f"{run.epsilon(terms.delta):.3g} at that delta."
        )

    def _choose(self, between: Candidates, records: Records, terms: Terms) -> Chosen:
        held = held_out(records, as_fraction(self.holdout, "holdout"))
        learned, tested = records.taken(~held), records.taken(held)
        paid = self._run(terms)

        def trial() -> tuple[float, Chosen]:
            model = between.model(at := random.integers(len(between.given)))
            meters = (Meter.alone(paid, exchange=records.exchange) for _ in range(2))
            # A warning in each trial would tell how many there are.
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._trial(at, model, between.scoring, learned, tested, *meters)

        return self._stopping(terms).select(trial)[1]

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


class HoldoutSearch(Searching):
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
        Where a unit is exchanged for another, both may be given one coin: one part changes, and both parts
        are (epsilon, delta)-private by noise for twice the sums and a choice whose scores may fall and rise.
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

    _mechanism = "gaussian, exponential and laplace"

    @property
    def selection(self) -> ModelSelection:
        """The choice, with the fits that it is between."""
        return self._selection(self._terms())

    def _selection(self, terms: Terms) -> ModelSelection:
        runs = [self._run(terms)] * len(candidates_of(self.candidates))
        return ModelSelection(
            terms.epsilon / 2,
            runs,
            holdout="apart",
            adjacency="exchange" if terms.exchange else "add-remove",
        )

    def _scoring_noise(self, terms: Terms) -> Laplace:
        """On the two sums of `goodness`, of which both move by as much where a unit is exchanged."""
        return Laplace(terms.epsilon / 2, UNIT * (2 if terms.exchange else 1))

    def _loss(self, terms: Terms) -> PrivacyLoss:
        if terms.exchange:
            return ApproximateLoss(terms.epsilon, terms.delta)
        chosen = compose([self._selection(terms).mechanism.loss, self._scoring_noise(terms).loss])
        return parallel([price(terms.epsilon, terms.delta), chosen], "add-remove")

    def _run(self, terms: Terms) -> GaussianLoss:
        return GaussianLoss(price(terms.epsilon, terms.delta).rho / len(candidates_of(self.candidates)))

    def _words(self, terms: Terms, many: int, where: str = "", spared: str = "") -> str:
        run = self._run(terms).epsilon(terms.delta)
        return (
            f"A search over {many} candidate{'s' * (many > 1)}{where}: {price_told(terms, spared)}. Each fit "
            f"costs epsilon {run:.3g} at that delta; the choice and its score, on units held out, epsilon "
            f"{show(terms.epsilon / 2)} each."
        )

    def _choose(self, between: Candidates, records: Records, terms: Terms) -> Chosen:
        held = held_out(records, as_fraction(self.holdout, "holdout"))
        meter = Meter.alone(price(terms.epsilon, terms.delta), exchange=records.exchange)
        models = [between.model(at) for at in range(len(between.given))]
        return self._among(models, between.scoring, records.taken(~held), records.taken(held), meter, terms)

    def _among(
        self,
        models: list[PrivateEstimator],
        scoring: str,
        learned: Records,
        tested: Records,
        meter: Meter,
        terms: Terms,
    ) -> Chosen:
        """All fits on one part, the choice and its score on the other."""
        fits = [fitted(model, learned, meter.part(Fraction(1, len(models)))) for model in models]
        sums = [goodness(model, tested, scoring).values for model in models]
        at = self._selection(terms).mechanism.select([float(good) / UNIT for good, _ in sums])
        noisy = np.asarray(self._scoring_noise(terms).release(sums[at])) / UNIT
        return Chosen(at, share_of(noisy), fits[at])


def searches() -> tuple[Search, ...]:
    """Searches on a few rows, and on the same with somebody who is far from them."""
    model = Ridge(bounds=(0, 1), target_bounds=(0, 1))
    few = {"left": 6, "right": 7}

    def example(name: str, search: Searching) -> Search:
        given = candidates_of(search.candidates)
        between = Candidates(model, given, search._scoring(models_of(model, given)[0]))
        tables = {side: np.zeros((size, 1)) for side, size in few.items()}
        tables["right"][-1] = 1
        records = {side: clone(model)._records(table, table[:, 0], None) for side, table in tables.items()}

        def draw(side: Side, count: int) -> NDArray[np.float64]:
            chosen = [search._choose(between, records[side], search._terms()) for _ in range(count)]
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
