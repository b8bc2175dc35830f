"""Quotes and releases as plain data, from which the very same are made elsewhere: bars, pictures and all."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines.base import unread_column
from sfumato.errors import ServerUnreachable
from sfumato.ledger import Receipt
from sfumato.ledger.names import alike
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.quoting import Quote, make_quote
from sfumato.plan.questions.profile import Profile
from sfumato.render import visible
from sfumato.schema import Bool
from sfumato.session.carried.kinds import checked, checked_fields
from sfumato.session.carried.values import Room, pack, unpack
from sfumato.session.intervals import Known
from sfumato.session.payload import Answer
from sfumato.session.release import Release
from sfumato.session.unreadable import Unread

__all__ = ["pack_quote", "pack_release", "unpack_quote", "unpack_receipt", "unpack_release"]

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_SAID = (
    "why",
    "notes",
    "columns",
    "measurements",
    "unnamed",
    "delta_told",
    "first",
    "first_for",
    "standing",
)
"""What a session adds to a quote, or says of it in words; all else follows from the plan and the terms."""

_SENTENCES = ("why", "notes", "standing")


def pack_quote(quote: Quote, *, adds: bool) -> dict[str, Any]:
    """A quote as plain data.

    Args:
        quote: In which every word is public.
        adds: Whether the budget that pays adds up pure prices.
    """
    return {
        "report": pack(quote.report),
        "terms": pack(quote.terms),
        "adds": adds,
        "said": [pack(getattr(quote, name)) for name in _SAID],
        "check": _digest(quote),
    }


def unpack_quote(data: Mapping[str, Any], tables: Mapping[str, Any]) -> Quote:
    """The quote that `pack_quote` wrote, over the same declared tables.

    Raises:
        ServerUnreachable: if another one comes out: the two processes do not compute alike.
        ValueError, TypeError or LookupError: if it is none.
    """
    room = Room()
    plan = Plan.of(unpack(data["report"], room), tables)
    said = {name: unpack(value, room) for name, value in zip(_SAID, data["said"], strict=True)}
    checked_fields(Quote, said)
    said |= {name: _in_sight(said[name]) for name in _SENTENCES}
    quote = replace(make_quote(plan, unpack(data["terms"]), adds=data["adds"]), **said)
    if len(quote.columns) != len(quote.report.columns):
        raise ValueError("other columns than are asked for")
    if _digest(quote) != data["check"]:
        raise ServerUnreachable(
            "The server's quote cannot be made again here: connect anew if tables were declared anew, or "
            "install the versions of Sfumato and its libraries that the server has."
        )
    return quote


def _in_sight(said: Any) -> Any:
    """Words of a server as a terminal may show them."""
    return tuple(map(_in_sight, said)) if isinstance(said, tuple) else visible(said)


def _digest(quote: Quote) -> str:
    """Of what is worked out from plan and terms: prices, the laws of noise, and the question itself."""
    price = (quote.epsilon, quote.delta, quote.mechanism, quote.selection_price, quote.loss.to_dict())
    told = repr((price, quote.noises, quote.units, quote.recipe.measured.unit))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def pack_release(release: Release, *, adds: bool, reader: str | None) -> dict[str, Any]:
    """A release as plain data.

    Args:
        release: What an analyst got.
        adds: Whether the budget that paid adds up pure prices.
        reader: Who is given it.

    Privacy:
        What travels is what the ledger keeps, the noisy measurements with the law of their noise, and the
        profiles and counts that were bought: all of it released to whoever has the release. Of a receipt
        that somebody else paid, what was asked and its price, and neither who, when, in which words nor what
        the dataset had spent by then.
    """
    unread = release.unread
    return {
        "quote": pack_quote(release.quote, adds=adds),
        "answer": base64.b64encode(release._answer.to_bytes()).decode(),
        "receipt": _told(release.receipt, reader).to_dict(),
        "free": release.free,
        "bounds": list(release.bounds),
        "profile": pack(release.profile),
        "groups": pack(release.groups),
        "unread": None if unread is None else _pack_unread(unread, adds, reader),
        "own": pack(release._own),
        "counted": pack(release.counted),
        "first": pack(release.first),
    }


def _told(receipt: Receipt, reader: str | None) -> Receipt:
    """The receipt; of another's only what the answer itself tells."""
    if alike(receipt.analyst or "") == alike(reader or ""):
        return receipt
    memo = {**receipt.memo, "words": ""}
    return replace(receipt, analyst=None, time=_NEVER, totals={}, memo=memo, mac="")


def unpack_receipt(data: Mapping[str, Any]) -> Receipt:
    """A receipt of another machine's ledger, whose names a terminal may show.

    Raises:
        LedgerUnusable, LookupError or TypeError: if it is none.
    """
    names = {name: data[name] for name in ("dataset", "kind", "analyst") if data[name] is not None}
    return checked(Receipt.from_dict({**data, **{name: visible(text) for name, text in names.items()}}))


@dataclass(frozen=True, slots=True)
class _Beside:
    """What comes with an answer, of the kinds that a `Release` has."""

    free: bool
    bounds: tuple[str, ...]
    profile: Known | None
    groups: Profile | None
    unread: Unread | None
    own: Mapping[str, Fraction]
    first: Mapping[str, Fraction]
    counted: Mapping[str, Fraction]


def unpack_release(
    data: Mapping[str, Any],
    tables: Mapping[str, Any],
    *,
    quoted: Callable[[Mapping[str, Any], Mapping[str, Any]], Quote] = unpack_quote,
) -> Release:
    """The release that `pack_release` wrote, over the same declared tables.

    Args:
        data: Plain data.
        tables: The tables.
        quoted: Makes its quote.
    """
    unread, receipt = data["unread"], unpack_receipt(data["receipt"])
    beside = checked(
        _Beside(
            data["free"],
            tuple(data["bounds"]),
            unpack(data["profile"]),
            unpack(data["groups"]),
            None if unread is None else _unpack_unread(unread, tables),
            unpack(data["own"]),
            unpack(data["first"]),
            unpack(data["counted"]),
        )
    )
    if receipt.kind != "debit":
        raise ValueError("no receipt of an answer")
    answer = checked(Answer.from_bytes(base64.b64decode(data["answer"])))
    release = Release(
        quoted(data["quote"], tables),
        answer,
        receipt,
        free=beside.free,
        bounds=beside.bounds,
        profile=beside.profile,
        groups=beside.groups,
        unread=beside.unread,
        counted=beside.own,
        first=beside.first,
    )
    release.counted = beside.counted
    return release


def _pack_unread(unread: Unread, adds: bool, reader: str | None) -> dict[str, Any]:
    return {
        "counts": {
            column: pack_release(one, adds=adds, reader=reader) for column, one in unread.counts.items()
        },
        "by": {name: sorted(columns) for name, columns in unread.by.items()},
        "others": list(unread.others),
    }


def _unpack_unread(data: Mapping[str, Any], tables: Mapping[str, Any]) -> Unread:
    counts = {
        column: unpack_release(one, _showing(tables, unpack(one["quote"]["report"]).child.table, column))
        for column, one in data["counts"].items()
    }
    by = {name: frozenset(columns) for name, columns in data["by"].items()}
    return Unread(counts, by, tuple(data["others"]))


def _showing(tables: Mapping[str, Any], name: str, column: str) -> dict[str, Any]:
    """The tables, one of them with the column that says which cells of another could not be read."""
    table = tables[name]
    if column not in table.schema:
        raise ValueError("no column")
    schema = {**table.schema, unread_column(column): Bool(nullable=False)}
    return {**tables, name: replace(table, schema=schema)}
