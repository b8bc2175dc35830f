"""Jobs: a question is taken at once, belongs to who asked, and is paid as any other."""

import threading
import time

import pyarrow as pa
import pytest

from served import SECRET, SQL, client_of, house
from sfumato.engines import duckdb as engine
from sfumato.errors import Cancelled
from sfumato.ledger import Steward
from sfumato.server.deadlines import Deadlines
from sfumato.server.jobs import LIVE, Jobs, TooManyJobs

ASKED = {"sql": SQL, "epsilon": "0.5"}
ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


@pytest.fixture
def place():
    with house() as made:
        yield made


@pytest.fixture
def ask(place):
    return client_of(place)


@pytest.fixture
def held(monkeypatch):
    """Reads wait until the test lets them go on: `reading` is set when one has begun."""
    real, reading, go = engine._fetched, threading.Event(), threading.Event()

    def waiting(*arguments):
        reading.set()
        assert go.wait(60)
        return real(*arguments)

    monkeypatch.setattr(engine, "_fetched", waiting)
    yield reading, go
    go.set()


def spent(place, name="ada"):
    return float(place.session(name).balance().spent)


def over(ask, job, token="token-of-ada"):
    """What a job came to."""
    for _ in range(3000):
        found = ask("GET", job["address"], token).json()
        if found["state"] in ("done", "failed"):
            return found
        time.sleep(0.01)
    raise AssertionError("it never ended")


def test_a_job_gives_what_a_release_would_have_given(ask, place):
    taken = ask("POST", "/api/jobs", json=ASKED)
    assert taken.status_code == 202
    job = taken.json()
    assert taken.headers["location"] == job["address"] == f"/api/jobs/{job['id']}"
    assert over(ask, job)["state"] == "done"
    found = ask("GET", job["result"]).json()
    again = ask("POST", "/api/release", json=ASKED).json()
    assert again["free"]
    assert found["rows"] == again["rows"]
    assert found["receipt"] == again["receipt"]
    assert ask("GET", job["result"]).headers["sfumato-paid"] == "no"  # which was told with the first
    table = pa.ipc.open_stream(ask("GET", job["result"], headers=ARROW).content).read_all()
    assert table.column("n").to_pylist() == [row["n"] for row in found["rows"]]
    assert spent(place) == 0.5


def test_nothing_is_told_of_a_job_but_its_state(ask, held):
    """Neither what was paid, nor how far it is, nor since when: a poll tells whether it has ended."""
    reading, go = held
    job = ask("POST", "/api/jobs", json=ASKED).json()
    assert reading.wait(30)
    during = ask("GET", job["address"]).json()
    assert during == {**job, "state": "running"}
    early = ask("GET", job["result"])
    assert (early.status_code, early.json()["error"]["code"]) == (409, "not_done")
    go.set()
    assert over(ask, job) == {**job, "state": "done"}
    assert set(job) == {"id", "state", "created", "address", "result"}


@pytest.mark.parametrize("token", ["token-of-bob", "token-of-sam", "token-of-eve"])
def test_a_job_of_another_is_none(ask, token):
    job = ask("POST", "/api/jobs", json=ASKED).json()
    over(ask, job)
    for method, path in (("GET", ""), ("GET", "/result"), ("DELETE", "")):
        theirs = ask(method, job["address"] + path, token)
        none = ask(method, f"/api/jobs/{'0' * 32}{path}", token)
        assert theirs.status_code == 404
        assert theirs.content == none.content
        assert theirs.headers == none.headers
    assert ask("GET", "/api/jobs", token).json() == []
    assert [each["id"] for each in ask("GET", "/api/jobs").json()] == [job["id"]]


def test_only_who_may_spend_begins_one(ask, place):
    refused = ask("POST", "/api/jobs", "token-of-eve", json=ASKED)
    assert refused.status_code == 403
    assert ask("POST", "/api/jobs", None, json=ASKED).status_code == 401
    assert spent(place) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"sql": "SELECT * FROM visits"},
        {"sql": "DROP TABLE visits"},
        {"epsilon": -1},
        {"epsilon": None},
        {"more": 1},
    ],
)
def test_what_is_refused_is_refused_at_once_and_costs_nothing(ask, place, change):
    refused = ask("POST", "/api/jobs", json={**ASKED, **change})
    assert refused.status_code == 422
    assert len(refused.json()["error"]["message"]) > 10
    assert ask("GET", "/api/jobs").json() == []
    assert spent(place) == 0


