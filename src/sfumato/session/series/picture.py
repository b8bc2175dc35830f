"""A series as a picture: a line along time for each column and group, with its band."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import InvalidParameter
from sfumato.render import key

__all__ = ["draw"]

_MOST = 6  # panels in one picture


def draw(
    table: pa.Table,
    time: str,
    keys: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    note: str,
    path: str | Path | None,
) -> Any:
    """The picture of some columns of the table of a series.

    Args:
        table: All points, with intervals.
        time: The column that says in which step a row is.
        keys: The columns of groups.
        columns: What is drawn.
        title: What it is.
        note: What line and band are.
        path: Where to write it, if anywhere.

    Raises:
        InvalidParameter: if more lines are asked for than fit, or there is none.
    """
    from sfumato.plots import noise_panels

    rows: dict[str, dict[Any, dict[str, Any]]] = {}
    for row in table.to_pylist():
        rows.setdefault(", ".join(key(row[name]) for name in keys), {})[row[time]] = row
    if not rows:
        raise InvalidParameter("There is nothing to draw: no group was found yet.")
    lines = [(group, column) for group in rows for column in columns]
    if len(lines) > _MOST:
        raise InvalidParameter(
            f"{len(lines)} lines do not fit in one picture; name one column with column=, or draw the table."
        )
    steps = [*dict.fromkeys(table[time].to_pylist())]
    panels = {
        ", ".join(filter(None, (column, group))): tuple(
            [rows[group][step][f"{column}{end}"] if step in rows[group] else None for step in steps]
            for end in ("", "_low", "_high")
        )
        for group, column in lines
    }
    dates = [step.date() if isinstance(step, datetime.datetime) else step for step in steps]
    return noise_panels(
        steps if len(set(dates)) < len(dates) else dates,
        panels,  # type: ignore[arg-type]  # three lists each
        title=title,
        xlabel=time,
        note=note,
        kind="line",
        path=path,
    )
