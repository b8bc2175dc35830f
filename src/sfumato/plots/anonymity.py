"""A table before and after it was anonymised: how many rows look the same, and what each column lost."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.numeric.rounding import Floats
from sfumato.plots._figure import (
    ACCENT,
    DOT,
    FAINT,
    GREY,
    INK,
    LABEL,
    NOTE,
    STYLES,
    finish,
    new_figure,
    number,
    numbers,
    plain_axes,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["before_after", "utility_curve"]

_Sizes: TypeAlias = npt.NDArray[np.int64]

_STEPS = (1, 2, 10, 100)  # the classes of at least k rows are shown in steps of so many times k
_MOST = 30  # columns whose loss is drawn
_OLD: dict[str, Any] = {"facecolor": "#fbe3cd", "edgecolor": ACCENT, "hatch": "////", "linewidth": 0.8}
_NEW: dict[str, Any] = {"facecolor": DOT, "edgecolor": DOT, "linewidth": 0.8}


def before_after(
    before: Sequence[int] | npt.NDArray[Any],
    after: Sequence[int] | npt.NDArray[Any],
    *,
    k: int,
    lost: Mapping[str, float],
    title: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """On the left the share of rows by how many look the same, before and after; on the right what was lost.

    Args:
        before: the sizes of the classes of the original table.
        after: the sizes of those of the anonymised one; rows that are missing there were suppressed.
        k: the class size that was asked for; smaller classes are told apart from the rest by a line.
        lost: for each column what its cells lost on average, 0 … 1.
        title: the title.
        path: where to write the picture, .png or .svg.
    """
    least = as_integer(k, "k")
    old, new = _sizes(before, "before"), _sizes(after, "after")
    rows = int(old.sum())
    if not rows or int(new.sum()) > rows:
        raise InvalidParameter("before needs classes, and after must not have more rows than before.")
    if not 1 <= len(lost) <= _MOST:
        raise InvalidParameter(f"One to {_MOST} columns fit in one picture.")
    gone = (rows - int(new.sum())) / rows
    edges = _edges(least, max(int(old.max()), int(new.max(initial=1))))
    bars = len(edges) + bool(gone)
    figure = new_figure(9.4, max(3.4, 1.9 + 0.42 * bars, 1.9 + 0.3 * len(lost)))
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1.0))
    _draw_classes(left, edges, (old, new), least, gone)
    _draw_losses(right, lost)
    alone = _percent(int((old == 1).sum()) / rows)
    left_out = f"{_percent(gone)} were left out" if gone else "none was left out"
    note = f"Of {rows:,} rows, {alone} were one of a kind before; {left_out}. For the steward alone."
    return finish(figure, title=title, note=note, path=path)


def _sizes(sizes: Sequence[int] | npt.NDArray[Any], name: str) -> _Sizes:
    array = np.asarray(sizes)
    if array.ndim != 1 or (len(array) and (array.dtype.kind not in "iu" or array.min() < 1)):
        raise InvalidParameter(f"{name} must be a list of class sizes, whole numbers from 1 on.")
    return array.astype(np.int64)


def _edges(k: int, largest: int) -> list[int]:
    """The least size of each bar's classes: 1, 2, k, 2k, …, as far as there are classes so large."""
    return [edge for edge in sorted({1, 2, *(k * step for step in _STEPS)}) if edge <= max(largest, k)]


def _draw_classes(axes: Axes, edges: list[int], both: tuple[_Sizes, _Sizes], k: int, gone: float) -> None:
    """Two bars for each span of class sizes, the smallest on top, and a line where k begins."""
    names = [_span(low, high - 1) for low, high in pairwise(edges)] + [f"{number(edges[-1])} or more"]
    rows = int(both[0].sum())
    shares = [_shares(sizes, edges, rows) for sizes in both]
    if gone:
        names.append("left out")
        shares = [np.append(shares[0], 0.0), np.append(shares[1], gone)]
    at = np.arange(len(names))
    longest = max(float(share.max()) for share in shares)
    # Two bars share a label's height; one alone is in its middle.
    apart = np.where((shares[0] > 0) & (shares[1] > 0), 0.19, 0.0)
    for side, widths, name, style in ((-1, shares[0], "before", _OLD), (1, shares[1], "after", _NEW)):
        drawn = widths > 0
        places = (at + side * apart)[drawn]
        axes.barh(places, widths[drawn], 0.34, label=name, **style)
        for place, width in zip(places.tolist(), widths[drawn].tolist(), strict=True):
            _say(axes, _percent(width), width, place)
    if k > 1:
        line = edges.index(k) - 0.5
        axes.axhline(line, color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
        _say(axes, f"k = {k}", 1.24 * longest, line - 0.22, ha="right")
    axes.set_yticks(at, names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 1.24 * longest)
    axes.xaxis.set_major_formatter(_tick)
    axes.xaxis.set_major_locator(_shares_locator())
    axes.set_xlabel("share of the rows", fontsize=LABEL, color=INK)
    axes.set_ylabel("rows that look the same", fontsize=LABEL, color=INK)
    plain_axes(axes, values="x")
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 0.98),
        ncols=2,
        frameon=False,
        fontsize=NOTE,
        handlelength=1.4,
    )


