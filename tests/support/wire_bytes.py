"""The messages of the wire byte by byte, and a talk with a front in memory: for what no driver sends."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from sfumato.server.wire import Front
from sfumato.server.wire.connection import Connection

_ANSWERS = set(b"RSKZTtDCEN123nsIvHdc")


class Anyone:
    """A login that takes every proof."""

    def first(self, client_first: str) -> str:
        return "r=x,s=eA==,i=4096"

    def final(self, client_final: str) -> str:
        return "v=eA=="


class Writer:
    """Keeps what is written, in place of a socket."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.waiting = self.most = 0  # bytes that nobody waited for yet

    def write(self, data: bytes) -> None:
        self.sent += data
        self.waiting += len(data)
        self.most = max(self.most, self.waiting)

    async def drain(self) -> None:
        self.waiting = 0

    def close(self) -> None: ...

    async def wait_closed(self) -> None: ...

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1)


def message(kind: bytes, body: bytes) -> bytes:
    """A message of a kind."""
    return kind + struct.pack(">I", len(body) + 4) + body


def text(value: str) -> bytes:
    """A text in a message."""
    return value.encode() + b"\0"


def started() -> bytes:
    """The bytes of a connection that has logged in."""
    body = struct.pack(">I", 3 << 16) + text("user") + text("ada") + text("database") + text("demo") + b"\0"
    first = b"n,,n=,r=abc"
    sasl = text("SCRAM-SHA-256") + struct.pack(">I", len(first)) + first
    return struct.pack(">I", len(body) + 4) + body + message(b"p", sasl) + message(b"p", b"c=biws,r=x,p=eA==")


def parsed(statement: str, *formats: int) -> bytes:
    """A statement that is prepared and bound, its columns wanted in these formats."""
    wanted = struct.pack(f">hhh{len(formats)}h", 0, 0, len(formats), *formats)
    return message(b"P", text("") + text(statement) + b"\0\0") + message(b"B", text("") * 2 + wanted)


def executed(most: int = 0) -> bytes:
    """What was bound is run; at most so many rows of it are wanted now."""
    return message(b"E", text("") + struct.pack(">i", most))


def answers(sent: bytes) -> list[tuple[int, bytes]]:
    """What was sent, cut into messages; fails if it is no sequence of them."""
    found, at = [], 0
    while at < len(sent):
        kind, length = sent[at], struct.unpack(">I", sent[at + 1 : at + 5])[0]
        assert kind in _ANSWERS
        found.append((kind, sent[at + 5 : at + 1 + length]))
        at += 1 + length
    assert at == len(sent)
    return found


def states(sent: bytes) -> set[str]:
    """The codes of the errors among it."""
    parts = [part for kind, body in answers(sent) if kind == ord("E") for part in body.split(b"\0")]
    return {part[1:].decode() for part in parts if part[:1] == b"C"}


async def talk(front: Front, data: bytes, writer: Writer | None = None) -> bytes:
    """What a front says to these bytes."""
    reader, writer = asyncio.StreamReader(), writer or Writer()
    reader.feed_data(data)
    reader.feed_eof()
    connection = Connection(front, reader, writer)  # type: ignore[arg-type]
    front._connections[connection] = asyncio.current_task()  # type: ignore[assignment]
    await asyncio.wait_for(connection.serve(), 20)
    return bytes(writer.sent)
