"""Keys with too long a public list of values are refused before they are paid, never taken for unknown."""

import datetime
import re

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.sql.asking import ask

MOST = 100_000
DAY = datetime.date(2024, 5, 31)
LATER = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)
TYPES = {
    "whole": (sf.Int(0, 10 * MOST - 1), 7),
    "just": (sf.Int(1, MOST + 1), 7),
    "day": (sf.Date("0001-01-01", "2999-12-31"), DAY),
    "code": (sf.Int(), 7),
    "word": (sf.Text(), "a"),
}
ROWS = 400
SOME = [*((i, "a") for i in range(1, 400)), (0, "b")]
REFUSED = [
    "whole",
    "just",
    "day",
    "whole + 1",
    "2 * whole",
    "-whole",
    "whole, word",
    "ROLLUP(whole)",
    "code % 1000000",
]
FOUND = ["CAST(whole AS VARCHAR)", "CAST(day AS VARCHAR)", "code", "word", "UPPER(word)"]
LISTED = {
    "whole IN (5, 7)": ("whole", 2),
    "whole BETWEEN 1 AND 20": ("whole", 20),
    "just <= 20": ("just", 20),
    "day BETWEEN DATE '2024-05-01' AND DATE '2024-05-31'": ("day", 31),
}


@pytest.fixture(scope="module")
def session():
    columns = {name: [value] * ROWS for name, (_, value) in TYPES.items()}
    table = sf.PrivateTable(
        "t",
        source=pa.table({"u": list(range(ROWS)), **columns}),
        unit=sf.PrivacyUnit("u"),
        schema={name: kind for name, (kind, _) in TYPES.items()},
    )
    with sf.Session(table, budget=sf.Budget(1000, "0.1")) as opened:
        yield opened


@pytest.mark.parametrize("key", REFUSED)
def test_a_list_that_is_too_long_is_refused_with_the_ways_out(session, key):
    spent = session.balance().spent
    with pytest.raises(QueryRefused) as refusal:
        session.sql(f"SELECT COUNT(*) AS n FROM t GROUP BY {key}").release(epsilon=1)
    told = str(refusal.value)
    assert re.search(r"has [\d,]+ possible values, more than the 100,000 groups", told)
    assert "WHERE" in told
    assert "Keys" in told
    assert "found in the data" in told
    assert session.balance().spent == spent


@pytest.mark.parametrize("key", ["at", "DATE_TRUNC('minute', at)", "DATE_TRUNC('hour', at)"])
@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("0001-01-01", "9999-12-31T23:59:59"),
        ("1969-12-01T07:30:00", "2100-01-01"),
        ("9000-01-01", "9999-12-31"),
    ],
)
def test_the_stretch_of_moments_that_is_named_is_short_enough_also_for_a_series(key, start, end):
    table = sf.PrivateTable(
        "t",
        source=pa.table({"at": [datetime.datetime.fromisoformat(start)]}),
        unit=sf.PrivacyUnit.row(),
        schema={"at": sf.Timestamp(start, end)},
    )
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM t WHERE TRUE GROUP BY 1"
    with sf.Session(table, budget=sf.Budget(10, "1e-5")) as opened:
        with pytest.raises(QueryRefused, match="possible values") as refusal:
            opened.sql(text)
        where = re.search(r"WHERE at >= '(.*?)' AND at < '.*?'", str(refusal.value))
        narrowed = text.replace("WHERE TRUE", where[0])
        assert 600 <= opened.sql(narrowed).quote(epsilon=1).measured.groups <= MOST
        if key != "at":
            steps = opened.stream(narrowed, start=where[1], horizon=600, epsilon=1, delta="1e-6")
            assert steps.advance(f"{where[1]} 00:00:00", now=LATER) == 1


def test_a_long_list_of_names_is_refused_too():
    names = sf.Enum(*(f"n{at}" for at in range(MOST + 1)))
    table = sf.PrivateTable("t", source="t.parquet", unit=sf.PrivacyUnit("u"), schema={"name": names})
    with pytest.raises(
        QueryRefused, match=r"100,001 possible values.*Keys; a column that is declared as Text"
    ):
        ask("SELECT COUNT(*) AS n FROM t GROUP BY name", {"t": table})
    asked = ask("SELECT COUNT(*) AS n FROM t WHERE name IN ('n7', 'n8') GROUP BY name", {"t": table})
    assert asked.plan.recipe.measured.groups == 2


def test_the_builder_says_the_same(session):
    with pytest.raises(QueryRefused, match="possible values"):
        session.table("t").group_by("whole").agg(n=sf.count())
    keys = session.table("t").group_by(sf.Keys(whole=[7, 8])).agg(n=sf.count())
    assert keys.quote(epsilon=1).measured.groups == 2


@pytest.mark.parametrize("key", FOUND)
def test_groups_are_found_where_that_is_asked_for(session, key):
    release = session.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY 1").release(
        epsilon=5, delta="1e-6"
    )
    assert release.quote.measured.groups is None
    assert release.table.num_rows == 1


@pytest.mark.parametrize("where", LISTED)
def test_what_a_condition_leaves_is_listed(session, where):
    key, groups = LISTED[where]
    quote = session.sql(f"SELECT {key}, COUNT(*) AS n FROM t WHERE {where} GROUP BY 1").quote(epsilon=1)
    assert quote.measured.groups == groups


@pytest.mark.parametrize(
    ("keys", "many"),
    [
        (lambda: [sf.Keys(code=range(MOST + 1))], MOST + 1),
        (lambda: [sf.Keys(code=range(400), whole=range(400))], 160_000),
        (lambda: [sf.Keys.of(("code", "whole"), ((i, i) for i in range(MOST + 1)))], MOST + 1),
        (lambda: [sf.Keys.of(("code", "word"), SOME), sf.Keys(whole=range(400))], 160_000),
        (lambda: [sf.Keys(code=range(400)), sf.Keys(whole=range(400))], 160_000),
    ],
)  # fmt: skip
def test_lists_of_keys_that_are_too_long_are_refused_with_their_number(session, keys, many):
    spent = session.balance().spent
    with pytest.raises(QueryRefused, match=f"would have {many:,} groups"):
        session.table("t").group_by(*keys()).agg(n=sf.count())
    assert session.balance().spent == spent


def test_long_lists_of_keys_are_asked(session):
    assert session.table("t").group_by(sf.Keys(code=range(MOST // 3))).agg(n=sf.count())
