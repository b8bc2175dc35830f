"""Pictures of the mechanisms that choose: a candidate, or values above a threshold.

Chances are exact: the mechanisms' own, or worked out from their rates. Single runs (`noisy_max`,
`above_threshold`, `sparse_vector`) are made up by NumPy with a fixed seed and the scale of the mechanism's
noise, so that the files do not change; the mechanisms themselves draw anew each time, and cannot be seeded.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import sfumato as sf
from look import LABEL, NOTE, Drawing, Sheet, percent

Floats = NDArray[np.float64]
DRINKS = {"tea": 30, "coffee": 28, "juice": 25, "water": 21, "milk": 14, "cocoa": 6}
VOTES = np.array([*DRINKS.values()], dtype=np.float64)


def chance_bars(sheet: Sheet, axes: Axes, chances: dict[str, Floats], names: list[str]) -> None:
    """For each candidate one bar a curve, with its percentage."""
    look = sheet.look
    looks = ({"color": look.blue}, {"color": look.glow, "edgecolor": look.orange, "hatch": "////"})
    at, width = np.arange(len(names)), 0.8 / len(chances)
    for place, ((name, heights), how) in enumerate(zip(chances.items(), looks, strict=False)):
        bars = axes.bar(
            at + width * (place - (len(chances) - 1) / 2), heights, 0.92 * width, label=name, **how
        )
        shown = [f"{100 * height:.0f}" if height >= 0.005 else "<1" for height in heights]
        axes.bar_label(bars, shown, fontsize=NOTE, color=look.ink, padding=1.5)
    axes.set_xticks(at, names, fontsize=LABEL)
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter(percent)
    axes.margins(y=0.12)


def voted() -> list[str]:
    return [f"{name}\n{votes} votes" for name, votes in DRINKS.items()]


def exponential(sheet: Sheet) -> None:
    """Bars for six drinks with 30 to 6 votes. At epsilon 1 the winner is taken with 88 percent; at
    epsilon 0.1 all six have a chance, from 32 percent for the first to 3 for the last.
    """
    (axes,) = sheet.panels(y="chance to be chosen")
    laws = {
        f"ε = {epsilon}": sf.Exponential(epsilon, 1, monotone=True).probabilities(VOTES)
        for epsilon in ("0.1", "1")
    }
    chance_bars(sheet, axes, laws, voted())
    sheet.legend(axes)
    sheet.say(
        "The exponential mechanism: better ones are exponentially more likely",
        "The exact chances, in percent. Two drinks whose votes differ by d differ by a factor of e^(εd).",
    )


def flipped(votes: Floats, rate: float) -> Floats:
    """The chances of permute-and-flip: one of those whose coin shows heads, each of them alike."""
    heads = np.exp(-rate * (votes.max() - votes))
    chances = np.empty(len(votes))
    for place, own in enumerate(heads):
        others = np.ones(1)  # how many of the others show heads
        for other in np.delete(heads, place):
            others = np.convolve(others, [1 - other, other])
        chances[place] = own * np.sum(others / np.arange(1, len(others) + 1))
    return chances


def permute_and_flip(sheet: Sheet) -> None:
    """Bars for six drinks with 30 to 6 votes, at epsilon 0.2. Permute-and-flip takes the best one more
    often than the exponential mechanism does, and the worst ones less often.
    """
    (axes,) = sheet.panels(y="chance to be chosen")
    laws = {
        "permute-and-flip": flipped(VOTES, 0.2),
        "exponential mechanism": sf.Exponential("0.2", 1, monotone=True).probabilities(VOTES),
    }
    chance_bars(sheet, axes, laws, voted())
    sheet.legend(axes)
    sheet.say(
        "Permute-and-flip: never worse than the exponential mechanism",
        "The exact chances at ε = 0.2, in percent.",
    )


def laplace_wins(votes: Floats, scale: float) -> Floats:
    """The chance that each vote with discrete Laplace noise is the largest, the first of equals."""
    at = np.arange(-400, 500)
    q = math.exp(-1 / scale)
    laws = (1 - q) / (1 + q) * q ** np.abs(at - votes[:, None])
    upto = np.cumsum(laws, axis=1)
    wins = []
    for place, law in enumerate(laws):
        before = np.prod(upto[:place] - laws[:place], axis=0)
        wins.append(float(np.sum(law * before * np.prod(upto[place + 1 :], axis=0))))
    return np.array(wins)


def noisy_max(sheet: Sheet) -> None:
    """Left, one run: six true counts, each with its noisy count; the drink with the largest noisy count
    wins, here coffee, although tea has two votes more. Right, the chance that each wins, 49 percent for
    tea.
    """
    best = sf.NoisyMax("0.2", 1, noise="laplace", monotone=True)
    noisy = VOTES + np.random.default_rng(11).laplace(0, best.scale, len(VOTES))
    left, right = sheet.panels(1, 2, width_ratios=(3, 2), sharey=True)
    places, winner = np.arange(len(VOTES)), int(noisy.argmax())
    left.barh(places, VOTES, 0.6, color=sheet.look.faint, label="votes")
    left.plot(noisy, places, "o", color=sheet.look.blue, markersize=6, label="with noise")
    left.plot(
        [noisy[winner]], [winner], "D", color=sheet.look.orange, markersize=9, label="the only thing told"
    )
    left.set_yticks(places, [*DRINKS], fontsize=LABEL)
    left.invert_yaxis()
    chances = laplace_wins(VOTES, best.scale)
    bars = right.barh(places, chances, 0.6, color=sheet.look.blue)
    right.bar_label(
        bars,
        [percent(round(chance, 2)) if chance >= 0.005 else "<1 %" for chance in chances],
        fontsize=NOTE,
        color=sheet.look.ink,
        padding=3,
    )
    right.xaxis.set_major_formatter(percent)
    right.set_xlim(0, 0.62)
    right.set_xticks([0, 0.25, 0.5])
    for axes, name in ((left, "votes, one run"), (right, "chance to win")):
        axes.grid(visible=False, axis="y")
        axes.grid(axis="x", color=sheet.look.faint, linewidth=0.8)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(length=0)
        sheet.name_x(axes, name)
    sheet.legend(left, columns=3)
    sheet.say(
        "Noisy max: noise on every count, and only the winner is told",
        f"Laplace noise of scale {best.scale:.0f}, at ε = 0.2. The run is made up; the chances are exact.",
    )


def ranked(votes: Floats, rate: float, count: int) -> Floats:
    """The chance that each candidate is taken first, second, …, peeling them off one after the other."""
    weights = np.exp(rate * (votes - votes.max()))
    chances = np.zeros((count, len(votes)))
    for order in itertools.permutations(range(len(votes)), count):
        chance, left = 1.0, float(weights.sum())
        for rank, one in enumerate(order):
            chance *= weights[one] / left
            left -= weights[one]
            if rank == count - 1:
                for place, each in enumerate(order):
                    chances[place, each] += chance
    return chances


def top_k(sheet: Sheet) -> None:
    """Stacked bars for six drinks: the chance to be chosen first, second or third. The three best have
    94, 88 and 71 percent in all, the fourth has 36, the last 2.
    """
    (axes,) = sheet.panels(y="chance to be among the three")
    best = sf.TopK("0.6", 1, count=3, monotone=True)
    chances = ranked(VOTES, float(best.epsilon) / 3, 3)
    look, at, below = sheet.look, np.arange(len(VOTES)), np.zeros(len(VOTES))
    looks = (
        {"color": look.blue},
        {"color": look.sky, "edgecolor": look.paper},
        {"color": look.glow, "edgecolor": look.orange, "hatch": "////"},
    )
    for name, part, how in zip(("first", "second", "third"), chances, looks, strict=True):
        bars = axes.bar(at, part, 0.6, below, label=name, linewidth=0.8, **how)
        below = below + part
    axes.bar_label(
        bars, [percent(round(total, 2)) for total in below], fontsize=NOTE, color=look.ink, padding=2
    )
    axes.set_xticks(at, voted(), fontsize=LABEL)
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter(percent)
    axes.set_ylim(0, 1)
    sheet.legend(axes)
    sheet.say(
        "Top-k: the three best, one after the other",
        "The exact chances at ε = 0.6 for the whole list, that is 0.2 for each choice.",
    )


def stream() -> Floats:
    """Made-up values over thirty steps, which rise with two peaks."""
    steps = np.arange(30)
    return np.round(
        40 + 2.2 * steps + 42 * np.exp(-((steps - 11) ** 2) / 5) + 30 * np.exp(-((steps - 22) ** 2) / 8)
    )


def gate(
    sheet: Sheet, threshold: float, outer: float, inner: float, count: int, seed: int
) -> tuple[Axes, list[int]]:
    """A run of the sparse-vector technique: values, values with noise, the noisy threshold, where it
    stops.
    """
    look, values, draw = sheet.look, stream(), np.random.default_rng(seed)
    bar = threshold + draw.laplace(0, outer)
    noisy = values + draw.laplace(0, inner, len(values))
    found = np.flatnonzero(noisy >= bar)[:count].tolist()
    end = found[-1] if len(found) == count else len(values) - 1
    (axes,) = sheet.panels(x="step", y="value")
    axes.axhline(threshold, color=look.grey, linewidth=1.2, linestyle=":", label="threshold")
    axes.axhline(bar, color=look.orange, linewidth=1.6, linestyle="--", label="noisy threshold")
    axes.plot(values, color=look.grey, linewidth=1.2, label="values")
    read = [step for step in range(end + 1) if step not in found]
    axes.plot(read, noisy[read], "o", color=look.blue, markersize=5, label="noisy values")
    axes.plot(found, noisy[found], "D", color=look.orange, markersize=8, label="found")
    if end < len(values) - 1:
        axes.axvspan(end + 0.5, len(values), color=look.faint, alpha=0.5, linewidth=0)
        sheet.write(axes, "never read", ((end + 0.5 + len(values)) / 2, 20), ha="center")
    axes.set_xlim(-0.7, len(values) - 0.3)
    axes.set_ylim(0, 165)
    sheet.legend(axes, columns=5)
    return axes, found


def above_threshold(sheet: Sheet) -> None:
    """Values over thirty steps, each with fresh noise, and a threshold that was made noisy once. At step
    10 a noisy value is above it for the first time: it is told, and the steps after it are never read.
    """
    threshold = 100
    alarm = sf.AboveThreshold(epsilon="0.5", threshold=threshold, sensitivity=1, monotone=True)
    # Half of epsilon each: scales 1/0.25 for the threshold and for the values, which all move one way.
    scale = 2 / float(alarm.epsilon)
    gate(sheet, threshold, scale, scale, 1, seed=3)
    sheet.say(
        "Above threshold: it stops at the first value that is found",
        "An illustration at ε = 0.5. The noise of the threshold is drawn once; the steps cost ε together.",
    )


def sparse_vector(sheet: Sheet) -> None:
    """Values over thirty steps, each with fresh noise, and a threshold that was made noisy once. Three
    noisy values are above it and are told; after the third, nothing more is read.
    """
    threshold, count = 100, 3
    watch = sf.SparseVector(epsilon=1, threshold=threshold, count=count, sensitivity=1, monotone=True)
    # How epsilon is shared: 1 for the threshold, c^(2/3) for the values (Lyu, Su, Li 2017).
    share = 1 / (1 + count ** (2 / 3))
    outer = 1 / (float(watch.epsilon) * share)
    inner = count / (float(watch.epsilon) * (1 - share))
    gate(sheet, threshold, outer, inner, count, seed=5)
    sheet.say(
        "Sparse vector: the first three that are found, and then no more",
        "An illustration at ε = 1. Values below the threshold are free; the noise grows with three.",
    )


CHOICES: tuple[Drawing, ...] = (
    exponential,
    permute_and_flip,
    noisy_max,
    top_k,
    above_threshold,
    sparse_vector,
)
