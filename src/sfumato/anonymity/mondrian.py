"""Mondrian: a table cut into boxes of at least k rows, each as small as cuts at the median can make it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.anonymity._guard import Guard, guard_of
from sfumato.anonymity._partition import partition
from sfumato.anonymity.anonymized import Anonymized, Recoded, anonymized
from sfumato.anonymity.codes import Coded, Codes, text_of
from sfumato.anonymity.given import given
from sfumato.anonymity.hierarchy import STAR
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, show

__all__ = ["asked_for", "mondrian"]

_LISTED = 6  # values that a label lists; more are told as from … to


def mondrian(
    table: Source,
    quasi: str | Sequence[str],
    k: int,
    *,
    l: int | None = None,  # noqa: E741
    t: Rational | None = None,
    sensitive: str | Sequence[str] | None = None,
) -> Anonymized:
    """The table, generalised until every row looks like at least k − 1 others; no row is suppressed.

    Numbers and days become ranges `[20, 29]`, categories become sets `{Divorced, Widowed}` or, by the order
    of the alphabet, `Cambodia … Germany`, in double quotes where a value has a comma itself; what has all
    values, or mixes missing with present ones, becomes `*`. A column in which nothing changed keeps its type,
    every other one becomes text. Other columns stay as they are: leave out what names people first, with
    `deidentify`.

    Args:
        table: a path (CSV, Parquet, …), or an Arrow, pandas or Polars frame.
        quasi: the columns that others may know, and only those.
        k: the least number of rows in a class.
        l: also the least number of different values of each sensitive column in a class.
        t: also the most that the mixture of a sensitive column in a class may differ from that of the table.
        sensitive: the columns that nobody should learn.

    Privacy:
        Steward-only, see `Anonymized`: the ranges are exact functions of the rows.

    Raises:
        InvalidParameter: for a column that does not exist, or a k, l or t that these rows cannot reach.
        SourceUnusable: if the table cannot be read.
    """
    if isinstance(quasi, Mapping):
        raise InvalidParameter(
            "mondrian cuts the columns by itself and takes their names alone; give the hierarchies to "
            "generalize, or the names as a list."
        )
    source = given(table, quasi, sensitive)
    guard = guard_of(k, l, t, source.sensitive, rows=source.table.num_rows)
    classes = partition(source.quasi, guard)
    recoded = [_recoded(column, classes) for column in source.quasi]
    kept = np.ones(len(classes), dtype=bool)
    return anonymized(source, recoded, kept, method="Mondrian", asked=asked_for(guard), k=guard.k)


def asked_for(guard: Guard) -> str:
    """What a guard asks of each class, in words."""
    parts = [f"k = {guard.k}"]
    if guard.l is not None:
        parts.append(f"l = {guard.l}")
    if guard.t is not None:
        parts.append(f"t = {show(guard.t)}")
    return ", ".join(parts)


def _recoded(column: Coded, classes: Codes) -> Recoded:
    """The column with one label for each class, classes with the same label being one."""
    wide = len(column.values)
    pairs = np.unique(classes * wide + column.codes)
    of_class, held = pairs // wide, pairs % wide
    ends = np.cumsum(np.bincount(of_class))
    line = column.line
    labels: dict[str | None, int] = {}
    numbers, lost = np.empty(len(ends), dtype=np.int64), np.empty(len(ends))
    written: dict[tuple[int, ...], tuple[str | None, float]] = {}
    for number, (first, last) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True)):
        codes = held[first:last].tolist()
        key = (codes[0], codes[-1], last - first) if last - first > _LISTED else tuple(codes)
        if key not in written:
            written[key] = _label(column, codes, line)
        label, lost[number] = written[key]
        numbers[number] = labels.setdefault(label, len(labels))
    if len(pairs) == len(ends):
        return Recoded(column.name, column.codes, (), lost[classes], untouched=True)
    return Recoded(column.name, numbers[classes], list(labels), lost[classes], untouched=False)


def _label(column: Coded, codes: list[int], line: np.typing.NDArray[np.float64]) -> tuple[str | None, float]:
    """What a class that has these values shows, and what a cell of it lost."""
    if len(codes) == 1:
        return text_of(column.values[codes[0]]), 0.0
    low, high = codes[0], codes[-1]
    if high >= column.proper or len(codes) == len(column.values):
        return STAR, 1.0
    ends = text_of(column.values[low]), text_of(column.values[high])
    if column.kind in ("number", "date", "time"):
        return f"[{ends[0]}, {ends[1]}]", float((line[high] - line[low]) / (line[-1] - line[0]))
    if len(codes) <= _LISTED:
        listed = ", ".join(_apart(text_of(column.values[code]) or "") for code in codes)
        return f"{{{listed}}}", (len(codes) - 1) / (len(column.values) - 1)
    if low == 0 and high == len(column.values) - 1:
        return STAR, 1.0
    return f"{_apart(ends[0] or '')} … {_apart(ends[1] or '')}", (high - low) / (len(column.values) - 1)


def _apart(text: str) -> str:
    """A text of a list so that the list can be read: in double quotes where it would run into the next."""
    if text.strip() == text and text and not set(text) & set(",{}…") and not text.startswith('"'):
        return text
    return '"' + text.replace('"', '""') + '"'
