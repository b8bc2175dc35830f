"""A small house for tests of servers: a table, a budget, accounts with tokens that are easy to read."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pyarrow as pa
import uvicorn

from sfumato.errors import AccessDenied
from sfumato.ledger import Budget
from sfumato.schema import Enum, Float, PrivacyUnit, PrivateTable, Text
from sfumato.server.access import Account, Role
from sfumato.server.house import House
from sfumato.server.http.app import make_app
from sfumato.session import Session

__all__ = ["SECRET", "SQL", "TOKENS", "Client", "client_of", "house", "started"]

SECRET = "Zanzibar"
"""A value of the data that no message may hold."""
SQL = "SELECT country, COUNT(*) AS n, AVG(amount) AS spend FROM visits GROUP BY country"


TOKENS = {
    "token-of-ada": Account("ada", Role.ANALYST),
    "token-of-bob": Account("bob", Role.ANALYST),
    "token-of-eve": Account("eve", Role.AUDITOR),
    "token-of-sam": Account("sam", Role.STEWARD),
}


def known(token: str, _: str) -> Account:
    """Whose it is."""
    try:
        return TOKENS[token]
    except KeyError:
        raise AccessDenied("That token is nobody's.") from None


@contextmanager
def house(*, epsilon: Any = 10, rows: int = 200, ledger: Any = None) -> Iterator[House]:
    """A house of visits."""
    data = pa.table(
        {
            "user_id": list(range(rows)),
            "country": ["FR", "DE"] * (rows // 2),
            "city": [SECRET] * rows,
            "amount": [10.0] * rows,
        }
    )
    schema = {"country": Enum("FR", "DE"), "city": Text(), "amount": Float(0, 200)}
    table = PrivateTable("visits", source=data, unit=PrivacyUnit("user_id", max_groups=1), schema=schema)
    with Session(table, budget=Budget(epsilon, "1e-6"), ledger=ledger) as session:
        yield House(session)


class Client:
    """Requests to an application in this process, one after the other."""

    def __init__(self, app: Any) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def __call__(
        self, method: str, path: str, token: str | None = "token-of-ada", **more: Any
    ) -> httpx.Response:
        """One request."""

        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport, base_url="http://house") as client:
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                return await client.request(method, path, headers=headers | more.pop("headers", {}), **more)

        return asyncio.run(ask())


def client_of(given: House) -> Client:
    """A client of the HTTP front of a house."""
    return Client(make_app(given, known))


@contextmanager
def started(app: Any, **wishes: Any) -> Iterator[str]:
    """The address of a server that serves an application, in a thread of this process, over a real socket."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none", **wishes)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    scheme = "https" if wishes.get("ssl_certfile") else "http"
    try:
        yield f"{scheme}://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
