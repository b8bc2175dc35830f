"""How a value may be told less exactly, step by step, until nothing is left of it but `*`.

| values | steps | written by |
| --- | --- | --- |
| numbers | `67`, `[65, 70)`, `[60, 70)`, `[60, 80)`, `*` | `Hierarchy.intervals(5, 10, 20)` |
| days | `2021-07-03`, `2021-07`, `2021-Q3`, `2021`, `2020s`, `*` | `Hierarchy.dates()` |
| zip codes | `19456`, `1945*`, `194**`, `19***`, `1****`, `*` | `Hierarchy.prefixes(5)` |
| categories | `Divorced`, `single`, `*` | `Hierarchy.tree({"single": ["Divorced", …], …})` |
| anything | the value, `*` | `Hierarchy.flat()` |

Each step joins labels of the one before and splits none, which is what the search in `generalize` relies on.
A missing value stays missing until the last step.
"""

from __future__ import annotations

import datetime
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.anonymity.codes import text_of
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_fraction, as_integer, positive

__all__ = ["STAR", "Hierarchy", "Tree"]

STAR = "*"
"""The label that says nothing."""

Tree: TypeAlias = Mapping[str, "Tree | Sequence[object]"]
"""Labels with what is below each: further labels, or the list of values."""

_NUMBERS = (int, float, Decimal, type(None))
_DATES = ("month", "quarter", "year", "decade")
_SHORT = 40  # letters of a level that is told by its labels
_DEEPEST = 50  # labels of a tree above each other
_DAYS = {"day": 1, "month": 31, "quarter": 92, "year": 366, "decade": 3653}


class Hierarchy(ABC):
    """The steps from exact values (level 0) to `*` (the last level)."""

    __slots__ = ()

    @staticmethod
    def intervals(*widths: Rational, start: Rational = 0) -> Hierarchy:
        """Numbers as intervals `[low, low + width)` that begin at `start` plus multiples of the width.

        Raises:
            InvalidParameter: for a width that the one before does not divide, since its intervals would cut
                through the narrower ones.
        """
        exact = tuple(positive(width, "width") for width in widths)
        for narrow, wide in itertools.pairwise(exact):
            if wide <= narrow or (wide / narrow).denominator != 1:
                raise InvalidParameter("Each width must be a multiple of the one before, such as 5, 10, 20.")
        return _Intervals(exact, as_fraction(start, "start"))

    @staticmethod
    def dates(*, times: bool = False) -> Hierarchy:
        """Days and times as months, quarters, years and decades; with `times` as days first."""
        return _Dates(("day", *_DATES) if times else _DATES)

    @staticmethod
    def prefixes(length: int) -> Hierarchy:
        """Codes of a fixed length, such as zip codes, whose last characters become stars one by one.

        Whole numbers are filled up with zeros on the left, since 2139 is the zip code 02139.
        """
        return _Prefixes(as_integer(length, "length"))

    @staticmethod
    def tree(branches: Tree) -> Hierarchy:
        """Categories as given: labels, with what each covers below it, to any depth.

        ```python
        Hierarchy.tree({"school": ["9th", "10th"], "college": {"first": ["Bachelors"], "more": ["Masters"]}})
        ```

        Raises:
            InvalidParameter: if a value is given twice, or a label has nothing below it.
        """
        paths: dict[object, tuple[str, ...]] = {}
        _climb(branches, (), paths)
        if not paths:
            raise InvalidParameter("A tree needs at least one label with values below it.")
        depth = max(map(len, paths.values()))
        # Level 1 is the label nearest to the deepest values; where a branch is shorter, the value stays.
        steps = {
            value: tuple(
                path[level] if level < len(path) else text_of(value) for level in reversed(range(depth))
            )
            for value, path in paths.items()
        }
        return _steps(steps, depth)

    @staticmethod
    def steps(table: Mapping[object, Sequence[str]]) -> Hierarchy:
        """Categories as a table: each value with its labels, from the nearest to the widest.

        Raises:
            InvalidParameter: if the lists differ in length, or a label splits again further up.
        """
        rows = list(table.values()) if isinstance(table, Mapping) else [""]
        usable = all(isinstance(labels, Sequence) and not isinstance(labels, str) for labels in rows)
        lengths = {len(labels) for labels in rows} if usable else set[int]()
        if len(lengths) != 1 or any(label is None for labels in rows for label in labels):
            raise InvalidParameter("Give each value a list of labels, of the same length for all.")
        (depth,) = lengths
        return _steps({value: tuple(map(str, labels)) for value, labels in table.items()}, depth)

    @staticmethod
    def flat() -> Hierarchy:
        """The exact value or `*`, and nothing between: for categories without a hierarchy."""
        return _Flat()

    @property
    @abstractmethod
    def levels(self) -> tuple[str, ...]:
        """What each level is, in words, from `exact` to `*`."""

    @abstractmethod
    def inner(self, values: Sequence[object], level: int) -> list[str | None]:
        """The labels at a level that is neither the first nor the last.

        Raises:
            InvalidParameter: if a value is not covered.
        """

    def labels(self, values: Sequence[object], level: int) -> list[str | None]:
        """The label of each value at a level; None for a missing value, until the last level hides it too.

        Raises:
            InvalidParameter: if there is no such level, or a value is not covered.
        """
        if not 0 <= level < len(self.levels):
            raise InvalidParameter(f"The levels go from 0 to {len(self.levels) - 1}.")
        if level == 0:
            return [text_of(value) for value in values]
        return [STAR] * len(values) if level == len(self.levels) - 1 else self.inner(values, level)

    def costs(self, values: Sequence[object], level: int) -> list[float]:
        """What each value loses at a level, 0 … 1, if the column has these values.

        By default (d - 1) / (n - 1) where d of the n values have its label; never less at a higher level.
        """
        if level in (0, len(self.levels) - 1):
            return [float(level > 0)] * len(values)
        labels = self.labels(values, level)
        alike: dict[str | None, int] = {}
        for label in labels:
            alike[label] = alike.get(label, 0) + 1
        return [(alike[label] - 1) / max(len(values) - 1, 1) for label in labels]


