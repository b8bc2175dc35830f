"""A hostile analyst's tour of a real server: nothing gets in, nothing is charged, nothing crashes or is told.

Whatever the server says on the way, over both fronts and on its own output, is kept, and searched at the end
for values of the data, for where they are, and for keys.
"""

from __future__ import annotations

import base64
import contextlib
import json
import socket

import httpx
import psycopg
import pytest

from knocking import PlainWire, relayed, sent, statuses
from scram_client import ScramClient
from tour import SQL, Tour

ELSEWHERE = "127.0.0.77"


@pytest.fixture(scope="module")
def shared(nursery, tmp_path_factory):
    made = Tour(nursery, tmp_path_factory.mktemp("tour"))
    yield made
    made.close()


@pytest.fixture
def tour(shared):
    yield shared
    shared.assert_unharmed()


# ── other people's tokens


def forged(tokens: dict[str, str]) -> list[str]:
    ada, bob = tokens["ada"], tokens["bob"]
    kind, name, secret = ada.split("_")
    return [
        f"{kind}_{name}_{bob.split('_')[2]}",
        f"{kind}_{bob.split('_')[1]}_{secret}",
        ada[:-1], ada + "a", ada.upper(), ada.title(), f" {ada}", f"{ada}\t", f"{ada}\x00", f"{ada},{ada}",
        ada[:-1] + ("a" if ada[-1] != "a" else "b"),
        name, secret, "", "null", "undefined", "ada", "' OR 1=1 --", "sfu_", "*", "a" * 5000,
    ]  # fmt: skip


def test_no_token_but_the_own_one_gets_in(tour):
    for token in forged(tour.tokens):
        found = tour.raw(
            f"GET /api/datasets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n",
            source=ELSEWHERE,
        )
        assert statuses(found)[0] in (400, 401, 429)
    for scheme in ("Basic", "Token", "Digest", "Bearer:", "bearer\t"):
        found = tour.ask("GET", "/api/me", None, headers={"Authorization": f"{scheme} {tour.tokens['ada']}"})
        assert found.status_code == 401
    for name in ("Cookie", "X-Api-Key", "Proxy-Authorization", "X-Forwarded-User", "X-Remote-User"):
        assert tour.ask("GET", "/api/me", None, headers={name: tour.tokens["sam"]}).status_code == 401


def test_a_token_opens_no_account_but_its_own_over_the_wire(tour):
    for user in ("ada", "bob", "sam", "eve", "postgres", "", "ADA", "ada\x00sam"):
        with pytest.raises((psycopg.OperationalError, psycopg.DataError, ValueError)) as refused:
            tour.wire(user, tour.tokens["mallory"])
        tour.heard.append(str(refused.value))


# ── replay


def test_a_login_that_was_overheard_opens_nothing(tour):
    with PlainWire(tour.life.pg_port, source=ELSEWHERE) as first:
        first.begin("mallory")
        client = ScramClient(tour.tokens["mallory"], nonce="n" * 24)
        _, said = first.sasl(client.first())
        final = client.final(said[4:].decode())
        kind, told = first.ask(b"p", final.encode())
        assert (kind, told[4:].decode()) == (b"R", client.expects)
    with PlainWire(tour.life.pg_port, source=ELSEWHERE) as again:
        again.begin("mallory")
        again.sasl(client.first())
        kind, told = again.ask(b"p", final.encode())
        assert kind == b"E"
        assert b"28P01" in told


def test_a_request_that_was_overheard_is_answered_free_and_charged_never_again(tour):
    first = tour.ask("POST", "/api/release", "bob", json=tour.body("SELECT COUNT(*) AS n FROM visits")).json()
    assert (first["free"], first["receipt"]) == (True, tour.receipts["bob"])


# ── paths

PATHS = [
    "/api/../../../etc/passwd", "/api/datasets/../../../etc/passwd",
    "/api/datasets/..%2f..%2f..%2fetc%2fpasswd", "/api/datasets/%2e%2e/%2e%2e/etc/passwd",
    "/api/datasets/....//....//etc/passwd", "/api/datasets/%00", "/api/datasets/visits%00.ledger",
    "/api/datasets/..%c0%af..%c0%afetc", "/api/datasets/data.parquet", "/visits.ledger",
    "/sfumato.toml", "/state/", "/static/../sfumato.toml", "/.sfumato/", "/.git/config", "//etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd", "/api/receipts/..%2f1", "/api/receipts/1%00", "/api/receipts/-1",
    "/api/receipts/99999999999999999999999", "/api/receipts/1e3", "/api/receipts/٣", "/docs", "/redoc",
    "/openapi.json", "/api/datasets/" + "a" * 5000, "/api/datasets/visits/../../ledger/export",
    "/debug", "/admin",
]  # fmt: skip


