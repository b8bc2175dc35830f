"""Time, memory, threads, Ctrl-C, closing: limits hold and leave the engine usable."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from sqlglot import parse_one

from sfumato.engines import DuckDB, Engine, base, engine
from sfumato.engines.running import run
from sfumato.errors import Cancelled, EngineFailed, InvalidParameter, TimedOut

NUMBERS = pa.table({"a": pa.array(range(20_000), pa.int64())})
# Far too much work: every pair of rows, thrice over.
ENDLESS = "SELECT COUNT(*) FROM n AS x, n AS y, n AS z WHERE (x.a * y.a + z.a) % 7 = 1"


def ask(on, text="SELECT SUM(a) AS s FROM n"):
    return on.fetch(parse_one(text, dialect=on.dialect.writer)).to_pydict()


@pytest.mark.duckdb
def test_a_read_ends_at_its_time_limit_and_the_next_one_works(make):
    limited = make(timeout=0.2)
    limited.attach("n", NUMBERS, {"a": "integer"})
    for _ in range(2):
        with pytest.raises(TimedOut) as caught:
            ask(limited, ENDLESS)
        assert caught.value.__context__ is None
    assert ask(limited) == {"s": [19_999 * 10_000]}


def test_no_answer_hangs_on_a_time_out():
    ended = threading.Event()

    def work():
        ended.wait(60)
        return "exact-answer"

    with pytest.raises(TimedOut) as caught:
        run(work, ended.set, timeout=0.01)
    frame = caught.value.__traceback__
    while frame is not None:
        task = frame.tb_frame.f_locals.get("task")
        assert task is None or task.result is None
        frame = frame.tb_next


@pytest.mark.duckdb
def test_a_limit_without_end(make):
    patient = make(timeout=float("inf"))
    patient.attach("n", NUMBERS, {"a": "integer"})
    assert ask(patient) == {"s": [19_999 * 10_000]}


@pytest.mark.duckdb
def test_a_limit_so_short_that_planning_outlasts_it(make):
    limited = make(timeout=1e-9)
    limited.attach("n", NUMBERS, {"a": "integer"})
    for _ in range(5):
        with pytest.raises(TimedOut):
            ask(limited, ENDLESS)


@pytest.fixture
def no_callbacks():
    """Nobody is told of the garbage collector's work: an exception of a signal would be lost in there."""
    kept = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = kept


