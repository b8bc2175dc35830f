"""What attacks reach, beside what a guess reaches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.errors import InvalidParameter
from sfumato.plots._figure import (
    ACCENT,
    DOT,
    FAINT,
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
    from matplotlib.figure import Figure

__all__ = ["success_rates"]

_MOST = 24
_COLUMNS = 34


def success_rates(
    labels: Sequence[object],
    rates: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    guesses: Sequence[tuple[float, float]],
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
        guesses: the rates that a guess reaches in as many trials.
        title: the title.
        confidence: of intervals and bands, for the note.
        path: where to write the picture, .png or .svg.

    Raises:
        InvalidParameter: if there are no rows, too many, or not as many of each.
    """
    if not 1 <= len(labels) <= _MOST:
        raise InvalidParameter(f"a picture of attacks has from 1 to {_MOST} rows; draw fewer at a time.")
    rows = len(labels)
    found = numbers(rates, "rates", length=rows)
    sides = [
        numbers([pair[at] for pair in pairs], name, length=rows)
        for pairs, name in ((intervals, "intervals"), (guesses, "guesses"))
        for at in (0, 1)
    ]
    low, high, least, most = sides
    figure = new_figure(7.0, 1.5 + 0.42 * rows + (0.3 if title else 0.0))
    axes = figure.subplots()
    for row in range(rows):
        width = max(most[row] - least[row], 0.004)
        axes.barh(
            row,
            width,
            0.72,
            left=(least[row] + most[row] - width) / 2,
            color=FAINT,
            edgecolor=GREY,
            linewidth=0.6,
            label="what a guess reaches" if row == 0 else None,
        )
    works = found > most
    for chosen, color, marker, words in (
        (works, ACCENT, "D", "attack, better than a guess"),
        (~works, DOT, "o", "attack, no better"),
    ):
        if not chosen.any():
            continue
        at = chosen.nonzero()[0]
        axes.errorbar(
            found[at],
            at,
            xerr=[(found - low)[at].clip(0), (high - found)[at].clip(0)],
            fmt=marker,
            color=color,
            markersize=6.5,
            elinewidth=1.6,
            capsize=3,
            linestyle="none",
            label=words,
        )
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(rows - 0.45, -0.55)
    axes.set_yticks(range(rows), [shortened(label, _COLUMNS) for label in labels], parse_math=False)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("success rate", fontsize=LABEL, color=INK)
    plain_axes(axes, values="x")
    # Anchored on the right: it may reach over the labels, which leave that room free.
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=3,
        frameon=False,
        fontsize=NOTE,
        columnspacing=1.4,
    )
    note = f"Whiskers and bands: {confidence:.0%} confidence."
    return finish(figure, title=title, note=note, path=path)
