"""Runs the fronts of a house until somebody ends it: every port is bound before anything is served."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Any, TypeAlias

import uvicorn
from cryptography import x509

from sfumato.errors import InvalidParameter
from sfumato.server.crowds import Crowd
from sfumato.server.http.connections import Connection, connections
from sfumato.server.http.guard import App
from sfumato.server.http.handshakes import Handshakes
from sfumato.server.open_files import allow_many

__all__ = ["Server", "bound", "serve", "tls_context"]

Beside: TypeAlias = AbstractAsyncContextManager[object]
_BACKLOG, _IDLE = 512, 30
_MOST_CONNECTIONS = 1_000  # which are served; as many more are told that they are too many


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    Raises:
        InvalidParameter: if the port is taken, or the address is not one of this machine.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family)
    except (OSError, UnicodeError):
        raise InvalidParameter(f"--host {host[:60]} is no address of this machine.") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise InvalidParameter(f"Port {port} is in use: choose another, or end what has it.") from None
        if error.errno == errno.EACCES:
            raise InvalidParameter(f"Port {port} is not for this account; choose one above 1023.") from None
        raise InvalidParameter(f"--host {host[:60]} is no address of this machine.") from None
    return made


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """What speaks TLS with this certificate.

    Raises:
        InvalidParameter: if the files are none of a certificate and its key, or it has expired.
    """
    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError):
        raise InvalidParameter(
            "The certificate and its key cannot be used: give two PEM files that belong together."
        ) from None
    if found.not_valid_after_utc < datetime.now(UTC):
        raise InvalidParameter(
            f"The certificate expired on {found.not_valid_after_utc:%Y-%m-%d}; have it renewed."
        )
    return context


def serve(
    app: App,
    listening: socket.socket,
    *,
    tls: tuple[Path, Path] | None = None,
    beside: Beside | None = None,
    per_address: int | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until interrupted or told to end; requests that have begun are ended first.

    Args:
        app: What answers over HTTP.
        listening: Where.
        tls: A certificate and its key.
        beside: Another front, which runs as long.
        per_address: How many connections an address may have; None: as many as it likes.
        ready: Called once all requests are taken.
    """
    server = Server(app, tls=tls, per_address=per_address, ready=ready)
    allow_many()

    async def run() -> None:
        async with beside or nullcontext():
            await server.serve_until_told(listening)

    with closing(listening), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run())


class Server(uvicorn.Server):
    """A server that says when it takes requests, and ends on a signal without passing it on.

    What is open around it, such as a ledger, is then closed as at any other end.

    Args:
        app: What answers over HTTP.
        tls: A certificate and its key.
        per_address: How many connections an address may have; None: as many as it likes.
        ready: Called once all requests are taken.
    """

    def __init__(
        self,
        app: App,
        *,
        tls: tuple[Path, Path] | None = None,
        per_address: int | None = None,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            lifespan="off",
            http=connections(Crowd(per_address, 2 * _MOST_CONNECTIONS)),
            ws="none",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=_IDLE,
            ssl_certfile=None if tls is None else str(tls[0]),
            ssl_keyfile=None if tls is None else str(tls[1]),
        )
        super().__init__(config)
        self.servers: list[asyncio.base_events.Server] = []
        self._tell, self._handshakes = ready, list[Handshakes]()

    async def serve_until_told(self, listening: socket.socket) -> None:
        """Serves at a socket until a signal comes."""
        loop = asyncio.get_running_loop()
        for signal in (SIGINT, SIGTERM):
            loop.add_signal_handler(signal, self._end)
        try:
            await self.serve(sockets=[listening])
        finally:
            for signal in (SIGINT, SIGTERM):
                loop.remove_signal_handler(signal)

    def _end(self) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins, and tells it: as uvicorn does, but for who has not ended a handshake of TLS."""
        config, loop = self.config, asyncio.get_running_loop()

        def connection() -> Connection:
            make: Any = config.http_protocol_class
            made: Connection = make(config=config, server_state=self.server_state, app_state={})
            return made

        for each in sockets or []:
            if config.ssl is None:
                self.servers.append(await loop.create_server(connection, sock=each, backlog=config.backlog))
            else:
                self._handshakes.append(Handshakes(each, connection, config.ssl))
        self.started = True
        self._tell()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends as uvicorn does."""
        for each in self._handshakes:
            await each.end()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are taken already."""
        yield


def _loop_factory() -> Callable[[], Any] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop
