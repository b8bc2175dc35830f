"""Games: private prices from a million bids and advice for ten thousand drivers, beside plain programs."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Report, race, seconds, times
from sfumato.games.auction import PriceAuction, price_grid
from sfumato.games.equilibrium import PrivateAdvice
from sfumato.games.facility import FacilityLocation
from sfumato.games.pac import PrivateLearner, error_promised, thresholds
from sfumato.games.reserve import ReservePrice
from sfumato.games.routing import grid_roads, routing_game

BIDS, TOP = 1_000_000, 100
# Comparing every bid with every price fills the memory at full size; its time is linear in both.
FEW_BIDS, FEW_PRICES = 20_000, 1_000
AUCTIONS, BIDDERS = 250_000, 100_000
DRIVERS, ROUNDS = 10_000, 300


def auction(report: Report) -> None:
    """A million bids on ten thousand prices: exact scores and an exact private choice, in a second."""
    bids = np.random.default_rng(1).uniform(0, TOP, BIDS)
    grid = price_grid(top=TOP, step="0.01")
    made = PriceAuction(1, grid)
    prices, few = np.array(grid), np.array(grid)[:: len(grid) // FEW_PRICES]
    part = bids[:FEW_BIDS]
    report.heading(f"auction, {BIDS:,} bids, {len(grid):,} prices", "wall", "CPU", "over sorting")
    timing = race(
        {
            "sfumato": lambda: made.select(bids),
            "sort": lambda: prices[np.argmax(prices * (BIDS - np.searchsorted(np.sort(bids), prices)))],
            "compare": lambda: few[np.argmax(few * (part[:, None] >= few).sum(axis=0))],
        },
        repeats=7,
    )
    scale = (BIDS / FEW_BIDS) * (len(grid) / len(few))
    for who, shown, factor in (
        ("sort", "numpy, sorting", 1.0),
        ("compare", "numpy, each pair", scale),
        ("sfumato", "sfumato (private)", 1.0),
    ):
        one = timing[who]
        ratio = one.wall * factor / timing["sort"].wall
        case = "one price" if factor == 1 else "one price, from a part"
        report.row(
            case,
            shown,
            seconds(one.wall * factor),
            seconds(one.cpu * factor),
            times(ratio),
            timing=one,
            scaled_by=factor,
            over_sorting=ratio,
        )
    ours = timing["sfumato"]
    report.figure("auction of 1e6 bids on 1e4 prices", ours.wall, "<=", 1, unit=" s", cpu=ours.cpu)


def reserve(report: Report) -> None:
    """A reserve from a million rows of a log, bidders bounded, beside the same from rows already bounded."""
    made = np.random.default_rng(2)
    log = (
        made.integers(0, AUCTIONS, BIDS),
        made.integers(0, BIDDERS, BIDS),
        made.exponential(20, BIDS).round(2),
    )
    learned = ReservePrice(1, price_grid(top=TOP, step="0.01"), max_auctions=5)
    report.heading(f"reserve price, {BIDS:,} rows of a log", "wall", "CPU", "over plain")
    prices = np.array(learned.prices)
    timing = race(
        {"plain": lambda: _plain(log[0], log[2], prices), "sfumato": lambda: learned.select(*log)}, repeats=5
    )
    for who, shown in (("plain", "numpy, unbounded"), ("sfumato", "sfumato (private)")):
        ratio = timing[who].wall / timing["plain"].wall
        cells = seconds(timing[who].wall), seconds(timing[who].cpu), times(ratio)
        report.row("one reserve", shown, *cells, timing=timing[who], over_plain=ratio)
    ours = timing["sfumato"]
    report.figure("reserve price from 1e6 rows", ours.wall, "<=", 2, unit=" s", cpu=ours.cpu)


def _plain(auctions: np.ndarray, bids: np.ndarray, prices: np.ndarray) -> float:
    """The best reserve of all rows, nobody bounded and nothing private."""
    order = np.lexsort((bids, auctions))
    auctions, bids = auctions[order], bids[order]
    last = np.flatnonzero(np.append(auctions[1:] != auctions[:-1], True))
    second = np.where((last > 0) & (auctions[last - 1] == auctions[last]), bids[last - 1], 0.0)
    first, second = np.sort(bids[last]), np.sort(second)
    place = np.searchsorted(second, prices, side="right")
    above = np.append(np.cumsum(second[::-1])[::-1], 0.0)[place]
    earned = prices * (len(first) - np.searchsorted(first, prices)) + above - prices * (len(second) - place)
    return float(prices[np.argmax(earned)])


def routing(report: Report) -> None:
    """Advice for ten thousand drivers, beside the same drivers settling down with nothing hidden."""
    trips = [((0, 0), (5, 5)), ((5, 0), (0, 5)), ((0, 3), (5, 2)), ((2, 0), (3, 5))]
    game = routing_game(grid_roads(6, 6, players=DRIVERS), trips, players=DRIVERS)
    types = [trips[at % len(trips)] for at in range(DRIVERS)]
    made = PrivateAdvice(game, epsilon=1, delta="1e-6", rounds=ROUNDS)
    report.heading(f"routing, {DRIVERS:,} drivers, {ROUNDS} rounds", "wall", "CPU", "over plain")
    timing = race(
        {"plain": lambda: game.settle(types), "sfumato": lambda: made.advise(types).alpha}, repeats=3
    )
    for who, shown in (("plain", "best answers in turn"), ("sfumato", "sfumato (private)")):
        ratio = timing[who].wall / timing["plain"].wall
        cells = seconds(timing[who].wall), seconds(timing[who].cpu), times(ratio)
        report.row("advice for all", shown, *cells, timing=timing[who], over_plain=ratio)
    ours = timing["sfumato"]
    report.figure("routing game of 10,000 players", ours.wall, "<=", 60, unit=" s", cpu=ours.cpu)


def promises(report: Report) -> None:
    """What was lost beside what was promised to be lost at most: every ratio is to be below 1."""
    report.heading("promises, 95 %", "measured", "promised", "ratio")
    found = {
        "revenue, 10,000 buyers": _revenue(),
        "welfare, 10,000 players": _welfare(),
        "regret, 10,000 drivers": _regret(),
        "excess error, 6,400 examples": _error(),
    }
    for case, (measured, promised) in found.items():
        cells = f"{measured:.4g}", f"{promised:.4g}", times(measured / promised)
        report.row(case, "sfumato (private)", *cells, measured=measured, promised=promised)
        report.figure(f"{case}: lost over promised", measured / promised, "<=", 1)


def _tail(lost: np.ndarray, law: np.ndarray) -> float:
    """The 95th percentile of a loss under the exact law of a choice."""
    order = np.argsort(lost)
    return float(lost[order][np.searchsorted(np.cumsum(law[order]), 0.95)])


def _revenue() -> tuple[float, float]:
    bids = np.minimum(np.random.default_rng(3).exponential(20, 10_000), TOP).round(2)
    made = PriceAuction("0.5", price_grid(top=TOP, step="0.05"))
    revenue = made.revenue(bids)
    return _tail(revenue.max() - revenue, made.law(bids)), made.guarantee("0.95")


def _welfare() -> tuple[float, float]:
    sites = [(x, y) for x in range(3) for y in range(3)]
    made = FacilityLocation(1, sites, facilities=2)
    homes = made.snap(np.random.default_rng(4).uniform(-0.5, 2.5, (10_000, 2)))
    welfare = made.welfare(homes)
    return _tail(welfare.max() - welfare, made.law(homes)), made.guarantee("0.95")


def _regret() -> tuple[float, float]:
    trips = [((0, 0), (5, 5)), ((5, 0), (0, 5)), ((0, 3), (5, 2)), ((2, 0), (3, 5))]
    game = routing_game(grid_roads(6, 6, players=DRIVERS), trips, players=DRIVERS)
    made = PrivateAdvice(game, epsilon=1, delta="1e-6", rounds=ROUNDS)
    worst = max(made.advise([trips[at % 4] for at in range(DRIVERS)]).alpha for _ in range(10))
    return worst, made.promised_alpha("0.95")


def _error() -> tuple[float, float]:
    draw, size, runs = np.random.default_rng(5), 6_400, 60
    points = 2**16
    learner = PrivateLearner("0.2", thresholds(range(points)))
    lost = []
    for _ in range(runs):
        ages = draw.integers(0, points, size)
        labels = (ages >= points // 3) ^ (draw.random(size) < 0.1)
        rule = learner.select(ages, labels)
        lost.append(
            0.8 * abs(rule - points // 3) / points
        )  # what lies between the two rules, less the exceptions
    return float(np.quantile(lost, 0.95)), error_promised(points + 1, size, beta="0.05", epsilon="0.2")


PARTS = (auction, reserve, routing, promises)
