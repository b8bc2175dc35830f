"""Values as JSON that tells what they were: parameters, columns and arrays of model files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.learn._core.declared import Category, Number, number
from sfumato.schema import Enum

__all__ = [
    "array_of",
    "array_written",
    "column_of",
    "column_written",
    "decoded",
    "encoded",
    "exact",
    "number_of",
]

_KINDS = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "U": "text"}
_RATIO = re.compile("-?[0-9]{1,1000}(/[0-9]{1,1000})?", re.ASCII)
_ENDLESS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def column_written(column: Number | Category) -> dict[str, Any]:
    """What is declared of a column."""
    if isinstance(column, Category):
        return {"name": column.name, "values": [encoded(value, column.name) for value in column.values]}
    return {"name": column.name, "lower": str(column.lower), "upper": str(column.upper)}


def array_written(values: Any, name: str) -> dict[str, Any]:
    """An array with its type and its shape.

    Raises:
        InvalidParameter: if it holds something else than numbers, truth values and texts.
    """
    array = np.asarray(values)
    if array.dtype.kind not in _KINDS:
        raise InvalidParameter(f"{name[:60]} of this model cannot be written to a file.")
    flat = [_finite(value) for value in array.ravel().tolist()]
    return {"type": _KINDS[array.dtype.kind], "shape": list(array.shape), "values": flat}


def _finite(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def encoded(value: Any, name: str) -> Any:
    """A parameter as JSON that tells what it was."""
    match value:
        case None | bool() | int() | str():
            return value
        case np.generic():
            return encoded(value.item(), name)
        case float():
            return value if math.isfinite(value) else {"float": _finite(value)}
        case Fraction() | Decimal():
            ratio = Fraction(value)
            return {"number": str(ratio)} if ratio.denominator > 1 else ratio.numerator
        case date():
            return {"day": value.isoformat()[:10]}
        case list():
            return [encoded(part, name) for part in value]
        case tuple():
            return {"tuple": [encoded(part, name) for part in value]}
        case np.ndarray():
            return {"array": array_written(value, name)}
        case Mapping():
            return {"by name": {str(key): encoded(part, name) for key, part in value.items()}}
    if isinstance(getattr(value, "values", None), tuple):  # a declared type, such as Enum
        return {"categories": [encoded(part, name) for part in value.values]}
    if hasattr(value, "lower") and hasattr(value, "upper"):  # such as Int
        return {"tuple": [encoded(value.lower, name), encoded(value.upper, name)]}
    raise InvalidParameter(f"The parameter {name[:60]} cannot be written to a file: give numbers or texts.")


def decoded(value: Any) -> Any:
    """What `encoded` wrote."""
    if isinstance(value, list):
        return [decoded(part) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "float":
            return _ENDLESS[content]
        case "number":
            return exact(content)
        case "day":
            return date.fromisoformat(content)
        case "categories":
            return _categories([decoded(part) for part in content])
        case "tuple":
            return tuple(decoded(part) for part in content)
        case "array":
            return array_of(content)
        case "by name":
            return {key: decoded(part) for key, part in content.items()}
    raise ValueError(kind)


def exact(text: Any) -> Fraction:
    """A number as `save` writes it; spelt out, 1e999999999 would fill the memory."""
    if not isinstance(text, str) or not _RATIO.fullmatch(text):
        raise ValueError("no number")
    return Fraction(text)


def _categories(values: list[Any]) -> Any:
    """Declared categories, also where a list of two numbers could be taken for bounds."""
    return Enum(*values) if {type(value) for value in values} == {int} else values


def array_of(facts: Mapping[str, Any]) -> NDArray[Any]:
    """What `array_written` wrote."""
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


def column_of(facts: Mapping[str, Any]) -> tuple[str, Any]:
    """The name and the bounds or categories that `column_written` wrote."""
    if "values" in facts:
        return str(facts["name"]), Category(str(facts["name"]), tuple(map(decoded, facts["values"])))
    column = number_of(facts)
    return column.name, (column.lower, column.upper)


def number_of(facts: Mapping[str, Any]) -> Number:
    """A column of numbers that `column_written` wrote."""
    return number(str(facts["name"]), exact(facts["lower"]), exact(facts["upper"]))
