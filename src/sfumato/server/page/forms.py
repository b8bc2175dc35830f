"""What forms of the page say: their fields, a steward's reason, and the status where something is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.server.http.failures import STATUS
from sfumato.server.page.once import Reused

__all__ = ["FORM", "fields", "number_in", "place_in", "reason_in", "said", "status_of"]

FORM = "form"
"""The field of every form that shows which login it belongs to; scripts send the header `X-Form`."""
_FIELDS = 2_000
_LONGEST_REASON = 2_000


def fields(body: bytes) -> dict[str, str]:
    """The fields of a form that was sent as `application/x-www-form-urlencoded`, the last of each name."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError:
        return {}
    return dict(pairs)


async def said(request: Request) -> Mapping[str, str]:
    """What a form says, however it is sent: with the address, or after it where it is long."""
    return request.query_params if request.method == "GET" else fields(await request.body())


def number_in(text: str) -> int:
    """A receipt's number; 0 where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0


def place_in(text: str, many: int) -> int | None:
    """Which of so many a form names, by its place from 0 on; None where it is none of them."""
    known = text.isascii() and text.isdigit() and len(text) <= 18 and int(text) < many
    return int(text) if known else None


def reason_in(values: Mapping[str, str]) -> str:
    """Why, as a form says it."""
    reason = values.get("reason", "").strip()
    if not reason or len(reason) > _LONGEST_REASON:
        raise InvalidParameter("A steward's act needs a reason: say in a sentence why.")
    return reason


def status_of(wrong: SfumatoError | None) -> int:
    """Of the page that shows forms again, with what was wrong."""
    if wrong is None:
        return 200
    return 409 if isinstance(wrong, Reused) else STATUS.get(wrong.code, 500)