# ── numbers


@dataclass(frozen=True, slots=True)
class _Intervals(Hierarchy):
    widths: tuple[Fraction, ...]
    start: Fraction

    @property
    def levels(self) -> tuple[str, ...]:
        return ("exact", *(f"intervals of {_decimal(width)}" for width in self.widths), STAR)

    def inner(self, values: Sequence[object], level: int) -> list[str | None]:
        width, written = self.widths[level - 1], dict[int, str]()
        labels: list[str | None] = []
        for value, at in zip(values, self._steps_up(values, width), strict=True):
            if at is None:  # missing, NaN and infinities are in no interval
                labels.append(text_of(value))
                continue
            if at not in written:
                low = self.start + at * width
                written[at] = f"[{_decimal(low)}, {_decimal(low + width)})"
            labels.append(written[at])
        return labels

    def _steps_up(self, values: Sequence[object], width: Fraction) -> list[int | None]:
        """How many widths from the start each value's interval begins; None for what lies nowhere."""
        numbers, start, wide = _floats(values), float(self.start), float(width)
        numbers = np.where(np.abs(numbers) < 1e9 * wide, numbers, start)  # what is far lies near an edge
        guessed = (numbers - start) / wide
        doubt = 1e-9 + 1e-12 * (np.abs(numbers) + abs(start)) / wide  # far more than floats can be off
        # Away from the edges floats tell the interval; at an edge only the exact number does.
        sure = np.abs(guessed - np.rint(guessed)) > doubt
        floors = np.floor(np.where(sure, guessed, 0.0)).astype(np.int64).tolist()
        return [
            floor if is_sure else self._exactly(value, width)
            for value, floor, is_sure in zip(values, floors, sure.tolist(), strict=True)
        ]

    def _exactly(self, value: object, width: Fraction) -> int | None:
        number = _exact_number(value)
        return None if number is None else (number - self.start) // width

    def costs(self, values: Sequence[object], level: int) -> list[float]:
        if level in (0, len(self.levels) - 1):
            return Hierarchy.costs(self, values, level)
        numbers = _floats(values)
        present = numbers[np.isfinite(numbers)]
        extent = float(present.max()) - float(present.min()) if len(present) else 0.0  # may be infinite
        lost = min(float(self.widths[level - 1]) / extent, 1.0) if extent else 0.0
        return [lost if is_number else 0.0 for is_number in np.isfinite(numbers).tolist()]


