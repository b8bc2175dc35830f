"""Cells that could not be read: how many there are is bought, and intervals over all rows allow for them."""

import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions import evaluate
from sfumato.plan.expressions.tree import columns_of
from sfumato.session import unreadable
from sfumato.session.unreadable import SEES_NULL, _only_hides
from sfumato.testing import exact
from sfumato.testing.calls import CALLS, accepted, inside

MANY, MUCH = 2**15, 40  # of epsilon: no noise to speak of, for a profile and for a count
SURE = 1 - 1e-9
SCHEMA = {"date": sf.Date("2024-01-01", "2024-12-31"), "age": sf.Int(0, 99), "kind": sf.Enum("a", "b")}
UNITS = {"row": sf.PrivacyUnit.row(), "who": sf.PrivacyUnit("who", max_rows=5)}


def rows():
    """What the table should have said, and what it says: whatever cannot be read would have been extreme."""
    draw = random.Random(4)
    for at in range(300):
        month, age = 1 + at % 12, draw.randint(0, 50)
        if at % 10 == 0:  # a date that cannot be read, of January
            yield (at // 5, "2024-01-09", age, "a"), (at // 5, "9.1.24", age, "a")
        elif at % 10 == 1:  # an age that cannot be read, of 99
            yield (at // 5, f"2024-{month:02}-01", 99, "b"), (at // 5, f"2024-{month:02}-01", "old", "b")
        else:
            blank = "" if at % 10 == 2 else f"2024-{month:02}-01"
            yield ((at // 5, blank, age, "a"),) * 2


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unreadable")
    for place, name in enumerate(("meant", "written")):
        lines = [",".join(map(str, pair[place])) for pair in rows()]
        (folder / f"{name}.csv").write_text("who,date,age,kind\n" + "\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def sessions(files):
    made = {}
    for name, unit in UNITS.items():
        table = sf.PrivateTable("t", source=str(files / "written.csv"), unit=unit, schema=SCHEMA)
        made[name] = sf.Session(table, budget=sf.Budget(10**8))
        if name == "who":
            made[name].profile("t", MANY)
        for column in ("date", "age"):
            made[name].unreadable("t", column, MUCH)
    yield made
    for session in made.values():
        session.close()


@pytest.fixture(scope="module")
def meant(files):
    with duckdb.connect() as connection:
        connection.sql(f"CREATE TABLE t AS SELECT * FROM read_csv('{files / 'meant.csv'}')")
        yield lambda sql: {row[0]: row[1:] for row in connection.sql(sql).fetchall()}


JANUARY = "month(date) = 1"
COVERED = [
    f"COUNT(*) AS n FROM t WHERE {JANUARY}",
    "COUNT(*) AS n FROM t WHERE NOT date >= DATE '2024-02-01'",
    f"COUNT(*) AS n FROM t WHERE {JANUARY} OR age > 98",
    f"COUNT(*) AS n FROM t WHERE {JANUARY} AND kind = 'a'",
    f"SUM(age) AS n FROM t WHERE {JANUARY}",
    "COUNT(age) AS n FROM t",
    "SUM(age) AS n FROM t",
    "SUM(2 * age - 3) AS n FROM t",
    "AVG(age) AS n FROM t",
    f"SUM(CASE WHEN kind = 'a' THEN 1 ELSE 0 END) / COUNT(*) AS n FROM t WHERE {JANUARY}",
    "COUNT(*) AS n FROM t WHERE year(date) = 2024 AND age BETWEEN 0 AND 99",
]


@pytest.mark.parametrize("unit", UNITS)
def test_what_the_cells_should_have_said_is_covered(sessions, meant, unit):
    for asked in COVERED:
        release = sessions[unit].sql(f"SELECT {asked}").release(epsilon=MUCH)
        (ends,) = release.interval(SURE).to_pylist()
        ((true,),) = meant(f"SELECT 0, {asked}").values()
        room = 1e-3 * (1 + abs(true))
        assert ends["n_low"] - room <= true <= ends["n_high"] + room, (asked, ends, true)
        assert np.isfinite([ends["n_low"], ends["n_high"]]).all(), asked
        assert any("allow for cells" in note for note in release.bounds), asked


@pytest.mark.parametrize("unit", UNITS)
def test_groups_by_parts_of_dates_are_covered(sessions, meant, unit):
    asked = "SELECT month(date) AS k, COUNT(*) AS n FROM t WHERE date IN ({}) GROUP BY 1"
    days = ", ".join(f"DATE '2024-{month:02}-{day}'" for month in range(1, 13) for day in ("01", "09"))
    release = sessions[unit].sql(asked.format(days)).release(epsilon=MUCH)
    true = meant(asked.format(days))
    assert len(release.table) == 12
    for row in release.interval(SURE).to_pylist():
        assert row["n_low"] - 1e-3 <= true[row["k"]][0] <= row["n_high"] + 1e-3, row


@pytest.mark.parametrize(
    "asked",
    [
        "COUNT(*) AS n FROM t WHERE date IS NULL",
        "COUNT(*) AS n FROM t WHERE COALESCE(age, 0) = 0",
        "SUM(CASE WHEN age > 50 THEN 1 ELSE 0 END) AS n FROM t",
        "COUNT(*) AS n FROM t WHERE age IS DISTINCT FROM 7",
        "SUM(age) / COUNT(*) AS n FROM t",
        "COUNT(*) - COUNT(age) AS n FROM t",
        "COUNT(age) AS n, COUNT(age) / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY kind",
    ],
)
def test_where_such_a_cell_may_do_more_than_leave_a_row_out_nothing_is_claimed(sessions, asked):
    release = sessions["row"].sql(f"SELECT {asked}").release(epsilon=MUCH)
    assert not release.unread.by
    assert release.interval(0.9) == release.interval(0.9, kind="noise")
    assert any("intervals do not allow for them" in note for note in release.bounds)


LINES = "SELECT who, {} FROM t {} GROUP BY who {}"
MADE_OF_OTHERS = {
    "a union": "(SELECT age FROM t UNION ALL SELECT age FROM t) WHERE age > 9",
    "a condition within a union": "(SELECT kind FROM t WHERE age > 9 UNION ALL SELECT kind FROM t) v",
    "a line's figure": f"({LINES.format('MAX(age) AS m', '', '')}) WHERE m < 2",
    "a line's condition": f"({LINES.format('COUNT(*) AS m', 'WHERE age > 9', '')}) v",
    "a line's HAVING": f"({LINES.format('COUNT(*) AS m', '', 'HAVING MAX(age) > 9')}) v",
    "a line's key": "(SELECT who, age, COUNT(*) AS m FROM t GROUP BY who, age) v",
    "a public table by it": "t JOIN ages ON t.age = ages.age",
    "a public table beside it": "t JOIN kinds ON t.kind = kinds.kind WHERE age > 9",
    "rows of the same person": "t AS a JOIN t AS b ON a.who = b.who AND a.kind = b.kind WHERE b.age > 9",
    "the order of a window": "(SELECT who, ROW_NUMBER() OVER (PARTITION BY who ORDER BY age) AS m FROM t) "
    "WHERE m = 1",
    "the argument of a window": "(SELECT LAG(age) OVER (PARTITION BY who ORDER BY kind) AS m FROM t) "
    "WHERE m > 9",
    "the parts of a window": "(SELECT COUNT(*) OVER (PARTITION BY who, age) AS m FROM t) WHERE m > 1",
    "lines of a window": "(SELECT who, MAX(m) AS l FROM (SELECT who, SUM(age) OVER (PARTITION BY who) AS m "
    "FROM t) GROUP BY who) WHERE l > 9",
}
NOT_OF_IT = {
    "a union": "(SELECT kind, age FROM t UNION ALL SELECT kind, age FROM t) WHERE kind = 'a'",
    "a line": f"({LINES.format('COUNT(*) AS m, MAX(age) AS l', '', '')}) WHERE m < 2",
    "a window": "(SELECT kind, SUM(age) OVER (PARTITION BY who) AS m FROM t) WHERE kind = 'a'",
}


@pytest.fixture(scope="module")
def with_public(files):
    """The same people beside public tables, with nothing bought."""
    table = sf.PrivateTable("t", source=str(files / "written.csv"), unit=UNITS["who"], schema=SCHEMA)
    ages = pa.table({"age": [1, 2], "old": [False, True]})
    kinds = pa.table({"kind": ["a", "b"], "good": [False, True]})
    public = [
        sf.PublicTable("ages", source=ages, schema={"age": sf.Int(1, 2), "old": sf.Bool()}, key="age"),
        sf.PublicTable(
            "kinds", source=kinds, schema={"kind": sf.Enum("a", "b"), "good": sf.Bool()}, key="kind"
        ),
    ]
    with sf.Session(table, *public, budget=sf.Budget(10**8)) as session:
        yield session


@pytest.mark.parametrize("place", MADE_OF_OTHERS)
def test_rows_that_are_made_of_others_are_said_not_to_be_allowed_for(with_public, place):
    release = with_public.sql(f"SELECT COUNT(*) AS n FROM {MADE_OF_OTHERS[place]}").release(epsilon=MUCH)
    (said,) = [note for note in release.bounds if "intervals do not allow for them" in note]
    assert "age " in said or "t.age" in said
    assert "date" not in said
    assert not release.unread.by


@pytest.mark.parametrize("place", NOT_OF_IT)
def test_columns_that_are_not_read_are_not_named(with_public, place):
    release = with_public.sql(f"SELECT COUNT(*) AS n FROM {NOT_OF_IT[place]}").release(epsilon=MUCH)
    assert release.unread is None or "age" not in " ".join(release.unread.others)


def test_groups_that_are_found_may_be_of_cells_that_could_not_be_read(files):
    table = sf.PrivateTable(
        "t", source=str(files / "written.csv"), unit=UNITS["row"], schema={"age": sf.Int()}
    )
    with sf.Session(table, budget=sf.Budget(100, "0.1")) as session:
        session.unreadable("t", "age", 1)
        release = session.sql("SELECT age, COUNT(*) AS n FROM t GROUP BY age").release(
            epsilon=1, delta="1e-3"
        )
        assert not release.unread.by


def test_a_unit_moves_the_count_by_what_is_claimed(tmp_path):
    """Nine cells of one person, of which five count: noise for five, and no less would do."""
    counts = []
    for cells in (0, 9):
        lines = ["who,age", *("1,old" for _ in range(cells)), "2,older", "3,7"]
        path = tmp_path / f"{cells}.csv"
        path.write_text("\n".join(lines) + "\n")
        table = sf.PrivateTable("t", source=str(path), unit=UNITS["who"], schema={"age": sf.Int(0, 99)})
        with sf.Session(table, budget=sf.Budget(100)) as session:
            session.unreadable("t", "age", 1)
            found = exact(session.asked_unread["t", "age"][0])
            counts.append(found.table["cells"][0].as_py())
            assert found.l1["cells"] == 5
    assert counts == pytest.approx([1, 6])  # weights are rounded down


def test_a_number_that_is_forgotten_is_seen(sessions, meant, monkeypatch):
    """The planted bug: cells that could not be read are taken to be none."""
    monkeypatch.setattr(unreadable.Unread, "most", lambda self, name, risk: 0.0)
    for asked in COVERED[:2]:
        release = sessions["row"].sql(f"SELECT {asked}").release(epsilon=MUCH)
        ((true,),) = meant(f"SELECT 0, {asked}").values()
        assert release.interval(SURE)["n_high"][0].as_py() < true - 1


def test_the_risk_is_shared(sessions):
    release = sessions["who"].sql(f"SELECT SUM(age) AS n FROM t WHERE {JANUARY}").release(epsilon=MUCH)
    cover = release._estimates._cover
    both, cut = cover.left_out, cover.cuts["a0"]
    assert release.unread.by == {"a0": {"date", "age"}}
    assert both.of("a0", cut, 0.04) == both.limits.of("a0", cut, 0.02) + release.unread.most("a0", 0.02)
    single = [
        counted._estimates.covering("cells", 1 - 0.01)[1][0] for counted in release.unread.counts.values()
    ]
    assert release.unread.most("a0", 0.02) == pytest.approx(sum(single))


def test_it_is_kept_and_free_afterwards(files):
    table = sf.PrivateTable("t", source=str(files / "written.csv"), unit=UNITS["row"], schema=SCHEMA)
    with sf.Session(table, budget=sf.Budget(10)) as session:
        question = session.sql(f"SELECT COUNT(*) AS n FROM t WHERE {JANUARY}")
        before = question.release(epsilon=2)
        assert before.interval() == before.interval(kind="noise")
        first = session.unreadable("t", "date", 1)
        assert session.balance().spent == 3
        assert session.unreadable("t", "date", 1).table == first.table
        assert session.unreadable("t", "date", "0.5").free
        after = question.release(epsilon=2)
        assert after.free
        assert after.interval()["n_high"][0].as_py() > before.interval()["n_high"][0].as_py()
        assert session.balance().spent == 3


WRITTEN = {
    "date": ["2024-01-05", "05.01.2024", "", " ", "infinity", "2024-02-30", "epoch", "x"],
    "age": ["1", " 5", "1.5", "x", "", "9" * 40, "１", "0x10", "nan"],
    "kind": ["true", "no", "maybe", "", "2", "T"],
}


@pytest.mark.parametrize("column", WRITTEN)
@pytest.mark.parametrize("comma", [False, True])
def test_each_cell_that_is_there_and_was_not_read_is_counted(tmp_path, column, comma):
    cells = WRITTEN[column]
    text = "\n".join(['"c"', *(f'"{cell}"' for cell in cells), ""])
    (tmp_path / "t.csv").write_text(text)
    kinds = {"date": sf.Date(), "age": sf.Float(0, 99), "kind": sf.Bool()}
    source = sf.Csv(str(tmp_path / "t.csv"), decimal="," if comma else ".", dates="%d.%m.%Y" if comma else ())
    table = sf.PrivateTable("t", source=source, unit=UNITS["row"], schema={"c": kinds[column]})
    with sf.Session(table, budget=sf.Budget(10**8)) as session:
        found = session.unreadable("t", "c", MUCH).table["cells"][0].as_py()
        read = session.sql("SELECT COUNT(*) AS n FROM t WHERE c IS NOT NULL").release(epsilon=MUCH)
    there = sum(bool(cell.strip()) for cell in cells)
    assert found == there - read.table["n"][0].as_py()
    assert found > 0


def test_what_always_fits_has_nothing_to_count(files):
    source = pa.table({"who": [1], "age": [3], "kind": ["a"], "date": pa.array([0], pa.date32())})
    table = sf.PrivateTable("t", source=source, unit=UNITS["who"], schema=SCHEMA)
    with sf.Session(table, budget=sf.Budget(1)) as session:
        for column in SCHEMA:
            with pytest.raises(QueryRefused, match="can be read"):
                session.unreadable("t", column, 1)
        for place, fix in {
            ("t", "zzz"): "Columns: date, age, kind",
            ("t", "agge"): r"Did you mean age\?",
            ("t", "Kind"): r"Did you mean kind\?",
            ("s", "age"): "Private tables: t",
            ("T", "age"): r"Did you mean t\?",
            ("t", 3): "Columns: date, age, kind",
        }.items():
            with pytest.raises(QueryRefused, match=fix):
                session.unreadable(*place, 1)
        assert session.balance().spent == 0


def _columns():
    return {
        name: np.ma.MaskedArray(
            np.array([value if value is not None else filler for value in values.to_pylist()], dtype),
            [value is None for value in values.to_pylist()],
        )
        for name, values, filler, dtype in (
            (name, values, *_FILL[str(values.type)])
            for name, values in zip(TABLE.column_names, TABLE.columns, strict=True)
        )
    }


_FILL = {
    "int64": (0, np.float64),
    "double": (0.0, np.float64),
    "string": ("", object),
    "bool": (False, np.bool_),
    "date32[day]": (np.datetime64("2020-01-01"), "datetime64[D]"),
}
TABLE = inside(40)


def _changes(name, times):
    """Whether a random call changes from one value to another where a cell is no longer NULL."""
    draw, columns = random.Random(name), _columns()
    for call, _ in accepted(name, times):
        hiding = [column for column in sorted(set(columns_of(call))) if _only_hides(call, column)]
        if not hiding:
            continue
        column = draw.choice(hiding)
        hidden = columns | {column: np.ma.MaskedArray(columns[column].data, mask=True)}
        try:
            full, less = evaluate(call, columns), evaluate(call, hidden)
        except QueryRefused:  # it has no form over results
            continue
        there = ~np.ma.getmaskarray(less)
        gone = there & np.ma.getmaskarray(full)
        if gone.any() or not np.array_equal(less.data[there], full.data[there]):
            return True
    return False


@pytest.mark.parametrize("name", sorted(set(CALLS) - SEES_NULL))
def test_functions_hide_a_row_or_leave_it_as_it_is(name):
    assert not _changes(name, 12)


def test_functions_that_see_null_would_be_noticed(monkeypatch):
    monkeypatch.setattr(unreadable, "SEES_NULL", frozenset())
    assert {name for name in SEES_NULL if _changes(name, 60)} == SEES_NULL


@pytest.mark.parametrize("unit", UNITS)
def test_the_head_and_the_receipt_say_what_was_counted(sessions, unit):
    session = sessions[unit]
    counted = session.unreadable("t", "date", MUCH)
    assert counted.estimands["cells"].startswith("cells of date that could not be read")
    told = [
        each.purpose.words for each in session.releases() if each.fingerprint == counted.receipt.fingerprint
    ]
    assert told == ["rows of t where date could not be read"]
