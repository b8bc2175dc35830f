"""What somebody paid before, newest first: their own receipts, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from starlette.exceptions import HTTPException

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.ledger import Memo, Receipt
from sfumato.ledger.names import alike
from sfumato.server.http.rereads import own_receipt
from sfumato.session import Release, Session
from sfumato.session.rereading import reread

__all__ = ["Leaf", "answer_of", "last_of", "leaf_of"]

_STEP, _STEPS, _LEAF = 500, 40, 25
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Leaf:
    """Some receipts, the newest first.

    Attributes:
        receipts: Of debits that the analyst paid.
        older: Where to go on; None where there is nothing before.
    """

    receipts: tuple[Receipt, ...]
    older: int | None


def leaf_of(session: Session, before: int | None = None, most: int = _LEAF) -> Leaf:
    """The analyst's own debits before a receipt; looks at so many at most, and says where it ended."""
    found: list[Receipt] = []
    end = session.ledger.end().number + 1 if before is None else before
    for _ in range(_STEPS):
        start = max(end - _STEP, 1)
        found += reversed([receipt for receipt in _between(session, start, end) if _is_own(session, receipt)])
        end = start
        if len(found) >= most or start == 1:
            break
    more = found[most:]
    shown = tuple(found[:most])
    if more:
        return Leaf(shown, shown[-1].number)
    return Leaf(shown, None if end == 1 else end)


def last_of(session: Session, dataset: str) -> Receipt | None:
    """The analyst's last question about a dataset, if it is not long ago."""
    end = session.ledger.end().number + 1
    for receipt in reversed(list(_between(session, max(end - _STEP, 1), end))):
        if receipt.dataset == dataset and _is_own(session, receipt):
            return receipt
    return None


def answer_of(session: Session, number: int, sql: str = "") -> tuple[Receipt, Release | str]:
    """A receipt of an answer that is open to the analyst, and the answer; or why it cannot be shown now.

    Args:
        session: Who reads.
        number: Of the receipt.
        sql: In which words the same question is asked: other names, another order; empty: as it was paid.
            What somebody else paid for is read in the reader's own words alone: theirs may be in comments
            and names, and the receipt says no more than its number, dataset and price.

    Raises:
        HTTPException: 404, whether it is somebody else's or not there.
    """
    try:
        receipt = own_receipt(session, number)
    except HTTPException:
        other = next(session.ledger.entries(after=number - 1), None)
        if other is None or other.number != number or not sql:
            raise
        try:  # one that was given to all, or counts toward the own limit
            return _of_others(other), reread(session, _worded(other, sql))
        except InvalidParameter:
            raise HTTPException(404) from None
    try:
        return receipt, reread(session, _worded(receipt, sql))
    except InvalidParameter as error:
        return receipt, str(error)


def _worded(receipt: Receipt, sql: str) -> Receipt:
    return replace(receipt, memo={**receipt.memo, **Memo("sql", sql).to_dict()}) if sql else receipt


def _of_others(receipt: Receipt) -> Receipt:
    """What a receipt says to somebody else than who paid."""
    memo = receipt.purpose
    price = Memo(epsilon=memo.epsilon, delta=memo.delta).to_dict()
    return replace(
        receipt, analyst=None, time=_NEVER, fingerprint=None, totals={}, memo=price, mac="", _loss=None
    )


def _between(session: Session, start: int, end: int) -> Iterator[Receipt]:
    for receipt in session.ledger.entries(after=start - 1):
        if receipt.number >= end:
            return
        yield receipt


def _is_own(session: Session, receipt: Receipt) -> bool:
    return receipt.kind == "debit" and alike(receipt.analyst or "") == alike(session.analyst or "")
