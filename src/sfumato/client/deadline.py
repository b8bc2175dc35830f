"""A way to a server on which a whole request has one deadline, however slowly its bytes come.

A timeout of a socket is for each read: a server that sends a byte now and then would never reach it. Here
each read and write gets what is left of the time that the thread's request may take.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import local
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from sfumato.errors import InvalidParameter

__all__ = ["LATE", "LOST", "Transport"]

LATE = (httpx.TimeoutException, httpcore.TimeoutException)
"""What is raised when the time is over."""
LOST = (
    httpx.RequestError,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)
"""What is raised when no whole answer came."""
_POOL: dict[str, Any] = {"max_connections": 100, "max_keepalive_connections": 20, "keepalive_expiry": 5.0}
_PIECE = 1 << 16  # bytes that are sent at once: each gets the time that is left


class Transport(httpx.BaseTransport):
    """Sends the requests of one client. It may be used from several threads.

    Args:
        address: Where they go.
        verify: What checks the server's certificate.
        proxied: Whether to go by the proxy that the environment names for that address.
    """

    def __init__(self, address: str, *, verify: ssl.SSLContext | bool, proxied: bool) -> None:
        self._clock = _Clock()
        context = httpx.create_ssl_context(verify=verify, trust_env=proxied)
        proxy = _proxy_of(address) if proxied else None
        more: dict[str, Any] = {"ssl_context": context, "network_backend": _Backend(self._clock)}
        if proxy is None:
            self._pool = httpcore.ConnectionPool(**_POOL, **more)
        else:
            self._pool = _by_proxy(proxy, **_POOL, **more)

    @contextmanager
    def until(self, end: float) -> Iterator[None]:
        """Whatever this thread sends and reads within ends at this time of the monotonic clock."""
        self._clock.end = end
        try:
            yield
        finally:
            self._clock.end = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One request, in httpcore's terms."""
        sent = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        answer = self._pool.handle_request(sent)
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    def close(self) -> None:
        """Ends all connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The bytes of an answer as they come."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        return self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _Clock(local):
    """When the request of this thread has to be over."""

    end: float | None = None

    def left(self, timeout: float | None, late: type[Exception]) -> float | None:
        """The time that one read may take.

        Raises:
            TimeoutException: of this kind, if there is none left.
        """
        if self.end is None:
            return timeout
        rest = self.end - time.monotonic()
        if rest <= 0:
            raise late("the whole request")
        return rest if timeout is None else min(rest, timeout)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, clock: _Clock) -> None:
        self._clock, self._plain = clock, httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        timeout = self._clock.left(timeout, httpcore.ConnectTimeout)
        made = self._plain.connect_tcp(host, port, timeout, local_address, socket_options)
        return _Stream(made, self._clock)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, clock: _Clock) -> None:
        self._stream, self._clock = stream, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._clock.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for begin in range(0, len(buffer), _PIECE):
            left = self._clock.left(timeout, httpcore.WriteTimeout)
            self._stream.write(buffer[begin : begin + _PIECE], left)

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._clock.left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def close(self) -> None:
        self._stream.close()


def _proxy_of(address: str) -> str | None:
    """The proxy that the environment names for an address; None: straight there."""
    parts = urlsplit(address)
    if proxy_bypass(parts.hostname or ""):
        return None
    named = getproxies()
    found = named.get(parts.scheme) or named.get("all")
    return found if found is None or "://" in found else f"http://{found}"


def _by_proxy(proxy: str, **more: Any) -> httpcore.ConnectionPool:
    try:
        parts = urlsplit(proxy)
        auth = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
        if parts.scheme not in ("http", "https", "socks5", "socks5h"):
            raise ValueError("no proxy")
        kind = httpcore.SOCKSProxy if parts.scheme in ("socks5", "socks5h") else httpcore.HTTPProxy
        url = httpcore.URL(scheme=parts.scheme, host=parts.hostname or "", port=parts.port, target="/")
        return kind(proxy_url=url, proxy_auth=auth, **more)
    except (ValueError, TypeError, RuntimeError, ImportError):
        raise InvalidParameter(
            "The proxy that the environment names cannot be used: set HTTPS_PROXY to one of http:// or "
            "https://, or name the server in NO_PROXY."
        ) from None
