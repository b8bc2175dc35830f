"""One page about a synthetic table: errors of counts, models by group, nearest records, attacks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.rounding import Floats
from sfumato.plots._figure import (
    DOT,
    GREY,
    INK,
    LABEL,
    NOTE,
    STYLES,
    finish,
    new_figure,
    numbers,
    plain_axes,
    shortened,
)
from sfumato.plots.attacks import draw_rates
from sfumato.plots.groups import whiskers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Curves", "Rates", "Whiskers", "fidelity_page"]

_MOST = 16  # rows of a panel
_COLUMNS = 26
_POINTS = 200


@dataclass(frozen=True, slots=True)
class Curves:
    """Values whose distributions are drawn as rising curves: the share of them that is at most so large.

    Attributes:
        title: Of the panel.
        axis: What the values are.
        of: What they are of: "pairs".
        values: By name, at most four; NaN is left out.
        is_percent: Whether they are shares.
    """

    title: str
    axis: str
    of: str
    values: Mapping[str, Sequence[float] | Floats]
    is_percent: bool = False


@dataclass(frozen=True, slots=True)
class Whiskers:
    """Figures of groups with intervals, of two kinds side by side.

    Attributes:
        title: Of the panel.
        axis: What the figures are.
        labels: The groups; drawn in this order, at most 16.
        sizes: How many rows each has.
        one: By name the figures of one kind, with the ends of their intervals.
        other: Of the other kind, drawn in grey.
    """

    title: str
    axis: str
    labels: Sequence[object]
    sizes: Sequence[int]
    one: tuple[str, Sequence[tuple[float, float, float]]]
    other: tuple[str, Sequence[tuple[float, float, float]]]


@dataclass(frozen=True, slots=True)
class Rates:
    """What attacks reach, as in `success_rates`, and the most that a price allows.

    Attributes:
        title: Of the panel.
        labels: The attacks.
        rates: Their success rates.
        intervals: Where the probability of success lies.
        guesses: The rates that a guess reaches; None where there is no verdict.
        allowed: The most that a price allows; None: nothing is known.
    """

    title: str
    labels: Sequence[object]
    rates: Sequence[float]
    intervals: Sequence[tuple[float, float]]
    guesses: Sequence[tuple[float, float] | None]
    allowed: Sequence[float | None]


def fidelity_page(
    panels: Sequence[Curves | Whiskers | Rates],
    *,
    title: str = "",
    note: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """One page of panels, two beside each other.

    Args:
        panels: From one to six of them.
        title: The title.
        note: The footnote: for whom the page is.
        path: Where to write the picture, .png or .svg.

    Raises:
        InvalidParameter: if there are no panels, too many, or one cannot be drawn.
    """
    if not 1 <= len(panels) <= 6:
        raise InvalidParameter("A page has from one to six panels.")
    wide = min(2, len(panels))
    lines = [panels[at : at + wide] for at in range(0, len(panels), wide)]
    heights = [max(_height(panel) for panel in line) for line in lines]
    figure = new_figure(5.6 * wide, sum(heights) + 0.9)
    grid = figure.add_gridspec(len(lines), wide, height_ratios=heights)
    for at, line in enumerate(lines):
        for place, panel in enumerate(line):
            # A last one that is alone has the whole width.
            axes = figure.add_subplot(grid[at, :] if len(line) < wide else grid[at, place])
            _draw(axes, panel)
    return finish(figure, title=title, note=note, path=path)


def _height(panel: Curves | Whiskers | Rates) -> float:
    """In inches."""
    if isinstance(panel, Curves):
        return 3.4
    return max(3.4 if len(panel.labels) > 5 else 2.9, 1.6 + 0.3 * len(panel.labels))


def _draw(axes: Axes, panel: Curves | Whiskers | Rates) -> None:
    if isinstance(panel, Curves):
        _curves(axes, panel)
    elif isinstance(panel, Whiskers):
        _groups(axes, panel)
    else:
        labels = [shortened(label, _COLUMNS) for label in panel.labels]
        draw_rates(axes, labels, panel.rates, panel.intervals, panel.guesses, panel.allowed, columns=_COLUMNS)
    handles = len(axes.get_legend_handles_labels()[0])
    legend = axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=2,
        frameon=False,
        fontsize=NOTE,
        columnspacing=1.2,
        handlelength=1.8,
        borderpad=0.1,
        labelspacing=0.3,
    )
    legend.set_in_layout(False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    axes.set_title(
        shortened(panel.title, 60),
        loc="left",
        fontsize=LABEL + 0.5,
        fontweight="bold",
        color=INK,
        pad=8 + 14 * -(-handles // 2),
        parse_math=False,
    )


def _curves(axes: Axes, panel: Curves) -> None:
    if not 1 <= len(panel.values) <= len(STYLES):
        raise InvalidParameter(f"One to {len(STYLES)} curves fit in one panel.")
    highest = 0.0
    for (name, values), (colour, style) in zip(panel.values.items(), STYLES, strict=False):
        known = numbers(values, "values")
        known = np.sort(known[np.isfinite(known)])
        if not len(known):
            continue
        highest = max(highest, float(known[-1]))
        # A step for each value; of many, the quantiles.
        at = np.linspace(0, len(known) - 1, min(len(known), _POINTS)).round().astype(int)
        axes.step(
            np.concatenate([[known[0]], known[at]]),
            np.concatenate([[0.0], (at + 1) / len(known)]),
            where="post",
            color=colour,
            linestyle=style,
            linewidth=1.9,
            label=shortened(name, 44),
        )
    axes.set_xlim(0, highest * 1.04 or 1.0)
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    if panel.is_percent:
        axes.xaxis.set_major_formatter(_percent)
    axes.set_xlabel(panel.axis, fontsize=LABEL, color=INK)
    axes.set_ylabel(f"share of {panel.of}", fontsize=LABEL, color=INK)
    plain_axes(axes, values="y")
    axes.spines["bottom"].set_visible(True)


def _percent(value: float, _position: Any = None) -> str:
    return f"{100 * value:.3g} %"


def _groups(axes: Axes, panel: Whiskers) -> None:
    rows = len(panel.labels)
    if not 1 <= rows <= _MOST:
        raise InvalidParameter(f"A panel of groups has from 1 to {_MOST} of them; draw fewer at a time.")
    places = np.arange(rows, dtype=np.float64)
    for (name, figures), apart, colour, marker in (
        (panel.other, -0.15, GREY, "o"),
        (panel.one, 0.15, DOT, "D"),
    ):
        whiskers(axes, places + apart, figures, colour, marker, name)
    axes.set_ylim(rows - 0.4, -0.6)
    names = [
        f"{shortened(label, _COLUMNS)}  {int(size):,}"
        for label, size in zip(panel.labels, panel.sizes, strict=True)
    ]
    axes.set_yticks(range(rows), names, parse_math=False)
    axes.set_xlabel(panel.axis, fontsize=LABEL, color=INK)
    plain_axes(axes, values="x")
