"""What is public about the columns that a model learns from: bounds of numbers, lists of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_fraction
from sfumato.plan.expressions.names import nearest

__all__ = [
    "AUTO",
    "TARGET",
    "Category",
    "Declared",
    "Following",
    "Number",
    "Unbought",
    "declared",
    "is_auto",
    "listed",
    "lists_categories",
    "number",
]

AUTO = "auto"
"""What stands for bounds that the fit buys."""
TARGET = "the target"
"""The name of what is to be learned, where it has none."""
_MOST_VALUES = 10_000
_FARTHEST = 2**100


@dataclass(frozen=True, slots=True)
class Number:
    """A column of numbers, which are clamped to bounds.

    Attributes:
        name: The column's.
        lower: What smaller numbers count as.
        upper: What larger numbers count as.
        one_of: What it is a category of, where it says by 1 that a row is in it and by 0 that it is not: a
            row is in at most one that has the same `one_of`. Empty: it is a number like any other. Only a
            step that makes such columns itself says so, never whoever hands in rows.
    """

    name: str
    lower: Fraction
    upper: Fraction
    one_of: str = ""


@dataclass(frozen=True, slots=True)
class Unbought(Number):
    """A column of numbers whose bounds the fit buys; until then both are 0, and mean nothing."""


@dataclass(frozen=True, slots=True)
class Category:
    """A column of categories; whatever is not listed is none of them.

    Attributes:
        name: The column's.
        values: All categories.
    """

    name: str
    values: tuple[Any, ...]


Declared: TypeAlias = Number | Category


class Following(tuple[Declared, ...]):
    """Columns as they come out of a step before: bounds that nobody declares again."""

    __slots__ = ()


def declared(bounds: Any, names: Sequence[str]) -> tuple[Declared, ...]:
    """What is declared about each of these columns.

    Args:
        bounds: A dictionary by column, of pairs `(lower, upper)` for numbers and lists of values for
            categories; or a pair of numbers or arrays for all columns in their order. "auto", for a column
            or for all, where the fit buys bounds.
        names: The columns.

    Raises:
        InvalidParameter: if a column has no bounds, or they are none.
    """
    if bounds is None:
        raise InvalidParameter(
            "Bounds are needed before data is read: give bounds={'age': (17, 90), …}, or a pair "
            "(lower, upper) for all columns; they must not be read off the data."
        )
    if len(set(names)) < len(names):  # what is told apart by its name alone would count as one column
        raise InvalidParameter("Two columns have the same name: rename one of them.")
    if isinstance(bounds, Following):
        return tuple(bounds)
    if is_auto(bounds):
        return tuple(_unbought(name) for name in names)
    if isinstance(bounds, Mapping):
        by_name = {str(name): given for name, given in bounds.items()}
        places = {str(place): name for place, name in enumerate(names)}
        known = {places.get(name, name) if name not in names else name: by_name[name] for name in by_name}
        missing = [name for name in names if name not in known]
        extra = [name for name in known if name not in names]
        if extra:
            meant = nearest(extra[0], missing, "Columns without bounds") or "Leave it out."
            raise InvalidParameter(f"bounds names {listed(extra)}, which is no column. {meant}")
        if missing:
            raise InvalidParameter(
                f"bounds has nothing for {listed(missing)}: add (lower, upper) or a list of categories."
            )
        return tuple(_one(name, known[name]) for name in names)
    if isinstance(bounds, str) or not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        raise InvalidParameter('bounds must be a dictionary by column, a pair (lower, upper) or "auto".')
    if isinstance(bounds, list) and any(np.ndim(end) for end in bounds):
        raise InvalidParameter(
            f"A list of bounds could be read in two ways: give them by column, bounds={{{names[0][:60]!r}: "
            "(lower, upper), …}."
        )
    ends = [_ends(end, len(names)) for end in bounds]
    return tuple(number(name, *pair) for name, *pair in zip(names, *ends, strict=True))


def lists_categories(bounds: Any) -> bool:
    """Whether some column is declared by a list of its categories."""
    return isinstance(bounds, Mapping) and any(
        isinstance(given, list) or isinstance(getattr(given, "values", None), tuple)
        for given in bounds.values()
    )


def is_auto(given: Any) -> bool:
    """Whether bounds are to be bought."""
    return isinstance(given, str) and given == AUTO


def number(name: str, lower: Any, upper: Any) -> Number:
    """A column of numbers between finite bounds.

    Raises:
        InvalidParameter: if they are not finite, or in the wrong order.
    """
    low, high = _finite(name, lower), _finite(name, upper)
    if max(-low, high) > _FARTHEST or 0 < high - low < Fraction(1, _FARTHEST):
        raise InvalidParameter(f"The bounds of {name[:60]!r} are too far from 1: rescale the column.")
    if low > high:
        raise InvalidParameter(f"The bounds of {name[:60]!r} are in the wrong order: give (lower, upper).")
    return Number(name, low, high)


def _one(name: str, given: Any) -> Declared:
    if is_auto(given):
        return _unbought(name)
    values = getattr(given, "values", None)
    if isinstance(given, list) or isinstance(values, tuple):  # a list, or a type with values such as Enum
        every = tuple(dict.fromkeys(given if isinstance(given, list) else values or ()))
        if not 0 < len(every) <= _MOST_VALUES:
            raise InvalidParameter(f"The categories of {name[:60]!r} must be 1 to {_MOST_VALUES} values.")
        if isinstance(given, list) and len(given) == 2 and all(map(_is_number, given)):
            raise InvalidParameter(
                f"{given} for {name[:60]!r} could be read in two ways: write ({given[0]}, {given[1]}) for "
                f"all numbers between, or sf.Enum({given[0]}, {given[1]}) for two categories."
            )
        return Category(name, every)
    if hasattr(given, "lower") and hasattr(given, "upper"):  # a type with bounds such as Int
        return number(name, given.lower, given.upper)
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or len(given) != 2:
        raise InvalidParameter(
            f'The bounds of {name[:60]!r} must be a pair (lower, upper), a list of categories or "auto".'
        )
    return number(name, *given)


def _unbought(name: str) -> Unbought:
    return Unbought(name, Fraction(0), Fraction(0))


def _ends(end: Any, width: int) -> list[Any]:
    if isinstance(end, Sequence | np.ndarray) and not isinstance(end, str) and np.ndim(end) == 1:
        if len(end) != width:
            raise InvalidParameter(f"bounds has {len(end)} numbers for {width} columns: give one for each.")
        return list(end)
    return [end] * width


def _finite(name: str, end: Any) -> Fraction:
    try:
        return as_fraction(end.item() if isinstance(end, np.generic) else end, "bounds")
    except (InvalidParameter, TypeError, ValueError):
        raise InvalidParameter(f"The bounds of {name[:60]!r} must be finite numbers.") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def listed(names: Sequence[str]) -> str:
    """The first few names, for a message."""
    shown = ", ".join(repr(name[:60]) for name in names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
