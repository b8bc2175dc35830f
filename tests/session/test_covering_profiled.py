"""Intervals over all rows by a profile: as tight as they can be, and still over all rows.

Noise is next to nothing here, and each table is one for which the bound is the truth: a unit on a rung of the
ladder whose rows all have a number at an end of its bounds, or units of which half lose a row in each group.
So whatever counts less as left out than limits left out is seen at once.
"""

import math
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.support.covered import SCHEMA, SURE, asked, held, truth

import sfumato as sf
from sfumato.engines.prepare import prepare

MANY = 2**15  # of epsilon: no noise to speak of
COLUMNS = [
    "COUNT(*)",
    "COUNT(x)",
    "COUNT(*) + 2 * COUNT(x) + 7",
    "-COUNT(*) / 4",
    "COUNT(x) - COUNT(*)",
    "SUM(x)",
    "SUM(y)",
    "SUM(-y)",
    "SUM(z)",
    "SUM(z) - SUM(x)",
    "SUM(x) + SUM(z)",
    "COUNT(*) - SUM(z)",
    "AVG(x)",
    "AVG(-y)",
    "AVG(x) + COUNT(*)",
    "SUM(x) / COUNT(*)",
    "SUM(z) / COUNT(*)",
    "SQRT(SUM(x))",
    "GREATEST(COUNT(*), 3)",
    "COUNT(DISTINCT who)",
]


def row(who, key, *, end=False):
    """A row in the middle of all bounds, or at an end of each."""
    city = "pqr"["ABC".index(key)]
    x, y, z = (10, 6, -9) if end else (0, -6, -1)
    return {"who": who, "g": key, "city": city, "x": x, "y": y, "z": float(z)}


ONES = [row(at, "ABC"[at % 3]) for at in range(1000, 1060)]
HEAVY = pa.Table.from_pylist([row(1, "A", end=True) for _ in range(100)] + ONES)
WIDE = pa.Table.from_pylist([row(at, key, end=True) for at in range(40) for key in "AB"])
TABLES = {
    "two groups": (HEAVY, sf.PrivacyUnit("who", max_groups=2, max_rows=4)),
    "once": (HEAVY, sf.PrivacyUnit("who", max_groups=2)),
    "exchange": (HEAVY, sf.PrivacyUnit("who", max_groups=2, max_rows=4, adjacency="exchange")),
    "one group": (WIDE, sf.PrivacyUnit("who", max_groups=1, max_rows=20)),
}
FORMS = [
    ("two groups", None, "", "true", None),
    ("two groups", None, "g", "y > 0", None),
    ("two groups", None, "g", "true", "choose"),
    ("two groups", None, "city", "true", None),
    ("two groups", "g", "g", "true", None),
    ("two groups", "g", "", "true", None),
    ("two groups", "city", "city", "true", None),
    ("once", None, "g", "true", "choose"),
    ("exchange", None, "g", "true", None),
    ("one group", None, "g", "true", None),
    ("one group", None, "g", "true", "choose"),
    ("one group", None, "city", "true", None),
    ("one group", "g", "g", "true", None),
]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """Sessions with a profile, made as they are asked for: by table and what it is prepared for."""
    made = {}

    def session(name, by):
        if (name, by) not in made:
            source, unit = TABLES[name]
            table = sf.PrivateTable("t", source=source, unit=unit, schema=SCHEMA)
            if by:
                path = tmp_path_factory.mktemp("prepared") / "t.duckdb"
                table = replace(table, source=prepare(table, path, group_by=(by,)).path)
            made[name, by] = sf.Session(table, budget=sf.Budget(10**8, "0.5"))
            made[name, by].profile("t", MANY)
        return made[name, by]

    yield session
    for each in made.values():
        each.close()


@pytest.mark.parametrize(("name", "by", "key", "where", "bounding"), FORMS)
def test_no_row_that_limits_leave_out_is_forgotten(sessions, name, by, key, where, bounding):
    columns, release = asked(sessions(name, by), COLUMNS, key, where, bounding)
    cells = list(held(release, columns, key, where, TABLES[name][0]))
    assert len(cells) >= len(COLUMNS)
    for column, low, high, true in cells:
        room = 1e-6 * (1 + abs(true))
        assert low - room <= true <= high + room, (column, low, high, true)
        assert math.isfinite(low), (column, low, high)
        assert math.isfinite(high), (column, low, high)


