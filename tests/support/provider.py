"""A small OIDC provider: an HTTP server with discovery and keys, and tokens that it signs."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

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
        self.more_keys: list[dict[str, Any]] = []

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
                "jwks_uri": f"{self.issuer}/keys",
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
    """One that is there while the block runs."""
    made = Provider()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            found = made.documents().get(self.path)
            content = json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
