"""What one client of the wire can take: of memory, of the event loop's time, of answers, of the log."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import logging
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from logs import logged
from sfumato.ledger import Steward
from sfumato.server.wire import Front, replies
from sfumato.server.wire.sqlstates import WireError
from sfumato.server.wire.types import decoded
from wire_bytes import Anyone, Writer, answers, executed, message, parsed, started, states, talk, text

PRICED = message(b"Q", text("SET sfumato.epsilon = 0.0123"))
SYNC = message(b"S", b"")
INT4S, TEXTS = 1007, 1009


def asked(statement: str) -> bytes:
    return message(b"Q", text(statement))


def prepared(name: str, statement: str, *oids: int) -> bytes:
    return message(b"P", text(name) + text(statement) + struct.pack(f">h{len(oids)}I", len(oids), *oids))


def bound(name: str, *values: bytes, binary: int = 0) -> bytes:
    given = b"".join(struct.pack(">i", len(value)) + value for value in values)
    parts = text("") + text(name) + struct.pack(">hhh", 1, binary, len(values)) + given
    return message(b"B", parts + struct.pack(">h", 0))


def told(front: Front, *parts: bytes, writer: Writer | None = None) -> bytes:
    return asyncio.run(talk(front, started() + b"".join(parts), writer))


def front_of(session: sf.Session, **more: Any) -> Front:
    return Front(
        lambda login, database: session.as_analyst("ada"),
        lambda user, address, binding: Anyone(),
        plain=True,
        **more,
    )


@pytest.fixture(scope="module")
def open_front(steward: sf.Session) -> Front:
    return front_of(steward)


# What a query of the catalog takes.

_TAKING = """
import resource
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

import sfumato as sf
from sfumato.server.wire import catalog as catalog_module
from sfumato.server.wire.catalog import Catalog
from sfumato.server.wire.rewriting import Asker, tree_of
from sfumato.server.wire.sqlstates import WireError

catalog_module._LIMITS = replace(catalog_module._LIMITS, seconds=0.5)

table = sf.PrivateTable(
    "visits", source=pa.table({"u": [1]}), unit=sf.PrivacyUnit("u", max_rows=1), schema={}
)
catalog = Catalog("demo", [table], {"server_version": "16.0"})
for text in sys.argv[1:]:
    try:
        print(len(catalog.ask(tree_of(text), Asker({}, {}))[1]))
    except WireError as error:
        print(error.state)
