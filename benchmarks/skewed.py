"""Skewed users: a few have thousands of rows, and a declared limit is wrong for someone.

Errors are of the total answer: what limits cut is in them. OpenDP, Qrlew and SmartNoise take a limit that
somebody must know; they are shown at the one that is best in hindsight, which no private answer can know.
Where the law of a peer's noise is known it takes the place of the spread over few releases. *Held* is how
often an interval holds the answer over all rows: ours by a profile, theirs ± the noise that they state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import sfumato as sf
from benchmarks import limits
from benchmarks.harness import Report, peer
from benchmarks.published import amin, r2t

USERS = 20_000
CEILING = 10_000
"""The most rows that a user is taken to have: public, and not read off the data."""
TOP = 1_000.0
DELTA = "1e-7"
SHOPS = tuple(f"s{place}" for place in range(10, 30))
SQL = {"count": "COUNT(*)", "sum": "SUM(amount)", "mean": "AVG(amount)"}
_OURS, _THEIRS, _QUICK = 24, 3, 400
_REMOTE = {"Qrlew": 4, "SmartNoise": 2}


@dataclass(frozen=True, slots=True)
class Skew:
    """A table of purchases.

    Attributes:
        name: In words.
        rows: How many each user has, from a generator.
        limits: The limits that peers are tried with; the last cuts nothing.
    """

    name: str
    rows: Callable[[np.random.Generator], NDArray[Any]]
    limits: tuple[int, ...]


def _zipf(draw: np.random.Generator) -> NDArray[Any]:
    return np.minimum(draw.zipf(1.8, USERS), 5_000)


def _hundredth(draw: np.random.Generator) -> NDArray[Any]:
    light, heavy = 1 + draw.poisson(4, USERS), draw.integers(200, 600, USERS)
    return np.where(np.arange(USERS) < USERS // 100, heavy, light)


def _lognormal(draw: np.random.Generator) -> NDArray[Any]:
    light, heavy = np.ceil(draw.lognormal(1, 0.8, USERS)), np.ceil(draw.lognormal(6, 0.5, USERS))
    return np.where(np.arange(USERS) < 60, np.minimum(heavy, 2_000), light).astype(int)


SKEWS = (
    Skew("Zipf", _zipf, (5, 100, 1_000, 5_000)),
    Skew("1 % heavy", _hundredth, (5, 50, 600)),
    Skew("log-normal", _lognormal, (5, 50, 2_000)),
)


@cache
def purchases(skew: Skew = SKEWS[0]) -> pa.Table:
    """Rows of users: amounts with a log-normal law, and shops by chance."""
    draw = np.random.default_rng(20240601)
    counts = skew.rows(draw)
    user = np.repeat(np.arange(USERS), counts)
    amount = np.minimum(draw.lognormal(3.5, 1.0, len(user)), TOP)
    shop = np.array(SHOPS)[draw.integers(0, len(SHOPS), len(user))]
    return pa.table({"user_id": user, "amount": amount, "shop": shop})


def truths(rows: pa.Table) -> dict[str, float]:
    """The answers over all rows."""
    amount = rows["amount"].to_numpy()
    return {"count": float(len(amount)), "sum": float(amount.sum()), "mean": float(amount.mean())}


def skewed(report: Report) -> None:
    """Total error of counts, sums and means on three tables, with limits that a profile chooses."""
    for skew in SKEWS:
        rows = purchases(skew)
        report.heading(
            f"{skew.name}: {USERS:,} users, {rows.num_rows:,} rows; of the answer over all rows",
            "noise",
            "bias",
            "total",
            "held",
        )
        best = {query: _locals(report, skew, query) for query in SQL}
        _remotes(report, skew, best)


def _locals(report: Report, skew: Skew, query: str) -> int:
    """Ours, what was published and OpenDP; gives the limit at which OpenDP was best."""
    rows, truth = purchases(skew), truths(purchases(skew))[query]
    case, found = f"{skew.name}, {query}", [_profiled(rows, SQL[query]) for _ in range(_OURS)]
    ours = _line(report, case, "sfumato, auto", [float(each.table["x"][0].as_py()) for each in found], truth)
    _covered(report, case, query, found, truth)
    if query != "mean":
        for name, draw in _published(rows, query).items():
            _line(report, case, name, [draw() for _ in range(_QUICK)], truth)
    errors = {}
    for limit in skew.limits:
        draw = _theirs(rows, limit, query)
        if draw is None:
            report.missing(case, "OpenDP")
            return skew.limits[-1]
        scale = _scale(query, limit)
        answers = [draw() for _ in range(_THEIRS)]
        errors[limit] = _line(report, f"{case}, {limit:,} rows", "OpenDP", answers, truth, scale)
    best = min(errors, key=lambda limit: errors[limit])
    what = f"{case}: a profile's limit over OpenDP's best of {len(errors)}"
    report.figure(what, ours / errors[best], "<=", 1.25, unit=" ×")
    return best


def _scale(query: str, limit: int) -> float | None:
    """The scale of Laplace noise at epsilon 1; None where the answer is a quotient."""
    return {"count": float(limit), "sum": limit * TOP}.get(query)


def _line(
    report: Report, case: str, who: str, answers: Sequence[float], truth: float, scale: float | None = None
) -> float:
    """One row: the spread, the bias and the root mean square error, relative to the truth.

    Args:
        report: Takes it.
        case: In words.
        who: Answered.
        answers: Of several releases.
        truth: Over all rows.
        scale: Of its Laplace noise, where that is known.
    """
    values = np.array(answers) / truth
    noise, bias = float(values.std(ddof=1)), float(values.mean()) - 1
    error = math.sqrt(float(np.mean((values - 1) ** 2)))
    held = None
    if scale is not None:
        seen, noise = noise, math.sqrt(2) * scale / truth
        error = math.sqrt(max(0.0, bias**2 - seen**2 / len(values)) + noise**2)
        held = float(np.mean(np.abs(values - 1) <= math.log(20) * scale / truth))
    shown = f"{noise:.2%}", f"{bias:+.1%}", f"{error:.2%}", "" if held is None else f"{held:.0%}"
    report.row(
        case, who, *shown, noise=noise, bias=bias, total=error, held=held, releases=len(values), scale=scale
    )
    return error


def _covered(report: Report, case: str, query: str, found: Sequence[Any], truth: float) -> None:
    """How often intervals hold the truth over all rows, and how wide they are; peers give none that do."""
    ends = [each.interval(0.95).to_pylist()[0] for each in found]
    bars = [each.interval(0.95, "noise").to_pylist()[0] for each in found]
    held = float(np.mean([each["x_low"] <= truth <= each["x_high"] for each in ends]))
    wide = float(np.median([each["x_high"] - each["x_low"] for each in ends]))
    over_bar = wide / float(np.median([each["x_high"] - each["x_low"] for each in bars]))
    least = 2.3 * CEILING * (TOP if query == "sum" else 1)  # at epsilon 1: a user at the ceiling stays unseen
    over_least = None if query == "mean" else wide / least
    report.row(
        f"{case}, intervals",
        "sfumato",
        f"{wide / truth:.0%} wide",
        f"{over_bar:.2g} × ±",
        "" if over_least is None else f"{over_least:.2g} × least",
        f"{held:.0%}",
        held=held,
        wide=wide / truth,
        over_noise_bar=over_bar,
        over_least=over_least,
        releases=len(ends),
    )


def _profiled(rows: pa.Table, column: str) -> Any:
    """A limit chosen by a profile, which takes a fifth of the price, within a public ceiling."""
    table = sf.PrivateTable(
        "purchases",
        source=rows,
        unit=sf.PrivacyUnit("user_id", max_rows="auto", ceiling=CEILING),
        schema={"amount": sf.Float(0, TOP, nullable=False)},
    )
    with sf.Session(table, budget=sf.Budget(1, DELTA)) as one:
        return one.sql(f"SELECT {column} AS x FROM purchases").release(epsilon=1)


def _published(rows: pa.Table, query: str) -> dict[str, Callable[[], float]]:
    """What others proposed for the same price."""
    draw, top = np.random.default_rng(), TOP if query == "sum" else 1.0
    users = rows["user_id"].to_numpy()
    counts = np.bincount(users).astype(float)
    amounts = rows["amount"].to_numpy() if query == "sum" else np.ones(len(users))
    own = np.bincount(users, weights=amounts)
    return {
        "Amin et al.": amin(counts, own, top=top, ceiling=CEILING, epsilon=1, draw=draw),
        "R2T": r2t(own, most=CEILING * top, epsilon=1, draw=draw),
    }


def _theirs(rows: pa.Table, limit: int, query: str) -> Callable[[], float] | None:
    """OpenDP with so many rows of each user and declared bounds; None where it is not installed."""
    dp, polars = peer("opendp.prelude"), peer("polars")
    if dp is None or polars is None:
        return None
    dp.enable_features("contrib", "honest-but-curious")
    frame = polars.from_arrow(rows).lazy()
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier=polars.col("user_id")),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=float(DELTA)),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=10**7)],
    )
    total = polars.col("amount").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, TOP)).alias("s")
    count = dp.len(signed=True).alias("n")
    asked = {"count": [count], "sum": [total], "mean": [total, count]}[query]
    measurement = context.query().truncate_per_group(limit).select(*asked).resolve()

    def draw() -> float:
        found = measurement(frame).collect().row(0)
        return float(found[0] / max(found[1], 1) if query == "mean" else found[0])

    return draw


def _remotes(report: Report, skew: Skew, best: dict[str, int]) -> None:
    """Qrlew and SmartNoise at the limit at which OpenDP was best."""
    rows, truth = purchases(skew), truths(purchases(skew))
    asks = [
        {
            "who": who,
            "query": query,
            "rows": limit,
            "times": _REMOTE[who],
            "top": TOP,
            "epsilon": 1.0,
            "delta": float(DELTA),
        }
        for query, limit in best.items()
        for who in limits.NAMES
    ]
    answers, versions = limits.ask(rows, asks)
    for ask, found in zip(asks, answers, strict=True):
        query, who, limit = str(ask["query"]), str(ask["who"]), int(str(ask["rows"]))
        case = f"{skew.name}, {query}, {limit:,} rows"
        if found is None:
            report.missing(case, who)
        else:
            scale = _scale(query, limit) if who == "SmartNoise" else None
            _line(report, case, who, [float(each) for each in found], truth[query], scale)
    for name in ("pyqrlew", "smartnoise-sql"):
        if name in versions and skew is SKEWS[0]:
            report.row("version", name, versions[name], version=versions[name])