@pytest.mark.parametrize("who", ["mallory", None])
def test_no_path_leads_elsewhere(tour, who):
    head = "" if who is None else tour.bearer(who)
    for path in PATHS:
        raw = path.encode().decode("latin-1")
        found = tour.raw(f"GET {raw} HTTP/1.1\r\nHost: x\r\n{head}\r\n")
        assert statuses(found)[0] in (400, 401, 404, 422), path
        assert b"root:" not in found


SPELLINGS = [
    "/%61pi/me", "/api%2fme", "/health/../api/me", "//api/me", "/health/..;/api/me", "/API/ME",
    "/health;/api/me", "/./api/me", "/api;x/me", "http://x/api/me", "/health?/../api/me",
    "/health#/api/me", "/ready/../api/me",
]  # fmt: skip


@pytest.mark.parametrize("path", SPELLINGS)
def test_no_other_spelling_of_a_path_goes_round_the_token(tour, path):
    assert b"mallory" not in tour.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
    paying = tour.paying().replace(tour.bearer(), "").replace("/api/release", path.replace("me", "release"))
    assert statuses(tour.raw(paying))[0] in (400, 401, 404, 405)


# ── smuggling


def smuggled(tour: Tour) -> dict[str, str]:
    """Requests of which two readers may think differently, each with one inside that would be charged."""
    inner = tour.paying()
    start = "GET /health HTTP/1.1\r\nHost: x\r\n"
    chunked = f"{len(inner):x}\r\n{inner}\r\n0\r\n\r\n"
    return {
        "both framings": f"{start}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
        "both, turned": f"{start}Transfer-Encoding: chunked\r\nContent-Length: {len(inner)}\r\n\r\n{inner}",
        "two lengths": f"{start}Content-Length: 0\r\nContent-Length: {len(inner)}\r\n\r\n{inner}",
        "a list of lengths": f"{start}Content-Length: 0, {len(inner)}\r\n\r\n{inner}",
        "a signed length": f"{start}Content-Length: +0\r\n\r\n{inner}",
        "a length in hexadecimal": f"{start}Content-Length: 0x0\r\n\r\n{inner}",
        "a negative length": f"{start}Content-Length: -1\r\n\r\n{inner}",
        "an empty length": f"{start}Content-Length: \r\n\r\n{inner}",
        "an unknown coding": f"{start}Transfer-Encoding: xchunked\r\n\r\n{chunked}",
        "two codings": f"{start}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n{chunked}",
        "a coding after chunks": f"{start}Transfer-Encoding: chunked, gzip\r\n\r\n{chunked}",
        "a blank before the colon": f"{start}Transfer-Encoding : chunked\r\n\r\n{chunked}",
        "a folded line": f"{start}X: a\r\n Transfer-Encoding: chunked\r\n\r\n{chunked}",
        "a line feed alone": f"GET /health HTTP/1.1\nHost: x\nContent-Length: 0\n\n{inner}",
        "a return alone": f"{start}X: a\rContent-Length: 0\r\n\r\n{inner}",
        "NUL in a name": f"{start}Content\0-Length: 0\r\n\r\n{inner}",
        "NUL in a value": f"{start}X: a\0\r\n\r\n{inner}",
        "NUL in a path": f"GET /health\0 HTTP/1.1\r\nHost: x\r\n\r\n{inner}",
        "a negative chunk": f"{start}Transfer-Encoding: chunked\r\n\r\n-1\r\n{inner}",
        "a chunk beyond all": f"{start}Transfer-Encoding: chunked\r\n\r\n{'f' * 20}\r\n{inner}",
        "a name without a colon": f"{start}Content-Length\r\n\r\n{inner}",
        "a version that is none": f"GET /health HTTP/9.9\r\nHost: x\r\n\r\n{inner}",
        "HTTP/2": f"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{inner}",
        "a handshake of TLS": "\x16\x03\x01\x02\x00\x01\x00" + inner,
        "a tunnel": f"CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n{inner}",
    }  # fmt: skip


def test_no_request_is_hidden_in_another(tour):
    for kind, text in smuggled(tour).items():
        found = tour.raw(text)
        assert statuses(found) == [400], kind
        assert b'"error"' in found, kind


