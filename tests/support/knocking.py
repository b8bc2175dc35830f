"""What a hostile analyst has: sockets that send any bytes, from any address of this machine."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Iterator

__all__ = ["PlainWire", "relayed", "sent", "statuses"]


def sent(port: int, data: bytes, *, source: str = "127.0.0.1", seconds: float = 10) -> bytes:
    """What comes back for some bytes: one answer, or all until the server closes."""
    with socket.create_connection(
        ("127.0.0.1", port), timeout=seconds, source_address=(source, 0)
    ) as open_one:
        heard = b""
        with contextlib.suppress(OSError):
            open_one.sendall(data)
        with contextlib.suppress(OSError):
            while part := open_one.recv(1 << 16):
                heard += part
                if _is_whole(heard):
                    break
        return heard


def _is_whole(heard: bytes) -> bool:
    """Whether there is one whole answer, and nothing says that the server closes."""
    head, end, body = heard.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    closes = b"connection: close" in head.lower()
    return bool(end and length and not closes and len(body) >= int(length[1]))


def statuses(heard: bytes) -> list[int]:
    """Of all answers in it."""
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3})", heard)]


@contextlib.contextmanager
def relayed(port: int, source: str = "127.0.0.1", heard: list[bytes] | None = None) -> Iterator[int]:
    """A port that passes connections on to another, from an address of this machine; what passes is kept."""
    heard, ends = [] if heard is None else heard, list[socket.socket]()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def passing(one: socket.socket, other: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := one.recv(1 << 16):
                    heard.append(data)
                    other.sendall(data)
            with contextlib.suppress(OSError):
                other.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    near, _ = listening.accept()
                    far = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
                    ends.extend((near, far))
                    for pair in ((near, far), (far, near)):
                        threads.append(threading.Thread(target=passing, args=pair))
                        threads[-1].start()

        threads = [threading.Thread(target=accept)]
        threads[0].start()
        try:
            yield listening.getsockname()[1]
        finally:
            for end in (listening, *ends):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(10)
            for end in ends:
                end.close()


class PlainWire:
    """PostgreSQL's protocol by hand: messages out, messages in."""

    def __init__(self, port: int, *, source: str = "127.0.0.1") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(source, 0))
        self._file = self._socket.makefile("rb")

    def begin(self, user: str, database: str = "sfumato") -> tuple[bytes, bytes]:
        """The first message, and what is said to it."""
        words = b"".join(word.encode() + b"\0" for word in ("user", user, "database", database)) + b"\0"
        self._socket.sendall(struct.pack(">II", len(words) + 8, 3 << 16) + words)
        return self.message()

    def sasl(self, first: str) -> tuple[bytes, bytes]:
        """The client's first message of SCRAM, and the server's."""
        data = first.encode()
        return self.ask(b"p", b"SCRAM-SHA-256\0" + struct.pack(">I", len(data)) + data)

    def ask(self, kind: bytes, body: bytes) -> tuple[bytes, bytes]:
        """One message, and the next that comes."""
        self._socket.sendall(kind + struct.pack(">I", len(body) + 4) + body)
        return self.message()

    def message(self) -> tuple[bytes, bytes]:
        """The next message; empty at the end."""
        head = self._file.read(5)
        return (
            (head[:1], self._file.read(struct.unpack(">I", head[1:])[0] - 4))
            if len(head) == 5
            else (b"", b"")
        )

    def __enter__(self) -> PlainWire:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()
