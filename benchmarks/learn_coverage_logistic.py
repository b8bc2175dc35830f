"""How often intervals of logistic regression hold the true weights, over a class of designs.

A design says what columns look like, how they hang together, how wide their bounds are and what chances are
like. There are as few rows as intervals are offered for, found by trying, or ten times that. Each fit draws
rows, labels and noise anew. A fit whose intervals are refused counts as such and for nothing else. All
designs are looked at for a short while, and the worst again, with other draws, for longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import beta

from benchmarks.harness import Report

DELTA = 1e-6
LEVEL, LEAST = 0.95, 0.94
FITS, SECONDS, AGAIN, WORST = 2000, 2.5, 240.0, 10
"""Of each design: so many fits, or fewer where they take longer; and how long, again, the worst ones."""
OFFERED, MOST = 1000.0, 100_000
"""So many rows for each weight, in units of the noise of a count, are the fewest; and so many are tried."""
SURE = 0.99
"""Of the intervals for how often intervals hold."""

Floats = np.ndarray[Any, np.dtype[np.float64]]
Columns = Callable[[np.random.Generator, int, int], Floats]


def _correlated(part: float) -> Columns:
    def drawn(rng: np.random.Generator, size: int, width: int) -> Floats:
        shared = rng.normal(0, 1, (size, 1))
        return (part**0.5 * shared + (1 - part) ** 0.5 * rng.normal(0, 1, (size, width))).clip(-4, 4)

    return drawn


def _seldom(share: float) -> Columns:
    return lambda rng, size, width: (rng.random((size, width)) < share).astype(np.float64)


COLUMNS: dict[str, tuple[Columns, float, float]] = {
    "uniform": (lambda rng, size, width: rng.random((size, width)), 0, 1),
    "normal": (lambda rng, size, width: rng.normal(0, 1, (size, width)).clip(-4, 4), -4, 4),
    "exponential": (lambda rng, size, width: rng.exponential(1, (size, width)).clip(0, 6), 0, 6),
    "log-normal": (lambda rng, size, width: rng.lognormal(0, 1, (size, width)).clip(0, 20), 0, 20),
    "half are 1": (_seldom(0.5), 0, 1),
    "a tenth are 1": (_seldom(0.1), 0, 1),
    "a fiftieth are 1": (_seldom(0.02), 0, 1),
    "correlated by .5": (_correlated(0.5), -4, 4),
    "correlated by .9": (_correlated(0.9), -4, 4),
}
"""How they are drawn, and their tight bounds."""
CHANCES = {"weak": (0.5, 0.5), "strong": (2.5, 0.5), "rare": (0.7, 0.05)}
"""The spread of margins, and how many are in the second class."""


@dataclass(frozen=True, slots=True)
class Design:
    """One of the class of designs."""

    columns: str
    chances: str
    width: int
    epsilon: float
    loose: bool = False
    times: float = 1.0
    ten: bool = False

    @property
    def size(self) -> int:
        """How many rows: enough that the noise of their count does not decide."""
        from sfumato.fits.meter import Meter, price

        noise = Meter.alone(price(self.epsilon, DELTA)).sigma(1, 1)
        return int(1.03 * OFFERED * self.times * (self.width + 1) * noise)

    @property
    def bounds(self) -> tuple[float, float]:
        """What is declared: the columns' own ends, or four times as far apart."""
        _, low, high = COLUMNS[self.columns]
        return (low - 1.5 * (high - low), high + 1.5 * (high - low)) if self.loose else (low, high)

    def truth(self) -> Floats:
        """The weights, the intercept last: signs take turns, and chances are as they should be."""
        spread, share = CHANCES[self.chances]
        rng = np.random.default_rng(7)
        rows = COLUMNS[self.columns][0](rng, 100_000, self.width)
        slopes = (-1.0) ** np.arange(self.width) / rows.std(axis=0)
        slopes *= spread / (rows @ slopes).std()
        low, high = -40.0, 40.0
        margins = rows @ slopes
        for _ in range(60):
            middle = (low + high) / 2
            if (1 / (1 + np.exp(-margins - middle))).mean() < share:
                low = middle
            else:
                high = middle
        return np.append(slopes, low)

    def name(self) -> str:
        """All of it in words."""
        return (
            f"{self.columns}; {self.chances}; {self.width} at {self.epsilon:g}"
            f"{', loose' * self.loose}{', x10' * self.ten}"
        )


