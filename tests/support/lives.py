"""Servers in processes of their own: forks of one process that has loaded what `sfumato serve` needs.

Run as a script it reads a line of JSON for each life or wait, and answers with a line. Each life is the very
command, `sfumato serve …`, and dies of SIGKILL at a named point if it is told one (`POINTS`).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

__all__ = ["POINTS", "SECRET", "Life", "Nursery", "accounts", "catalog"]

RELEASED = ("/api/release", 200)
POINTS = ("before debit", "after commit", "mid-read", "before reply")
SECRET = "Zanzibar"
"""A value of the data that nothing said may hold."""

_CATALOG = """\
[ledger]
{ledger}

[datasets.visits]
epsilon = {epsilon}
delta = 1e-6

[datasets.visits.analysts]
{limits}

[tables.visits]
source = "secretly.parquet"
unit = "user_id"
max_groups = 1

[tables.visits.columns]
country = {{ type = "enum", values = ["FR", "DE"] }}
city = {{ type = "text" }}
amount = {{ type = "int", lower = 0, upper = 200 }}
"""


def catalog(
    folder: Path, *, url: str = "", epsilon: Any = 100, limits: dict[str, Any] | None = None, rows: int = 400
) -> Path:
    """Visits, and what may be asked of them; the ledger is beside them, or at a PostgreSQL's address."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = {
        "user_id": list(range(rows)),
        "country": ["FR", "DE"] * (rows // 2),
        "city": [SECRET] * rows,
        "amount": [row % 200 for row in range(rows)],
    }
    pq.write_table(pa.table(data), folder / "secretly.parquet")
    (folder / "state").mkdir(exist_ok=True)
    where = f'url = "{url}"\nstate = "state"' if url else 'path = "visits.ledger"'
    own = "\n".join(f"{name} = {{ epsilon = {limit} }}" for name, limit in (limits or {}).items())
    path = folder / "sfumato.toml"
    path.write_text(_CATALOG.format(ledger=where, epsilon=epsilon, limits=own), encoding="utf-8")
    return path


@contextlib.contextmanager
def accounts(config: Path) -> Iterator[Any]:
    """The accounts of a catalog, as its steward has them."""
    from sfumato.catalog import Catalog
    from sfumato.server.access import Accounts

    read = Catalog.read(config, environ={})
    with Accounts.open(read.ledger, state=read.state) as found:
        yield found


def tokens_of(config: Path, roles: dict[str, str]) -> dict[str, str]:
    """A new account and token for each name."""
    with accounts(config) as found:
        for name, role in roles.items():
            found.add(name, role)
        return {name: found.issue(name, timedelta(days=1))[0] for name in roles}


class Life:
    """One server: where it is, what it has said, and how it ended."""

    def __init__(self, nursery: Nursery, pid: int, said: Path) -> None:
        self._nursery, self.pid, self._said = nursery, pid, said
        for _ in range(3000):
            lines = self.said.splitlines()
            if any(line.startswith("serving http") for line in lines):
                break
            time.sleep(0.01)
        else:
            raise AssertionError(f"no server: {self.said}")
        where = [line.removeprefix("serving ") for line in lines if line.startswith("serving ")]
        self.http, self.postgresql = where[-1], where[0]
        self.port, self.pg_port = (
            int(each.split(":")[2].partition("/")[0]) for each in (where[-1], where[0])
        )

    @property
    def said(self) -> str:
        """Everything on its standard output and error."""
        return self._said.read_text("utf-8", "replace")

    def end(self, signal: int = signal.SIGTERM) -> int:
        """Ends it; its status, or minus the signal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal)
        return self.status()

    def status(self) -> int:
        """How it ended, once it has."""
        return self._nursery.ask({"wait": self.pid})["status"]


class Nursery:
    """Where lives begin."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._numbers = iter(range(10**9))
        assert self.ask({}) == {"ready": True}

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """One line there, one back."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def life(
        self, config: Path, point: str = "", at: int = 0, arguments: Sequence[str] = (), **environment: str
    ) -> Life:
        """A server over a catalog that takes requests; it dies when it passes a point the `at`th time."""
        said = config.parent / f"said.{next(self._numbers)}"
        command = ["serve", "--config", str(config), "--port", "0", "--pg-port", "0", *arguments]
        said.touch()
        asked = {"arguments": command, "said": str(said), "point": point, "at": at, "more": environment}
        return Life(self, self.ask(asked)["pid"], said)

    def close(self) -> None:
        """Ends it, once all lives have ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


