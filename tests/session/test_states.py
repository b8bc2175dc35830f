"""Tables that grow: which data an answer is about, which answers are free, and what is read of a state."""

from __future__ import annotations

import copy
import datetime
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from postgres_engine import given, server
from sfumato.catalog import Catalog
from sfumato.errors import CatalogUnusable, EngineFailed, InvalidParameter, LedgerUnusable, SourceUnusable
from sfumato.plan.questions.nodes import Measured
from sfumato.schema import tables as declared
from sfumato.sql.write import sources

TEXT = "SELECT COUNT(*) AS n FROM visits"
BUDGET = sf.Budget(epsilon=10**7, delta="0.001")
MANY = {1: 10, 2: 20, 3: 40, 4: 80}  # rows of each month: their sums say which months were read


def month(number):
    return pa.table(
        {
            "user": [f"{number} {place}" for place in range(MANY[number])],
            "day": pa.array([datetime.date(2026, number, 5)] * MANY[number]),
            "place": pa.array([number] * MANY[number], pa.int64()),
        }
    )


def arrives(folder, number):
    pq.write_table(month(number), folder / f"2026-{number:02}.parquet")


def files(last, **sizes):
    return sf.State([f"2026-{number:02}.parquet" for number in range(1, last + 1)], **sizes)


def table_of(source, states, **more):
    schema = {"day": sf.Date("2026-01-01", "2026-12-31"), "place": sf.Int(0, 100)}
    unit = more.pop("unit", sf.PrivacyUnit("user"))
    return sf.PrivateTable("visits", source=source, unit=unit, schema=schema, states=states, **more)


def counted(session, text=TEXT):
    release = session.sql(text).release(epsilon=1000)
    return round(release.table["n"][0].as_py()), release.free


@pytest.fixture(params=["files", "column", "postgres"])
def growing(request, tmp_path):
    """Makes sessions over a table in its first states, whose rows all arrive at their time."""
    folder = tmp_path / "visits"
    folder.mkdir()
    if request.param == "postgres":
        server()

    def session(last, **more):
        for number in range(1, last + 1):
            if not (folder / f"2026-{number:02}.parquet").exists():
                arrives(folder, number)
        named = {f"month {number}": number for number in range(2, last + 1)}
        rows = pa.concat_tables([month(number) for number in range(1, last + 1)])
        if request.param == "files":
            source, states = folder, {name: files(number) for name, number in named.items()}
        else:
            source = rows if request.param == "column" else given(rows)
            column = {"column": "day", "last": "2026-02-28"}
            states = {
                name: sf.State(column="place", last=number) if number > 2 else sf.State(**column)
                for name, number in named.items()
            }
        return sf.Session(table_of(source, states), budget=BUDGET, ledger=tmp_path / "ledger", **more)

    return session


def test_a_new_state_is_a_new_question_and_old_answers_are_free(growing):
    with growing(2) as session:
        assert counted(session) == (30, False)
        assert counted(session) == (30, True)
    with growing(3) as session:
        assert counted(session) == (70, False)
        assert counted(session.at("month 2")) == (30, True)
        assert counted(session.at("month 3")) == (70, True)
        spent = session.balance().spent
        other = "SELECT COUNT(*) AS n FROM visits WHERE place >= 0"
        assert counted(session.at("month 2"), other) == (30, False)
        assert session.balance().spent == spent + 1000
    with growing(4) as session:
        older = session.at("month 2")
        assert [counted(older), counted(session.at("month 3")), counted(session)] == [
            (30, True),
            (70, True),
            (150, False),
        ]
        assert session.at("month 4") is session
        assert counted(older.at("month 4")) == (150, True)
        assert session.balance().spent == 4000


def test_releases_name_their_state(growing):
    with growing(3) as session:
        new, old = session.sql(TEXT).release(epsilon=1), session.at("month 2").sql(TEXT).release(epsilon=1)
        assert (new.state, old.state) == ("month 3", "month 2")
        assert [receipt.purpose.state for receipt in session.releases()] == ["month 3", "month 2"]
        assert "About visits as of month 3." in str(new)
        assert "About visits as of month 2, not month 3." in str(old)
        choice = session.at("month 2").most_common("place", 1, among=[1, 2])
        assert choice.receipt.purpose.state == "month 2"


