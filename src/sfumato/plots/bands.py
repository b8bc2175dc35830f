"""Released values with the band that the noise leaves around each."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.numeric.rounding import Floats
from sfumato.plots._figure import (
    BAND,
    DOT,
    FAINT,
    GREY,
    INK,
    LABEL,
    NOTE,
    finish,
    new_figure,
    number,
    numbers,
    plain_axes,
    printable,
    shortened,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["noise_bands", "noise_panels"]

Kind: TypeAlias = Literal["dots", "bars", "line"]
Numbers: TypeAlias = Sequence[float | None] | Floats

_FEW, _SHORT = 8, 12  # so many short labels fit side by side below the values
_MANY = 40  # beyond, single labels cannot be read and the values are drawn as a line
_LONGEST = 36  # letters of a label
_TICKS = 10  # labels along a line
_MOST_PANELS = 6
# A dot at the edge of the picture is still a whole one.
_DOT: dict[str, Any] = {"color": DOT, "markeredgecolor": "white", "clip_on": False, "zorder": 3}
_GAP: dict[str, Any] = {"fontsize": NOTE, "color": GREY, "style": "italic"}


def noise_bands(
    labels: Sequence[object],
    values: Numbers,
    low: Numbers,
    high: Numbers,
    *,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    note: str = "",
    confidence: float | None = None,
    kind: Kind = "dots",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Each released value as a dot on the band from `low` to `high`; more than 40 keys as a line with a band.

    Args:
        labels: the keys, one a value; anything that can be shown as text. A line is drawn over the keys
            themselves where they are numbers in their order.
        values: the released values; None or NaN where there is none, which leaves a gap.
        low: the lower ends of the bands; minus infinity where there is none.
        high: the upper ends; infinity where there is none.
        title: the title; long ones are wrapped.
        xlabel: what the keys are.
        ylabel: what the values are.
        note: a footnote instead of the usual one about released values and noise.
        confidence: that of the bands, for the usual footnote.
        kind: "bars" draws a bar from zero to each value behind its band, and "line" a line for few keys, too.
        path: where to write the picture, .png or .svg.

    Returns:
        The matplotlib figure. It is registered nowhere, so nothing needs closing.
    """
    return noise_panels(
        labels,
        {ylabel: (values, low, high)},
        title=title,
        xlabel=xlabel,
        note=note,
        confidence=confidence,
        kind=kind,
        path=path,
    )


