"""What was measured against what was promised, as something grows: one picture."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.numeric.rounding import Floats
from sfumato.plots._figure import (
    FAINT,
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

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["against_bound"]

_TWO_POWERS = 80.0


def against_bound(
    grows: Sequence[float] | Floats,
    measured: Mapping[str, Sequence[float] | Floats],
    promised: Mapping[str, Sequence[float] | Floats],
    *,
    of: str,
    value: str,
    spread: tuple[Sequence[float] | Floats, Sequence[float] | Floats] | None = None,
    optimum: Sequence[float] | Floats | None = None,
    logarithmic: str = "",
    title: str = "",
    note: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Curves of what was measured, as lines with dots, beside what was promised, thin and dashed.

    Args:
        grows: where it was measured, increasing: numbers of buyers, rounds, examples.
        measured: up to four curves, name → a value for each place.
        promised: up to three curves of bounds, name → a value for each place; NaN where it says nothing.
        of: what grows, for the axis.
        value: what is measured, for the other axis.
        spread: the lower and upper ends of a band around the first measured curve.
        optimum: the best there is, drawn as a dotted line.
        logarithmic: which axes are logarithmic: "", "x", "y" or "xy".
        title: the title.
        note: the footnote.
        path: where to write the picture, .png or .svg.

    Raises:
        InvalidParameter: for too many curves, or curves of other lengths.
    """
    if not 1 <= len(measured) <= len(STYLES) or len(promised) > 3:
        raise InvalidParameter(
            f"One to {len(STYLES)} measured curves and at most 3 bounds fit in one picture."
        )
    at = numbers(grows, "grows")
    if len(at) < 2 or np.any(np.diff(at) <= 0):
        raise InvalidParameter("grows must increase, and have at least two places.")
    figure = new_figure(6.8, 4.4)
    axes = figure.subplots()
    if spread is not None:
        low, high = (numbers(side, "spread", length=len(at)) for side in spread)
        axes.fill_between(at, low, high, color=STYLES[0][0], alpha=0.14, linewidth=0.0)
    # What was measured is solid and has markers, what was promised is dashed and has none.
    for (name, values), (colour, _), marker in zip(measured.items(), STYLES, "osD^", strict=False):
        line = numbers(values, "measured", length=len(at))
        label = shortened(name, 48)
        axes.plot(at, line, color=colour, linewidth=2.0, marker=marker, markersize=4.5, label=label)
    for (name, values), dashes in zip(promised.items(), ((5, 2), (2, 2), (7, 2, 1, 2)), strict=False):
        line = numbers(values, "promised", length=len(at))
        axes.plot(at, line, color=GREY, linewidth=1.4, linestyle=(0, dashes), label=shortened(name, 48))
    if optimum is not None:
        best = numbers(optimum, "optimum", length=len(at))
        axes.plot(at, best, color=INK, linewidth=1.1, linestyle=(0, (1, 2)), label="the best there is")
    if "x" in logarithmic:
        axes.set_xscale("log")
        _few_labels(axes.xaxis)
    if "y" in logarithmic:
        axes.set_yscale("log")
        _few_labels(axes.yaxis)
    axes.set_xlabel(shortened(of, 60), fontsize=LABEL, color=INK)
    axes.set_ylabel(shortened(value, 60), fontsize=LABEL, color=INK)
    plain_axes(axes, values="y")
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.legend(fontsize=NOTE, labelcolor=INK, facecolor="white", edgecolor="none", framealpha=0.9)
    return finish(figure, title=title, note=note, path=path)


def _few_labels(axis: Axis) -> None:
    """On a logarithmic axis: powers of ten, or 1, 2, 5 and their multiples where there is hardly one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_minor_formatter(NullFormatter())
    low, high = axis.get_view_interval()
    if low > 0 and high / low < _TWO_POWERS:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
