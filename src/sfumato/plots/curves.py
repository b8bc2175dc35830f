"""What an attacker can reach, and where an epsilon stands: pictures of meaning."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import InvalidParameter
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
    printable,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["deployments_chart", "tradeoff_curve"]

UNITS_DIFFER = (
    "An ε is a price per unit. Units differ between these groups, so an ε of one group says nothing about "
    "an ε of another."
)


def tradeoff_curve(
    false_positive_rates: Sequence[float] | Floats,
    curves: Mapping[str, Sequence[float] | Floats],
    *,
    title: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """The best true-positive rate of any attacker at each false-positive rate, above the line of guessing.

    Args:
        false_positive_rates: increasing, from 0 to 1.
        curves: up to four, name → best true-positive rates, one for each false-positive rate.
        title: the title.
        path: where to write the picture, .png or .svg.
    """
    if not 1 <= len(curves) <= len(STYLES):
        raise InvalidParameter(f"One to {len(STYLES)} curves fit in one picture.")
    rates = _rates(false_positive_rates, "false_positive_rates")
    if np.any(np.diff(rates) < 0):
        raise InvalidParameter("false_positive_rates must not decrease.")
    figure = new_figure(5.6, 5.2 + 0.2 * len(curves))
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), label="guessing")
    for (name, values), (colour, style) in zip(curves.items(), STYLES, strict=False):
        best = _rates(values, "true-positive rates", length=len(rates))
        axes.plot(rates, best, color=colour, linestyle=style, linewidth=2.0, label=shortened(name, 40))
        if len(curves) == 1:
            axes.fill_between(rates, rates, best, color=colour, alpha=0.12, linewidth=0.0)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(_percent)
        axis.set_ticks([0.0, 0.25, 0.5, 0.75, 1.0])
    axes.set_xlabel("false alarms: absent, but called present", fontsize=LABEL, color=INK)
    axes.set_ylabel("hits: present, and called present", fontsize=LABEL, color=INK)
    plain_axes(axes, values="y")
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.spines["bottom"].set_visible(True)
    legend = axes.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="none", fontsize=NOTE)
    for text in legend.get_texts():
        text.set_parse_math(False)
    note = (
        "No attacker, whatever they know, can be above the curve. "
        "The larger its gap to guessing, the more is told."
    )
    return finish(figure, title=title, note=note, path=path)


def _rates(values: Sequence[float] | Floats, name: str, *, length: int | None = None) -> Floats:
    rates = numbers(values, name, length=length)
    if not (len(rates) and np.all((rates >= 0) & (rates <= 1))):
        raise InvalidParameter(f"{name} must lie between 0 and 1.")
    return rates


def _percent(value: float, _position: float | None = None) -> str:
    return f"{value * 100:.3g} %"


def deployments_chart(
    names: Sequence[object],
    epsilons: Sequence[float] | Floats,
    groups: Sequence[str],
    *,
    here: tuple[float, str] | None = None,
    title: str = "",
    note: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Stated epsilons on a logarithmic axis, one block of rows for each kind of unit, and a warning below.

    Args:
        names: one deployment a row.
        epsilons: what each states, positive.
        groups: the kind of unit of each; blocks come in the order in which they first appear.
        here: (epsilon, group) of the release to compare; drawn in its own block only.
        title: the title.
        note: more for the footnote; that units differ is always said.
        path: where to write the picture, .png or .svg.
    """
    sizes = numbers(epsilons, "epsilons", length=len(names))
    rows = list(zip(map(str, names), sizes.tolist(), groups, strict=True))
    if here is not None:
        rows.append(("▸ here", float(here[0]), here[1]))
    if not rows or not all(np.isfinite(size) and size > 0 for _, size, _ in rows):
        raise InvalidParameter("A chart of deployments needs epsilons, all positive and finite.")
    blocks = {
        group: sorted((r for r in rows if r[2] == group), key=lambda r: r[1])
        for group in dict.fromkeys(groups)
    }
    if here is not None and here[1] not in blocks:
        blocks[here[1]] = [rows[-1]]
    count = len(rows) + len(blocks)
    figure = new_figure(8.4, 1.7 + 0.235 * count)
    axes = figure.subplots()
    places, labels, heads = [], [], []
    at = 0
    for group, members in blocks.items():
        heads.append(at)
        places.append(at)
        labels.append(shortened(group, 44))
        for name, size, _ in members:
            at += 1
            own = here is not None and name == rows[-1][0]
            axes.hlines(at, 1e-300, size, color=FAINT, linewidth=1.0, zorder=1)
            marker, colour, large = ("D", ACCENT, 7.0) if own else ("o", DOT, 5.5)
            axes.plot([size], [at], marker, color=colour, markersize=large, zorder=3)
            axes.annotate(
                number(size),
                (size, at),
                (7, 0),
                textcoords="offset points",
                va="center",
                fontsize=NOTE,
                color=INK,
            )
            places.append(at)
            labels.append(shortened(name, 48))
        at += 1
    _log_axis(axes, [size for _, size, _ in rows])
    axes.set_ylim(at - 0.3, -0.7)
    axes.set_yticks(places, labels, parse_math=False)
    axes.set_xlabel("stated ε (logarithmic)", fontsize=LABEL, color=INK)
    plain_axes(axes, values="x")
    for place, label in zip(places, axes.get_yticklabels(), strict=True):
        if place in heads:
            label.set_fontweight("bold")
    for place in heads[1:]:
        axes.axhline(place - 0.5, color=GREY, linewidth=0.6)
    return finish(figure, title=title, note=f"{UNITS_DIFFER} {printable(note)}".strip(), path=path)


def _log_axis(axes: Axes, sizes: list[float]) -> None:
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    axes.set_xlim(min(sizes) / 1.8, max(sizes) * 2.4)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(number)
