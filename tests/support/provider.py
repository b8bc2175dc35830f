"""A small OIDC provider: an HTTP server with discovery and keys, and tokens that it signs."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from sfumato.server.access import issuers

__all__ = ["Provider", "provider"]

AUDIENCE = "sfumato"


class Provider:
    """Its address, its keys by name, and what it was asked for."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {
            "rsa": rsa.generate_private_key(65537, 2048),
            "ec": ec.generate_private_key(ec.SECP256R1()),
        }
        self.asked: list[str] = []
        self.issuer = ""
        self.claims_to_be: str | None = None
        self.more_keys: list[Any] = []
        self.keys_at: Any = ""
        self.goes_on = threading.Event()
        """Cleared: it answers each request with a byte now and then, and never to the end."""
        self.goes_on.set()

    def documents(self) -> dict[str, Any]:
        """What it publishes."""
        listed = []
        for name, key in self.keys.items():
            algorithm = jwt.algorithms.RSAAlgorithm if name.startswith("rsa") else jwt.algorithms.ECAlgorithm
            public = algorithm.to_jwk(key.public_key(), as_dict=True)
            listed.append({**public, "kid": name, "use": "sig"})
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.claims_to_be or self.issuer,
                "jwks_uri": self.keys_at if self.keys_at != "" else f"{self.issuer}/keys",
            },
            "/keys": {"keys": [*listed, *self.more_keys]},
        }

    def token(self, *, key: str = "rsa", headers: dict[str, Any] | None = None, **changes: Any) -> str:
        """A token for ada; a claim that is None is left out."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 300, **changes}
        claims = {name: value for name, value in claims.items() if value is not None}
        algorithm = "RS256" if key.startswith("rsa") else "ES256"
        return jwt.encode(
            claims, self.keys[key], algorithm=algorithm, headers={"kid": key, **(headers or {})}
        )


@contextlib.contextmanager
def provider() -> Iterator[Provider]:
    """One that is there while the block runs; how busy this machine is does not decide who gets in."""
    made = Provider()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            found = made.documents().get(self.path)
            content = json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Connection", "close")
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # they may not wait for the end
                while not made.goes_on.wait(0.02):
                    self.wfile.write(b" ")
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        with (
            mock.patch.object(issuers, "_PATIENCE", 60.0),
            mock.patch.object(issuers, "_LONGEST_FETCH", 60.0),
        ):
            yield made
    finally:
        made.goes_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