def _floats(values: Sequence[object]) -> npt.NDArray[np.float64]:
    """The numbers as floats, NaN for what is missing."""
    if not all(isinstance(value, _NUMBERS) for value in values):
        raise InvalidParameter("Intervals are for numbers; give this column another hierarchy.")
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _exact_number(value: object) -> Fraction | int | None:
    """The number that the value shows: 0.3 is 3/10. None for what lies nowhere."""
    if value is None:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float | Decimal):
        return Fraction(repr(value) if isinstance(value, float) else value) if math.isfinite(value) else None
    return None


def _decimal(number: Fraction) -> str:
    """A fraction as a decimal without an exponent, exact where it has one."""
    if number.denominator == 1:
        return str(number.numerator)
    places = 0
    while places < 30 and (number * 10**places).denominator != 1:
        places += 1
    scaled = round(number * 10**places)
    digits = f"{abs(scaled):0{places + 1}d}"
    return f"{'-' if scaled < 0 else ''}{digits[:-places]}.{digits[-places:]}"


# ── days


@dataclass(frozen=True, slots=True)
class _Dates(Hierarchy):
    parts: tuple[str, ...]

    @property
    def levels(self) -> tuple[str, ...]:
        return ("exact", *self.parts, STAR)

    def inner(self, values: Sequence[object], level: int) -> list[str | None]:
        part = self.parts[level - 1]
        return [None if value is None else _period(_day(value), part) for value in values]

    def costs(self, values: Sequence[object], level: int) -> list[float]:
        if level in (0, len(self.levels) - 1):
            return Hierarchy.costs(self, values, level)
        days = [None if value is None else _day(value).toordinal() for value in values]
        present = [day for day in days if day is not None]
        extent = max(present, default=0) - min(present, default=0)
        lost = min(_DAYS[self.parts[level - 1]] / extent, 1.0) if extent else 0.0
        return [0.0 if day is None else lost for day in days]


def _day(value: object) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    raise InvalidParameter("Months and years are of days; give this column another hierarchy.")


def _period(day: datetime.date, part: str) -> str:
    year = f"{day.year:04d}"
    return {
        "day": f"{year}-{day.month:02d}-{day.day:02d}",
        "month": f"{year}-{day.month:02d}",
        "quarter": f"{year}-Q{(day.month + 2) // 3}",
        "year": year,
        "decade": f"{year[:3]}0s",
    }[part]


# ── codes that are read from the left


@dataclass(frozen=True, slots=True)
class _Prefixes(Hierarchy):
    length: int

    @property
    def levels(self) -> tuple[str, ...]:
        inner = (f"first {self.length - cut} of {self.length}" for cut in range(1, self.length))
        return ("exact", *inner, STAR)

    def inner(self, values: Sequence[object], level: int) -> list[str | None]:
        return [None if value is None else self._starred(value, level) for value in values]

    def _starred(self, value: object, level: int) -> str:
        text = text_of(value) or ""
        if isinstance(value, int) and value >= 0:
            text = text.rjust(self.length, "0")
        if len(text) > self.length:
            raise InvalidParameter(
                f"A hierarchy of {self.length} characters covers no longer value; give a larger length."
            )
        return text[: self.length - level] + STAR * level


