"""Model files: what is public of a fitted model, as JSON that people can read and nothing can be run from."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._files import write_whole
from sfumato.errors import InvalidParameter, InvalidValue, SfumatoError
from sfumato.fits.meter import price
from sfumato.learn._choosing.searching import Searching
from sfumato.learn._core.buying import bounds_price
from sfumato.learn._core.declared import AUTO, Category, Number, Unbought
from sfumato.learn._core.encoded import (
    array_of,
    array_written,
    column_of,
    column_written,
    decoded,
    encoded,
    exact,
    number_of,
)
from sfumato.learn.base import PrivateEstimator
from sfumato.learn.kinds import PrivateClassifier, PrivateRegressor
from sfumato.learn.pipeline import Pipeline
from sfumato.loss import NO_LOSS, GaussianLoss, PrivacyLoss

__all__ = ["load", "public_parameters", "save"]

_FORMAT, _VERSION = "sfumato model", 1


def save(model: PrivateEstimator | Searching, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that `load` reads back.

    It holds parameters, what is declared of each column, the price and all that the fit released: nothing
    else of the data, no key and no budget. The file is written whole or not at all.

    Args:
        model: A fitted model or pipeline of this package; of a search, the chosen model is written.
        path: Where to write it; what is there is replaced.

    Raises:
        InvalidParameter: if it is no such model, or the file cannot be written.
    """
    text = _written(model)
    try:
        write_whole(path, text.encode())
    except OSError:
        raise InvalidParameter(
            f"{Path(path)} cannot be written: it must be a file in an existing folder."
        ) from None


def load(path: str | os.PathLike[str]) -> PrivateEstimator:
    """The fitted model that `save` or `sfumato learn --out` wrote.

    A file is data: it is read and checked, and nothing in it is run. What it says of its price is as good as
    where the file comes from; the proof is the receipt in the ledger, whose number the file names.

    Raises:
        InvalidValue: if the file is no model, or one of another version.
    """
    place = Path(path)
    try:
        facts = json.loads(place.read_text(encoding="utf-8"))
    except OSError:
        raise InvalidValue(f"{place} cannot be read.") from None
    except (ValueError, RecursionError):
        raise _refused(place) from None
    if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
        raise _refused(place)
    if facts.get("version") != _VERSION:
        raise InvalidValue(f"{place} was written by another version of Sfumato; upgrade to read it.")
    try:
        with np.errstate(all="ignore"):
            return _read(facts)
    except (
        SfumatoError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ):
        raise _refused(place) from None


def _refused(place: Path) -> InvalidValue:
    return InvalidValue(f"{place} is not a model file, or not a whole one: save the model again.")


def public_parameters(model: PrivateEstimator) -> dict[str, Any]:
    """A fitted model's parameters, with what a session's table declared in place of what was not given."""
    given: dict[str, Any] = model.get_params(deep=False)
    if given.get("bounds", "") is None or (model.receipt is not None and "bounds" in given):
        given["bounds"] = _bounds_had(model)
    return given | _target_had(model)


def _bounds_had(model: PrivateEstimator) -> dict[str, Any]:
    """The bounds that a fit had, by column; those that it bought are bought again."""
    bought = () if model._bounds_paid is None else model._bounds_paid.columns
    return {
        column.name: AUTO
        if column.name in bought
        else (column.lower, column.upper)
        if isinstance(column, Number)
        else column
        for column in model.design_.columns
    }


def _target_had(model: PrivateEstimator) -> dict[str, Any]:
    """What was declared of the target, where the model itself does not say it."""
    given = model.get_params(deep=False)
    if isinstance(model, PrivateClassifier) and given.get("classes", "") is None:
        return {"classes": model._listed()}
    if isinstance(model, PrivateRegressor) and given.get("target_bounds", "") is None:
        target = model._target_column()
        return {"target_bounds": (target.lower, target.upper)}
    return {}


def _written(model: Any) -> str:
    if isinstance(model, Searching):
        model = getattr(model, "best_estimator_", None)
    if not isinstance(model, PrivateEstimator) or not hasattr(model, "_learned"):
        raise InvalidParameter("Only a fitted model of sfumato.learn can be written to a file.")
    names = getattr(model, "feature_names_in_", None)
    target, bought = model._bought_target, model._bounds_paid
    facts: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "model": type(model).__name__,
        "price": _price_written(model),
        "receipt": None if model.receipt is None else model.receipt.number,
        "parameters": _parameters_written(model),
        "features": None if names is None else [str(name) for name in names],
        "columns": [column_written(column) for column in model.design_.columns],
        "bought": None
        if bought is None
        else {"columns": list(bought.columns), "rho": str(bought.rho / bought.share)},
        "target": None if target is None else column_written(target),
        "learned": {name: array_written(values, name) for name, values in model._learned.items()},
    }
    return _lines(facts)


def _price_written(model: PrivateEstimator) -> dict[str, Any] | None:
    """Epsilon and delta; and the loss, where it is not that of one Gaussian release but of a search."""
    if model.loss == NO_LOSS:
        return None
    paid = model.loss.approximate
    assert paid is not None  # prices of fits are calibrated
    written: dict[str, Any] = {"epsilon": str(paid[0]), "delta": str(paid[1])}
    return written if isinstance(model.loss, GaussianLoss) else written | {"loss": model.loss.to_dict()}


