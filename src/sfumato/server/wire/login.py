"""SCRAM as PostgreSQL's protocol wraps it: which ways there are, and two messages of the client."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from typing import Protocol

from sfumato.server.access.scram import mechanisms
from sfumato.server.wire.messages import Password, ProtocolViolation
from sfumato.server.wire.replies import authentication
from sfumato.server.wire.sqlstates import WireError

__all__ = ["Login", "authenticate"]


class Login(Protocol):
    """One login: `server.access.Login`, or an `Exchange` by itself."""

    def first(self, client_first: str) -> str:
        """The server's first message; raises `LoginFailed`."""

    def final(self, client_final: str) -> str:
        """The server's last message; raises `LoginFailed`."""


Receive = Callable[[], Awaitable[Password]]
Send = Callable[[bytes], Awaitable[None]]
Work = Callable[[Callable[[], str]], Awaitable[str]]


async def authenticate(login: Login, binding: bytes | None, receive: Receive, send: Send, work: Work) -> None:
    """Let the client prove its password.

    Args:
        login: What the proof is held against.
        binding: The hash of this server's certificate, where the connection has TLS.
        receive: Gives the client's next message of a login.
        send: Sends bytes to the client.
        work: Runs a function beside the event loop.

    Raises:
        LoginFailed: if it does not.
        ProtocolViolation: if it sends something else.
        WireError: if it wants another way to log in.
    """
    offered = mechanisms(binding)
    await send(authentication(10, b"".join(name.encode() + b"\0" for name in offered) + b"\0"))
    name, _, rest = (await receive()).body.partition(b"\0")
    if name.decode("ascii", "replace") not in offered:
        raise WireError("28000", "Log in by SCRAM-SHA-256; no other way is offered.", fatal=True)
    if len(rest) < 4 or struct.unpack(">i", rest[:4])[0] != len(rest) - 4:
        raise ProtocolViolation("The first message of a login has an invalid length.")
    first = _text(rest[4:])
    plus = first.startswith("p=")
    if plus != name.endswith(b"-PLUS"):
        raise ProtocolViolation("The login binds otherwise than the way that was chosen.")
    answer = await work(lambda: login.first(first))
    await send(authentication(11, answer.encode()))
    final = _text((await receive()).body)
    answer = await work(lambda: login.final(final))
    await send(authentication(12, answer.encode()) + authentication(0))


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise ProtocolViolation("A message of the login is not UTF-8.") from None