# ── categories


@dataclass(frozen=True, slots=True)
class _Steps(Hierarchy):
    table: Mapping[object, tuple[str | None, ...]]
    depth: int

    @property
    def levels(self) -> tuple[str, ...]:
        return ("exact", *(self._told(level) for level in range(1, self.depth + 1)), STAR)

    def _told(self, level: int) -> str:
        """The labels of a level where they are short and none is a value; else how many there are."""
        labels = {str(row[level - 1]): None for row in self.table.values()}
        listed = ", ".join(labels)
        if len(listed) <= _SHORT and not labels.keys() & {text_of(value) for value in self.table}:
            return listed
        step = f", step {level} of {self.depth}" if self.depth > 1 else ""
        return f"{len(labels)} label{'s' * (len(labels) > 1)}{step}"

    def inner(self, values: Sequence[object], level: int) -> list[str | None]:
        return [self._label(value, level) for value in values]

    def _label(self, value: object, level: int) -> str | None:
        entry = value if value in self.table else text_of(value)
        if entry in self.table:
            return self.table[entry][level - 1]
        if value is None:
            return None
        raise InvalidParameter("The hierarchy does not cover every value; add the missing ones.")

    def costs(self, values: Sequence[object], level: int) -> list[float]:
        if level in (0, len(self.levels) - 1):
            return Hierarchy.costs(self, values, level)
        alike: dict[str | None, int] = {}
        for value in self.table:
            label = self._label(value, level)
            alike[label] = alike.get(label, 0) + 1
        of_all = max(len(self.table) - 1, 1)
        labels = self.inner(values, level)
        return [(alike.get(label, 1) - 1) / of_all for label in labels]


def _steps(table: Mapping[object, tuple[str | None, ...]], depth: int) -> _Steps:
    """The hierarchy, after a check that joined values do not part again and no label passes for a value."""
    own = {text_of(value): labels for value, labels in table.items()}
    for labels in table.values():
        for level, label in enumerate(labels):
            if label in own and own[label][level] != label:
                raise InvalidParameter(
                    f'The label "{str(label)[:60]}" is also a value and does not cover it; give it '
                    "another name."
                )
    for level in range(1, depth):
        above: dict[str | None, str | None] = {}
        for labels in table.values():
            if above.setdefault(labels[level - 1], labels[level]) != labels[level]:
                raise InvalidParameter(
                    f'The label "{str(labels[level - 1])[:60]}" has two labels above it; it may have one.'
                )
    return _Steps(table, depth)


def _climb(branches: object, above: tuple[str, ...], paths: dict[object, tuple[str, ...]]) -> None:
    if len(above) > _DEEPEST:
        raise InvalidParameter(f"A tree is at most {_DEEPEST} labels deep; this one may contain itself.")
    if isinstance(branches, Mapping):
        if not branches:
            raise InvalidParameter("A label of the tree has nothing below it.")
        for label, below in branches.items():
            _climb(below, (*above, str(label)), paths)
        return
    if isinstance(branches, str) or not isinstance(branches, Sequence) or not branches or not above:
        raise InvalidParameter("A tree is labels with a list of values, or further labels, below each.")
    for value in branches:
        if isinstance(value, Mapping | list | set | bytearray):
            raise InvalidParameter("A tree is labels with a list of values, or further labels, below each.")
        if value in paths:
            raise InvalidParameter("A value is in two places of the tree; it may be in one.")
        paths[value] = above


@dataclass(frozen=True, slots=True)
class _Flat(Hierarchy):
    @property
    def levels(self) -> tuple[str, ...]:
        return ("exact", STAR)

    def inner(self, values: Sequence[object], level: int) -> list[str | None]:
        raise InvalidParameter(f"A flat hierarchy of {len(values)} values has no level {level}.")
