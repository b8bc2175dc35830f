"""A release as a picture: categories as bars, days and months as a line, several columns as panels."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.tree import Call, Column
from sfumato.render import key

if TYPE_CHECKING:
    from sfumato.session.release import Release

__all__ = ["draw"]

_MOST = 6  # panels in one picture
_TITLED = 2  # columns whose meaning fits in a title
_TIMES = {"year", "quarter", "month", "week", "dayofyear"}  # numbers that follow one another in time


def draw(
    release: Release,
    path: str | Path | None,
    column: str | Sequence[str] | None,
    confidence: float,
    cut: Callable[[str], object],
) -> Any:
    """The picture of these columns, or of all that have error bars.

    Categories are sorted by the first column, the greatest first, unless the question has an order; numbers
    and days keep theirs.

    Args:
        release: What was released.
        path: Where to write it, if anywhere.
        column: Which columns, if not all.
        confidence: Of the error bars.
        cut: Whether limits may have taken something from a column, which its bars leave out.

    Raises:
        InvalidParameter: if there is no such column, or it was not released with an error bar.
    """
    from sfumato.plots import noise_panels

    bounds = release.interval(confidence, "noise")
    values = [name for name in release.table.column_names if f"{name}_low" in bounds.column_names]
    chosen, left = _chosen(values, column)
    keys = [name for name in release.table.column_names if name not in values]
    columns = [release.table[name].to_pylist() for name in keys]
    rows = list(range(release.table.num_rows))
    kind = _kind(release, keys, columns)
    if kind == "line":
        rows.sort(key=lambda row: columns[0][row])
    elif _sortable(release, columns):
        first = release.table[chosen[0]].to_pylist()
        rows.sort(key=lambda row: -np.inf if first[row] is None else first[row], reverse=True)
    panels = {
        name: tuple(
            [listed[row] for row in rows]
            for listed in (
                release.table[name].to_pylist(),
                bounds[f"{name}_low"].to_pylist(),
                bounds[f"{name}_high"].to_pylist(),
            )
        )
        for name in chosen
    }
    more = f" Not drawn: {', '.join(left)}; name them with column=." if left else ""
    return noise_panels(
        _labels(keys, columns, rows) or [chosen[0] if len(chosen) == 1 else ""],
        panels,  # type: ignore[arg-type]  # three lists each
        title="; ".join(f"{name}: {release.estimands[name]}" for name in chosen)
        if len(chosen) <= _TITLED
        else "",
        xlabel=_binned(keys) or ", ".join(keys),
        note=_note(any(map(cut, chosen)), kind, confidence) + more,
        kind=kind,
        path=path,
    )


def _chosen(values: list[str], column: str | Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The columns to draw, and those that do not fit."""
    given = list(column) if isinstance(column, list | tuple) else [str(column)]
    asked: list[str] = values if column is None else given
    has = f"Columns with error bars: {', '.join(values)}." if values else "No column has error bars."
    if not asked:
        raise InvalidParameter(has)
    for name in asked:
        if name not in values:
            raise InvalidParameter(f"There is no {str(name)[:40]!r} to plot. {has}")
    if column is not None and len(asked) > _MOST:
        raise InvalidParameter(f"At most {_MOST} columns fit in one picture; name fewer.")
    return asked[:_MOST], asked[_MOST:]


def _kind(release: Release, keys: list[str], columns: list[list[Any]]) -> Literal["bars", "line"]:
    """A line along time, bars for everything else."""
    if len(keys) != 1 or len(columns[0]) < 2 or None in columns[0]:
        return "bars"
    if all(isinstance(value, datetime.date) for value in columns[0]):
        return "line"
    report = release.quote.report
    shown = next((output.expression for output in report.columns if output.name == keys[0]), None)
    named = {f"k{i}": one.expression for i, one in enumerate(report.child.keys)}
    asked = named.get(shown.name) if isinstance(shown, Column) else None
    return "line" if isinstance(asked, Call) and asked.function in _TIMES else "bars"


def _sortable(release: Release, columns: list[list[Any]]) -> bool:
    """Whether the keys are categories that nobody put in order."""
    numbers = all(isinstance(value, int | float | None) for listed in columns for value in listed)
    truths = any(isinstance(value, bool) for listed in columns for value in listed)
    return bool(columns) and not release.quote.report.order and (truths or not numbers)


def _binned(keys: list[str]) -> str:
    """What is binned, where the keys are the ends of bins; '' where they are not."""
    stems = [name.removesuffix(end) for name, end in zip(keys, ("_from", "_to"), strict=False)]
    return stems[0] if len(keys) == 2 and stems[0] == stems[1] and keys[0] != stems[0] else ""


def _labels(keys: list[str], columns: list[list[Any]], rows: list[int]) -> list[object]:
    """What each row is called: its keys, or its number or day where that is all."""
    if _binned(keys):
        return ["–".join(key(listed[row]) for listed in columns) for row in rows]
    if len(columns) == 1:
        return [columns[0][row] if _places(columns[0][row]) else key(columns[0][row]) for row in rows]
    if not columns:
        return []
    return [", ".join(key(listed[row]) for listed in columns) for row in rows]


def _places(value: object) -> bool:
    return isinstance(value, int | float | datetime.date) and not isinstance(value, bool)


def _note(cut: bool, kind: str, confidence: float) -> str:
    what = "for the noise alone" if cut else "error bars"
    mark, band = ("Line", "Band") if kind == "line" else ("Bars and dots", "Bands")
    return f"{mark}: released values. {band}: {what}, at {confidence * 100:.6g} % confidence."
