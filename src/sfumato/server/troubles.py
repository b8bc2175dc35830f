"""What goes wrong at the server itself: the steward is told in full, everybody else one sentence with an id.

Sentences about sources, the ledger and the engine hold no data, but where it lies: paths, hosts, names of
tables and files. Analysts need none of it. The log has the same id.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from sfumato.errors import SfumatoError
from sfumato.random import token
from sfumato.server.access import Account, Act

__all__ = ["TOLD", "WITHHELD", "hidden", "is_told", "kept", "note", "said"]

_LOG = logging.getLogger("sfumato.server")
_KEY, _DIGITS = "_sfumato_trouble", 12

TOLD = frozenset(
    {
        "access_denied",
        "budget_exceeded",
        "cancelled",
        "invalid_parameter",
        "invalid_value",
        "ledger_mismatch",
        "login_failed",
        "not_certified",
        "query_refused",
        "spent",
        "timed_out",
        "too_many_tries",
        "unknown_name",
        "unsupported_loss",
    }
)
"""Codes of errors whose sentences are for whoever asked: about the question, the budget, the account."""
WITHHELD = frozenset(
    {
        "catalog_unusable",
        "engine_failed",
        "error",
        "ledger_tampered",
        "ledger_unusable",
        "missing_extra",
        "server_unreachable",
        "source_unusable",
    }
)
"""Codes of errors whose sentences are for stewards alone; so is what has a code that is in neither."""


class _Gone(Exception):
    """What failed has no sentence of ours; its text, which may quote data, was dropped."""


def is_told(error: BaseException, *, steward: bool) -> bool:
    """Whether somebody is told an error's own sentence."""
    return isinstance(error, SfumatoError) and (steward or error.code in TOLD)


def hidden(error: BaseException) -> str:
    """What is told of an error in place of its own sentence: always the same, but for id and time."""
    return (
        f"Something is wrong at the server: tell the steward trouble {note(error)}; what was charged stays "
        "charged."
    )


def said(error: BaseException, who: Account) -> str:
    """What somebody is told of an error: its own sentence where it is for them, else the one with an id."""
    return str(error) if is_told(error, steward=who.may(Act.GOVERN)) else hidden(error)


def note(error: BaseException) -> str:
    """An id of an error, with the time; the log has it, the class of the error and where, never its text."""
    known = vars(error).get(_KEY)
    if known is not None:
        return str(known)
    id = f"{token()[:_DIGITS]} of {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    vars(error)[_KEY] = id
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = "" if where is None else f" in {where.tb_frame.f_code.co_name}, line {where.tb_lineno}"
    _LOG.error("trouble %s: a %s%s", id, type(error).__name__, place)
    return id


def kept(error: BaseException) -> Exception:
    """What may be kept of an error until somebody asks: without its frames, which hold what was read."""
    if not is_told(error, steward=False):
        note(error)
    if isinstance(error, SfumatoError):
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)
    left = _Gone()
    vars(left)[_KEY] = note(error)
    return left