# ── in the process of its own


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _armed(point: str, at: int) -> None:
    """Has this process die when it passes a point for the `at`th time."""
    import itertools
    import threading

    from sfumato.engines.duckdb import DuckDB
    from sfumato.ledger.counter import Counter
    from sfumato.ledger.postgres import Postgres
    from sfumato.ledger.sqlite import SQLite
    from sfumato.server import doors
    from sfumato.server.wire.desk import Desk
    from sfumato.session.vault import Vault

    passed, within = itertools.count(1), threading.local()

    def passing() -> None:
        if next(passed) == at:
            _die()

    def around(owner: Any, name: str, *, mark: str = "", inside: str = "", before: str = "", after: str = ""):
        real = getattr(owner, name)

        def wrapped(*arguments: Any, **more: Any) -> Any:
            outer, within.mark = getattr(within, "mark", ""), mark or getattr(within, "mark", "")
            try:
                due = not inside or within.mark == inside
                if due and point == before:
                    passing()
                found = real(*arguments, **more)
                if due and point == after:
                    passing()
                return found
            finally:
                within.mark = outer

        setattr(owner, name, wrapped)

    around(Counter, "debit", mark="debit", before="before debit")
    around(SQLite, "commit", inside="debit", after="after commit")
    around(Postgres, "commit", inside="debit", after="after commit")
    around(Vault, "read", mark="read")
    around(DuckDB, "_fetch", inside="read", after="mid-read")
    around(Desk, "_released", after="before reply")
    made = doors.http_front

    def front(*arguments: Any) -> Any:
        app = made(*arguments)

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            async def sent(message: Any) -> None:
                if (
                    point == "before reply"
                    and scope["path"] == "/api/release"
                    and message.get("status") == 200
                ):
                    passing()
                await send(message)

            await app(scope, receive, sent)

        return watched

    doors.http_front = front


def _live(asked: dict[str, Any]) -> None:
    """In the fork: the command."""
    from sfumato.cli import main

    os.setsid()
    os.environ.update(asked["more"])
    os.chdir(Path(asked["said"]).parent)
    sys.argv = ["sfumato", *asked["arguments"]]
    file = os.open(asked["said"], os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if asked["point"]:
        _armed(asked["point"], asked["at"])
    main()


def _warm() -> None:
    """Loads what answers need, which a child finds out: this process opens no engine and has one thread."""
    from served import SQL, client_of, house

    for name in ("cli.serve", "server.doors", "server.running", "catalog", "ledger.postgres"):
        importlib.import_module(f"sfumato.{name}")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with house() as made:
            assert client_of(made)("POST", "/api/release", json={"sql": SQL, "epsilon": 1}).status_code == 200
        os.write(writer, "\n".join(sys.modules).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        names = pipe.read().decode().split()
    assert os.waitpid(child, 0)[1] == 0
    for name in ["psycopg", *names]:
        if name not in sys.modules and not name.startswith("_"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _main() -> None:
    _warm()
    for line in sys.stdin:
        asked = json.loads(line)
        if not asked:
            found: dict[str, Any] = {"ready": True}
        elif "wait" in asked:
            status = os.waitpid(asked["wait"], 0)[1]
            found = {"status": os.waitstatus_to_exitcode(status)}
        else:
            child = os.fork()
            if not child:
                try:
                    _live(asked)
                except SystemExit as ended:
                    os._exit(ended.code if isinstance(ended.code, int) else 1)
                except BaseException:
                    sys.excepthook(*sys.exc_info())
                os._exit(1)
            found = {"pid": child}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    _main()