def test_who_asks_is_said_once(tour):
    both = tour.bearer("ada") + tour.bearer()
    for lines in (
        both,
        tour.bearer() + tour.bearer("ada"),
        f"{tour.bearer()}Host: evil.example\r\n",
        f"{tour.bearer()}Content-Type: text/plain\r\nContent-Type: application/json\r\n",
    ):
        found = tour.raw(f"GET /api/me HTTP/1.1\r\nHost: x\r\n{lines}\r\n")
        assert statuses(found) == [400]
        assert b"analyst" not in found


DISGUISES = [
    "X-Forwarded-For: 10.0.0.1\r\nForwarded: for=10.0.0.1\r\n", "X-HTTP-Method-Override: DELETE\r\n",
    "X-Original-URL: /api/ledger/export\r\nX-Rewrite-URL: /api/ledger/export\r\n",
    "Connection: Authorization\r\n",
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n",
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n",
    "Expect: 100-continue\r\n",
]  # fmt: skip


@pytest.mark.parametrize("lines", DISGUISES)
@pytest.mark.parametrize("target", ["/api/me", "http://evil.example/api/me"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_what_proxies_are_told_changes_nothing(tour, lines, target, version):
    found = tour.raw(f"GET {target} HTTP/{version}\r\nHost: evil.example\r\n{tour.bearer()}{lines}\r\n")
    assert statuses(found)[-1] == 200
    assert b'{"name":"mallory","role":"analyst"}' in found
    assert b"evil.example" not in found


# ── SQL

REFUSED = [
    "SELECT * FROM visits", "SELECT city FROM visits", "SELECT MIN(city) AS c FROM visits",
    "SELECT user_id FROM visits", "SELECT COUNT(*) AS n FROM visits; DROP TABLE visits",
    "SELECT COUNT(*) AS n FROM visits UNION ALL SELECT 1",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')", "SELECT COUNT(*) FROM 'data.parquet'",
    "SELECT COUNT(*) FROM read_parquet('data.parquet')", "SELECT COUNT(*) FROM glob('*')",
    "SELECT pg_read_file('/etc/passwd')", "SELECT lo_import('/etc/passwd')", "SELECT pg_sleep(100)",
    "SELECT getenv('HOME')",
    "SELECT COUNT(*) FROM duckdb_settings()", "SELECT COUNT(*) FROM sfumato_receipts",
    "SELECT COUNT(*) FROM sfumato_tokens", "SELECT COUNT(*) FROM sqlite_master",
    "SELECT string_agg(city, ',') AS c FROM visits", "SELECT any_value(city) AS c FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE city = (SELECT city FROM visits LIMIT 1)",
    "SELECT 1/(COUNT(*) - COUNT(*)) AS n, city FROM visits GROUP BY city HAVING error(city)",
    "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT 1 FROM t) SELECT COUNT(*) AS n FROM t",
    "INSERT INTO visits VALUES (1)", "UPDATE visits SET amount = 0", "DELETE FROM visits",
    "TRUNCATE visits", "DROP TABLE visits", "CREATE TABLE x AS SELECT * FROM visits",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS ''", "ALTER TABLE visits ADD COLUMN x int",
    "COPY visits TO '/tmp/x'", "COPY visits FROM PROGRAM 'id'", "EXPORT DATABASE 'x'",
    "ATTACH '/etc/passwd' AS x", "INSTALL httpfs", "LOAD httpfs", "PRAGMA database_list",
    "CALL pragma_version()", "DO $$ BEGIN END $$", "GRANT ALL ON visits TO PUBLIC", "VACUUM",
    "LISTEN x", "NOTIFY x", "DECLARE c CURSOR FOR SELECT * FROM visits", "LOCK TABLE visits",
    "IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z", "SELECT SUM(amount) AS n \x00FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE city = '" + "x" * 90_000,
    "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "SELECT COUNT(*) AS n FROM visits WHERE " + " OR ".join(["amount = 1"] * 2000),
]  # fmt: skip


@pytest.mark.parametrize("path", ["/api/quote", "/api/release"])
def test_sql_of_every_refused_kind_is_refused_over_http(tour, path):
    for sql in REFUSED:
        found = tour.ask("POST", path, json=tour.body(sql))
        assert found.status_code == 422, sql[:80]
        assert len(found.json()["error"]["message"]) > 10


ENDLESS = "WITH RECURSIVE"  # over the wire the catalog's own limit of time ends it


@pytest.mark.parametrize("endless", [False, pytest.param(True, marks=pytest.mark.stats)])
def test_sql_of_every_refused_kind_is_refused_over_the_wire(tour, endless):
    with tour.wire("mallory", tour.tokens["mallory"]) as wire:
        wire.execute("SET sfumato.epsilon = 0.5")
        for sql in REFUSED:
            if "\x00" in sql or sql.startswith(ENDLESS) != endless:  # a NUL ends a text there
                continue
            with pytest.raises(psycopg.Error) as refused:
                wire.execute(sql.encode(), prepare=False).fetchall()
            assert refused.value.sqlstate != "XX000", sql[:80]
            tour.heard.append(str(refused.value))


# ── sizes


def test_what_is_too_large_is_refused(tour):
    start = f"POST /api/release HTTP/1.1\r\nHost: x\r\n{tour.bearer()}Content-Type: application/json\r\n"
    for length in (1 << 20 | 1, 2**63, 10**30):
        assert statuses(tour.raw(f"{start}Content-Length: {length}\r\n\r\n"))[0] in (400, 413)
    chunk = f"{1 << 16:x}\r\n{' ' * (1 << 16)}\r\n"
    assert statuses(tour.raw(f"{start}Transfer-Encoding: chunked\r\n\r\n{chunk * 40}0\r\n\r\n")) == [413]
    for head in (
        "X: " + "a" * 10**6,
        "\r\n".join(f"X{number}: a" for number in range(50_000)),
        "X" * 10**6 + ": a",
    ):
        assert statuses(tour.raw(f"{start}{head}\r\n\r\n")) in ([431], [])  # [] : it was cut off meanwhile
    assert statuses(tour.raw(f"GET /{'a' * 10**6} HTTP/1.1\r\nHost: x\r\n\r\n")) in ([431], [])
    zeros = f"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: {'0' * 5_000}\r\n\r\n"
    assert statuses(tour.raw(zeros)) == [413]


@pytest.mark.parametrize("trailer", ["X: " + "a" * 10**6, "\r\n".join(f"X{n}: a" for n in range(50_000))])
def test_what_follows_a_body_is_bounded_as_what_comes_before_it(tour, trailer):
    start = "POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert statuses(tour.raw(f"{start}0\r\n{trailer}\r\n\r\n")) in ([431], [])
    assert statuses(tour.raw(f"{start}0\r\nX: a\r\n\r\n")) == [405]


def test_a_body_may_come_byte_by_byte(tour):
    body = json.dumps(tour.body(SQL, parameters=[])) + " " * 50_000
    start = f"POST /api/quote HTTP/1.1\r\nHost: x\r\n{tour.bearer()}Content-Type: application/json\r\n"
    parts = "".join(f"1\r\n{sign}\r\n" for sign in body)
    assert statuses(tour.raw(f"{start}Transfer-Encoding: chunked\r\n\r\n{parts}0\r\n\r\n")) == [200]


@pytest.mark.parametrize(
    "body",
    [
        "[" * 200_000,
        '{"sql": ' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}",
        json.dumps({"sql": SQL, "epsilon": "0.5", "parameters": [1] * 100_000}),
        json.dumps({"sql": SQL, "epsilon": "0.5", **{f"k{number}": 1 for number in range(20_000)}}),
        '{"sql": "SELECT AVG(amount) AS m FROM visits", "epsilon": ' + "9" * 100_000 + "}",
        '{"sql": "SELECT AVG(amount) AS m FROM visits", "epsilon": 1e-999999999}',
        '{"sql": "SELECT AVG(amount) AS m FROM visits", "epsilon": NaN}',
        '{"sql": "SELECT AVG(amount) AS m FROM visits", "epsilon": "1e999999999"}',
        '{"sql": "SELECT AVG(amount) AS m FROM visits", "epsilon": "0.5", "epsilon": "-0.5"}',
    ],
    ids=range(9),
)
def test_bodies_that_are_deep_or_wide_are_refused(tour, body):
    found = tour.ask("POST", "/api/release", content=body, headers={"Content-Type": "application/json"})
    assert found.status_code in (400, 402, 422)


# ── other people's receipts, and what is not an analyst's


def test_no_receipt_of_others_is_told(tour):
    for number in range(1, max(tour.on_record) + 5):
        assert tour.ask("GET", f"/api/receipts/{number}").status_code == 404
        assert tour.ask("GET", f"/api/receipts/{number}/answer").status_code in (404, 405)
    assert tour.ask("GET", "/api/receipts?after=0&most=1000").json() == []


def test_what_is_not_an_analysts_is_refused_at_every_address(tour):
    document = tour.ask("GET", "/api/openapi.json").json()
    own = {
        "/health",
        "/ready",
        "/api/me",
        "/api/datasets",
        "/api/datasets/{name}",
        "/api/datasets/{name}/balance",
    }
    refused = set()
    for path, methods in document["paths"].items():
        for method in methods:
            where = path.replace("{name}", "visits").replace("{analyst}", "mallory").replace("{number}", "1")
            found = tour.ask(method.upper(), where.replace("{", "x").replace("}", "x"), json={})
            assert found.status_code < 500
            if found.status_code == 403:
                refused.add(path)
            elif path not in own:
                assert found.status_code in (200, 404, 405, 422), path
    assert {"/api/ledger/export", "/api/ledger/verify", "/api/datasets/{name}/close"} <= refused


def test_a_token_in_an_address_is_refused(tour):
    for query in ("token={}", "access_token={}", "a={}", "{}", "%74oken={}"):
        for path in ("/api/me", "/health", "/api/release"):
            found = tour.ask("GET", f"{path}?{query.format(tour.tokens['mallory'])}")
            assert found.status_code == 400
    assert tour.ask("GET", f"/api/datasets/{tour.tokens['mallory']}").status_code == 400


# ── many wrong passwords


def wrong_over_http(tour: Tour, many: int) -> None:
    token = tour.tokens["ada"][:-4]
    with httpx.Client(base_url=tour.life.http, timeout=60, verify=False) as client:
        for number in range(many):
            found = client.get("/api/me", headers={"Authorization": f"Bearer {token}{number:04d}"})
            assert found.status_code in (401, 429)
    assert found.status_code == 429
    tour.heard.append(found.text)


def wrong_over_wire(tour: Tour, many: int) -> None:
    ends = set()
    for _ in range(many):
        with PlainWire(tour.life.pg_port, source="127.0.0.66") as wire:
            kind, said = wire.begin("ada")
            if kind == b"R":
                _, said = wire.sasl("n,,n=,r=abc")
                nonce, proof = said[4:].split(b",")[0][2:], base64.b64encode(b"x" * 32)
                kind, said = wire.ask(b"p", b"c=biws,r=" + nonce + b",p=" + proof)
            assert kind == b"E"
            ends.add(said)
    tour.heard.extend(said.decode() for said in ends)
    assert any(b"28000" in said or b"53" in said or b"28P01" in said for said in ends)


@pytest.mark.parametrize("many", [300, pytest.param(10_000, marks=pytest.mark.stats)])
def test_wrong_passwords_open_nothing_and_lock_nobody_out_elsewhere(nursery, tmp_path, many):
    tour = Tour(nursery, tmp_path)
    wrong_over_http(tour, many)
    wrong_over_wire(tour, many)
    with relayed(tour.life.port, ELSEWHERE) as port:
        found = sent(port, f"GET /api/me HTTP/1.1\r\nHost: x\r\n{tour.bearer('ada')}\r\n".encode())
        assert statuses(found) == [200]
    with relayed(tour.life.pg_port, ELSEWHERE) as port, tour.wire("ada", tour.tokens["ada"], port) as wire:
        assert wire.execute("SHOW sfumato.epsilon").fetchall()
    assert tour.record() == tour.on_record
    tour.close()


# ── slowness


def dribbling(port: int, first: bytes, many: int) -> list[socket.socket]:
    """Connections that have begun and do not go on; those that were taken."""
    made = [
        socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.99", 0)) for _ in range(many)
    ]
    for each in made:
        with contextlib.suppress(OSError):
            each.sendall(first)
            each.setblocking(False)
    return made


def is_over(connection: socket.socket) -> bool:
    """Whether the server has let it go; one more byte is sent to one that goes on."""
    try:
        connection.send(b"a")
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


@pytest.mark.stats
def test_slow_clients_are_let_go_and_nobody_else_waits(tour, until):
    head = f"GET /api/me HTTP/1.1\r\nHost: x\r\n{tour.bearer()}X: ".encode()
    body = tour.paying().encode()[:-2]
    slow = [
        *dribbling(tour.life.port, head, 90),
        *dribbling(tour.life.port, body, 9),
        *dribbling(tour.life.pg_port, b"\0\0\0\x40\0\3\0\0user", 90),
    ]

    def all_over() -> bool:
        assert tour.ask("GET", "/api/me").status_code == 200
        slow[:] = [each for each in slow if not is_over(each) or each.close()]
        return not slow

    until(all_over, seconds=90)
