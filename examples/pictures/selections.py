"""Pictures of the mechanisms that select groups to show, and quantiles. All chances are exact."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes

import sfumato as sf
from choices import flipped
from look import Drawing, Sheet, percent


def kept(sheet: Sheet, curves: dict[str, list[float]], *, most: int) -> Axes:
    """The chance that a group is shown, by how many people are in it."""
    (axes,) = sheet.panels(x="people in the group", y="chance that it is shown")
    for place, ((name, chances), (colour, dashes)) in enumerate(
        zip(curves.items(), sheet.lines, strict=False)
    ):
        axes.plot(range(len(chances)), chances, color=colour, linestyle=dashes, linewidth=2, label=name)
        axes.plot(
            range(0, len(chances), 5),
            chances[::5],
            "oDs^"[place],
            color=colour,
            markersize=4,
            in_layout=False,
        )
    axes.yaxis.set_major_formatter(percent)
    axes.set_ylim(-0.02, 1.04)
    axes.set_xlim(0, most)
    sheet.legend(axes, columns=4 if len(curves) < 4 else 2)
    return axes


def partition_selection(sheet: Sheet) -> None:
    """Three rising curves: the chance that a group is shown, by its number of people, at epsilon 1. With
    delta 1e-3 one half is passed at 7 people, with 1e-6 at 14, with 1e-9 at 21. A lone person is shown
    with delta.
    """
    curves = {}
    for delta in ("1e-3", "1e-6", "1e-9"):
        law = sf.PartitionSelection(epsilon=1, delta=delta)
        curves[f"δ = {delta}"] = [law.keep_probability(count) for count in range(41)]
    axes = kept(sheet, curves, most=40)
    sheet.write(axes, "a lone person is shown\nwith probability δ", (26, 0.14))
    sheet.say(
        "Partition selection: small groups stay hidden, large ones are shown",
        "The exact chances at ε = 1, where a person is in one group.",
    )


def gaussian_selection(sheet: Sheet) -> None:
    """Two rising curves for people who are in ten groups each: with Gaussian noise a group of 76 people
    is shown half of the time; where the price is divided by ten instead, it takes 132 people.
    """
    several = {"epsilon": 1, "delta": "1e-6", "groups": 10}
    laws = {
        "Gaussian noise": sf.GaussianSelection(**several),
        "price divided by ten": sf.PartitionSelection(**several),
    }
    curves = {name: [law.keep_probability(count) for count in range(221)] for name, law in laws.items()}
    kept(sheet, curves, most=220)
    sheet.say(
        "Gaussian selection: noise grows with the root of a person's groups",
        "The exact chances at ε = 1, δ = 1e-6, where a person is in up to ten groups.",
    )


def adaptive_selection(sheet: Sheet) -> None:
    """Rising curves for people who may be in ten groups. Where all are in ten, both kinds need about 75
    people; where they are in three, the adaptive kind needs 41, and where they are in one, 24.
    """
    several = {"epsilon": 1, "delta": "1e-6", "groups": 10}
    weights, counts = sf.AdaptiveSelection(**several), sf.GaussianSelection(**several)
    curves = {
        f"adaptive, in {degree} of them": [weights.keep_probability(n, degree=degree) for n in range(121)]
        for degree in (1, 3, 10)
    }
    curves["with counts, for any"] = [counts.keep_probability(n) for n in range(121)]
    kept(sheet, curves, most=120)
    sheet.say(
        "Adaptive selection: who is in few groups counts for more in each",
        "At ε = 1, δ = 1e-6 and up to ten groups a person; for adaptive weights a lower bound.",
    )


CELLS = np.arange(60)
AGES = np.round(80 * np.exp(-(((CELLS - 22) / 13.0) ** 2) / 2) * (1 + 0.12 * np.sin(CELLS)))  # made up


def histogram(sheet: Sheet, axes: Axes) -> None:
    axes.stairs(AGES, np.arange(61) + 17.5, fill=True, color=sheet.look.band)
    axes.set_xlim(17, 78.5)


def quantiles(sheet: Sheet) -> None:
    """Above, a histogram of ages. Below, the chance that each age is told as the median: at epsilon 0.1
    only the two ages at the true median are likely; at epsilon 0.003 a hill of some ten years is.
    """
    above, below = sheet.panels(2, x="age", y="people", sharex=True, height_ratios=(1, 1))
    histogram(sheet, above)
    upto = np.cumsum(AGES)
    middle = AGES.sum() / 2
    distance = np.maximum(0, np.maximum(upto - AGES - middle, middle - upto))
    for epsilon, (colour, dashes), mark in zip(("0.1", "0.003"), sheet.lines, "oD", strict=False):
        rate = float(sf.mechanisms.Quantiles(epsilon, ["1/2"], sensitivity=1).rate("1/2"))
        chances = flipped(-distance, rate)
        below.plot(
            CELLS + 18,
            chances,
            mark,
            color=colour,
            linestyle=dashes,
            linewidth=1.4,
            markersize=3.2,
            label=f"ε = {epsilon}",
        )
    below.yaxis.set_major_formatter(percent)
    sheet.name_y(below, "chance")
    sheet.legend(below)
    sheet.figure.align_ylabels()
    sheet.say(
        "Quantiles: the cells around the median are the likely answers",
        f"The exact chances to be told as the median age of {AGES.sum():,.0f} made-up people.",
    )


def nested_quantiles(sheet: Sheet) -> None:
    """Left, a histogram cut at the median, then each half at its quartile, then each quarter. Right, the
    standard deviation of a rank by the number of quantiles: cut in nested halves it grows slowly, apart
    it grows in line.
    """
    left, right = sheet.panels(1, 2, width_ratios=(5, 4))
    histogram(sheet, left)
    upto, top = np.cumsum(AGES) / AGES.sum(), float(AGES.max())
    for depth, levels in enumerate(((4,), (2, 6), (1, 3, 5, 7))):
        colour, dashes = sheet.lines[depth]
        cuts = 18 + np.searchsorted(upto, np.array(levels) / 8)
        left.vlines(
            cuts,
            0,
            top * (1.24 - 0.24 * depth),
            color=colour,
            linestyle=dashes,
            linewidth=1.8,
            label=("first", "then", "last")[depth],
        )
    left.set_ylim(0, top * 1.3)
    sheet.name_x(left, "age")
    sheet.name_y(left, "people")
    sheet.legend(left, columns=3)
    counts = [1, 3, 7, 15, 31, 63]
    laws: dict[str, list[float]] = {"nested": [], "apart": []}
    for count in counts:
        levels = [f"{place}/{count + 1}" for place in range(1, count + 1)]
        nested = sf.mechanisms.NestedQuantiles(1, levels, sensitivity=1)
        single = sf.mechanisms.Quantiles(1, levels, sensitivity=1)
        laws["nested"].append(math.sqrt(max(nested.rank_variances)))
        laws["apart"].append(max(math.sqrt(2) / float(single.rate(level)) for level in levels))
    for (name, widths), (colour, dashes), mark in zip(laws.items(), sheet.lines, "oD", strict=False):
        right.plot(
            counts, widths, mark, color=colour, linestyle=dashes, linewidth=1.8, markersize=4.5, label=name
        )
    right.set_xscale("log", base=2)
    right.set_xticks(counts, [str(count) for count in counts])
    right.minorticks_off()
    sheet.name_x(right, "quantiles")
    sheet.name_y(right, "largest deviation of a rank")
    sheet.legend(right, columns=2)
    sheet.say(
        "Nested quantiles: each cut halves what is left to cut",
        "Seven quantiles pay for three cuts: each person is in one part of each depth. Right: ε = 1 in all.",
    )


SELECTIONS: tuple[Drawing, ...] = (
    partition_selection,
    gaussian_selection,
    adaptive_selection,
    quantiles,
    nested_quantiles,
)
