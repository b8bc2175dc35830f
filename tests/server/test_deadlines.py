"""Constant public deadlines: when a read ended shows nowhere, on either front."""

import contextlib
import io
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

import sfumato as sf
import wire
from lives import catalog, tokens_of
from served import SQL, Client, house, known
from sfumato.engines import running
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import InvalidParameter
from sfumato.purchase.pacing import reading
from sfumato.server.access.scram import Exchange, ScramVerifier
from sfumato.server.deadlines import Deadlines
from sfumato.server.events import nobody
from sfumato.server.http.app import make_app
from sfumato.server.log import Log
from sfumato.server.ways import Ways
from sfumato.server.wire import Front

BODY = {"sql": SQL, "epsilon": "0.5"}
OTHER = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.5"}


class Held:
    """A deadline that comes when the test says so: until then whoever waits for it waits."""

    def __init__(self):
        self.waiting, self.come = threading.Semaphore(0), threading.Event()

    def __call__(self, _):
        self.waiting.release()
        assert self.come.wait(30)


@pytest.fixture
def held():
    made = Held()
    yield made
    made.come.set()


@pytest.fixture
def slow(monkeypatch):
    """Reads that go on once the event is set."""
    go, real = threading.Event(), DuckDB._fetch

    def fetch(self, *arguments, **more):
        assert running._STOP.get() is None  # nothing stops a read that is kept to a deadline
        assert go.wait(30)
        return real(self, *arguments, **more)

    monkeypatch.setattr(DuckDB, "_fetch", fetch)
    yield go
    go.set()


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def app_of(place, deadlines):
    return make_app(place, known, ways=Ways(deadlines=deadlines))


def front_of(place, deadlines, watch=nobody):
    password = ScramVerifier.of("open-sesame")
    return Front(
        lambda login, database: place.session("ada"),
        lambda user, address, binding: Exchange(password, binding=binding),
        plain=True,
        during=place.working,
        deadlines=deadlines,
        watch=watch,
    )


def connected(front):
    return psycopg.connect(
        host="127.0.0.1",
        port=front.port,
        user="ada",
        password="open-sesame",
        dbname="demo",
        autocommit=True,
        options="-c sfumato.epsilon=0.5",
    )


def kinds(place):
    return [receipt.kind for receipt in place.session("ada").ledger.entries()]


def test_before_the_deadline_it_does_not_show_that_a_read_is_over(held, threads):
    with house() as place:
        ask = Client(app_of(place, Deadlines(60, sleep=held)))
        first = threads.submit(ask, "POST", "/api/release", json=BODY)
        assert held.waiting.acquire(timeout=60)  # the read is over
        again = threads.submit(ask, "POST", "/api/release", json=BODY)
        other = threads.submit(ask, "POST", "/api/release", "token-of-bob", json=BODY)
        session = place.session("ada")
        asked, unasked = (session.sql(text).quote(epsilon="0.5").standing for text in (SQL, OTHER["sql"]))
        receipts = [each["kind"] for each in ask("GET", "/api/receipts").json()]
        assert "release" not in receipts
        assert "release" not in kinds(place)
        assert asked == unasked
        assert not first.done()
        assert not again.done()
        assert not other.done()
        assert ask("POST", "/api/release", json={**OTHER, "epsilon": "1000"}).status_code == 402
        held.come.set()
        rows = first.result(60).json()["rows"]
        assert again.result(60).json()["free"]
        assert again.result(60).json()["rows"] == rows
        assert other.result(60).json()["rows"] == rows
        assert kinds(place).count("release") == 1


def test_what_is_on_record_and_what_is_refused_does_not_wait(held):
    with house() as place:
        client = Client(make_app(place, known))
        assert client("POST", "/api/release", json=BODY).status_code == 200
        ask = Client(app_of(place, Deadlines(60, sleep=held)))
        assert ask("POST", "/api/release", json=BODY).json()["free"]
        assert ask("POST", "/api/release", json={**BODY, "sql": "SELECT city FROM visits"}).status_code == 422
        assert not held.waiting.acquire(blocking=False)


def test_a_failure_of_a_read_waits_for_the_deadline_too(held, threads, monkeypatch):
    def broken(self, *_, **__):
        raise RuntimeError

    monkeypatch.setattr(DuckDB, "_fetch", broken)
    with house() as place:
        ask = Client(app_of(place, Deadlines(60, sleep=held)))
        failed = threads.submit(ask, "POST", "/api/release", json=BODY)
        assert held.waiting.acquire(timeout=60)
        assert not failed.done()
        held.come.set()
        assert failed.result(60).status_code == 500


def test_an_overrun_is_one_failure_that_is_charged_and_free_afterwards(slow):
    with house() as place:
        ask = Client(app_of(place, Deadlines(None, {"visits": 0.05})))
        late = ask("POST", "/api/release", json=BODY)
        assert (late.status_code, late.json()["error"]["code"]) == (504, "deadline_passed")
        assert float(place.session("ada").balance().spent) == 0.5
        slow.set()
        place.wait()
        again = ask("POST", "/api/release", json=BODY).json()
        assert again["free"]
        assert float(place.session("ada").balance().spent) == 0.5


