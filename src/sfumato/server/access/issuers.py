"""`Issuer`: logins by signed tokens of an OIDC provider, beside our own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from sfumato.errors import InvalidParameter
from sfumato.server.access.scram import refused

__all__ = ["Issuer", "is_signed", "lists_keys_at"]

_LOG = logging.getLogger("sfumato.server")
_LONGEST, _LARGEST = 16_384, 1 << 20  # characters of a token; bytes of a document of the issuer
_LEEWAY = 10  # seconds by which clocks may differ
_AGAIN = 60.0  # seconds between two fetches of keys
_FRESH, _STALE = 3600.0, 86_400.0  # until keys are renewed; until they are not believed any more
_PATIENCE, _LONGEST_FETCH = 3.0, 15.0  # seconds for which a fetch is waited for; that it may take
_LOCAL = ("localhost", "127.0.0.1", "::1")


def is_signed(text: str) -> bool:
    """Whether it has the form of a signed token; ours have none of its dots."""
    return text.count(".") == 2


class Issuer:
    """Tokens (JWT) that a provider signed for this server.

    Privacy:
        Claim: a name is given only for a token that one of the issuer's own keys signed by RS256 or ES256,
        as the key's kind says; that names this issuer and this server, and whose time has come and is not
        over. The token's header chooses among the issuer's keys and nothing else: not the algorithm, no key
        of its own, no address to fetch one from. Which account has the name, and what it may do, is ours.

    Args:
        issuer: Its address, as in the claim `iss`.
        audience: This server, as in the claim `aud`.
        claim: Which claim is the name of an account. `sub` is an issuer's own, and never another's later;
            for others ask whether users can choose them.
        clock: The time of day, in seconds since 1970.
        ticks: A time that never goes back.

    Raises:
        InvalidParameter: if the address is none of https.
    """

    def __init__(
        self,
        issuer: str,
        audience: str,
        *,
        claim: str = "sub",
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        if not _is_safe(issuer) or not audience or not claim:
            raise InvalidParameter(
                "An issuer needs an https address and the audience that its tokens have for this server."
            )
        self._issuer, self._audience, self._claim = issuer, audience, claim
        self._clock, self._ticks = clock, ticks
        self._keys: dict[str, Any] = {}
        self._fetched, self._tried = float("-inf"), float("-inf")
        self._answers = True
        self._renewal, self._renewing = _Renewal(over=True), threading.Lock()

    def name_of(self, text: str) -> str:
        """The name in a token.

        Raises:
            LoginFailed: if it is not valid, whatever is wrong with it.
        """
        try:
            return self._checked(text)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, RecursionError):
            raise refused() from None

    def _checked(self, text: str) -> str:
        if len(text) > _LONGEST:
            raise ValueError
        head = jwt.get_unverified_header(text)
        if "crit" in head:
            raise ValueError
        key = self._key(head["kid"])
        algorithm = "RS256" if isinstance(key, rsa.RSAPublicKey) else "ES256"
        claims = jwt.decode(
            text,
            key,
            algorithms=[algorithm],
            audience=self._audience,
            issuer=self._issuer,
            leeway=_LEEWAY,
            options={  # times are checked by our clock
                "require": ["exp", "iss", "aud", "sub"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
        self._check_time(claims)
        name = claims[self._claim]
        if not isinstance(name, str) or not name:
            raise ValueError
        if self._claim == "email" and claims.get("email_verified") is not True:
            raise ValueError
        return name

    def _check_time(self, claims: dict[str, Any]) -> None:
        """By our clock, which tests may set."""
        now = self._clock()
        ends, begins = float(claims["exp"]), float(claims.get("nbf", 0))
        if not (begins - _LEEWAY <= now < ends + _LEEWAY):
            raise ValueError

    def _key(self, name: Any) -> Any:
        """The issuer's key of a name; the keys are fetched if it is not known, or was fetched long ago.

        One that is known is served while others are fetched: only the first fetch after a good one is waited
        for, so that a provider which hangs holds up nobody for long, and one that answers is heard at once.
        """
        if not isinstance(name, str):
            raise TypeError
        age, serves = self._ticks() - self._fetched, name in self._keys
        if not serves or age > _FRESH:
            waits = self._answers or not serves or age > _STALE
            self.renew()
            if waits:
                self._renewal.wait()
        if self._ticks() - self._fetched > _STALE:
            raise KeyError
        return self._keys[name]

    def renew(self) -> None:
        """Has the keys fetched by a thread of its own, but rarely: strangers can make up names of keys."""
        with self._renewing:
            if self._ticks() - self._tried < _AGAIN or not self._renewal.over:
                return
            renewal = _Renewal()
            threading.Thread(target=self._fetch, args=(renewal,), name="keys", daemon=True).start()
            self._tried, self._renewal = self._ticks(), renewal

    def _fetch(self, renewal: _Renewal) -> None:
        self._answers = False  # until it does
        try:
            self._keys, self._fetched = asyncio.run(_keys_of(self._issuer)), self._ticks()
            self._answers = True
        except Exception as error:  # whatever a provider sends: the keys that are known stay
            _LOG.error("the keys of the issuer cannot be fetched: %s", type(error).__name__)
        finally:
            renewal.end()


class _Renewal:
    """One fetch of keys, which whoever needs them waits for, up to the same moment."""

    def __init__(self, *, over: bool = False) -> None:
        self._until, self._over = time.monotonic() + _PATIENCE, threading.Event()
        if over:
            self._over.set()

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def wait(self) -> None:
        """Until it is over, or has taken too long."""
        self._over.wait(max(0.0, self._until - time.monotonic()))

    def end(self) -> None:
        self._over.set()


async def _keys_of(issuer: str) -> dict[str, Any]:
    """The keys that an issuer lists, by name, all within a time that no provider can stretch."""
    async with (
        asyncio.timeout(_LONGEST_FETCH),
        httpx.AsyncClient(timeout=5, follow_redirects=False, trust_env=False) as client,
    ):
        known = await _document(client, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        where = known["jwks_uri"]
        if known["issuer"] != issuer or not lists_keys_at(issuer, where):
            raise ValueError
        listed = (await _document(client, where))["keys"]
    if not isinstance(listed, list):
        raise TypeError
    keys = dict[str, Any]()
    for entry in listed:
        if not isinstance(entry, dict) or not isinstance(entry.get("kid"), str):
            continue
        key = _public(entry)
        if key is not None:
            keys[entry["kid"]] = key
    return keys


def lists_keys_at(issuer: str, where: str) -> bool:
    """Whether an issuer may list its keys there: at https, as it is itself, or on this machine as it is."""
    return _is_safe(where) and (urlsplit(where).scheme == "https" or urlsplit(issuer).scheme == "http")


def _is_safe(address: str) -> bool:
    """Of https; of http only on this machine."""
    parts = urlsplit(address)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL)
    )


async def _document(client: httpx.AsyncClient, address: str) -> dict[str, Any]:
    async with client.stream("GET", address) as found:
        found.raise_for_status()
        content = b""
        async for part in found.aiter_bytes():
            content += part
            if len(content) > _LARGEST:
                raise ValueError
    document = httpx.Response(200, content=content).json()
    if not isinstance(document, dict):
        raise TypeError
    return document


def _public(listed: dict[str, Any]) -> Any:
    """A key that may sign tokens; None for all others, and for what cannot be read."""
    algorithm = {"RSA": "RS256", "EC": "ES256"}.get(str(listed.get("kty")))
    if algorithm is None or listed.get("use", "sig") != "sig" or listed.get("alg", algorithm) != algorithm:
        return None
    try:
        key = jwt.PyJWK(listed, algorithm=algorithm).key
    except Exception:  # of any kind: one key that cannot be read keeps out no other
        return None
    if isinstance(key, rsa.RSAPublicKey):
        return key if key.key_size >= 2048 else None
    is_curve = isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)
    return key if is_curve else None
