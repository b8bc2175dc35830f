"""Fields of frozen classes with exact parameters: set once, and shown as they would be written."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

__all__ = ["freeze", "shown"]


def freeze(instance: object, **values: object) -> None:
    """Set the fields of a frozen dataclass while it is being constructed."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def shown(kind: str, **parameters: object) -> str:
    """A `repr` that shows public parameters as they would be written; those that are None are left out."""
    told = ", ".join(f"{name}={_written(value)}" for name, value in parameters.items() if value is not None)
    return f"{kind}({told})"


def _written(value: object) -> str:
    if not isinstance(value, Fraction):
        return str(value) if isinstance(value, int | float | Decimal | np.number) else repr(value)
    if value.denominator == 1:
        return str(value.numerator)
    try:
        short = repr(float(value))
    except OverflowError:
        return repr(value)
    return short if Fraction(short) == value else repr(value)
