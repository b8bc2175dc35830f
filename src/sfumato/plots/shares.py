"""Shares by two columns at once: small maps side by side, such as a real table beside synthetic ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.plots._figure import (
    DOT,
    FAINT,
    GREY,
    INK,
    LABEL,
    NOTE,
    TICK,
    finish,
    new_figure,
    shortened,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["share_maps"]

_MOST_MAPS, _MOST_CELLS = 4, 12


def share_maps(
    maps: Mapping[str, NDArray[Any] | Sequence[Sequence[float]]],
    *,
    rows: Sequence[object],
    columns: Sequence[object],
    down: str = "",
    across: str = "",
    title: str = "",
    note: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Up to four maps of the same cells, each cell with its share in percent; the darker, the larger.

    Args:
        maps: By name, a share from 0 to 1 for each row and column; NaN where there is none.
        rows: What the rows are, at most 12.
        columns: What the columns are, at most 12.
        down: What the rows stand for, such as the name of a column of the table.
        across: What the columns stand for.
        title: The title.
        note: A note below.
        path: Where to write the picture, .png or .svg.

    Raises:
        InvalidParameter: if there are no maps, too many, or one has other cells or no shares.
    """
    if not 1 <= len(maps) <= _MOST_MAPS:
        raise InvalidParameter(f"From 1 to {_MOST_MAPS} maps stand side by side.")
    if not (1 <= len(rows) <= _MOST_CELLS and 1 <= len(columns) <= _MOST_CELLS):
        raise InvalidParameter(f"A map has from 1 to {_MOST_CELLS} rows and columns.")
    shares = [_shares(values, (len(rows), len(columns))) for values in maps.values()]
    beside, below = [shortened(label, 12) for label in rows], [shortened(label, 6) for label in columns]
    cell = max(0.36, 0.1 * max(map(len, below)))
    wide = max(2.3, cell * len(columns) + 0.2)
    side = 0.5 + 0.09 * max(map(len, beside))
    figure = new_figure(max(4.0, wide * len(maps) + side), max(1.5, 0.36 * len(rows)) + 1.75)
    panels = np.ravel(figure.subplots(1, len(maps), squeeze=False))
    for place, (axes, name, values) in enumerate(zip(panels, maps, shares, strict=True)):
        _draw(axes, values)
        axes.set_title(
            wrapped(name, columns=int(wide * 9), lines=2),
            fontsize=LABEL,
            color=INK,
            loc="left",
            parse_math=False,
        )
        axes.set_xticks(range(len(columns)), below, parse_math=False)
        axes.set_yticks(range(len(rows)), [""] * len(rows) if place else beside, parse_math=False)
        axes.set_xlabel(shortened(across, int(wide * 10)), fontsize=NOTE, color=INK, parse_math=False)
    panels[0].set_ylabel(shortened(down, 30), fontsize=NOTE, color=INK, parse_math=False)
    return finish(figure, title=title, note=note, path=path)


def _shares(values: NDArray[Any] | Sequence[Sequence[float]], shape: tuple[int, int]) -> NDArray[np.float64]:
    try:
        shares = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("A map is rows of shares from 0 to 1.") from None
    if shares.shape != shape:
        raise InvalidParameter(f"Each map must have {shape[0]} rows of {shape[1]} shares, as labelled.")
    known = shares[~np.isnan(shares)]
    if ((known < 0) | (known > 1)).any():
        raise InvalidParameter("Shares are between 0 and 1.")
    return shares


def _draw(axes: Axes, shares: NDArray[np.float64]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    tint = LinearSegmentedColormap.from_list("share", ["#ffffff", "#a8d1ea", DOT, "#002b45"])
    axes.imshow(shares, cmap=tint, vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        if not np.isnan(share):
            axes.text(
                column,
                row,
                f"{100 * share:.0f}",
                ha="center",
                va="center",
                fontsize=TICK,
                color="white" if share > 0.5 else INK,
            )
    # White lines between cells; no box.
    axes.set_xticks(np.arange(shares.shape[1] - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(shares.shape[0] - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    axes.tick_params(which="both", length=0, labelsize=TICK, colors=INK, color=GREY)
