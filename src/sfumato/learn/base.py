"""`PrivateEstimator`: scikit-learn's habits over a fit that is one priced release."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.fits.kept import Learned
from sfumato.fits.meter import Meter, price
from sfumato.learn._core import on_session, paying
from sfumato.learn._core.buying import BoundsPaid, buy
from sfumato.learn._core.declared import (
    Declared,
    Number,
    Unbought,
    declared,
    listed,
    lists_categories,
)
from sfumato.learn._core.design import Design
from sfumato.learn._core.frames import check_table, columns_for, names_of, not_numbers
from sfumato.learn._core.habits import Habits, Refused
from sfumato.learn._core.records import Records
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.threads import one_thread
from sfumato.loss import NO_LOSS, PrivacyLoss
from sfumato.session import Session
from sfumato.session.rows_wanted import WantedColumn

if TYPE_CHECKING:
    from sfumato.ledger import Receipt
    from sfumato.loss import GaussianLoss
    from sfumato.numeric.exact import Rational

__all__ = ["Learned", "PrivateEstimator", "units_of"]


class PrivateEstimator(Habits, BaseEstimator):
    """A model whose whole fit is one private release.

    A family of models says how it learns (`_learn`, from exact sums with noise), and what becomes of that
    (`_set`). Everything else is here: declarations, prices, arrays and sessions.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise; on a session, what its budget spares for a question unless it is given.
        bounds: What is public about each column: a dictionary by column, of pairs (lower, upper) and of
            lists of categories; or a pair of numbers or arrays for all columns. Never read off the data:
            "auto", for a column or for all, buys bounds of numbers with a tenth of the price (`bounds_`,
            `bounds_paid_`).

    Privacy:
        Claim: everything that a fitted model holds is (epsilon, delta)-private for data that differs by one
        unit added or removed: the unit of a session's table; on arrays a row, or whoever `units` says. Proof:
        `_learn` sees rows through `Total`s with a proven sensitivity and noise from one `Meter` alone, whose
        shares add up to at most the price; the rest is post-processing. Conditions: `epsilon`, `delta`,
        `bounds` and all other parameters, the names and the number of columns are public. On arrays, that a
        fit was refused for what is in them (NaN, a label that is not declared) is outside the claim.
    """

    signed: ClassVar[bool] = False
    """Whether numbers go to [−1, 1] and not to [0, 1]."""
    needs_columns: ClassVar[bool] = True
    """Whether there must be something to learn from beside the target."""
    widest: ClassVar[int | None] = None
    """How many coordinates the columns may have; None: any number."""

    epsilon: Rational | None
    delta: Rational | None
    bounds: Any
    partial_fit = Refused(
        "There is no partial_fit: each call would cost epsilon again. Collect the rows and fit once."
    )
    _bounds_paid: BoundsPaid | None = None
    _bought_target: Number | None = None
    _public: tuple[WantedColumn, ...] = ()  # what a session's table declares of the target

    @property
    def loss(self) -> PrivacyLoss:
        """What the fit costs, or did cost: that of one Gaussian release, or nothing."""
        paid: PrivacyLoss | None = getattr(self, "_paid", None)
        if paid is not None:
            return paid
        return NO_LOSS if self._is_free() else self._price()

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may expect: not that two fits are the same, since each draws its own noise."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = not self._is_free()
        return tags

    @property
    def receipt(self) -> Receipt | None:
        """Of the debit that paid for the fit; None: it was fitted on arrays, which no ledger pays for."""
        return getattr(self, "_receipt", None)

    def fit(
        self, X: Any, y: Any = None, *, units: Any = None, target: Any = None, parameters: Any = None
    ) -> Self:
        """Learn from arrays or a frame; or from a session's rows, paid from its ledger.

        ```python
        model.fit(X, y)
        model.fit(session, "SELECT age, sex, income FROM people WHERE age >= 18", target="income")
        ```

        On a session, bounds and classes that are not given are those that the table declares. Rows without a
        number or without a target are left out, a category that is not listed is none of them, and at most
        `max_rows` rows of a unit are read. The same fit on record is given back free.

        Args:
            X: One row a record: an array, or an Arrow, pandas or Polars frame; or a session.
            y: What is to be learned, one a row; None where nothing is. With a session the text of a SELECT,
                the name of a table, or `session.table(…).filter(…)`.
            units: Whose row each is, where somebody has several: one id a row. A session knows its own.
            target: With a session, the column that is to be learned.
            parameters: With a text, values for its `?`, `$1` and `$name`.

        Raises:
            InvalidParameter: for declarations that are missing or contradict each other; nothing was read.
            InvalidValue: for what cannot be learned from.
            QueryRefused: for a text that asks for something else than rows; nothing was spent.
            BudgetExceeded: if it does not fit; nothing was spent or read.
        """
        if on_session.is_session(X, units=units, target=target, parameters=parameters):
            if self._is_free():
                self._check_free()
                on_session.name(self, design := on_session.reading_of(self, X, y, target, parameters).design)
                self._keep(design, {}, NO_LOSS, None)
                return self
            reading, wanted = on_session.fit_purchase(self, X, y, target, parameters)
            bought = X.buy(wanted)  # now, or before
            paid = price(bought.answer.epsilon, bought.answer.delta)
            design = on_session.bought_design(self, reading, bought.answer, paid.rho)
            self._keep(design, bought.answer.learned, paid, bought.receipt)
            return self
        self._public = ()
        if self._is_free():
            self._check_free()
            self._keep(self._columns(X, reset=True)[0], {}, NO_LOSS, None)
            return self
        paid = self._price()
        self._check()
        self._count_fit()
        rows = self._rows(X, y, units)
        design, learned = self._released(rows, Meter.alone(paid, exchange=rows.exchange))
        self._keep(design, learned, paid, None)
        return self

    def quote(
        self, session: Session | None = None, rows: Any = None, *, target: Any = None, parameters: Any = None
    ) -> paying.FitQuote:
        """What a fit costs, and on a session whether it is on record: free, and nothing is read.

        Args:
            session: Whose ledger would pay; None: a fit on arrays, which no ledger pays for.
            rows: As `fit` takes them after the session.
            target: The column that is to be learned.
            parameters: Values for the text's `?`, `$1` and `$name`.
        """
        if session is not None and not isinstance(session, Session):
            raise InvalidParameter(
                "quote() is the price on arrays, and quote(session, text, target=…) on a session."
            )
        if self._is_free():
            raise InvalidParameter(f"This {type(self).__name__} reads no rows: to fit it is free.")
        if session is None:
            paid = self._price()
            self._check()
            return paying.quoted_alone(paid, type(self).__name__)
        reading, wanted = on_session.fit_purchase(self, session, rows, target, parameters)
        return paying.quoted(session, wanted, reading, type(self).__name__)

    def _target_names(self, target: Any) -> tuple[str, ...]:
        """The columns of a session's rows that hold what is to be learned."""
        if target is not None:
            raise InvalidParameter("This model has nothing to predict: leave target out.")
        return ()

    def _target_declared(self, names: tuple[str, ...]) -> tuple[Declared, ...]:  # noqa: ARG002 - nothing
        """What is declared of each of them."""
        return ()

    def _target_read(self, columns: list[NDArray[Any]]) -> NDArray[Any] | None:
        """What `_target` gives, from codes of categories, and from numbers as multiples of their range.

        Where bounds are bought, numbers are floats.
        """
        return columns[0] if columns else None

    def _is_free(self) -> bool:
        """Whether nothing of the rows is needed: all that a fit takes is declared."""
        return False

    def _check_free(self) -> None:
        if self.epsilon is not None or self.delta is not None:
            raise InvalidParameter("Nothing is read here, so nothing is paid: leave epsilon and delta out.")
        self._check()

    def _price(self, spared: Fraction | None = None) -> GaussianLoss:
        """The price of the whole fit, with what a session's budget spares of delta where none is named."""
        delta = spared or None if self.delta is None else self.delta
        if self.epsilon is None or delta is None:
            raise InvalidParameter("Say what the fit may cost: epsilon=1, delta=1e-6.")
        return price(self.epsilon, delta)

    def _check(self) -> None:
        """Refuses parameters that contradict each other, before anything is read."""

    def _check_session(self) -> None:
        """Refuses parameters that a fit on a session cannot have."""

    def _rehearse(self, design: Design, paid: GaussianLoss) -> None:
        """Refuses what a fit between these columns would refuse, before it is paid."""

    def _design(self, names: list[str]) -> Design:
        return self._design_of(self._given_bounds(), names)

    def _design_of(self, bounds: Any, names: list[str]) -> Design:
        design = Design(
            declared(bounds, names), intercept=getattr(self, "fit_intercept", True), signed=self.signed
        )
        if self.widest is not None and len(design.coordinates) > self.widest:
            raise InvalidParameter(
                f"{type(self).__name__} takes at most {self.widest:,} coordinates, one for each number and "
                "for each category: leave some out."
            )
        return design

    def _rows(self, X: Any, y: Any, units: Any) -> Rows | Records:
        """The rows of arrays or a frame: as integers, unless there are bounds to buy first."""
        records = self._records(X, y, units)
        return records.rows() if records.bounded else records

    def _records(self, X: Any, y: Any, units: Any) -> Records:
        """The same as they came."""
        design, columns = self._columns(X, reset=True)
        size = len(columns) if isinstance(columns, np.ndarray) else len(columns[0])
        target, whose = self._target(y, size), units_of(units, size)
        return Records(design, columns, target, whose, target_column=self._target_unbought())

    def _released(self, rows: Rows | Records, meter: Meter) -> tuple[Design, Learned]:
        """All that a fit releases: bounds, where they are bought, and what is learned with them."""
        paid: BoundsPaid | None = None
        self._bought_target = None
        if isinstance(rows, Records):
            rows, self._bought_target, paid, meter = buy(rows, meter)
        self._bounds_paid = paid
        with one_thread():
            return rows.design, self._learn(rows, meter)

    def _columns(self, X: Any, *, reset: bool) -> tuple[Design, Any]:
        """The columns of what was handed in, and what they are: as declared, or as the model was fitted."""
        if isinstance(X, Records):
            return self.design_, X.columns
        check_table(X)
        names = names_of(X)
        if not reset:
            design: Design = self.design_
            if design.has_categories:
                return design, columns_for(design, self._by_name(X, names, design))
        elif names is not None and self._given_bounds() is not None:
            design = self._design(names)
            if design.has_categories or design.unbought:
                self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
                return design, columns_for(design, X)
        elif lists_categories(self._given_bounds()):
            cells = validate_data(self, X, dtype=None, ensure_all_finite="allow-nan")
            design = self._design(_numbered(cells))
            return design, columns_for(design, dict(zip(_numbered(cells), cells.T, strict=True)))
        if names is not None and not hasattr(X, "__dataframe__"):
            X = X.to_pandas() if hasattr(X, "to_pandas") else X
        try:
            matrix = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_min_samples=1)
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise not_numbers(X, names) from None  # scikit-learn's message shows the value
        if reset:
            design = self._design(names or _numbered(matrix))
        return design, matrix

    def _given_bounds(self) -> Any:
        """What was declared about the columns."""
        return self.bounds

    def _by_name(self, X: Any, names: list[str] | None, design: Design) -> Any:
        wanted = [column.name for column in design.columns]
        if names is None and not hasattr(self, "feature_names_in_"):
            cells = validate_data(self, X, reset=False, dtype=None, ensure_all_finite="allow-nan")
            return dict(zip(wanted, cells.T, strict=True))
        if names is None:
            raise InvalidParameter("This model was fitted on columns by name: give a frame that has them.")
        if missing := [name for name in wanted if name not in names]:
            raise InvalidParameter(f"X has no column {listed(missing)}, which the model was fitted on.")
        return X

    def _target(self, y: Any, size: int) -> NDArray[Any] | None:  # noqa: ARG002 - nothing to learn
        """What is to be learned as integers, one a row; floats where bounds are bought first."""
        return None

    def _target_unbought(self) -> Unbought | None:
        """The target's column, if the fit buys its bounds."""
        return None

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        """What is released of the rows; total: no row is an error, nor is that there is none."""
        raise NotImplementedError

    def _set(self, learned: Learned) -> None:
        """Puts what was released on the model."""
        raise NotImplementedError

    def _keep(self, design: Design, learned: Learned, paid: PrivacyLoss, receipt: Receipt | None) -> None:
        """Makes this a fitted model, at once."""
        self.design_, self._paid, self._receipt = design, paid, receipt
        self._set_bounds()
        self._learned = dict(learned)  # what a model file holds
        self._set(learned)

    def _set_bounds(self) -> None:
        """Says which bounds were bought, and what they cost; nothing where none were."""
        for name in ("bounds_", "target_bounds_", "bounds_paid_"):
            self.__dict__.pop(name, None)
        if self._bounds_paid is not None:
            self.bounds_paid_ = self._bounds_paid
            self.bounds_ = {
                column.name: (float(column.lower), float(column.upper))
                for column in self.design_.columns
                if isinstance(column, Number) and column.name in self._bounds_paid.columns
            }
        if (target := self._bought_target) is not None:
            self.target_bounds_ = (float(target.lower), float(target.upper))

    def _coordinates(self, X: Any) -> NDArray[np.float64]:
        """Rows of one's own as the coordinates that the model has weights for."""
        check_is_fitted(self, "design_")
        design, columns = self._columns(X, reset=False)
        return design.floats(columns)


def _numbered(matrix: NDArray[Any]) -> list[str]:
    """What the columns of an array are called."""
    return [f"x{place}" for place in range(matrix.shape[1])]


def units_of(units: Any, size: int) -> NDArray[np.int64] | None:
    """The number of each row's unit, from their ids; None: each row is a unit."""
    if units is None:
        return None
    ids = np.asarray(units)
    if ids.shape != (size,):
        raise InvalidValue("units must have one id for each row of X.")
    return np.asarray(np.unique(ids, return_inverse=True)[1], dtype=np.int64)
