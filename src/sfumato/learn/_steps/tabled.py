"""Steps of scikit-learn that learn nothing: what they make of a number is looked up in a public table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from sfumato.errors import InvalidParameter
from sfumato.learn._core.declared import Number, number
from sfumato.learn._steps.features import Feature

__all__ = ["is_stateless", "public_rows", "tabled"]


def is_stateless(step: Any) -> bool:
    """Whether scikit-learn says of a step that it transforms without having been fitted."""
    return hasattr(step, "transform") and not get_tags(step).requires_fit


def public_rows(features: Sequence[Feature], turn: int = 0) -> NDArray[np.float64]:
    """All values of all columns side by side, each column turned by another number of places."""
    size = max((len(feature.values) for feature in features), default=1)
    columns = [
        np.roll(np.resize(feature.values.astype(np.float64), size), turn * (7 * place + 1))
        for place, feature in enumerate(features)
    ]
    return np.column_stack(columns)


def tabled(name: str, step: Any, features: Sequence[Feature]) -> list[Feature]:
    """What a step that learns nothing makes of these columns.

    Args:
        name: The step's.
        step: One of scikit-learn's, such as FunctionTransformer.
        features: The columns that go in.

    Raises:
        InvalidParameter: if it does not treat each number by itself, or gives what is no number.

    Privacy:
        Claim: what comes out is public. Proof: the step is given all values that the columns can have, in two
        orders, and never a row.
    """
    if not all(isinstance(feature.column, Number) for feature in features):
        raise InvalidParameter(f"Step {name!r} takes numbers: put an OneHotEncoder before it.")
    first = _applied(name, step, public_rows(features))
    # Other neighbours, and fewer: whoever looks at other rows gives something else.
    second = _applied(name, step, public_rows(features, 1)[: (len(first) + 1) // 2])
    if first.shape[1] != len(features) or second.shape[1] != len(features):
        raise InvalidParameter(f"Step {name!r} must give one column for each column: {_KIND}.")
    found = list[Feature]()
    for place, feature in enumerate(features):
        turned = np.roll(first[:, place], 7 * place + 1)[: len(second)]
        if not np.array_equal(turned, second[:, place], equal_nan=True):
            raise InvalidParameter(f"Step {name!r} must treat each number by itself: {_KIND}.")
        values = first[: len(feature.values), place]
        if not np.isfinite(values).all():
            raise InvalidParameter(
                f"Step {name!r} gives NaN or infinity for numbers within the bounds of "
                f"{feature.column.name[:60]!r}: narrow the bounds, or change the function."
            )
        column = number(feature.column.name, float(values.min()), float(values.max()))
        found.append(Feature(column, feature.source, values))
    return found


_KIND = "what looks at several columns or rows at once cannot be a step here"


def _applied(name: str, step: Any, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that rows have no names
        try:
            found = np.asarray(step.transform(matrix), dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidParameter(f"Step {name!r} does not take numbers as they are.") from None
    if found.ndim != 2 or len(found) != len(matrix):
        raise InvalidParameter(f"Step {name!r} must give one row for each row: {_KIND}.")
    return found
