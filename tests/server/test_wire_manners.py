"""What clients do beside asking: cursors, prepared statements in SQL, copies, settings by function."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

import sfumato as sf
import wire
from sfumato.server.wire import Front

DAYS = "SELECT day, COUNT(*) AS n FROM visits WHERE age < {} GROUP BY day"


@pytest.fixture
def connection(front: Front) -> Iterator[psycopg.Connection]:
    login = {"user": "ada", "password": "open-sesame", "dbname": "demo"}
    with psycopg.connect(
        host="127.0.0.1", port=front.port, options="-c sfumato.epsilon=0.5", **login
    ) as made:
        yield made


def spent(session: sf.Session) -> float:
    balance = session.balance()
    return float(balance.epsilon - balance.remaining)


def state_of(connection: psycopg.Connection, text: str) -> str | None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(text)
    connection.rollback()
    return caught.value.sqlstate


def test_a_server_side_cursor_reads_one_answer_in_parts(
    connection: psycopg.Connection, steward: sf.Session
) -> None:
    before = spent(steward)
    with connection.cursor("days", scrollable=True) as cursor:
        cursor.itersize = 7
        cursor.execute(DAYS.format("%s"), [47])
        assert [column.name for column in cursor.description or []] == ["day", "n"]
        rows = list(cursor)
        cursor.scroll(-3)
        assert cursor.fetchone() == rows[-2]  # it stood behind the last
        cursor.scroll(1, mode="absolute")
        assert cursor.fetchmany(2) == rows[1:3]
    assert len(rows) == 31
    assert spent(steward) - before == pytest.approx(0.5)


def test_fetch_and_move_go_where_they_are_told(connection: psycopg.Connection) -> None:
    connection.execute(f"DECLARE c SCROLL CURSOR FOR {DAYS.format(48)} ORDER BY day")
    rows = connection.execute("FETCH ALL FROM c").fetchall()

    def fetched(way: str) -> list[object]:
        return connection.execute(sql.SQL("FETCH {} FROM c").format(sql.SQL(way))).fetchall()  # type: ignore[arg-type]

    assert fetched("NEXT") == []
    assert fetched("PRIOR") == rows[-1:]
    assert fetched("BACKWARD 2") == [rows[-2], rows[-3]]
    assert fetched("FIRST") == rows[:1]
    assert fetched("2") == rows[1:3]
    assert fetched("LAST") == rows[-1:]
    assert fetched("ABSOLUTE 4") == rows[3:4]
    assert fetched("RELATIVE -2") == rows[1:2]
    assert fetched("ABSOLUTE -1") == rows[-1:]
    assert fetched("BACKWARD ALL") == rows[-2::-1]
    assert connection.execute("MOVE 3 IN c").statusmessage == "MOVE 3"
    assert fetched("FORWARD 1") == rows[3:4]
    assert connection.execute("CLOSE c").statusmessage == "CLOSE CURSOR"
    assert state_of(connection, "FETCH c") == "34000"


def test_cursors_end_with_their_transaction_unless_they_are_held(connection: psycopg.Connection) -> None:
    connection.execute("DECLARE short CURSOR FOR SELECT 1")
    connection.execute("DECLARE long CURSOR WITH HOLD FOR SELECT 1 AS one")
    connection.commit()
    assert connection.execute("FETCH long").fetchall() == [(1,)]
    assert state_of(connection, "FETCH short") == "34000"
    connection.autocommit = True
    assert state_of(connection, "DECLARE c CURSOR FOR SELECT 1") == "25P01"


def test_what_was_paid_stays_paid_when_it_is_closed_early_or_rolled_back(
    connection: psycopg.Connection, steward: sf.Session
) -> None:
    before = spent(steward)
    connection.execute(f"DECLARE c CURSOR FOR {DAYS.format(54)}")
    connection.execute("CLOSE c")
    assert spent(steward) - before == pytest.approx(0.5)
    first = connection.execute(DAYS.format(55)).fetchall()
    connection.rollback()
    assert spent(steward) - before == pytest.approx(1)
    assert connection.execute(DAYS.format(55)).fetchall() == first
    assert spent(steward) - before == pytest.approx(1)


PRICE = "SHOW sfumato.epsilon"
POINTS = {
    "a price that was set since": (["SET sfumato.epsilon = 3", "ROLLBACK TO here"], "0.5"),
    "a price for the transaction alone": (
        ["SET LOCAL sfumato.epsilon = 3", "ROLLBACK TO SAVEPOINT here"],
        "0.5",
    ),
    "by a function": (
        ["SELECT set_config('sfumato.epsilon', '3', false)", "ROLLBACK WORK TO here"],
        "0.5",
    ),
    "all that was set": (["RESET ALL", "SET sfumato.epsilon = 3", "ROLLBACK TRANSACTION TO here"], "0.5"),
    "what failed": (["SET sfumato.epsilon = 3", "SELECT nonsense", 'ROLLBACK TO "here"'], "0.5"),
    "not what was set before": (["SET sfumato.epsilon = 1", "SAVEPOINT later", "ROLLBACK TO later"], "1"),
    "those after it": (
        ["SAVEPOINT later", "SET sfumato.epsilon = 3", "RELEASE later", "ROLLBACK TO here"],
        "0.5",
    ),
    "the last of a name": (
        ["SET sfumato.epsilon = 1", "SAVEPOINT here", "SET sfumato.epsilon = 3", "ROLLBACK TO here"],
        "1",
    ),
    "then the one before": (
        ["SAVEPOINT here", "SET sfumato.epsilon = 3", "RELEASE SAVEPOINT here", "ROLLBACK TO here"],
        "0.5",
    ),
    "again": (["ROLLBACK TO here", "SET sfumato.epsilon = 3", "ROLLBACK TO here"], "0.5"),
}


@pytest.mark.parametrize("what", POINTS)
def test_going_back_to_a_savepoint_undoes_prices(connection: psycopg.Connection, what: str) -> None:
    """As PostgreSQL does: who goes back pays no price that was set for what is undone."""
    steps, price = POINTS[what]
    connection.execute("SAVEPOINT here")
    for step in steps:
        with contextlib.suppress(psycopg.errors.DatabaseError):
            connection.execute(step)
    assert connection.execute(PRICE).fetchone() == (price,)
    connection.commit()
    assert connection.execute(PRICE).fetchone() == ("0.5" if "LOCAL" in steps[0] else price,)


def test_savepoints_are_of_a_transaction_and_not_without_number(connection: psycopg.Connection) -> None:
    for text in ("ROLLBACK TO nowhere", "RELEASE nowhere"):
        assert state_of(connection, text) == "3B001"
    assert state_of(connection, "SAVEPOINT") == "42601"
    for _ in range(200):
        connection.execute("SAVEPOINT again")  # as some drivers do before each statement
    for number in range(49):
        connection.execute(f"SAVEPOINT p{number}")
    assert state_of(connection, "SAVEPOINT more") == "53400"
    connection.autocommit = True
    assert state_of(connection, "SAVEPOINT here") == "25P01"


def test_statements_prepared_in_sql_are_asked_with_values(
    connection: psycopg.Connection, steward: sf.Session
) -> None:
    before = spent(steward)
    connection.execute(
        "PREPARE ask (bigint, text) AS SELECT COUNT(*) AS n FROM visits WHERE age < $1 AND country = $2"
    )
    assert spent(steward) == before
    first = connection.execute("EXECUTE ask (49, 'FR')").fetchone()
    assert connection.execute("EXECUTE ask(49, 'FR')").fetchone() == first
    assert spent(steward) - before == pytest.approx(0.5)
    connection.execute("PREPARE find AS SELECT relname FROM pg_class WHERE relname = $1")
    assert connection.execute("EXECUTE find ('visits')").fetchall() == [("visits",)]
    connection.execute("DEALLOCATE ask")
    connection.commit()
    assert state_of(connection, "EXECUTE ask (49, 'FR')") == "26000"
    assert state_of(connection, "EXECUTE find ()") == "42601"
    assert state_of(connection, "EXECUTE find (lower('X'))") == "0A000"
    assert state_of(connection, "PREPARE bad AS DROP TABLE visits") == "0A000"
    assert state_of(connection, "PREPARE find AS SELECT 1") == "42P05"
    connection.execute("DISCARD ALL")
    assert state_of(connection, "EXECUTE find ('visits')") == "26000"


def test_a_copy_of_an_answer_is_paid_like_the_answer(
    connection: psycopg.Connection, steward: sf.Session
) -> None:
    before = spent(steward)
    asked = "SELECT country, COUNT(*) AS n FROM visits WHERE age < 51 GROUP BY country"
    with connection.cursor().copy(f"COPY ({asked}) TO STDOUT WITH (FORMAT csv, HEADER)") as copy:
        text = b"".join(bytes(part) for part in copy).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["country"] for row in rows} == {"FR", "DE"}
    with connection.cursor().copy(f"COPY ({asked}) TO STDOUT") as copy:
        copy.set_types(["text", "int8"])
        assert sorted(copy.rows()) == sorted((row["country"], int(row["n"])) for row in rows)
    assert spent(steward) - before == pytest.approx(0.5)


def test_copies_of_texts_are_quoted(connection: psycopg.Connection) -> None:
    asked = "SELECT 'a,b' AS x, 'say \"no\"' AS y, NULL AS z, '' AS e"
    with connection.cursor().copy(f"COPY ({asked}) TO STDOUT (FORMAT csv)") as copy:
        assert b"".join(bytes(part) for part in copy) == b'"a,b","say ""no""",,""\n'
    with connection.cursor().copy("COPY (SELECT 'a\tb' AS x, NULL AS y) TO STDOUT") as copy:
        assert b"".join(bytes(part) for part in copy) == b"a\\tb\t\\N\n"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("COPY visits TO STDOUT", "0A000"),
        ("COPY (SELECT 1) TO '/tmp/x'", "0A000"),
        ("COPY (SELECT * FROM visits) TO STDOUT", "0A000"),
        ("COPY (SELECT 1) TO STDOUT (FORMAT binary)", "0A000"),
        ("COPY visits FROM STDIN", "0A000"),
        ("DECLARE c CURSOR FOR SELECT * FROM visits", "0A000"),
        ("DECLARE c FOR SELECT 1", "42601"),
        ("FETCH SIDEWAYS FROM c", "34000"),
        ("SELECT repeat('x', 100000) FROM generate_series(1, 1000)", "54000"),
        ("SELECT relname FROM pg_class WHERE set_config('sfumato.epsilon', '1', false) = '1'", "0A000"),
        ("SELECT set_config('sfumato.epsilon', 'lots', false)", "22023"),
    ],
)
def test_what_is_not_done_has_postgresql_s_codes_and_is_free(
    connection: psycopg.Connection, steward: sf.Session, text: str, state: str
) -> None:
    before = spent(steward)
    assert state_of(connection, text) == state
    assert spent(steward) == before


