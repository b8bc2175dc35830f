"""Skewed users: a few have thousands of rows, and a declared limit is wrong for someone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import sfumato as sf
from benchmarks.harness import Report, peer

USERS = 20_000
SUITE, MOST = 5, 5_000
"""The limit that the suite of queries declares, and the one that fits the data: known only in hindsight."""
CEILING = 10_000
"""The most rows that a user is taken to have: public, and not read off the data."""
DELTA = "1e-7"
_INTERVALS = 40


@cache
def purchases() -> pa.Table:
    """Users with Zipf numbers of rows (exponent 1.8, at most 5,000 each), amounts with a log-normal law."""
    generator = np.random.default_rng(20240601)
    counts = np.minimum(generator.zipf(1.8, USERS), MOST)
    user = np.repeat(np.arange(USERS), counts)
    return pa.table({"user_id": user, "amount": generator.lognormal(3.5, 1.0, len(user))})


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask for the total.

    Attributes:
        who: Asks.
        how: In words.
        draw: Gives one answer.
        times: How often it is drawn.
    """

    who: str
    how: str
    draw: Callable[[], float]
    times: int


def skewed(report: Report) -> None:
    """Total error of a sum and a count, with bounds bought by `auto` beside limits that must be declared."""
    rows, connection = purchases(), duckdb.connect()
    connection.register("purchases", rows)
    report.heading(
        f"{USERS:,} skewed users, {rows.num_rows:,} rows: error of the total", "noise", "bias", "total"
    )
    for case, column in (("sum of amounts", "SUM(amount)"), ("number of rows", "COUNT(*)")):
        truth = float(connection.sql(f"SELECT {column} FROM purchases").fetchall()[0][0])
        errors: dict[str, float] = {}
        for way in _ways(column):
            if peer("opendp.prelude") is None and way.who == "OpenDP":
                report.missing(case, way.who)
                continue
            answers = np.array([way.draw() for _ in range(way.times)])
            noise, bias = float(answers.std(ddof=1)) / truth, float(answers.mean()) / truth - 1
            error = math.sqrt(float(np.mean((answers / truth - 1) ** 2)))
            shown = f"{noise:.2%}", f"{bias:+.1%}", f"{error:.2%}"
            report.row(f"{case}, {way.how}", way.who, *shown, noise=noise, bias=bias, total=error)
            errors[f"{way.who}, {way.how}"] = error
        for limit in (SUITE, 100, 1_000):
            if (theirs := errors.get(f"OpenDP, {limit:,} rows")) is not None:
                ratio = errors["sfumato, auto, per user"] / theirs
                what = f"{case}, skewed: ours over OpenDP's, {limit:,} rows"
                report.figure(what, ratio, "<", 1, unit=" ×")
        if best := [error for name, error in errors.items() if name.startswith("OpenDP")]:
            what = f"{case}, skewed: a limit chosen by a profile over OpenDP's best of four limits"
            report.figure(what, errors["sfumato, max_rows auto"] / min(best), "<=", 1.25, unit=" ×")
        _covered(report, case, column, truth)


def _covered(report: Report, case: str, column: str, truth: float) -> None:
    """How often intervals hold the truth over all rows, and how wide they are; peers give none that do."""
    ends = [_profiled(column)().interval(0.95).to_pylist()[0] for _ in range(_INTERVALS)]
    held = sum(each["x_low"] <= truth <= each["x_high"] for each in ends)
    wide = float(np.median([each["x_high"] - each["x_low"] for each in ends])) / truth
    report.row(
        f"{case}, 95 % intervals",
        "sfumato",
        f"{held} of {len(ends)}",
        "",
        f"{wide:.1%} wide",
        held=held,
        wide=wide,
    )


def _ways(column: str) -> list[Way]:
    each = f"SELECT user_id, {column} AS x FROM purchases GROUP BY user_id"
    ways = [Way("sfumato", "auto, per user", _ours(f"SELECT SUM(x) AS x FROM ({each})", 1), 16)]
    release = _profiled(column)
    ways.append(Way("sfumato", "max_rows auto", lambda: float(release().table["x"][0].as_py()), 16))
    if column != "COUNT(*)":
        ways.append(Way("sfumato", "auto, 5 rows", _ours(f"SELECT {column} AS x FROM purchases", 5), 4))
    top = None if column == "COUNT(*)" else 1_000.0
    return ways + [
        Way("OpenDP", f"{limit:,} rows", _theirs(limit, top), 16) for limit in (SUITE, 100, 1_000, MOST)
    ]


def _ours(text: str, rows: int) -> Callable[[], float]:
    def draw() -> float:
        table = sf.PrivateTable(
            "purchases",
            source=purchases(),
            unit=sf.PrivacyUnit("user_id", max_groups=1, max_rows=rows),
            schema={"amount": sf.Float()},
        )
        with sf.Session(table, budget=sf.Budget(1, DELTA)) as one:
            found = one.sql(text).release(epsilon=1, bounds="auto").table["x"].to_pylist()
        return float(found[0])

    return draw


def _profiled(column: str) -> Callable[[], Any]:
    """A limit chosen by a profile, which takes a fifth of the price, within a public ceiling."""

    def release() -> Any:
        table = sf.PrivateTable(
            "purchases",
            source=purchases(),
            unit=sf.PrivacyUnit("user_id", max_rows="auto", ceiling=CEILING),
            schema={"amount": sf.Float(0, 1_000, nullable=False)},
        )
        with sf.Session(table, budget=sf.Budget(1, DELTA)) as one:
            return one.sql(f"SELECT {column} AS x FROM purchases").release(epsilon=1)

    return release


def _theirs(rows: int, top: float | None) -> Callable[[], float]:
    """OpenDP with so many rows of each user and this declared bound; a count without one."""
    made: list[Any] = []

    def draw() -> float:
        if not made:
            made.append(_measurement(rows, top))
        measurement, frame = made[0]
        return float(measurement(frame).collect().item())

    return draw


def _measurement(rows: int, top: float | None) -> Any:
    dp, polars = peer("opendp.prelude"), peer("polars")
    assert dp is not None
    assert polars is not None
    dp.enable_features("contrib", "honest-but-curious")
    frame = polars.from_arrow(purchases()).lazy()
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier=polars.col("user_id")),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=float(DELTA)),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=10**7)],
    )
    query = context.query().truncate_per_group(rows)
    asked = (
        dp.len(signed=True)
        if top is None
        else polars.col("amount").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, top))
    )
    return query.select(asked).resolve(), frame
