"""A server under load: new answers from two processes over one ledger, free ones from one; what fronts add.

Servers are `sfumato serve` in processes of their own; so are the clients (`server_clients`), whose own part
of the cores is told. Rates depend on the disk's syncs and on what else the machine does.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks.engine_servers import database
from benchmarks.harness import Report, seconds
from benchmarks.server_clients import Asked, Told

CLIENTS = 64
RELEASES, BEYOND = 5_000, 200  # answers that the budget allows, and questions that it does not
REREADS, TEXTS = 20_000, 8
TURNS = 200  # calls of each contender
PRICE = "0.01"
_AGAIN = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g"
_NEW = "SELECT COUNT(*) AS n FROM t WHERE x < {}"
_CATALOG = """\
[ledger]
{ledger}

[datasets.t]
epsilon = {epsilon}
delta = 1e-3

[tables.t]
source = "t.parquet"
unit = "row"

[tables.t.columns]
g = {{ type = "int", lower = 0, upper = 9 }}
x = {{ type = "float", lower = 0, upper = 100 }}
"""


@dataclass(frozen=True, slots=True)
class House:
    """A catalog with accounts: where it is, and a token of each name."""

    config: Path
    tokens: dict[str, str]

    @property
    def ledger(self) -> sf.Ledger:
        """As its steward opens it."""
        from sfumato.catalog import Catalog

        read = Catalog.read(self.config, environ={})
        return sf.Ledger.open(read.ledger, state=read.state)


def _body(sql: str) -> str:
    return json.dumps({"sql": sql, "epsilon": PRICE})


def _post(sql: str) -> tuple[str, str, str]:
    return "POST", "/api/release", _body(sql)


@contextmanager
def _house(epsilon: str, *, analysts: int = CLIENTS, url: str = "") -> Iterator[House]:
    """A table of a thousand rows behind a budget, with an account for each client."""
    from sfumato.catalog import Catalog
    from sfumato.server.access import Accounts

    with tempfile.TemporaryDirectory() as made:
        folder, drawn = Path(made), np.random.default_rng(0)
        columns = {"g": drawn.integers(0, 10, 1000), "x": drawn.random(1000) * 100}
        pq.write_table(pa.table(columns), folder / "t.parquet")
        (folder / "state").mkdir()
        where = f'url = "{url}"\nstate = "state"' if url else 'path = "t.ledger"'
        config = folder / "sfumato.toml"
        config.write_text(_CATALOG.format(ledger=where, epsilon=epsilon))
        read, tokens = Catalog.read(config, environ={}), dict[str, str]()
        with contextlib.closing(Accounts.open(read.ledger, state=read.state)) as accounts:
            for number in range(analysts):
                accounts.add(f"analyst{number}")
                tokens[f"analyst{number}"] = accounts.issue(f"analyst{number}")[0]
        yield House(config, tokens)


@contextmanager
def _servers(house: House, many: int = 1) -> Iterator[list[tuple[int, int]]]:
    """Servers over a house: the ports of HTTP and of PostgreSQL's clients of each."""
    command = ["-m", "sfumato", "serve", "--config", str(house.config), "--port", "0", "--pg-port", "0"]
    command += ["--rate", "1000000", "--per-address", "1000"]
    running, ports = list[subprocess.Popen[str]](), list[tuple[int, int]]()
    try:
        for _ in range(many):
            running.append(
                subprocess.Popen(
                    [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
            )
        for server in running:
            assert server.stdout is not None
            wire, web = (int(server.stdout.readline().split(":")[2].partition("/")[0]) for _ in range(2))
            ports.append((web, wire))
        yield ports
    finally:
        for server in running:
            server.terminate()
        for server in running:
            server.communicate(timeout=60)


def _asked(asked: Asked) -> Told:
    """What the clients tell."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.server_clients"],
        input=json.dumps(asked) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    told: Told = json.loads(done.stdout)
    return told


def _shown(report: Report, case: str, told: Told) -> float:
    """A line of the table; gives the 99th percentile."""
    taken = np.sort(told["taken"])
    middle, slow = (float(np.quantile(taken, place)) for place in (0.5, 0.99))
    rate, share = len(taken) / told["wall"], told["cpu"] / told["wall"]
    report.row(
        case, "sfumato", f"{rate:,.0f}", seconds(middle), seconds(slow), f"{share:.2f}",
        rate=rate, p50=middle, p99=slow, clients_cores=share, statuses=told["statuses"],
    )  # fmt: skip
    return slow


def releases(report: Report) -> None:
    """New answers to many clients, from two servers over one ledger in PostgreSQL; the last are refused."""
    report.heading("new releases, two processes, PostgreSQL", "a second", "p50", "p99", "clients' cores")
    asked = [_post(_NEW.format(number / 100)) for number in range(RELEASES + BEYOND)]
    with database() as url, _house(f"{RELEASES / 100:g}", url=url) as house:
        with _servers(house, 2) as ports:
            told = _asked(
                {
                    "ports": [web for web, _ in ports],
                    "tokens": list(house.tokens.values()),
                    "requests": asked,
                    "often": 0,
                }
            )
        with house.ledger as ledger:
            debits = [each.number for each in ledger.entries() if each.kind == "debit"]
            spent, sound = ledger.balance("t").spent, ledger.verify().ok
    slow = _shown(report, "new answers", told)
    unequal = {*debits} ^ {*told["receipts"]}
    errors = sum(count for status, count in told["statuses"].items() if status not in ("200", "402"))
    report.figure("releases answered", len(told["receipts"]), ">=", RELEASES)
    report.figure("charges without answers, or answers without", len(unequal) + told["free"], "<=", 0)
    report.figure("epsilon beyond the budget", max(0.0, float(spent) - RELEASES / 100), "<=", 0, sound=sound)
    report.figure("server errors", errors + (not sound), "<=", 0)
    report.figure("questions refused for lack of budget", told["statuses"].get("402", 0), ">=", BEYOND)
    report.figure("new releases: p99", slow * 1e3, "<=", 60_000, unit=" ms")


def rereads(report: Report) -> None:
    """Free answers to many clients from one server."""
    report.heading("free re-reads, one process", "a second", "p50", "p99", "clients' cores")
    with _house("1000") as house, _servers(house) as ports:
        texts = [_AGAIN.replace(" AS n", f" AS n{number}") for number in range(TEXTS)]
        asked: Asked = {
            "ports": [ports[0][0]],
            "tokens": list(house.tokens.values())[:1] * CLIENTS,
            "requests": [_post(text) for text in texts],
            "often": 0,
        }
        receipts = _asked(asked)["receipts"]
        for case, requests in (
            ("by the same text", asked["requests"]),
            ("by receipt", [("GET", f"/api/receipts/{number}/answer", "") for number in receipts]),
        ):
            again: Asked = {**asked, "requests": requests, "often": REREADS}
            _asked({**again, "often": TEXTS * CLIENTS})  # until all of it is warm
            told = _asked(again)
            slow = _shown(report, case, told)
            report.figure(f"free re-reads {case}, 64 clients: a second", REREADS / told["wall"], ">=", 1000)
            report.figure(f"free re-reads {case}, 64 clients: p99", slow * 1e3, "<=", 1_000, unit=" ms")
            report.figure(f"free re-reads {case} that were not", REREADS - told["free"], "<=", 0)


def overhead(report: Report) -> None:
    """What HTTP and the wire front add to the same call in this process, taking turns."""
    report.heading("one small question", "median", "over the call")
    with (
        _house("1000", analysts=1) as here,
        _house("1000", analysts=1) as there,
        _in_process(here) as session,
        _servers(there) as ports,
    ):
        ((name, token),) = there.tokens.items()
        with _over_http(ports[0][0], token) as http_call, _over_wire(ports[0][1], name, token) as wire_call:
            calls = {
                "in process": lambda sql: session.sql(sql).release(epsilon=PRICE).table,
                "HTTP": http_call,
                "PostgreSQL's protocol": wire_call,
            }
            for case, texts in (
                ("new", (_NEW.format(number / 1000) for number in itertools.count(1))),
                ("free", itertools.repeat(_AGAIN)),
            ):
                _compared(report, case, calls, texts)


def _compared(
    report: Report, case: str, calls: dict[str, Callable[[str], object]], texts: Iterator[str]
) -> None:
    taken: dict[str, list[float]] = {who: [] for who in calls}
    for turn in range(TURNS + 10):
        for who, call in calls.items():
            text = next(texts)
            begun = time.perf_counter()
            call(text)
            if turn >= 10:
                taken[who].append(time.perf_counter() - begun)
    medians = {who: statistics.median(times) for who, times in taken.items()}
    for who, median in medians.items():
        more = median - medians["in process"]
        report.row(case, who, seconds(median), f"{more * 1e3:+.2f} ms", median=median, times=taken[who])
        if who != "in process":
            report.figure(f"{who} over the call, {case}", more * 1e3, "<=", 5, unit=" ms")


@contextmanager
def _in_process(house: House) -> Iterator[sf.Session]:
    """The session that a server would have for this analyst."""
    from sfumato.catalog import Catalog
    from sfumato.cli.opening import open_all

    (name,) = house.tokens
    with open_all(Catalog.read(house.config, environ={})) as steward:
        yield steward.as_analyst(name)


@contextmanager
def _over_http(port: int, token: str) -> Iterator[Callable[[str], object]]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:

        def call(sql: str) -> object:
            connection.request("POST", "/api/release", _body(sql), headers)
            found = connection.getresponse()
            document = json.loads(found.read())
            assert found.status == 200, document
            return document

        yield call


@contextmanager
def _over_wire(port: int, name: str, token: str) -> Iterator[Callable[[str], object]]:
    import psycopg

    address = f"postgresql://127.0.0.1:{port}/sfumato"
    with psycopg.connect(address, user=name, password=token, autocommit=True) as connection:
        connection.execute(f"SET sfumato.epsilon = {PRICE}")
        yield lambda sql: connection.execute(sql.encode()).fetchall()


PARTS = (overhead, rereads, releases)