def test_the_quote_of_a_new_state_says_what_is_on_record(growing):
    with growing(2) as session:
        assert "month 2 is on record" not in str(session.sql(TEXT).quote(epsilon=1))
        session.sql(TEXT).release(epsilon=1)
    with growing(4) as session:
        quote = " ".join(str(session.sql(TEXT).quote(epsilon=1)).split())
        assert "The answer about month 2 is on record: at('month 2') reads it free." in quote
        assert "2 states cost epsilon 2 together. A series has one price, such as epsilon 1" in quote
        session.at("month 3").sql(TEXT).release(epsilon=1)
        assert "3 states cost epsilon 3" in " ".join(str(session.sql(TEXT).quote(epsilon=1)).split())
        again = str(session.at("month 2").sql(TEXT).quote(epsilon=1))
        assert "asking for this again is free" in " ".join(again.split())


def test_an_analyst_asks_about_earlier_states(growing):
    with growing(3) as session:
        ada = session.as_analyst("ada")
        assert counted(ada.at("month 2")) == (30, False)
        assert counted(ada.at("month 2").at("month 3")) == (70, False)
        bob = session.at("month 2").as_analyst("bob")
        assert counted(bob)[0] == 30
        old = session.at("month 2")
    with pytest.raises((EngineFailed, LedgerUnusable), match="closed"):
        counted(old)


def test_a_series_goes_on_over_all_states(growing):
    def stream(session):
        return session.stream(
            "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY m",
            start="2026-01-01",
            horizon=12,
            epsilon=10**4,
            delta="1e-6",
            of="steps",
        )

    with growing(2) as session:
        series = stream(session)
        assert series.advance(now=datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)) == 2
        spent = session.balance().spent
    with growing(4) as session:
        series = stream(session)
        assert series.advance(now=datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)) == 2
        assert session.balance().spent == spent
        assert [round(n) for n in series.table("steps")["n"].to_pylist()] == [10, 20, 40, 80]
        assert series.receipt.purpose.state == "month 2 and later"


def test_a_file_that_arrives_later_is_in_no_older_state(tmp_path):
    arrives(tmp_path, 1)
    arrives(tmp_path, 2)
    with sf.Session(table_of(tmp_path, {"feb": files(2)}), budget=BUDGET) as session:
        arrives(tmp_path, 3)
        assert counted(session) == (30, False)
    with sf.Session(table_of(tmp_path, {"feb": files(2)}), budget=BUDGET) as session:
        assert counted(session) == (30, False)


def test_partitions_are_columns_in_states_of_one_of_them(tmp_path):
    for number in (1, 2):
        (tmp_path / f"m={number}").mkdir()
        pq.write_table(month(number), tmp_path / f"m={number}" / "part.parquet")
    states = {
        "jan": sf.State(["m=1/part.parquet"]),
        "feb": sf.State(["m=1/part.parquet", "m=2/part.parquet"]),
    }
    table = sf.PrivateTable(
        "visits", source=tmp_path, unit=sf.PrivacyUnit("user"), schema={"m": sf.Int(1, 12)}, states=states
    )
    with sf.Session(table, budget=BUDGET) as session:
        text = f"{TEXT} WHERE m = 1"
        assert [counted(session, text)[0], counted(session.at("jan"), text)[0]] == [10, 10]


def test_a_missing_file_is_the_usual_error(tmp_path):
    for number in (1, 2, 3):
        arrives(tmp_path, number)
    table = table_of(tmp_path, {"feb": files(2), "mar": files(3)})
    with sf.Session(table, budget=BUDGET, ledger=tmp_path / "l") as session:
        counted(session.at("feb"))
    (tmp_path / "2026-01.parquet").rename(tmp_path / "gone")
    newer = {"feb": files(2), "apr": sf.State(["2026-03.parquet"])}
    with sf.Session(table_of(tmp_path, newer), budget=BUDGET, ledger=tmp_path / "l") as session:
        assert counted(session) == (40, False)
        with pytest.raises(SourceUnusable, match="not a file"):
            session.at("feb")


