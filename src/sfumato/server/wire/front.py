"""`Front`: the port at which PostgreSQL's clients ask."""

from __future__ import annotations

import asyncio
import hmac
import ssl
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from sfumato.engines.running import stoppable
from sfumato.errors import InvalidParameter
from sfumato.server.crowds import Crowd
from sfumato.server.deadlines import Deadlines, Gone, Overrun
from sfumato.server.events import Watch, nobody
from sfumato.server.turns import TooBusy, Turns
from sfumato.server.wire import room
from sfumato.server.wire.catalog import Catalog
from sfumato.server.wire.connection import Connection
from sfumato.server.wire.login import Login
from sfumato.server.wire.settings import Settings
from sfumato.server.wire.sqlstates import WireError
from sfumato.session import Session

__all__ = ["Front"]

T = TypeVar("T")
_CATALOGS = 16
_LOGINS = 4  # at the same time, in threads that statements cannot take
_CATALOG = 4  # queries of the catalog at the same time, of one account half of them; in threads of their own


def _holds(login: Login) -> None:
    """A login holds as long as its connection, unless the caller says otherwise."""


class Front:
    """PostgreSQL's protocol before sessions.

    ```
    front = Front(lambda login, database: steward.as_analyst(login.account.name),
                  lambda user, address, binding: accounts.login(user, address=address, binding=binding),
                  tls=context, check=lambda login: accounts.current(login.token))
    await front.start("127.0.0.1", 5432)
    ```

    Privacy:
        A client gets what a session in its analyst's name gives, and what is declared in public. The session
        decides and pays; nothing here reads data, and no error has a value of it.

    Attributes:
        port: Where it listens, once it has started.
    """

    def __init__(
        self,
        session_of: Callable[[Any, str], Session],
        login_of: Callable[[str, str, bytes | None], Login],
        *,
        check: Callable[[Any], object] = _holds,
        is_steward: Callable[[Any], bool] = lambda _: False,
        tls: ssl.SSLContext | None = None,
        binding: bytes | None = None,
        plain: bool = False,
        during: Callable[[], AbstractContextManager[object]] = nullcontext,
        watch: Watch = nobody,
        deadlines: Deadlines | None = None,
        workers: int = 8,
        most: int = 200,
        per_address: int | None = None,
        login_seconds: float = 20,
        message_seconds: float = 60,
        idle_seconds: float = 3600,
    ) -> None:
        """Make a front; it listens once it is started.

        Args:
            session_of: The session of a login that succeeded, in its analyst's name, by the name of the
                database that was asked for. It raises `AccessDenied` or another error of ours if there is
                none. The caller closes it.
            login_of: A login by a user's name, the client's address, and the hash of our certificate where
                the connection has TLS.
            check: Raises `LoginFailed` once a login does not hold any more; asked before each statement.
            is_steward: Whether a login is a steward's, who is told where something is wrong at the server.
            tls: The context of the server's side of TLS.
            binding: The hash of its certificate (`access.end_point`), so that logins can be bound to it.
            plain: Whether connections without TLS are taken: for trials on one machine.
            during: Entered around each statement, in its thread.
            watch: Who is told of each statement, once it is over.
            deadlines: Of paid reads.
            workers: How many statements run at the same time, of one account half of them.
            most: How many connections there may be.
            per_address: How many of them from one address; None: as many as it likes.
            login_seconds: How long a client may take to log in.
            message_seconds: How long a message may take to come, once it has begun.
            idle_seconds: How long a client may be silent.

        Raises:
            InvalidParameter: without TLS, unless `plain` says that this is meant.
        """
        if tls is None and not plain:
            raise InvalidParameter(
                "The wire front needs TLS, so that nobody reads answers on the way: give tls=, or plain=True "
                "for a trial on one machine."
            )
        self.session_of, self.login_of, self.check = session_of, login_of, check
        self.is_steward = is_steward
        self.tls, self.binding, self.plain, self.watch = tls, binding, plain, watch
        self.login_seconds, self.message_seconds, self.idle_seconds = (
            login_seconds,
            message_seconds,
            idle_seconds,
        )
        self._most, self._workers, self._during = most, workers, during
        self._deadlines, self._crowd = deadlines or Deadlines(), Crowd(per_address)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="sfumato-wire")
        self._logins = ThreadPoolExecutor(_LOGINS, thread_name_prefix="sfumato-login")
        self._lookups = ThreadPoolExecutor(_CATALOG, thread_name_prefix="sfumato-catalog")
        self._turns, self._catalog_turns = Turns(workers), Turns(_CATALOG)
        self._room = room.Room(most=room.MOST_OF_ALL, of="This server")
        self._rooms: WeakValueDictionary[str, room.Room] = WeakValueDictionary()
        self._catalogs: OrderedDict[tuple[str, int], tuple[Any, Catalog]] = OrderedDict()
        self._lock = threading.Lock()
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str = "127.0.0.1", port: int = 5432) -> None:
        """Listen.

        Raises:
            InvalidParameter: if nothing can listen there.
        """
        try:
            self._server = await asyncio.start_server(self._arrived, host, port, limit=2**17)
        except OSError as error:
            why = error.strerror or "it cannot be used"
            raise InvalidParameter(
                f"Port {port} of {host} cannot be listened on: {why}. Choose another port."
            ) from None
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self, seconds: float = 30) -> None:
        """Take no new connections, let running statements end within a time, then end all.

        What is still running after it goes on to its end in its thread, is charged and kept on record.
        """
        if self._server is not None:
            self._server.close()
        waited = 0.0
        while waited < seconds and any(connection.busy for connection in self._connections):
            await asyncio.sleep(0.02)
            waited += 0.02
        tasks = list(self._connections.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for pool in (self._pool, self._logins, self._lookups):
            pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for _, catalog in self._catalogs.values():
                catalog.close()
            self._catalogs.clear()

    async def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= 2 * self._most:
            writer.close()
            return
        connection = Connection(self, reader, writer)
        address = connection.address
        if not self._crowd.enter(address):
            writer.close()
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections[connection] = task
        try:
            await connection.serve()
        finally:
            self._crowd.leave(address)

    def left(self, connection: Connection) -> None:
        """Note that a connection is over."""
        self._connections.pop(connection, None)

    def room_of(self, who: str) -> room.Room:
        """What is left for all that the connections of an account keep together."""
        if (found := self._rooms.get(who)) is None:
            found = self._rooms[who] = room.Room(self._room, most=room.MOST_OF_ACCOUNT, of="An account")
        return found

    def is_full(self, connection: Connection) -> bool:
        """Whether a connection that begins is one too many."""
        return list(self._connections).index(connection) >= self._most

    def cancel(self, process: int, secret: bytes) -> None:
        """Stop what the connection with this key is doing; a wrong key does nothing."""
        for connection in list(self._connections):
            if connection.process == process and hmac.compare_digest(connection.secret, secret):
                connection.cancel()

    async def work(
        self,
        work: Callable[[], T],
        stop: threading.Event,
        check: Callable[[], None],
        gone: asyncio.Future[None] | None = None,
        *,
        who: str | None,
        catalog: bool = False,
    ) -> T:
        """Run something in a thread, until it ends, or `stop` is set and `gone` done.

        Where reads are kept to deadlines, none is stopped: the caller alone is let go.

        Args:
            work: What is done.
            stop: Set to end it.
            check: Called before it begins.
            gone: Done once the caller gives up.
            who: For which account; None: it logs in.
            catalog: Whether the catalog answers it: such work waits for its like alone, and nothing for it.
        """
        kept = bool(self._deadlines)

        def run() -> T:
            if stop.is_set():
                raise WireError("57014", "Cancelled before it began; nothing was spent.")
            check()
            with self._during(), nullcontext() if kept else stoppable(stop):
                return work()

        try:
            return await self._deadlines.met(run, lambda begun: self._in_thread(begun, who, catalog), gone)
        except TooBusy as busy:
            raise WireError("53300", str(busy)) from None
        except Overrun as late:
            raise WireError("57014", str(late)) from None
        except Gone:
            raise WireError(
                "57014", "Cancelled. What has begun goes on to its end, and is charged."
            ) from None

    async def _in_thread(self, work: Callable[[], T], who: str | None, catalog: bool) -> T:
        loop = asyncio.get_running_loop()
        if who is None:
            return await loop.run_in_executor(self._logins, work)
        turns, pool = (self._catalog_turns, self._lookups) if catalog else (self._turns, self._pool)
        await turns.enter(who)
        try:
            return await loop.run_in_executor(pool, work)
        finally:
            turns.leave(who)

    def catalog_of(self, session: Session, database: str) -> Callable[[], Catalog]:
        """What gives the catalog of a session's tables, which sessions over the same tables share."""

        def catalog() -> Catalog:
            tables = session.tables
            key = (database, id(tables))
            with self._lock:
                if key not in self._catalogs:
                    made = Catalog(database, list(tables.values()), Settings("").all())
                    self._catalogs[key] = (tables, made)  # with the tables, so that their id stays theirs
                    while len(self._catalogs) > _CATALOGS:
                        self._catalogs.popitem(last=False)
                self._catalogs.move_to_end(key)
                return self._catalogs[key][1]

        return catalog