def test_a_job_that_the_budget_does_not_pay_fails_as_a_release_does(ask, place):
    job = ask("POST", "/api/jobs", json={**ASKED, "epsilon": 1000}).json()
    assert over(ask, job)["state"] == "failed"
    failed = ask("GET", job["result"])
    assert failed.status_code == 402
    assert failed.json() == ask("POST", "/api/release", json={**ASKED, "epsilon": 1000}).json()
    assert spent(place) == 0


def test_what_nobody_foresaw_is_told_without_its_text(ask, place, monkeypatch, caplog):
    job = ask("POST", "/api/jobs", json=ASKED)
    over(ask, job.json())
    monkeypatch.setattr("sfumato.server.http.jobs.released", lambda *_: 1 / len(SECRET[:0]))
    job = ask("POST", "/api/jobs", json=ASKED).json()
    assert over(ask, job)["state"] == "failed"
    failed = ask("GET", job["result"])
    assert failed.status_code == 500
    assert "ZeroDivisionError" in caplog.text
    assert "division" not in failed.text + caplog.text


def test_a_read_that_is_cancelled_stays_paid(ask, place, monkeypatch):
    reading = threading.Event()

    def slow(cursor, _):
        reading.set()
        return cursor.execute(
            "SELECT SUM(a.range + b.range) FROM range(1000000) a, range(1000000) b"
        ).fetchall()

    monkeypatch.setattr(engine, "_fetched", slow)
    job = ask("POST", "/api/jobs", json=ASKED).json()
    assert reading.wait(30)
    assert ask("DELETE", job["address"]).status_code == 200
    assert over(ask, job)["state"] == "failed"
    failed = ask("GET", job["result"])
    assert failed.json()["error"] == {
        "code": "cancelled",
        "message": "The read was interrupted; the price stays paid.",
    }
    assert spent(place) == 0.5
    assert ask("DELETE", job["address"]).status_code == 200  # it is over: forgotten
    assert ask("GET", job["address"]).status_code == 404


def test_a_retry_with_the_same_word_is_the_same_job(ask, place):
    named = {"Idempotency-Key": "once"}
    job = ask("POST", "/api/jobs", json=ASKED, headers=named).json()
    again = ask("POST", "/api/jobs", json=ASKED, headers=named).json()
    assert again["id"] == job["id"]
    assert ask("POST", "/api/jobs", json={**ASKED, "epsilon": "0.6"}, headers=named).status_code == 422
    theirs = ask("POST", "/api/jobs", "token-of-bob", json=ASKED, headers=named).json()
    assert theirs["id"] != job["id"]
    over(ask, job)
    over(ask, theirs, "token-of-bob")
    assert spent(place) == 0.5


def test_who_was_revoked_is_given_nothing_more(ask, place):
    job = ask("POST", "/api/jobs", json=ASKED).json()
    over(ask, job)
    Steward(place.ledger).revoke("visits", "ada", reason="gone")
    assert ask("GET", job["result"]).status_code == 403
    assert ask("GET", job["result"], headers=ARROW).status_code == 403


def test_one_analyst_has_so_many_and_leaves_room_for_others(ask, held, place):
    def body(number):
        return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE amount > {number}", "epsilon": "0.1"}

    for number in range(LIVE):
        assert ask("POST", "/api/jobs", json=body(number)).status_code == 202
    refused = ask("POST", "/api/jobs", json=body(100))
    assert refused.status_code == 429
    assert "cancel one" in refused.json()["error"]["message"]
    theirs = ask("POST", "/api/jobs", "token-of-bob", json=body(50)).json()
    while ask("GET", theirs["address"], "token-of-bob").json()["state"] == "waiting":
        time.sleep(0.01)
    waiting = [job for job in ask("GET", "/api/jobs").json() if job["state"] == "waiting"]
    assert len(waiting) == LIVE - 2
    assert ask("DELETE", waiting[-1]["address"]).json()["state"] == "failed"
    assert "nothing was spent" in ask("GET", waiting[-1]["result"]).json()["error"]["message"]
    held[1].set()
    for job in ask("GET", "/api/jobs").json():
        over(ask, job)
    over(ask, theirs, "token-of-bob")
    assert spent(place) == pytest.approx((LIVE - 1) / 10)  # one was not begun
    assert spent(place, "bob") == pytest.approx(0.1)


