"""Model files: what is public of a fitted model, as JSON that people can read and nothing can be run from."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
import warnings
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, InvalidValue, SfumatoError
from sfumato.fits.meter import price
from sfumato.learn._core.buying import bounds_price
from sfumato.learn._core.declared import Category, Number, Unbought, number
from sfumato.learn.base import PrivateEstimator
from sfumato.learn.kinds import PrivateClassifier, PrivateRegressor
from sfumato.loss import NO_LOSS
from sfumato.schema import Enum

__all__ = ["load", "public_parameters", "save"]

_FORMAT, _VERSION = "sfumato model", 1
_KINDS = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "U": "text"}
_RATIO = re.compile("-?[0-9]{1,1000}(/[0-9]{1,1000})?", re.ASCII)
_ENDLESS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def save(model: PrivateEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that `load` reads back.

    It holds parameters, what is declared of each column, the price and all that the fit released: nothing
    else of the data, no key and no budget. The file is written whole or not at all.

    Args:
        model: A fitted model of this package, by itself.
        path: Where to write it; what is there is replaced.

    Raises:
        InvalidParameter: if it is no such model, or the file cannot be written.
    """
    text = _written(model)
    place, temporary = Path(path), None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.resolve().parent)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, place)
        temporary = None
    except OSError:
        raise InvalidParameter(
            f"{place} cannot be written: it must be a file in an existing folder."
        ) from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


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
    if given.get("bounds", "") is None:
        given["bounds"] = {
            column.name: (column.lower, column.upper) if isinstance(column, Number) else column
            for column in model.design_.columns
        }
    if isinstance(model, PrivateClassifier) and given.get("classes", "") is None:
        given["classes"] = model._listed()
    if isinstance(model, PrivateRegressor) and given.get("target_bounds", "") is None:
        target = model._target_column()
        given["target_bounds"] = (target.lower, target.upper)
    return given


def _written(model: Any) -> str:
    if not isinstance(model, PrivateEstimator) or not hasattr(model, "_learned"):
        raise InvalidParameter("Only a fitted model of sfumato.learn, by itself, can be written to a file.")
    paid = model.loss.approximate if model.loss != NO_LOSS else None  # prices of fits are calibrated
    names = getattr(model, "feature_names_in_", None)
    target = model._bought_target
    facts: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "model": type(model).__name__,
        "price": None if paid is None else {"epsilon": str(paid[0]), "delta": str(paid[1])},
        "receipt": None if model.receipt is None else model.receipt.number,
        "parameters": {name: _encoded(value, name) for name, value in public_parameters(model).items()},
        "features": None if names is None else [str(name) for name in names],
        "columns": [_column(column) for column in model.design_.columns],
        "bought": None if model._bounds_paid is None else list(model._bounds_paid.columns),
        "target": None if target is None else _column(target),
        "learned": {name: _array(values, name) for name, values in model._learned.items()},
    }
    return _lines(facts)


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


def _column(column: Number | Category) -> dict[str, Any]:
    if isinstance(column, Category):
        return {"name": column.name, "values": [_encoded(value, column.name) for value in column.values]}
    return {"name": column.name, "lower": str(column.lower), "upper": str(column.upper)}


def _array(values: Any, name: str) -> dict[str, Any]:
    array = np.asarray(values)
    if array.dtype.kind not in _KINDS:
        raise InvalidParameter(f"{name[:60]} of this model cannot be written to a file.")
    flat = [_finite(value) for value in array.ravel().tolist()]
    return {"type": _KINDS[array.dtype.kind], "shape": list(array.shape), "values": flat}


