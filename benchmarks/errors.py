"""Errors at the same guarantee: each query of the suite beside OpenDP and the best that Laplace noise can do.

A unit is a user, the price is epsilon 1 and delta 1e-7. *Noise* is the standard deviation of released minus
measured, from the law that is drawn where that is known beforehand, else the spread over releases (of which
choosing rows at random is a part). *Total* is the root mean square of released minus the plain answer over
all rows and groups: what weights, cuts and clamps take away is in it; a group that is not reported counts
as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import sfumato as sf
from benchmarks.grouped import grouped
from benchmarks.harness import Report, peer
from benchmarks.ranks import ranks
from benchmarks.skewed import skewed
from benchmarks.visits import COUNTRIES, DELTA, forgetting, visits

ROWS = 100_000
EVEN = 1.01
"""Two laws whose standard deviations differ by less are called equal: one is rounded, the other discrete."""

CITED = (
    ("PipelineDP", "counts and sums near the Laplace limit; the median's standard deviation 0.07 years"),
    ("Qrlew", "errors 4 to 20 times worse"),
)
"""What was measured of peers elsewhere, on the same kind of table; they are not asked these queries here."""

Groups = Mapping[tuple[Any, ...], float]
"""One column of an answer, by its keys."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query of the suite.

    Attributes:
        name: In words.
        sql: For us, and without noise and bounds for the truth.
        value: The column that is looked at.
        keys: The columns of its groups.
        unit: How many groups and rows of one user count.
        limit: The standard deviation of Laplace noise at this sensitivity and the whole price; None for
            averages and quantiles.
        theirs: OpenDP's query, from its context.
        times: How many releases of ours and of theirs.
        listed: Whether the keys are known to the query.
        most: To how many of the countries, by their size, errors refer: a quotient of two noisy numbers has
            no variance where groups are small.
        rows: Of the table.
    """

    name: str
    sql: str
    value: str
    keys: tuple[str, ...]
    unit: tuple[int, int]
    limit: float | None
    theirs: Callable[[Any, Any, Any], Any]
    times: tuple[int, int]
    listed: bool = True
    most: int = len(COUNTRIES)
    rows: int = ROWS


def session(source: Any, case: Case) -> sf.Session:
    """A session whose declaration is that of the case."""
    groups, rows = case.unit
    table = sf.PrivateTable(
        "visits",
        source=source,
        unit=sf.PrivacyUnit("user_id", max_groups=groups, max_rows=rows),
        schema={
            "country": sf.Enum(*COUNTRIES) if case.listed else sf.Text(),
            "day": sf.Int(0, 364) if case.listed else sf.Int(),
            "amount": sf.Float(0, 200, nullable=False),
            "age": sf.Int(18, 99, nullable=False),
        },
    )
    return sf.Session(table, budget=sf.Budget(10**7, "0.5"))


def released(one: sf.Session, text: str, times: int, **more: Any) -> list[pa.Table]:
    """So many answers, each from a fresh ledger: none is a repetition of another."""
    renew, found = forgetting(one), []
    for _ in range(times):
        renew()
        found.append(one.sql(text).release(epsilon=1, delta=DELTA, **more).table)
    return found


def by_keys(table: Any, case: Case) -> dict[tuple[Any, ...], float]:
    """One column of an Arrow table or a Polars frame."""
    rows = table.to_pylist() if isinstance(table, pa.Table) else table.to_dicts()
    rows = [row for row in rows if row.get("country", COUNTRIES[0]) in COUNTRIES[: case.most]]
    return {tuple(row[key] for key in case.keys): float(row[case.value]) for row in rows}


def spread(answers: Sequence[Groups]) -> float:
    """The standard deviation over releases, pooled over the groups that all of them have."""
    keys = set.intersection(*(set(each) for each in answers))
    values = np.array([[each[key] for key in keys] for each in answers])
    return math.sqrt(np.var(values, axis=0, ddof=1).mean()) if len(keys) else math.nan


def total(answers: Sequence[Groups], truth: Groups) -> float:
    """The root mean square error over all groups of the plain answer."""
    squares = [(each.get(key, 0.0) - value) ** 2 for each in answers for key, value in truth.items()]
    return math.sqrt(sum(squares) / len(squares))


@cache
def plain(case: Case) -> dict[tuple[Any, ...], float]:
    """The answer without privacy, over all rows."""
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW visits AS SELECT * FROM read_parquet('{visits(case.rows)}')")
    return by_keys(connection.sql(case.sql).to_arrow_table(), case)


# ── what OpenDP is asked: the queries of its own guide, with the limits of the case ──


def _bounded(query: Any, case: Case, keep: str) -> Any:
    groups, rows = case.unit
    if not case.keys:
        return query.truncate_per_group(rows)
    by = list(case.keys)
    return query.truncate_per_group(rows // groups, by=by).truncate_num_groups(groups, by=by, keep=keep)


def _count(query: Any, dp: Any, polars: Any) -> Any:
    del polars
    rows = dp.len(signed=True).alias("n")
    return query.agg(rows) if hasattr(query, "agg") else query.select(rows)


def _sums(query: Any, dp: Any, polars: Any) -> Any:
    amount = polars.col("amount").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, 200.0)).alias("s")
    return query.agg(amount, dp.len(signed=True).alias("n"))


def _users(query: Any, dp: Any, polars: Any) -> Any:
    del dp
    return query.select(polars.col("user_id").dp.n_unique(signed=True).alias("n"))


def _quantiles(query: Any, dp: Any, polars: Any, *, levels: tuple[int, ...], column: str = "age") -> Any:
    del dp
    # Its candidates are the whole numbers of the declared range.
    candidates = list(range(18, 100)) if column == "age" else [float(each) for each in range(201)]
    values = polars.col(column).fill_null(candidates[0]).dp
    return query.select(*(values.quantile(each / 10, candidates).alias(f"q{each}") for each in levels))


def _opendp(case: Case, source: Any, keep: str = "first") -> Any:
    """OpenDP's measurement and what it says about its noise; None where it is not installed.

    Args:
        case: What is asked.
        source: Makes the rows.
        keep: Which of a unit's groups are kept. "sample", the default, fails inside this version of Polars.
            "first" keeps those whose keys sort first, which are the largest countries here and flatter it;
            "last" the smallest. A fair choice lies between.
    """
    dp, polars = peer("opendp.prelude"), peer("polars")
    if dp is None or polars is None:
        return None
    dp.enable_features("contrib", "honest-but-curious")
    context = dp.Context.compositor(
        data=source(polars),
        privacy_unit=dp.unit_of(contributions=1, identifier=polars.col("user_id")),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-7),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=50 * case.rows)],
    )
    query = _bounded(context.query(), case, keep)
    if case.keys:
        query = query.group_by(*case.keys)
    query = case.theirs(query, dp, polars)
    if case.keys and case.listed:
        keys = polars.LazyFrame({"country": COUNTRIES})
        if "day" in case.keys:
            days = polars.LazyFrame({"day": range(365)}, schema={"day": polars.Int32})
            keys = keys.join(days, how="cross")
        query = query.with_keys(keys)
    laws = {row["column"]: row for row in query.summarize().to_dicts()}
    measurement = query.resolve()

    def draw() -> Any:
        return measurement(source(polars)).collect()

    return draw, laws


def _laplace(scale: float, *, whole: bool) -> float:
    """The standard deviation of Laplace noise, or of the discrete law of the same scale."""
    if not whole:
        return math.sqrt(2) * scale
    decay = math.exp(-1 / scale)
    return math.sqrt(2 * decay) / (1 - decay)


# ── the suite ──

_LAPLACE = math.sqrt(2)
_LEVELS = tuple(range(1, 10))
_BY_COUNTRY = "SELECT country, {} FROM visits GROUP BY country"
_BY_DAY = "SELECT country, day, COUNT(*) AS n FROM visits GROUP BY country, day"
_BOTH = _BY_COUNTRY.format("SUM(amount) AS s, AVG(amount) AS m")

CASES = (
    Case(
        "count by country",
        _BY_COUNTRY.format("COUNT(*) AS n"),
        "n",
        ("country",),
        (3, 15),
        _LAPLACE * 15,
        _count,
        (20, 6),
    ),
    Case("sum by country", _BOTH, "s", ("country",), (3, 15), _LAPLACE * 15 * 200, _sums, (20, 6)),
    Case("mean, ten largest countries", _BOTH, "m", ("country",), (3, 15), None, _sums, (20, 6), most=10),
    Case("count by country, day", _BY_DAY, "n", ("country", "day"), (3, 3), _LAPLACE * 3, _count, (6, 4)),
    Case(
        "the same, unknown, 1e6 rows",
        _BY_DAY,
        "n",
        ("country", "day"),
        (3, 3),
        _LAPLACE * 3,
        _count,
        (3, 4),
        listed=False,
        rows=10 * ROWS,
    ),
    Case(
        "number of users",
        "SELECT COUNT(DISTINCT user_id) AS n FROM visits",
        "n",
        (),
        (1, 1),
        _laplace(1.0, whole=True),
        _users,
        (60, 30),
    ),
    Case(
        "number of rows", "SELECT COUNT(*) AS n FROM visits", "n", (), (1, 5), _LAPLACE * 5, _count, (60, 30)
    ),
    Case(
        "median of age",
        "SELECT MEDIAN(age) AS q5 FROM visits",
        "q5",
        (),
        (1, 5),
        None,
        partial(_quantiles, levels=(5,)),
        (60, 30),
    ),
)


def suite(report: Report) -> None:
    """Noise and total error of each query, ours beside OpenDP's and the Laplace limit."""
    report.heading(f"errors at epsilon 1, delta {DELTA}, {ROWS:,} rows", "noise", "limit", "total", "groups")
    for case in CASES:
        _compare(report, case)
    for who, what in CITED:
        report.row("cited, not run here", who, f" {what}", cited=what)


