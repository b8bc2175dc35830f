"""Requests to a server, and its refusals as the exceptions that the same call raises in process."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato import errors, random
from sfumato.client.address import address_of, certified, is_plain, token_of
from sfumato.client.documents import SHORT_BYTES_READ, Allowance, document_of
from sfumato.errors import InvalidParameter, MissingExtra, ServerUnreachable, SfumatoError
from sfumato.render import visible

__all__ = ["Connection"]

_TRIES, _PAUSE, _PATIENCE = 3, 0.2, 30.0
_CONNECT = 10.0
_MOST_BYTES = 1 << 20  # that a server takes, and that its refusals may have
_LONGEST = 10_000  # letters of what a server says of an error
_CLASSES: Mapping[str, type[SfumatoError]] = {
    kind.code: kind for kind in (getattr(errors, name) for name in errors.__all__)
}
_OTHERS: Mapping[str, type[SfumatoError]] = {
    "unauthorized": errors.LoginFailed,
    "deadline_passed": errors.TimedOut,
    "ending": ServerUnreachable,
    "too_slow": ServerUnreachable,
    "too_many_requests": ServerUnreachable,
    "invalid_request": InvalidParameter,
    "too_large": InvalidParameter,
    "token_in_address": InvalidParameter,
    "not_found": InvalidParameter,
}


class Connection:
    """One server, with whose token it is asked. It may be used from several threads.

    A request whose connection is lost is sent again, twice at most: a question has a word of its own
    (`Idempotency-Key`), and what was paid for it is given again, free. A server that says so is given time.

    A server is not trusted with this process: answers that are compressed, too long, too slow or nested too
    deeply and documents that cannot be read are refused, and its messages have no control characters.

    Args:
        url: Where the server is.
        token: Sent in a header, to this address alone: redirections are not followed.
        certificate: A file with the certificate to trust, of a server that has signed its own.
        timeout: How many seconds an answer may take, from the first byte sent to the last one read.
        plain: Whether the token may travel to another machine without TLS.

    Raises:
        InvalidParameter: if one of them cannot be used.
        MissingExtra: if the extra `client` is not installed.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        certificate: str | Path | None = None,
        timeout: float = 600.0,
        plain: bool = False,
    ) -> None:
        self.address = address_of(url, plain=plain)
        token = token_of(token)
        verify = certified(certificate)
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e6:
            raise InvalidParameter("timeout is a number of seconds, such as 600.")
        try:
            import httpx
        except ImportError:
            raise MissingExtra(
                "sf.connect needs the extra `client`: pip install 'sfumato[client]'."
            ) from None
        from sfumato.client.deadline import LATE, LOST, Transport

        self._timeout, self._lost, self._late = timeout, LOST, LATE
        proxied = not is_plain(self.address)  # a proxy for plain HTTP would read the token
        self._way = Transport(self.address, verify=verify, proxied=proxied)
        self._http = httpx.Client(
            headers={
                "Authorization": f"Bearer {token}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
            },
            transport=self._way,
            follow_redirects=False,
            trust_env=False,
        )

    def allowing(self, most: int) -> Allowance:
        """So many bytes from now on, within the time that an answer may take."""
        return Allowance(time.monotonic() + self._timeout, most)

    def get(
        self,
        path: str,
        asked: Mapping[str, str | int | None] | None = None,
        *,
        missing: str = "",
        within: Allowance | None = None,
    ) -> Any:
        """A document.

        Args:
            path: Behind the address.
            asked: Parameters; None: not given.
            missing: What to say if it is not there.
            within: What it may take; by default a short document.

        Raises:
            SfumatoError: as the server says, or `ServerUnreachable`.
        """
        given = {name: one for name, one in (asked or {}).items() if one is not None}
        return self._sent("GET", path, given, None, missing, within)

    def post(self, path: str, body: Mapping[str, Any], *, within: Allowance | None = None) -> Any:
        """What the server answers to a question; asked again after a lost connection, it is paid once.

        Args:
            path: Behind the address.
            body: The question.
            within: What the answer may take; by default a short document.

        Raises:
            SfumatoError: as the server says, or `ServerUnreachable`.
        """
        written = json.dumps(body).encode()
        if len(written) > _MOST_BYTES:
            raise InvalidParameter(
                f"A question over HTTP may have {_MOST_BYTES:,} bytes, and this has {len(written):,}: "
                "shorten its lists."
            )
        return self._sent("POST", path, {}, written, "", within)

    def close(self) -> None:
        """Ends it."""
        self._http.close()

    def _sent(
        self,
        method: str,
        path: str,
        asked: Mapping[str, Any],
        body: bytes | None,
        missing: str,
        within: Allowance | None,
    ) -> Any:
        allowed, headers = within or self.allowing(SHORT_BYTES_READ), {}
        if body is not None:
            headers = {"Content-Type": "application/json", "Idempotency-Key": random.token()}
        for attempt in range(_TRIES):
            left, pause = max(0.0, allowed.seconds), _PAUSE * 2**attempt
            try:
                with (
                    self._way.until(allowed.until),
                    self._http.stream(
                        method,
                        f"{self.address}{path}",
                        params=asked,
                        content=body,
                        headers=headers,
                        timeout=(min(_CONNECT, left), left, left, left),
                    ) as response,
                ):
                    content = self._content(response, allowed)
            except self._lost as error:
                last = attempt == _TRIES - 1 or isinstance(error, self._late)
                if last or _is_about_tls(error) or pause > allowed.seconds:
                    raise self._unreachable(error) from None
                time.sleep(pause)
            except RuntimeError:
                raise ServerUnreachable("This session is closed; connect again.") from None
            else:
                wait = _asked_to_wait(response, content)
                if wait is None or attempt == _TRIES - 1 or wait > allowed.seconds:
                    return self._read(response, content, missing)
                time.sleep(wait)
        raise AssertionError

    def _content(self, response: Any, allowed: Allowance) -> bytes:
        """The bytes of an answer as they came, none of them unpacked.

        Raises:
            ServerUnreachable: if it is compressed or too long.
        """
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise ServerUnreachable(
                f"{self.address} sends a compressed answer, which was not asked for: have what stands before "
                "the server leave answers as they are."
            )
        content = bytearray()
        most = allowed.bytes if response.status_code < 400 else min(allowed.bytes, _MOST_BYTES)
        for some in response.iter_raw():
            content += some
            if len(content) > most:
                raise ServerUnreachable(
                    f"{self.address} sends more than {most:,} bytes in one answer: check the URL, or ask for "
                    "fewer groups or receipts."
                )
        allowed.bytes -= len(content)
        return bytes(content)

    def _unreachable(self, error: Exception) -> ServerUnreachable:
        """One sentence; of the error's own text nothing, which may hold what was sent."""
        if _is_about_tls(error):
            return ServerUnreachable(
                f"The certificate of {self.address} is not one that this machine trusts: give that of the "
                "server, certificate=PATH, if it has signed its own."
            )
        if isinstance(error, self._late):
            return ServerUnreachable(
                f"{self.address} did not answer within {self._timeout:g} seconds: ask the same again, or "
                "give more, timeout=…; an answer that was paid meanwhile is free."
            )
        return ServerUnreachable(
            f"{self.address} cannot be reached, or the connection was lost: see whether the server runs, and "
            "ask the same again; an answer that was paid meanwhile is free."
        )

    def _read(self, response: Any, content: bytes, missing: str) -> Any:
        status = response.status_code
        if status == 404 and missing:
            raise InvalidParameter(missing)
        if 300 <= status < 400:
            raise ServerUnreachable(
                f"{self.address} sends elsewhere, and the token goes to no other address: give that of the "
                "server itself."
            )
        try:
            document = document_of(content)
            refused = None if status < 400 else document["error"]
            if refused is not None:
                error = _error(refused, response.headers.get("retry-after"))
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
            raise ServerUnreachable(
                f"What answers at {self.address} is no server of Sfumato (status {status}): check the URL."
            ) from None
        if refused is not None:
            raise error
        return document


def _asked_to_wait(response: Any, content: bytes) -> float | None:
    """For how many seconds, by a server whose accounts may ask so often a second; nothing was done yet."""
    wait = response.headers.get("retry-after", "")
    if response.status_code != 429 or not wait.isdecimal() or errors.TooManyTries.code.encode() in content:
        return None
    return float(wait) if float(wait) <= _PATIENCE else None


def _is_about_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _error(refused: Mapping[str, Any], wait: str | None) -> SfumatoError:
    """The exception that the same call raises in process, with the same sentence."""
    code, message = str(refused["code"]), _sentence(refused["message"])
    if code == errors.QueryRefused.code:
        return errors.QueryRefused(
            _sentence(refused.get("reason", message)), _sentence(refused.get("fix", ""))
        )
    if code == errors.TooManyTries.code:
        return errors.TooManyTries(float(wait or 1))
    made: type[SfumatoError] = {**_CLASSES, **_OTHERS}.get(code, SfumatoError)
    return made(message)


def _sentence(said: object) -> str:
    """What a server says, as a terminal may show it."""
    return visible(str(said)[:_LONGEST])
