"""PostgreSQL's protocol, version 3: what clients send, from bytes to messages. No I/O.

Whatever bytes come, a parser gives a message or raises `ProtocolViolation`: nothing else leaves it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TypeAlias

from sfumato._dataclasses import dataclass

__all__ = [
    "HEADER",
    "LARGEST",
    "LARGEST_LOGIN",
    "LARGEST_STARTUP",
    "Bind",
    "Cancel",
    "Close",
    "Describe",
    "Execute",
    "First",
    "Flush",
    "GSSRequest",
    "Message",
    "Parse",
    "Password",
    "ProtocolViolation",
    "Query",
    "SSLRequest",
    "Startup",
    "Sync",
    "Terminate",
    "first_message",
    "length_of_first",
    "length_of_message",
    "message",
]

HEADER = 5
"""How many bytes a message begins with: its kind and its length."""
LARGEST_STARTUP, LARGEST_LOGIN, LARGEST = 10_000, 16_384, 1_048_576
"""The most bytes of the first message, of one before the login, and of one after it."""

_SSL, _GSS, _CANCEL, _VERSION = 80877103, 80877104, 80877102, 3
_MOST_OPTIONS = 100


class ProtocolViolation(Exception):
    """The bytes are no message that may come here; the connection ends."""


@dataclass(frozen=True, slots=True)
class SSLRequest:
    """Whether to go on in TLS."""


@dataclass(frozen=True, slots=True)
class GSSRequest:
    """Whether to go on in GSSAPI's encryption."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop what the connection with this key is doing."""

    process: int
    secret: bytes


@dataclass(frozen=True, slots=True)
class Startup:
    """Who connects, to what; `minor` is the version's, `unknown` the options of the protocol that we lack."""

    parameters: Mapping[str, str]
    minor: int
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A text of statements, to be run at once."""

    text: str


@dataclass(frozen=True, slots=True)
class Parse:
    """A statement to be prepared, with the types of its parameters where the client says them (else 0)."""

    name: str
    text: str
    oids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """A prepared statement with values, as a portal."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """What a statement (S) or a portal (P) takes and gives."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Rows of a portal, at most so many; 0: all."""

    portal: str
    most: int