def figures(report: Report, case: str, ours: tuple[float, float], theirs: tuple[float, float]) -> None:
    """Our noise and total error over theirs."""
    for word, one, other in zip(("noise", "total error"), ours, theirs, strict=True):
        ratio = one / other if other else (math.inf if one else 1.0)
        report.figure(f"{case}: our {word} over OpenDP's", ratio, "<=", EVEN, unit=" ×")


def _compare(report: Report, case: Case) -> None:
    truth = plain(case)
    with session(visits(case.rows), case) as one:
        ours = [by_keys(each, case) for each in released(one, case.sql, case.times[0])]
        law = _our_law(one.sql(case.sql).quote(epsilon=1, delta=DELTA), case)
    mine = _line(report, case, "sfumato", [ours], truth, law)
    kinds, theirs, laws = ("first", "last") if case.keys else ("first",), [], {}
    for keep in kinds:
        made = _opendp(case, lambda polars: polars.scan_parquet(visits(case.rows)), keep)
        if made is None:
            report.missing(case.name, "OpenDP")
            return
        draw, laws = made
        times = case.times[1] // len(kinds)
        theirs.append([by_keys(_with_mean(draw(), case), case) for _ in range(times)])
    peers = _line(report, case, "OpenDP", theirs, truth, _their_law(laws, case))
    figures(report, case.name, mine, peers)


