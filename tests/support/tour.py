"""A server to be toured by somebody hostile: its accounts, what is on record, and everything that it said."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import httpx
import psycopg

from knocking import sent
from lives import SECRET, catalog, tokens_of
from sfumato.catalog import Catalog
from sfumato.ledger import Ledger

__all__ = ["SQL", "Tour"]

SQL = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
SPELLED = (bytes.hex, lambda key: key.decode("latin-1"), lambda key: base64.b64encode(key).decode())


class Tour:
    """A server, its accounts' tokens, what is on record, and everything that was heard."""

    def __init__(self, nursery, folder: Path) -> None:
        self.config = catalog(folder, epsilon=100)
        roles = {"ada": "analyst", "bob": "analyst", "mallory": "analyst", "eve": "auditor", "sam": "steward"}
        self.tokens = tokens_of(self.config, roles)
        self.life = nursery.life(self.config)
        self._client = httpx.Client(base_url=self.life.http, timeout=60, verify=False)
        self.heard: list[str] = []
        self.receipts = {
            name: self.ask("POST", "/api/release", name, json=self.body(sql)).json()["receipt"]
            for name, sql in (("ada", SQL), ("bob", "SELECT COUNT(*) AS n FROM visits"))
        }
        self.on_record = self.record()

    def body(self, sql: str = "SELECT AVG(amount) AS mean FROM visits", **more) -> dict:
        """A question that nobody has paid for."""
        return {"sql": sql, "epsilon": "0.5", **more}

    def ask(self, method: str, path: str, who: str | None = "mallory", **more) -> httpx.Response:
        headers = {} if who is None else {"Authorization": f"Bearer {self.tokens.get(who, who)}"}
        found = self._client.request(method, path, headers=headers | more.pop("headers", {}), **more)
        self.heard.append(f"{found.headers} {found.text}")
        return found

    def raw(self, text: str, **more) -> bytes:
        found = sent(self.life.port, text.encode("latin-1"), **more)
        self.heard.append(found.decode("latin-1"))
        return found

    def bearer(self, who: str = "mallory") -> str:
        return f"Authorization: Bearer {self.tokens[who]}\r\n"

    def paying(self, who: str = "mallory") -> str:
        """A request that would be charged, if it were taken for one."""
        body = json.dumps(self.body())
        return (
            f"POST /api/release HTTP/1.1\r\nHost: x\r\n{self.bearer(who)}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )

    def wire(self, user: str, password: str, port: int | None = None):
        where = f"postgresql://127.0.0.1:{port or self.life.pg_port}/sfumato"
        return psycopg.connect(where, user=user, password=password, autocommit=True)

    def record(self) -> list[int]:
        read = Catalog.read(self.config, environ={})
        with Ledger.open(read.ledger, state=read.state) as ledger:
            assert ledger.verify().ok
            return [each.number for each in ledger.entries()]

    def assert_unharmed(self) -> None:
        """Nothing was charged or decided, the server goes on, and nothing was told."""
        assert self.record() == self.on_record
        assert self.ask("GET", "/api/me").json() == {"name": "mallory", "role": "analyst"}
        assert self.ask("POST", "/api/release", "ada", json=self.body(SQL)).json()["free"]
        told = "\n".join([*self.heard, self.life.said])
        for secret in self.secrets():
            assert secret not in told

    def close(self) -> None:
        self._client.close()
        assert self.life.end() == 0
        assert not any(secret in self.life.said for secret in self.secrets())

    def secrets(self) -> list[str]:
        """A value of the data, where it is, and the keys in every usual spelling."""
        keys = [path.read_bytes().strip() for path in self.config.parent.rglob("*key")]
        assert len(keys) == 2
        spelled = [
            text
            for key in keys
            for text in (key.decode("latin-1"), key.hex(), base64.b64encode(key).decode())
        ]
        return [SECRET, "secretly", str(self.config.parent), "Traceback", *spelled]
