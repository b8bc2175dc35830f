"""A server that wants to hold, fill or break the process that asks it: each ends in one sentence."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import sfumato as sf
from served import SQL, house, known, started
from sfumato.client import connection
from sfumato.client import session as sessions
from sfumato.client.documents import document_of
from sfumato.errors import InvalidParameter, QueryRefused, ServerUnreachable
from sfumato.server.http.app import make_app
from sfumato.session.carried.kinds import checked, checked_fields
from sfumato.session.carried.values import Room, pack, pack_expression, unpack, unpack_expression

ROOT = Path(__file__).parents[2]
TOKEN = "token-of-ada"


@pytest.fixture(scope="module")
def url():
    with house() as place, started(make_app(place, known)) as address:
        yield address


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(connection, "_PAUSE", 0.001)


def searched(every, seed):
    """The client at a server that spoils one reply in so many; in a process whose memory has a limit."""
    paths = os.pathsep.join(str(ROOT / one) for one in ("src", "tests/support", "tests"))
    return subprocess.run(
        [sys.executable, ROOT / "tests" / "support" / "hostile_replies.py", str(every), str(seed)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


def test_some_spoilt_replies_are_one_sentence_each():
    done = searched(3_000, 7)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.stats
@pytest.mark.parametrize("seed", [1, 2])
def test_many_spoilt_replies_are_one_sentence_each(seed):
    done = searched(25, seed)
    assert done.returncode == 0, done.stdout + done.stderr


# ── time


class Slow:
    """A server that sends a beginning at once, and the rest byte by byte while somebody listens."""

    def __init__(self, beginning: bytes, rest: bytes, most: int = 300):
        self._beginning, self._rest, self._most = beginning, rest, most
        self._over = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                near = self._listening.accept()[0]
                with near, contextlib.suppress(OSError):
                    near.recv(1 << 16)
                    near.sendall(self._beginning)
                    for place in range(self._most):
                        near.sendall(self._rest[place % len(self._rest) :][:1])
                        if self._over.wait(0.01):
                            return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over.set()
        self._listening.close()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("beginning", "rest"),
    [
        (b"", OK),
        (OK, b"X-Header: x\r\n"),
        (OK, b"X-Endless: " + b"x" * 1000),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (OK + b"Content-Length: 100000\r\n\r\n", b" "),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (OK + b"\r\n", b"["),
    ],
    ids=["status", "headers", "header", "continue", "body", "chunks", "until-the-end"],
)
def test_bytes_that_come_one_by_one_do_not_hold_a_client(beginning, rest):
    with (
        Slow(beginning, rest) as slow,
        pytest.raises(ServerUnreachable, match=r"within 0\.3 seconds"),
    ):
        sf.connect(slow.url, token=TOKEN, timeout=0.3)


def test_a_deadline_is_for_all_tries_together(monkeypatch):
    """Connections that are lost, and a server that asks for time, do not begin it anew."""
    monkeypatch.setattr(connection, "_PAUSE", 60.0)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ServerUnreachable, match="see whether the server runs"):
        sf.connect(f"http://127.0.0.1:{port}", token=TOKEN, timeout=0.5)
    body = b'{"error": {"code": "too_many_requests", "message": "Wait."}}'
    head = b"HTTP/1.1 429 Too Many\r\nRetry-After: 20\r\nContent-Length: %d\r\n\r\n" % len(body)
    with Slow(head + body, b"", most=0) as busy, pytest.raises(ServerUnreachable, match="Wait"):
        sf.connect(busy.url, token=TOKEN, timeout=5)


def test_a_session_goes_on_after_a_deadline_has_passed(url):
    with sf.connect(url, token=TOKEN) as session:
        session.connection._timeout = 1e-9
        with pytest.raises(ServerUnreachable, match="did not answer within"):
            session.balance()
        session.connection._timeout = 60
        assert session.balance().entries >= 0


# ── memory


def test_values_and_levels_are_counted_before_any_is_made():
    assert document_of(b"[" + b"1," * 999_990 + b"1]")[-1] == 1
    for body in (
        b"[" + b"[]," * 600_000 + b"1]",
        b"[" + b"{}," * 1_000_000 + b"1]",
        b"[" + b"1," * 1_000_001 + b"1]",
    ):
        with pytest.raises(ValueError, match="too many values"):
            document_of(body)
    assert document_of(b"[" * 200 + b"]" * 200) is not None
    for level in (b"[", b'{"a":'):
        with pytest.raises(ValueError, match="too many levels"):
            document_of(level * 201)


def test_what_stands_in_texts_does_not_count():
    words = {"a": "[{,:" * 1_000_000, "\\": '"\\"[', "b": "\\"}
    assert document_of(json.dumps(words).encode()) == words


@pytest.mark.parametrize(
    "body", [b'"' + b'\\"' * 500_000, b'"' + b'\\"' * 500_000 + b"\\", b'"' * 999_999, b"\\" * 999_999]
)
def test_texts_without_an_end_are_read_once(body):
    with pytest.raises(ValueError, match=r"."):
        document_of(body)


@pytest.mark.parametrize(
    "body",
    [
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b"1e999",
        b"-1e999",
        b"9" * 5000,
        b'\xff"',
        b"\xff\xfe[\x00]\x00",
    ],
)
def test_what_is_no_number_or_no_text_is_no_document(body):
    with pytest.raises(ValueError, match=r"."):
        document_of(body)


def test_a_refusal_is_short_and_a_document_that_is_no_answer_is_not_long(url, monkeypatch):
    monkeypatch.setattr(connection, "_MOST_BYTES", 10)
    with pytest.raises(ServerUnreachable, match="more than 10 bytes"):
        sf.connect(url, token="token-of-nobody")
    monkeypatch.undo()
    with sf.connect(url, token=TOKEN) as session:
        monkeypatch.setattr(connection, "SHORT_BYTES_READ", 300)
        assert session.sql(SQL).release(epsilon="0.5").table.num_rows == 2
        for ask in (session.balance, lambda: session.sql(SQL).quote(epsilon=1)):
            with pytest.raises(ServerUnreachable, match="more than 300 bytes"):
                ask()


def test_pages_of_receipts_have_an_end(url, monkeypatch):
    """A server that always has another page, whose numbers go on."""
    with sf.connect(url, token=TOKEN) as session:
        asked, sent = [], session.connection._sent

        def endless(method, path, given, body, missing, within):
            asked.append(given["after"])
            numbers = range(given["after"] + 1, given["after"] + 1_001) if len(asked) < 20 else ()
            page = json.dumps([{"kind": "limit", "number": number} for number in numbers]).encode()
            with Slow(OK + b"Content-Length: %d\r\n\r\n" % len(page) + page, b"", most=0) as other:
                session.connection.address = other.url
                return sent(method, path, given, body, missing, within)

        monkeypatch.setattr(session.connection, "_sent", endless)
        monkeypatch.setattr(sessions, "MOST_BYTES_READ", 200_000)
        with pytest.raises(ServerUnreachable, match="fewer groups or receipts"):
            session.releases()
        assert asked == sorted(set(asked))
        assert 2 < len(asked) < 10


# ── what is unpacked, by a client and by a server


def doubling(levels):
    return [["column", "amount"], *(["call", "add", [place, place]] for place in range(levels))]


def chain(levels):
    return [["column", "amount"], *(["call", "negate", [place]] for place in range(levels))]


@pytest.mark.parametrize("parts", [doubling(18), doubling(5_000), chain(400)])
def test_an_expression_that_unpacks_to_too_much_is_refused(parts):
    for data in ({"expression": parts}, [1, {"expression": parts}], {"map": [["x", {"expression": parts}]]}):
        with pytest.raises(QueryRefused, match="too large"):
            unpack(data)


def test_all_expressions_of_a_document_share_one_room():
    parts = doubling(14)
    assert pack_expression(unpack_expression(parts)) == parts
    assert len(unpack([{"expression": parts}] * 6)) == 6
    for many in (
        [{"expression": parts}] * 7,
        [[{"expression": parts}]] * 7,
        {"map": [[1, {"expression": parts}]] * 7},
    ):
        with pytest.raises(QueryRefused, match="too large"):
            unpack(many)


def test_the_longest_list_that_a_text_may_hold_fits(url):
    listed = ",".join(map(str, range(15_000)))
    with sf.connect(url, token=TOKEN) as session:
        asked = session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE amount IN ({listed})")
        assert asked.quote(epsilon=1).report == asked.report


def test_a_question_of_many_large_expressions_is_refused_by_a_server(url):
    column = {"col": doubling(13), "as": "x"}
    count = {"agg": [["count", [], None]], "of": [["column", "a0"]], "as": None}

    def body(columns):
        calls = [
            ["with_columns", [], {f"x{place}": column for place in range(columns)}],
            ["agg", [], {"n": count}],
        ]
        return {"table": "visits", "calls": calls, "epsilon": "1"}

    with sf.connect(url, token=TOKEN) as session:
        assert session.connection.post("/api/session/quote", body(1))["check"]
        with pytest.raises(QueryRefused, match="too large"):
            session.connection.post("/api/session/quote", body(20))
    room = Room(most=100)
    room.expression(doubling(5), lambda *_: None)
    with pytest.raises(QueryRefused, match="too large"):
        room.expression(doubling(5), lambda *_: None)


# ── kinds


@pytest.mark.parametrize("wrong", [None, 3, "x", 0.5, (), [], {}, True, 10**400])
def test_fields_hold_what_their_class_declares(wrong):
    from sfumato.plan.prices.quote import ColumnQuote, MeasurementQuote
    from sfumato.plan.questions.nodes import Bar, OrderItem, Output, Report

    for kind in (Bar, OrderItem, Output, Report, ColumnQuote, MeasurementQuote):
        names = list(kind.__dataclass_fields__)
        data = {
            "of": kind.__name__,
            "with": [pack(wrong) if not isinstance(wrong, dict | list) else wrong] * len(names),
        }
        with pytest.raises((TypeError, ValueError, InvalidParameter)):
            unpack(data)


def test_which_field_is_wrong_is_said():
    from sfumato.plan.questions.nodes import Bar

    with pytest.raises(TypeError, match="Bar has no such upper"):
        checked(Bar(1, "low", "n", "yes", 0.5), ["position", "upper"])
    with pytest.raises(TypeError, match="Bar has no such level"):
        checked_fields(Bar, {"name": "x", "level": 0.5})
