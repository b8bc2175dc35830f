"""Readiness, metrics, logs, and an end that finishes or charges."""

import io
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import psycopg
import pytest

import held
import lives
import wire
from served import SECRET, SQL, Client, client_of, house, known
from sfumato.catalog import Catalog
from sfumato.cli.opening import open_all
from sfumato.server.access.scram import Exchange, ScramVerifier
from sfumato.server.http.app import make_app
from sfumato.server.log import Log
from sfumato.server.metrics import Metrics
from sfumato.server.ways import Ways
from sfumato.server.wire import Front

LITERAL = "FR"
ASKED = f"SELECT COUNT(*) AS n FROM visits WHERE country = '{LITERAL}'"


@pytest.fixture(scope="module")
def place():
    with house() as made:
        yield made


@pytest.fixture
def said():
    return io.StringIO()


@pytest.fixture
def ways(said):
    return Ways(log=Log(said))


@pytest.fixture
def ask(place, ways):
    return Client(make_app(place, known, ways=ways))


def lines(said):
    return [json.loads(line) for line in said.getvalue().splitlines()]


def sample(text, name):
    found = (line.rpartition(" ") for line in text.splitlines() if line.startswith(name))
    return {labels: float(count) for labels, _, count in found}


def test_a_server_is_ready_while_ledger_and_tables_are_there():
    with house() as place:
        ask = client_of(place)
        assert ask("GET", "/ready", None).json() == {"status": "ready"}
        other = client_of(place)
    found = other("GET", "/ready", None)
    assert (found.status_code, found.json()) == (503, {"status": "unready"})
    assert ask("GET", "/health", None).status_code == 200


def test_metrics_count_by_documented_addresses_and_hold_nothing_of_clients(ask):
    body = {"sql": ASKED, "epsilon": "0.1"}
    for _ in range(2):
        assert ask("POST", "/api/release", json=body).status_code == 200
    assert (
        ask("POST", "/api/release", json={"sql": "SELECT city FROM visits", "epsilon": 1}).status_code == 422
    )
    ask("GET", "/api/datasets", "token-of-nobody")
    ask("GET", f"/{SECRET}/{ASKED}", None)
    ask("GET", f"/api/datasets/{SECRET}")
    text = ask("GET", "/metrics", "token-of-sam").text
    requests = sample(text, "sfumato_requests_total")
    assert requests['sfumato_requests_total{act="POST /api/release",front="http",status="2xx"}'] == 2
    assert requests['sfumato_requests_total{act="POST /api/release",front="http",status="4xx"}'] == 1
    assert requests['sfumato_requests_total{act="GET /api/datasets/{name}",front="http",status="4xx"}'] == 1
    assert sample(text, "sfumato_answers_total") == {
        'sfumato_answers_total{front="http",kind="paid"}': 1,
        'sfumato_answers_total{front="http",kind="free"}': 1,
    }
    assert sample(text, "sfumato_logins_refused") == {'sfumato_logins_refused_total{front="http"}': 1}
    for word in (SECRET, LITERAL, "ada", "token-of", "WHERE"):
        assert word not in text


def test_durations_are_shown_to_stewards_alone(ask):
    assert ask("POST", "/api/release", json={"sql": SQL, "epsilon": "0.1"}).status_code == 200
    assert "seconds" in ask("GET", "/metrics", "token-of-sam").text
    auditor = ask("GET", "/metrics", "token-of-eve")
    assert auditor.status_code == 200
    assert "seconds" not in auditor.text
    assert ask("GET", "/metrics").status_code == 403
    assert ask("GET", "/metrics", None).status_code == 401
    assert ask("GET", "/metrics", "token-of-nobody").status_code == 401


def test_a_line_says_who_did_what_and_nothing_else(ask, said):
    body = {"sql": ASKED, "epsilon": "0.2"}
    number = ask("POST", "/api/release", json=body).json()["receipt"]
    ask("POST", "/api/release", json=body)
    ask("GET", f"/api/datasets/{SECRET}?token={SECRET}")
    ask("GET", "/api/me", "token-of-nobody")
    paid, free, refused, unknown = lines(said)
    assert set(paid) == {"time", "front", "act", "status", "who", "address", "receipt", "free"}
    assert (paid["who"], paid["act"], paid["status"]) == ("ada", "POST /api/release", "200")
    assert (paid["receipt"], paid["free"]) == (number, False)
    assert (free["receipt"], free["free"]) == (number, True)
    assert refused["status"] == "400"
    assert "who" not in refused
    assert (unknown["act"], unknown["status"]) == ("other", "401")
    for word in (SECRET, LITERAL, "token-of", "WHERE"):
        assert word not in said.getvalue()


