"""The OpenAPI document: what each address gives, what it needs, and how it fails, as it really does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from sfumato.server.http.answers import ARROW

__all__ = ["Described"]

JSON = "application/json"
_TOKEN = "token"
_TEXT, _COUNT, _YES = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_ANY: dict[str, Any] = {}


def _object(**parts: Any) -> dict[str, Any]:
    """One that has all of these, and may have more."""
    return {"type": "object", "properties": parts, "required": [*parts]}


def _list(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


_OPEN = {"type": "object"}
_ACCOUNT = _object(name=_TEXT, role={"enum": ["analyst", "steward", "auditor"]})
_BALANCE = _object(
    dataset=_TEXT, analyst={"type": ["string", "null"]}, accountant=_TEXT, budget=_OPEN, spent=_OPEN,
    left=_OPEN, debits=_COUNT, reads=_COUNT, open=_YES, limited=_YES,
)  # fmt: skip
_RECEIPT = _object(
    number=_COUNT, dataset=_TEXT, kind=_TEXT, analyst={"type": ["string", "null"]}, time=_TEXT,
    loss={"type": ["object", "null"]}, fingerprint={"type": ["string", "null"]}, price=_OPEN, totals=_OPEN,
    memo=_OPEN, mac=_TEXT,
)  # fmt: skip
_ANSWER = _object(
    columns=_list(_TEXT), estimands=_OPEN, rows=_list(_OPEN), errors=_list(_OPEN), covering=_list(_OPEN),
    confidence={"type": "number"}, paid=_OPEN, free=_YES, counted=_OPEN, receipt=_COUNT,
    touched={"type": ["object", "null"]}, bounds=_list(_ANY), left=_OPEN, quote=_OPEN,
)  # fmt: skip
_JOB = _object(id=_TEXT, state=_TEXT, created=_TEXT, address=_TEXT, result=_TEXT)
_INFO = _object(id=_TEXT, name=_TEXT, created=_TEXT, expires=_TEXT)
_STATUS = _object(status=_TEXT)
_SCHEMAS: dict[str, dict[str, Any]] = {
    "Account": _ACCOUNT,
    "Answer": _ANSWER,
    "Balance": _BALANCE,
    "Failure": _object(error=_object(code=_TEXT, message=_TEXT)),
    "Job": _JOB,
    "Receipt": _RECEIPT,
    "Token": _INFO,
}


def _named(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_GIVEN: dict[str, dict[str, Any]] = {JSON: _named("Answer"), ARROW: {"type": "string", "format": "binary"}}
_GIVES: dict[str, tuple[int, dict[str, Any]]] = {
    "GET /health": (200, {JSON: _STATUS}),
    "GET /ready": (200, {JSON: _STATUS}),
    "GET /metrics": (200, {"text/plain": _TEXT}),
    "GET /api/me": (200, {JSON: _named("Account")}),
    "GET /api/datasets": (200, {JSON: _list(_TEXT)}),
    "GET /api/datasets/{name}": (200, {JSON: _object(name=_TEXT, tables=_list(_OPEN), public=_list(_OPEN))}),
    "GET /api/datasets/{name}/balance": (200, {JSON: _named("Balance")}),
    "GET /api/datasets/{name}/analysts": (200, {JSON: _list(_named("Balance"))}),
    "POST /api/quote": (200, {JSON: _object(quote=_OPEN, left=_OPEN)}),
    "POST /api/release": (200, _GIVEN),
    "GET /api/receipts": (200, {JSON: _list(_named("Receipt"))}),
    "GET /api/receipts/{number}": (200, {JSON: _named("Receipt")}),
    "GET /api/receipts/{number}/answer": (200, _GIVEN),
    "GET /api/ledger/export": (200, {"application/x-ndjson": _TEXT}),
    "GET /api/ledger/verify": (
        200,
        {JSON: _object(ok=_YES, entries=_COUNT, head=_TEXT, problems=_list(_ANY))},
    ),
    "POST /api/jobs": (202, {JSON: _named("Job")}),
    "GET /api/jobs": (200, {JSON: _list(_named("Job"))}),
    "GET /api/jobs/{name}": (200, {JSON: _named("Job")}),
    "DELETE /api/jobs/{name}": (200, {JSON: _named("Job")}),
    "GET /api/jobs/{name}/result": (200, _GIVEN),
    "POST /api/accounts": (201, {JSON: _named("Account")}),
    "POST /api/accounts/{name}/tokens": (201, {JSON: _object(token=_TEXT, id=_TEXT, name=_TEXT)}),
    "DELETE /api/tokens/{name}": (200, {JSON: _named("Token")}),
}
_FAILS = {
    "400": "It is no request, can be read in two ways, or has a token in its address.",
    "401": "There is no valid token.",
    "402": "The budget, or the asker's own limit, does not allow it; nothing was spent.",
    "403": "Not this role's, a closed budget, or an analyst whom the steward has revoked.",
    "404": "There is nothing here, or it is somebody else's.",
    "409": "It does not fit what is on record.",
    "413": "It is too large.",
    "422": "It is refused; nothing was spent.",
    "429": "Too many wrong tokens came from this address, or there is too much at once: wait.",
    "default": "What else fails.",
}


class Described(FastAPI):
    """An application whose document says how requests fail, and what they give."""

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        if not self.openapi_schema:
            document = super().openapi()
            parts = document.setdefault("components", {})
            schemas = {**parts.get("schemas", {}), **_SCHEMAS}
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            parts["schemas"] = schemas
            parts["securitySchemes"] = {_TOKEN: {"type": "http", "scheme": "bearer"}}
            for path, methods in document["paths"].items():
                for method, operation in methods.items():
                    _describe(f"{method.upper()} {path}", operation)
        return self.openapi_schema or {}


def _describe(address: str, operation: dict[str, Any]) -> None:
    path = address.partition(" ")[2]
    plain = {JSON: _ANY}
    status, gives = _GIVES.get(address, (200, plain))
    failure = {JSON: {"schema": _named("Failure")}}
    responses = {status_: {"description": what, "content": failure} for status_, what in _FAILS.items()}
    if path.startswith("/api") or path == "/metrics":
        operation["security"] = [{_TOKEN: []}]
    else:
        for status_ in ("401", "403", "429"):
            del responses[status_]
    content = {kind: {"schema": schema} for kind, schema in gives.items()}
    responses[str(status)] = {"description": "It is done.", "content": content}
    if path == "/ready":
        responses["503"] = {"description": "It is not, or no more.", "content": content}
    operation["responses"] = dict(sorted(responses.items()))
