"""The pictures of docs/gallery.md: python examples/pictures/gallery.py [NAME …]

They are written to docs/pictures/gallery, each as NAME.svg and, for dark pages, NAME-dark.svg. Laws, prices
and error bars are exact. Of the rest, `synthetic_fidelity` is measured (benchmarks/results/synth.json), and
the rows behind `stream` and `budget_over_a_year` are made up.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes

import sfumato as sf
from look import Drawing, Sheet, main, number, percent
from sfumato import continual

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def logarithmic(axes: Axes, *, x: list[float] | None = None, y: list[float] | None = None) -> None:
    """Logarithmic axes with these ticks alone."""
    if x:
        axes.set_xscale("log")
        axes.set_xticks(x, [number(tick) for tick in x])
    if y:
        axes.set_yscale("log")
        axes.set_yticks(y, [number(tick) for tick in y])
    axes.minorticks_off()


def noise_densities(sheet: Sheet) -> None:
    """Three densities of noise at epsilon 1, as they are and on a logarithmic axis. Laplace is a tent,
    Staircase goes down in flat steps along it, Gaussian noise for a delta of 1e-5 is wider and lower,
    with light tails.
    """
    left, right = sheet.panels(1, 2, x="noise", y="density")
    at = np.linspace(-8, 8, 161)
    laws = {
        "Laplace": sf.Laplace(epsilon=1, sensitivity=1),
        "Gaussian, δ = 1e-5": sf.Gaussian(epsilon=1, delta=1e-5, sensitivity=1),
        "staircase": sf.Staircase(epsilon=1, sensitivity=1),
    }
    for (name, noise), (colour, dashes) in zip(laws.items(), sheet.lines, strict=False):
        steps = name == "staircase"  # which need no dashes
        how = {"color": colour, "linestyle": "-" if steps else dashes, "linewidth": 1.0 if steps else 1.8}
        for axes in (left, right):
            axes.plot(at, noise.density(at), **how, drawstyle="steps-mid" if steps else None, label=name)
            axes.set_xticks([-8, -4, 0, 4, 8])
    left.set_ylim(bottom=0)
    logarithmic(right, y=[1e-4, 1e-3, 1e-2, 1e-1, 1])
    right.set_ylim(1e-4, 1)
    sheet.legend(left, of_all=True)
    sheet.say(
        "Three kinds of noise for one number at ε = 1",
        "Exact laws; on the right the same on a logarithmic axis, where tails can be told apart.",
    )


def privacy_loss(sheet: Sheet) -> None:
    """Four falling curves of delta by epsilon, on a logarithmic axis: whoever accepts a larger epsilon
    needs a smaller delta. Laplace noise and two coins end at epsilon 1 and 1.1; Gaussian noise never
    ends.
    """
    (axes,) = sheet.panels(x="ε", y="δ that is needed")
    losses = {
        "Laplace, ε = 1": sf.Laplace(epsilon=1, sensitivity=1).loss,
        "Gaussian, σ = 3.73": sf.Gaussian(epsilon=1, delta=1e-5, sensitivity=1).loss,
        "two coins": sf.RandomizedResponse.coins().loss,
        "Gaussian, σ = 2": sf.Gaussian(sigma=2, sensitivity=1).loss,
    }
    near = 10.0 ** -np.arange(2, 10)  # to the ends of the curves that have one
    at = np.unique(np.concatenate([np.linspace(0, 2, 41), 1 - near, math.log(3) - near]))
    for (name, loss), (colour, dashes) in zip(losses.items(), sheet.lines, strict=True):
        needed = np.array([loss.delta(float(epsilon)) for epsilon in at])
        shown = np.where(needed > 0, needed, np.nan)
        axes.plot(at, shown, color=colour, linestyle=dashes, linewidth=1.9, label=name)
    logarithmic(axes, y=[1e-8, 1e-6, 1e-4, 1e-2, 1])
    axes.set_ylim(1e-9, 1)
    axes.set_xlim(0, 2)
    sheet.legend(axes)
    sheet.say(
        "One release has many pairs (ε, δ)",
        "Exact. A price is the whole curve, not a point of it: Sfumato keeps it and adds up curves.",
    )


COUNTS = [1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200, 300, 500, 700, 1000]


@cache
def composed(name: str) -> list[float]:
    """What so many Laplace releases cost by this accountant."""
    one, rule = sf.Laplace(epsilon="0.1", sensitivity=1).loss, sf.accounting.ACCOUNTANTS[name]
    return [rule.epsilon(one * count, 1e-6) for count in COUNTS]


def composition(sheet: Sheet) -> None:
    """Total epsilon of up to 1,000 Laplace releases at 0.1 each, on logarithmic axes. Basic composition
    grows in line to 100; the advanced theorem is worse up to 30 releases and reaches 27; zCDP 21;
    Sfumato's curve 19.
    """
    (axes,) = sheet.panels(x="number of releases", y="ε in all")
    names = {
        "basic": "basic: add them up",
        "advanced": "advanced",
        "zcdp": "zCDP",
        "numerical": "Sfumato's own",
    }
    looks = dict(zip(("numerical", "advanced", "basic", "zcdp"), sheet.lines, strict=True))
    for name, told in names.items():
        colour, dashes = looks[name]
        wide = 2.6 if name == "numerical" else 1.7
        axes.plot(COUNTS, composed(name), color=colour, linestyle=dashes, linewidth=wide, label=told)
    logarithmic(axes, x=[1, 10, 100, 1000], y=[0.1, 1, 10, 100])
    axes.set_xlim(1, 1000)
    sheet.legend(axes)
    sheet.say(
        "What many releases cost together, by four ways to add up",
        "Laplace releases at ε = 0.1 each, for δ = 1e-6 in all. Sfumato's own composes the exact laws.",
    )


def trade_off(sheet: Sheet) -> None:
    """The best rate of hits of any attacker by the rate of false alarms, above the diagonal of guessing.
    At epsilon 0.1 the curve is close to it; at epsilon 1 and 3 it rises; a Gaussian release bends
    smoothly.
    """
    (axes,) = sheet.panels(x="false alarms: absent, but called present", y="hits: present, and so called")
    rates = np.linspace(0, 1, 101)
    losses = {
        "ε = 1": sf.Laplace(epsilon=1, sensitivity=1).loss,
        "ε = 3": sf.Laplace(epsilon=3, sensitivity=1).loss,
        "ε = 0.1": sf.Laplace(epsilon="0.1", sensitivity=1).loss,
        "Gaussian, ε = 1, δ = 1e-5": sf.Gaussian(epsilon=1, delta=1e-5, sensitivity=1).loss,
    }
    axes.plot([0, 1], [0, 1], color=sheet.look.grey, linewidth=1, label="guessing")
    for (name, loss), (colour, dashes) in zip(losses.items(), sheet.lines, strict=True):
        best = sf.explain.tradeoff(loss, rates)
        axes.plot(rates, best, color=colour, linestyle=dashes, linewidth=2, label=name)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(percent)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    sheet.legend(axes, columns=5)
    sheet.say(
        "No attacker, whatever they know, is above the curve",
        "The best possible test of whether a person is in the data; Laplace noise if nothing else is said.",
    )


def questions() -> list[tuple[float, str, str]]:
    """A year of questions: the day, the price and the question."""
    weekly = [(7 * week + 3, "0.02", f"COUNT(*) AS n FROM people WHERE age > {week}") for week in range(52)]
    monthly = [
        (30.4 * month + 15, "0.05", f"AVG(age) AS n FROM people WHERE age > {month}") for month in range(12)
    ]
    quarterly = [
        (91.2 * part + 60, "0.2", f"MEDIAN(age) AS n FROM people WHERE age > {part}") for part in range(4)
    ]
    return sorted([*weekly, *monthly, *quarterly])


@cache
def balances() -> list[tuple[float, float, float]]:
    """After each question the day, what the ledger has as spent, and the same composed exactly."""
    rows = pa.table({"age": np.random.default_rng(5).integers(18, 90, 500)})
    people = sf.PrivateTable("people", source=rows, unit=sf.PrivacyUnit.row(), schema={"age": sf.Int(0, 110)})
    days = [(0.0, 0.0, 0.0)]
    with sf.Session(people, budget=sf.Budget(epsilon=3, delta=1e-6)) as session:
        for day, price, question in questions():
            session.sql(f"SELECT {question}").release(epsilon=price)
            balance = session.balance()
            days.append((day, float(balance.spent), float(balance.retrospective)))
        try:
            session.sql("SELECT SUM(age) AS n FROM people").release(epsilon=1)
        except sf.errors.BudgetExceeded:
            return [*days, (365.0, *days[-1][1:])]
    raise AssertionError("A question beyond the budget was answered.")


def budget_over_a_year(sheet: Sheet) -> None:
    """A staircase: the epsilon that a ledger has on record rises over the year from 0 to 2.44 of a budget
    of 3, with four high steps, one each quarter. In December a question at 1 is refused. A lower line
    shows the same losses composed exactly, 1.37 at the end.
    """
    days, spent, exactly = zip(*balances(), strict=True)
    (axes,) = sheet.panels(x="day of the year", y="ε")
    axes.axhline(3, color=sheet.look.ink, linewidth=1.4)
    sheet.write(axes, "the budget", (4, 3.12))
    (first, dashes), (second, others) = sheet.lines[:2]
    axes.step(days, spent, where="post", color=first, linestyle=dashes, linewidth=1.9, label="spent")
    how = {"where": "post", "color": second, "linestyle": others, "linewidth": 1.7}
    axes.step(days, exactly, **how, label="composed exactly")
    axes.plot([350], [spent[-1] + 1], "X", color=second, markersize=9, label="a question at ε = 1: refused")
    axes.plot([350, 350], [spent[-1], spent[-1] + 1], color=second, linewidth=1, linestyle=":")
    axes.set_xlim(0, 365)
    axes.set_ylim(0, 3.8)
    sheet.legend(axes)
    sheet.say(
        "A budget over a year: what is not paid for is not answered",
        "Each week a count at 0.02, each month a mean at 0.05, each quarter a median at 0.2; made-up people.",
    )


PRICES = ["0.01", "0.03", "0.1", "0.3", "1", "3", "10"]


@cache
def bars_of(want: str) -> list[float]:
    """The error bars at 95 % that `sf.advise` expects at each price."""
    bounds = {} if want == "count" else {"lower": 0, "upper": 200}
    return [sf.advise(want, epsilon=price, people=10_000, **bounds).error for price in PRICES]


def error_and_epsilon(sheet: Sheet) -> None:
    """Error bars of a count, a mean and a median of 10,000 people by epsilon, from 0.01 to 10, on
    logarithmic axes: three falling lines. Ten times the epsilon makes each bar about ten times as short.
    """
    (axes,) = sheet.panels(x="ε of the answer", y="error bar at 95 %, of the whole")
    wholes = {"count": 10_000, "mean": 200, "median": 10_000}
    told = {"count": "count, of 10,000", "mean": "mean, of the range", "median": "median, in ranks"}
    at = [float(price) for price in PRICES]
    for (want, whole), (colour, dashes), mark in zip(wholes.items(), sheet.lines, "oDs", strict=False):
        how = {"color": colour, "linestyle": dashes, "linewidth": 1.8, "markersize": 5}
        axes.plot(at, np.array(bars_of(want)) / whole, mark, **how, label=told[want])
    logarithmic(axes, x=[0.01, 0.1, 1, 10], y=[1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
    axes.yaxis.set_major_formatter(percent)
    sheet.legend(axes)
    sheet.say(
        "Ten times the ε, a tenth of the error",
        "What sf.advise expects for 10,000 people: Laplace noise; for the median, selection.",
    )


def synthetic_fidelity(sheet: Sheet) -> None:
    """Two panels by epsilon, 0.1, 1 and 10. Left, the distance of pairs of columns to the real table
    falls from 9 percent to 4 with MST and to 1 with adaptive marginals. Right, a model that learned from
    synthetic rows gets close to one that learned from the real rows with adaptive marginals alone.
    """
    rows = {
        row["case"]: row
        for row in json.loads((RESULTS / "synth.json").read_text())["rows"]
        if row["who"] != "mbi"
    }
    left, right = sheet.panels(1, 2, x="ε of the synthetic table")
    prices = ["0.1", "1", "10"]
    for (method, told), (colour, dashes), mark in zip(
        {"adaptive": "adaptive", "mst": "MST"}.items(), sheet.lines, "oD", strict=False
    ):
        for axes, figure in ((left, "variation"), (right, "auc")):
            values = [rows[f"{method}, epsilon {price}"][figure] for price in prices]
            how = {"color": colour, "linestyle": dashes, "linewidth": 1.8, "markersize": 5}
            axes.plot(range(3), values, mark, **how, label=told)
    right.axhline(
        rows["the real rows"]["auc"], color=sheet.look.ink, linewidth=1.2, linestyle=":", label="real rows"
    )
    left.plot(
        [1], [rows["independent, epsilon 1"]["variation"]], "s", color=sheet.look.ink, label="columns apart"
    )
    for axes in (left, right):
        axes.set_xticks(range(3), prices)
        axes.set_xlim(-0.2, 2.2)
    sheet.legend(left, of_all=True)
    left.set_ylim(0, 0.1)
    left.yaxis.set_major_formatter(percent)
    right.set_ylim(0.8, 0.94)
    sheet.name_y(left, "distance of pairs of columns")
    sheet.name_y(right, "AUC of boosted trees")
    sheet.say(
        "Synthetic rows: how close, and what can be learned from them",
        "Adult, 39,000 rows, δ = 1e-9; means of five fits, from benchmarks/results/synth.json.",
    )


def stream(sheet: Sheet) -> None:
    """Visits in the last 28 days over a year, a wave with a peak in summer. The released line follows the
    true one, and a narrow band around it, the error bar at 95 percent, holds the truth nearly always.
    """
    days, window = 365, 28
    waves = 30 + 14 * np.sin((np.arange(days) - 100) / 58)
    visits = np.random.default_rng(2).poisson(waves)  # made up
    plan = continual.choose(days, touches=1, want="window", window=window)
    mechanism = continual.Continual(plan, epsilon="0.5", delta="1e-6", sensitivity=1)
    # All noise follows from the secret. Here it is known, so that the file does not change: use secret().
    course = mechanism.start(b"a secret that everybody can read"[:32])
    released = mechanism.floats(np.array([course.release([int(day)])[0] for day in visits]))
    shown = np.arange(window - 1, days)
    noisy = np.array([released[day + 1 - window : day + 1].sum() for day in shown])
    truth = np.array([visits[day + 1 - window : day + 1].sum() for day in shown])
    bars = np.array([mechanism.width(float(one), 0.95) for one in mechanism.deviations(window)[shown]])
    (axes,) = sheet.panels(x="day of the year", y="visits in the last 28 days")
    axes.fill_between(
        shown,
        noisy - bars,
        noisy + bars,
        color=sheet.look.band,
        alpha=0.7,
        linewidth=0,
        label="error bar, 95 %",
    )
    axes.plot(shown, noisy, color=sheet.look.blue, linewidth=1.6, label="released each day")
    axes.plot(
        shown, truth, color=sheet.look.orange, linewidth=1.3, linestyle="--", label="truth, never shown"
    )
    axes.set_xlim(0, days)
    sheet.legend(axes)
    sheet.say(
        "A stream with its band: a year of daily figures for one price",
        f"ε = 0.5, δ = 1e-6 for the whole year, one visit a person; made-up visits. Bars: ± {bars[-1]:.0f}.",
    )


def small_groups(sheet: Sheet) -> None:
    """The error bar of a count over the count, by the size of the group, on logarithmic axes: falling
    lines for epsilon 0.1, 1 and 10. At epsilon 0.1 a group of 20 has a bar of 150 percent, one of 20,000
    of 0.15 percent.
    """
    (axes,) = sheet.panels(x="people in the group", y="error bar at 95 %, of the count")
    sizes = np.array(
        [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000], dtype=np.float64
    )
    for epsilon, (colour, dashes), mark in zip(("0.1", "1", "10"), sheet.lines, "oDs", strict=False):
        bar = sf.Laplace(epsilon=epsilon, sensitivity=1).error(0.95)
        axes.plot(
            sizes,
            bar / sizes,
            mark,
            color=colour,
            linestyle=dashes,
            linewidth=1.8,
            markersize=4,
            label=f"ε = {epsilon}",
        )
    logarithmic(axes, x=[10, 100, 1000, 10_000, 100_000], y=[1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1])
    axes.yaxis.set_major_formatter(percent)
    axes.axhspan(0.1, 10, color=sheet.look.glow, alpha=0.6, linewidth=0, zorder=0)
    sheet.write(axes, "more than a tenth: of little use", (90_000, 1.2), ha="right")
    axes.set_ylim(2e-6, 5)
    sheet.legend(axes)
    sheet.say(
        "The same noise weighs more on a small group",
        "Laplace noise on a count; everybody has the same privacy.",
    )


PICTURES: tuple[Drawing, ...] = (
    noise_densities,
    privacy_loss,
    composition,
    trade_off,
    budget_over_a_year,
    error_and_epsilon,
    synthetic_fidelity,
    stream,
    small_groups,
)

if __name__ == "__main__":
    main(PICTURES, "gallery")
