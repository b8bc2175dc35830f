"""Shares, totals and ranks over released groups: their intervals hold the values over all rows."""

import math
import random
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.plan.answers.covering import Covering, LeftOut
from sfumato.plan.expressions.tree import Call, Column

SURE = 1 - 1e-9  # so that no test fails by chance
COLUMNS = {
    "COUNT(*) / SUM(COUNT(*)) OVER ()": (0, 1),
    "100 * SUM(x) / SUM(SUM(x)) OVER ()": (0, 100),
    "-2.5 * COUNT(x) / NULLIF(SUM(COUNT(x)) OVER (), 0)": (-2.5, 0),
    "COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY h)": (0, 1),
    "SUM(COUNT(*)) OVER ()": (0, math.inf),
    "SUM(SUM(y)) OVER (PARTITION BY h)": (-math.inf, math.inf),
    "COUNT(*) - 0.25 * SUM(COUNT(*)) OVER ()": (-math.inf, math.inf),
    "RANK() OVER (ORDER BY COUNT(*) DESC)": (1, 6),
    "DENSE_RANK() OVER (PARTITION BY h ORDER BY SUM(y))": (1, 3),
    "NTILE(3) OVER (ORDER BY SUM(x) DESC)": (1, 3),
    "SUM(x) / COUNT(*)": (0, 10),
    "50 * COUNT(x) / NULLIF(COUNT(*), 0)": (0, 50),
    "SUM(CASE WHEN y > 0 THEN y ELSE 0 END) / COUNT(*)": (-6, 6),
}


def source(seed):
    """Heavy units in one group each, whose rows are alike, and many light ones."""
    draw = random.Random(seed)
    rows = []
    for who in range(90):
        heavy = who < 6
        g, h, y = draw.choice("ABC"), draw.choice("PQ"), draw.randint(-6, 6)
        for _ in range(draw.randint(20, 70) if heavy else draw.randint(1, 6)):
            if not heavy:
                g, h, y = draw.choice("ABC"), draw.choice("PQ"), draw.randint(-6, 6)
            rows.append({"who": who, "g": g, "h": h, "x": draw.choice([None, 0, 4, 10]), "y": y})
    return pa.Table.from_pylist(rows)


SOURCES = [source(seed) for seed in range(2)]


def question():
    shown = ", ".join(f"({column})::DOUBLE AS c{at}" for at, column in enumerate(COLUMNS))
    return f"SELECT g, h, {shown} FROM t GROUP BY g, h".replace("::DOUBLE", "")


def opened(rows, **limits):
    table = sf.PrivateTable(
        "t",
        source=rows,
        unit=sf.PrivacyUnit("who", ceiling=100, **limits),
        schema={
            "g": sf.Enum("A", "B", "C", nullable=False),
            "h": sf.Enum("P", "Q", nullable=False),
            "x": sf.Int(0, 10),
            "y": sf.Int(-6, 6, nullable=False),
        },
    )
    return sf.Session(table, budget=sf.Budget(10**8, "0.5"))


def cells(release, rows):
    """Each interval with the value over all rows and the column."""
    ends = release.interval(SURE).to_pylist()
    with duckdb.connect() as engine:
        engine.register("t", rows)
        found = engine.sql(question()).fetchall()
    known = {row[:2]: row[2:] for row in found}
    for row in ends:
        for at, column in enumerate(COLUMNS):
            true = known[row["g"], row["h"]][at]
            yield column, row[f"c{at}_low"], row[f"c{at}_high"], float(true)


LIMITS = [{"max_groups": 2, "max_rows": 4}, {"max_groups": 6, "max_rows": 98, "adjacency": "exchange"}]


@pytest.fixture(scope="module")
def answers():
    """The rows, whether there is a profile, and the release."""
    found = []
    for rows, limits in zip(SOURCES, LIMITS, strict=True):
        with opened(rows, **limits) as session:
            found.append((rows, False, session.sql(question()).release(epsilon=10**5)))
            session.profile("t", 2**15)
            found.append((rows, True, session.sql(question()).release(epsilon=10**5 + 1)))
    return found


def test_values_over_all_rows_are_covered(answers):
    told = dict.fromkeys(COLUMNS, 0)
    for rows, profiled, release in answers:
        for column, low, high, true in cells(release, rows):
            room = 1e-6 * (1 + abs(true))
            assert low - room <= true <= high + room, (column, low, high, true)
            least, most = COLUMNS[column]
            assert least <= low + room, column
            assert high <= most + room, column
            told[column] += profiled and (low > least + room) + (high < most - room)
    assert all(told.values()), told  # a profile says more than what is certain


def test_a_bound_that_moves_nothing_is_caught(answers, monkeypatch):
    """The planted bug: totals and shares forget the rows that were left out."""
    honest = Covering.summed

    def planted(self, expression, risk, moved):
        found = honest(self, expression, risk, moved)
        return found and (found[0], (0 * found[0][0], 0 * found[0][0]))

    monkeypatch.setattr(Covering, "summed", planted)
    missed = set()
    for rows, profiled, release in answers:
        if profiled:
            missed |= {column for column, low, high, true in cells(release, rows) if not low <= true <= high}
    assert any("OVER ()" in column and "/" in column for column in missed)
    assert "SUM(COUNT(*)) OVER ()" in missed


@pytest.mark.parametrize("others", [0, 1, 2, 7])
def test_parts_of_an_expression_share_one_risk(answers, others):
    """All that may fail, added up: ends of what was measured, and the bound of what was left out."""
    estimates = answers[0][2]._estimates
    cover, solver = estimates._cover, estimates._solver
    moved = next(Column(name) for name, cut in cover.cuts.items() if cut.row == (1.0, 1.0))
    still = [Column(f"a{90 + place}") for place in range(others)]
    spent = {}

    class Watched(type(solver)):
        def solved(self, expression, risk):
            # A part that is moved has another risk for each of its ends.
            spent[expression, risk] = risk / (2 if expression == moved else 1)
            return super().solved(moved, risk)

    def rows(risk):
        spent["rows", risk] = risk
        return 5.0

    facts = (getattr(solver, name) for name in ("noisy", "noises", "laws", "keys", "affine", "solve", "rows"))
    watched = Watched(*facts)
    cut = cover.cuts[moved.name]
    cuts = {moved.name: cut} | {each.name: cut.uncut for each in still}
    bound = LeftOut(rows, rows, frozenset(cuts))
    both = replace(cover, solver=watched, cuts=cuts, left_out=bound, over=None)
    expression = moved
    for each in still:
        expression = Call("multiply", (expression, each))
    both.interval(expression, 0.1)
    assert len(spent) == 3 + others
    assert math.fsum(spent.values()) <= 0.1 * (1 + 1e-9)
