"""The PostgreSQL JDBC driver before the wire front: what DBeaver and Metabase are built on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import jdbc
import sfumato as sf
from sfumato.engines import duckdb as engine
from sfumato.server.wire import Front

DAYS = (
    "SELECT day, COUNT(*) AS n, AVG(age) AS a FROM visits "
    "WHERE age >= ? AND country = ? AND day < ? GROUP BY day"
)


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    try:
        with jdbc.java() as gateway:
            yield gateway
    except jdbc.Missing as why:
        pytest.skip(f"no JDBC driver: {why}")


@pytest.fixture(params=["extended", "simple"])
def connection(request: Any, java: Any, front: Front) -> Iterator[Any]:
    address = f"jdbc:postgresql://127.0.0.1:{front.port}/demo?preferQueryMode={request.param}"
    made = java.jvm.java.sql.DriverManager.getConnection(address, "ada", "open-sesame")
    yield made
    made.close()


@pytest.fixture
def extended(java: Any, front: Front) -> Iterator[Any]:
    address = f"jdbc:postgresql://127.0.0.1:{front.port}/demo"
    made = java.jvm.java.sql.DriverManager.getConnection(address, "ada", "open-sesame")
    yield made
    made.close()


def test_the_driver_s_metadata_is_answered_from_the_public_schema(
    connection: Any, steward: sf.Session
) -> None:
    before = steward.balance().remaining
    told = connection.getMetaData()
    assert told.getDatabaseProductName() == "PostgreSQL"
    assert told.getDatabaseMajorVersion() == 16
    assert told.getUserName() == "ada"
    assert told.getMaxColumnNameLength() == 63
    assert "ilike" in told.getSQLKeywords()
    tables = jdbc.rows(told.getTables(None, "public", "%", None))
    assert [(row["TABLE_NAME"], row["TABLE_TYPE"]) for row in tables] == [("visits", "TABLE")]
    columns = jdbc.rows(told.getColumns(None, None, "visits", None))
    shown = [(row["COLUMN_NAME"], row["TYPE_NAME"], row["IS_NULLABLE"]) for row in columns]
    assert shown == [("country", "text", "NO"), ("age", "int8", "YES"), ("day", "date", "YES")]
    assert [row["TABLE_CAT"] for row in jdbc.rows(told.getCatalogs())] == ["demo"]
    assert "public" in [row["TABLE_SCHEM"] for row in jdbc.rows(told.getSchemas())]
    grants = jdbc.rows(told.getTablePrivileges(None, None, "visits"))
    assert [(row["GRANTEE"], row["PRIVILEGE"]) for row in grants] == [("PUBLIC", "SELECT")]
    kinds = {row["TYPE_NAME"] for row in jdbc.rows(told.getTypeInfo())}
    assert {"int8", "float8", "text", "date"} <= kinds
    assert steward.balance().remaining == before


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("getPrimaryKeys", (None, "public", "visits")),
        ("getImportedKeys", (None, "public", "visits")),
        ("getExportedKeys", (None, "public", "visits")),
        ("getIndexInfo", (None, "public", "visits", False, True)),
        ("getBestRowIdentifier", (None, "public", "visits", 0, True)),
        ("getProcedures", (None, "public", "%")),
        ("getProcedureColumns", (None, "public", "%", "%")),
        ("getFunctions", (None, "public", "%")),
        ("getFunctionColumns", (None, "public", "%", "%")),
        ("getUDTs", (None, "public", "%", None)),
        ("getCrossReference", (None, "public", "visits", None, "public", "visits")),
    ],
)
def test_what_a_table_here_has_not_is_an_empty_list(extended: Any, call: str, arguments: tuple) -> None:
    assert jdbc.rows(getattr(extended.getMetaData(), call)(*arguments)) == []


def test_parameters_of_all_kinds_again_and_again(java: Any, extended: Any, steward: sf.Session) -> None:
    """The driver goes from text to binary after some times; the answer stays the same, and is paid once."""
    extended.createStatement().execute("SET sfumato.epsilon = 0.75")
    before = steward.balance().remaining
    prepared = extended.prepareStatement(DAYS)
    answers = []
    for _ in range(7):
        prepared.setInt(1, 22)
        prepared.setString(2, "FR")
        prepared.setDate(3, java.jvm.java.sql.Date.valueOf("2024-02-01"))
        result = prepared.executeQuery()
        assert jdbc.types(result) == ["date", "int8", "float8"]
        answers.append([(row["DAY"], row["N"], float(row["A"] or "nan")) for row in jdbc.rows(result)])
    assert len(answers[0]) == 31
    assert all(answer == answers[0] for answer in answers)
    assert float(before - steward.balance().remaining) == 0.75


def test_a_fetch_size_reads_one_answer_in_parts(extended: Any, steward: sf.Session) -> None:
    extended.setAutoCommit(False)
    statement = extended.createStatement()
    statement.setFetchSize(7)
    statement.execute("SET sfumato.epsilon = 0.125")
    before = steward.balance().remaining
    asked = "SELECT day, COUNT(*) AS n FROM visits WHERE age > 71 GROUP BY day"
    assert len(jdbc.rows(statement.executeQuery(asked))) == 31
    extended.commit()
    assert float(before - steward.balance().remaining) == 0.125


def test_transactions_savepoints_and_settings_of_a_connection(extended: Any) -> None:
    extended.setAutoCommit(False)
    point = extended.setSavepoint("here")
    extended.createStatement().execute("SELECT 1")
    extended.rollback(point)
    extended.releaseSavepoint(point)
    extended.commit()
    extended.setAutoCommit(True)
    extended.setTransactionIsolation(8)
    extended.setReadOnly(True)
    extended.setSchema("public")
    extended.setClientInfo("ApplicationName", "a test")
    assert (extended.getSchema(), extended.getCatalog(), extended.isValid(5)) == ("public", "demo", True)


def test_without_a_price_the_error_has_its_code_and_the_quote(connection: Any, steward: sf.Session) -> None:
    from py4j.protocol import Py4JJavaError

    before = steward.balance().remaining
    with pytest.raises(Py4JJavaError) as caught:
        connection.createStatement().executeQuery("SELECT COUNT(*) AS n FROM visits WHERE age = 45")
    error = caught.value.java_exception
    assert error.getSQLState() == "55000"
    assert "price   epsilon 0.1" in error.getMessage()
    assert steward.balance().remaining == before


def test_a_statement_that_java_cancels_is_charged(
    extended: Any, steward: sf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.protocol import Py4JJavaError

    reading = threading.Event()

    def slow(cursor: Any, text: str) -> Any:
        reading.set()
        return cursor.execute(
            "SELECT SUM(a.range + b.range) FROM range(1000000) a, range(1000000) b"
        ).fetchall()

    monkeypatch.setattr(engine, "_fetched", slow)
    statement = extended.createStatement()
    statement.execute("SET sfumato.epsilon = 0.5")
    before = steward.balance().remaining

    def cancel() -> None:
        reading.wait(30)
        statement.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(Py4JJavaError) as caught:
        statement.executeQuery("SELECT COUNT(*) AS n FROM visits WHERE age = 46")
    canceller.join()
    assert caught.value.java_exception.getSQLState() == "57014"
    assert float(before - steward.balance().remaining) == 0.5