def _line(
    report: Report,
    case: Case,
    who: str,
    runs: Sequence[Sequence[Groups]],
    truth: Groups,
    law: float | None,
) -> tuple[float, float]:
    """Noise and total error of answers, in one list for each way of keeping groups.

    Where the law of the noise is known its variance takes the place of the one seen, in the total too: a few
    releases of one number would say little else than how lucky they were.
    """
    answers = [each for run in runs for each in run]
    seen = math.sqrt(sum(spread(run) ** 2 for run in runs) / len(runs))
    raw = total(answers, truth)
    noise = seen if law is None else law
    error = raw if law is None else math.sqrt(max(0.0, raw**2 - seen**2) + law**2)
    limit = "" if case.limit is None else f"{case.limit:.4g}"
    groups = sum(map(len, answers)) / len(answers)
    report.row(
        case.name,
        who,
        f"{noise:.4g}",
        limit,
        f"{error:.4g}",
        f"{groups:,.0f}",
        noise_by_law=law,
        spread=seen,
        total=error,
        total_seen=raw,
        limit=case.limit,
        groups=groups,
        releases=len(answers),
    )
    return noise, error


def _with_mean(frame: Any, case: Case) -> Any:
    """OpenDP has no mean over unknown sizes: it is the quotient of its noisy sum and count."""
    if case.value != "m":
        return frame
    polars = peer("polars")
    assert polars is not None
    return frame.with_columns(m=polars.col("s") / polars.col("n"))


