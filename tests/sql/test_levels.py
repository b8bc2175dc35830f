"""ROLLUP, CUBE and GROUPING SETS: which groups there are, what they mean, and what one unit can move."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.sql.read.parse import parse
from sfumato.testing import exact

SCHEMA = {
    "country": sf.Enum("FR", "DE", "IT"),
    "sex": sf.Enum("F", "M"),
    "x": sf.Int(0, 9, nullable=False),
    "city": sf.Text(),
}


def rows(seed: int = 1, count: int = 400) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "u": draw.integers(0, 60, count),
            "country": draw.choice(["FR", "DE", "IT"], count),
            "sex": draw.choice(["F", "M"], count),
            "x": draw.integers(0, 10, count),
            "city": draw.choice(["a", "b"], count),
        }
    )


def session(table: pa.Table, unit: sf.PrivacyUnit | None = None) -> sf.Session:
    unit = sf.PrivacyUnit("u", max_groups=3, max_rows=100) if unit is None else unit
    made = sf.PrivateTable("t", source=table, unit=unit, schema=SCHEMA)
    return sf.Session(made, budget=sf.Budget(epsilon=10**9, delta="1e-6"))


def levels(text: str) -> tuple[tuple[int, ...], ...]:
    table = sf.PrivateTable("t", source=rows(), unit=sf.PrivacyUnit("u"), schema=SCHEMA)
    return parse(f"SELECT COUNT(*) FROM t GROUP BY {text}", {"t": table}).child.levels


def test_the_sets_are_those_of_sql() -> None:
    assert levels("ROLLUP (country, sex)") == ((0, 1), (0,), ())
    assert levels("country, sex WITH ROLLUP") == ((0, 1), (0,), ())
    assert levels("CUBE (country, sex)") == ((0, 1), (0,), (1,), ())
    assert levels("country, ROLLUP (sex)") == ((0, 1), (0,))
    assert levels("GROUPING SETS ((country, sex), sex, ())") == ((0, 1), (1,), ())
    assert levels("ROLLUP ((country, sex), x)") == ((0, 1, 2), (0, 1), ())
    assert levels("ROLLUP (country, country)") == ((0,), ())
    assert levels("country, sex") == ()


@pytest.mark.parametrize(
    "grouping",
    [
        "ROLLUP (country, sex)",
        "CUBE (country, sex)",
        "GROUPING SETS ((country), (sex))",
        "country, ROLLUP (sex)",
    ],
)
def test_it_means_what_it_means_elsewhere(grouping: str) -> None:
    import duckdb

    t = rows()
    text = f"SELECT country, sex, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM t GROUP BY {grouping}"
    with session(t) as asked:
        released = asked.sql(text).release(epsilon=10**8, mechanism="laplace").table
    wanted = duckdb.sql(text).fetchall()
    found = list(zip(*(column.to_pylist() for column in released.columns), strict=True))
    order = lambda row: tuple(str(value) for value in row[:2])  # noqa: E731
    assert len(found) == len(wanted)
    for ours, theirs in zip(sorted(found, key=order), sorted(wanted, key=order), strict=True):
        assert ours[:4] == theirs[:4]
        assert ours[4] == pytest.approx(theirs[4], abs=1e-3)


def test_grouping_tells_totals_apart() -> None:
    import duckdb

    t = rows()
    text = (
        "SELECT country, sex, GROUPING(country) AS a, GROUPING(sex, country) AS b, COUNT(*) AS n FROM t "
        "GROUP BY CUBE (country, sex) HAVING GROUPING(sex) + GROUPING(country) < 2 "
        "ORDER BY GROUPING(sex), GROUPING(country), sex, country"
    )
    with session(t) as asked:
        query = asked.sql(text)
        assert query.release(epsilon=10**8, mechanism="laplace").table.to_pydict() == (
            duckdb.sql(text).arrow().read_all().to_pydict()
        )
        assert query.quote(epsilon=1).error()["b"] == 0
        plain = asked.sql("SELECT sex, GROUPING(sex) AS g, COUNT(*) AS n FROM t GROUP BY sex")
        assert plain.release(epsilon=1).table["g"].to_pylist() == [0, 0]
        with pytest.raises(QueryRefused, match="what GROUP BY names"):
            asked.sql("SELECT GROUPING(x), COUNT(*) FROM t GROUP BY ROLLUP (sex)")


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_a_unit_moves_all_levels_by_what_is_claimed(adjacency: str) -> None:
    t = rows()
    unit = sf.PrivacyUnit("u", max_groups=2, max_rows=2, adjacency=adjacency)  # type: ignore[arg-type]
    text = "SELECT country, sex, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY CUBE (country, sex)"
    with session(t, unit) as asked:
        base = exact(asked.sql(text))
    most = 0.0
    for gone in range(12):
        kept = t.filter(pa.compute.not_equal(t["u"], gone))
        if adjacency == "exchange":
            other = t.filter(pa.compute.equal(t["u"], gone + 1))
            other = other.set_column(0, "u", pa.array([gone] * len(other), pa.int64()))
            kept = pa.concat_tables([kept, other])
        with session(kept, unit) as asked:
            found = exact(asked.sql(text))
        for name in ("n", "s"):
            moves = np.abs(np.array(base.table[name]) - np.array(found.table[name]))
            assert moves.sum() <= base.l1[name] + 1e-6
            assert (moves**2).sum() <= base.l2[name] ** 2 + 1e-6
            most = max(most, moves.sum() / base.l1[name])
    assert most > 0.4


def test_what_has_no_rule_is_refused() -> None:
    with session(rows()) as asked:
        for text, reason in [
            ("SELECT city, MEDIAN(x) FROM t GROUP BY ROLLUP (city)", "sums over weighted rows"),
            ("SELECT city, COUNT(DISTINCT u) FROM t GROUP BY ROLLUP (city)", "weighted rows"),
            ("SELECT country, MEDIAN(x) FROM t GROUP BY ROLLUP (country)", "sums over weighted rows"),
            ("SELECT country, COUNT(DISTINCT u) FROM t GROUP BY CUBE (country)", "weighted rows"),
        ]:
            with pytest.raises(QueryRefused, match=reason):
                asked.sql(text).quote(epsilon=1)
