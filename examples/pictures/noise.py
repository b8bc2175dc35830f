"""Pictures of the mechanisms that add noise to numbers: two neighbouring inputs, and what an answer tells.

All laws are exact: they come from the mechanisms' own `density`, scale and probabilities. Nothing is drawn at
random but the rows of `sample_and_aggregate`, made up by NumPy with a fixed seed.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import sfumato as sf
from look import LABEL, Drawing, Sheet, number, percent
from sfumato import continual as streams

Floats = NDArray[np.float64]
FREE = {"clip_on": False, "in_layout": False}  # a point at the edge is whole, and moves nothing
WITHOUT, WITH = "without one person", "with that person"


def ratio_panel(
    sheet: Sheet, axes: Axes, at: Floats, log_ratio: Floats, epsilon: float, *, dots: bool
) -> None:
    """By which factor an answer is more likely with the person, on a logarithmic axis, and the band e^±ε."""
    look, most = sheet.look, 1.55 * epsilon
    out = np.abs(log_ratio) > epsilon * (1 + 1e-9)
    drawn = np.clip(log_ratio, -0.97 * most, 0.97 * most)
    axes.axhspan(-epsilon, epsilon, color=look.band, alpha=0.45, linewidth=0)
    if dots:
        axes.plot(at[~out], drawn[~out], "o", color=look.blue, markersize=3.6, **FREE)
        axes.plot(at[out], drawn[out], "D", color=look.orange, markersize=3.6, **FREE)
    else:
        axes.plot(at, np.where(out, np.nan, drawn), color=look.blue, linewidth=1.8)
        axes.plot(at, np.where(out, drawn, np.nan), color=look.orange, linewidth=2.4)
    axes.set_ylim(-most, most)
    axes.set_yticks([-epsilon, 0, epsilon], ["÷ e^ε", "1", "× e^ε"])
    sheet.name_y(axes, "ratio")


def two_laws(
    sheet: Sheet, at: Floats, without: Floats, other: Floats, *, epsilon: float
) -> tuple[Axes, Axes]:
    """Two densities above, the logarithm of their ratio below."""
    above, below = sheet.panels(2, x="answer", y="density", sharex=True, height_ratios=(3, 2))
    for law, name, (colour, dashes) in zip((without, other), (WITHOUT, WITH), sheet.lines, strict=False):
        above.plot(at, law, color=colour, linestyle=dashes, linewidth=1.8, label=name)
        above.fill_between(at[::2], 0, law[::2], color=colour, alpha=0.1, linewidth=0)
    above.set_ylim(bottom=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio_panel(sheet, below, at, np.log(other) - np.log(without), epsilon, dots=False)
    sheet.legend(above)
    sheet.figure.align_ylabels()
    return above, below


def two_stems(
    sheet: Sheet, at: Floats, without: Floats, other: Floats, *, epsilon: float
) -> tuple[Axes, Axes]:
    """The same for whole numbers: a probability for each."""
    above, below = sheet.panels(2, x="answer", y="probability", sharex=True, height_ratios=(3, 2))
    for law, name, (colour, _), mark, shift in zip(
        (without, other), (WITHOUT, WITH), sheet.lines, "oD", (-0.14, 0.14), strict=False
    ):
        above.vlines(at + shift, 0, law, color=colour, linewidth=2)
        above.plot(at + shift, law, mark, color=colour, markersize=4, label=name, **FREE)
    above.set_ylim(bottom=0)
    ratio_panel(sheet, below, at, np.log(other) - np.log(without), epsilon, dots=True)
    sheet.legend(above)
    sheet.figure.align_ylabels()
    return above, below


def laplace(sheet: Sheet) -> None:
    """Two tents, one around 10 and one around 11, the true counts without and with one person. Below, the
    ratio between them: a slope between the two counts, and flat at e^ε beyond, never outside the band.
    """
    noise, at = sf.Laplace(epsilon=1, sensitivity=1), np.linspace(4, 17, 131)
    two_laws(sheet, at, noise.density(at, value=10), noise.density(at, value=11), epsilon=1)
    sheet.say(
        "Laplace noise: no answer is more than e^ε times as likely",
        "The exact laws of a count of 10 or 11 at ε = 1: e^ε = 2.72.",
    )


def geometric(sheet: Sheet) -> None:
    """Probabilities of whole answers around a count of 10, and of 11. Below, their ratio: e^ε or one over
    e^ε for every whole number, never outside the band.
    """
    noise, at = sf.Geometric(epsilon=1, sensitivity=1), np.arange(4.0, 18.0)
    two_stems(sheet, at, noise.density(at, value=10), noise.density(at, value=11), epsilon=1)
    sheet.say(
        "Geometric noise: whole answers, and each tells exactly ε",
        "The exact laws of a count of 10 or 11 at ε = 1.",
    )


def gaussian(sheet: Sheet) -> None:
    """Two bell curves that nearly cover each other. Below, the ratio is a straight line, which leaves the
    band of e^±ε far out on both sides, where next to no answers are: that is what delta pays for.
    """
    noise, at = sf.Gaussian(epsilon=1, delta=1e-5, sensitivity=1), np.linspace(-10, 31, 165)
    _, below = two_laws(sheet, at, noise.density(at, value=10), noise.density(at, value=11), epsilon=1)
    sheet.write(below, "rare answers tell more:\nδ pays for them", (30.6, -0.7), ha="right")
    sheet.say(
        "Gaussian noise: the ratio leaves the band where answers are rare",
        f"The exact laws of a count of 10 or 11 at ε = 1, δ = 1e-5: the noise has σ = {noise.sigma:.2f}.",
    )


def discrete_gaussian(sheet: Sheet) -> None:
    """Probabilities of whole answers around a count of 10, and of 11, on two bell curves. Below, their
    ratio grows along a line and leaves the band of e^±ε far out.
    """
    noise, at = sf.DiscreteGaussian(epsilon=2, delta=1e-5, sensitivity=1), np.arange(-1.0, 23.0)
    two_stems(sheet, at, noise.density(at, value=10), noise.density(at, value=11), epsilon=2)
    sheet.say(
        "Discrete Gaussian noise: a bell curve on whole numbers",
        f"The exact laws of a count of 10 or 11 at ε = 2, δ = 1e-5: the noise has σ = {noise.sigma:.2f}. "
        "Orange: tells more than ε.",
    )


def staircase(sheet: Sheet) -> None:
    """Two densities that fall in steps, on a logarithmic axis, each step e^ε times as high as the next;
    the Laplace law at the same price is a dotted tent. Below, the ratio is always e^ε, 1 or one over e^ε.
    """
    noise, tent = sf.Staircase(epsilon=3, sensitivity=1), sf.Laplace(epsilon=3, sensitivity=1)
    at = np.linspace(7.5, 13.5, 601)
    without, other = noise.density(at, value=10), noise.density(at, value=11)
    above, _ = two_laws(sheet, at, without, other, epsilon=3)
    for filled in list(above.collections):
        filled.remove()
    for line in above.lines:
        line.set_drawstyle("steps-mid")
    thin = {"color": sheet.look.grey, "linestyle": ":", "linewidth": 1.2}
    above.plot(at[::10], tent.density(at[::10], value=10), **thin, label="Laplace noise at the same ε")
    above.set_yscale("log")
    above.set_ylim(4e-4, 6)
    above.yaxis.set_major_formatter(number)
    above.minorticks_off()
    sheet.legend(above)
    sheet.say(
        "Staircase noise: flat steps, each e^ε times as high as the next",
        "The exact laws of a number of 10 or 11 at ε = 3. The axis of densities is logarithmic.",
    )


def truncated_laplace(sheet: Sheet) -> None:
    """Two tents that are cut off at a fixed distance from the true count. Below, the ratio stays in the
    band, but for the ends: there only one of the two inputs can give the answer, with probability delta.
    """
    noise = sf.TruncatedLaplace(epsilon=1, delta=0.02, sensitivity=1)
    at = np.linspace(4, 17, 261)
    above, _ = two_laws(sheet, at, noise.density(at, value=10), noise.density(at, value=11), epsilon=1)
    for start, word, side in (
        (10 - noise.bound, "only without", "right"),
        (10 + noise.bound, "only with", "left"),
    ):
        above.axvspan(start, start + 1, color=sheet.look.glow, linewidth=0, zorder=0)
        sheet.write(above, f"{word}: δ", (start - 0.15 if side == "right" else start + 1.15, 0.2), ha=side)
    sheet.say(
        "Truncated Laplace noise: never beyond a bound, for a δ at the ends",
        f"The exact laws of a count of 10 or 11 at ε = 1, δ = 0.02 (large, to be seen): "
        f"no noise above {noise.bound:.2f}.",
    )


def bounded_laplace(sheet: Sheet) -> None:
    """Two densities on the interval from 0 to 6, for a value of 0 at its end and for a value of 1:
    nothing lies outside, and nothing piles up at the ends. Below, the ratio reaches e^ε exactly once, at
    the end.
    """
    noise = sf.BoundedLaplace(epsilon=1, sensitivity=1, lower=0, upper=6)
    at = np.linspace(0, 6, 121)

    def law(value: float) -> Floats:
        # The density of `release`: Laplace around the value, given that it lies in the interval.
        ends = -math.expm1(-value / noise.scale) - math.expm1(-(6 - value) / noise.scale)
        return np.exp(-np.abs(at - value) / noise.scale) / (noise.scale * ends)

    above, below = two_laws(sheet, at, law(0), law(1), epsilon=1)
    for axes in (above, below):
        axes.axvspan(-1.5, 0, color=sheet.look.faint, alpha=0.5, linewidth=0, zorder=0)
        axes.axvspan(6, 7.5, color=sheet.look.faint, alpha=0.5, linewidth=0, zorder=0)
    above.set_xlim(-1.2, 7.2)
    sheet.write(above, "no\nanswers", (-0.6, 0.18), ha="center")
    sheet.write(above, "no\nanswers", (6.6, 0.18), ha="center")
    sheet.say(
        "Bounded Laplace noise: every answer lies in the interval",
        f"The exact laws of a value of 0 or 1 in [0, 6] at ε = 1: scale {noise.scale:.2f}, where plain "
        "Laplace noise has 1.",
    )


def randomized_response(sheet: Sheet) -> None:
    """Four bars. People whose truth is no answer no with 75 and yes with 25 percent; people whose truth
    is yes answer yes with 75 and no with 25 percent. Either answer is three times as likely from one as
    the other.
    """
    coins = sf.RandomizedResponse.coins()
    (axes,) = sheet.panels(y="chance")
    chances = {
        "the truth is no": (coins.truth, 1 - coins.truth),
        "the truth is yes": (1 - coins.truth, coins.truth),
    }
    looks = (
        {"color": sheet.look.blue},
        {"color": sheet.look.glow, "edgecolor": sheet.look.orange, "hatch": "////"},
    )
    for place, ((name, heights), how) in enumerate(zip(chances.items(), looks, strict=True)):
        bars = axes.bar(np.arange(2) + 0.34 * (place - 0.5), heights, 0.32, label=name, linewidth=1, **how)
        axes.bar_label(
            bars, [percent(height) for height in heights], fontsize=LABEL, color=sheet.look.ink, padding=2
        )
    axes.set_xticks([0, 1], ["the answer is no", "the answer is yes"], fontsize=LABEL)
    axes.set_xlim(-0.75, 1.75)
    axes.set_ylim(0, 0.9)
    axes.yaxis.set_major_formatter(percent)
    axes.tick_params(axis="x", length=0)
    sheet.write(axes, "three times as likely:\ne^ε = 3", (0.5, 0.55), ha="center", fontsize=LABEL)
    sheet.legend(axes)
    sheet.say(
        "Randomised response: a yes may always have been the coin's",
        f"Heads, the truth; tails, a second coin decides. ε = ln 3 = {float(coins.epsilon):.2f}.",
    )


DAYS, RHO = 365, 0.125


def deviations_of_tree() -> Floats:
    """The standard deviation of a tree counter's total after each day: a block for each one in binary."""
    counter = sf.TreeCounter(horizon=DAYS, rho=RHO, sensitivity=1)
    days = np.array([day.bit_count() for day in range(1, DAYS + 1)])
    return np.asarray(counter.scale * np.sqrt(days))