def test_a_job_is_done_at_its_deadline_and_is_not_stopped(held, slow, threads):
    with house() as place:
        ask = Client(app_of(place, Deadlines(60, sleep=held)))
        jobs = [ask("POST", "/api/jobs", json=body).json()["address"] for body in (BODY, OTHER)]
        slow.set()
        for _ in jobs:
            assert held.waiting.acquire(timeout=60)
        assert [ask("GET", job).json()["state"] for job in jobs] == ["running"] * 2
        assert "release" not in kinds(place)
        ask("DELETE", jobs[0])
        assert ask("GET", jobs[0]).json()["state"] == "failed"
        held.come.set()
        place.wait()
        assert ask("GET", f"{jobs[0]}/result").json()["error"]["code"] == "cancelled"
        assert ask("GET", f"{jobs[1]}/result").status_code == 200
        assert ask("POST", "/api/release", json=BODY).json()["free"]


def test_other_datasets_have_no_deadline():
    with house() as place:
        ask = Client(app_of(place, Deadlines(None, {"others": 1000})))
        assert ask("POST", "/api/release", json=BODY).status_code == 200


def test_over_the_wire_a_statement_waits_for_its_deadline(held, threads):
    made = Deadlines(60, sleep=held)
    with house() as place, wire.serving(front_of(place, made)) as front, connected(front) as connection:
        asked = threads.submit(lambda: connection.execute(SQL).fetchall())
        assert held.waiting.acquire(timeout=60)
        assert not asked.done()
        assert "release" not in kinds(place)
        held.come.set()
        assert len(asked.result(60)) == 2
        assert len(connection.execute(SQL).fetchall()) == 2


def test_over_the_wire_an_overrun_goes_on_to_its_end(slow):
    with house() as place, wire.serving(front_of(place, Deadlines(0.05))) as front:
        with connected(front) as connection:
            with pytest.raises(psycopg.errors.QueryCanceled, match="deadline"):
                connection.execute(SQL)
            assert connection.execute("SELECT 1").fetchone() == (1,)
            slow.set()
            place.wait()
            assert len(connection.execute(SQL).fetchall()) == 2
        assert float(place.session("ada").balance().spent) == 0.5


@pytest.mark.parametrize("over", [True, False])
def test_whether_a_read_was_over_when_it_was_cancelled_does_not_show(held, slow, threads, over):
    made = Deadlines(60, sleep=held)
    with house() as place, wire.serving(front_of(place, made)) as front, connected(front) as connection:
        asked = threads.submit(connection.execute, SQL)
        while "debit" not in kinds(place):
            time.sleep(0.005)
        if over:
            slow.set()
            assert held.waiting.acquire(timeout=60)
        connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled, match="What has begun goes on"):
            asked.result(60)
        slow.set()
        held.come.set()
        place.wait()
        assert kinds(place).count("release") == 1


class Watched:
    """Time as the test says it is; whoever waits for it is noted with when the wait will be over."""

    def __init__(self):
        self.now, self.ends = 0.0, []
        self.waiting, self.come = threading.Semaphore(0), threading.Event()

    def ticks(self):
        return self.now

    def sleep(self, seconds):
        self.ends.append(round(self.now + seconds, 9))
        self.waiting.release()
        assert self.come.wait(60)


DEADLINE = 0.25
COUNTS = [f"SELECT country, COUNT(*) AS n FROM visits WHERE amount > {n} GROUP BY country" for n in range(3)]


def looked(place, ask, connection, job, log):
    """All that shows of an answer, by every channel that somebody may look through."""
    with pytest.raises(psycopg.errors.InvalidCursorName):
        connection.execute("FETCH ALL FROM late")
    metrics = ask("GET", "/metrics", "token-of-sam").text.splitlines()
    logged = [json.loads(line) for line in log.getvalue().splitlines()]
    return {
        "receipts": [each["kind"] for each in ask("GET", "/api/receipts").json()],
        "ledger": kinds(place),
        "balance": ask("GET", "/api/datasets/visits/balance").json(),
        "standing": place.session("ada").sql(COUNTS[0]).quote(epsilon="0.5").standing,
        "job": ask("GET", job).json()["state"],
        "result": ask("GET", f"{job}/result").json().get("error"),
        "ready": ask("GET", "/ready").json(),
        "answers": [line for line in metrics if line.startswith(("sfumato_answers", "sfumato_paid"))],
        "log": [line for line in logged if "receipt" in line or "trouble" in line],
    }


