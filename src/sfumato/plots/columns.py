"""What a table holds: one small panel for each column, how many rows each of its cells has."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.plots._figure import (
    BAND,
    DOT,
    GREY,
    INK,
    LABEL,
    TICK,
    finish,
    new_figure,
    numbers,
    plain_axes,
    shortened,
)
from sfumato.render import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["column_counts"]

_MOST = 24
_ACROSS = 3
_NAMED = 8  # labels on an axis, at most
_OUTLINED = 20
_LETTERS = 26  # of all labels on an axis together

Floats: TypeAlias = NDArray[np.float64]


def column_counts(
    columns: Mapping[str, tuple[Sequence[object], Sequence[float]]],
    *,
    spans: Mapping[str, Sequence[tuple[float, float] | None]] | None = None,
    dates: Collection[str] = (),
    title: str = "",
    note: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Bars of counts, a panel for each column.

    Args:
        columns: By name, the labels of its cells and how many rows each has; 1 to 24 of them. None is the
            label of what is missing, which is told in words.
        spans: Of columns of numbers, where each cell begins and ends: there the area of a bar is its rows,
            so that wide cells do not look like peaks. A cell without a span is told in words.
        dates: Which of these are days since 1970-01-01.
        title: The title.
        note: A note below.
        path: Where to write the picture, .png or .svg.

    Raises:
        InvalidParameter: if there are no columns, too many, or not as many labels as counts.
    """
    if not 1 <= len(columns) <= _MOST:
        raise InvalidParameter(f"A picture of columns has from 1 to {_MOST} of them; draw fewer at a time.")
    across = min(_ACROSS, len(columns))
    down = math.ceil(len(columns) / across)
    figure = new_figure(2.9 * across + 0.4, 1.9 * down + 0.9)
    panels = np.ravel(figure.subplots(down, across, squeeze=False))
    for axes, (name, (labels, counts)) in zip(panels, columns.items(), strict=False):
        values = numbers(list(counts), "counts", length=len(labels))
        plain_axes(axes, values="y")
        span = (spans or {}).get(name)
        if span is None:
            apart = [place for place, label in enumerate(labels) if label is None and len(labels) > 1]
            _bars(axes, labels, values, apart)
        else:
            apart = [place for place, ends in enumerate(span) if ends is None]
            _areas(axes, span, values, days=name in dates)
        axes.set_title(shortened(name, 20), fontsize=LABEL, color=INK, loc="left", parse_math=False)
        said = [
            f"{'missing' if labels[place] is None else labels[place]} {values[place]:,.0f}" for place in apart
        ]
        said = [one for one, place in zip(said, apart, strict=True) if values[place] >= 0.5]
        axes.set_title(", ".join(said), fontsize=TICK, color=GREY, loc="right", parse_math=False)
    for axes in panels[len(columns) :]:
        axes.set_visible(False)
    return finish(figure, title=title, note=note, path=path)


def _bars(axes: Axes, labels: Sequence[object], values: Floats, apart: Sequence[int]) -> None:
    """One bar for each label but those that are told in words."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    kept = [place for place in range(len(labels)) if place not in apart]
    places, many = np.arange(len(kept)), len(kept)
    wide = 1.0 if many > _NAMED else 0.8
    axes.bar(places, values[kept], width=wide, color=BAND, edgecolor=DOT, linewidth=0.6)
    shown = places if many <= _NAMED else places[:: math.ceil(many / 3)]
    room = max(_LETTERS // max(len(shown), 1), 3)
    axes.set_xticks(shown, [shortened(str(labels[kept[at]]), room) for at in shown], parse_math=False)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _areas(axes: Axes, span: Sequence[tuple[float, float] | None], values: Floats, *, days: bool) -> None:
    """A bar over each span, whose area is its rows."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    placed = [(ends, value) for ends, value in zip(span, values, strict=True) if ends is not None]
    lefts = np.array([low for (low, _), _ in placed])
    widths = np.array([high - low for (low, high), _ in placed])
    heights = np.array([value for _, value in placed]) / np.where(widths > 0, widths, 1.0)
    edge = DOT if len(placed) <= _OUTLINED else BAND  # outlines of many narrow bars would hide them
    axes.bar(lefts, heights, width=widths, align="edge", color=BAND, edgecolor=edge, linewidth=0.6)
    axes.set_yticks([])

    def told(value: float, _: object) -> str:
        if days:
            return str(np.datetime64(0, "D") + np.timedelta64(round(value), "D"))[:7]
        return shown(value)

    axes.xaxis.set_major_locator(MaxNLocator(nbins=3))
    axes.xaxis.set_major_formatter(FuncFormatter(told))