def over_days(sheet: Sheet, curves: dict[str, Floats]) -> Axes:
    (axes,) = sheet.panels(x="day", y="standard deviation of the total so far")
    days = np.arange(1, DAYS + 1)
    for (name, values), (colour, dashes) in zip(curves.items(), sheet.lines, strict=False):
        how = {"color": colour, "linestyle": dashes, "linewidth": 1.9}
        if name == "tree of blocks":  # it jumps too often for dashes
            how |= {"linestyle": "-", "linewidth": 1.0}
        axes.plot(days, values, **how, label=name)
    axes.set_xlim(0, DAYS)
    axes.set_ylim(0, 42)
    sheet.legend(axes)
    return axes


def tree_counter(sheet: Sheet) -> None:
    """Standard deviation of a running total over a year. The binary tree stays below 17, jumping with the
    number of ones in the day. A sum of noisy days grows like a root, to 38; a new total each day has 38
    always.
    """
    alone = math.sqrt(1 / (2 * RHO))
    days = np.arange(1, DAYS + 1)
    over_days(
        sheet,
        {
            "tree of blocks": deviations_of_tree(),
            "sum of noisy days": alone * np.sqrt(days),
            "a new total each day": np.full(DAYS, alone * math.sqrt(DAYS)),
        },
    )
    sheet.say(
        "The tree counter: noise grows with the logarithm of time",
        "The same price for the whole year, ρ = 0.125, and one visit a person; exact.",
    )