def test_one_that_waits_is_cancelled_before_it_begins():
    jobs, go, ran = Jobs(at_once=1), threading.Event(), []
    first = jobs.begin("ada", lambda: go.wait(60))
    second = jobs.begin("ada", lambda: ran.append(1))
    jobs.cancel(second)
    assert isinstance(second.failure, Cancelled)
    go.set()
    while any(job.live for job in jobs.of("Ada")):
        time.sleep(0.01)
    assert not ran
    assert first.result is True


def test_the_end_finishes_what_runs_and_begins_nothing(ask, held, place):
    reading, go = held
    jobs = [
        ask(
            "POST", "/api/jobs", json={**ASKED, "sql": f"SELECT COUNT(*) AS n FROM visits WHERE amount > {n}"}
        ).json()
        for n in range(3)
    ]
    assert reading.wait(30)
    while ask("GET", jobs[1]["address"]).json()["state"] == "waiting":
        time.sleep(0.01)
    ending = threading.Thread(target=place.wait)
    ending.start()
    while ask("GET", jobs[2]["address"]).json()["state"] == "waiting":
        time.sleep(0.01)
    assert ending.is_alive()
    assert "nothing was spent" in ask("GET", jobs[2]["result"]).json()["error"]["message"]
    assert ask("POST", "/api/jobs", json=ASKED).status_code == 429
    go.set()
    ending.join(60)
    assert [over(ask, job)["state"] for job in jobs] == ["done", "done", "failed"]
    assert spent(place) == 1


def test_ids_are_random_and_old_ones_are_forgotten():
    now = [0.0]
    jobs = Jobs(ticks=lambda: now[0])
    made = [jobs.begin("ada", int, word=str(number)) for number in range(3)]
    while any(job.live for job in made):
        time.sleep(0.01)
    assert len({job.id for job in made}) == 3
    assert {len(job.id) for job in made} == {32}
    assert jobs.begin("ada", int, word="1") is made[1]
    now[0] = 3601
    assert jobs.of("ada") == []
    assert jobs.find("ada", made[0].id) is None
    assert jobs.begin("ada", int, word="1") is not made[1]


def test_whoever_cancels_what_goes_on_takes_no_more_turns():
    """Under a deadline a read that was cancelled goes on, and takes a turn until it ends."""
    go, begun = threading.Event(), []

    def work():
        begun.append(1)
        go.wait(60)

    jobs = Jobs(deadlines=Deadlines(60.0))
    for _ in range(3):
        jobs.cancel(jobs.begin("ada", work))
        jobs.begin("ada", work)
    while len(begun) < 2:
        time.sleep(0.01)
    for job in jobs.of("ada"):
        if job.state == "running":
            jobs.cancel(job)
    jobs.begin("ada", work)
    theirs = jobs.begin("bob", lambda: 1)
    while theirs.state == "waiting":
        time.sleep(0.01)
    assert len(begun) == 2
    go.set()


def test_too_many_are_refused():
    jobs, go = Jobs(), threading.Event()
    for _ in range(LIVE):
        jobs.begin("bob", lambda: go.wait(60))
    with pytest.raises(TooManyJobs):
        jobs.begin("bob", int)
    go.set()


def test_a_failure_holds_no_frames_of_what_was_read():
    jobs = Jobs()

    def work():
        try:
            raise ValueError(SECRET)
        except ValueError:
            raise Cancelled("It was interrupted.") from None

    job = jobs.begin("ada", work)
    while job.live:
        time.sleep(0.01)
    assert isinstance(job.failure, Cancelled)
    assert (job.failure.__traceback__, job.failure.__context__, job.failure.__cause__) == (None, None, None)