@pytest.mark.parametrize("unit", [sf.PrivacyUnit.row(), sf.PrivacyUnit("user", window="month", time="day")])
def test_states_by_a_column_hold_whatever_the_unit(unit):
    rows = pa.concat_tables([month(1), month(2), month(3)])
    states = {"feb": sf.State(column="place", last=2), "mar": sf.State(column="place", last=3)}
    with sf.Session(table_of(rows, states, unit=unit), budget=BUDGET) as session:
        assert [counted(session.at("feb"))[0], counted(session)[0]] == [30, 70]
        assert counted(session.growing())[0] == 70


def test_states_of_owners(tmp_path):
    people = pa.table({"user": ["a", "b", "c"], "place": [1, 2, 3]})
    visits = pa.table({"user": ["a", "b", "c", "c"], "place": [1, 2, 2, 3]})
    states = {"one": sf.State(column="place", last=2), "two": sf.State(column="place", last=3)}
    kinds = {"user": sf.Text(), "place": sf.Int(0, 9)}
    owners = sf.PrivateTable(
        "people", source=people, unit=sf.PrivacyUnit("user"), schema=kinds, states=states
    )
    lines = sf.PrivateTable(
        "visits",
        source=visits,
        unit=sf.PrivacyUnit.via("people", on="user", max_rows=2),
        schema=kinds,
        states=states,
    )
    with sf.Session(owners, lines, budget=BUDGET) as session:
        assert counted(session)[0] == 4
        assert counted(session.at("one"))[0] == 2  # c is in no row of people yet
        assert counted(session.at("one", table="people"))[0] == 2
        assert counted(session.at("one", table="visits"))[0] == 3


def test_what_is_no_state_is_refused(tmp_path):
    for wrong in ({}, {"files": ["a"], "column": "b", "last": 1}, {"column": "day"}, {"last": 3}):
        with pytest.raises(InvalidParameter, match="A state is a list of files"):
            sf.State(**wrong)
    for path in ("/etc/passwd", "../a.parquet", ""):
        with pytest.raises(InvalidParameter, match="within the table's folder"):
            sf.State([path])
    for state in (sf.State(column="nobody", last=3), sf.State(column="day", last="soon")):
        with pytest.raises(InvalidParameter, match="names a declared one of dates"):
            table_of(month(1), {"a": state})
    with pytest.raises(InvalidParameter, match="need a folder"):
        table_of(month(1), {"a": files(1)})
    with pytest.raises(InvalidParameter, match="upper and lower case"):
        table_of(tmp_path, {"a": files(1), "A": files(2)})
    with pytest.raises(InvalidParameter, match="all files of their own"):
        table_of(tmp_path, {"a": files(1), "b": sf.State(column="place", last=2)})
    with pytest.raises(InvalidParameter, match="There is no state 'c' of visits: a"):
        table_of(tmp_path, {"a": files(1)}, version="c")
    with sf.Session(table_of(month(1), None), budget=BUDGET) as session:
        with pytest.raises(InvalidParameter, match="No table here has states"):
            session.at("a")
        assert session.growing() is session


@pytest.mark.parametrize(
    "name", ["", " a", "a ", "a\nb", "\u202ea", "a\u200bb", "\x1b[1m", "x" * 201, "All states", 3]
)
def test_names_of_states_are_seen_whole(tmp_path, name):
    with pytest.raises(InvalidParameter, match="A state has a name of 1 to 200 characters"):
        table_of(tmp_path, {name: files(1)})


def test_names_of_states_that_look_alike_are_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="upper and lower case"):
        table_of(tmp_path, {"m\u00e4rz": files(1), "ma\u0308rz": files(2)})


@pytest.mark.parametrize("version", ["all states", '{"state": "a", "files": ["2026-01.parquet"]}'])
def test_no_version_is_written_as_a_state(tmp_path, version):
    for made in (
        lambda: table_of(tmp_path, None, version=version),
        lambda: sf.PublicTable("wards", source=month(1), schema={"place": sf.Int()}, version=version),
    ):
        with pytest.raises(InvalidParameter, match="would be read as a state's"):
            made()


