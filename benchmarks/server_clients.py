"""Many clients of an HTTP server at once, from one light process: plain HTTP/1.1 over kept connections.

Run as a script: a line of JSON says what to ask, one comes back that says how it went. It has its own process
since it shares the cores with what it measures; what it takes of them is told, too.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from typing import Any, TypedDict

__all__ = ["Asked", "Clients", "Told"]


class Asked(TypedDict):
    """What the clients ask: client after client goes to the next port.

    Attributes:
        ports: Of the servers, on this machine.
        tokens: One for each client.
        requests: Of each the method, the path and a body in JSON. All clients share them: each is sent once,
            or all of them in turn.
        often: How many requests together; 0: each once.
    """

    ports: list[int]
    tokens: list[str]
    requests: list[tuple[str, str, str]]
    often: int


class Told(TypedDict):
    """How it went.

    Attributes:
        statuses: How often each was answered.
        receipts: Of the answers that were paid for now.
        free: How many answers were free.
        taken: Seconds of each answer with status 200, and of each other.
        wall: Seconds from the first request to the last answer.
        cpu: What the clients themselves took.
    """

    statuses: dict[str, int]
    receipts: list[int]
    free: int
    taken: list[float]
    refused: list[float]
    wall: float
    cpu: float


class Clients(asyncio.Protocol):
    """One connection: a request, its answer, the next one."""

    def __init__(
        self, headers: bytes, requests: Iterator[tuple[bytes, bytes]], told: Told, done: asyncio.Future[None]
    ) -> None:
        self._headers, self._requests, self._told, self._done = headers, requests, told, done
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        """Begins."""
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self._done.set_result(None)
            return
        self._begun = time.perf_counter()
        line, body = request
        self._transport.write(b"%s%s%d\r\n\r\n%s" % (line, self._headers, len(body), body))

    def data_received(self, data: bytes) -> None:
        """Takes a part of an answer."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        at = head.index(b"content-length:") + 15
        length = int(head[at:].split(b"\r", 1)[0])
        if len(self._buffer) < end + 4 + length:
            return
        self._answered(head[9:12].decode(), self._buffer[end + 4 :])
        self._buffer = b""
        self._ask()

    def _answered(self, status: str, body: bytes) -> None:
        told, taken = self._told, time.perf_counter() - self._begun
        told["statuses"][status] = told["statuses"].get(status, 0) + 1
        if status != "200":
            told["refused"].append(taken)
            return
        told["taken"].append(taken)
        if b'"free":true' in body:
            told["free"] += 1
        else:
            told["receipts"].append(json.loads(body)["receipt"])

    def connection_lost(self, _: Exception | None) -> None:
        """A server that closes fails the run."""
        if not self._done.done():
            self._done.set_exception(ConnectionError("the server closed a connection"))


async def ask(asked: Asked) -> Told:
    """Asks everything, all clients at once."""
    told: Told = {
        "statuses": {}, "receipts": [], "free": 0, "taken": [], "refused": [], "wall": 0.0, "cpu": 0.0,
    }  # fmt: skip
    requests = [
        (f"{method} {path} HTTP/1.1\r\n".encode(), body.encode()) for method, path, body in asked["requests"]
    ]
    shared = iter(requests)
    if asked["often"]:
        shared = (requests[number % len(requests)] for number in range(asked["often"]))
    loop, waiting = asyncio.get_running_loop(), list[asyncio.Future[None]]()
    wall, cpu = time.perf_counter(), time.process_time()
    for number, token in enumerate(asked["tokens"]):
        port = asked["ports"][number % len(asked["ports"])]
        headers = (
            f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()
        done: asyncio.Future[None] = loop.create_future()
        waiting.append(done)
        await loop.create_connection(
            lambda headers=headers, done=done: Clients(headers, shared, told, done), "127.0.0.1", port
        )
    await asyncio.gather(*waiting)
    told["wall"], told["cpu"] = time.perf_counter() - wall, time.process_time() - cpu
    return told


def main() -> None:
    """Answers one line for each."""
    import uvloop

    for line in sys.stdin:
        print(json.dumps(uvloop.run(ask(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