def continual(sheet: Sheet) -> None:
    """Standard deviation of a running total over a year. Correlated noise is a smooth line near 5, below
    the jumps of the binary tree, most of which lie between 8 and 17, and far below a sum of noisy days.
    """
    plan = streams.choose(DAYS, touches=1, want="running")
    stream = streams.Continual(plan, rho="0.125", sensitivity=1)
    steps = math.sqrt(1 / (2 * RHO)) * np.sqrt(np.arange(1, DAYS + 1))
    curves = {
        "correlated noise": stream.deviations(),
        "sum of noisy days": steps,
        "tree of blocks": deviations_of_tree(),
    }
    over_days(sheet, curves)
    sheet.say(
        "Continual release: each day takes back noise of earlier days",
        "The same price for the whole year, ρ = 0.125, and one visit a person; exact.",
    )


def incomes() -> Floats:
    """Made-up incomes: the quantiles of a skewed law, so that nothing is drawn."""
    ranks = (np.arange(1001) + 0.5) / 1001
    return np.asarray(30_000 * np.exp(0.55 * np.log(ranks / (1 - ranks))))


def smooth_sensitivity(sheet: Sheet) -> None:
    """How far the median can jump, by the number of changed rows: a rising curve. Multiplied by a falling
    exponential it has a hill; its top is the smooth sensitivity, far below the global one of a million.
    """
    noise = sf.SmoothSensitivity(epsilon=1, bound=1_000_000, delta=1e-6)
    median = sf.mechanisms.median_of(incomes(), 0, upper=1_000_000)
    changes = np.arange(0, 121)
    moves = median.moves[changes]
    damped = np.exp(-noise.beta * changes) * moves
    (axes,) = sheet.panels(x="changed rows k", y="how far the median can jump")
    (first, dashes), (second, others) = sheet.lines[:2]
    axes.plot(changes, moves, color=first, linestyle=dashes, linewidth=1.8, label="jump after k changes")
    axes.plot(changes, damped, color=second, linestyle=others, linewidth=2, label="the same times e^(−βk)")
    top = int(damped.argmax())
    smooth = median.smooth(noise.beta)
    axes.plot([top], [smooth], "D", color=second, markersize=6)
    sheet.write(axes, f"smooth sensitivity: {smooth:,.0f}", (top + 2, smooth + 110))
    sheet.write(axes, f"local sensitivity: {moves[0]:,.0f}", (3, moves[0]))
    axes.plot([0], [moves[0]], "o", color=first, markersize=5, **FREE)
    axes.set_ylim(0, 2_000)
    axes.set_xlim(0, 120)
    sheet.legend(axes)
    sheet.say(
        "Smooth sensitivity: noise for this data, not for the worst",
        f"The median of 1,001 made-up incomes at ε = 1, δ = 1e-6 (β = {noise.beta:.3f}). "
        "The global sensitivity is 1,000,000.",
    )


