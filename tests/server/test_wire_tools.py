"""What DBeaver, Metabase, Superset, pgAdmin and Power BI send is answered from the public schema, free.

The statements are in `fixtures`. A real PostgreSQL with the same table says which columns each has to have.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import generators, pq

import sfumato as sf
from fixtures_sql import Sent, all_sent
from sfumato.server.wire import Front
from sfumato.server.wire.catalog_tables import columns_of, table_names

SENT = all_sent()
OURS = 16384
"""The number of the first table here."""
TEXTS = {18, 19, 25, 194, 705, 1042, 1043, 2278}
LISTS = {1002, 1003, 1009, 1015, 1034, 2277}
SAME = {28: 26, 24: 26, 22: 1005, 30: 1028, 1184: 1114, 1185: 1115}
"""Types of PostgreSQL that are another one here."""


class Client:
    """One connection, which sends as a tool does and gives what came back."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection, self._wire = connection, connection.pgconn

    def _result(self) -> pq.abc.PGresult:
        found = self._connection.wait(generators.execute(self._wire))[-1]
        assert found.status != pq.ExecStatus.FATAL_ERROR, found.error_message.decode()
        return found

    def answer(self, sent: Sent, visits: int) -> tuple[list[tuple[str, int]], list[list[str | None]]]:
        """The columns with their types, and the rows as text."""
        if sent.extended:
            self._wire.send_prepare(b"s", sent.text.encode())
            self._result()
            self._wire.send_describe_prepared(b"s")
            told = self._result()
            self._wire.send_query_prepared(b"s", [value.encode() for value in sent.values(visits)])
            result = self._result()
            assert columns(result) == columns(told)
            self._wire.send_query(b"DEALLOCATE s")
            self._result()
        else:
            self._wire.send_query(sent.text.encode())
            result = self._result()
        values = [
            [result.get_value(row, at) for at in range(result.nfields)] for row in range(result.ntuples)
        ]
        return columns(result), [
            [None if value is None else value.decode() for value in row] for row in values
        ]


def columns(result: pq.abc.PGresult) -> list[tuple[str, int]]:
    return [((result.fname(at) or b"").decode(), result.ftype(at)) for at in range(result.nfields)]


def shown(value: object) -> str | None:
    if isinstance(value, bool):
        return "t" if value else "f"
    return None if value is None else str(value)


def family(oid: int) -> int:
    """One number for types between which clients do not tell."""
    oid = SAME.get(oid, oid)
    return 25 if oid in TEXTS else 1009 if oid in LISTS else oid


@pytest.fixture(scope="module")
def client(front: Front) -> Iterator[Client]:
    login = {"user": "ada", "password": "open-sesame", "dbname": "demo"}
    with psycopg.connect(host="127.0.0.1", port=front.port, autocommit=True, **login) as connection:
        yield Client(connection)


@pytest.fixture(scope="module")
def real(postgres_server) -> Iterator[tuple[psycopg.Connection, int]]:
    with (
        postgres_server.database() as address,
        psycopg.connect(address, autocommit=True) as connection,
    ):
        connection.execute("CREATE TABLE visits (country text NOT NULL, age bigint, day date)")
        found = connection.execute("SELECT 'visits'::regclass::oid::bigint").fetchone()
        assert found is not None
        yield connection, int(found[0])


@pytest.mark.parametrize("sent", SENT, ids=str)
def test_what_tools_send_is_answered_from_the_public_schema(
    client: Client, steward: sf.Session, sent: Sent
) -> None:
    before = steward.balance().remaining
    _, rows = client.answer(sent, OURS)
    expected, values = sent.expected, [value for row in rows for value in row if value is not None]
    if "rows" in expected:
        assert rows == [[shown(value) for value in row] for row in expected["rows"]]
    if "count" in expected:
        assert len(rows) == expected["count"]
    for word in expected.get("holds", []):
        assert any(word in value for value in values), rows[:3]
    for word in expected.get("lacks", []):
        assert word not in values
    assert steward.balance().remaining == before


