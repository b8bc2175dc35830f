"""Real clients before the wire front: `psql` and psycopg."""

from __future__ import annotations

import datetime
import os
import signal
import socket
import ssl
import struct
import threading
import time
from pathlib import Path

import psycopg
import pytest

import sfumato as sf
import wire
from sfumato.engines import duckdb as engine
from sfumato.errors import InvalidParameter
from sfumato.server.access.scram import Exchange, end_point
from sfumato.server.wire import Front

COUNT = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"

needs_psql = pytest.mark.skipif(wire.psql_path() is None, reason="there is no psql")


def ask(front: Front, *commands: str, **how: str):
    return wire.psql(front, *commands, **{"password": "open-sesame", **how})


def connect(front: Front, **options: object) -> psycopg.Connection:
    given = {"user": "ada", "password": "open-sesame", "dbname": "demo", **options}
    return psycopg.connect(host="127.0.0.1", port=front.port, **given)  # type: ignore[arg-type]


def spent(session: sf.Session) -> float:
    balance = session.balance()
    return float(balance.epsilon - balance.remaining)


@needs_psql
@pytest.mark.parametrize(
    ("command", "told"),
    [
        (r"\d", "public | visits | table | sfumato"),
        (r"\dt", "public | visits | table | sfumato"),
        (r"\d visits", "country | text   |           | not null |"),
        (r"\d+ visits", "age     | bigint |"),
        (r"\l", "demo | sfumato | UTF8"),
        (r"\dn", "public | sfumato"),
        (r"\du", "sfumato"),
        (r"\df", "(0 rows)"),
        (r"\dT pg_catalog.*", "double precision"),
        (r"\dp", "visits"),
        ("SELECT version()", "sfumato"),
        ("SELECT current_schema(), current_user, current_database()", "ada"),
        ("SELECT COUNT(*) FROM information_schema.columns", "3"),
        ("SELECT 'visits'::regclass::oid", "16384"),
        ("SHOW server_version", "16.0 (sfumato)"),
    ],
)
def test_what_psql_asks_the_catalog_is_answered_and_free(
    front: Front, steward: sf.Session, command: str, told: str
) -> None:
    before = spent(steward)
    done = ask(front, command)
    assert (done.returncode, done.stderr) == (0, "")
    assert told in done.stdout
    assert spent(steward) == before


@needs_psql
def test_psql_pays_what_it_sets_and_reads_again_for_free(front: Front, steward: sf.Session) -> None:
    before = spent(steward)
    done = ask(front, "SET sfumato.epsilon = 0.25", COUNT, COUNT)
    assert done.returncode == 0
    assert done.stdout.count(" FR ") == 2
    assert "Paid epsilon 0.25" in done.stderr
    assert "free" in done.stderr
    assert spent(steward) - before == pytest.approx(0.25)


@needs_psql
def test_without_a_price_nothing_is_spent_and_the_error_has_the_quote(
    front: Front, steward: sf.Session
) -> None:
    before = spent(steward)
    done = ask(front, "SELECT AVG(age) AS a FROM visits")
    assert done.returncode == 1
    assert "nothing was spent" in done.stderr
    assert "price   epsilon 0.1" in done.stderr
    assert "SET sfumato.epsilon = 0.1;" in done.stderr
    assert spent(steward) == before


@needs_psql
def test_explain_gives_the_quote_as_lines_of_text(front: Front, steward: sf.Session) -> None:
    before = spent(steward)
    done = ask(front, "SET sfumato.epsilon = 0.5", f"EXPLAIN {COUNT}")
    assert "QUERY PLAN" in done.stdout
    assert "price   epsilon 0.5" in done.stdout
    assert spent(steward) == before