def propose_test_release(sheet: Sheet) -> None:
    """The chance of an answer, by the distance to data on which the proposed bound fails: nearly 0 up to
    about 18 rows, above one half from 27 on, nearly 1 from 35 on. At distance 0 it is below delta.
    """
    test = sf.ProposeTestRelease(epsilon=1, delta=1e-6, bound=2_000)
    distance = np.arange(0, 51)
    q = math.exp(-float(test.epsilon * test.share))  # of the discrete Laplace noise of the test
    gap = test.threshold - distance  # passes if the noise is above
    chance = np.where(gap >= 0, q ** (gap + 1.0) / (1 + q), 1 - q ** (-gap * 1.0) / (1 + q))
    (axes,) = sheet.panels(x="distance: rows to change until the bound fails", y="chance of an answer")
    axes.plot(distance, chance, "o-", color=sheet.look.blue, linewidth=1.6, markersize=4, **FREE)
    axes.axvline(test.threshold, color=sheet.look.orange, linestyle="--", linewidth=1.4)
    sheet.write(axes, f"threshold: {test.threshold}", (test.threshold - 0.8, 0.85), ha="right")
    sheet.write(axes, "the bound is wrong:\nan answer with at most δ = 1e-6", (0.6, 0.14))
    axes.yaxis.set_major_formatter(percent)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(-0.8, 50)
    sheet.say(
        "Propose, test, release: an answer only where the data is safe",
        "Exact, at ε = 1, δ = 1e-6: half of ε for the test, the other half for the noise of an answer.",
    )