def test_trouble_is_a_line_too(said):
    logger, lines_of = logging.getLogger("sfumato.server"), Log(said)
    logger.addHandler(lines_of)
    try:
        logger.error("a %s that nobody foresaw", "RuntimeError")
    finally:
        logger.removeHandler(lines_of)
    (line,) = lines(said)
    assert line["trouble"] == "a RuntimeError that nobody foresaw"


def test_statements_over_the_wire_are_counted_and_written_down(place, ways, said):
    password = ScramVerifier.of("open-sesame")
    front = Front(
        lambda login, database: place.session("ada"),
        lambda user, address, binding: Exchange(password, binding=binding),
        plain=True,
        watch=ways.watch,
    )
    with wire.serving(front):
        where = {"host": "127.0.0.1", "port": front.port, "user": "ada", "dbname": "demo", "autocommit": True}
        with psycopg.connect(**where, password="open-sesame") as connection:
            connection.execute("SET sfumato.epsilon = 0.3")
            connection.execute(ASKED)
            connection.execute("SELECT COUNT(*) AS n FROM visits WHERE country = %s", (LITERAL,))
            with pytest.raises(psycopg.Error):
                connection.execute("SELECT city FROM visits")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(**where, password=SECRET)
    text = ways.metrics.shown(durations=False).decode()
    assert sample(text, "sfumato_answers_total") == {
        'sfumato_answers_total{front="postgresql",kind="paid"}': 1,
        'sfumato_answers_total{front="postgresql",kind="free"}': 1,
    }
    assert sample(text, "sfumato_logins_refused") == {'sfumato_logins_refused_total{front="postgresql"}': 1}
    found = lines(said)
    assert [(line["act"], line["status"], line.get("free")) for line in found] == [
        ("set", "00000", None),
        ("select", "00000", False),
        ("select", "00000", True),
        ("select", "0A000", None),
        ("login", "28P01", None),
    ]
    assert {line.get("who") for line in found[:-1]} == {"ada"}
    for word in (SECRET, LITERAL, "city", "open-sesame"):
        assert word not in said.getvalue() + text


def test_metrics_of_one_server_are_its_own():
    one, other = Metrics(), Metrics()
    assert one.shown(durations=True) == other.shown(durations=True)


# ── the end


def begun(folder, *arguments, **environment):
    """A server whose reads wait for a file `go`, and where it is."""
    command = [sys.executable, held.__file__, str(folder), "serve", "--config", str(folder / "sfumato.toml")]
    command += ["--port", "0", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | environment
    )
    for line in process.stdout:
        if line.startswith("serving http"):
            return process, line.split()[1]
    raise AssertionError("it does not serve")


def until(there: Path) -> None:
    for _ in range(3000):
        if there.exists():
            return
        time.sleep(0.01)
    raise AssertionError(there.name)


@pytest.mark.slow
@pytest.mark.parametrize("grace", [pytest.param("30", marks=pytest.mark.stats), "0"])
def test_what_is_under_way_at_the_end_is_answered_or_charged_and_on_record(tmp_path, grace):
    config = lives.catalog(tmp_path)
    token = lives.tokens_of(config, {"ada": "analyst"})["ada"]
    sent = {"headers": {"Authorization": f"Bearer {token}"}, "json": {"sql": ASKED, "epsilon": "0.5"}}
    process, where = begun(tmp_path, GRACE=grace)
    got = []

    def asking():
        try:
            got.append(httpx.post(f"{where}/api/release", timeout=60, **sent).json())
        except Exception as error:
            got.append(error)

    thread = threading.Thread(target=asking)
    thread.start()
    until(tmp_path / "reading")
    process.send_signal(signal.SIGTERM)
    if grace == "30":
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
    else:
        time.sleep(0.5)
    (tmp_path / "go").touch()
    thread.join(60)
    assert process.wait(60) == 0
    process.stdout.close()
    with open_all(Catalog.read(config, environ={})) as session:
        ada = session.as_analyst("ada")
        again = ada.sql(ASKED).release(epsilon="0.5")
        assert again.free
        assert float(ada.balance().spent) == 0.5
    if grace == "30":
        assert [row["n"] for row in got[0]["rows"]] == again.table.column("n").to_pylist()
    else:
        assert got[0]["error"]["code"] == "ending"
