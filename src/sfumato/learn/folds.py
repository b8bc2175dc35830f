"""`cross_val_score`: how good a model is on rows that it has not seen, for a price that covers every fit."""

from __future__ import annotations

import textwrap
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter, price
from sfumato.fits.paying import Released
from sfumato.learn._choosing.on_session import asked
from sfumato.learn._choosing.scores import goodness, scoring_of, share_of
from sfumato.learn._choosing.trials import fitted, folds_of, model_of
from sfumato.learn._core.on_session import facts_of, is_session, said_of
from sfumato.learn._core.paying import FitQuote, quoted
from sfumato.learn._core.records import Records
from sfumato.learn.base import PrivateEstimator
from sfumato.ledger import Memo
from sfumato.loss import GaussianLoss
from sfumato.numeric.exact import Rational, as_integer
from sfumato.session import Session

if TYPE_CHECKING:
    from sfumato.fits.kept import Kept
    from sfumato.learn._choosing.on_session import Asked
    from sfumato.ledger import Receipt
    from sfumato.purchase import Purchase

__all__ = ["CrossValidation", "cross_val_quote", "cross_val_score", "fold_prices"]

SCORED = Fraction(1, 5)
"""The part of the price that goes into the score of a unit's own fold."""
_MOST_FOLDS = 100
_SUMS = "sums"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CrossValidation:
    """Noisy scores of a model, one for each fold.

    Attributes:
        scores: Of each fold, between 0 and 1; higher is better.
        score: Of all folds together, by the units that each has.
        noise: About how far the noise of the sums alone puts `score` off: a standard deviation.
        loss: What all of it cost.
        fit: What each fold's model cost: the scores are of models that learn with that much.
        receipt: Of the debit that paid for it; None: it was on arrays, which no ledger pays for.
    """

    scores: NDArray[np.float64]
    score: float
    noise: float
    loss: GaussianLoss
    fit: GaussianLoss
    receipt: Receipt | None = None

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
    delta: Rational | None = None,
    folds: int = 5,
    scoring: str | None = None,
    units: Any = None,
    target: Any = None,
    parameters: Any = None,
) -> CrossValidation:
    """How good a model is on units that it has not seen, one fold after the other.

    Args:
        estimator: A model of `sf.learn`; its own epsilon and delta are not used.
        X: One row a record: an array, or an Arrow, pandas or Polars frame; or a session, whose ledger pays
            for all folds at once.
        y: What is to be learned, one a row. With a session the text of a SELECT, the name of a table, or
            `session.table(…).filter(…)`.
        epsilon: What all fits and scores cost together.
        delta: Likewise; on a session, what its budget spares for a question unless it is given.
        folds: How many there are.
        scoring: As in `RandomSearch`.
        units: Whose row each is, where somebody has several: one id a row. A session knows its own.
        target: With a session, the column that is to be learned.
        parameters: With a text, values for its `?`, `$1` and `$name`.

    Raises:
        InvalidParameter: for declarations that are missing or contradict each other; nothing was read.
        InvalidValue: for what cannot be learned from.
        QueryRefused: for a text that asks for something else than rows; nothing was spent.
        BudgetExceeded: if it does not fit; nothing was spent or read.

    Privacy:
        Claim: all models and scores together carry `loss`, that of `Gaussian(epsilon, delta,
        sensitivity=1)`. Each unit draws its own fold. Given that draw it is learned from in the other
        folds − 1 fits and counts in one score; the remaining fit does not see it, nor do the other scores but
        through released models. So it meets folds − 1 Gaussian releases of `fit` and one of the score
        (`goodness`), whose rho add up to that of the whole (adaptive composition: Σμ²); over all draws, the
        mixture costs no more (quasi-convexity). On a session that is debited once, before any row is read.
        Conditions: as in `PrivateEstimator`.
    """
    asked_for = _Folds(estimator, epsilon, delta, folds, scoring)
    if is_session(X, units=units, target=target, parameters=parameters):
        return asked_for.bought(X, y, target, parameters)
    paid = price(*asked_for.prices(None))
    model, name = asked_for.checked(estimator)
    sums = asked_for.sums(estimator, name, model._records(X, y, units), paid.rho)
    return asked_for.told(sums, paid, None, exchange=False)


