"""How often bands of survival curves hold the truth, and how often log-rank tests reject it, over a class.

People have hazards of several shapes and leave in several ways: not at all, by chance, or all at once when a
study ends, within a cell of time or at its edge, long before the declared horizon. How many fall into which
cell is drawn from its exact law, and noise is added as a fit adds it; bands and tests are `KaplanMeier`'s.
The cases that look worst are drawn once more, with many more fits: the least of many noisy shares is low by
chance, a second draw of it is not. Fits that refuse a band count as such, and for nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Report

Floats: TypeAlias = NDArray[np.float64]
Curve: TypeAlias = Callable[[Floats], Floats]

LEVEL, DELTA, HORIZON = 0.95, 1e-6, 10.0
FITS, AGAIN, WORST, SLOWER = 100, 2000, 4, 4
"""Fits of each case; of those that are drawn again; how many of these there are for each figure; and how many
times fewer fits there are of the finest grids."""

HAZARDS: dict[str, Curve] = {
    "constant": lambda t: np.exp(-0.15 * t),
    "increasing": lambda t: np.exp(-((t / 8) ** 1.8)),
    "decreasing": lambda t: np.exp(-((t / 6) ** 0.6)),
    "some are cured": lambda t: 0.6 + 0.4 * np.exp(-0.5 * t),
    "rare": lambda t: np.exp(-0.01 * t),
}
"""The share that survives to a time."""


class Leaving(NamedTuple):
    """How people leave: the share that has not by a time, and when all of the others do."""

    stay: Curve
    until: float = np.inf


LEAVING = {
    "none": Leaving(np.ones_like),
    "light": Leaving(lambda t: np.exp(-0.05 * t)),
    "heavy": Leaving(lambda t: np.exp(-0.3 * t)),
    "from 2 to 12": Leaving(lambda t: np.clip((12 - t) / 10, 0, 1)),
    "all at 7.3": Leaving(np.ones_like, 7.3),
    "light, all at 7": Leaving(lambda t: np.exp(-0.05 * t), 7.0),
}
SETTINGS = (
    (10, 500, 1.0), (50, 2000, 1.0), (10, 10_000, 0.1), (50, 500, 10.0), (10, 100_000, 10.0),
    (50, 100_000, 0.1), (10, 2000, 0.1), (50, 10_000, 1.0), (10, 500, 10.0), (50, 100_000, 1.0),
)  # fmt: skip
"""Cells of time, people, epsilon."""
FINE = ((365, 2000, 10.0), (365, 10_000, 1.0), (365, 100_000, 0.1))
REFUSED = ((10, 500, 0.1), (50, 500, 0.1))


class Case(NamedTuple):
    """People of one or several groups, the grid, and the price.

    Attributes:
        hazard: A key of `HAZARDS`.
        leaving: Of each group, a key of `LEAVING`.
        bins: Cells of time.
        size: People in all.
        epsilon: What a fit costs.
        shares: Of each group.
        discrete: Whether events and leaving are at edges only.
        several: Whether somebody has up to four rows, the more the higher their hazard.
        ratio: By what the first group's hazard is that of the others.
    """

    hazard: str
    leaving: tuple[str, ...]
    bins: int
    size: int
    epsilon: float
    shares: tuple[float, ...] = (1.0,)
    discrete: bool = False
    several: bool = False
    ratio: float = 1.0

    def fits(self, many: int) -> int:
        """How many there are where others have so many."""
        return many // SLOWER if self.bins > 100 else many

    @property
    def name(self) -> str:
        """All of it in words."""
        kind = ", whole times" * self.discrete + ", several rows" * self.several
        kind += f", ratio {self.ratio:g}" * (self.ratio != 1)
        return f"{self.hazard}; {' / '.join(self.leaving)}; {self.bins}, {self.size}, {self.epsilon:g}{kind}"

    @property
    def edges(self) -> Floats:
        """Where cells end."""
        return np.arange(1, self.bins + 1) * HORIZON / self.bins

    @property
    def survival(self) -> Curve:
        """The truth; with several rows, hazards vary between people by a gamma law of shape 2."""
        return (lambda t: (1 + 0.075 * t) ** -2) if self.several else HAZARDS[self.hazard]

    def median(self) -> float:
        """When half of them are left."""
        times = np.linspace(0, HORIZON, 100_001)
        reached = self.survival(times) <= 0.5
        return float(times[np.argmax(reached)]) if reached.any() else np.inf

    def chances(self, leaving: Leaving, ratio: float = 1.0) -> Floats:
        """Of each cell: of an event, of leaving, and last of being seen to the horizon."""
        edges, size, found = self.edges, self.bins, np.zeros(2 * self.bins + 1)

        def survival(times: Floats) -> Floats:
            return self.survival(times) ** ratio

        if self.discrete:
            starts = np.append(0.0, edges[:-1])
            alive, here = survival(np.append(0.0, edges)), leaving.stay(starts)
            here = np.where(starts < leaving.until, here, 0.0)
            found[:size] = -np.diff(alive) * here
            found[size + 1 :] = alive[1:] * (here - np.append(here[1:], 0.0))
            return found / found.sum()
        begin = 0.0
        for at, end in enumerate(edges):
            x = np.linspace(begin, max(min(end, leaving.until), begin), 101)
            alive, here, middle = survival(x), leaving.stay(x), (x[1:] + x[:-1]) / 2
            found[at] = -np.diff(alive) @ leaving.stay(middle)
            found[size + at] = -np.diff(here) @ survival(middle)
            begin = end
        if leaving.until < HORIZON:
            last = np.array(leaving.until)
            found[size + int(np.searchsorted(edges, last, "right"))] += survival(last) * leaving.stay(last)
        found[-1] = max(0.0, 1 - found[:-1].sum())
        return found / found.sum()

    def counts(self, rng: np.random.Generator, size: int, leaving: Leaving, chances: Floats) -> Floats:
        """How many are in each cell; with several rows, each counts for its part."""
        if not self.several:
            return np.asarray(rng.multinomial(size, chances), np.float64)
        from sfumato.learn.survival._grid import grid

        strength = rng.gamma(2, 0.5, size)
        many = np.clip(rng.poisson(1.5 * strength) + 1, 1, 4)
        time = rng.exponential(1, many.sum()) / (0.15 * np.repeat(strength, many))
        left = rng.exponential(20 if leaving.stay(np.array(1.0)) < 1 else np.inf, len(time))
        left = np.minimum(left, leaving.until)
        cells = grid(None, int(HORIZON), self.bins)
        place = cells.cells(cells.coded(np.minimum(time, left), time <= left))
        return np.bincount(place, np.repeat(1 / many, many), 2 * self.bins + 1)


def models(case: Case, fits: int, seed: int) -> Iterator[Any]:
    """Models as they are fitted to people of this case."""
    from sfumato.fits.meter import Meter, price
    from sfumato.learn import KaplanMeier
    from sfumato.learn.survival._cells import counting

    how, rng = counting(case.bins), np.random.default_rng(seed)
    noise = Meter.alone(price(str(case.epsilon), DELTA)).sigma(1, 1) * float(how.sensitivity) / 2**32
    groups = [str(place) for place in range(len(case.leaving))] if len(case.leaving) > 1 else None
    options: dict[str, Any] = {"horizon": int(HORIZON), "bins": case.bins}
    chances = [case.chances(LEAVING[name]) for name in case.leaving]
    if case.ratio != 1:
        chances[0] = case.chances(LEAVING[case.leaving[0]], case.ratio)
    for _ in range(fits):
        lines = [
            case.counts(rng, int(case.size * share), LEAVING[name], chance)
            + noise * (how.spread @ rng.normal(size=len(chance)))
            for share, name, chance in zip(case.shares, case.leaving, chances, strict=True)
        ]
        model = KaplanMeier(case.epsilon, DELTA, groups=groups, discrete=case.discrete, **options)
        model._set({"counts": np.array(lines), "noise": np.array([noise])})
        yield model


class Held(NamedTuple):
    """Of a case: fits that gave a band, and how often it held.

    Attributes:
        offered: How many gave one.
        points: How often the pointwise interval held at each time.
        whole: How often the band held everywhere.
        median: How often the median's interval held it.
        width: Of pointwise intervals, on average.
    """

    offered: int
    points: Floats
    whole: float
    median: float
    width: float


def held(case: Case, fits: int, seed: int = 1) -> Held:
    """How often what is offered holds the truth."""
    from sfumato.errors import InvalidParameter

    truth, median = case.survival(case.edges), case.median()
    points, whole, middle, width, offered = np.zeros(case.bins), 0, 0, 0.0, 0
    for model in models(case, fits, seed):
        try:
            each, all_ = model.band(LEVEL, kind="pointwise"), model.band(LEVEL)
        except InvalidParameter:
            continue
        offered += 1
        points += (each.low <= truth) & (truth <= each.high)
        whole += bool(((all_.low <= truth) & (truth <= all_.high)).all())
        low, high = model.median_interval(LEVEL)
        middle += low <= median <= high
        width += float((each.high - each.low).mean())
    some = max(offered, 1)
    return Held(offered, points / some, whole / some, middle / some, width / some)


def rejected(case: Case, fits: int, seed: int = 1) -> tuple[int, float]:
    """Of how many tests of groups with the same hazard how many have a p-value below 5 %."""
    from sfumato.errors import InvalidParameter

    found = []
    for model in models(case, fits, seed):
        try:
            found.append(model.logrank().p_value < 1 - LEVEL)
        except InvalidParameter:
            continue
    return len(found), float(np.mean(found)) if found else 0.0


def cases() -> Iterator[Case]:
    """Every hazard with every way of leaving, at grids, sizes and prices that take turns."""
    turns = itertools.cycle(SETTINGS)
    for hazard, leaving in itertools.product(HAZARDS, LEAVING):
        for _ in range(2):
            yield Case(hazard, (leaving,), *next(turns))
        next(turns)
    for at, (hazard, leaving) in enumerate(zip(HAZARDS, LEAVING, strict=False)):
        yield Case(hazard, (leaving,), *FINE[at % len(FINE)])
        yield Case(hazard, (leaving,), *SETTINGS[at], discrete=True)
        yield Case("constant", (leaving,), *SETTINGS[at], several=True)
    for setting in REFUSED:
        yield Case("constant", ("none",), *setting)


def bands(report: Report) -> None:
    """Pointwise intervals, simultaneous bands and medians."""
    report.heading(
        "Survival: how often 95 % bands hold the curve", "each time", "least", "whole", "median", "refused"
    )
    listed = list(cases())
    found = [held(case, case.fits(FITS)) for case in listed]
    for case, one in zip(listed, found, strict=True):
        _tell(report, case, one, case.fits(FITS))
    seen = [(case, one) for case, one in zip(listed, found, strict=True) if one.offered > case.fits(FITS) / 2]
    report.figure(
        "bands that hold the whole curve, all cases", _mean(one.whole for _, one in seen), ">=", 0.94
    )
    report.figure("intervals of the median that hold it", _mean(one.median for _, one in seen), ">=", 0.94)
    report.heading("The worst of them, drawn again", "each time", "least", "whole", "median", "refused")
    by_whole = sorted(seen, key=lambda pair: _short(pair[1].whole, pair[1].offered))[:WORST]
    by_point = sorted(seen, key=lambda pair: _short(pair[1].points.min(), pair[1].offered))[:WORST]
    wholes, points = [], []
    for case, _ in by_whole:
        again = held(case, case.fits(AGAIN), seed=2)
        _tell(report, case, again, case.fits(AGAIN))
        wholes.append(again.whole)
    for case, one in by_point:
        again = held(case, case.fits(AGAIN), seed=3)
        _tell(report, case, again, case.fits(AGAIN))
        points.append(float(again.points[int(one.points.argmin())]))
    report.figure("bands that hold the whole curve, worst case", min(wholes), ">=", 0.94)
    report.figure("intervals that hold survival, worst case and time", min(points), ">=", 0.94)


def _short(share: float, fits: int) -> float:
    """By how many deviations a share is below the level, or above."""
    return (share - LEVEL) * fits**0.5


def _tell(report: Report, case: Case, one: Held, fits: int) -> None:
    cells = [one.points.mean(), one.points.min(), one.whole, one.median, 1 - one.offered / fits]
    report.row(
        "bands", case.name, *(f"{cell:.3f}" for cell in cells), fits=fits, offered=one.offered,
        coverage=cells[0], least=cells[1], whole=one.whole, median=one.median, width=one.width,
        **{key: value for key, value in case._asdict().items() if key != "shares"},
    )  # fmt: skip


def _mean(values: Iterator[float]) -> float:
    return float(np.mean(list(values)))


PAIRS = (
    ("none", "none"),
    ("light", "light"),
    ("light", "heavy"),
    ("all at 7.3", "none"),
    ("light, all at 7", "from 2 to 12"),
    ("none", "none", "light"),
)
SHARES = {2: ((0.5, 0.5), (0.8, 0.2)), 3: ((0.4, 0.3, 0.3), (0.6, 0.3, 0.1))}


def tests(report: Report) -> None:
    """The log-rank test of groups with the same hazard that leave alike, or not."""
    report.heading("Log-rank tests at 5 %: how often equal hazards are rejected", "rejected", "refused")
    turns = itertools.cycle(SETTINGS)
    listed = [
        Case(hazard, pair, *next(turns), SHARES[len(pair)][(at + many) % 2])
        for at, (hazard, pair) in enumerate(itertools.product(HAZARDS, PAIRS))
        for many in range(2)
    ]
    found = [(case, *rejected(case, 2 * FITS)) for case in listed]
    for case, offered, share in found:
        _tell_test(report, case, offered, share, 2 * FITS)
    seen = [(share, case) for case, offered, share in found if offered > FITS]
    report.figure(
        "equal hazards that are rejected at 5 %, all cases", _mean(one for one, _ in seen), "<=", 0.06
    )
    worst = []
    for _, case in sorted(seen, key=lambda pair: -pair[0])[:WORST]:
        offered, share = rejected(case, AGAIN, seed=2)
        _tell_test(report, case, offered, share, AGAIN)
        worst.append(share)
    report.figure("equal hazards that are rejected at 5 %, worst case", max(worst), "<=", 0.06)


def _tell_test(report: Report, case: Case, offered: int, share: float, fits: int) -> None:
    report.row(
        "log-rank", case.name, f"{share:.3f}", f"{1 - offered / fits:.3f}", fits=fits, offered=offered,
        rejected=share, **case._asdict(),
    )  # fmt: skip


def ratios(report: Report) -> None:
    """Hazard ratios of two groups."""
    from sfumato.errors import NotCertified

    report.heading("Hazard ratios: how often 95 % intervals hold the true one", "held", "refused")

    def share(case: Case, fits: int, seed: int = 1) -> tuple[float, int]:
        found = []
        for model in models(case, fits, seed):
            try:
                told = model.hazard_ratio("0", over="1", level=LEVEL)
            except NotCertified:
                continue
            found.append(told.low <= case.ratio <= told.high)
        held, offered = (float(np.mean(found)) if found else 0.0), len(found)
        report.row(
            "ratios", case.name, f"{held:.3f}", f"{1 - offered / fits:.3f}", fits=fits, offered=offered,
            coverage=held, **case._asdict(),
        )  # fmt: skip
        return held, offered

    turns, truths = itertools.cycle(SETTINGS), itertools.cycle((0.5, 1.0, 2.0, 4.0))
    listed = [
        Case(hazard, pair, *next(turns), SHARES[2][at % 2], ratio=next(truths))
        for at, (hazard, pair) in enumerate(itertools.product(HAZARDS, PAIRS))
        if len(pair) == 2
    ]
    found = [(*share(case, 2 * FITS), case) for case in listed]
    seen = [(held, case) for held, offered, case in found if offered > FITS]
    report.figure("hazard ratios in their intervals, all cases", _mean(held for held, _ in seen), ">=", 0.94)
    worst = [share(case, AGAIN, 2)[0] for _, case in sorted(seen, key=lambda pair: pair[0])[:WORST]]
    report.figure("hazard ratios in their intervals, worst case", min(worst), ">=", 0.94)


PARTS = (bands, tests, ratios)
