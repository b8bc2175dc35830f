"""`PrivateEstimator`: scikit-learn's habits over a fit that is one priced release."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.learn._core.buying import BoundsPaid, Unbounded
from sfumato.learn._core.declared import Number, Unbought, declared, is_auto, number
from sfumato.learn._core.design import Design, coded, whole
from sfumato.learn._core.frames import columns_for, names_of
from sfumato.learn._core.meter import Meter, price
from sfumato.learn._core.rows import Rows

if TYPE_CHECKING:
    from sfumato.ledger import Receipt
    from sfumato.loss import GaussianLoss
    from sfumato.numeric.exact import Rational

__all__ = ["Learned", "PrivateClassifier", "PrivateEstimator", "PrivateRegressor"]

Learned: TypeAlias = Mapping[str, NDArray[Any]]
"""What a fit releases: arrays by name, all of them noisy or public."""
_TARGET = "the target"


class PrivateEstimator(BaseEstimator):
    """A model whose whole fit is one private release.

    A family of models says how it learns (`_learn`, from exact sums with noise), and what becomes of that
    (`_set`). Everything else is here: declarations, prices, arrays and sessions.

    Args:
        epsilon: What the whole fit costs.
        delta: Likewise.
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

    epsilon: Rational | None
    delta: Rational | None
    bounds: Any
    _bounds_paid: BoundsPaid | None = None
    _bought_target: Number | None = None

    @property
    def loss(self) -> GaussianLoss:
        """What the fit costs, or did cost: that of one Gaussian release."""
        paid: GaussianLoss | None = getattr(self, "_paid", None)
        return self._price() if paid is None else paid

    @property
    def receipt(self) -> Receipt | None:
        """Of the debit that paid for the fit; None: it was fitted on arrays, which no ledger pays for."""
        return getattr(self, "_receipt", None)

    def fit(self, X: Any, y: Any = None, *, units: Any = None) -> Self:
        """Learn from arrays or a frame.

        Args:
            X: One row a record: an array, or an Arrow, pandas or Polars frame.
            y: What is to be learned, one a row; None where nothing is.
            units: Whose row each is, where somebody has several: one id a row.

        Raises:
            InvalidParameter: for declarations that are missing or contradict each other; nothing was read.
            InvalidValue: for what cannot be learned from.
        """
        paid = self._price()
        self._check()
        rows = self._rows(X, y, units)
        design, learned = self._released(rows, Meter.alone(paid, exchange=rows.exchange))
        self._keep(design, learned, paid, None)
        return self

    def partial_fit(self, *_: Any, **__: Any) -> None:
        """Refused: every call would be one more look at the data, to be paid for by itself.

        Raises:
            InvalidParameter: always, with what to do instead.
        """
        raise InvalidParameter(
            "There is no partial_fit: each call would cost epsilon again. Collect the rows and fit once."
        )

    def _price(self) -> GaussianLoss:
        if self.epsilon is None or self.delta is None:
            raise InvalidParameter("Say what the fit may cost: epsilon=1, delta=1e-6.")
        return price(self.epsilon, self.delta)

    def _check(self) -> None:
        """Refuses parameters that contradict each other, before anything is read."""

    def _design(self, names: list[str]) -> Design:
        return Design(
            declared(self.bounds, names), intercept=getattr(self, "fit_intercept", True), signed=self.signed
        )

    def _rows(self, X: Any, y: Any, units: Any) -> Rows | Unbounded:
        """The rows of arrays or a frame."""
        design, columns = self._columns(X, reset=True)
        size = len(columns) if isinstance(columns, np.ndarray) else len(columns[0])
        target, whose = self._target(y, size), _units(units, size)
        lacking = self._target_unbought()
        if design.unbought or lacking is not None:
            return Unbounded(design, columns, target, whose, target_column=lacking)
        return Rows(design, design.integers(columns), target, whose)

    def _released(self, rows: Rows | Unbounded, meter: Meter) -> tuple[Design, Learned]:
        """All that a fit releases: bounds, where they are bought, and what is learned with them."""
        paid: BoundsPaid | None = None
        self._bought_target = None
        if isinstance(rows, Unbounded):
            rows, self._bought_target, paid, meter = rows.buy(meter)
        self._bounds_paid = paid
        return rows.design, self._learn(rows, meter)

    def _columns(self, X: Any, *, reset: bool) -> tuple[Design, Any]:
        """The columns of what was handed in, and what they are: as declared, or as the model was fitted."""
        names = names_of(X)
        if not reset:
            design: Design = self.design_
            if design.has_categories:
                return design, columns_for(design, self._named(X, names, design))
        elif names is not None and self.bounds is not None:
            design = self._design(names)
            if design.has_categories or design.unbought:
                self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
                return design, columns_for(design, X)
        if names is not None and not hasattr(X, "__dataframe__"):
            X = X.to_pandas() if hasattr(X, "to_pandas") else X
        matrix = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_min_samples=1)
        if reset:
            design = self._design(names or [f"x{place}" for place in range(matrix.shape[1])])
        return design, matrix

    def _named(self, X: Any, names: list[str] | None, design: Design) -> Any:
        wanted = [column.name for column in design.columns]
        if names is None or not set(wanted) <= set(names):
            raise InvalidParameter("This model was fitted on columns by name: give a frame that has them.")
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

    def _keep(self, design: Design, learned: Learned, paid: GaussianLoss, receipt: Receipt | None) -> None:
        """Makes this a fitted model, at once."""
        self.design_, self._paid, self._receipt = design, paid, receipt
        self._set_bounds()
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