catalog.close()
own = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(max(own, children) >> 10)
"""

LARGE = [
    "SELECT repeat('a', 400000000)",
    "SELECT length(repeat('a', 1000000000))",
    "SELECT length(rpad('a', 1000000000, 'b'))",
    "SELECT generate_series(1, 300000000)",
    "SELECT format('{:>99' || '9999999}', 'a')",
    "SELECT length(replace(repeat('x', 30000), 'x', repeat('y', 30000)))",
    "SELECT array_agg(a.x) FROM generate_series(1, 9000) a(x), generate_series(1, 9000) b(x)",
    "SELECT length(string_agg(repeat('x', 90000), '')) FROM generate_series(1, 90000)",
    "WITH RECURSIVE t(v, n) AS (SELECT 'a', 1 UNION ALL SELECT v || v, n + 1 FROM t WHERE n < 60) "
    "SELECT max(length(v)) FROM t",
    "SELECT " + "quote_ident(" * 20 + "'a'" + ")" * 20,
]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_no_query_of_the_catalog_takes_more_memory_than_it_may() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _TAKING, *LARGE, "SELECT 1"], capture_output=True, text=True, timeout=200
    )
    *codes, last, peak = run.stdout.split()
    assert last == "1"  # the catalog goes on
    assert len(codes) == len(LARGE)
    assert set(codes) <= {"53200", "57014", "54000", "0A000"}
    assert int(peak) < 600  # MiB


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("SELECT array_agg(x) FROM generate_series(1, 200000) t(x)", "54000"),
        ("SELECT " + ", ".join(["1"] * 1_664), ""),
        ("SELECT " + ", ".join(["1"] * 1_665), "54011"),
        ("SELECT interval '1000000000 days'", "0A000"),
        ("SELECT " + "ARRAY[" * 7 + "1" + "]" * 7, "0A000"),
        ("SELECT ARRAY[ARRAY[ARRAY[1]]]", ""),
    ],
)
def test_what_a_query_of_the_catalog_gives_is_limited(
    open_front: Front, caplog: pytest.LogCaptureFixture, statement: str, state: str
) -> None:
    with caplog.at_level(logging.ERROR):
        assert states(told(open_front, asked(statement))) == ({state} if state else set())
    assert not logged(caplog)


def test_a_value_that_a_format_has_not_is_refused_and_no_trouble(
    open_front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert states(told(open_front, parsed("SELECT '290000-01-01'::date", 1), executed(), SYNC)) == {
            "0A000"
        }
    assert not logged(caplog)
    assert b"290000-01-01" in told(open_front, asked("SELECT '290000-01-01'::date"))


def _limited(**limits: Any) -> Any:
    from sfumato.server.wire.apart import Apart, Limits

    few = {"seconds": 5.0, "rows": 1_000, "bytes": 100_000, "columns": 9, "page": 10, **limits}
    return Apart(["CREATE TABLE t AS SELECT 7 AS a"], {"threads": 1}, Limits(**few))


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("SELECT range, 1 FROM range(1000)", ""),
        ("SELECT range FROM range(1001)", "54000"),
        ("SELECT range(1000)", ""),
        ("SELECT range(1001)", "54000"),
        ("SELECT 1, 2, 3, 4, 5, 6, 7, 8, 9, 10", "54011"),
        ("SELECT true, 2, NULL, [4], 5, 6, 7, 8, 9 FROM range(1000)", ""),
        ("SELECT true, 2, NULL, [4, 4, 4, 4], 5, 6, 7, 8, 9 FROM range(1000)", "54000"),
        ("SELECT repeat('a', 99900)", ""),
        ("SELECT repeat('a', 100100)", "54000"),
    ],
)
def test_every_value_of_an_answer_is_counted(statement: str, state: str) -> None:
    from sfumato.server.wire.apart import Refused

    with contextlib.closing(_limited()) as made:
        if not state:
            made.ask(statement)
            return
        with pytest.raises(Refused) as refused:
            made.ask(statement)
        assert refused.value.state == state


def test_a_process_that_takes_too_long_is_ended_and_another_one_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sfumato.server.wire import apart

    monkeypatch.setattr(apart, "_GRACE", 0.2)
    with contextlib.closing(_limited(seconds=0.3)) as made:
        assert made.ask("SELECT a FROM t") == ([("a", "INTEGER")], [(7,)])
        with pytest.raises(apart.Refused) as refused:
            made.ask("SELECT max(sin(range)) FROM range(1000000000000)")
        assert refused.value.state == "57014"
        assert made.ask("SELECT a FROM t")[1] == [(7,)]
        (first,) = made._all
        os.kill(first._child.pid, signal.SIGSTOP)  # like a function that looks at no interrupt
        with pytest.raises(apart.Refused) as refused:
            made.ask("SELECT a FROM t")
        assert refused.value.state == "57014"
        assert first._child.poll() is not None
        assert made.ask("SELECT a FROM t")[1] == [(7,)]
        (second,) = made._all
        second._child.kill()
        with pytest.raises(apart.Refused) as refused:
            made.ask("SELECT a FROM t")
        assert refused.value.state == "53200"
        assert made.ask("SELECT a FROM t")[1] == [(7,)]
        processes = list(made._all)
    assert not made._all
    assert all(process._child.poll() is not None for process in processes)


def test_processes_end_with_what_began_them() -> None:
    made = _limited()
    made.ask("SELECT 1")
    (process,) = made._all
    del made
    gc.collect()
    assert process._child.poll() is not None


def test_a_process_gives_plain_values_and_nothing_else() -> None:
    from sfumato.server.wire.apart import _Plain

    with pytest.raises(pickle.UnpicklingError):
        _Plain(io.BytesIO(pickle.dumps(os.system))).load()


# What the event loop does.


class _Measuring(Writer):
    """Knows the longest piece."""

    longest = 0

    def write(self, data: bytes) -> None:
        super().write(data)
        self.longest = max(self.longest, len(data))


WIDE = "SELECT array_agg(x) AS n FROM generate_series(1, 60000) t(x)"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(asked(WIDE), id="query"),
        pytest.param(parsed(WIDE, 1) + executed() + SYNC, id="portal"),
        pytest.param(asked(f"COPY ({WIDE}) TO STDOUT"), id="copy"),
        pytest.param(asked("SELECT repeat('x', 90000), a FROM generate_series(1, 9) t(a)"), id="rows"),
    ],
)
def test_answers_are_written_piece_by_piece_beside_the_event_loop(
    open_front: Front, monkeypatch: pytest.MonkeyPatch, parts: bytes
) -> None:
    threads, writer = set[int](), _Measuring()
    for name in ("data_row", "copy_data"):
        make = getattr(replies, name)
        monkeypatch.setattr(
            replies, name, lambda value, make=make: threads.add(threading.get_ident()) or make(value)
        )
    assert b"SERROR" not in told(open_front, parts, writer=writer)
    assert len(writer.sent) > 200_000
    assert writer.longest <= 1 << 16
    assert threads
    assert threading.get_ident() not in threads


def test_others_have_their_turn_between_messages_that_are_here_already(open_front: Front) -> None:
    count = 1_000
    many = b"".join([bound("a"), message(b"C", b"P" + text("")), SYNC]) * count

    async def both() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        begun = started() + prepared("a", "SELECT 1") + SYNC
        await talk(open_front, begun)
        task = asyncio.ensure_future(other())
        before = turns
        assert not states(await talk(open_front, begun + many))
        task.cancel()
        return turns - before

    few = asyncio.run(asyncio.wait_for(both(), 60))
    assert few > 3 * count


def test_large_values_are_read_in_turn_and_counted(steward: sf.Session) -> None:
    checks, threads = list[object](), set[int]()

    def check(login: object) -> None:
        checks.append(login)
        threads.add(threading.get_ident())

    front = front_of(steward, check=check)
    begun = prepared("a", "SELECT $1", 25) + SYNC
    small = told(front, begun, (bound("a", b"x") + SYNC) * 5)
    few = len(checks)
    large = told(front, begun, (bound("a", b"x" * 20_000) + SYNC) * 5)
    assert not states(small + large)
    assert len(checks) - 2 * few == 5
    assert threading.get_ident() not in threads


# What is in an array.


def nested(levels: int) -> bytes:
    """Lists of texts that say that they are in each other."""
    value = struct.pack(">iiI", 0, 0, TEXTS)
    for _ in range(levels):
        value = struct.pack(">iiIiii", 1, 0, TEXTS, 1, 1, len(value)) + value
    return value


def listed(oid: int, *values: bytes) -> bytes:
    parts = b"".join(struct.pack(">i", len(value)) + value for value in values)
    return struct.pack(">iiIii", 1, 0, oid, len(values), 1) + parts


@pytest.mark.parametrize("levels", [0, 1, 400])
def test_a_list_is_never_in_a_list(open_front: Front, caplog: pytest.LogCaptureFixture, levels: int) -> None:
    begun = prepared("y", "SELECT $1", TEXTS) + SYNC
    with caplog.at_level(logging.ERROR):
        assert states(told(open_front, begun, bound("y", nested(levels), binary=1), SYNC)) == {"22P03"}
    assert not logged(caplog)


def test_the_values_of_a_list_have_the_type_that_was_declared() -> None:
    assert decoded(INT4S, 1, listed(23, b"\0\0\0\7", b"\0\0\0\1")) == [7, 1]
    assert decoded(TEXTS, 1, listed(25, b"a")) == ["a"]
    assert decoded(TEXTS, 1, struct.pack(">iiI", 0, 0, 25)) == []
    for oid, inner in ((INT4S, 20), (INT4S, 25), (TEXTS, INT4S), (TEXTS, 1700)):
        with pytest.raises(WireError) as refused:
            decoded(oid, 1, listed(inner, b"\0" * 8))
        assert refused.value.state == "22P03"


# Whoever was revoked.


class _Revoking(Writer):
    """Ends what an analyst may ask once the first row was sent."""

    def __init__(self, end: Any) -> None:
        super().__init__()
        self._end: Any = end

    def write(self, data: bytes) -> None:
        super().write(data)
        if data[:1] == b"D" and self._end is not None:
            end, self._end = self._end, None
            end()


@pytest.fixture
def own() -> Iterator[sf.Session]:
    table = pa.table({"user_id": list(range(200)), "country": ["FR", "DE"] * 100})
    visits = sf.PrivateTable(
        "visits",
        source=table,
        unit=sf.PrivacyUnit("user_id", max_rows=1),
        schema={"country": sf.Enum("FR", "DE", nullable=False)},
    )
    with sf.Session(visits, budget=sf.Budget(epsilon=10, delta=1e-6)) as session:
        yield session


COUNT = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"


@pytest.mark.parametrize("how", ["revoked", "closed"])
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            asked(f"DECLARE c CURSOR WITH HOLD FOR {COUNT}")
            + asked("FETCH 1 FROM c")
            + asked("FETCH 1 FROM c"),
            id="cursor",
        ),
        pytest.param(
            asked(f"DECLARE c CURSOR WITH HOLD FOR {COUNT}")
            + asked("FETCH 1 FROM c")
            + asked("MOVE 1 FROM c"),
            id="move",
        ),
        pytest.param(parsed(COUNT) + executed(1) + executed() + SYNC, id="portal"),
        pytest.param(
            asked(f"PREPARE a AS {COUNT}") + parsed("EXECUTE a") + executed(1) + executed() + SYNC,
            id="portal of a prepared statement",
        ),
        pytest.param(
            asked(f"DECLARE c CURSOR WITH HOLD FOR {COUNT}")
            + parsed("FETCH ALL FROM c")
            + executed(1)
            + executed()
            + SYNC,
            id="portal of a cursor",
        ),
    ],
)
def test_whoever_was_revoked_reads_no_more_of_any_answer(own: sf.Session, parts: bytes, how: str) -> None:
    act = Steward(own.ledger)

    def end() -> None:
        if how == "revoked":
            act.revoke("visits", "ada", reason="left")
        else:
            act.close_budget("visits", reason="done")

    sent = told(front_of(own), PRICED, parts, asked("SELECT relname FROM pg_class"), writer=_Revoking(end))
    before, _, after = sent.partition(b"C42501\0")
    assert [kind for kind, _ in answers(sent)].count(ord("E")) == 1
    assert b"MNothing more is given" in after
    assert before.count(b"\0\1n\0") <= 1  # columns are told once at most
    assert b"visits" in after  # the catalog is public, and goes on


# What is written into the log.

CYCLES = {
    "itself": [prepared("x", "EXECUTE x")],
    "each other": [prepared("x", "EXECUTE y"), prepared("y", "EXECUTE x")],
    "a cursor": [prepared("x", "DECLARE c CURSOR FOR SELECT 1")],
    "another PREPARE": [prepared("x", "PREPARE x AS SELECT 1")],
}


@pytest.mark.parametrize("cycle", CYCLES)
@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(asked("EXECUTE x"), id="query"),
        pytest.param(prepared("z", "EXECUTE x") + bound("z") + executed() + SYNC, id="execute"),
        pytest.param(prepared("z", "EXECUTE x") + message(b"D", b"S" + text("z")) + SYNC, id="describe"),
    ],
)
def test_execute_takes_a_select_and_never_another_execute(
    open_front: Front, caplog: pytest.LogCaptureFixture, cycle: str, ask: bytes
) -> None:
    with caplog.at_level(logging.ERROR):
        assert states(told(open_front, *CYCLES[cycle], SYNC, ask)) == {"42601"}
    assert not logged(caplog)
    assert not states(told(open_front, prepared("x", "SELECT 1") + SYNC, ask))
