"""`PrivateClassifier` and `PrivateRegressor`: models of a declared class, and of a clamped number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import column_or_1d

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.learn._core.declared import (
    TARGET,
    Category,
    Declared,
    Number,
    Unbought,
    is_auto,
    number,
)
from sfumato.learn._core.design import coded, whole
from sfumato.learn.base import PrivateEstimator
from sfumato.numeric.exact import Rational
from sfumato.session.rows_wanted import WantedColumn

__all__ = ["PrivateClassifier", "PrivateRegressor"]

_MOST_CLASSES = 100


class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """A model of which of several declared classes a row is in; `classes_` are sorted, as scikit-learn's."""

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        classes: Any = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes

    def _check(self) -> None:
        super()._check()
        self._listed()

    def _listed(self) -> list[Any]:
        """The declared classes, sorted: those given, or those that a session's table declares."""
        given = self.classes
        if given is None and self._public:
            given = _classes_of(self._public[0])
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
        codes = coded(labels, self._listed())
        if (codes < 0).any():
            raise InvalidValue(
                f"y has labels that are missing or not among the declared classes {self._listed()[:9]}: list "
                "all classes, or leave those rows out."
            )
        return codes

    def _target_names(self, target: Any) -> tuple[str, ...]:
        return _one_column(target)

    def _target_declared(self, names: tuple[str, ...]) -> tuple[Declared, ...]:
        return tuple(Category(name, tuple(self._listed())) for name in names)

    def _set_classes(self) -> None:
        self.classes_ = np.array(self._listed())


class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """A model of a number, which is clamped to declared bounds of its own."""

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        target_bounds: Any = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.target_bounds = target_bounds

    def _check(self) -> None:
        super()._check()
        self._target_column()

    def _target_column(self) -> Number:
        """The target's bounds: as declared, or as the fit bought them."""
        given = self.target_bounds
        if is_auto(given):
            return self._bought_target or Unbought(TARGET, Fraction(0), Fraction(0))
        if given is None and self._public and None not in (self._public[0].lower, self._public[0].upper):
            given = (self._public[0].lower, self._public[0].upper)
        if given is None or np.ndim(given) != 1 or len(given) != 2:
            raise InvalidParameter("Say what the target is clamped to: target_bounds=(lower, upper).")
        return number(TARGET, *given)

    def _target_unbought(self) -> Unbought | None:
        return Unbought(TARGET, Fraction(0), Fraction(0)) if is_auto(self.target_bounds) else None

    def _target(self, y: Any, size: int) -> NDArray[Any]:
        try:
            values = np.asarray(_one_a_row(y, size), dtype=np.float64)
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise InvalidValue("y has values that are no numbers.") from None  # numpy's message shows one
        if not np.isfinite(values).all():
            raise InvalidValue("y has NaN or infinity: replace them first.")
        return values if is_auto(self.target_bounds) else whole(values, self._target_column())

    def _target_names(self, target: Any) -> tuple[str, ...]:
        return _one_column(target)

    def _target_declared(self, names: tuple[str, ...]) -> tuple[Declared, ...]:
        column = self._target_unbought() or self._target_column()
        return tuple(replace(column, name=name) for name in names)


def _classes_of(column: WantedColumn) -> Sequence[Any] | None:
    """The classes that a table declares: a column's values, or the few whole numbers within its bounds."""
    if column.values is not None:
        return column.values
    if column.type != "integer" or column.lower is None or column.upper is None:
        return None
    numbers = range(math.ceil(column.lower), math.floor(column.upper) + 1)
    return numbers if len(numbers) <= _MOST_CLASSES else None


def _one_column(target: Any) -> tuple[str, ...]:
    if not isinstance(target, str):
        raise InvalidParameter('Say which column is to be learned: target="income".')
    return (target,)


def _one_a_row(y: Any, size: int) -> NDArray[Any]:
    if y is None:
        raise InvalidValue("This model requires y to be passed, but the target y is None.")
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=True)
    if values.shape != (size,):
        raise InvalidValue("y must have one value for each row of X.")
    return values
