"""Which addresses a token may be sent to."""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from sfumato.errors import InvalidParameter

__all__ = ["address_of", "certified", "is_plain", "token_of"]

_PREFIX = "sfu_"


def address_of(url: object, *, plain: bool) -> str:
    """The address of a server, without a slash at its end.

    Args:
        url: As it was given.
        plain: Whether a token may travel to another machine in plain text.

    Raises:
        InvalidParameter: if it is none, holds a token, or would show the token to the network.
    """
    try:
        parts = urlsplit(url.strip() if isinstance(url, str) else "")
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.username is not None or parts.query or parts.fragment or _PREFIX in str(url):
        raise InvalidParameter(
            "An address is written into logs, and holds no token: sf.connect(url, token=…). If it held one, "
            "have that one revoked."
        )
    if not host or parts.scheme not in ("http", "https") or not str(url).isascii():
        raise InvalidParameter('The address of a server is written like "https://answers.example.org:8430".')
    if parts.scheme == "http" and not (plain or is_local(host)):
        raise InvalidParameter(
            "Over http:// everybody on the way to another machine can read the token: use https://, or say "
            "plain=True where something else protects it."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def is_plain(address: str) -> bool:
    """Whether what is sent there is not encrypted."""
    return address.startswith("http:")


def is_local(host: str) -> bool:
    """Whether it is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def token_of(token: object) -> str:
    """The token, as a header takes it.

    Raises:
        InvalidParameter: if it is none; it is not repeated.
    """
    text = token.strip() if isinstance(token, str) else ""
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidParameter('token is what the steward gave you: a word such as "sfu_…".')
    return text


def certified(certificate: str | Path | None) -> ssl.SSLContext | bool:
    """What checks the server's certificate: that of the system, or one file of certificates.

    Raises:
        InvalidParameter: if the file holds none.
    """
    if certificate is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(certificate))
    except (OSError, ValueError):
        raise InvalidParameter(
            f"certificate is no PEM file with a certificate: {str(certificate)[:200]!r}."
        ) from None
