"""What noise does to each group: two models side by side, and what the noisy one lost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.numeric.rounding import Floats
from sfumato.plots._figure import (
    ACCENT,
    DOT,
    GREY,
    INK,
    LABEL,
    NOTE,
    finish,
    new_figure,
    numbers,
    plain_axes,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["group_figures", "whiskers"]

_MOST = 24
_COLUMNS = 30


def group_figures(
    labels: Sequence[object],
    sizes: Sequence[int],
    private: Sequence[tuple[float, float, float]],
    plain: Sequence[tuple[float, float, float]] | None = None,
    lost: Sequence[tuple[float, float, float]] | None = None,
    *,
    value: str,
    lost_value: str = "lost to noise",
    title: str = "",
    note: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """A row for each group: its figure with noise and without, and beside it what was lost.

    Args:
        labels: The groups, at most 24; drawn in this order.
        sizes: How many rows each has.
        private: Of each the figure with noise, and the ends of its interval.
        plain: The same without noise; None: not known.
        lost: How much worse the figure is with noise, with its interval; in a panel of its own.
        value: What the figure is, for the axis.
        lost_value: What was lost, for the other axis.
        title: The title.
        note: A note below.
        path: Where to write the picture, .png or .svg.

    Raises:
        InvalidParameter: if there are no groups, too many, or not as many of each.
    """
    rows = len(labels)
    if not 1 <= rows <= _MOST:
        raise InvalidParameter(f"A picture of groups has from 1 to {_MOST} of them; draw fewer at a time.")
    counts = numbers(list(sizes), "sizes", length=rows)
    figure = new_figure(7.4, 1.7 + 0.36 * rows + (0.3 if title else 0.0))
    if lost is None:
        left, right = figure.subplots(), None
    else:
        left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": (1.5, 1)})
    places = np.arange(rows, dtype=np.float64)
    apart = 0.0 if plain is None else 0.13
    if plain is not None:
        whiskers(left, places - apart, plain, GREY, "o", "without noise")
    whiskers(left, places + apart, private, DOT, "D", "with noise")
    left.set_ylim(rows - 0.45, -0.55)
    names = [
        f"{shortened(label, _COLUMNS)}  {int(count):,}" for label, count in zip(labels, counts, strict=True)
    ]
    left.set_yticks(range(rows), names, parse_math=False)
    left.set_xlabel(value, fontsize=LABEL, color=INK)
    plain_axes(left, values="x")
    if right is not None and lost is not None:
        right.axvline(0, color=GREY, linewidth=1.0)
        whiskers(right, places, lost, ACCENT, "s", "lost")
        right.set_xlabel(lost_value, fontsize=LABEL, color=INK)
        plain_axes(right, values="x")
        right.tick_params(axis="y", labelleft=False)
    left.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False, fontsize=NOTE)
    return finish(figure, title=title, note=note, path=path)


def whiskers(
    axes: Axes,
    places: Floats,
    figures: Sequence[tuple[float, float, float]],
    colour: str,
    marker: str,
    words: str,
) -> None:
    """Figures with their intervals at these heights; what is not known is left out, an endless end is cut."""
    values, low, high = (
        numbers([figure[at] for figure in figures], "figures", length=len(places)) for at in range(3)
    )
    known = np.isfinite(values)
    ends = np.isfinite(low) & np.isfinite(high)
    bars = [np.where(ends, side, 0.0)[known].clip(0).tolist() for side in (values - low, high - values)]
    axes.errorbar(
        values[known],
        places[known],
        xerr=bars,
        fmt=marker,
        color=colour,
        markersize=5.5,
        elinewidth=1.5,
        capsize=2.5,
        linestyle="none",
        label=words,
    )