class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """A model of which of several declared classes a row is in; `classes_` are sorted, as scikit-learn's."""

    classes: Any

    def _check(self) -> None:
        super()._check()
        self._listed()

    def _listed(self) -> list[Any]:
        """The declared classes, sorted."""
        given = self.classes
        if given is None or isinstance(given, str) or not np.iterable(given):
            raise InvalidParameter(
                "Say which classes there are, such as classes=[0, 1]; no fit finds them out."
            )
        try:
            listed = np.unique(np.asarray(list(given))).tolist()
        except TypeError:
            raise InvalidParameter("classes must be all numbers or all texts.") from None
        if len(listed) < 2:
            raise InvalidParameter("classes must have at least two different ones.")
        return list(listed)

    def _target(self, y: Any, size: int) -> NDArray[np.integer]:
        labels = _one_a_row(y, size)
        codes = coded(labels.tolist(), self._listed())
        if (codes < 0).any():
            raise InvalidValue("y has labels that are not among the declared classes.")
        return codes

    def _set_classes(self) -> None:
        self.classes_ = np.array(self._listed())


class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """A model of a number, which is clamped to declared bounds of its own."""

    target_bounds: Any

    def _check(self) -> None:
        super()._check()
        self._target_column()

    def _target_column(self) -> Number:
        """The target's bounds: as declared, or as the fit bought them."""
        given = self.target_bounds
        if is_auto(given):
            return self._bought_target or Unbought(_TARGET, Fraction(0), Fraction(0))
        if given is None or np.ndim(given) != 1 or len(given) != 2:
            raise InvalidParameter("Say what the target is clamped to: target_bounds=(lower, upper).")
        return number(_TARGET, *given)

    def _target_unbought(self) -> Unbought | None:
        return Unbought(_TARGET, Fraction(0), Fraction(0)) if is_auto(self.target_bounds) else None

    def _target(self, y: Any, size: int) -> NDArray[Any]:
        values = np.asarray(_one_a_row(y, size), dtype=np.float64)
        if not np.isfinite(values).all():
            raise InvalidValue("y has NaN or infinity: replace them first.")
        return values if is_auto(self.target_bounds) else whole(values, self._target_column())


def _one_a_row(y: Any, size: int) -> NDArray[Any]:
    if y is None:
        raise InvalidValue("This model requires y to be passed, but the target y is None.")
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (size,):
        raise InvalidValue("y must have one value for each row of X.")
    return values


def _units(units: Any, size: int) -> NDArray[np.int64] | None:
    if units is None:
        return None
    ids = np.asarray(units)
    if ids.shape != (size,):
        raise InvalidValue("units must have one id for each row of X.")
    return np.asarray(np.unique(ids, return_inverse=True)[1], dtype=np.int64)
