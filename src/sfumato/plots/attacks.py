"""What attacks reach, beside what a guess reaches."""

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
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_rates", "reconstruction_curve", "success_rates"]

_MOST = 24
_COLUMNS = 34
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def success_rates(
    labels: Sequence[object],
    rates: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    guesses: Sequence[tuple[float, float] | None],
    *,
    title: str = "",
    confidence: float = 0.99,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """A row for each attack: its success rate with an interval, over the band that a guess reaches.

    Args:
        labels: what was attacked, at most 24 rows.
        rates: the share of trials that succeeded, from 0 to 1.
        intervals: where the probability of success lies.
        guesses: the rates that a guess reaches in as many trials; None where there is no verdict.
        title: the title.
        confidence: of intervals and bands, for the note.
        path: where to write the picture, .png or .svg.

    Raises:
        InvalidParameter: if there are no rows, too many, or not as many of each.
    """
    if not 1 <= len(labels) <= _MOST:
        raise InvalidParameter(f"A picture of attacks has from 1 to {_MOST} rows; draw fewer at a time.")
    figure = new_figure(7.0, 1.5 + 0.42 * len(labels) + (0.3 if title else 0.0))
    axes = figure.subplots()
    draw_rates(axes, labels, rates, intervals, guesses)
    # Anchored on the right: it may reach over the labels, which leave that room free.
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=4,
        frameon=False,
        fontsize=NOTE,
        columnspacing=1.4,
    )
    note = f"Whiskers and bands: {confidence:.0%} confidence."
    return finish(figure, title=title, note=note, path=path)


def draw_rates(
    axes: Axes,
    labels: Sequence[object],
    rates: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    guesses: Sequence[tuple[float, float] | None],
    allowed: Sequence[float | None] | None = None,
    *,
    columns: int = _COLUMNS,
) -> None:
    """Draw the rows of `success_rates` on axes of a larger picture.

    Args:
        axes: where to.
        labels: what was attacked.
        rates: the share of trials that succeeded.
        intervals: where the probability of success lies.
        guesses: the rates that a guess reaches; None where there is no verdict.
        allowed: the most that a price allows, marked by a line; None: nothing is known.
        columns: how many letters a label has at most.
    """
    rows = len(labels)
    reached = numbers(rates, "rates", length=rows)
    sides = [
        numbers([pair[at] for pair in pairs], name, length=rows)
        for pairs, name in ((intervals, "intervals"), ([guess or (0, 0) for guess in guesses], "guesses"))
        for at in (0, 1)
    ]
    low, high, least, most = sides
    is_judged = np.array([guess is not None for guess in guesses])
    for row in is_judged.nonzero()[0].tolist():
        width = max(most[row] - least[row], 0.004)
        axes.barh(
            row,
            width,
            0.72,
            left=(least[row] + most[row] - width) / 2,
            color=FAINT,
            edgecolor=GREY,
            linewidth=0.6,
            label="what a guess reaches" if row == is_judged.argmax() else None,
        )
    works = reached > most
    for chosen, color, marker, words in (
        (is_judged & works, ACCENT, "D", "attack, better than a guess"),
        (is_judged & ~works, DOT, "o", "attack, no better"),
        (~is_judged, GREY, "s", "no verdict"),
    ):
        if not chosen.any():
            continue
        at = chosen.nonzero()[0]
        # As lists: matplotlib takes an array of one bar for a number, and older versions of numpy warn of it.
        bars = [side[at].clip(0).tolist() for side in (reached - low, high - reached)]
        axes.errorbar(
            reached[at],
            at,
            xerr=bars,
            fmt=marker,
            color=color,
            markersize=6.5,
            elinewidth=1.6,
            capsize=3,
            linestyle="none",
            label=words,
        )
    if allowed is not None:
        bounds = numbers(allowed, "allowed", length=rows)
        at = np.isfinite(bounds).nonzero()[0]
        axes.vlines(
            bounds[at], at - 0.36, at + 0.36, color=INK, linewidth=1.4, label="the most that epsilon allows"
        )
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(rows - 0.45, -0.55)
    axes.set_yticks(range(rows), [shortened(label, columns) for label in labels], parse_math=False)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("success rate", fontsize=LABEL, color=INK)
    plain_axes(axes, values="x")