def sample_and_aggregate(sheet: Sheet) -> None:
    """Fifty dots, the median income of each of fifty parts of the data. Changing one person moves a
    single dot, here to the upper bound, and the mean of all by little. A band shows the noise of the
    answer.
    """
    parts = sf.SampleAndAggregate(epsilon=1, lower=0, upper=100_000, chunks=50)
    homes = np.random.default_rng(7).integers(50, size=1001)  # made up: the mechanism draws parts in secret
    answers = np.array([np.median(incomes()[homes == part]) for part in range(50)])
    changed = answers.copy()
    changed[17] = 100_000
    before, after, width = answers.mean(), changed.mean(), parts.error(0.95)
    (axes,) = sheet.panels(x="part of the data", y="its median income")
    axes.axhspan(
        before - width,
        before + width,
        color=sheet.look.band,
        alpha=0.6,
        linewidth=0,
        label="the answer, 95 %",
    )
    axes.axhline(before, color=sheet.look.blue, linewidth=1.4, label="mean of the parts")
    axes.axhline(after, color=sheet.look.orange, linewidth=1.4, linestyle="--", label="after the change")
    axes.plot(np.arange(50), answers, "o", color=sheet.look.blue, markersize=4.5)
    axes.plot([17], [changed[17]], "D", color=sheet.look.orange, markersize=6, **FREE)
    axes.plot([17, 17], [answers[17], changed[17]], color=sheet.look.orange, linewidth=1, linestyle=":")
    sheet.write(axes, "one person can move one part, however far", (18.2, 92_000))
    axes.set_ylim(0, 100_000)
    sheet.legend(axes)
    sheet.say(
        "Sample and aggregate: one person is in one part only",
        f"The median of 1,001 made-up incomes in 50 parts at ε = 1: the mean moves by at most "
        f"{100_000 // 50:,}.",
    )


NOISE: tuple[Drawing, ...] = (
    laplace,
    geometric,
    gaussian,
    discrete_gaussian,
    staircase,
    truncated_laplace,
    bounded_laplace,
    randomized_response,
    tree_counter,
    continual,
    smooth_sensitivity,
    propose_test_release,
    sample_and_aggregate,
)