def _our_law(quote: Any, case: Case) -> float | None:
    """The standard deviation by law: a count is one measurement, a sum is taken around the middle."""
    if case.limit is None or not quote.noises:
        return None
    parts = [_variance(each) for each in quote.noises]
    if case.value != "s":
        return math.sqrt(parts[0])
    return math.sqrt(parts[1] + 100**2 * parts[0])  # SUM(amount - 100) + 100 * COUNT(*)


def _variance(noise: Any) -> float:
    if noise.law == "geometric":
        return _laplace(noise.scale, whole=True) ** 2
    drawn = 2 if noise.law == "laplace" else 1
    return float(drawn * noise.scale**2 + noise.rounding**2 / 3)


def _their_law(laws: Mapping[str, Any], case: Case) -> float | None:
    found = laws.get(case.value)
    if found is None or case.limit is None:
        return None
    return _laplace(found["scale"], whole="Integer" in found["distribution"])


def quantiles(report: Report) -> None:
    """Nine deciles asked at once."""
    report.heading("nine deciles at once: root mean squares over the deciles", "noise", "total")
    for column in ("age", "amount"):
        deciles = ", ".join(f"QUANTILE_CONT({column}, 0.{each}) AS q{each}" for each in _LEVELS)
        theirs = partial(_quantiles, levels=_LEVELS, column=column)
        text = f"SELECT {deciles} FROM visits"
        _deciles(report, Case(f"deciles of {column}", text, "q5", (), (1, 5), None, theirs, (120, 60)))


def _deciles(report: Report, case: Case) -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW visits AS SELECT * FROM read_parquet('{visits(case.rows)}')")
    (truth,) = connection.sql(case.sql).fetchall()
    with session(visits(case.rows), case) as one:
        answers = [each.to_pylist()[0] for each in released(one, case.sql, case.times[0])]
    mine = _vector(report, case.name, "sfumato", [list(each.values()) for each in answers], truth)
    made = _opendp(case, lambda polars: polars.scan_parquet(visits(case.rows)))
    if made is None:
        report.missing(case.name, "OpenDP")
        return
    peers = _vector(report, case.name, "OpenDP", [made[0]().row(0) for _ in range(case.times[1])], truth)
    figures(report, case.name, mine, peers)


def _vector(report: Report, case: str, who: str, answers: list[Any], truth: Any) -> tuple[float, float]:
    values = np.array(answers, dtype=float)
    noise = math.sqrt(np.var(values, axis=0, ddof=1).mean())
    error = math.sqrt(np.mean((values - np.array(truth, dtype=float)) ** 2))
    report.row(case, who, f"{noise:.4g}", f"{error:.4g}", spread=noise, total=error, releases=len(values))
    return noise, error


PARTS = (suite, quantiles, ranks, skewed, grouped)
