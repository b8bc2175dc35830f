"""Tables prepared for a grouping: ranks of groups and of rows in them follow from a unit's own rows."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import defaultdict

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

import sfumato as sf
from sfumato.engines import ranking
from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN, RANK_COLUMN, UNIT_COLUMN
from sfumato.engines.dialect import DUCKDB
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.prepare import prepare
from sfumato.engines.prepared import METADATA
from sfumato.errors import InvalidParameter, SourceUnusable
from sfumato.sql.write.typed import Typed, canonical
from sfumato.testing.statistics import assert_discrete, discrete_finding

pytestmark = pytest.mark.duckdb  # prepared files

SCHEMA = {"country": sf.Text(), "amount": sf.Float(0, 10), "day": sf.Date(), "age": sf.Int(0, 99)}
KINDS = {name: kind.kind for name, kind in SCHEMA.items()}
UNIT = sf.PrivacyUnit("user", max_groups=2, max_rows=6)
SALT = b"a salt of tests"
SUBSETS = dict.fromkeys(itertools.combinations(range(6), 3), 1 / 20)
DAYS = [None, 0, 2932896, 2932897, -719162, -719163, 2**31 - 1, -(2**31) + 2]  # years 1 and 9999, infinities
FLOATS = [None, math.nan, -math.nan, 0.0, -0.0, 2.5, math.inf]
GROUPINGS = [("country",), ("amount",), ("day",), ("amount", "day"), ("day", "country", "age")]


def some_rows(seed=1, users=30, kind=int):
    """Rows of users with 1 to 25 of them: many are the same, many keys are the same in another form."""
    draw = random.Random(seed)
    return [
        {
            "user": kind(user),
            "country": draw.choice(["FR", "fr", "", None]),
            "amount": draw.choice(FLOATS),
            "day": draw.choice(DAYS),
            "age": draw.choice([1, None]),
        }
        for user in range(users)
        for _ in range(draw.choice([1, 5, 25]))
    ]


def frame(rows, unit=None):
    types = {"user": unit or pa.int64(), "country": pa.string(), "amount": pa.float64(), "age": pa.int64()}
    made = {name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()}
    return pa.table({**made, "day": pa.array([row["day"] for row in rows], pa.int32()).view(pa.date32())})


def table_of(source, schema=None):
    return sf.PrivateTable("visits", source=source, unit=UNIT, schema=SCHEMA if schema is None else schema)


def made(tmp_path, rows, group_by, name="p", **options):
    options = {"salt": SALT, **options}
    return prepare(table_of(frame(rows)), tmp_path / f"{name}.duckdb", group_by=group_by, **options)


def read(path, text, schema=None):
    with DuckDB(threads=2) as engine:
        engine.attach("t", path, KINDS if schema is None else schema, unit="user")
        return engine.fetch(parse_one(text, dialect="duckdb")).to_pylist()


RANKS = f'"{RANK_COLUMN}" AS rank, "{GROUP_COLUMN}" AS g, "{PLACE_COLUMN}" AS i'
LINES = f"""
    SELECT "{UNIT_COLUMN}" AS unit, country, CAST(amount AS VARCHAR) AS amount,
           CASE WHEN isfinite(day) THEN date_diff('day', DATE '1970-01-01', day) ELSE 10**9 END AS day, age,
           {RANKS} FROM t