def cross_val_quote(
    estimator: PrivateEstimator,
    session: Session,
    rows: Any,
    *,
    target: Any,
    epsilon: Rational,
    delta: Rational | None = None,
    folds: int = 5,
    scoring: str | None = None,
    parameters: Any = None,
) -> FitQuote:
    """What `cross_val_score` costs on a session, and whether it is on record: free, and nothing is read.

    Args:
        estimator: As in `cross_val_score`, like all that follows.
        session: Whose ledger would pay.
        rows: As `fit` takes them after the session.
        target: The column that is to be learned.
        epsilon: What all fits and scores cost together.
        delta: Likewise.
        folds: How many there are.
        scoring: As in `RandomSearch`.
        parameters: Values for the text's `?`, `$1` and `$name`.
    """
    asked_for = _Folds(estimator, epsilon, delta, folds, scoring)
    wanted, purchase = asked_for.purchase(session, rows, target, parameters)
    return quoted(session, purchase, wanted.reading, f"cross_val_score of {type(estimator).__name__}")


class _Folds:
    """What a cross-validation is asked for."""

    def __init__(self, estimator: Any, epsilon: Any, delta: Any, folds: Any, scoring: str | None) -> None:
        self.estimator, self.epsilon, self.delta, self.scoring = estimator, epsilon, delta, scoring
        self.many = as_integer(folds, "folds")
        if not 2 <= self.many <= _MOST_FOLDS:
            raise InvalidParameter(f"folds must be between 2 and {_MOST_FOLDS}.")

    def prices(self, spared: Fraction | None) -> tuple[Rational, Rational]:
        """Epsilon and delta of all of it, with what a session's budget spares where none is named."""
        delta = spared if self.delta is None else self.delta
        if self.epsilon is None or delta is None:
            raise InvalidParameter("Say what all folds may cost: epsilon=1, delta=1e-6.")
        return self.epsilon, delta

    def checked(self, estimator: Any) -> tuple[PrivateEstimator, str]:
        """A model, and the name of its score."""
        model = model_of(estimator, {})
        return model, scoring_of(model, self.scoring)

    def sums(self, estimator: Any, scoring: str, records: Records, rho: Fraction) -> NDArray[np.float64]:
        """The noisy sums of all folds."""
        prices, exchange = fold_prices(rho, self.many), records.exchange
        meters = [
            (Meter.alone(prices[0], exchange=exchange), Meter.alone(prices[1], exchange=exchange))
            for _ in range(self.many)
        ]
        return _scored(estimator, records, folds_of(records, self.many), scoring, meters)

    def told(
        self, sums: NDArray[np.float64], paid: GaussianLoss, receipt: Receipt | None, *, exchange: bool
    ) -> CrossValidation:
        """What the sums say."""
        fit, scored = fold_prices(paid.rho, self.many)
        total = sums.sum(axis=0)
        # Of two sums with this noise, one goes into the score by what the other leaves: at most that much.
        noise = Meter.alone(scored, exchange=exchange).sigma(1, 1) * self.many**0.5
        return CrossValidation(
            np.array([share_of(two) for two in sums]),
            share_of(total),
            noise / max(1.0, float(total.sum())),
            paid,
            fit,
            receipt,
        )

    def purchase(
        self, session: Session, rows: Any, target: Any, parameters: Any
    ) -> tuple[Asked, Purchase[Kept]]:
        """What it reads and buys of a session; all that can be refused without rows is refused here."""
        if not isinstance(session, Session):
            raise InvalidParameter("A quote is of a session: on arrays all folds cost what is given.")
        named = self.delta is not None
        wanted = asked(self.estimator, [{}], session, rows, target=target, parameters=parameters, named=named)
        paid = price(*self.prices(wanted.delta))
        wanted.rehearse(fold_prices(paid.rho, self.many)[0])
        _, scoring = self.checked(wanted.estimator)

        def choose(records: Records) -> Released:
            return {_SUMS: self.sums(wanted.estimator, scoring, records, paid.rho)}, {}

        kind = f"cross_val_score of {type(self.estimator).__name__}"
        facts = [*facts_of(wanted.estimator, wanted.reading), self.many, scoring]
        memo = Memo("folds", said_of(kind, rows, wanted.reading), mechanism="gaussian")
        return wanted, wanted.purchase(session, paid, memo=memo, facts=facts, choose=choose)

    def bought(self, session: Session, rows: Any, target: Any, parameters: Any) -> CrossValidation:
        """The scores, paid for now or before."""
        wanted, purchase = self.purchase(session, rows, target, parameters)
        found = session.buy(purchase)
        paid = price(found.answer.epsilon, found.answer.delta)
        return self.told(found.answer.learned[_SUMS], paid, found.receipt, exchange=wanted.exchange)


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
