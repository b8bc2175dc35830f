"""`Searching`: what searches share; candidates, rows and who pays for them, the chosen model's answers."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.fits.kept import Kept
from sfumato.fits.paying import Released, units_told
from sfumato.learn._choosing.on_session import Asked, asked
from sfumato.learn._choosing.scores import scoring_of
from sfumato.learn._choosing.trials import Fitted, Given, adopt, candidates_of, model_of, models_of
from sfumato.learn._core.habits import names_there
from sfumato.learn._core.on_session import facts_of, found_bounds, is_session, said_of
from sfumato.learn._core.records import Records
from sfumato.learn.base import PrivateEstimator
from sfumato.ledger import Memo
from sfumato.loss import GaussianLoss, PrivacyLoss
from sfumato.numeric.exact import Rational, as_fraction, positive, probability, show
from sfumato.session import Session

if TYPE_CHECKING:
    from sfumato.ledger import Receipt
    from sfumato.purchase import Purchase

__all__ = ["Candidates", "Chosen", "SearchQuote", "Searching", "Terms"]

_AT, _SCORE, _MODEL = "choice.at", "choice.score", "model."


class Terms(NamedTuple):
    """The price of a whole search, and for whom it holds.

    Attributes:
        epsilon: Of all of it.
        delta: Likewise.
        exchange: Whether neighbours have one unit exchanged, and not added or removed.
    """

    epsilon: Fraction
    delta: Fraction
    exchange: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class SearchQuote:
    """What a search will cost, before anything is read.

    Attributes:
        epsilon: The price of the whole.
        delta: Likewise.
        loss: Its curve; on a session, what the ledger is charged.
        run: What one fit gets of it.
        words: All that in a few sentences.
        note: What a session's ledger says: that it is on record, or more than what is left; else empty.
    """

    epsilon: Fraction
    delta: Fraction
    loss: PrivacyLoss
    run: GaussianLoss
    words: str
    note: str = ""

    def __str__(self) -> str:
        """The words."""
        return textwrap.fill(f"{self.words} {self.note}".strip(), 80)

    def __repr__(self) -> str:
        return str(self)


class Candidates(NamedTuple):
    """What is chosen between, and by which score.

    Attributes:
        estimator: The model; on a session it knows what the table declares of the target.
        given: The parameters of each.
        scoring: The name of the score.
    """

    estimator: PrivateEstimator
    given: tuple[Given, ...]
    scoring: str

    def model(self, at: int) -> PrivateEstimator:
        """One of them, unfitted."""
        return model_of(self.estimator, self.given[at])


class Chosen(NamedTuple):
    """The candidate that was chosen, with its model and its noisy score."""

    at: int
    score: float
    fitted: Fitted


def _best_can(name: str) -> Callable[[Any], bool]:
    def can(search: Searching) -> bool:
        model = getattr(search, "best_estimator_", search.estimator)
        return hasattr(model, name)

    return can


class Searching(MetaEstimatorMixin, BaseEstimator):
    """A search says what it costs and how it chooses; where rows come from and who pays is here.

    Privacy:
        Claim: on a session all that is released carries `loss`, which is debited once, before any row is
        read. Which part a unit is in is drawn by a coin of its own after the read (`held_out`), so that it
        depends on no other unit, and all rows of a unit are in one part.
    """

    estimator: PrivateEstimator
    candidates: Any
    epsilon: Rational | None
    delta: Rational | None
    holdout: Rational
    scoring: str | None

    @property
    def loss(self) -> PrivacyLoss:
        """What the whole search costs, or did cost."""
        paid: PrivacyLoss | None = getattr(self, "_paid", None)
        return self._loss(self._terms()) if paid is None else paid

    @property
    def run(self) -> GaussianLoss:
        """What one fit gets of that."""
        return self._run(self._terms())

    @property
    def receipt(self) -> Receipt | None:
        """Of the debit that paid for the search; None: it was on arrays, which no ledger pays for."""
        return getattr(self, "_receipt", None)

    def __dir__(self) -> list[str]:
        """The names that there are, also of a search that has no price yet."""
        return names_there(self)

    def quote(
        self, session: Session | None = None, rows: Any = None, *, target: Any = None, parameters: Any = None
    ) -> SearchQuote:
        """What the whole search costs, in words too: free, and nothing is read.

        Args:
            session: Whose ledger would pay; None: a search on arrays, which no ledger pays for.
            rows: As `fit` takes them after the session.
            target: The column that is to be learned.
            parameters: Values for the text's `?`, `$1` and `$name`.
        """
        if session is None:
            terms, many = self._terms(), len(candidates_of(self.candidates))
            return SearchQuote(
                terms.epsilon, terms.delta, self._loss(terms), self._run(terms), self._words(terms, many)
            )
        if not isinstance(session, Session):
            raise InvalidParameter(
                "quote() is the price on arrays, and quote(session, text, target=…) on a session."
            )
        wanted, terms, bought = self._purchase(session, rows, target, parameters)
        spared, note = wanted.told(session, bought)
        words = self._words(terms, len(wanted.given), f" on {wanted.reading.wanted.table}", spared)
        words = f"{words} {units_told(wanted.max_rows)}".strip()
        return SearchQuote(terms.epsilon, terms.delta, bought.loss, self._run(terms), words, note)

    def fit(
        self, X: Any, y: Any = None, *, units: Any = None, target: Any = None, parameters: Any = None
    ) -> Self:
        """Learn and choose on arrays or a frame; or on a session's rows, paid from its ledger.

        ```python
        search.fit(X, y)
        search.fit(session, "SELECT age, sex, income FROM people", target="income")
        ```

        On a session the whole search is one purchase, rows are read once, and the same search on record is
        given back free.

        Args:
            X: One row a record: an array, or an Arrow, pandas or Polars frame; or a session.
            y: What is to be learned, one a row. With a session the text of a SELECT, the name of a table, or
                `session.table(…).filter(…)`.
            units: Whose row each is, where somebody has several: one id a row. A session knows its own.
            target: With a session, the column that is to be learned.
            parameters: With a text, values for its `?`, `$1` and `$name`.

        Raises:
            InvalidParameter: for declarations that are missing or contradict each other; nothing was read.
            InvalidValue: for what cannot be learned from.
            QueryRefused: for a text that asks for something else than rows; nothing was spent.
            BudgetExceeded: if it does not fit; nothing was spent or read.
        """
        if is_session(X, units=units, target=target, parameters=parameters):
            return self._fit_session(X, y, target, parameters)
        terms, given = self._terms(), candidates_of(self.candidates)
        first, *_ = models_of(self.estimator, given)
        between = Candidates(self.estimator, given, self._scoring(first))
        loss, records = self._loss(terms), first._records(X, y, units)
        chosen = self._choose(between, records, terms)
        model = between.model(chosen.at)
        if hasattr(first, "feature_names_in_"):
            model.feature_names_in_ = first.feature_names_in_
        self._take(given, chosen, model, loss, None)
        return self

    def _fit_session(self, session: Session, rows: Any, target: Any, parameters: Any) -> Self:
        wanted, terms, purchase = self._purchase(session, rows, target, parameters)
        bought = session.buy(purchase)  # now, or before
        kept = bought.answer
        paid = Terms(kept.epsilon, kept.delta, terms.exchange)
        at, score = int(kept.learned[_AT]), float(kept.learned[_SCORE])
        learned = {
            name.removeprefix(_MODEL): array
            for name, array in kept.learned.items()
            if name.startswith(_MODEL)
        }
        model, found = wanted.model(at, kept._replace(learned=learned), self._run(paid).rho)
        self._take(wanted.given, Chosen(at, score, found), model, self._loss(paid), bought.receipt)
        return self

    def _purchase(
        self, session: Session, rows: Any, target: Any, parameters: Any
    ) -> tuple[Asked, Terms, Purchase[Kept]]:
        """What a search on a session reads and buys; all that can be refused without rows is refused here."""
        given, named = candidates_of(self.candidates), self.delta is not None
        wanted = asked(
            self.estimator, given, session, rows, target=target, parameters=parameters, named=named
        )
        terms = self._terms(wanted.delta, exchange=wanted.exchange)
        loss = self._loss(terms)
        wanted.rehearse(self._run(terms))
        scoring = self._scoring(model_of(wanted.estimator, given[0]))
        between = Candidates(wanted.estimator, given, scoring)

        def choose(records: Records) -> Released:
            chosen = self._choose(between, records, terms)
            learned = {_MODEL + name: array for name, array in chosen.fitted.learned.items()}
            learned |= {_AT: np.array(chosen.at), _SCORE: np.array(chosen.score)}
            return learned, found_bounds(wanted.reading, chosen.fitted.design)

        kind = type(self).__name__
        return (
            wanted,
            terms,
            wanted.purchase(
                session,
                loss,
                memo=Memo("search", said_of(kind, rows, wanted.reading), mechanism=self._mechanism),
                facts=facts_of(self, wanted.reading),
                choose=choose,
            ),
        )

    def _scoring(self, model: PrivateEstimator) -> str:
        """The score; a part to score on that is none is refused."""
        share = as_fraction(self.holdout, "holdout")
        if not 0 < share < 1:
            raise InvalidParameter("holdout must lie between 0 and 1: the part that models are scored on.")
        return scoring_of(model, self.scoring)

    def _terms(self, spared: Fraction | None = None, *, exchange: bool = False) -> Terms:
        """The price of the whole, with what a session's budget spares of delta where none is named."""
        delta = spared if self.delta is None else self.delta
        if self.epsilon is None or delta is None:
            raise InvalidParameter("Say what the whole search may cost: epsilon=1, delta=1e-6.")
        return Terms(positive(self.epsilon, "epsilon"), probability(delta, "delta"), exchange)

    _mechanism: str
    """Which noise and which choice, for the ledger."""

    def _loss(self, terms: Terms) -> PrivacyLoss:
        """What the whole search costs, calibrated to the price."""
        raise NotImplementedError

    def _run(self, terms: Terms) -> GaussianLoss:
        """What one fit gets of it."""
        raise NotImplementedError

    def _words(self, terms: Terms, many: int, where: str = "", spared: str = "") -> str:
        """The quote in words."""
        raise NotImplementedError

    def _choose(self, between: Candidates, records: Records, terms: Terms) -> Chosen:
        """One of the candidates, with its model: all that is released of the rows."""
        raise NotImplementedError

    def _take(
        self,
        given: tuple[Given, ...],
        chosen: Chosen,
        model: PrivateEstimator,
        paid: PrivacyLoss,
        receipt: Receipt | None,
    ) -> None:
        """Makes the chosen model this search's."""
        adopt(model, chosen.fitted, paid, receipt)
        self._paid, self._receipt = paid, receipt
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


def price_told(terms: Terms, spared: str = "") -> str:
    """Such as `epsilon 1, delta 1e-06 for all of it`."""
    told = f" ({spared})" if spared else ""
    return f"epsilon {show(terms.epsilon)}, delta {float(terms.delta):.4g}{told} for all of it"
