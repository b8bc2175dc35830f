"""Reads of one day may skip parts of files, and give what whole reads give, whatever a footer says."""

from __future__ import annotations

import datetime
import math
import os
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp, parse_one

import sfumato as sf
from every_type import arrow_columns
from native_columns import COLUMNS as NATIVE
from sfumato.engines import DuckDB, _skipping
from sfumato.engines._days import days_of
from sfumato.engines.duckdb import _OPTIMIZERS
from sfumato.errors import Cancelled, EngineFailed, SourceUnusable, TimedOut

KINDS = {"day": "date", "x": "float", "n": "integer"}
START = datetime.date(2024, 1, 1)
DAYS = 12
ODD = (1.0, math.nan, None, math.inf, -math.inf, -0.0, 0.0, 7.5)

TEXTS = {
    "rows": "SELECT COUNT(*) AS c, SUM(n) AS s FROM t WHERE day = {}",
    "groups": "SELECT k, COUNT(*) AS c, MAX(x) AS m FROM (SELECT n AS k, x FROM t WHERE x > 5 AND day = {}) "
    "AS r GROUP BY k HAVING k IN (1, 2, 3)",
    "odd values": "SELECT COUNT(*) AS c FROM t WHERE (NOT x <= 5 AND x <> 1) AND (day = {} AND n > 0)",
    "units": 'SELECT k, SUM(w) AS s FROM (SELECT "sfumato unit" AS u, n AS k FROM t WHERE day = {}) AS r '
    'JOIN (SELECT u, 60 // COUNT(*) AS w FROM (SELECT "sfumato unit" AS u FROM t WHERE n < 3 AND day = {}) '
    "AS q GROUP BY u) AS s USING (u) GROUP BY k",
    "ranks": "SELECT n, place FROM (SELECT n, ROW_NUMBER() OVER (PARTITION BY n ORDER BY x, day) AS place "
    "FROM t WHERE day = {}) AS r WHERE place < 3",
    "names that meet": "SELECT day, c FROM (SELECT n AS day, COUNT(*) AS c FROM t AS t WHERE t.day = {} "
    "GROUP BY t.n) AS r",
}
WHOLE = {
    "either": "SELECT COUNT(*) AS c FROM t WHERE day = {} OR n = 1",
    "not": "SELECT COUNT(*) AS c FROM t WHERE NOT day = {}",
    "no condition": "SELECT COUNT(*) AS c FROM t WHERE n = 1",
    "one of two": "SELECT SUM(c) AS c FROM (SELECT COUNT(*) AS c FROM t WHERE day = {} UNION ALL "
    "SELECT COUNT(*) AS c FROM t) AS r",
    "inside": "SELECT COUNT(*) AS c FROM t WHERE day = {} AND n IN (SELECT n FROM t WHERE n > 1)",
    "in order": "SELECT n FROM t WHERE day = {} ORDER BY n LIMIT 3",
    "everything": "SELECT * FROM t WHERE day = {}",
}


def rows_of(days, odd=ODD):
    size = len(days)
    return pa.table(
        {
            "day": days,
            "x": pa.array([odd[at % len(odd)] for at in range(size)], pa.float64()),
            "n": pa.array([at % 4 for at in range(size)], pa.int64()),
            "u": pa.array([at % 5 for at in range(size)], pa.int64()),
        }
    )


def ordinary(many=240):
    days = np.datetime64(START) + np.arange(many) * DAYS // many
    return rows_of(pa.array(days, pa.date32()))


def written(folder, table, name="t.parquet", **options):
    path = folder / name
    pq.write_table(table, path, **({"row_group_size": 20} | options))
    return path


def spoken(day):
    return f"CAST('{day}' AS DATE)"


def asked(text, day):
    return parse_one(text.replace("{}", spoken(day)), dialect="duckdb")