def designs() -> Iterator[Design]:
    """Every kind of column with every kind of chance; widths, prices and bounds take turns."""
    turns = [(3, 1.0), (10, 8.0), (3, 8.0), (1, 0.5), (3, 0.5), (1, 1.0), (10, 1.0)]
    every = [(columns, chances) for columns in COLUMNS for chances in CHANCES]
    for at, (columns, chances) in enumerate(every):
        yield Design(columns, chances, 1, 8.0, loose=at % 2 == 1)
        yield Design(columns, chances, *turns[at % len(turns)], loose=at % 3 == 2)
    for at, columns in enumerate(COLUMNS):
        yield Design(columns, tuple(CHANCES)[at % 3], (1, 3)[at % 2], 8.0, ten=True)


def held(design: Design, fits: int, seed: int, limit: float = np.inf) -> tuple[Floats, int, int]:
    """How often each weight's interval held it, of how many fits, and how many were made."""
    from sfumato.errors import NotCertified
    from sfumato.learn import LogisticRegression

    drawn, truth, size = COLUMNS[design.columns][0], design.truth(), design.size
    rng, hits, offered, done = np.random.default_rng(seed), np.zeros(design.width + 1), 0, 0
    start = time.process_time()
    while done < fits and time.process_time() - start < limit:
        rows = drawn(rng, size, design.width)
        chances = 1 / (1 + np.exp(-(rows @ truth[:-1] + truth[-1])))
        labels = (rng.random(size) < chances).astype(int)
        model = LogisticRegression(design.epsilon, DELTA, design.bounds, [0, 1]).fit(rows, labels)
        done += 1
        try:
            ends = model.confidence_intervals(LEVEL)
        except NotCertified:
            continue
        offered += 1
        hits += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return hits, offered, done


def least(design: Design) -> Design | None:
    """The design with as few rows as most fits are told intervals for; None: with none that are tried."""
    while design.size <= MOST:
        if held(design, 4, seed=1)[1] >= 3:
            return replace(design, times=design.times * 10) if design.ten else design
        design = replace(design, times=design.times * 1.4)
    return None


def between(hits: float, count: int) -> tuple[float, float]:
    """An interval for how often something happens that happened so often (Clopper and Pearson 1934)."""
    low, high = (1 - SURE) / 2, (1 + SURE) / 2
    return (
        float(beta.ppf(low, hits, count - hits + 1)) if hits else 0.0,
        float(beta.ppf(high, hits + 1, count - hits)) if hits < count else 1.0,
    )


def coverage_of_classes(report: Report) -> None:
    """Intervals of 95 % for the weights of two classes."""
    report.heading(
        f"logistic: how often intervals of {LEVEL:.0%} hold",
        "rows",
        "fits",
        "offered",
        "held",
        "worst weight",
    )
    hits, count, seen = 0.0, 0, list[tuple[float, Design]]()
    for design in designs():
        small = least(design)
        if small is None:
            report.row(design.name(), "refused", f"up to {MOST}", offered=0, rows=MOST)
            continue
        found, offered, fits = held(small, FITS, seed=2, limit=SECONDS)
        hits, count = hits + float(found.sum()), count + offered * len(found)
        seen.append((_row(report, small, found, offered, fits), small))
    low, high = between(hits, count)
    report.figure(
        "intervals of two classes, all designs: held", hits / count, ">=", LEAST, between=[low, high]
    )
    report.heading("the worst again, with other draws", "rows", "fits", "offered", "held", "worst weight")
    least_held = 1.0
    for at, (_, design) in enumerate(sorted(seen, key=lambda one: one[0])[:WORST]):
        found, offered, fits = held(design, FITS, seed=1000 + at, limit=AGAIN)
        least_held = min(least_held, _row(report, design, found, offered, fits))
    report.figure("intervals of two classes: the worst weight again", least_held, ">=", LEAST)


def _row(report: Report, design: Design, found: Floats, offered: int, fits: int) -> float:
    """A row of the table; gives how often the weight was held that was held least."""
    whole, worst = found.sum() / max(offered * len(found), 1), found.min() / max(offered, 1)
    low, high = between(float(found.min()), offered)
    report.row(
        design.name(), "sfumato", str(design.size), str(fits), str(offered), f"{whole:.3f}",
        f"{worst:.3f}", f"{low:.3f}-{high:.3f}",
        rows=design.size, fits=fits, offered=offered, held=whole, worst=worst, worst_between=[low, high],
    )  # fmt: skip
    return float(worst) if offered else 1.0
