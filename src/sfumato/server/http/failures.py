"""How a request fails: one readable sentence with a code, and never a value of the data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sfumato.errors import QueryRefused, SfumatoError
from sfumato.server.access import Account, Act
from sfumato.server.troubles import hidden, is_told

__all__ = [
    "STATUS",
    "answered",
    "is_steward",
    "on_error",
    "on_invalid",
    "on_missing",
    "on_overrun",
    "on_unforeseen",
    "refusal",
]

STATUS: Mapping[str, int] = {
    "invalid_parameter": 422,
    "invalid_value": 422,
    "unknown_name": 422,
    "query_refused": 422,
    "unsupported_loss": 422,
    "not_certified": 422,
    "budget_exceeded": 402,
    "access_denied": 403,
    "spent": 409,
    "ledger_mismatch": 409,
    "cancelled": 499,
}
"""By the error's code; what is not listed is the server's own trouble, 500."""


def answered(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON document."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "backslashreplace"), status, headers, media_type="application/json")


def refusal(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """The document of everything that fails."""
    return answered({"error": {"code": code, "message": message, **more}}, status, headers)


def is_steward(request: Request) -> bool:
    """Whether who asks acts as a steward; nobody, before it is known who asks."""
    asker = getattr(request.state, "asker", None)
    return isinstance(asker, Account) and asker.may(Act.GOVERN)


async def on_error(request: Request, error: Exception) -> Response:
    """Of this package: its sentences hold no data; those about the server itself are the steward's."""
    assert isinstance(error, SfumatoError)
    status = STATUS.get(error.code, 500)
    if not is_told(error, steward=is_steward(request)):
        return refusal(status, error.code, hidden(error))
    parts: dict[str, Any] = {}
    if isinstance(error, QueryRefused):
        parts = {"reason": error.reason, "fix": error.fix}
    return refusal(status, error.code, str(error), **parts)


async def on_invalid(_: Request, error: Exception) -> Response:
    """Of a body or a parameter that is not as the OpenAPI document says; what was sent is not repeated."""
    found: list[dict[str, Any]] = getattr(error, "errors", list)()
    where = ".".join(str(part)[:40] for part in found[0]["loc"][:4]) if found else "the request"
    what = str(found[0]["msg"])[:200] if found else "It cannot be read."
    return refusal(422, "invalid_request", f"{where}: {what}")


async def on_missing(_: Request, error: Exception) -> Response:
    """Of a path or a method that is not there."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    said = {404: "There is nothing here.", 405: "That method is not taken here."}
    headers = getattr(error, "headers", None)
    return refusal(
        status, "not_found" if status == 404 else "not_taken", said.get(status, "Refused."), headers
    )


async def on_overrun(_: Request, error: Exception) -> Response:
    """Of a read that was not over at its deadline: always the same."""
    return refusal(504, "deadline_passed", str(error))


async def on_unforeseen(_: Request, error: Exception) -> Response:
    """Of anything else: its text may quote data, and stays here, unwritten."""
    return refusal(500, "error", hidden(error))