def _parameters_written(model: PrivateEstimator) -> dict[str, Any]:
    if not isinstance(model, Pipeline):
        return {name: encoded(value, name) for name, value in public_parameters(model).items()}
    given: dict[str, Any] = model.get_params(deep=False)
    first = model._parts()[0][1]
    own = given["bounds"] is not None or getattr(first, "bounds", None) is None  # or else they are the step's
    fresh = _bounds_had(model) if model.receipt is not None or model._given_bounds() is None else None
    if fresh is not None and own:
        given["bounds"] = fresh
    steps = [
        [name, _step_written(name, step, fresh if step is first and not own else None)]
        for name, step in given.pop("steps")
    ]
    return {"steps": steps} | {name: encoded(value, name) for name, value in given.items()}


def _step_written(name: str, step: Any, bounds: dict[str, Any] | None) -> Any:
    """A step with its parameters; what it has learned is among the pipeline's own arrays."""
    if step is None or step == "passthrough":
        return step
    if not isinstance(step, PrivateEstimator):
        raise InvalidParameter(
            f"Step {name[:60]!r} is not of sfumato.learn and cannot be written to a file: do what it does "
            "before the pipeline."
        )
    given = step.get_params(deep=False) | _target_had(step) | ({} if bounds is None else {"bounds": bounds})
    written = {key: encoded(value, key) for key, value in given.items()}
    return {"model": type(step).__name__, "parameters": written}


def _lines(facts: Mapping[str, Any]) -> str:
    """JSON with one fact a line, and one column or array a line."""

    def one(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    def some(value: Any) -> str:
        if isinstance(value, dict) and len(value) > 1:
            return "{\n" + ",\n".join(f"  {one(key)}: {one(part)}" for key, part in value.items()) + "\n }"
        if isinstance(value, list) and any(isinstance(part, dict) for part in value):
            return "[\n" + ",\n".join(f"  {one(part)}" for part in value) + "\n ]"
        return one(value)

    return "{\n" + ",\n".join(f" {one(key)}: {some(value)}" for key, value in facts.items()) + "\n}\n"


def _kind(name: Any) -> type[PrivateEstimator]:
    """The class of that name: one of this package's models, and nothing else."""
    from sfumato import learn

    kind = getattr(learn, name) if name in learn.__all__ else None
    if not isinstance(kind, type) or not issubclass(kind, PrivateEstimator):
        raise ValueError("no such model")
    return kind


def _parameters_of(kind: type[PrivateEstimator], facts: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a file gives, all of them and no others."""
    written = dict(facts)
    given: dict[str, Any] = {}
    if issubclass(kind, Pipeline):
        given["steps"] = [(_text(name), _step_of(step)) for name, step in written.pop("steps")]
    given |= {name: decoded(value) for name, value in written.items()}
    if set(given) != set(kind._get_param_names()):
        raise ValueError("other parameters")
    return given


def _step_of(facts: Any) -> Any:
    if facts is None or facts == "passthrough":
        return facts
    kind = _kind(facts["model"])
    if issubclass(kind, Pipeline):
        raise ValueError("a pipeline in a pipeline")
    return kind(**_parameters_of(kind, facts["parameters"]))


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError("no name")
    return name


def _paid_of(facts: Mapping[str, Any] | None) -> PrivacyLoss:
    """The loss that a file tells: of one Gaussian release, unless it says another that fits the price."""
    if facts is None:
        return NO_LOSS
    point = exact(facts["epsilon"]), exact(facts["delta"])
    if "loss" not in facts:
        return price(*point)
    loss = PrivacyLoss.from_dict(facts["loss"])
    if loss.approximate != point:
        raise ValueError("a loss of another price")
    return loss


def _read(facts: Mapping[str, Any]) -> PrivateEstimator:
    kind = _kind(facts["model"])
    given = _parameters_of(kind, facts["parameters"])
    model = kind(**given)
    columns = [column_of(column) for column in facts["columns"]]
    model._bought_target = None if facts["target"] is None else number_of(facts["target"])
    model._check()
    names = [name for name, _ in columns]
    # As the class makes it, between the bounds that the fit had: declared, a session's, or bought.
    own = {"bounds": dict(columns)} if "bounds" in given else {}
    design = kind(**{**given, **own})._design(names)
    said = model._design(names).columns
    if any(mine != column for mine, column in zip(said, design.columns, strict=True) if not _is_bought(mine)):
        raise ValueError("columns that contradict the bounds")
    paid = _paid_of(facts["price"])
    if model._is_free() != (facts["price"] is None):
        raise ValueError("a price that is none, or none where there is one")
    bought = facts["bought"]
    if bought is not None:
        model._bounds_paid = bounds_price(exact(bought["rho"]), [_text(name) for name in bought["columns"]])
    model.n_features_in_ = len(names)
    if facts["features"] is not None:
        model.feature_names_in_ = np.array([str(name) for name in facts["features"]], dtype=object)
    learned = {str(name): array_of(array) for name, array in facts["learned"].items()}
    model._keep(design, learned, paid, None)
    _try(model, columns)
    return model


def _is_bought(column: Number | Category) -> bool:
    return isinstance(column, Unbought)


def _try(model: Any, columns: list[tuple[str, Any]]) -> None:
    """One made-up row goes through, so that arrays of another size are found now."""
    import pyarrow as pa

    row = [given.values[0] if isinstance(given, Category) else float(given[0]) for _, given in columns]
    X: Any = np.array([row]) if not model.design_.has_categories else None
    if X is None:
        X = pa.table({name: [value] for (name, _), value in zip(columns, row, strict=True)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a made-up row has no names
        for name in ("predict", "transform"):
            if hasattr(model, name):
                getattr(model, name)(X)