def _finite(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _encoded(value: Any, name: str) -> Any:
    """A parameter as JSON that tells what it was."""
    match value:
        case None | bool() | int() | str():
            return value
        case np.generic():
            return _encoded(value.item(), name)
        case float():
            return value if math.isfinite(value) else {"float": _finite(value)}
        case Fraction() | Decimal():
            exact = Fraction(value)
            return {"number": str(exact)} if exact.denominator > 1 else exact.numerator
        case date():
            return {"day": value.isoformat()[:10]}
        case list():
            return [_encoded(part, name) for part in value]
        case tuple():
            return {"tuple": [_encoded(part, name) for part in value]}
        case np.ndarray():
            return {"array": _array(value, name)}
        case Mapping():
            return {"by name": {str(key): _encoded(part, name) for key, part in value.items()}}
    if isinstance(getattr(value, "values", None), tuple):  # a declared type, such as Enum
        return {"categories": [_encoded(part, name) for part in value.values]}
    if hasattr(value, "lower") and hasattr(value, "upper"):  # such as Int
        return {"tuple": [_encoded(value.lower, name), _encoded(value.upper, name)]}
    raise InvalidParameter(f"The parameter {name[:60]} cannot be written to a file: give numbers or texts.")


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(part) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "float":
            return _ENDLESS[content]
        case "number":
            return _exact(content)
        case "day":
            return date.fromisoformat(content)
        case "categories":
            return _categories([_decoded(part) for part in content])
        case "tuple":
            return tuple(_decoded(part) for part in content)
        case "array":
            return _array_of(content)
        case "by name":
            return {key: _decoded(part) for key, part in content.items()}
    raise ValueError(kind)


def _exact(text: Any) -> Fraction:
    """A number as `save` writes it; spelt out, 1e999999999 would fill the memory."""
    if not isinstance(text, str) or not _RATIO.fullmatch(text):
        raise ValueError("no number")
    return Fraction(text)


def _categories(values: list[Any]) -> Any:
    """Declared categories, also where a list of two numbers could be taken for bounds."""
    return Enum(*values) if {type(value) for value in values} == {int} else values


def _array_of(facts: Mapping[str, Any]) -> NDArray[Any]:
    shape = tuple(facts["shape"])
    values = facts["values"]
    if facts["type"] == "float64":
        values = [_ENDLESS[value] if isinstance(value, str) else float(value) for value in values]
    kinds = {
        "bool": (bool, np.bool_),
        "int64": (int, np.int64),
        "float64": (float, np.float64),
        "text": (str, str),
    }
    wanted, kind = kinds[facts["type"]]
    if not all(type(value) is wanted for value in values) or not all(type(size) is int for size in shape):
        raise ValueError("values of another type")
    return np.array(values, dtype=kind).reshape(shape)


def _read(facts: Mapping[str, Any]) -> PrivateEstimator:
    from sfumato import learn

    kind = getattr(learn, facts["model"]) if facts["model"] in learn.__all__ else None
    if not isinstance(kind, type) or not issubclass(kind, PrivateEstimator):
        raise ValueError("no such model")
    given = {name: _decoded(value) for name, value in facts["parameters"].items()}
    model = kind(**given)
    if set(given) != set(model.get_params(deep=False)):
        raise ValueError("other parameters")
    columns = [_column_of(column) for column in facts["columns"]]
    model._bought_target = None if facts["target"] is None else _number_of(facts["target"])
    model._check()
    names = [name for name, _ in columns]
    # As the class makes it, between the bounds that the fit had: declared, a session's, or bought.
    own = {"bounds": dict(columns)} if "bounds" in given else {}
    design = kind(**{**given, **own})._design(names)
    said = model._design(names).columns
    if any(mine != column for mine, column in zip(said, design.columns, strict=True) if not _is_bought(mine)):
        raise ValueError("columns that contradict the bounds")
    said_price, paid = facts["price"], None
    if model._is_free() != (said_price is None):
        raise ValueError("a price that is none, or none where there is one")
    if said_price is not None:
        paid = price(_exact(said_price["epsilon"]), _exact(said_price["delta"]))
    bought = None if facts["bought"] is None or paid is None else bounds_price(paid.rho, facts["bought"])
    model._bounds_paid = bought
    model.n_features_in_ = len(names)
    if facts["features"] is not None:
        model.feature_names_in_ = np.array([str(name) for name in facts["features"]], dtype=object)
    learned = {str(name): _array_of(array) for name, array in facts["learned"].items()}
    model._keep(design, learned, NO_LOSS if paid is None else paid, None)
    _try(model, columns)
    return model


def _is_bought(column: Number | Category) -> bool:
    return isinstance(column, Unbought)


def _column_of(facts: Mapping[str, Any]) -> tuple[str, Any]:
    if "values" in facts:
        return str(facts["name"]), Category(str(facts["name"]), tuple(map(_decoded, facts["values"])))
    column = _number_of(facts)
    return column.name, (column.lower, column.upper)


def _number_of(facts: Mapping[str, Any]) -> Number:
    return number(str(facts["name"]), _exact(facts["lower"]), _exact(facts["upper"]))


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