@pytest.fixture
def declared_anew(tmp_path):
    """Asks one question, on one ledger, of the table as it is declared: the count, and if it was free."""
    folder = tmp_path / "visits"
    folder.mkdir()
    for number in (1, 2, 3):
        arrives(folder, number)

    def ask(states, **more):
        with sf.Session(
            table_of(folder, states, **more), budget=BUDGET, ledger=tmp_path / "ledger"
        ) as session:
            return counted(session)

    return ask


def test_a_version_and_a_state_of_one_name_share_no_answer(declared_anew):
    assert declared_anew(None) == (70, False)
    assert declared_anew({"1": files(1)}) == (10, False)
    assert declared_anew({"jan": files(1)}) == (10, False)
    assert declared_anew(None, version="jan") == (70, False)
    assert declared_anew(None) == (70, True)
    assert declared_anew({"1": files(1)}) == (10, True)


def test_a_state_that_is_declared_anew_is_a_new_question(declared_anew):
    one = {"now": sf.State(["2026-01.parquet", "2026-02.parquet"])}
    assert declared_anew(one) == (30, False)
    assert declared_anew({"now": files(1)}) == (10, False)
    assert declared_anew({"now": sf.State(column="place", last=1)}) == (10, False)
    assert declared_anew({"now": sf.State(column="place", last=2)}) == (30, False)
    assert declared_anew({"now": sf.State(column="day", last="2026-01-31")}) == (10, False)
    assert declared_anew({"now": sf.State(column="day", last="2026-02-28")}) == (30, False)
    assert declared_anew({"later": files(2)}) == (30, False)  # a new name is a new question, as a version is
    for same in (files(2), files(2, sizes=[1, 2]), sf.State(["2026-02.parquet", "2026-01.parquet"])):
        assert declared_anew({"now": same}) == (30, True)


def test_snapshots_are_told_apart(tmp_path):
    marks = {table_of(tmp_path, {"a": sf.State(snapshot=number)}).identity for number in (1, 2)}
    assert len(marks | {table_of(tmp_path, {"a": files(1)}).identity, "a"}) == 4


def test_states_of_tables_that_are_joined_hold_what_they_are(tmp_path):
    """A question over a subquery has the versions of all that it reads in one text."""
    for number in (1, 2):
        arrives(tmp_path, number)
    text = "SELECT COUNT(*) AS n FROM (SELECT user, COUNT(*) AS k FROM visits GROUP BY user) AS t"
    for state, many in ((files(1), 10), (files(2), 30)):
        with sf.Session(
            table_of(tmp_path, {"a": state}), budget=BUDGET, ledger=tmp_path / "ledger"
        ) as session:
            assert counted(session, text) == (many, False)


def test_a_table_with_states_is_rehearsed(growing):
    with growing(2) as session, session.growing().rehearse() as tried:
        assert tried.sql(TEXT).release(epsilon=1000).table.num_rows == 1


def test_planted_a_state_is_known_by_its_name(declared_anew, monkeypatch):
    monkeypatch.setattr(sf.PrivateTable, "identity", property(lambda self: self.version))
    for test in (
        test_a_version_and_a_state_of_one_name_share_no_answer,
        test_a_state_that_is_declared_anew_is_a_new_question,
    ):
        with pytest.raises(AssertionError):
            test(declared_anew)


