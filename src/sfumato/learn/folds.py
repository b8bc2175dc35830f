"""`cross_val_score`: how good a model is on rows that it has not seen, for a price that covers every fit."""

from __future__ import annotations

import textwrap
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter, price
from sfumato.learn._choosing.scores import goodness, scoring_of, share_of
from sfumato.learn._choosing.trials import fitted, folds_of, model_of, records_of
from sfumato.learn._core.records import Records
from sfumato.learn.base import PrivateEstimator
from sfumato.loss import GaussianLoss
from sfumato.numeric.exact import Rational, as_integer

__all__ = ["CrossValidation", "cross_val_score", "fold_prices"]

SCORED = Fraction(1, 5)
"""The part of the price that goes into the score of a unit's own fold."""
_MOST_FOLDS = 100


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CrossValidation:
    """Noisy scores of a model, one for each fold.

    Attributes:
        scores: Of each fold, between 0 and 1; higher is better.
        score: Of all folds together, by the units that each has.
        noise: About how far the noise of the sums alone puts `score` off: a standard deviation.
        loss: What all of it cost.
        fit: What each fold's model cost: the scores are of models that learn with that much.
    """

    scores: NDArray[np.float64]
    score: float
    noise: float
    loss: GaussianLoss
    fit: GaussianLoss

    def __str__(self) -> str:
        """The score, those of the folds, and what they cost."""
        assert self.loss.point is not None  # prices of searches are calibrated
        epsilon, delta = (float(each) for each in self.loss.point)
        each = ", ".join(f"{score:.3f}" for score in self.scores)
        alone = self.fit.epsilon(self.loss.point[1])
        lines = [
            f"Score {self.score:.3f}; the noise alone moves it by about {self.noise:.2g}.",
            f"Of {len(self.scores)} folds: {each}.",
            f"Price of all: epsilon {epsilon:.4g}, delta {delta:.4g}. Each fold's model learned with epsilon "
            f"{alone:.4g}.",
        ]
        return "\n".join(textwrap.fill(line, 80) for line in lines)

    def __repr__(self) -> str:
        return str(self)


def cross_val_score(
    estimator: PrivateEstimator,
    X: Any,
    y: Any = None,
    *,
    epsilon: Rational,
    delta: Rational,
    folds: int = 5,
    scoring: str | None = None,
    units: Any = None,
) -> CrossValidation:
    """How good a model is on units that it has not seen, one fold after the other.

    Args:
        estimator: A model of `sf.learn`; its own epsilon and delta are not used.
        X: One row a record: an array, or an Arrow, pandas or Polars frame.
        y: What is to be learned, one a row.
        epsilon: What all fits and scores cost together.
        delta: Likewise.
        folds: How many there are.
        scoring: As in `RandomSearch`.
        units: Whose row each is, where somebody has several: one id a row.

    Raises:
        InvalidParameter: for declarations that are missing or contradict each other; nothing was read.
        InvalidValue: for what cannot be learned from.

    Privacy:
        Claim: all models and scores together carry `loss`, that of `Gaussian(epsilon, delta,
        sensitivity=1)`. Each unit draws its own fold. Given that draw it is learned from in the other
        folds − 1 fits and counts in one score; the remaining fit does not see it, nor do the other scores but
        through released models. So it meets folds − 1 Gaussian releases of `fit` and one of the score
        (`goodness`), whose rho add up to that of the whole (adaptive composition: Σμ²); over all draws, the
        mixture costs no more (quasi-convexity). Conditions: as in `PrivateEstimator`.
    """
    many = as_integer(folds, "folds")
    if not 2 <= many <= _MOST_FOLDS:
        raise InvalidParameter(f"folds must be between 2 and {_MOST_FOLDS}.")
    paid = price(epsilon, delta)
    fit, scored = fold_prices(paid.rho, many)
    model = model_of(estimator, {})
    name = scoring_of(model, scoring)
    records = records_of(model, X, y, units)
    meters = [(Meter.alone(fit), Meter.alone(scored)) for _ in range(many)]
    sums = _scored(estimator, records, folds_of(records, many), name, meters)
    total = sums.sum(axis=0)
    # Of two sums with this noise, one goes into the score by what the other leaves: at most that much.
    spread = meters[0][1].sigma(1, 1) * many**0.5 / max(1.0, float(total.sum()))
    return CrossValidation(np.array([share_of(two) for two in sums]), share_of(total), spread, paid, fit)


def fold_prices(rho: Fraction, folds: int) -> tuple[GaussianLoss, GaussianLoss]:
    """What each fit and each score costs, so that a unit meets releases of rho in all."""
    return GaussianLoss(rho * (1 - SCORED) / (folds - 1)), GaussianLoss(rho * SCORED)


def _scored(
    estimator: PrivateEstimator,
    records: Records,
    place: NDArray[np.int64],
    scoring: str,
    meters: list[tuple[Meter, Meter]],
) -> NDArray[np.float64]:
    """The two noisy sums of each fold, of the model that has not seen it; each fold has its own noise."""
    found = []
    for fold, (fit, score) in enumerate(meters):
        model = model_of(estimator, {})
        fitted(model, records.taken(place != fold), fit)
        found.append(score.noisy(goodness(model, records.taken(place == fold), scoring), 1))
    return np.array(found)