def _shares_locator() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10])


def _say(axes: Axes, text: str, x: float, y: float, ha: str = "left") -> None:
    """Small text just beside a place."""
    axes.annotate(
        text,
        (x, y),
        (4 if ha == "left" else -2, 0),
        textcoords="offset points",
        ha=ha,
        va="center",
        fontsize=NOTE,
        color=INK,
    )


def _shares(sizes: _Sizes, edges: list[int], rows: int) -> Floats:
    """The share of the rows in classes of each span of sizes."""
    span = np.searchsorted(np.array(edges), sizes, side="right") - 1
    return np.bincount(span, weights=sizes, minlength=len(edges)) / rows


def _span(low: int, high: int) -> str:
    return number(low) if low == high else f"{number(low)}–{number(high)}"


def _draw_losses(axes: Axes, lost: Mapping[str, float]) -> None:
    at = np.arange(len(lost))
    shares = np.array(list(lost.values()), dtype=np.float64)
    if not np.all((shares >= 0) & (shares <= 1)):
        raise InvalidParameter("What a column lost lies between 0 and 1.")
    axes.barh(at, np.ones(len(lost)), 0.55, color=FAINT)
    axes.barh(at[shares > 0], shares[shares > 0], 0.55, **_NEW)
    for place, share in zip(at, shares, strict=True):
        _say(axes, _percent(share), 1.0, float(place))
    axes.set_yticks(at, [shortened(name, 22) for name in lost], parse_math=False)
    axes.set_ylim(len(lost) - 0.4, -0.6)
    axes.set_xlim(0, 1.2)
    axes.set_xticks([0.0, 0.5, 1.0])
    axes.xaxis.set_major_formatter(_tick)
    axes.set_xlabel("information lost", fontsize=LABEL, color=INK)
    plain_axes(axes, values="x")
    axes.grid(False)
    axes.spines["bottom"].set_color(GREY)


def _tick(share: float, _position: float | None = None) -> str:
    return f"{share * 100:.3g} %"


def _percent(share: float) -> str:
    """A share in three digits, never 0 % or 100 % unless it is."""
    if 0 < share < 0.0005:
        return "<0.1 %"
    if 0.9995 <= share < 1:
        return ">99.9 %"
    return f"{share * 100:.3g} %" if share >= 0.1 else f"{share * 100:.2g} %"


def utility_curve(
    ks: Sequence[int] | npt.NDArray[Any],
    left: Mapping[str, Sequence[float] | Floats],
    *,
    title: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """What is left of a table as k grows: a curve for each way to make it k-anonymous.

    Args:
        ks: the k, increasing.
        left: up to four ways, name → the share that is left at each k, 0 … 1.
        title: the title.
        path: where to write the picture, .png or .svg.
    """
    at = numbers(ks, "ks")
    if not 1 <= len(left) <= len(STYLES):
        raise InvalidParameter(f"One to {len(STYLES)} curves fit in one picture.")
    if not len(at) or at[0] < 1 or np.any(np.diff(at) <= 0):
        raise InvalidParameter("ks must increase, from 1 on.")
    figure = new_figure(6.8, 4.2)
    axes = figure.subplots()
    for (name, values), (colour, style), marker in zip(left.items(), STYLES, "osD^", strict=False):
        shares = numbers(values, "left", length=len(at))
        if not np.all((shares >= 0) & (shares <= 1)):
            raise InvalidParameter("What is left of a table lies between 0 and 1.")
        label = shortened(name, 48)
        axes.plot(
            at, shares, color=colour, linestyle=style, linewidth=2.0, marker=marker, markersize=5, label=label
        )
    axes.set_xscale("log")
    axes.set_xticks(at, [number(value) for value in at.tolist()])
    axes.minorticks_off()
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(_tick)
    axes.set_xlabel("k: rows that must look the same", fontsize=LABEL, color=INK)
    axes.set_ylabel("information left", fontsize=LABEL, color=INK)
    plain_axes(axes, values="y")
    axes.spines["bottom"].set_visible(True)
    legend = axes.legend(loc="best", frameon=True, framealpha=0.9, edgecolor="none", fontsize=NOTE)
    for text in legend.get_texts():
        text.set_parse_math(False)
    note = "1 less the normalised certainty penalty of the quasi-identifiers. For the steward alone."
    return finish(figure, title=title, note=note, path=path)
