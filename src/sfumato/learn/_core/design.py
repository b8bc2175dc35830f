"""`Design`: the public map from columns to the coordinates that a model has a weight for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.learn._core.declared import Declared, Number, Unbought

__all__ = ["BITS", "UNIT", "Coordinate", "Design", "coded", "whole"]

Floats: TypeAlias = NDArray[np.float64]
Small: TypeAlias = NDArray[np.int16]

BITS = 14
"""A coordinate is a whole multiple of 2**-14."""
UNIT = 1 << BITS
"""What 1 is as an integer: the most that a coordinate can be."""
_BLOCK = 1 << 15  # so many numbers, and what each is compared with, stay near a processor


class Coordinate(NamedTuple):
    """One coordinate of a row.

    Attributes:
        name: Such as `age` or `sex=F`.
        column: The number of the column that it is of.
        category: Which of its categories it is about; None: it is a number.
    """

    name: str
    column: int
    category: int | None


class Design:
    """From columns to coordinates between −1 and 1, each of them a small integer.

    A number is clamped to its bounds and goes linearly to [0, 1], or to [−1, 1] where `signed`. A category
    has one coordinate for each of its values, 1 for the one that it is; so have columns that are such
    coordinates already (`one_of`). The intercept, if any, is last.

    Privacy:
        Claim: a row's coordinates follow from that row and what is declared, with no rounding that depends
        on the row's place; they are integers with |x| ≤ UNIT, and the squares of a row's coordinates add
        up to at most `most`·UNIT². Proof: only additions, products, comparisons and roundings of one float
        at a time, which IEEE 754 fixes to the last bit; a row is in at most one category of a column, and
        whoever makes columns with `one_of` sees to it that a row has a 1 in at most one of those.
    """

    def __init__(self, columns: Sequence[Declared], *, intercept: bool = True, signed: bool = False) -> None:
        self.columns, self.intercept, self.signed = tuple(columns), intercept, signed

    @property
    def most(self) -> int:
        """The most that the squares of a row's coordinates add up to."""
        groups = [_group(column) for column in self.columns]
        return groups.count("") + len({group for group in groups if group}) + self.intercept

    def is_signed(self, place: int) -> bool:
        """Whether a column's coordinates go from −1 to 1."""
        return self.signed and isinstance(self.columns[place], Number) and not _group(self.columns[place])

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """All but the intercept, in order."""
        found = list[Coordinate]()
        for place, column in enumerate(self.columns):
            if isinstance(column, Number):
                found.append(Coordinate(column.name, place, None))
            else:
                found += [
                    Coordinate(f"{column.name}={value}", place, at) for at, value in enumerate(column.values)
                ]
        return tuple(found)

    @property
    def width(self) -> int:
        """How many weights a model has, the intercept's included."""
        return len(self.coordinates) + self.intercept

    @cached_property
    def has_categories(self) -> bool:
        """Whether some column is one of categories."""
        return not all(isinstance(column, Number) for column in self.columns)

    @cached_property
    def unbought(self) -> tuple[int, ...]:
        """The places of columns whose bounds are still to be bought: until then there are no coordinates."""
        return tuple(at for at, column in enumerate(self.columns) if isinstance(column, Unbought))

    def with_columns(self, columns: Sequence[Declared]) -> Design:
        """The same with other bounds."""
        return Design(columns, intercept=self.intercept, signed=self.signed)

    def integers(self, columns: Sequence[Any] | NDArray[Any]) -> Small:
        """The rows as integers, without the intercept.

        Args:
            columns: For each column its floats, or the codes of its categories (−1: none of them); or a
                matrix of floats.
        """
        if isinstance(columns, np.ndarray):
            return self._matrix(columns)
        size = len(columns[0]) if len(columns) else 0
        rows = np.zeros((size, len(self.coordinates)), np.int16)
        for at, coordinate in enumerate(self.coordinates):
            column, values = self.columns[coordinate.column], columns[coordinate.column]
            if isinstance(column, Number):
                rows[:, at] = whole(values, column, signed=self.is_signed(coordinate.column))
            else:
                rows[:, at] = np.where(np.asarray(values) == coordinate.category, UNIT, 0)
        return rows

    def _matrix(self, matrix: NDArray[Any]) -> Small:
        rows = np.empty(matrix.shape, np.int16)
        step = max(1, _BLOCK // max(1, matrix.shape[1]))
        ends = [(float(column.lower), float(column.upper)) for column in self.columns]  # type: ignore[union-attr]
        lower, upper = np.array(ends).reshape(-1, 2).T
        signed = np.array([self.is_signed(place) for place in range(len(self.columns))])
        # Arrays of one shape are worked on faster than rows with a line beside them.
        wide = [np.tile(line, (step, 1)) for line in (lower, upper, _rate(lower, upper, signed))]
        signs = np.tile(signed, (step, 1)) if signed.any() else None
        room = np.empty((step, matrix.shape[1]))
        for start in range(0, len(matrix), step):
            part = matrix[start : start + step]
            here = slice(len(part))
            low, high, rate = (line[here] for line in wide)
            sign = False if signs is None else signs[here]
            rows[start : start + step] = _rounded(part, low, high, rate, sign, room[here])
        return rows

    def floats(self, columns: Sequence[Any] | NDArray[Any]) -> Floats:
        """The rows as floats, with the intercept: what a model is applied to."""
        scaled = self.integers(columns) / UNIT
        return np.hstack([scaled, np.ones((len(scaled), 1))]) if self.intercept else scaled

    def own_scale(self, weights: Floats) -> tuple[Floats, Floats]:
        """Weights of coordinates as weights of the columns' own numbers, and the intercept.

        Args:
            weights: One row for each coordinate, the intercept last.
        """
        slopes = np.array(weights[: len(self.coordinates)], dtype=np.float64)
        start = (
            np.array(weights[-1], dtype=np.float64)
            if self.intercept
            else np.zeros(slopes.shape[1:], np.float64)
        )
        for at, coordinate in enumerate(self.coordinates):
            column = self.columns[coordinate.column]
            if isinstance(column, Number):
                lower, upper = float(column.lower), float(column.upper)
                signed = self.is_signed(coordinate.column)
                rate = float(_rate(np.array(lower), np.array(upper), signed)) / UNIT
                start = start - slopes[at] * (lower * rate + signed)
                slopes[at] = slopes[at] * rate
        return slopes, start

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the declared columns, and how they are scaled."""
        columns = [
            {"name": column.name, "lower": str(column.lower), "upper": str(column.upper)}
            if isinstance(column, Number)
            else {"name": column.name, "values": [str(value) for value in column.values]}
            for column in self.columns
        ]
        return {"columns": columns, "intercept": self.intercept, "signed": self.signed}


def whole(values: Any, column: Number, *, signed: bool = False) -> Small:
    """Numbers of a column as coordinates: clamped, scaled, rounded to the nearest multiple."""
    lower, upper = np.array(float(column.lower)), np.array(float(column.upper))
    floats = np.asarray(values, dtype=np.float64)
    return _rounded(floats, lower, upper, _rate(lower, upper, signed), signed).astype(np.int16)


def coded(values: Any, listed: Sequence[Any]) -> NDArray[np.int64]:
    """The place of each value among those listed; −1: it is none of them."""
    codes = np.array(listed)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and codes.dtype.kind in "biuf":
        order = np.argsort(codes, kind="stable")
        near = np.searchsorted(codes, values, sorter=order).clip(max=len(codes) - 1)
        return np.where(codes[order[near]] == values, order[near], -1)
    place = {value: at for at, value in enumerate(listed)}
    each = values.tolist() if isinstance(values, np.ndarray) else values
    return np.array([place.get(value, -1) for value in each], dtype=np.int64)


def _group(column: Declared) -> str:
    """What a column is one category of; empty: it weighs by itself."""
    return column.one_of if isinstance(column, Number) else ""


def _rate(lower: Floats, upper: Floats, signed: bool | NDArray[np.bool_]) -> Floats:
    span = upper - lower
    return np.divide(UNIT * (1.0 + signed), span, out=np.zeros_like(span), where=span > 0)


def _rounded(
    values: NDArray[Any],
    lower: Floats,
    upper: Floats,
    rate: Floats,
    signed: bool | NDArray[np.bool_],
    room: Floats | None = None,
) -> Floats:
    """Numbers as coordinates that become integers by leaving their fractions out."""
    held = np.asarray(np.maximum(values, lower, out=room, dtype=np.float64))
    np.minimum(held, upper, out=held)
    held -= lower
    held *= rate
    held += 0.5
    if not np.any(signed):
        return held  # a product may be above its end by a rounding, and 0.5 more is still below UNIT + 1
    np.floor(held, out=held)
    np.minimum(held, UNIT * (1.0 + signed), out=held)
    held -= UNIT * np.asarray(signed, np.float64)
    return held
