"""Prepared tables on any engine: where they are, how somebody alters them, and what holds of them all.

An engine joins by a `Place`; the laws are run by `test_prepare_laws` and, on Spark, by `test_spark`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import sfumato as sf
from postgres_engine import given, shared, superuser
from sfumato.engines import DuckDB, Engine
from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN, RANK_COLUMN, UNIT_COLUMN
from sfumato.engines.dialect import DUCKDB, PORTABLE
from sfumato.engines.postgres import Postgres
from sfumato.engines.prepare import prepare
from sfumato.engines.prepared import METADATA, NOTE_FILE
from sfumato.errors import EngineFailed, InvalidParameter, SourceUnusable

__all__ = [
    "LAWS",
    "DuckDBPlace",
    "Place",
    "PostgresPlace",
    "SparkPlace",
    "portable_duckdb",
    "rows_of",
    "table_of",
]

_numbers = itertools.count()
SCHEMA = {
    "country": sf.Enum("FR", "DE", "IT"),
    "city": sf.Text(),
    "amount": sf.Float(0, 10),
    "age": sf.Int(0, 9),
    "day": sf.Date(),
    "seen": sf.Timestamp("2024-01-01", "2024-12-31"),
}
KINDS = {name: kind.kind for name, kind in SCHEMA.items()}
UNIT = sf.PrivacyUnit("user", max_groups=2, max_rows=4)
SALT = b"a salt of tests"
CANARY = "canary-4711"
COUNT = "SELECT COUNT(*) AS n FROM visits"
CITIES = "SELECT city, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY city"
COUNTRIES = "SELECT country, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY country"
U, R, G, P = (f'"{each}"' for each in (UNIT_COLUMN, RANK_COLUMN, GROUP_COLUMN, PLACE_COLUMN))
VALUES = "country, city, amount, age, day, seen"
_MADE: dict[str, Path] = {}
ALTERED = "is not as it was written; prepare its table again"


class Place(Protocol):
    """An engine, and where its prepared tables are."""

    name: str
    few: bool

    def engine(self) -> Any: ...

    def source(self, rows: pa.Table) -> Any: ...

    def target(self) -> Any: ...

    def prepare(self, table: sf.PrivateTable, target: Any, **options: Any) -> Any: ...

    def alter(self, path: Any, *statements: str) -> None: ...

    def renote(self, path: Any, note: str) -> None: ...

    def note(self, path: Any) -> str: ...

    def is_there(self, path: Any) -> bool: ...


class DuckDBPlace:
    """Files of DuckDB."""

    name = "duckdb"
    few = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def engine(self) -> Engine:
        return DuckDB(threads=2)

    def source(self, rows: pa.Table) -> Any:
        return rows

    def target(self) -> Any:
        return self.folder / f"p{next(_numbers)}.duckdb"

    def prepare(self, table: sf.PrivateTable, target: Any, **options: Any) -> Any:
        return prepare(table, target, **options).path

    def alter(self, path: Any, *statements: str) -> None:
        with duckdb.connect(str(path)) as connection:
            for each in statements:
                connection.execute(each.replace("{t}", "visits"))

    def renote(self, path: Any, note: str) -> None:
        with duckdb.connect(str(path)) as connection:
            connection.execute(f'UPDATE "{METADATA}" SET note = ?', [note])

    def note(self, path: Any) -> str:
        with duckdb.connect(str(path), read_only=True) as connection:
            return str(connection.execute(f'SELECT note FROM "{METADATA}"').fetchall()[0][0])

    def is_there(self, path: Any) -> bool:
        return bool(list(self.folder.glob(f"{Path(path).name}*")))


class PostgresPlace(DuckDBPlace):
    """Tables of the server for tests, which somebody alters who takes the bolt off first."""

    name = "postgres"

    def engine(self) -> Any:
        shared()
        return Postgres(timeout=60)

    def source(self, rows: pa.Table) -> Any:
        shared()
        return given(rows)

    def target(self) -> Any:
        return f"{shared()}::public.p{os.getpid()}_{next(_numbers)}"

    def alter(self, path: Any, *statements: str) -> None:
        table = path.rpartition("::")[2]
        superuser().execute(
            f'ALTER TABLE {table} DROP CONSTRAINT IF EXISTS "sfumato: a prepared table is not written to"'
        )
        for each in statements:
            superuser().execute(each.replace("{t}", table))

    def renote(self, path: Any, note: str) -> None:
        text = (METADATA + note).replace("'", "''")
        superuser().execute(f"COMMENT ON TABLE {path.rpartition('::')[2]} IS '{text}'")

    def note(self, path: Any) -> str:
        name = path.rpartition("::")[2]
        ((text,),) = superuser().execute(f"SELECT obj_description('{name}'::regclass)").fetchall()
        return str(text).removeprefix(METADATA)

    def is_there(self, path: Any) -> bool:
        name = path.rpartition("::")[2]
        return superuser().execute(f"SELECT to_regclass('{name}')").fetchall() != [(None,)]


class SparkPlace(DuckDBPlace):
    """Folders of Parquet files; somebody alters them who writes the note anew, too.

    A law tries few cases there: what takes a hundredth of a second elsewhere takes one.
    """

    name = "spark"
    few = True

    def __init__(self, folder: Path, one: Any, *, few: bool = True) -> None:
        super().__init__(folder)
        self._one, self.few = one, few

    def engine(self) -> Any:
        return contextlib.nullcontext(self._one)

    def source(self, rows: pa.Table) -> Any:
        pq.write_table(rows, path := self.folder / f"rows{next(_numbers)}.parquet")
        return str(path)

    def target(self) -> Any:
        return self.folder / f"p{next(_numbers)}.prepared"

    def prepare(self, table: sf.PrivateTable, target: Any, **options: Any) -> Any:
        return prepare(table, target, engine=self._one, **options).path

    def alter(self, path: Any, *statements: str) -> None:
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE visits AS FROM read_parquet('{path}/*.parquet')")
            for each in statements:
                connection.execute(each.replace("{t}", "visits"))
            for old in (*path.glob("*.parquet"), *path.glob(".*.crc")):
                old.unlink()
            connection.execute(f"COPY visits TO '{path}/all.parquet'")
        note = json.loads(self.note(path))
        files = {"all.parquet": (path / "all.parquet").stat().st_size}
        self.renote(path, json.dumps({**note, "files": files}))

    def renote(self, path: Any, note: str) -> None:
        (path / NOTE_FILE).write_text(note)

    def note(self, path: Any) -> str:
        return str((path / NOTE_FILE).read_text())


def table_of(source: Any, unit: sf.PrivacyUnit = UNIT, schema: Any = None) -> sf.PrivateTable:
    return sf.PrivateTable("visits", source=source, unit=unit, schema=SCHEMA if schema is None else schema)


def rows_of(seed: int = 3, users: int = 12) -> pa.Table:
    """Rows of users with 1 to 9 of them: many are the same, many in another form of the same value."""
    draw = random.Random(seed)
    rows = [
        (
            user,
            draw.choice(["FR", "DE", "IT", "XX", "!", None]),
            draw.choice(["a", "A", "é", "e\u0301", "", None]),
            draw.choice([0.0, -0.0, math.nan, -math.nan, 3.25, 1e16, 1e-5, None]),
            draw.choice([1, 2, None]),
            draw.choice([19000, 0, -719163, None]),
            draw.choice([1_710_000_000_500_000, 0, None]),
        )
        for user in [*range(users), None]
        for _ in range(draw.randint(1, 9))
    ]
    # Rows that a digest takes for one: what is missing comes last, on every engine.
    rows += [(99, country, "a", 1.0, 1, 0, 0) for country in ("!", None, "!", None, None)]
    columns = list(zip(*rows, strict=True))
    return pa.table(
        {
            "user": pa.array(columns[0], pa.int64()),
            "country": pa.array(columns[1], pa.string()),
            "city": pa.array(columns[2], pa.string()),
            "amount": pa.array(columns[3], pa.float64()),
            "age": pa.array(columns[4], pa.int64()),
            "day": pa.array(columns[5], pa.int32()).cast(pa.date32()),
            "seen": pa.array(columns[6], pa.timestamp("us")),
        }
    )


@contextlib.contextmanager
def portable_duckdb() -> Iterator[None]:
    """DuckDB chooses by the digest that every engine has."""
    before = DuckDB(threads=1).dialect
    DuckDB._dialect = DUCKDB.choosing_by(PORTABLE.name)
    try:
        yield
    finally:
        DuckDB._dialect = before


def made(place: Place, rows: pa.Table | None = None, target: Any = None, **options: Any) -> Any:
    """Rows that were prepared there; on Spark, where that takes long, mostly a copy."""
    if place.name == "spark" and rows is None and target is None:
        known = repr(sorted(options.items()))
        if known not in _MADE:
            _MADE[known] = made(place, rows_of(), **options)
        return shutil.copytree(_MADE[known], place.target())
    table = table_of(place.source(rows_of() if rows is None else rows))
    options = {"salt": SALT, **options}
    return place.prepare(table, place.target() if target is None else target, **options)


def lines(place: Place, path: Any, *, groups: bool = False) -> dict[Any, list[tuple[str, ...]]]:
    """What each unit has, with the ranks, as text: NaN would differ from itself."""
    names = [RANK_COLUMN, *((GROUP_COLUMN, PLACE_COLUMN) if groups else ()), *KINDS]
    statement = exp.Select().select(
        *(exp.column(name, quoted=True) for name in (UNIT_COLUMN, *names)), copy=False
    )
    with place.engine() as engine:
        engine.attach("t", path, KINDS, unit="user")
        assert engine.is_prepared("t")
        found = engine.fetch(statement.from_(exp.to_table("t")))
    place_of_day = found.schema.get_field_index("day")
    days = found.column("day").cast(pa.int32())
    found = found.set_column(place_of_day, "day", days)
    units = defaultdict(list)
    for row in found.to_pylist():
        cells = [0.0 if row[name] == 0.0 and name == "amount" else row[name] for name in names]
        units[row[UNIT_COLUMN]].append((int(cells[0]), *map(repr, cells[1:])))
    return {unit: sorted(rows) for unit, rows in units.items()}


def asked(place: Place, path: Any, text: str = COUNT) -> tuple[str, dict[Any, list[int]]]:
    """How a session holds units within their limits, and the integers that it reads."""
    with place.engine() as engine:
        session = sf.Session(table_of(path), budget=sf.Budget(9, "0.1"), engine=engine)
        measured = session.sql(text).quote(epsilon=1, delta=_delta(text)).measured
        found = session.vault._read(measured, 0)
        session.close()
    columns = [*found.columns, *([] if found.units is None else [found.units])]
    numbers = [[int(number) for number in row] for row in zip(*columns, strict=True)]
    return measured.bounding.name, dict(zip(found.groups, numbers, strict=True))


def answered(place: Place, path: Any, text: str, unit: sf.PrivacyUnit) -> list[list[Any]]:
    """A released answer with next to no noise."""
    with place.engine() as engine:
        session = sf.Session(table_of(path, unit), budget=sf.Budget(10**9), engine=engine)
        found = session.sql(text).release(epsilon=10**7).table.to_pylist()
        session.close()
    return [[round(cell) if isinstance(cell, float) else cell for cell in row.values()] for row in found]


def _delta(text: str) -> str | int:
    return "0.01" if "city" in text else 0


def refused(place: Place, path: Any, text: str = COUNT) -> None:
    """An answer is paid and not given, and the sentence says why."""
    with place.engine() as engine:
        session = sf.Session(table_of(path), budget=sf.Budget(9, "0.1"), engine=engine)
        with pytest.raises(EngineFailed, match=ALTERED) as caught:
            session.sql(text).release(epsilon=1, delta=_delta(text))
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert session.balance().spent == 1
        session.close()


# Laws ------------------------------------------------------------------------------------------------------


def ranks_are_those_of_duckdb(place: Place) -> None:
    """The same rows have the same ranks as in a file of DuckDB by the same salt; no other value changes."""
    rows = rows_of()
    with portable_duckdb():
        file = DuckDBPlace(place.folder)  # type: ignore[attr-defined]
        for groups in ((), ("city", "amount"), ("day",))[: 2 if place.few else None]:
            here = lines(place, made(place, rows, group_by=groups), groups=bool(groups))
            there = lines(file, made(file, rows, group_by=groups), groups=bool(groups))
            assert here == there
            for mine in here.values():
                assert [line[0] for line in mine] == list(range(1, len(mine) + 1))
    assert sum(map(len, here.values())) == sum(user is not None for user in rows["user"].to_pylist())


def ranks_follow_from_the_rows_of_the_unit_alone(place: Place) -> None:
    rows = rows_of()
    whole = lines(place, made(place))
    shuffled = rows.take(random.Random(1).sample(range(rows.num_rows), rows.num_rows))
    less = shuffled.filter(pa.compute.not_equal(shuffled["user"], 7))
    found = lines(place, made(place, less))
    assert found == {unit: mine for unit, mine in whole.items() if unit != 7}
    assert place.few or lines(place, made(place, rows, salt=b"another")) != whole


def answers_are_those_of_duckdb(place: Place) -> None:
    """Before noise, and where nothing is cut off those of the table that it was made of."""
    rows = rows_of()
    with portable_duckdb():
        file = DuckDBPlace(place.folder)  # type: ignore[attr-defined]
        here, there = (made(where, group_by="city") for where in (place, file))
        wide = sf.PrivacyUnit("user", max_groups=20, max_rows=400)
        texts = {COUNTRIES: "prepared", CITIES: "grouped", COUNT: "prepared"}
        for text, bounding in list(texts.items())[: 2 if place.few else None]:
            found = asked(place, here, text)
            assert found == asked(file, there, text)
            assert found[0] == bounding
        source = place.source(rows)
        assert answered(place, here, COUNTRIES, wide) == answered(place, source, COUNTRIES, wide)
    with place.engine() as engine:
        engine.attach("t", here, KINDS, unit="user")
        engine.attach("u", here, KINDS)
        engine.attach("v", here, {"age": "integer"}, unit="user")
        assert [engine.is_prepared(name) for name in "tuvx"] == [True, False, True, False]
        assert [engine.grouping(name) for name in "tuvx"] == [("city",), (), (), ()]


CHANGES = {
    "rows of rank one": f"INSERT INTO {{t}} ({U}, {VALUES}, {R}) SELECT a.{U}, {VALUES}, 1 FROM {{t}} AS a "
    f"WHERE a.{U} = 2",
    "a rank twice": f"INSERT INTO {{t}} SELECT * FROM {{t}} WHERE {R} = 1",
    "ranks of nothing": f"UPDATE {{t}} SET {R} = 0",
    "one unit": f"UPDATE {{t}} SET {U} = 2",
    "rows of nobody": f"UPDATE {{t}} SET {U} = NULL WHERE {U} = 2",
}
GROUP_CHANGES = {
    "one group": f"UPDATE {{t}} SET {G} = 1, {P} = 1",
    "two groups are one": "UPDATE {t} SET city = 'a'",
    "first places twice": f"INSERT INTO {{t}} SELECT * FROM {{t}} WHERE {P} = 1",
}


def altered_rows_give_no_answer(place: Place) -> None:
    for change in list(CHANGES.values())[-2 if place.few else None :]:
        path = made(place)
        place.alter(path, change)
        refused(place, path)
    place.alter(path, f"DELETE FROM {{t}} WHERE {U} IS NULL")  # rows may go: fewer are no harm
    assert place.few or asked(place, path)


def altered_groups_give_no_answer(place: Place) -> None:
    for change in list(GROUP_CHANGES.values())[-1 if place.few else None :]:
        path = made(place, group_by="city")
        place.alter(path, change)
        refused(place, path, CITIES)


def another_declaration_is_refused(place: Place) -> None:
    path = made(place)
    with place.engine() as engine:
        for columns, unit, words in (
            ({"country": "text"}, "age", 'a unit other than "age"; prepare the table again'),
            ({"age": "float"}, "user", 'without the column "age" as float'),
            ({"town": "text"}, "user", 'without the column "town" as text'),
        ):
            with pytest.raises(SourceUnusable, match=words):
                engine.attach("t", path, columns, unit=unit)
        with pytest.raises(SourceUnusable, match='without "seen" as its source has it'):
            engine.attach("t", path, {"seen": "timestamp"}, unit="user", pointers=["seen"])
        engine.attach("t", path, {"age": "integer"}, unit="user", pointers=["age", "user"])


def another_note_is_refused(place: Place) -> None:
    path = made(place)
    said = json.loads(place.note(path))
    assert set(said) - {"files"} == {"format", "table", "unit", "columns", "salt", "apart", "digest"}
    assert SALT.hex() not in place.note(path)
    for note in ("not JSON", "{}", '{"format": 2}', json.dumps({**said, "format": 3})):
        place.renote(path, note)
        with place.engine() as engine, pytest.raises(SourceUnusable, match="not prepared by this version"):
            engine.attach("t", path, KINDS, unit="user")
    place.renote(path, json.dumps({**said, "format": 2, "groups": ["city"]}))  # it has no such ranks
    with place.engine() as engine, pytest.raises(SourceUnusable, match="not prepared by this version"):
        engine.attach("t", path, KINDS, unit="user")


def ranks_of_another_type_are_refused(place: Place) -> None:
    for change in (
        f"ALTER TABLE {{t}} ALTER {R} TYPE DOUBLE PRECISION",
        f"ALTER TABLE {{t}} DROP {R}",
    ):
        path = made(place)
        place.alter(path, change)
        with place.engine() as engine, pytest.raises(SourceUnusable, match="not prepared by this version"):
            engine.attach("t", path, KINDS, unit="user")


def what_is_there_is_kept(place: Place) -> None:
    path = made(place)
    before = lines(place, path)
    with pytest.raises(InvalidParameter, match="there already"):
        made(place, rows_of(5), path)
    assert lines(place, path) == before
    made(place, rows_of(5), path, force=True)
    assert lines(place, path) != before


def what_cannot_be_prepared_is_refused(place: Place) -> None:
    target = place.target()
    for table, words in (
        (table_of(place.source(rows_of()), sf.PrivacyUnit.row()), "nothing to prepare"),
        (replace(table_of(place.source(rows_of())), unit=sf.PrivacyUnit("absent")), 'no column "absent"'),
    ):
        with pytest.raises((InvalidParameter, SourceUnusable), match=words):
            place.prepare(table, target)
    with pytest.raises(InvalidParameter, match="privacy unit, not a group"):
        made(place, None, target, group_by="user")
    assert not place.is_there(target)


LAWS: dict[str, Callable[[Any], None]] = {
    law.__name__: law
    for law in (
        ranks_are_those_of_duckdb,
        ranks_follow_from_the_rows_of_the_unit_alone,
        answers_are_those_of_duckdb,
        altered_rows_give_no_answer,
        altered_groups_give_no_answer,
        another_declaration_is_refused,
        another_note_is_refused,
        ranks_of_another_type_are_refused,
        what_is_there_is_kept,
        what_cannot_be_prepared_is_refused,
    )
}