def noise_panels(
    labels: Sequence[object],
    panels: Mapping[str, tuple[Numbers, Numbers, Numbers]],
    *,
    title: str = "",
    xlabel: str = "",
    note: str = "",
    confidence: float | None = None,
    kind: Kind = "dots",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Several measures of the same keys, one panel each: name → (values, low, high), as in `noise_bands`."""
    count = len(labels)
    if not count or not panels:
        raise InvalidParameter("There is nothing to draw: give at least one key and its value.")
    if len(panels) > _MOST_PANELS:
        raise InvalidParameter(f"At most {_MOST_PANELS} measures fit in one picture; draw the rest apart.")
    checked = {name: _checked(*columns, count) for name, columns in panels.items()}
    names = _names(labels)
    if count > _MANY or (kind == "line" and count > 1):
        figure = new_figure(8.0, 1.2 + 2.9 * len(panels))
        places = _numbers_in_order(labels)
        for axes, (name, columns) in zip(_stacked(figure, len(panels)), checked.items(), strict=True):
            _line(axes, names, places, name, *columns)
    elif count <= _FEW and max(map(len, names)) <= _SHORT:
        figure = new_figure(max(5.3, 1.6 + 0.8 * count), 1.3 + 2.7 * len(panels))
        for axes, (name, columns) in zip(_stacked(figure, len(panels)), checked.items(), strict=True):
            _upright(axes, names, name, *columns, bars=kind == "bars")
    else:
        figure = new_figure(max(7.0, 2.2 + 3.2 * len(panels)), 1.7 + 0.27 * count)
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (name, columns) in zip(grid, checked.items(), strict=True):
            _lying(axes, names, name, *columns, first=axes is grid[0], bars=kind == "bars")
    if xlabel:
        _name_keys(figure.axes, wrapped(xlabel, columns=40, lines=2), lying=figure.axes[0].yaxis_inverted())
    return finish(
        figure, title=title, note=note or _note(count > _MANY or kind == "line", confidence), path=path
    )


def _name_keys(panels: list[Axes], name: str, *, lying: bool) -> None:
    """Say once what the keys are: beside the first panel, or below the last."""
    if lying:
        panels[0].set_ylabel(name, fontsize=LABEL, color=INK, parse_math=False)
    else:
        panels[-1].set_xlabel(name, fontsize=LABEL, color=INK, parse_math=False)


def _names(labels: Sequence[object]) -> list[str]:
    """The keys as text; days without what all of them share."""
    days = [label for label in labels if isinstance(label, datetime.date)]
    if len(days) < len(labels) or not days:
        return [_plain(label) for label in labels]
    length = 4 if all((day.month, day.day) == (1, 1) for day in days) else 7
    return [day.isoformat()[: length if all(one.day == 1 for one in days) else 10] for day in days]


def _plain(label: object) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _numbers_in_order(labels: Sequence[object]) -> Floats | None:
    """The keys as places on an axis, if they are numbers or days that rise."""
    labels = [label.toordinal() if isinstance(label, datetime.date) else label for label in labels]
    if not all(isinstance(label, Real) and not isinstance(label, bool) for label in labels):
        return None
    places = np.array([float(label) for label in labels], dtype=np.float64)  # type: ignore[arg-type]
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.diff(places)
    return places if np.all(np.isfinite(places)) and np.all((steps > 0) & np.isfinite(steps)) else None


def _stacked(figure: Figure, count: int) -> list[Axes]:
    return list(figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0])


def _note(line: bool, confidence: float | None) -> str:
    mark, band = ("Line", "Band") if line else ("Dots", "Bands")
    at = "" if confidence is None else f", at {confidence * 100:.6g} % confidence"
    return f"{mark}: released values. {band}: the value without noise{at}."


def _checked(values: Numbers, low: Numbers, high: Numbers, count: int) -> tuple[Floats, Floats, Floats]:
    middle = numbers(values, "values", length=count)
    lower, upper = numbers(low, "low", length=count), numbers(high, "high", length=count)
    middle = np.where(np.isfinite(middle), middle, np.nan)
    if np.any(lower > upper):
        raise InvalidParameter("low must not be above high.")
    return middle, np.where(np.isnan(middle), np.nan, lower), np.where(np.isnan(middle), np.nan, upper)


def _span(values: Floats, low: Floats, high: Floats, *, zero: bool = False) -> tuple[float, float]:
    """The ends of the axis of values: all finite ends with room around, and zero if near or asked for."""
    known = np.concatenate([values, low, high, [0.0] if zero else []])
    known = known[np.isfinite(known)]
    if not len(known):
        return -1.0, 1.0
    least, most = float(known.min()), float(known.max())
    if least > 0 and least < 0.6 * most:
        least = 0.0
    elif most < 0 and most > 0.6 * least:
        most = 0.0
    # Halved first: the difference of two floats may overflow.
    room = 0.12 * (most / 2 - least / 2) or abs(most) * 0.1 or 1.0
    return (least - room if least else 0.0), (most + room if most else 0.0)


def _clipped(low: Floats, high: Floats, span: tuple[float, float]) -> tuple[Floats, Floats]:
    """Bands without an end run to the edge of the picture."""
    return np.where(np.isneginf(low), span[0], low), np.where(np.isposinf(high), span[1], high)


def _upright(
    axes: Axes, labels: list[str], name: str, values: Floats, low: Floats, high: Floats, *, bars: bool
) -> None:
    span = _span(values, low, high, zero=bars)
    below, above = _clipped(low, high, span)
    at = np.arange(len(labels), dtype=np.float64)
    if bars:
        axes.bar(at, np.nan_to_num(values), 0.7, color=FAINT)
    axes.bar(at, above - below, 0.44, below, color=BAND, label="band")
    # A band thinner than a pixel is still seen at its ends.
    axes.hlines(
        np.concatenate([low, high]), np.tile(at - 0.22, 2), np.tile(at + 0.22, 2), color=DOT, linewidth=0.9
    )
    axes.plot(at, values, "o", markersize=6, markeredgewidth=0.8, **_DOT)
    axes.set_xticks(at, [printable(label) for label in labels], parse_math=False)
    for place in at[np.isnan(values)]:
        axes.text(place, 0.02, "no value", transform=axes.get_xaxis_transform(), ha="center", **_GAP)
    room = max(0.6, 1.6 - len(labels) / 2)  # a lone band need not fill the picture
    axes.set_xlim(-room, len(labels) - 1 + room)
    axes.set_ylim(*span)
    axes.yaxis.set_major_formatter(number)
    axes.set_ylabel(wrapped(name, columns=30, lines=2), fontsize=LABEL, color=INK, parse_math=False)
    plain_axes(axes, values="y")
    if span[0] < 0 < span[1]:
        axes.axhline(0, color=GREY, linewidth=0.8, zorder=1)


def _lying(
    axes: Axes,
    labels: list[str],
    name: str,
    values: Floats,
    low: Floats,
    high: Floats,
    *,
    first: bool,
    bars: bool,
) -> None:
    span = _span(values, low, high, zero=bars)
    left, right = _clipped(low, high, span)
    at = np.arange(len(labels), dtype=np.float64)
    if bars:
        axes.barh(at, np.nan_to_num(values), 0.78, color=FAINT)
    axes.barh(at, right - left, 0.52, left, color=BAND, label="band")
    axes.vlines(
        np.concatenate([low, high]), np.tile(at - 0.26, 2), np.tile(at + 0.26, 2), color=DOT, linewidth=0.9
    )
    axes.plot(values, at, "o", markersize=5, markeredgewidth=0.7, **_DOT)
    for place in at[np.isnan(values)]:
        axes.text(0.01, place, "no value", transform=axes.get_yaxis_transform(), va="center", **_GAP)
    if first:
        axes.set_yticks(at, [shortened(label, _LONGEST) for label in labels], parse_math=False)
        axes.set_ylim(len(labels) - 0.4, -0.6)  # the first key on top
    axes.set_xlim(*span)
    axes.locator_params(axis="x", nbins=6)
    axes.xaxis.set_major_formatter(number)
    axes.set_xlabel(wrapped(name, columns=40, lines=2), fontsize=LABEL, color=INK, parse_math=False)
    plain_axes(axes, values="x")
    if span[0] < 0 < span[1]:
        axes.axvline(0, color=GREY, linewidth=0.8, zorder=1)


def _line(
    axes: Axes,
    labels: list[str],
    places: Floats | None,
    name: str,
    values: Floats,
    low: Floats,
    high: Floats,
) -> None:
    span = _span(values, low, high)
    below, above = _clipped(low, high, span)
    at = np.arange(len(labels), dtype=np.float64) if places is None else places
    axes.fill_between(at, below, above, color=BAND, linewidth=0.0)
    axes.plot(at, values, color=DOT, linewidth=1.4)
    # A value between two gaps has no line of its own.
    gaps = np.isnan(np.concatenate([[np.nan], values, [np.nan]]))
    alone = ~gaps[1:-1] & gaps[:-2] & gaps[2:]
    if alone.any():
        axes.errorbar(
            at[alone],
            values[alone],
            (values[alone] - below[alone], above[alone] - values[alone]),
            fmt="o",
            color=DOT,
            ecolor=BAND,
            markersize=3,
        )
    if len(at) <= _MANY:
        axes.plot(at, values, "o", markersize=5, markeredgewidth=0.7, **_DOT)
    by_name = places is None or labels != [_plain(place) for place in at.tolist()]
    ticks, texts = _some(labels, at) if by_name else _round_ticks(at)
    axes.set_xticks(ticks, texts, parse_math=False)
    if max(map(len, texts)) > 6:
        axes.tick_params(axis="x", rotation=30)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")
    axes.set_xlim(at[0], at[-1])
    axes.set_ylim(*span)
    axes.yaxis.set_major_formatter(number)
    axes.set_ylabel(wrapped(name, columns=30, lines=2), fontsize=LABEL, color=INK, parse_math=False)
    plain_axes(axes, values="y")
    axes.tick_params(axis="x", length=3)
    axes.spines["bottom"].set_visible(True)
    if span[0] < 0 < span[1]:
        axes.axhline(0, color=GREY, linewidth=0.8, zorder=1)


def _some(labels: list[str], at: Floats) -> tuple[Floats, list[str]]:
    """A few of the keys, evenly apart."""
    shown = list(range(0, len(labels), -(-len(labels) // _TICKS)))
    return at[shown], [shortened(labels[place], 16) for place in shown]


def _round_ticks(at: Floats) -> tuple[Floats, list[str]]:
    """Round numbers along numbers; whole ones along whole numbers, and not grouped: a key may be a year."""
    from matplotlib.ticker import MaxNLocator

    whole = bool(np.all(at == np.rint(at)))
    locator = MaxNLocator(nbins=_TICKS, steps=[1, 2, 2.5, 5, 10], integer=whole)
    ticks = np.asarray(locator.tick_values(at[0], at[-1]), dtype=np.float64)
    ticks = ticks[(ticks >= at[0]) & (ticks <= at[-1])]
    return ticks, [number(tick).replace(",", "") if whole else number(tick) for tick in ticks.tolist()]
