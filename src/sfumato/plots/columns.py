"""What a table holds: one small panel for each column, how many rows each of its cells has."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.plots._figure import BAND, DOT, INK, LABEL, finish, new_figure, numbers, plain_axes, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["column_counts"]

_MOST = 24
_ACROSS = 3
_NAMED = 8  # labels on an axis, at most


def column_counts(
    columns: Mapping[str, tuple[Sequence[object], Sequence[float]]],
    *,
    title: str = "",
    note: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Bars of counts, a panel for each column.

    Args:
        columns: By name, the labels of its cells and how many rows each has; 1 to 24 of them.
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
        places = np.arange(len(values))
        axes.bar(
            places,
            values,
            width=1.0 if len(values) > _NAMED else 0.8,
            color=BAND,
            edgecolor=DOT,
            linewidth=0.6,
        )
        axes.set_title(shortened(name, 28), fontsize=LABEL, color=INK, loc="left", parse_math=False)
        plain_axes(axes, values="y")
        many = max(1, math.ceil(len(values) / _NAMED))
        shown = places if len(values) <= _NAMED else places[:: max(many, math.ceil(len(values) / 3))]
        names = [shortened(str(labels[place]).split(" to ")[0], 10) for place in shown]
        axes.set_xticks(shown, names, parse_math=False)
        axes.yaxis.set_major_locator(_few())
    for axes in panels[len(columns) :]:
        axes.set_visible(False)
    return finish(figure, title=title, note=note, path=path)


def _few() -> object:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=4, integer=True)
