"""SCRAM-SHA-256, the server's side: a login that proves a password without sending it (RFC 5802, RFC 7677).

What the server keeps cannot be used to log in. With channel binding (SCRAM-SHA-256-PLUS), what the client
proves holds for this server's certificate alone, so that nobody in between can pass it on.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import field
from typing import NoReturn

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, LoginFailed
from sfumato.random import salt as fresh

__all__ = ["ITERATIONS", "Exchange", "ScramKeys", "ScramVerifier", "end_point", "mechanisms", "refused"]

ITERATIONS = 4096  # the least of RFC 7677; more would add nothing to a password of 256 random bits
_LONGEST = 4096  # characters of a message, and more than any client writes
_HASH = 32  # bytes of SHA-256
_NONCE = 18  # bytes, which base64 writes without padding
_BINDING = "tls-server-end-point"
_FIRST = re.compile(
    rf"(?P<header>(?P<flag>n|y|p={_BINDING}),,)"  # no other name to act in (authzid)
    r"(?P<bare>n=(?:[^,=\x00]|=2C|=3D)*,r=(?P<nonce>[!-+\--~]+)(?:,[a-zA-Z]=[^,\x00]+)*)"
)
_FINAL = re.compile(
    r"(?P<unproved>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+)(?:,[a-zA-Z]=[^,\x00]+)*)"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)"
)


def refused() -> LoginFailed:
    """The one refusal of a login, whatever was wrong with it."""
    return LoginFailed(
        "This login is not valid: check the name and the token, which may have expired or been revoked; the "
        "steward issues a new one with sfumato account token."
    )


@dataclass(frozen=True, slots=True)
class ScramKeys:
    """What is kept of one password.

    Attributes:
        label: Which password it is, in public words, such as the id of a token.
        stored: The hash of the client's key: a proof is held against it.
        server: What the server proves with that it knows the password's keys.
    """

    label: str
    stored: bytes = field(repr=False)
    server: bytes = field(repr=False)

    @classmethod
    def of(cls, password: str, salt: bytes, iterations: int = ITERATIONS, *, label: str) -> ScramKeys:
        """The keys of a password.

        Raises:
            InvalidParameter: if it is not visible ASCII, which needs no SASLprep.
        """
        if not password.isascii() or not password.isprintable() or not password:
            raise InvalidParameter("A password for SCRAM must be visible ASCII characters.")
        salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, iterations)
        client = _hmac(salted, b"Client Key")
        return cls(label, hashlib.sha256(client).digest(), _hmac(salted, b"Server Key"))

    def __reduce__(self) -> NoReturn:
        raise TypeError("The keys of a password are not pickled.")


@dataclass(frozen=True, slots=True)
class ScramVerifier:
    """What a login by one name is held against: one or several passwords with one salt.

    The salt is sent before the password is proved, so all passwords of a name share it. Any of them opens.
    """

    salt: bytes
    iterations: int
    keys: tuple[ScramKeys, ...]

    @classmethod
    def of(cls, password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS) -> ScramVerifier:
        """The verifier of one password, whose label is `password`."""
        grains = fresh(16) if salt is None else salt
        return cls(grains, iterations, (ScramKeys.of(password, grains, iterations, label="password"),))


def mechanisms(binding: bytes | None) -> tuple[str, ...]:
    """What a server offers, best first: with channel binding only where the certificate has a hash."""
    return ("SCRAM-SHA-256",) if binding is None else ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256")


def end_point(certificate: bytes) -> bytes | None:
    """The binding of a certificate (DER) as RFC 5929 hashes it; None where its signature names no hash."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        algorithm = x509.load_der_x509_certificate(certificate).signature_hash_algorithm
    except UnsupportedAlgorithm:
        return None
    if algorithm is None:
        return None
    name = "sha256" if algorithm.name in ("md5", "sha1") else algorithm.name
    return hashlib.new(name, certificate).digest()