def test_a_table_with_states_is_copied_whole(tmp_path):
    table = table_of(tmp_path, {"a": files(1), "b": files(2, sizes=[1, 2])})
    for other in (copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
        assert dict(other.states) == dict(table.states)
        assert (other.version, other.reads, other.relation) == ("b", table.reads, "visits")
    assert table.at("a").relation != "visits"


def test_planted_an_answer_of_another_state_or_a_free_one(growing, monkeypatch):
    """The version is left out of the question."""
    right = Measured.fingerprint
    monkeypatch.setattr(
        Measured, "fingerprint", property(lambda self: right.__get__(declared.replace(self, version="1")))
    )
    with pytest.raises(AssertionError):
        test_a_new_state_is_a_new_question_and_old_answers_are_free(growing)


def test_planted_the_files_of_another_state_are_read(tmp_path, monkeypatch):
    for number in (1, 2, 3):
        arrives(tmp_path, number)
    table = table_of(tmp_path, {"feb": files(2), "mar": files(3)})
    with sf.Session(table, budget=BUDGET) as session:
        assert counted(session.at("feb"))[0] == 30
    monkeypatch.setattr(sf.PrivateTable, "relation", property(lambda self: self.name))
    with sf.Session(table, budget=BUDGET) as session:
        assert counted(session.at("feb"))[0] == 70  # planted: one name for both


def test_cells_that_could_not_be_read_are_counted_in_a_state(tmp_path):
    (tmp_path / "a.csv").write_text("user,place,day\n1,1,2026-01-01\n2,x,2026-01-02\n3,y,2026-02-02\n")
    states = {
        "jan": sf.State(column="day", last="2026-01-31"),
        "feb": sf.State(column="day", last="2026-02-28"),
    }
    with sf.Session(table_of(tmp_path / "a.csv", states), budget=BUDGET) as session:
        cells = [
            round(one.unreadable("visits", "place", 1000).table["cells"][0].as_py())
            for one in (session.at("jan"), session)
        ]
    assert cells == [1, 2]


def test_planted_files_that_come_later_count(tmp_path, monkeypatch):
    monkeypatch.setattr(sf.PrivateTable, "reads", property(lambda self: self.source))
    with pytest.raises(AssertionError):
        test_a_file_that_arrives_later_is_in_no_older_state(tmp_path)


def test_planted_rows_that_come_later_count(monkeypatch):
    monkeypatch.setattr(sources, "_of_state", lambda table, *_: sources.table(table.relation))
    with pytest.raises(AssertionError):
        test_states_by_a_column_hold_whatever_the_unit(sf.PrivacyUnit("user"))


def catalog(folder, states):
    (folder / "sfumato.toml").write_text(
        '[datasets.visits]\nepsilon = 10\n[tables.visits]\nsource = "data"\nunit = "user"\n'
        f'[tables.visits.columns]\nday = "date"\nplace = {{ type = "int", lower = 0, upper = 9 }}\n{states}'
    )
    return Catalog.read(folder / "sfumato.toml")


def test_a_catalog_names_states(tmp_path):
    (tmp_path / "data").mkdir()
    arrives(tmp_path / "data", 1)
    listed = '[tables.visits.states."2026-01"]\nfiles = ["2026-01.parquet"]\nsizes = [17]\n'
    (table,) = catalog(tmp_path, listed).tables
    assert (table.version, table.states["2026-01"].sizes) == ("2026-01", (17,))
    by_column = (
        '[tables.visits.states]\na = { column = "day", last = 2026-01-31 }\n'
        'b = { column = "day", last = 2026-02-28 }\n'
    )
    (table,) = catalog(tmp_path, by_column).tables
    assert table.version == "b"
    assert table.at("a").last == ("day", datetime.date(2026, 1, 31))
    for wrong in ('a = { file = ["x"] }', "a = { files = 3 }", 'a = { column = "day" }', "a = 3"):
        with pytest.raises(CatalogUnusable):
            catalog(tmp_path, f"[tables.visits.states]\n{wrong}\n")


def test_states_pay_in_the_windows_of_a_budget_for_each(tmp_path):
    rows = pa.concat_tables([month(number) for number in MANY])
    states = {name: sf.State(column="place", last=last) for name, last in (("feb", 2), ("apr", 4))}
    unit = sf.PrivacyUnit("user", window="month", time="day")
    within = f"{TEXT} WHERE day >= DATE '2026-02-01' AND day < DATE '2026-04-01'"
    budget = sf.Budget(epsilon=10**7, each="month")
    with sf.Session(table_of(rows, states, unit=unit), budget=budget, ledger=tmp_path / "l") as session:
        assert [counted(session.at("feb"), within), counted(session, within)] == [(20, False), (60, False)]
        assert counted(session.at("feb"), within) == (20, True)
        assert [session.balance(window=f"2026-0{number}").spent for number in (1, 2, 3)] == [0, 2000, 2000]