def test_where_limits_can_cut_nothing_intervals_are_those_of_the_noise():
    unit = sf.PrivacyUnit("who", max_groups=3, max_rows=8, ceiling=8)
    table = sf.PrivateTable("t", source=WIDE, unit=unit, schema=SCHEMA)
    own = [column for column in COLUMNS if "/ COUNT" not in column]  # shares are held within their range
    shown = ", ".join(f"{column} AS c{at}" for at, column in enumerate(own))
    with sf.Session(table, budget=sf.Budget(100)) as session:
        session.profile("t", 1)
        release = session.sql(f"SELECT {shown} FROM t").release(epsilon=50)
    for confidence in (0.5, 0.95):
        assert release.interval(confidence) == release.interval(confidence, kind="noise")


CLAMPED = {
    "COUNT(*, contribution_bounds_per_group => (0, 1))": "COUNT(*)",
    "SUM(x, contribution_bounds_per_group => (0, 9))": "SUM(x)",
}


@pytest.mark.parametrize("own", CLAMPED)
def test_what_bounds_for_a_units_own_figure_take_is_not_forgotten(sessions, own):
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY g AS k, {own} AS c0 FROM t GROUP BY g"
    release = sessions("two groups", None).sql(text).release(epsilon=10**5, delta="1e-6")
    for column, low, high, true in held(release, [CLAMPED[own]], "g", "true", HEAVY):
        assert low - 1e-3 <= true <= high + 1e-3, (column, low, high, true)


def test_no_row_that_limits_leave_out_is_forgotten_on_several_levels(sessions):
    text = "SELECT g AS k, COUNT(*) AS c0, SUM(x) AS c1 FROM t GROUP BY ROLLUP(g)"
    release = sessions("two groups", None).sql(text).release(epsilon=10**5)
    columns = ["COUNT(*)", "SUM(x)"]
    known = truth(columns, "g", "true", source=HEAVY) | truth(columns, "", "true", source=HEAVY)
    ends = release.interval(SURE).to_pylist()
    assert len(ends) == len(known) == 4
    for row in ends:
        assert row["c0_high"] == math.inf  # limits hold for all levels together, and a profile is of one
        for at, true in enumerate(known[row["k"]]):
            assert row[f"c{at}_low"] - 1e-3 <= true <= row[f"c{at}_high"] + 1e-3, (columns[at], row)


@pytest.mark.parametrize("key", ["", "g"])
def test_of_values_that_nobody_vouches_for_a_profile_of_rows_says_nothing(sessions, key):
    """Distinct values have a limit of their own, for which no bound on rows left out holds."""
    by = (f"{key} AS k, ", f" GROUP BY {key}") if key else ("", "")
    text = f"SELECT {by[0]}COUNT(*) AS n, COUNT(DISTINCT z) AS d FROM t{by[1]}"
    release = sessions("two groups", None).sql(text).release(epsilon=10**5)
    for ends in release.interval(SURE).to_pylist():
        assert math.isfinite(ends["n_high"])
        assert ends["d_high"] == math.inf


def test_a_profile_of_groups_is_not_for_several_levels():
    """A unit is in more groups on two levels than on one: nothing is said of tables where it is in few."""
    unit = sf.PrivacyUnit("who", max_groups=1)
    table = sf.PrivateTable("t", source=WIDE, unit=unit, schema=SCHEMA)
    with sf.Session(table, budget=sf.Budget(10**8, "0.5")) as session:
        session.profile("t", MANY, by="city")
        one, two = (
            session.sql(f"SELECT city, COUNT(*) AS n FROM t GROUP BY {by}").release(epsilon=500, delta="1e-6")
            for by in ("city", "ROLLUP(city)")
        )
        assert "is in more than" in str(one)
        assert "is in more than" not in str(two)
        assert {row["n_high"] for row in two.interval(SURE).to_pylist()} == {math.inf}
