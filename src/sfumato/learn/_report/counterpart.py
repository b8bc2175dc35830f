"""scikit-learn's own model beside a private one: the same columns, the same clamps, no noise."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from sfumato.errors import InvalidParameter
from sfumato.learn.base import PrivateEstimator

__all__ = ["Counterpart"]


class Counterpart:
    """scikit-learn's estimator of the same name over the coordinates of a private model.

    Args:
        model: A fitted private model; what it declares decides how rows become coordinates.

    Raises:
        InvalidParameter: if scikit-learn has no such model.
    """

    def __init__(self, model: PrivateEstimator) -> None:
        self.of, self._made = model, _made(model)

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows, without privacy."""
        self._made.fit(self._coordinates(X), np.asarray(y))
        if hasattr(self._made, "classes_"):
            self.classes_ = self._made.classes_
            self.predict_proba = lambda rows: self._made.predict_proba(self._coordinates(rows))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """What it says of rows."""
        return np.asarray(self._made.predict(self._coordinates(X)))

    def _coordinates(self, X: Any) -> NDArray[np.float64]:
        found = self.of._coordinates(X)
        return found[:, :-1] if self.of.design_.intercept else found


def _made(model: Any) -> Any:
    from sklearn import ensemble, linear_model

    name = type(model).__name__
    if name.startswith("GradientBoosting"):
        return (
            ensemble.HistGradientBoostingClassifier()
            if is_classifier(model)
            else ensemble.HistGradientBoostingRegressor()
        )
    makers = {
        # Coordinates are at most 1, where a unit penalty would hold weights back: nearly none.
        "LogisticRegression": lambda: linear_model.LogisticRegression(C=1e4, max_iter=1000),
        "LinearRegression": linear_model.LinearRegression,
        "Ridge": linear_model.Ridge,
        "PoissonRegression": lambda: linear_model.PoissonRegressor(alpha=0, max_iter=1000),
        "PoissonRegressor": lambda: linear_model.PoissonRegressor(alpha=0, max_iter=1000),
    }
    if not isinstance(model, PrivateEstimator) or name not in makers:
        raise InvalidParameter(
            "There is no plain model of this kind to train: fit one yourself and give it as plain=…."
        )
    return makers[name]()