def test_without_a_price_no_cursor_and_no_copy_spends(front: Front, steward: sf.Session) -> None:
    before = spent(steward)
    login = {"user": "ada", "password": "open-sesame", "dbname": "demo"}
    with psycopg.connect(host="127.0.0.1", port=front.port, **login) as connection:
        for text in (f"DECLARE c CURSOR FOR {DAYS.format(52)}", f"COPY ({DAYS.format(52)}) TO STDOUT"):
            assert state_of(connection, text) == "55000"
    assert spent(steward) == before


def test_set_config_and_current_setting_are_set_and_show(connection: psycopg.Connection) -> None:
    asked = "SELECT set_config('application_name', %s, false), set_config('sfumato.epsilon', '0.25', true)"
    assert connection.execute(asked, ["a tool"]).fetchone() == ("a tool", "0.25")
    shown = "SELECT current_setting('application_name'), current_setting('sfumato.epsilon')"
    assert connection.execute(shown).fetchone() == ("a tool", "0.25")
    setting = "SELECT setting FROM pg_settings WHERE name = 'application_name'"
    assert connection.execute(setting).fetchone() == ("a tool",)
    connection.commit()
    assert connection.execute("SHOW sfumato.epsilon").fetchone() == ("0.5",)


@pytest.mark.skipif(wire.psql_path() is None, reason="there is no psql")
def test_psql_s_other_commands(front: Front) -> None:
    asked = "SELECT country, COUNT(*) AS n FROM visits WHERE age < 53 GROUP BY country"
    commands = [
        (r"\dt+", "visits"),
        (r"\d+ visits", "Access method: heap"),
        (r"\sf nothing", ""),
        (r"\dv", "Did not find any"),
        (r"\dx", "List of installed extensions"),
        (r"\conninfo", "demo"),
        (r"\encoding", "UTF8"),
        ("SHOW ALL", "sfumato.confidence"),
        (f"BEGIN; SET LOCAL sfumato.epsilon = 0.5; {asked}; COMMIT", "FR"),
        (rf"\copy ({asked}) to stdout csv header", "country,n"),
    ]
    flags = [command for command, _ in commands]
    done = wire.psql(front, "SET sfumato.epsilon = 0.5", *flags, password="open-sesame")
    told = done.stdout + done.stderr
    for command, words in commands:
        assert words in told, command