QUESTIONS = [
    'SELECT COUNT(*) AS "count" FROM "public"."visits" WHERE "public"."visits"."age" < 93',
    'SELECT "public"."visits"."country" AS "country", COUNT(*) AS "count" FROM "public"."visits" '
    'WHERE "public"."visits"."age" < 93 GROUP BY "public"."visits"."country" '
    'ORDER BY "public"."visits"."country" ASC',
    """SELECT CAST(DATE_TRUNC('month', "public"."visits"."day") AS DATE) AS "day", """
    """AVG("public"."visits"."age") AS "avg" FROM "public"."visits" """
    """GROUP BY CAST(DATE_TRUNC('month', "public"."visits"."day") AS DATE) """
    """ORDER BY CAST(DATE_TRUNC('month', "public"."visits"."day") AS DATE) ASC""",
    "SELECT country AS country, COUNT(*) AS count FROM public.visits WHERE age < 93 GROUP BY country "
    "ORDER BY count DESC LIMIT 1000",
    """SELECT DATE_TRUNC('day', day) AS __timestamp, AVG(age) AS "AVG(age)" FROM public.visits """
    """WHERE day >= TO_DATE('2024-01-01', 'YYYY-MM-DD') AND day < TO_DATE('2024-01-09', 'YYYY-MM-DD') """
    """GROUP BY DATE_TRUNC('day', day) ORDER BY "AVG(age)" DESC LIMIT 1000""",
    'select "rows"."country" as "country", count(*) as "a0" from "public"."visits" "rows" '
    'where "rows"."age" < 93 group by "country" limit 1000001',
]
"""As Metabase, Superset and Power BI write them for a chart."""


@pytest.mark.parametrize("text", QUESTIONS)
def test_charts_cost_nothing_until_a_price_is_set(front: Front, steward: sf.Session, text: str) -> None:
    login = {"user": "ada", "password": "open-sesame", "dbname": "demo"}
    with psycopg.connect(host="127.0.0.1", port=front.port, autocommit=True, **login) as connection:
        before = steward.balance().remaining
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="nothing was spent"):
            connection.execute(text)
        assert steward.balance().remaining == before
        connection.execute("SET sfumato.epsilon = 0.25")
        assert connection.execute(text).fetchall()


def test_each_statement_has_the_columns_that_a_real_postgresql_gives(
    client: Client, real: tuple[psycopg.Connection, int]
) -> None:
    connection, visits = real
    theirs, wrong = Client(connection), {}
    for sent in SENT:
        if not sent.expected.get("real", True):
            continue
        theirs_columns = theirs.answer(sent, visits)[0]
        wanted = [(name, family(oid)) for name, oid in theirs_columns if name != "proargtypes"]
        given = iter([(name, family(oid)) for name, oid in client.answer(sent, OURS)[0]])
        lacking = [column for column in wanted if column not in given]  # in this order, with others between
        if lacking:
            wrong[str(sent)] = lacking
    assert not wrong, "\n".join(f"{name}: {lacking}" for name, lacking in wrong.items())


def test_the_catalog_has_all_tables_and_columns_of_a_real_one(real: tuple[psycopg.Connection, int]) -> None:
    connection, _ = real
    query = """
        SELECT CASE nspname WHEN 'pg_catalog' THEN relname ELSE nspname || '.' || relname END, attname
        FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace
        WHERE nspname IN ('pg_catalog', 'information_schema') AND relkind IN ('r', 'v') AND attnum > 0
          AND relname NOT IN ('pg_statistic', 'pg_largeobject', 'pg_aios', 'pg_shmem_allocations_numa')
        """
    theirs = set(connection.execute(query).fetchall())
    ours = {(table, column) for table in table_names() for column, _ in columns_of(table)}
    assert theirs - ours == set()
