"""`Handshakes`: a port whose connections are counted before they speak TLS, and must speak it in time."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from sfumato.server.http.connections import Connection

__all__ = ["Handshakes"]

SECONDS = 10.0  # for a handshake
_PAUSE = 1.0  # seconds after which a machine without free files is asked again


class Handshakes:
    """Takes connections, from now on, as a server of asyncio does, but for when they are counted.

    That one tells of nobody before the handshake is over, so that whoever never ends one could take all files
    that the process may open.

    Args:
        listening: The port.
        make: A connection.
        context: What speaks TLS.
    """

    def __init__(
        self, listening: socket.socket, make: Callable[[], Connection], context: ssl.SSLContext
    ) -> None:
        self._listening, self._make, self._context = listening, make, context
        self._beginning: set[asyncio.Task[None]] = set()
        listening.setblocking(False)
        self._taking = asyncio.get_running_loop().create_task(self._take())

    async def end(self) -> None:
        """Takes nobody any more; who has not ended a handshake is let go."""
        tasks = [self._taking, *self._beginning]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def _take(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                taken, address = await loop.sock_accept(self._listening)
            except ConnectionError:
                continue  # they were gone before they were taken
            except OSError:
                await asyncio.sleep(_PAUSE)  # no file is free
                continue
            connection = self._make()
            if connection.enter(str(address[0])):
                task = loop.create_task(self._begin(taken, connection))
                self._beginning.add(task)
                task.add_done_callback(self._beginning.discard)
            else:
                taken.close()

    async def _begin(self, taken: socket.socket, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: connection, taken, ssl=self._context, ssl_handshake_timeout=SECONDS
            )
        except (OSError, asyncio.CancelledError):  # errors of TLS are some of the system
            connection.leave()
            taken.close()
