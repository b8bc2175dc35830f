"""The client's side of SCRAM-SHA-256, written from RFC 5802 by itself, for tests of the server's side."""

from __future__ import annotations

import base64
import hashlib
import hmac


def b64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def keyed(key: bytes, message: str | bytes) -> bytes:
    return hmac.new(key, message.encode() if isinstance(message, str) else message, hashlib.sha256).digest()


class ScramClient:
    """A client with a password; `flag` is the first part of its header, `bound` what it binds to."""

    def __init__(
        self, password: str, nonce: str = "abc", *, user: str = "", flag: str = "n", bound: bytes = b""
    ):
        self.password, self.nonce, self.header, self.bound = password, nonce, f"{flag},,", bound
        self.bare = f"n={user},r={nonce}"

    def first(self) -> str:
        return self.header + self.bare

    def final(self, server_first: str, nonce: str | None = None) -> str:
        fields = dict(part.split("=", 1) for part in server_first.split(","))
        assert fields["r"].startswith(self.nonce)
        salted = hashlib.pbkdf2_hmac(
            "sha256", self.password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
        )
        unproved = f"c={b64(self.header.encode() + self.bound)},r={nonce or fields['r']}"
        message = f"{self.bare},{server_first},{unproved}"
        key = keyed(salted, "Client Key")
        mask = keyed(hashlib.sha256(key).digest(), message)
        self.expects = "v=" + b64(keyed(keyed(salted, "Server Key"), message))
        return f"{unproved},p={b64(bytes(a ^ b for a, b in zip(key, mask, strict=True)))}"