@pytest.fixture(autouse=True)
def heard():
    """Ctrl-C is heard, also where whoever started the tests ignores it, as a shell does in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.duckdb
@pytest.mark.usefixtures("no_callbacks")
def test_ctrl_c_cancels_the_read_and_the_next_one_works(make):
    one = make(timeout=60)  # a lost signal fails the test instead of hanging it
    one.attach("n", NUMBERS, {"a": "integer"})
    for _ in range(2):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(Cancelled) as caught:
            ask(one, ENDLESS)
        timer.join()
        assert caught.value.__context__ is None
        assert caught.value.code == "cancelled"
        assert ask(one) == {"s": [19_999 * 10_000]}


@pytest.mark.duckdb
@pytest.mark.usefixtures("no_callbacks")
def test_ctrl_c_before_the_first_read_shuts_the_doors_and_is_a_cancelled_read(make, monkeypatch):
    one = make(timeout=60)
    one.attach("n", NUMBERS, {"a": "integer"})
    shut = one._shut

    def interrupted():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)  # while the other thread hears it
        shut()

    monkeypatch.setattr(one, "_shut", interrupted)
    with pytest.raises(Cancelled):
        ask(one)
    monkeypatch.undo()
    assert one._locked
    assert ask(one) == {"s": [19_999 * 10_000]}


@pytest.mark.duckdb
@pytest.mark.usefixtures("no_callbacks")
def test_ctrl_c_at_any_moment_ends_in_time(make):
    one = make(timeout=60)  # a lost signal fails the test instead of hanging it
    one.attach("n", NUMBERS, {"a": "integer"})
    ended = 0
    for i in range(40):
        timer = threading.Timer(0.0005 * i, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            ask(one, ENDLESS)
        except (Cancelled, KeyboardInterrupt):
            ended += 1
        timer.join()
    assert ended == 40
    assert ask(one) == {"s": [19_999 * 10_000]}


@pytest.mark.duckdb
@pytest.mark.usefixtures("no_callbacks")
def test_another_exception_from_a_signal_stops_the_read_and_passes_through(make):
    one = make(timeout=60)  # a lost signal fails the test instead of hanging it

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    one.attach("n", NUMBERS, {"a": "integer"})
    before = signal.signal(signal.SIGUSR1, stop)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        with pytest.raises(Stop):
            ask(one, ENDLESS)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert ask(one) == {"s": [19_999 * 10_000]}
    assert not [each for each in threading.enumerate() if each.name == "sfumato-read"]


@pytest.mark.duckdb
def test_memory_that_runs_out_fails_the_read(make):
    small = make(memory="40MB", threads=1)
    small.attach("n", NUMBERS, {"a": "integer"})
    with pytest.raises(EngineFailed) as caught:
        ask(
            small, "SELECT STRING_AGG(REPEAT('x', 1000), ',' ORDER BY x.a) FROM n AS x, n AS y WHERE y.a < 40"
        )
    assert type(caught.value) is EngineFailed
    assert caught.value.__context__ is None
    assert ask(small) == {"s": [19_999 * 10_000]}


def test_what_does_not_fit_is_spilled_to_a_private_folder_and_removed():
    small = DuckDB(memory="40MB", threads=1)
    folder = small._scratch.path
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    wide = pa.table({"a": pa.array(range(3_000_000), pa.int64())})
    small.attach("n", wide, {"a": "integer"})
    seen = []
    watch = threading.Event()

    def look():
        while not watch.wait(0.005):
            seen.extend(name for _, _, names in os.walk(folder) for name in names)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        found = ask(small, "SELECT COUNT(*) AS n FROM (SELECT a, COUNT(*) AS c FROM n GROUP BY a)")
    finally:
        watch.set()
        watcher.join()
    assert found == {"n": [3_000_000]}
    assert seen
    small.close()
    assert not os.path.exists(folder)


def test_threads_read_at_once_while_tables_are_attached(one):
    one.attach("n", NUMBERS, {"a": "integer"})

    def read(i):
        return ask(one, f"SELECT COUNT(*) AS n FROM n WHERE a % 10 = {i % 10}")["n"][0]

    def attach(i):
        one.attach(f"t{i}", NUMBERS.slice(0, i + 1), {"a": "integer"})
        return ask(one, f"SELECT COUNT(*) AS n FROM t{i}")["n"][0]

    with ThreadPoolExecutor(8) as pool:
        reads = [pool.submit(read, i) for i in range(60)]
        attached = [pool.submit(attach, i) for i in range(6)]
        assert [each.result() for each in reads] == [2_000] * 60
        assert [each.result() for each in attached] == [1, 2, 3, 4, 5, 6]
    assert ask(one, "SELECT COUNT(*) AS n FROM t0 JOIN t5 USING (a)") == {"n": [1]}


@pytest.mark.duckdb
@pytest.mark.parametrize("way", ["another table", "the same table again", "closed"])
def test_a_read_ends_as_it_began_whatever_is_attached_or_closed_meanwhile(make, way):
    one = make(threads=1)
    one.attach("n", NUMBERS, {"a": "integer"})
    one.attach("more", NUMBERS.slice(0, 7_000), {"a": "integer"})
    long = "SELECT COUNT(*) AS n FROM n CROSS JOIN more WHERE (n.a * more.a) % 7 = 3"
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(ask, one, long)
        while not one._reads:
            time.sleep(0.001)
        if way == "closed":
            one.close()
        else:
            one.attach("n" if way == "the same table again" else "t", NUMBERS.slice(0, 3), {"a": "integer"})
        assert not under_way.done()  # or nothing was tried
        sevenths = [[len(range(rest, size, 7)) for rest in range(7)] for size in (20_000, 7_000)]
        pairs = [(i, j) for i in range(7) for j in range(7) if i * j % 7 == 3]
        assert under_way.result() == {"n": [sum(sevenths[0][i] * sevenths[1][j] for i, j in pairs)]}
    assert not [count for count in one._reads.values() if count]
    if way == "closed":
        assert not os.path.exists(one._scratch.path)


@pytest.mark.duckdb
def test_a_time_limit_of_one_read_leaves_others_alone(make):
    limited = make(timeout=1.0)
    limited.attach("n", NUMBERS, {"a": "integer"})
    with ThreadPoolExecutor(2) as pool:
        endless = pool.submit(ask, limited, ENDLESS)
        assert all(ask(limited) == {"s": [19_999 * 10_000]} for _ in range(5))
        with pytest.raises(TimedOut):
            endless.result()


def test_a_closed_engine_refuses(one):
    one.attach("n", NUMBERS, {"a": "integer"})
    one.close()
    one.close()
    for use in (
        lambda: ask(one),
        lambda: one.attach("m", NUMBERS, {"a": "integer"}),
        lambda: one.schema(NUMBERS),
    ):
        with pytest.raises(EngineFailed, match="closed"):
            use()


def test_nothing_attached_is_said(one):
    with pytest.raises(EngineFailed, match="attach"):
        ask(one)


def test_a_forgotten_engine_removes_its_folder():
    folder = DuckDB()._scratch.path
    gc.collect()
    assert not os.path.exists(folder)


def test_a_forked_child_is_told_to_open_its_own(tmp_path):
    script = """
        import os, sys
        import pyarrow as pa
        from sqlglot import parse_one
        from sfumato.engines import DuckDB
        from sfumato.errors import EngineFailed
        engine = DuckDB(threads=2)
        engine.attach("n", pa.table({"a": [1]}), {"a": "integer"})
        read = lambda: engine.fetch(parse_one("SELECT COUNT(*) AS n FROM n")).to_pydict()
        assert read() == {"n": [1]}
        child = os.fork()
        if child == 0:
            try:
                read()
            except EngineFailed as error:
                os._exit(7 if "another process" in str(error) else 8)
            os._exit(9)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        assert read() == {"n": [1]}
        print("fine")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr


@pytest.mark.parametrize(
    "options",
    [
        *({"threads": each} for each in (0, -1, True, 1.5, "2")),
        *({"memory": each} for each in ("plenty", "-1GB", "", 4_000_000, "0GB", "1GB; SET threads = 1")),
        *({"timeout": each} for each in (0, -1, float("nan"), "1", True)),
    ],
)
def test_a_limit_that_is_none_is_refused(options):
    with pytest.raises(InvalidParameter, match=next(iter(options))) as caught:
        DuckDB(**options)
    assert caught.value.__context__ is None


def test_engines_are_found_by_name(monkeypatch):
    with engine("duckdb", threads=1) as made:
        assert isinstance(made, DuckDB)
        assert isinstance(made, Engine)
        assert made.threads == 1
    with pytest.raises(InvalidParameter, match=r"no engine 'abacus'.*duckdb"):
        engine("abacus")
    point = importlib.metadata.EntryPoint("abacus", "sfumato.engines.duckdb:DuckDB", "sfumato.engines")
    monkeypatch.setattr(base, "entry_points", lambda group: [point] if group == point.group else [])
    with engine("abacus", timeout=3) as made:
        assert made.timeout == 3