@needs_psql
def test_a_wrong_token_and_an_unknown_name_get_the_same_words(front: Front) -> None:
    wrong, unknown = ask(front, "SELECT 1", password="no"), ask(front, "SELECT 1", user="eve")
    assert wrong.returncode == unknown.returncode == 2
    assert "This login is not valid" in wrong.stderr
    assert wrong.stderr == unknown.stderr


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("INSERT INTO visits VALUES (1)", "0A000"),
        ("DROP TABLE visits", "0A000"),
        ("COPY visits TO STDOUT", "0A000"),
        ("SELECT * FROM visits", "0A000"),
        ("SELECT COUNT(*) FROM nowhere", "42P01"),
        ("SELECT COUNT(*) FROM visits WHERE nothing = 1", "42703"),
        ("SELECT COUNT(*) FROM visits HAVING nothing > 1", "42703"),
        ("SELECT COUNT(*) FROM visits WHERE nothing(age) = 1", "42883"),
        ("SELECT COUNT(*) FROM visits WHERE", "42601"),
        ("SELECT v.age, COUNT(*) FROM visits GROUP BY 1", "42P01"),
        ("SELECT COUNT(*) FROM visits, pg_class", "42P01"),
        ("SELECT * FROM pg_catalog.pg_secrets", "42P01"),
        ("SELECT pg_read_file('/etc/passwd')", "42883"),
        ("SELECT * FROM read_csv('/etc/passwd')", "42883"),
        ("SELECT getenv('HOME')", "42883"),
        ("SELEC 1", "42601"),
        ("SELECT 'not closed", "42601"),
        ("SET sfumato.epsilon = -1", "22023"),
        ("SET sfumato.epsilon = lots", "22023"),
        ("SET sfumato.epsilom = 1", "42704"),
        ("SET client_encoding = 'LATIN1'", "22023"),
        ("SHOW nothing_like_it", "42704"),
        ("DEALLOCATE nothing_like_it", "26000"),
    ],
)
def test_what_is_refused_has_postgresql_s_codes_and_costs_nothing(
    front: Front, steward: sf.Session, text: str, state: str
) -> None:
    before = spent(steward)
    with connect(front, autocommit=True, options="-c sfumato.epsilon=1") as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(text)
        assert caught.value.sqlstate == state
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert spent(steward) == before


def test_more_than_is_left_is_refused_with_a_code_of_its_own(front: Front) -> None:
    rich = connect(front, autocommit=True, options="-c sfumato.epsilon=100000")
    with rich as connection, pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
        connection.execute("SELECT COUNT(*) AS c FROM visits WHERE age > 3")


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_gets_typed_values_in_text_and_in_binary(front: Front, binary: bool) -> None:
    with connect(front, autocommit=True) as connection:
        connection.execute("SET sfumato.epsilon = 5")
        rows = connection.execute(
            "SELECT day, COUNT(*) AS n, AVG(age) AS a, COUNT(*) > 5 AS many FROM visits "
            "WHERE age >= %s AND country = %s AND day < %s GROUP BY day",
            [20, "FR", datetime.date(2024, 2, 1)],
            binary=binary,
        ).fetchall()
    assert len(rows) == 31
    assert [type(value) for value in rows[0]] == [datetime.date, int, float, bool]
    assert rows[0][0] == datetime.date(2024, 1, 1)


def test_intervals_are_columns_where_they_are_asked_for(front: Front) -> None:
    with connect(front, autocommit=True) as connection:
        connection.execute("SET sfumato.epsilon = 5")
        cursor = connection.execute(
            "SELECT country, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS lo FROM visits GROUP BY 1"
        )
        assert [column.name for column in cursor.description] == ["country", "n", "lo"]
        connection.execute("SET sfumato.intervals = on")
        connection.execute("SET sfumato.confidence = 0.9")
        cursor = connection.execute(COUNT)
        assert [column.name for column in cursor.description] == ["country", "n", "n_low", "n_high"]
        for _, value, low, high in cursor.fetchall():
            assert low <= value <= high


def test_the_price_of_googlesql_s_clause_goes_before_the_setting(front: Front, steward: sf.Session) -> None:
    before = spent(steward)
    with connect(front, autocommit=True, options="-c sfumato.epsilon=9") as connection:
        connection.execute(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.125, privacy_unit_column = user_id) "
            "COUNT(*) AS c FROM visits WHERE age > 77"
        )
    assert spent(steward) - before == pytest.approx(0.125)


def test_a_transaction_that_is_rolled_back_forgets_its_price(front: Front) -> None:
    with connect(front) as connection:
        connection.execute("SET sfumato.epsilon = 1")
        connection.rollback()
        assert connection.execute("SHOW sfumato.epsilon").fetchone() == ("",)
        connection.execute("SET LOCAL sfumato.epsilon = 1")
        assert connection.execute("SHOW sfumato.epsilon").fetchone() == ("1",)
        connection.commit()
        assert connection.execute("SHOW sfumato.epsilon").fetchone() == ("",)


def test_after_an_error_a_transaction_takes_nothing_but_its_end(front: Front) -> None:
    with connect(front) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT COUNT(*) FROM nowhere")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_prepared_statements_pipelines_and_several_statements_at_once(front: Front) -> None:
    with connect(front, autocommit=True, options="-c sfumato.epsilon=1") as connection:
        asked = "SELECT COUNT(*) AS n FROM visits WHERE age < %s"
        answers = [connection.execute(asked, [40], prepare=True).fetchone() for _ in range(3)]
        assert len(set(answers)) == 1
        with connection.pipeline():
            first, second = connection.execute("SELECT 1"), connection.execute(asked, [40])
        assert (first.fetchone(), second.fetchone()) == ((1,), answers[0])
        cursor = connection.execute("SELECT 1; SELECT 2; SET application_name = 'x'")
        assert cursor.fetchone() == (1,)
        assert cursor.nextset()
        assert cursor.fetchone() == (2,)
        connection.execute("DISCARD ALL")