"""


def lines(tmp_path, rows, group_by, name="p", **options):
    """All that the file has of each unit, in a fixed order; floats as text: NaN would differ from itself."""
    units = defaultdict(list)
    for row in read(made(tmp_path, rows, group_by, name, **options).path, LINES):
        units[row.pop("unit")].append(row)
    return {unit: sorted(found, key=lambda row: row["rank"]) for unit, found in units.items()}


def group_of(row, group_by):
    """What is one group, worked out by hand."""
    key = dict(row)
    key["amount"] = None if key["amount"] in ("nan", "-nan") else key["amount"]
    known = key["day"] is not None and -719162 <= key["day"] <= 2932896
    key["day"] = key["day"] if known else None
    return tuple(key[name] for name in group_by)


@pytest.mark.parametrize(
    ("group_by", "hashed"), [*((each, True) for each in GROUPINGS), (GROUPINGS[-2], False)], ids=str
)
def test_groups_are_ranked_within_units_and_rows_within_both(tmp_path, monkeypatch, group_by, hashed):
    rows = some_rows()
    if not hashed:  # were every hash the same, the groups themselves would decide
        one = ranking.group_rank
        monkeypatch.setattr(
            ranking,
            "group_rank",
            lambda *args: one(*args).replace("hash(hash(", "0 * length(concat("),
        )
    found = lines(tmp_path, rows, group_by)
    assert sum(map(len, found.values())) == len(rows)
    for mine in found.values():
        assert [row["rank"] for row in mine] == list(range(1, len(mine) + 1))
        groups = defaultdict(list)
        for row in mine:  # in the order of their ranks
            groups[group_of(row, group_by)].append(row)
        ranks = [{row["g"] for row in group} for group in groups.values()]
        assert sorted(ranks, key=min) == [{place} for place in range(1, len(groups) + 1)]
        for group in groups.values():
            assert [row["i"] for row in group] == list(range(1, len(group) + 1))
    assert max(row["g"] for mine in found.values() for row in mine) > 1


@pytest.mark.parametrize("group_by", [("amount",), ("country", "day")], ids=" ".join)
def test_ranks_follow_from_the_rows_of_the_unit_alone(tmp_path, group_by):
    rows = some_rows()
    whole = lines(tmp_path, rows, group_by)
    for removed in (0, 29):
        less = [row for row in rows if row["user"] != removed]
        kept = {unit: mine for unit, mine in whole.items() if unit != removed}
        assert lines(tmp_path, less, group_by, f"without {removed}") == kept
    for number, threads in enumerate((1, 4)):
        shuffled = random.Random(number).sample(rows, len(rows))
        assert lines(tmp_path, shuffled, group_by, f"shuffled {number}", threads=threads) == whole
    assert lines(tmp_path, rows, group_by, "another salt", salt=b"another") != whole


def test_the_ranks_of_rows_are_those_of_a_file_without_a_grouping(tmp_path):
    rows = some_rows()
    plain = f'SELECT "{UNIT_COLUMN}" AS u, "{RANK_COLUMN}" AS rank, country, age FROM t ORDER BY ALL'
    one = prepare(table_of(frame(rows)), tmp_path / "one.duckdb", salt=SALT).path
    two = made(tmp_path, rows, ("country", "age"), "two").path
    assert read(one, plain) == read(two, plain)


def test_one_unit_under_two_forms_of_its_id_is_one(tmp_path):
    rows = [{**row, "user": (0.0, -0.0, 1.0)[i % 3]} for i, row in enumerate(some_rows(users=6))]
    path = prepare(table_of(frame(rows, pa.float64())), tmp_path / "p.duckdb", group_by="country").path
    found = read(path, f'SELECT "{UNIT_COLUMN}" + 0.0 AS u, country, {RANKS} FROM t')
    for unit in (0.0, 1.0):
        mine = [row for row in found if row["u"] == unit]
        assert len({(row["country"], row["g"]) for row in mine}) == len({row["country"] for row in mine}) == 4
        assert len({(row["country"], row["i"]) for row in mine}) == len(mine)


@pytest.mark.parametrize("kind", ["float", "date", "text", "integer", "boolean"])
def test_a_group_of_the_file_is_a_group_of_an_open_group_by(kind):
    values = {
        "float": "unnest([NULL, 'nan', '-nan', '0', '-0', '2.5', 'inf', '-inf']::DOUBLE[])",
        "date": "unnest([NULL, '0001-01-01', '9999-12-31', 'infinity', '-infinity']::DATE[] || "
        "[DATE '0001-01-01' - 1, DATE '9999-12-31' + 1])",
        "text": "unnest([NULL, 'a', 'A', '', 'nan'])",
        "integer": "unnest([NULL, 0, 7]::BIGINT[])",
        "boolean": "unnest([NULL, true, false])",
    }[kind]
    theirs = canonical(Typed(exp.column("x", quoted=True), kind), DUCKDB).sql.sql("duckdb")
    ours = ranking.canonical("x", kind, DUCKDB)
    (found,) = duckdb.sql(
        f"SELECT count(*), count_if(a IS NOT DISTINCT FROM b AND hash(a) = hash(b)), count(DISTINCT a) "
        f"FROM (SELECT {theirs} AS a, {ours} AS b FROM (SELECT {values} AS x))"
    ).fetchall()
    assert found[0] == found[1]
    assert found[2] == {"float": 4, "date": 2, "text": 4, "integer": 2, "boolean": 2}[kind]


def _first_three(expression: str) -> list[tuple[int, ...]]:
    """For each unit and salt which of six groups, of two rows each, have ranks 1, 2, 3."""
    by_salt = expression.replace("PARTITION BY", "PARTITION BY s,")
    text = f"""
        SELECT u, s, list(DISTINCT x ORDER BY x) FROM (
            SELECT "{UNIT_COLUMN}" AS u, s, x, {by_salt} AS r
            FROM (SELECT unnest(range(200)) AS "{UNIT_COLUMN}"), (SELECT unnest(range(100)) AS s),
                 (SELECT unnest(range(6)) AS x), (SELECT unnest(range(2)) AS y)
        ) WHERE r <= 3 GROUP BY u, s
    """
    return [tuple(row[2]) for row in duckdb.sql(text).fetchall()]


def test_which_groups_come_first_is_uniform_over_subsets():
    assert_discrete(_first_three(ranking.group_rank(['"x"'], "s", DUCKDB.digest)), SUBSETS)


def test_a_hash_that_is_taken_once_is_not_uniform():
    once = ranking.group_rank(['"x"'], "s", DUCKDB.digest).replace("hash(hash(", "(hash(")
    assert discrete_finding(_first_three(once), SUBSETS).p < 1e-9


def test_ranks_beyond_the_last_are_cut_and_never_wrap(tmp_path, monkeypatch):
    monkeypatch.setattr(ranking, "_LAST", 2)
    rows = some_rows()
    whole = lines(tmp_path, rows, ("country",))
    monkeypatch.undo()
    for unit, mine in lines(tmp_path, rows, ("country",), "whole").items():
        cut = [{name: min(row[name], 2) for name in ("rank", "g", "i")} for row in mine]
        order = sorted(cut, key=lambda row: [*row.values()])
        found = [{name: row[name] for name in ("rank", "g", "i")} for row in whole[unit]]
        assert sorted(found, key=lambda row: [*row.values()]) == order


def note_of(path):
    with duckdb.connect(str(path), read_only=True) as connection:
        ((text,),) = connection.execute(f'SELECT note FROM "{METADATA}"').fetchall()
    return json.loads(text)


def test_the_note_says_the_grouping_and_files_without_one_are_as_before(tmp_path):
    rows = some_rows()
    grouped = made(tmp_path, rows, ("day", "country"))
    assert grouped.groups == ("day", "country")
    plain = made(tmp_path, rows, (), "plain")
    assert plain.groups == ()
    assert note_of(grouped.path) | {"format": 1} == note_of(plain.path) | {"groups": ["day", "country"]}
    assert (note_of(plain.path)["format"], note_of(grouped.path)["format"]) == (1, 2)
    assert ranking.statement("t", KINDS, SALT, DUCKDB) == ranking.statement("t", KINDS, SALT, DUCKDB, ())


def test_an_engine_says_which_grouping_a_table_serves(tmp_path):
    path = made(tmp_path, some_rows(), ("day", "Country")).path
    with DuckDB() as engine:
        engine.attach("t", path, KINDS, unit="user")
        engine.attach("u", path, {"COUNTRY": "text", "day": "date"}, unit="user")
        engine.attach("v", path, {"country": "text"}, unit="user")
        engine.attach("w", path, KINDS)
        engine.attach("x", made(tmp_path, some_rows(), (), "plain").path, KINDS, unit="user")
        found = {name: engine.grouping(name) for name in ("t", "T", "u", "v", "w", "x", "y")}
        served = {"t": ("day", "country"), "T": ("day", "country"), "u": ("day", "COUNTRY")}
        assert found == served | dict.fromkeys("vwxy", ())
        ranks = {RANK_COLUMN, GROUP_COLUMN, PLACE_COLUMN}
        shown = {
            name: ranks & {*engine.fetch(parse_one(f"SELECT * FROM {name} LIMIT 0")).column_names}
            for name in "tuvwx"
        }
        assert shown == {"t": ranks, "u": ranks, "v": {RANK_COLUMN}, "w": set(), "x": {RANK_COLUMN}}
        assert set(engine.schema(path)) == {"user", *KINDS}
    again = prepare(table_of(str(path)), tmp_path / "again.duckdb", group_by="age", salt=SALT)
    assert again.groups == ("age",)


@pytest.mark.parametrize("name", [GROUP_COLUMN, PLACE_COLUMN])
def test_the_names_of_ranks_are_kept(name):
    with DuckDB() as engine, pytest.raises(SourceUnusable, match=f'"{name}" is kept for ranks'):
        engine.attach("t", frame(some_rows()), {name.upper(): "integer"}, unit="user")


@pytest.mark.parametrize("groups", [["city"], None, 3])
def test_a_note_with_another_grouping_is_refused(tmp_path, groups):
    path = made(tmp_path, some_rows(), ("day",)).path
    note = note_of(path)
    note["groups"] = groups
    with duckdb.connect(str(path)) as connection:
        connection.execute(f'UPDATE "{METADATA}" SET note = ?', [json.dumps(note)])
    with DuckDB() as engine, pytest.raises(SourceUnusable, match="not prepared by this version"):
        engine.attach("t", path, KINDS, unit="user")


def test_what_cannot_be_grouped_by_is_told_in_a_sentence(tmp_path):
    rows = frame(some_rows())
    with pytest.raises(
        InvalidParameter, match="no declared column 'city' to group by; it has country, amount"
    ):
        prepare(table_of(rows), tmp_path / "p.duckdb", group_by=("country", "city"))
    for schema in (SCHEMA, {**SCHEMA, "user": sf.Int()}):
        with pytest.raises(InvalidParameter, match="user is the privacy unit, not a group"):
            prepare(table_of(rows, schema), tmp_path / "p.duckdb", group_by="USER")
    assert list(tmp_path.iterdir()) == []
    assert made(tmp_path, some_rows(), ("age", "AGE")).groups == ("age",)
