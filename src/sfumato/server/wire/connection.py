"""One connection, from its first byte to its last: TLS, login, then message after message.

Whatever a client sends, it gets an error in PostgreSQL's form, and the connection goes on or ends; nothing
that happens here reaches another connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.errors import LoginFailed
from sfumato.ledger.names import alike
from sfumato.random import salt
from sfumato.server.events import Event
from sfumato.server.wire import messages, replies
from sfumato.server.wire.desk import Desk, Outcome
from sfumato.server.wire.encoding import copied, encoded, pieces
from sfumato.server.wire.extended import Extended, notice
from sfumato.server.wire.login import authenticate
from sfumato.server.wire.messages import ProtocolViolation
from sfumato.server.wire.room import given_back
from sfumato.server.wire.settings import REPORTED, Settings
from sfumato.server.wire.sqlstates import WireError, fields_of, state_of
from sfumato.server.wire.statements import Statement, statements

if TYPE_CHECKING:
    from sfumato.server.wire.front import Front
    from sfumato.server.wire.login import Login

__all__ = ["Connection"]

T = TypeVar("T")
_LARGE = 1 << 24  # bytes after which memory is given back


class _Ended(Exception):
    """The connection is over, and there is nothing to say."""


_OVER = (_Ended, TimeoutError, asyncio.CancelledError, asyncio.IncompleteReadError)
"""What ends a connection, and is no failure of what was asked."""


@contextlib.contextmanager
def _stream() -> Iterator[None]:
    """Whatever is wrong with the stream to a client, who has left then, ends the connection.

    Of a stream that is closed uvloop says RuntimeError, as it does of faults in a program.
    """
    try:
        yield
    except (OSError, RuntimeError):
        raise _Ended from None


class Connection:
    """One client.

    Attributes:
        address: Where the client is.
        process: By which a request to cancel finds it.
        secret: What such a request must know.
    """

    def __init__(self, front: Front, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._front, self._reader, self._writer = front, reader, writer
        self.process = int.from_bytes(salt(4), "big") >> 1
        self.secret = salt(4)
        self._stop = threading.Event()
        self._gone: asyncio.Future[None] | None = None
        self.busy = self.secure = self.closing = False
        self._skipping = self._inside = False
        self._who: str | None = None
        self._desk: Desk
        self._extended: Extended
        self._login: Login
        peer = writer.get_extra_info("peername")  # now: nobody can say where one is that has left
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""

    def cancel(self) -> None:
        """Stop what it is doing, if it is doing something."""
        if self.busy:
            self._stop.set()
            if self._gone is not None and not self._gone.done():
                self._gone.set_result(None)

    async def serve(self) -> None:
        """Talk to the client until one of both ends it."""
        try:
            async with asyncio.timeout(self._front.login_seconds):
                await self._begin()
            while True:
                await self._next()
                await asyncio.sleep(0)  # to the others, also where many messages are here already
        except (_Ended, asyncio.IncompleteReadError):
            pass
        except TimeoutError:
            await self._last(
                WireError("57P05", "The client was silent for too long, or read too slowly.", fatal=True)
            )
        except asyncio.CancelledError:
            await self._last(WireError("57P01", "The server is shutting down.", fatal=True))
        except ProtocolViolation as error:
            await self._last(WireError("08P01", str(error), fatal=True))
        except Exception as error:
            if isinstance(error, LoginFailed):
                state = state_of(error)
                self._front.watch(Event(front="postgresql", act="login", status=state, address=self.address))
            await self._last(error)
        finally:
            self._front.left(self)
            self._let_go()
            try:
                self._writer.close()
                async with asyncio.timeout(1):
                    await self._writer.wait_closed()
            except Exception:  # a client that reads nothing must not keep what waits for it
                with contextlib.suppress(Exception):
                    self._writer.transport.abort()

    def _let_go(self) -> None:
        """Forget what was kept here: at once, and not when somebody next looks for what nothing uses."""
        if not self._inside:
            return
        size = self._desk.kept.leave()
        del self._desk, self._extended  # which has a way back to here
        if size > _LARGE:
            with contextlib.suppress(RuntimeError):  # where the loop ends, too, and takes nothing more
                asyncio.get_running_loop().run_in_executor(None, given_back)

    async def _last(self, error: BaseException) -> None:
        """Say why it ends."""
        said = {**fields_of(error), "S": "FATAL", "V": "FATAL"}
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1):
                await self._send(replies.report(b"E", said))

    async def _send(self, data: bytes) -> None:
        self._write(data)
        await self._drained()

    def _write(self, data: bytes) -> None:
        with _stream():
            self._writer.write(data)

    async def _drained(self) -> None:
        """Wait for a client that reads slowly, but not for ever."""
        async with asyncio.timeout(self._front.message_seconds):
            with _stream():
                await self._writer.drain()

    # The beginning.

    async def _begin(self) -> None:
        startup = await self._first()
        if not self.secure and not self._front.plain:
            raise WireError("28000", "TLS is required: connect with sslmode=require.", fatal=True)
        if self._front.is_full(self):
            raise WireError("53300", "There are too many connections.", hint="Try again later.", fatal=True)
        user = startup.parameters.get("user", "")
        if not user:
            raise WireError("28000", "The connection names no user.", fatal=True)
        if startup.minor or startup.unknown:
            await self._send(replies.negotiate(startup.unknown))
        database = startup.parameters.get("database") or user
        binding = self._front.binding if self.secure else None
        self._login = await self._work(lambda: self._front.login_of(user, self.address, binding))
        await authenticate(self._login, binding, self._password, self._send, self._work)
        session = await self._work(lambda: self._front.session_of(self._login, database))
        self._who = alike(user)
        settings = Settings(user)
        for name, value in _given(startup.parameters):
            settings.connect(name, value)
        catalog = self._front.catalog_of(session, database)
        self._desk = Desk(
            session,
            catalog,
            settings,
            user=user,
            database=database,
            watch=self._front.watch,
            address=self.address,
            within=self._front.room_of(self._who),
        )
        self._extended = Extended(self._desk, self._work)
        self._inside = True
        told = settings.all()
        await self._send(
            b"".join(replies.parameter_status(shown, told[name]) for name, shown in REPORTED.items())
            + replies.backend_key(self.process, self.secret)
            + replies.ready("I")
        )

    async def _first(self) -> messages.Startup:
        for _ in range(3):  # GSS, then TLS, then the start itself
            length = messages.length_of_first(await self._read(4))
            first = messages.first_message(await self._read(length))
            if isinstance(first, messages.Startup):
                return first
            if isinstance(first, messages.Cancel):
                self._front.cancel(first.process, first.secret)
                raise _Ended
            if isinstance(first, messages.GSSRequest) or self._front.tls is None or self.secure:
                await self._send(b"N")
                continue
            # What came before the handshake was not encrypted, whoever sent it: it must not be read after it.
            if getattr(self._reader, "_buffer", b""):
                raise ProtocolViolation("There are bytes between the request for TLS and its handshake.")
            await self._send(b"S")
            with _stream():
                await self._writer.start_tls(self._front.tls)
            self.secure = True
        raise ProtocolViolation("The connection does not begin.")

    async def _password(self) -> messages.Password:
        kind, body = await self._received(messages.LARGEST_LOGIN)
        message = messages.message(kind, body)
        if not isinstance(message, messages.Password):
            raise ProtocolViolation("A message of the login is missing.")
        return message

    async def _received(self, most: int = messages.LARGEST) -> tuple[bytes, bytes]:
        header = await self._read(messages.HEADER)
        length = messages.length_of_message(header, most)
        async with asyncio.timeout(self._front.message_seconds):
            return header[:1], await self._read(length)

    async def _read(self, count: int) -> bytes:
        with _stream():
            return await self._reader.readexactly(count)

    # Message after message.

    async def _next(self) -> None:
        async with asyncio.timeout(self._front.idle_seconds):
            kind, body = await self._received()
        message = messages.message(kind, body)
        match message:
            case messages.Terminate():
                raise _Ended
            case messages.Sync():
                self._skipping = False
                self._extended.end()
                await self._send(replies.ready(self._desk.status))
            case messages.Flush():
                await self._send(b"")
            case messages.Query():
                self._skipping = False
                await self._query(message.text)
            case messages.Password():
                raise ProtocolViolation("The login is over.")
            case _ if not self._skipping:
                try:
                    async for part in self._extended.answer(message):
                        await self._send(part)  # whoever reads nothing waits, and does not fill the memory
                except _OVER:
                    raise
                except Exception as error:
                    await self._failed(error)
                    self._skipping = True

    async def _failed(self, error: BaseException) -> None:
        if isinstance(error, LoginFailed) or (isinstance(error, WireError) and error.fatal):
            raise error
        self._desk.failed()
        said = fields_of(error, steward=self._is_steward)
        await self._send(replies.report(b"E", said))

    async def _query(self, text: str) -> None:
        try:
            for statement in await self._work(lambda: statements(text)):
                await self._one(statement)
        except _OVER:
            raise
        except Exception as error:
            await self._failed(error)
        self._extended.end()
        await self._send(replies.ready(self._desk.status))

    async def _one(self, statement: Statement) -> None:
        if statement.kind == "empty":
            await self._send(replies.EMPTY_QUERY)
            return
        catalog = self._desk.asks_catalog(statement)
        outcome: Outcome = await self._work(lambda: self._desk.run(statement), catalog=catalog)
        self._desk.settle(outcome)
        for said in outcome.notices:
            self._write(notice(said))
        parts: Iterator[bytes] = iter(())
        if outcome.layout is not None:
            parts = copied(outcome.layout, outcome.fields or [], outcome.rows)
        elif outcome.fields is not None:
            formats = [0] * len(outcome.fields)
            self._write(replies.row_description(outcome.fields, formats))
            parts = encoded(outcome.fields, formats, outcome.rows)
        async for part in pieces(parts, outcome.rows):
            await self._send(part)
        await self._send(replies.command_complete(outcome.tag))

    async def _work(self, work: Callable[[], T], *, catalog: bool = False) -> T:
        """Run something beside the event loop, where it can be cancelled.

        Args:
            work: What is done.
            catalog: Whether the catalog answers it.
        """
        self._stop = threading.Event()  # what was let go before may still look at its own
        self._gone = asyncio.get_running_loop().create_future()
        self.busy = True
        try:
            return await self._front.work(
                work, self._stop, self._check, self._gone, who=self._who, catalog=catalog
            )
        except (ConnectionError, TimeoutError) as error:  # of what was asked for, not of this connection
            said = fields_of(error, steward=self._is_steward)
            raise WireError(said["C"], said["M"], detail=said["D"]) from None
        finally:
            self.busy = False

    @property
    def _is_steward(self) -> bool:
        """Whether a steward has logged in."""
        return self._inside and self._front.is_steward(self._login)

    def _check(self) -> None:
        """Whether the login still holds, before each statement."""
        if self._inside:
            self._front.check(self._login)


def _given(parameters: Any) -> list[tuple[str, str]]:
    """The settings that a first message has, also those in `options`, as in `-c sfumato.epsilon=0.1`."""
    left = {"user", "database", "options", "replication"}
    given = [(name, value) for name, value in parameters.items() if name not in left and name[:5] != "_pq_."]
    words = parameters.get("options", "").replace("-c", " ").replace("--", " ").split()
    return given + [(name, value) for name, sign, value in (word.partition("=") for word in words) if sign]