class Exchange:
    """One login: two messages of the client, each answered once.

    Any failure is the same `LoginFailed`, and ends the exchange. Every password of the verifier is tried,
    whichever fits, so that the work does not tell which it was or how many are real.
    """

    __slots__ = ("_binding", "_expected", "_label", "_messages", "_nonce", "_state", "_verifier")

    def __init__(
        self, verifier: ScramVerifier, nonce: str | None = None, binding: bytes | None = None
    ) -> None:
        """Makes one.

        Args:
            verifier: What the login is held against.
            nonce: The server's part of the nonce, for tests; drawn afresh unless given.
            binding: The hash of the server's certificate (`end_point`), where the connection has TLS: then a
                client may bind to it, and one that was told that it cannot (`y`) is refused.
        """
        self._verifier = verifier
        self._nonce = base64.b64encode(fresh(_NONCE)).decode("ascii") if nonce is None else nonce
        self._binding = binding
        self._state = "new"
        self._label: str | None = None
        self._messages = ""
        self._expected = ""

    @property
    def label(self) -> str:
        """Which of the verifier's passwords was proved.

        Raises:
            LoginFailed: if none was.
        """
        if self._label is None:
            raise refused()
        return self._label

    @property
    def is_of_somebody(self) -> bool:
        """Whether there is a password to prove; for the server alone to know."""
        return any(keys.label for keys in self._verifier.keys)

    def first(self, client_first: str) -> str:
        """The server's first message: nonce, salt and iterations.

        Raises:
            LoginFailed: if the client's message is malformed, or binds otherwise than this server can.
        """
        self._enter("new", "first")
        message = _matched(_FIRST, client_first)
        flag = message["flag"]
        if (flag == "y" and self._binding is not None) or (flag[0] == "p" and self._binding is None):
            raise refused()
        bound = self._binding if flag[0] == "p" and self._binding is not None else b""
        self._expected = base64.b64encode(message["header"].encode("ascii") + bound).decode("ascii")
        self._nonce = message["nonce"] + self._nonce
        salt = base64.b64encode(self._verifier.salt).decode("ascii")
        answer = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._messages = f"{message['bare']},{answer}"
        self._state = "answered"
        return answer

    def final(self, client_final: str) -> str:
        """The server's last message, which proves the server in turn.

        Raises:
            LoginFailed: if the client's message is malformed or proves none of the passwords.
        """
        self._enter("answered", "final")
        message = _matched(_FINAL, client_final)
        signed = f"{self._messages},{message['unproved']}".encode("utf-8", "surrogatepass")
        keys = self._proved(signed, _decoded(message["proof"]))
        same = hmac.compare_digest(message["nonce"], self._nonce)
        if not hmac.compare_digest(message["binding"], self._expected) or not same or keys is None:
            raise refused()
        self._label = keys.label
        self._state = "done"
        return "v=" + base64.b64encode(_hmac(keys.server, signed)).decode("ascii")

    def _enter(self, wanted: str, method: str) -> None:
        """Go on from the right state only; whatever fails from here on has ended the exchange."""
        state, self._state = self._state, "ended"
        if state != wanted:
            raise InvalidParameter(f"{method} comes once, in its turn: begin a new exchange for each login.")

    def _proved(self, signed: bytes, proof: bytes) -> ScramKeys | None:
        fitting = None
        for keys in self._verifier.keys:
            mask = _hmac(keys.stored, signed)
            client = bytes(a ^ b for a, b in zip(proof, mask, strict=True))
            if hmac.compare_digest(hashlib.sha256(client).digest(), keys.stored):
                fitting = keys
        return fitting

    def __reduce__(self) -> NoReturn:
        raise TypeError("A login is not pickled.")


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _matched(pattern: re.Pattern[str], message: str) -> re.Match[str]:
    found = pattern.fullmatch(message) if len(message) <= _LONGEST else None
    if found is None:
        raise refused()
    return found


def _decoded(proof: str) -> bytes:
    """A proof in bytes; what is none has the right length and fits nothing."""
    try:
        value = base64.b64decode(proof, validate=True)
    except binascii.Error:
        value = b""
    whole = len(value) == _HASH and base64.b64encode(value) == proof.encode("ascii")
    return value if whole else bytes(_HASH)