def seen_of_late_reads(place, slow, threads, until, took):
    """What shows of reads that end after so many deadlines, before it may and after."""
    clock, log = Watched(), io.StringIO()
    ways = Ways(deadlines=Deadlines(DEADLINE, sleep=clock.sleep, ticks=clock.ticks), log=Log(log))
    ask = Client(make_app(place, known, ways=ways))
    bodies = [{"sql": sql, "epsilon": "0.5"} for sql in COUNTS]
    with (
        wire.serving(front_of(place, ways.deadlines, ways.watch)) as front,
        connected(front) as connection,
    ):
        job = ask("POST", "/api/jobs", json=bodies[1]).json()["address"]
        with pytest.raises(psycopg.errors.QueryCanceled, match="deadline"):
            connection.execute(f"DECLARE late CURSOR WITH HOLD FOR {COUNTS[2]}")
        assert ask("POST", "/api/release", json=bodies[0]).status_code == 504
        until(lambda: kinds(place).count("debit") == 3, seconds=60)
        others = [
            threads.submit(ask, "POST", "/api/release", "token-of-bob", json=bodies[n]) for n in range(3)
        ]
        before = looked(place, ask, connection, job, log)
        clock.now = took * DEADLINE
        slow.set()
        for _ in range(3):
            assert clock.waiting.acquire(timeout=60)  # all three reads are over
        assert looked(place, ask, connection, job, log) == before
        assert not any(other.done() for other in others)
        ends = [end / DEADLINE for end in clock.ends]
        clock.come.set()
        codes = {other.result(60).status_code for other in others}
        place.wait()
        after = looked(place, ask, connection, job, log)
    return ends, before, codes, after["job"], after["ledger"].count("release")


def test_when_a_late_read_was_over_shows_by_no_channel(slow, threads, until):
    """Two reads are late, one of them later because of its rows: whoever looks sees the same of both."""
    seen = []
    for took in (1.1, 1.9):
        slow.clear()
        with house() as place:
            ends, before, *after = seen_of_late_reads(place, slow, threads, until, took)
        assert ends == [2, 2, 2]
        assert after == [{200}, "done", 3]
        seen.append(before)
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("took", "shown"),
    [(0, 1), (0.9, 1), (1, 1), (1.01, 2), (1.99, 2), (2, 2), (2.01, 4), (4.5, 8), (700, 1024)],
)
def test_the_end_of_a_read_shows_when_its_deadline_has_doubled(took, shown):
    clock = Watched()
    clock.come.set()
    with Deadlines(DEADLINE, sleep=clock.sleep, ticks=clock.ticks).keeping():
        for again in range(2):
            clock.now = begun = 100.0 * again
            with contextlib.suppress(RuntimeError), reading("visits"):
                clock.now += took * DEADLINE
                if again:
                    raise RuntimeError
            assert (clock.ends.pop() if clock.ends else clock.now) - begun == pytest.approx(shown * DEADLINE)


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "nan", "inf", "1e9", "others=1", "visits=", "=1"])
def test_what_is_no_deadline_is_refused(text):
    with pytest.raises(InvalidParameter, match="--deadline"):
        Deadlines.read([text], ["visits"])


def test_deadlines_as_a_steward_writes_them():
    made = Deadlines.read(["2", "visits=5"], ["visits", "others"])
    assert (made.of("visits"), made.of("others")) == (5, 2)
    assert made
    assert not Deadlines.read([], ["visits"])


# ── what a clock tells


def times(nursery, folder, deadline, repeats):
    """What the answer times of two servers tell, one with five hundred times the rows of the other.

    A machine that is busy with something else misses deadlines: which is another channel, so that these
    requests are repeated and their times are not counted.
    """
    sides, counted, missed = [], [0], [0]
    for rows in (200, 100_000):
        place = folder / f"{deadline}-{rows}"
        place.mkdir()
        config = catalog(place, epsilon=10**6, rows=rows)
        token = tokens_of(config, {"ada": "analyst"})["ada"]
        life = nursery.life(config, arguments=["--deadline", deadline] if deadline else [])
        client = httpx.Client(base_url=life.http, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        sides.append((life, client, iter(range(10**6))))

    def ask(side):
        _, client, numbers = side
        sql = f"SELECT country, SUM(amount) AS n FROM visits WHERE amount <> {next(numbers)} GROUP BY country"
        begun = time.perf_counter_ns()
        found = client.post("/api/release", json={"sql": sql, "epsilon": "0.1"})
        took = time.perf_counter_ns() - begun
        if found.status_code == 504:
            missed[0] += 1
            assert missed[0] < repeats / 4
            time.sleep(1)
            ask(side)
            return
        assert found.status_code == 200
        assert not found.json()["free"]
        counted[0] += took

    try:
        return sf.audit.timing(ask, *sides, repeats=repeats, clock=lambda: counted[0])
    finally:
        for life, client, _ in sides:
            client.close()
            assert life.end() == 0


@pytest.mark.stats
def test_times_tell_sizes_apart_without_a_deadline_and_nothing_with_one(nursery, tmp_path):
    assert times(nursery, tmp_path, "", 200).tells
    found = times(nursery, tmp_path, "0.2", 2_000)

    assert not found.tells