def reconstruction_curve(
    magnitudes: Sequence[float] | Floats,
    curves: Mapping[str, Sequence[float] | Floats],
    *,
    people: int,
    guess: float = 0.5,
    title: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """The share of secret bits found against the noise in the answers, with √n marked: where it breaks.

    Args:
        magnitudes: standard deviations of the noise, at least two, increasing; the first may be zero.
        curves: up to four, name → shares found, one for each magnitude.
        people: how many there are, n.
        guess: the share that a guess finds.
        title: the title.
        path: where to write the picture, .png or .svg.

    Raises:
        InvalidParameter: if there are no curves or too many, or a number is out of its range.
    """
    if not 1 <= len(curves) <= len(STYLES):
        raise InvalidParameter(f"One to {len(STYLES)} curves fit in one picture.")
    noise = numbers(magnitudes, "magnitudes")
    if len(noise) < 2 or not (noise[0] >= 0 and np.isfinite(noise).all() and (np.diff(noise) > 0).all()):
        raise InvalidParameter("magnitudes must be at least two numbers from 0 upwards, each above the last.")
    if people < 1 or not 0 <= guess <= 1:
        raise InvalidParameter("people must be at least 1, and a guess finds a share from 0 to 1.")
    checked = {name: numbers(values, "shares", length=len(noise)) for name, values in curves.items()}
    if not all(((values >= 0) & (values <= 1)).all() for values in checked.values()):
        raise InvalidParameter("shares must lie between 0 and 1.")
    root = float(np.sqrt(people))
    places = noise / root
    least = min(0.5, float(places[places > 0].min()))
    figure = new_figure(7.0, 4.3)
    axes = figure.subplots()
    axes.axhline(guess, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), label="what a guess finds")
    axes.axvline(1.0, color=GREY, linewidth=1.0)
    for (name, values), (colour, style), marker in zip(checked.items(), STYLES, "oDs^", strict=False):
        axes.plot(
            places,
            values,
            color=colour,
            linestyle=style,
            linewidth=2.0,
            marker=marker,
            markersize=6.0,
            label=shortened(name, _COLUMNS),
            clip_on=False,
            zorder=3,
        )
    # Doublings at equal distances, √n always among them; no noise at all is one step to their left.
    high = max(2.0, float(places[-1]))
    powers = np.arange(np.ceil(np.log2(least)), np.floor(np.log2(high)) + 1)
    step = -(-len(powers) // 9)
    axes.set_xscale("symlog", base=2, linthresh=least, linscale=step / 2)
    axes.set_xlim(-0.06 * least if noise[0] == 0 else 0.94 * least, high * 1.06)
    ticks = [2.0**power for power in powers if power % step == 0]
    if noise[0] == 0:
        ticks = [0.0, *ticks]
    axes.set_xticks(ticks, [_of_root(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(min(0.4, 0.9 * guess, *(float(values.min()) for values in checked.values())), 1.03)
    shares = [share for share in (0.0, 0.25, 0.5, 0.75, 1.0) if share >= axes.get_ylim()[0]]
    axes.set_yticks(shares, [f"{100 * share:.0f} %" for share in shares])
    axes.set_xlabel(f"noise in each answer, as its standard deviation (√n = {number(round(root, 1))})")
    axes.xaxis.label.set(fontsize=LABEL, color=INK)
    axes.set_ylabel("secret bits found", fontsize=LABEL, color=INK)
    plain_axes(axes, values="y")
    axes.spines["bottom"].set_visible(True)
    # What is found falls from the upper left to the lower right: the left below its middle stays free.
    legend = axes.legend(loc="center left", bbox_to_anchor=(0.01, 0.42), frameon=False, fontsize=NOTE)
    for text in legend.get_texts():
        text.set_parse_math(False)
    note = "Well below √n nearly every bit is found; from about √n on, answers tell little more than a guess."
    return finish(figure, title=title, note=note, path=path)


def _of_root(multiple: float) -> str:
    """A power of two times √n, short enough for a tick."""
    if multiple in (0.0, 1.0):
        return "√n" if multiple else "0"
    factor = max(multiple, 1 / multiple)
    shown = number(factor) if factor < 10_000 else "2" + f"{np.log2(factor):.0f}".translate(_RAISED)
    return f"√n/{shown}" if multiple < 1 else f"{shown}√n"