def test_a_name_with_its_schema_is_the_same_table(front: Front) -> None:
    with connect(front, autocommit=True, options="-c sfumato.epsilon=1") as connection:
        one = connection.execute('SELECT COUNT(*) AS n FROM "public"."visits"').fetchone()
        assert one == connection.execute("SELECT COUNT(*) AS n FROM visits").fetchone()


@needs_psql
def test_a_cancelled_read_is_charged_and_said(
    front: Front, steward: sf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = threading.Event()

    def slow(cursor: object, text: str) -> object:
        reading.set()
        return cursor.execute(
            "SELECT SUM(a.range + b.range) FROM range(1000000) a, range(1000000) b"
        ).fetchall()

    monkeypatch.setattr(engine, "_fetched", slow)
    before = spent(steward)
    asked = "SET sfumato.epsilon = 0.5", "SELECT COUNT(*) AS c FROM visits WHERE age = 21"
    with wire.started_psql(front, *asked, password="open-sesame") as client:
        assert reading.wait(30)
        client.send_signal(signal.SIGINT)  # it sends a request to cancel, as on Ctrl-C
        _, wrong = client.communicate(timeout=30)
    assert "ERROR:  The read was interrupted; the price stays paid." in wrong
    assert spent(steward) - before == pytest.approx(0.5)


def test_a_wrong_key_cancels_nothing(front: Front) -> None:
    front.cancel(1, b"0000")
    with connect(front, autocommit=True) as connection:
        front.cancel(connection.info.backend_pid, b"0000")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_tls_is_required_and_logins_are_bound_to_the_certificate(
    steward: sf.Session, verifiers: dict, tmp_path: Path
) -> None:
    context, certificate = wire.self_signed(tmp_path)
    made = Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Exchange(verifiers[user], binding=binding),
        tls=context,
        binding=end_point(certificate),
    )
    with wire.serving(made):
        with connect(made, sslmode="require", channel_binding="require", autocommit=True) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
            assert connection.pgconn.ssl_in_use
        with pytest.raises(psycopg.OperationalError, match="TLS is required"):
            connect(made, sslmode="disable")
    with pytest.raises(InvalidParameter, match="needs TLS"):
        Front(lambda login, database: steward, lambda user, address, binding: None)  # type: ignore[arg-type]
    assert isinstance(context, ssl.SSLContext)


def test_one_connection_too_many_is_refused_with_its_code(steward: sf.Session, verifiers: dict) -> None:
    made = Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Exchange(verifiers[user], binding=binding),
        plain=True,
        most=1,
        idle_seconds=0.3,
    )
    with wire.serving(made), connect(made, autocommit=True) as connection:
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            connect(made)
        time.sleep(0.6)
        with pytest.raises(psycopg.OperationalError, match="silent for too long"):
            connection.execute("SELECT 1")


def test_a_login_that_does_not_hold_any_more_ends_the_connection(
    steward: sf.Session, verifiers: dict
) -> None:
    revoked = threading.Event()

    def check(login: object) -> None:
        if revoked.is_set():
            raise sf.errors.LoginFailed("This login is not valid.")

    made = Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Exchange(verifiers[user], binding=binding),
        check=check,
        plain=True,
    )
    with wire.serving(made), connect(made, autocommit=True) as connection:
        connection.execute("SELECT 1")
        revoked.set()
        with pytest.raises(psycopg.OperationalError, match="not valid"):
            connection.execute("SELECT 1")


def test_a_port_in_use_is_said_in_a_sentence(front: Front, steward: sf.Session) -> None:
    made = Front(lambda login, database: steward, lambda user, address, binding: None, plain=True)  # type: ignore[arg-type]
    taken = f"Port {front.port} of 127.0.0.1 cannot be listened on"
    with pytest.raises(InvalidParameter, match=taken), wire.serving(made, port=front.port):
        pass


def test_a_client_that_reads_nothing_is_let_go(steward: sf.Session, verifiers: dict) -> None:
    made = Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Exchange(verifiers[user], binding=binding),
        plain=True,
        message_seconds=0.5,
    )
    long = b"SELECT repeat('x', 10000) FROM generate_series(1, 1500);" * 4 + b"\0"
    with wire.serving(made), connect(made, autocommit=True) as connection:
        raw = socket.socket(fileno=os.dup(connection.fileno()))
        raw.sendall(b"Q" + struct.pack(">I", len(long) + 4) + long)
        for _ in range(100):
            time.sleep(0.1)
            if not made._connections:
                break
        raw.close()
        assert not made._connections