def lines(answer):
    return sorted(map(repr, answer.to_pylist()))


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Files of tests are as good as old ones."""
    monkeypatch.setattr(_skipping, "are_settled", lambda state: True)


@pytest.fixture
def skipped(monkeypatch):
    """How many reads skipped what they could."""
    real, counted = _skipping.Skipping._read, []

    def read(self, statement):
        counted.append(statement)
        return real(self, statement)

    monkeypatch.setattr(_skipping.Skipping, "_read", read)
    return counted


def wrong(path, texts, days, kinds=KINDS):
    """The statements whose third read in a state of the files is not the whole one."""
    found = []
    with DuckDB(threads=1) as engine, DuckDB(threads=1, memory="1GB") as whole:
        for one in (engine, whole):
            one.attach("t", path, kinds, unit="u")
        for text in texts.values():
            for day in days:
                expected = lines(whole.fetch(asked(text, day)))
                answers = [lines(engine.fetch(asked(text, day))) for _ in range(3)]
                found += [] if answers == [expected] * 3 else [(text, day)]
    return found


def some_days():
    return [START + datetime.timedelta(days=at) for at in (0, 5, 11, 12)]


def test_reads_that_skip_give_the_same(tmp_path, skipped):
    assert wrong(written(tmp_path, ordinary()), TEXTS, some_days()) == []
    assert len(skipped) >= 3 * len(TEXTS) * len(some_days()) - 2


SPANS = {
    "from and to": "{c} >= {a} AND {c} <= {b}",
    "in any order": "{c} <= {b} AND {c} >= {a}",
    "said more often": "({c} >= {a} AND {c} >= CAST('2000-01-01' AS DATE)) AND ({c} <= {b} AND {c} <= {b})",
    "beside a day": "{c} <= {b} AND {c} >= {a} AND {c} = {a}",
}


def over(text, form, first, last):
    """A text about one day, about several instead."""
    for column in ("t.day", "day"):
        within = SPANS[form].format(c=column, a=spoken(first), b=spoken(last))
        text = text.replace(f"{column} = {{}}", within)
    return text


def spans(seed, many):
    draw = np.random.default_rng(seed)
    for _ in range(many):
        first, length = (int(draw.integers(-2, DAYS)), int(draw.integers(0, 5)))
        yield START + datetime.timedelta(first), START + datetime.timedelta(first + length)


@pytest.mark.parametrize("form", SPANS)
def test_reads_of_several_days_that_skip_give_the_same(tmp_path, skipped, form):
    texts = {
        f"{name} {first} {last}": over(text, form, first, last)
        for name, text in TEXTS.items()
        for first, last in spans(len(name), 4)
    }
    assert wrong(written(tmp_path, ordinary()), texts, [START]) == []
    assert len(skipped) > len(texts)


def test_a_footer_that_lies_about_several_days_changes_nothing(tmp_path, skipped):
    """There are enough other rows for a few days to be read by themselves."""
    listed = [START] * 20 + [START + datetime.timedelta(days=9)] * 20
    listed += [START + datetime.timedelta(days=20)] * 300
    path = lying(tmp_path, rows_of(pa.array(listed, pa.date32())))
    texts = {
        f"{name} {form} {length}": over(text, form, START, START + datetime.timedelta(length))
        for name, text in TEXTS.items()
        for form in SPANS
        for length in (1, 8, 9, 12)
    }
    assert wrong(path, texts, [START]) == []
    assert skipped


def test_days_that_are_most_of_a_table_are_read_with_the_others(tmp_path, skipped):
    few, many = (over(TEXTS["rows"], "from and to", START, START + datetime.timedelta(n)) for n in (2, 3))
    path = written(tmp_path, ordinary())
    assert wrong(path, {"many": many}, [START]) == []
    assert skipped == []
    assert wrong(path, {"few": few}, [START]) == []
    assert len(skipped) == 2


def test_what_each_reader_asks_for_is_what_counts():
    """Days are those that all readers name alike, and the fewest come first."""
    later = START + datetime.timedelta(days=3)
    same = over(TEXTS["units"], "from and to", START, later)
    assert [(each.first, each.last) for each in days_of(asked(same, START))] == [(START, later)]
    other = same.replace(spoken(later), spoken(START), 1)
    assert days_of(asked(other, START)) == []
    both = over(TEXTS["rows"], "beside a day", START, later)
    assert [each.many for each in days_of(asked(both, START))] == [1, 4]
    for open_ended in ("day >= {}", "day <= {}", "day > {} AND day < {}", "NOT (day >= {} AND day <= {})"):
        assert days_of(asked(f"SELECT COUNT(*) AS c FROM t WHERE {open_ended}", START)) == []
    never = over(TEXTS["rows"], "from and to", later, START)
    assert days_of(asked(never, START)) == []


def test_what_is_not_about_one_day_is_read_whole(tmp_path, skipped):
    assert wrong(written(tmp_path, ordinary()), WHOLE, some_days()) == []
    assert skipped == []


def test_row_groups_are_skipped_by_the_day_alone(tmp_path, skipped):
    """The condition that reaches a scan is that of the day; those of other columns stay where they are."""
    with DuckDB(threads=1) as engine:
        engine.attach("t", written(tmp_path, ordinary()), KINDS, unit="u")
        for _ in range(3):
            engine.fetch(asked(TEXTS["groups"], START))
        narrow = skipped[-1]
        other = engine._days._made[0].__self__
        with other._connection.cursor() as cursor:
            plan = cursor.execute("EXPLAIN " + other.dialect.text(narrow)).fetchall()[0][1]
        assert plan.count("Filters:") == 1
        scan = plan[plan.index("Filters:") :].split("│  │")[0:3]
        assert "day" in "".join(scan)
        assert other._optimizers - _OPTIMIZERS == {"filter_pushdown"}
        assert engine._optimizers == _OPTIMIZERS


def test_every_type_and_odd_value_is_read_as_it_is_whole(tmp_path, skipped):
    """Columns of days of every type that Parquet has and a date is made of."""
    texts = [TEXTS[name] for name in ("rows", "odd values")]
    days = [datetime.date(1970, 1, 1), datetime.date(1970, 1, 2), datetime.date(2020, 1, 1)]
    columns, seen, short = [*arrow_columns(text=False).items(), *NATIVE.items()], {}, set()
    with DuckDB(threads=1) as engine, DuckDB(threads=1, memory="1GB") as whole:
        for place, (name, column) in enumerate(columns):
            try:
                path = written(tmp_path, rows_of(pa.concat_arrays([column] * 12)), f"{place}.parquet")
                for one in (engine, whole):
                    one.attach(f"t{place}", path, KINDS, unit="u")
            except (pa.ArrowException, SourceUnusable):
                continue  # no column of a file, or no date is made of it
            seen[name] = place
        for name, place in seen.items():
            for text in (text.replace("FROM t ", f"FROM t{place} ") for text in texts):
                for day in days:
                    before, expected = len(skipped), lines(whole.fetch(asked(text, day)))
                    assert [lines(engine.fetch(asked(text, day))) for _ in range(2)] == [expected] * 2, name
                    short |= {name} if len(skipped) > before else set()
    assert len(seen) > 15
    assert short == {name for name in seen if dict(columns)[name].type in (pa.date32(), pa.date64())}


@pytest.mark.parametrize("many", [1, 3])
def test_several_files_and_files_without_the_column(tmp_path, skipped, many):
    folder = tmp_path / "files"
    folder.mkdir()
    for at in range(many):
        written(folder, ordinary(), f"{at}.parquet", write_statistics=at != 1)
    written(folder, ordinary().drop_columns(["day"]), "other.parquet")
    assert wrong(folder, TEXTS, some_days()) == []
    assert skipped == []  # where a part has no such column, all are read whole
    os.remove(folder / "other.parquet")
    assert wrong(folder, TEXTS, some_days()) == []
    assert skipped


def lying(folder, table=None):
    """A file whose footer has the days of the first row group wrong: one of its rows is of another day."""
    if table is None:
        table = rows_of(pa.array([START] * 20 + [START + datetime.timedelta(days=9)] * 20, pa.date32()))
    path = written(folder, table, compression="none", use_dictionary=False)
    first, other = ((day - datetime.date(1970, 1, 1)).days for day in (START, START + datetime.timedelta(9)))
    content = path.read_bytes()
    at = content.find(struct.pack("<iii", first, first, first))
    content = content[: at + 4] + struct.pack("<i", other) + content[at + 8 :]
    path.write_bytes(content)
    held = pq.read_table(path)["day"].to_pylist()
    assert held[1] == START + datetime.timedelta(days=9)
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).statistics.max == START
    return path


LIED = [START, START + datetime.timedelta(days=9), START + datetime.timedelta(days=3)]


def test_a_footer_that_lies_changes_nothing(tmp_path, skipped):
    assert wrong(lying(tmp_path), TEXTS, LIED) == []
    assert skipped


def test_a_read_that_is_not_held_to_the_count_is_noticed(tmp_path, monkeypatch):
    """Planted: footers are believed."""
    monkeypatch.setattr(_skipping, "_has_read", lambda result, expected: True)
    assert wrong(lying(tmp_path), TEXTS, LIED)


def test_rows_that_a_wrong_condition_leaves_out_are_noticed(tmp_path, monkeypatch, skipped):
    """Planted: other conditions are put to the scan, whose statistics leave NaN out; the count tells."""
    real = _skipping.of_days

    def narrower(statement, day, columns):
        made = real(statement, day, columns)
        made.find(exp.CTE).this.where("x > 5", copy=False)
        return made

    monkeypatch.setattr(_skipping, "of_days", narrower)
    path = written(tmp_path, ordinary())
    assert wrong(path, {"rows": TEXTS["rows"]}, some_days()) == []
    monkeypatch.setattr(_skipping, "_has_read", lambda result, expected: True)
    assert wrong(path, {"rows": TEXTS["rows"]}, some_days())


def test_a_file_that_is_written_anew_is_read_anew(tmp_path, skipped):
    path = written(tmp_path, ordinary())
    with DuckDB() as engine:
        engine.attach("t", path, KINDS, unit="u")
        for many in (240, 480, 120):
            written(tmp_path, ordinary(many))
            for _ in range(3):
                answer = engine.fetch(asked("SELECT COUNT(*) AS c FROM t WHERE day = {}", START))
                assert answer["c"].to_pylist() == [many // DAYS]
    assert len(skipped) == 6


def test_nothing_is_remembered_of_a_file_that_is_not_settled(tmp_path, skipped, monkeypatch):
    monkeypatch.setattr(_skipping, "are_settled", lambda state: False)
    assert wrong(written(tmp_path, ordinary()), TEXTS, some_days()) == []
    assert skipped == []


def test_failures_of_a_read_that_skips(tmp_path, monkeypatch):
    """It is read whole where skipping fails, or takes too long; who interrupts it has interrupted it."""
    raised = []

    def read(statement):
        raise raised[-1]

    with DuckDB() as engine:
        engine.attach("t", written(tmp_path, ordinary()), KINDS, unit="u")
        statement = asked(TEXTS["rows"], START)
        expected = lines(engine.fetch(statement))
        for place in ("_whole", "_made"):
            for error in (TimedOut("too long"), EngineFailed("odd")):
                with monkeypatch.context() as patch:
                    raised.append(error)
                    patch.setattr(engine._days, place, read if place == "_whole" else (read, lambda: None))
                    engine._days._known = {}
                    for _ in range(3):
                        assert lines(engine.fetch(statement)) == expected
        engine._days._known = {}
        raised.append(Cancelled("stop"))
        monkeypatch.setattr(engine._days, "_made", (read, lambda: None))
        engine.fetch(statement)
        with pytest.raises(Cancelled):
            engine.fetch(statement)


def test_a_table_that_is_attached_later_and_an_engine_that_is_closed(tmp_path, skipped):
    path = written(tmp_path, ordinary())
    engine = DuckDB()
    for name in ("t", "s"):
        engine.attach(name, path, KINDS, unit="u")
        for _ in range(3):
            expected = engine.fetch(asked(TEXTS["rows"], START)).to_pylist()
    other = engine._days._made[0].__self__
    engine.close()
    assert expected == [{"c": 20, "s": 30}]
    for closed in (engine, other):
        with pytest.raises(EngineFailed, match="closed"):
            closed.fetch(asked(TEXTS["rows"], START))
    assert len(skipped) == 4


def test_threads_that_read_at_once(tmp_path, skipped):
    with DuckDB(threads=2) as engine:
        engine.attach("t", written(tmp_path, ordinary()), KINDS, unit="u")
        jobs = [(text, day) for text in TEXTS.values() for day in some_days()]
        expected = [lines(engine.fetch(asked(*job))) for job in jobs]
        engine._days._known = {}
        with ThreadPoolExecutor(4) as threads:
            for _ in range(2):
                assert [*threads.map(lambda job: lines(engine.fetch(asked(*job))), jobs)] == expected
    assert len(skipped) > len(jobs)


def test_days_that_have_none_beside_them():
    for day in ("0001-01-01", "9999-12-31", "10000-01-01", "infinity", "2024-02-30"):
        assert days_of(asked(TEXTS["rows"], day)) == []
    assert [(each.first, each.last) for each in days_of(asked(TEXTS["rows"], START))] == [(START, START)]


def test_a_series_is_the_same_with_and_without(tmp_path, skipped, monkeypatch):
    from sfumato.ledger.series import SeriesOf

    monkeypatch.setattr(SeriesOf, "secret", lambda *_: b"s" * 32)
    path, shown = written(tmp_path, ordinary()), []
    schema = {"day": sf.Date("2024-01-01", "2024-12-31"), "n": sf.Enum([0, 1, 2]), "x": sf.Float(0, 10)}
    text = "SELECT day, n, COUNT(*) AS c, SUM(x) AS s FROM t WHERE x > 0.5 OR x IS NULL GROUP BY day, n"
    for memory in (None, "1GB"):
        for unit, most in (
            (sf.PrivacyUnit.row(), None),
            (sf.PrivacyUnit("u"), None),
            (sf.PrivacyUnit("u"), 3),
        ):
            table = sf.PrivateTable("t", source=path, unit=unit, schema=schema)
            engine = DuckDB(memory=memory)
            with sf.Session(table, budget=sf.Budget(9, "0.01"), engine=engine) as session:
                series = session.stream(
                    text, start=START, horizon=DAYS, epsilon=1, delta="1e-6", max_steps=most
                )
                for day in range(DAYS):
                    series.advance(START + datetime.timedelta(days=day))
                shown.append(series.table("steps").to_pylist())
    assert shown[:3] == shown[3:]
    assert len(skipped) == 3 * (DAYS - 1)