@dataclass(frozen=True, slots=True)
class Close:
    """Forget a statement (S) or a portal (P)."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Sync:
    """The end of what belongs together."""


@dataclass(frozen=True, slots=True)
class Flush:
    """Send what there is."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """Good-bye."""


@dataclass(frozen=True, slots=True)
class Password:
    """A step of the login."""

    body: bytes


First: TypeAlias = SSLRequest | GSSRequest | Cancel | Startup
Message: TypeAlias = Query | Parse | Bind | Describe | Execute | Close | Sync | Flush | Terminate | Password


class _Reader:
    """The parts of one message, from its first byte to its last."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def take(self, count: int) -> bytes:
        end = self._at + count
        if count < 0 or end > len(self._body):
            raise ProtocolViolation("A message ends too early.")
        taken = self._body[self._at : end]
        self._at = end
        return taken

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("A text in a message has no end.")
        taken = self.take(end - self._at)
        self._at += 1
        try:
            return taken.decode()
        except UnicodeDecodeError:
            raise ProtocolViolation("A text in a message is not UTF-8.") from None

    def byte(self) -> int:
        return self.take(1)[0]

    def short(self) -> int:
        return int(struct.unpack(">h", self.take(2))[0])

    def long(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def shorts(self) -> tuple[int, ...]:
        count = self.short() & 0xFFFF
        return struct.unpack(f">{count}h", self.take(2 * count))

    def longs(self) -> tuple[int, ...]:
        count = self.short() & 0xFFFF
        return struct.unpack(f">{count}I", self.take(4 * count))

    def value(self) -> bytes | None:
        length = self.long()
        return None if length == -1 else self.take(length)

    def values(self) -> tuple[bytes | None, ...]:
        return tuple(self.value() for _ in range(self.short() & 0xFFFF))

    def rest(self) -> bytes:
        return self.take(len(self._body) - self._at)

    def finish(self) -> None:
        if self._at != len(self._body):
            raise ProtocolViolation("A message is longer than what it holds.")


def length_of_first(header: bytes) -> int:
    """How many bytes of the first message follow its length.

    Raises:
        ProtocolViolation: if there are too few or too many.
    """
    (length,) = struct.unpack(">I", header)
    if not 8 <= length <= LARGEST_STARTUP:
        raise ProtocolViolation("The first message has an invalid length.")
    return int(length) - 4


def length_of_message(header: bytes, most: int = LARGEST) -> int:
    """How many bytes of a message follow its kind and length.

    Raises:
        ProtocolViolation: if there are too few or too many, or there is no such kind.
    """
    kind, length = struct.unpack(">cI", header)
    if kind not in _KINDS:
        raise ProtocolViolation("There is no message of this kind.")
    if not 4 <= length <= most:
        raise ProtocolViolation(f"A message has an invalid length; at most {most:,} bytes are read.")
    return int(length) - 4


def first_message(body: bytes) -> First:
    """What the first message of a connection asks for; `body` is without its length.

    Raises:
        ProtocolViolation: if it is nothing that we know.
    """
    reader = _Reader(body)
    code = reader.long()
    if code in (_SSL, _GSS):
        reader.finish()
        return SSLRequest() if code == _SSL else GSSRequest()
    if code == _CANCEL:
        process, secret = reader.long(), reader.rest()
        if not 4 <= len(secret) <= 256:
            raise ProtocolViolation("A request to cancel has a key of the wrong length.")
        return Cancel(process, secret)
    if code >> 16 != _VERSION:
        raise ProtocolViolation("Only version 3 of the protocol is spoken here.")
    parameters: dict[str, str] = {}
    while name := reader.text():
        if len(parameters) >= _MOST_OPTIONS:
            raise ProtocolViolation("The first message has too many parameters.")
        parameters[name] = reader.text()
    reader.finish()
    unknown = tuple(name for name in parameters if name.startswith("_pq_."))
    return Startup(parameters, code & 0xFFFF, unknown)


def message(kind: bytes, body: bytes) -> Message:
    """What a later message says.

    Raises:
        ProtocolViolation: if it says nothing that we know.
    """
    reader = _Reader(body)
    if kind not in _KINDS:
        raise ProtocolViolation("There is no message of this kind.")
    made = _KINDS[kind](reader)
    reader.finish()
    return made


def _bind(reader: _Reader) -> Bind:
    made = Bind(reader.text(), reader.text(), reader.shorts(), reader.values(), reader.shorts())
    for formats, count in ((made.formats, len(made.values)), (made.results, None)):
        if any(code not in (0, 1) for code in formats):
            raise ProtocolViolation("A format is neither text nor binary.")
        if count is not None and len(formats) not in (0, 1, count):
            raise ProtocolViolation("There must be one format, or one for each value.")
    return made


def _parse(reader: _Reader) -> Parse:
    return Parse(reader.text(), reader.text(), reader.longs())


def _of(reader: _Reader) -> tuple[str, str]:
    kind = reader.byte()
    if kind not in b"SP":
        raise ProtocolViolation("Only statements and portals can be described and closed.")
    return chr(kind), reader.text()


def _execute(reader: _Reader) -> Execute:
    return Execute(reader.text(), max(0, reader.long()))


_KINDS: Mapping[bytes, Callable[[_Reader], Message]] = {
    b"Q": lambda reader: Query(reader.text()),
    b"P": _parse,
    b"B": _bind,
    b"D": lambda reader: Describe(*_of(reader)),
    b"E": _execute,
    b"C": lambda reader: Close(*_of(reader)),
    b"S": lambda _: Sync(),
    b"H": lambda _: Flush(),
    b"X": lambda _: Terminate(),
    b"p": lambda reader: Password(reader.rest()),
}
