"""A prepared file that somebody wrote to: what ranks leave of a unit is enforced, never believed."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import sources
from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN, RANK_COLUMN, UNIT_COLUMN
from sfumato.engines.dialect import DUCKDB
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.prepare import prepare
from sfumato.errors import EngineFailed, SourceUnusable
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.questions.bounding import boundings
from sfumato.plan.questions.nodes import Measurement
from sfumato.plan.questions.sensitivity import sensitivities, sensitivity
from sfumato.session.reading import reading
from sfumato.sql.read.parse import parse
from sfumato.sql.write.lower import lower
from sfumato.sql.write.ranks import guard
from sfumato.testing import exact

pytestmark = pytest.mark.duckdb  # prepared files

SCHEMA = {"country": sf.Enum("FR", "DE", "IT"), "city": sf.Text(), "age": sf.Int(0, 9)}
KINDS = {name: kind.kind for name, kind in SCHEMA.items()}
UNIT = sf.PrivacyUnit("user", max_groups=2, max_rows=4)
COUNT = "SELECT COUNT(*) AS n FROM visits"
CITIES = "SELECT city, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY city"
QUESTIONS = {
    "rows": (COUNT, "prepared"),
    "rows by country": (CITIES.replace("city", "country"), "prepared"),
    "rows of cities": (CITIES, "grouped"),
    "units of cities": ("SELECT city, COUNT(DISTINCT user) AS n FROM visits GROUP BY city", "grouped"),
}
U, R, G, P = (f'"{each}"' for each in (UNIT_COLUMN, RANK_COLUMN, GROUP_COLUMN, PLACE_COLUMN))
ALTERED = "A prepared file is not as it was written; prepare its table again"
APPENDED = f"INSERT INTO visits SELECT v.* REPLACE (1 AS {R}) FROM visits AS v, range(501) WHERE {U} = 2"


def table_of(source):
    return sf.PrivateTable("visits", source=source, unit=UNIT, schema=SCHEMA)


def rows_of(users=6, seed=3):
    draw = random.Random(seed)
    rows = [
        (user, draw.choice(["FR", "DE", "IT"]), draw.choice("abcd"), draw.randint(0, 9))
        for user in range(users)
        for _ in range(draw.randint(2, 9))
    ]
    return pa.table(dict(zip(("user", "country", "city", "age"), zip(*rows, strict=True), strict=True)))


def made(tmp_path, name="p", **options):
    return prepare(table_of(rows_of()), tmp_path / f"{name}.duckdb", salt=b"a salt", **options).path


def write(path, *statements):
    """Run statements on a file, and close it."""
    with duckdb.connect(str(path)) as connection:
        for each in statements:
            connection.execute(each)


def asked(path, text=COUNT):
    with sf.Session(table_of(path), budget=sf.Budget(10**6, "0.1")) as session:
        return session.sql(text).release(epsilon=1000, delta=0 if text == COUNT else "0.01")


def test_rows_appended_with_rank_one_give_no_answer(tmp_path):
    path = made(tmp_path)
    asked(path)
    write(path, APPENDED)
    with sf.Session(table_of(path), budget=sf.Budget(9)) as session:
        with pytest.raises(EngineFailed, match=ALTERED) as refused:
            session.sql(COUNT).release(epsilon=1)
        assert refused.value.__cause__ is refused.value.__context__ is None
        assert session.balance().spent == 1  # paid before anything was read
        # What relies on no ranks is held within the limits as of any other table.
        users = exact(session.sql("SELECT COUNT(DISTINCT user) AS n FROM visits"))
        assert users.table["n"].to_pylist() == [6]


@pytest.mark.parametrize("times", [1, 2, 4])
def test_a_row_copied_an_even_number_of_times_is_found_too(tmp_path, times):
    path = made(tmp_path)
    unit = f"(SELECT {U} FROM visits WHERE {R} = 4 LIMIT 1)"
    copied = f"INSERT INTO visits SELECT * FROM visits WHERE {U} = {unit} AND {R} = 1 LIMIT 1"
    write(path, *[copied] * times)
    with pytest.raises(EngineFailed, match=ALTERED):
        asked(path)


@pytest.mark.parametrize(
    "change",
    [
        f"INSERT INTO visits SELECT * REPLACE (NULL AS {U}) FROM visits WHERE {R} = 1",
        f"UPDATE visits SET {R} = 0",
        f"UPDATE visits SET {U} = 2",
    ],
)
def test_other_ways_to_more_rows_of_a_unit_are_found(tmp_path, change):
    path = made(tmp_path)
    write(path, change)
    with pytest.raises(EngineFailed, match=ALTERED):
        asked(path)


@pytest.mark.parametrize(
    "change",
    [
        f"UPDATE visits SET {G} = 1, {P} = 1",  # all of a unit's groups are its first
        "UPDATE visits SET city = 'a'",  # two groups are one, in which a unit has twice the rows
        f"INSERT INTO visits SELECT * FROM visits WHERE {P} = 1",
        f"UPDATE visits SET {G} = 0, {P} = 0 WHERE {G} > 2",
    ],
)
def test_ranks_of_groups_are_enforced_too(tmp_path, change):
    path = made(tmp_path, group_by="city")
    asked(path, CITIES)
    write(path, change)
    with pytest.raises(EngineFailed, match=ALTERED):
        asked(path, CITIES)


@pytest.mark.parametrize(
    "changes",
    [
        [f"ALTER TABLE visits ALTER {R} TYPE DOUBLE"],
        [f"ALTER TABLE visits DROP {R}"],
        [
            "CREATE TABLE other AS FROM visits",
            "DROP TABLE visits",
            f"CREATE TABLE visits ({U} BIGINT, country VARCHAR, city VARCHAR, age BIGINT, "
            f"{R} UINTEGER GENERATED ALWAYS AS (CAST(1 + 9 * random() AS UINTEGER)))",
            f"INSERT INTO visits SELECT * EXCLUDE ({R}) FROM other",
            "DROP TABLE other",
        ],
    ],
)
def test_columns_that_are_not_what_was_prepared_are_refused_when_attached(tmp_path, changes):
    path = made(tmp_path)
    write(path, *changes)
    with pytest.raises(SourceUnusable, match="was not prepared by this version; prepare the table again"):
        asked(path)


def test_a_collation_that_was_written_into_the_file_merges_no_ids(tmp_path):
    rows = pa.table({"user": ["a", "A"] * 3, "country": ["FR"] * 6, "city": ["a"] * 6, "age": [1] * 6})
    path = prepare(table_of(rows), tmp_path / "p.duckdb").path
    write(path, f"ALTER TABLE visits ALTER {U} TYPE VARCHAR USING ({U} COLLATE NOCASE)")
    changed = ["CREATE TABLE v AS FROM visits", "DROP TABLE visits"]
    shown = f"{U} VARCHAR COLLATE NOCASE, country VARCHAR, city VARCHAR, age BIGINT, {R} UINTEGER"
    write(path, *changed, f"CREATE TABLE visits ({shown})", "INSERT INTO visits FROM v", "DROP TABLE v")
    with sf.Session(table_of(path), budget=sf.Budget(9)) as session:
        assert exact(session.sql("SELECT COUNT(DISTINCT user) AS n FROM visits")).table["n"].to_pylist() == [
            2
        ]


def test_what_is_written_between_two_reads_is_found_whatever_was_checked_before(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_SETTLED", 0)  # remembered at once
    path, altered = made(tmp_path), made(tmp_path, "altered")
    write(altered, APPENDED)
    table = table_of(str(path))
    question = _question(COUNT, "prepared", table)
    read, held = lower(question, table, DUCKDB), guard(question, table, DUCKDB)
    with DuckDB() as engine:
        engine.attach("visits", path, KINDS, unit="user")
        whole = engine.fetch(read, guard=held).to_pylist()
        assert engine.fetch(read, guard=held).to_pylist() == whole
        assert list(engine._held.values()) == [engine._tables["visits"].stamps()]
        # Put in place of the file, with the times of the old one; the next attach opens what is there now.
        old = os.stat(path)
        os.replace(altered, path)
        os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
        assert engine.fetch(read, guard=held).to_pylist() == whole  # of the file that was attached
        engine.attach("other", pa.table({"x": [1]}), {"x": "integer"})
        with pytest.raises(EngineFailed, match=ALTERED):
            engine.fetch(read, guard=held)
        with pytest.raises(EngineFailed, match=ALTERED):
            engine.fetch(read, guard=held)


def test_a_state_is_remembered_only_once_its_time_of_change_is_past(tmp_path):
    path = made(tmp_path)
    table = table_of(str(path))
    question = _question(COUNT, "prepared", table)
    with DuckDB() as engine:
        engine.attach("visits", path, KINDS, unit="user")
        engine.fetch(lower(question, table, DUCKDB), guard=guard(question, table, DUCKDB))
        assert engine._held == {}


def test_a_file_in_two_places_is_checked_in_both(tmp_path):
    first, second = made(tmp_path), made(tmp_path, "second")
    write(second, APPENDED)
    tables = [
        sf.PrivateTable(name, source=path, unit=UNIT, schema=SCHEMA, dataset=name)
        for name, path in (("visits", first), ("others", second))
    ]
    with duckdb.connect(str(second)) as connection:
        connection.execute("ALTER TABLE visits RENAME TO others")
        connection.execute('UPDATE "sfumato prepared" SET note = replace(note, \'"visits"\', \'"others"\')')
    with sf.Session(*tables, budget=sf.Budget(9)) as session:
        session.sql(COUNT).release(epsilon=1)
        with pytest.raises(EngineFailed, match=ALTERED):
            session.sql(COUNT.replace("visits", "others")).release(epsilon=1)


# ── any change at all

_VALUES = {U: "012345", R: "012349", G: "01239", P: "01239", "city": "abcd", "country": ("FR", "DE", "XX")}


def changes(draw):
    """Some random edits of a file that was prepared for cities, as SQL."""
    for _ in range(draw.choice([1, 1, 2, 5])):
        some = f"hash(rowid, {draw.randrange(10**6)}) % 40 < {draw.choice([1, 4, 20])}"
        column = draw.choice(list(_VALUES))
        value = f"'{draw.choice(_VALUES[column])}'"
        kind = draw.choice(["copy", "move", "set", "delete", "swap"])
        if kind == "copy":
            yield f"INSERT INTO visits SELECT * FROM visits WHERE {some}"
        elif kind == "move":
            yield f"INSERT INTO visits SELECT * REPLACE ({value} AS {column}) FROM visits WHERE {some}"
        elif kind == "set":
            yield f"UPDATE visits SET {column} = {value} WHERE {some}"
        elif kind == "delete":
            yield f"DELETE FROM visits WHERE {some}"
        else:
            yield f"UPDATE visits SET {G} = {R}, {R} = {P}, {P} = {G} WHERE {some}"


def _question(text, bounding, table):
    report = parse(text, {"visits": table})
    return measured_of(replace(report, child=replace(report.child, bounding=boundings()[bounding])), table)


def _columns(connection, question, table):
    """What is read, as group → number for each measurement, with the number of units where it is read."""
    answer = connection.sql(lower(question, table, DUCKDB).sql("duckdb")).to_arrow_table()
    found = reading(answer, question)
    columns = [*found.columns, *([] if found.units is None else [found.units])]
    return [dict(zip(found.groups, column.tolist(), strict=True)) for column in columns]


def _claims(question):
    claims = [(each.l1, each.l2_squared) for each in sensitivities(question)]
    if question.is_open:
        units = sensitivity(Measurement("units"), UNIT, groups=None, bounding=question.bounding)
        claims.append((units.l1, units.l2_squared))
    return claims


def broken(connection, question, table):
    """Whether some unit moves what is read by more than is claimed."""
    whole = _columns(connection, question, table)
    units = connection.sql(f"SELECT DISTINCT {U} FROM kept").fetchall()
    for (unit,) in units:
        gone = "NULL" if unit is None else unit
        connection.execute(f"CREATE OR REPLACE VIEW visits AS FROM kept WHERE {U} IS DISTINCT FROM {gone}")
        less = _columns(connection, question, table)
        for before, after, (l1, l2_squared) in zip(whole, less, _claims(question), strict=True):
            moved = [abs(before.get(key, 0) - after.get(key, 0)) for key in before.keys() | after.keys()]
            if sum(moved) > l1 or sum(each * each for each in moved) > l2_squared:
                return True
    return False


def searched(path, seeds):
    """How many answers were refused, given, given wrongly; and would be wrong without a guard."""
    table, found = table_of(str(path)), {"refused": 0, "answered": 0, "missed": 0, "unguarded": 0}
    questions = [_question(*each, table) for each in QUESTIONS.values()]
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{path}' AS file (READ_ONLY)")
    for seed in seeds:
        connection.execute("DROP VIEW IF EXISTS visits")
        connection.execute("CREATE OR REPLACE TABLE visits AS FROM file.main.visits")
        for each in changes(random.Random(seed)):
            connection.execute(each)
        connection.execute("ALTER TABLE visits RENAME TO altered")
        connection.execute("CREATE OR REPLACE TABLE kept AS FROM altered")
        connection.execute("DROP TABLE altered")
        for question in questions:
            connection.execute("CREATE OR REPLACE VIEW visits AS FROM kept")
            ((beyond,),) = connection.sql(guard(question, table, DUCKDB).sql("duckdb")).fetchall()
            wrong = broken(connection, question, table)
            found["unguarded"] += wrong
            found["refused" if beyond else "answered"] += 1
            found["missed"] += wrong and not beyond
        connection.execute("DROP VIEW visits")
    connection.close()
    return found


def test_no_change_of_a_file_moves_an_answer_by_more_than_is_claimed(tmp_path):
    found = searched(made(tmp_path, group_by="city"), range(12))
    assert found["missed"] == 0
    assert found["refused"] > 10
    assert found["answered"] > 5
    assert found["unguarded"] > 10  # the twin: without the guard these answers would be given


def test_files_as_they_were_prepared_pass_whatever_rows_they_have(tmp_path):
    for seed in range(2):
        rows = rows_of(users=20, seed=seed)
        path = prepare(table_of(rows), tmp_path / f"{seed}.duckdb", group_by="city").path
        assert asked(path).table.num_rows == 1
        assert asked(path, CITIES).table.num_rows == 4
