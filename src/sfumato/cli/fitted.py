"""What a fitted model holds, as small tables: weights, means, centres, curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["columns_shown"]

Columns = Mapping[str, Sequence[Any]]


def columns_shown(model: Any) -> dict[str, Columns]:
    """Tables by their titles: what people look for first in a model of this kind."""
    for attribute, tables in _SHOWN.items():
        if hasattr(model, attribute):
            return tables(model)
    return {}


def _names(model: Any) -> list[str]:
    return [coordinate.name for coordinate in model.design_.coordinates]


def _weights(model: Any) -> dict[str, Columns]:
    weights = np.atleast_2d(np.asarray(model.coef_, float))
    starts = np.atleast_1d(np.asarray(getattr(model, "intercept_", 0.0), float))
    heads = ["weight"] if len(weights) == 1 else [f"weight, {label}" for label in model.classes_]
    columns: dict[str, Sequence[Any]] = {"column": [*_names(model), "(intercept)"]}
    for head, line, start in zip(heads, weights, starts, strict=True):
        columns[head] = [*line.tolist(), float(start)]
    about = ""
    if hasattr(model, "classes_") and len(weights) == 1:
        about = f"Towards {model.classes_[-1]}, in the columns' own scale"
    return {about or "Weights in the columns' own scale": columns}


def _hazards(model: Any) -> dict[str, Columns]:
    ratios = np.asarray(model.hazard_ratios_).tolist()
    return {"For each column's 1 more": {"column": _names(model), "hazard ratio": ratios}}


def _moments(model: Any) -> dict[str, Columns]:
    spread = np.sqrt(np.maximum(np.diag(model.covariance_), 0.0))
    return {
        f"About {model.count_:,.0f} rows": {
            "column": _names(model),
            "mean": np.asarray(model.mean_).tolist(),
            "deviation": spread.tolist(),
        }
    }


def _components(model: Any) -> dict[str, Columns]:
    columns: dict[str, Sequence[Any]] = {"column": [*_names(model), "(share of the variance)"]}
    for at, (line, share) in enumerate(
        zip(model.components_, model.explained_variance_ratio_, strict=True), start=1
    ):
        columns[f"component {at}"] = [*np.asarray(line).tolist(), float(share)]
    return {"Components": columns}


def _centres(model: Any) -> dict[str, Columns]:
    columns: dict[str, Sequence[Any]] = {"column": _names(model)}
    for at, line in enumerate(np.asarray(model.cluster_centers_, float), start=1):
        columns[f"centre {at}"] = line.tolist()
    return {"Centres": columns}


def _shapes(model: Any) -> dict[str, Columns]:
    """How far each column moves the score, from its lowest bin to its highest."""
    return {
        "How far each column moves the score": {
            "column": [shape.name for shape in model.shapes_],
            "bins": [len(shape.scores) for shape in model.shapes_],
            "moves by": [float(np.ptp(np.asarray(shape.scores), axis=0).max()) for shape in model.shapes_],
        }
    }


_SHOWN = {
    "shapes_": _shapes,
    "cluster_centers_": _centres,
    "components_": _components,
    "hazard_ratios_": _hazards,
    "coef_": _weights,
    "covariance_": _moments,
}
