"""`PrivateTransformer`: a step that changes each column by itself, by a rule that is public once fitted."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_array, check_is_fitted

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.learn._core.declared import Declared, Number
from sfumato.learn._core.design import Design
from sfumato.learn._steps.features import Feature
from sfumato.learn.base import PrivateEstimator
from sfumato.session import Session

__all__ = ["PrivateTransformer"]

Floats: TypeAlias = NDArray[np.float64]


class PrivateTransformer(TransformerMixin, PrivateEstimator):
    """A step that changes each column by itself.

    Numbers are clamped to their bounds first, so that what comes out has bounds that are public as well:
    `output_bounds_`, which a step after this one is given by `Pipeline`.

    Privacy:
        Claim: that of `PrivateEstimator`. What a fitted step makes of a number follows from that number and
        what was released.
    """

    takes_categories: ClassVar[bool] = False

    @property
    def output_bounds_(self) -> dict[str, Any]:
        """What is public about each column that comes out: bounds, by the names that come out."""
        check_is_fitted(self, "design_")
        return {column.name: (float(column.lower), float(column.upper)) for column in self._all_outputs()}

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and change the same rows; what comes out is as private as the rows are.

        Raises:
            InvalidParameter: with a session, whose rows nobody is handed; nothing was spent.
        """
        if isinstance(X, Session):
            raise InvalidParameter(
                "A session's rows are not handed out, changed or not: use fit, or "
                "a learn.Pipeline with a model."
            )
        return super().fit_transform(X, y, **fit_params)

    def transform(self, X: Any) -> Floats:
        """These rows, changed; as columns of floats.

        Args:
            X: Rows of one's own, with the columns of the fit.
        """
        check_is_fitted(self, "design_")
        design, columns = self._columns(X, reset=False)
        found = [
            changed
            for place in range(len(design.columns))
            for changed in self._changed(place, _at(columns, place))
        ]
        return np.column_stack(found)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """The rows that give these, as near as can be told.

        Raises:
            InvalidValue: if the number of columns is not that of `transform`.
        """
        check_is_fitted(self, "design_")
        matrix = check_array(X, dtype=np.float64)
        widths = [len(self._outputs(column, place)) for place, column in enumerate(self.design_.columns)]
        if matrix.shape[1] != sum(widths):
            raise InvalidValue(f"X has {matrix.shape[1]} columns, and {sum(widths)} come out of this step.")
        parts = np.split(matrix, np.cumsum(widths)[:-1], axis=1)
        return np.column_stack([self._back(place, part) for place, part in enumerate(parts)])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns that come out.

        Args:
            input_features: Names of the columns that go in; None: those of the fit.
        """
        check_is_fitted(self, "design_")
        given = _check_feature_names_in(self, input_features)
        named = [_named(column, str(name)) for column, name in zip(self.design_.columns, given, strict=True)]
        return np.array(
            [out.name for place, column in enumerate(named) for out in self._outputs(column, place)],
            dtype=object,
        )

    def _design_of(self, bounds: Any, names: list[str]) -> Design:
        return self._taken(super()._design_of(bounds, names))

    def _taken(self, design: Design) -> Design:
        """The design, if this step takes such columns."""
        if design.has_categories and not self.takes_categories:
            raise InvalidParameter(
                f"{type(self).__name__} takes numbers, and bounds lists categories: put an OneHotEncoder "
                "before it."
            )
        if design.unbought and self._is_free():
            raise InvalidParameter(
                f"{type(self).__name__} reads no rows as it is, so it buys no bounds: declare them, "
                "or put it in a Pipeline."
            )
        return Design(design.columns, intercept=False, signed=self.signed)

    def _all_outputs(self) -> list[Number]:
        return [
            out for place, column in enumerate(self.design_.columns) for out in self._outputs(column, place)
        ]

    def _features(self, features: list[Feature]) -> list[Feature]:
        """What comes out where these features go in."""
        return [
            Feature(out, feature.source, values)
            for place, feature in enumerate(features)
            for out, values in zip(
                self._outputs(feature.column, place), self._changed(place, feature.values), strict=True
            )
        ]

    def _changed(self, place: int, values: NDArray[Any]) -> list[Floats]:
        """What becomes of the numbers, or codes, of one column."""
        column = self.design_.columns[place]
        if not isinstance(column, Number) or column.one_of:
            return [np.asarray(values, np.float64)]
        held = np.clip(np.asarray(values, np.float64), float(column.lower), float(column.upper))
        return self._rule(place, held)

    def _changing(self, design: Design) -> list[int]:
        """The places of the columns that are changed: not those that say a category by 0 and 1."""
        return [
            place
            for place, column in enumerate(design.columns)
            if isinstance(column, Number) and not column.one_of
        ]

    def _rule(self, place: int, held: Floats) -> list[Floats]:
        """What becomes of numbers within the bounds of a column."""
        raise NotImplementedError

    def _outputs(self, column: Declared, place: int) -> list[Number]:
        """What is public about what comes out of a column."""
        raise NotImplementedError

    def _back(self, place: int, part: Floats) -> NDArray[Any]:
        """Numbers of a column from what came out of it."""
        raise NotImplementedError


def _at(columns: Any, place: int) -> NDArray[Any]:
    found = columns[:, place] if isinstance(columns, np.ndarray) else columns[place]
    return np.asarray(found)


def _named(column: Declared, name: str) -> Declared:
    from dataclasses import replace

    return replace(column, name=name)
