"""What somebody paid before, newest first: their own receipts, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from starlette.exceptions import HTTPException

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.ledger import Memo, Receipt
from sfumato.server.http.rereads import own_receipt
from sfumato.session import Release, Session
from sfumato.session.rereading import reread

__all__ = ["Leaf", "answer_of", "last_of", "leaf_of"]

_LEAF, _LATELY = 25, 100
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
    """The analyst's own debits before a receipt."""
    found = tuple(islice(_own(session, before), most + 1))
    return Leaf(found[:most], found[most - 1].number if len(found) > most else None)


def last_of(session: Session, dataset: str) -> Receipt | None:
    """The analyst's last question about a dataset, if they did not ask much else since."""
    lately = islice(_own(session), _LATELY)
    return next((receipt for receipt in lately if receipt.dataset == dataset), None)


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


def _own(session: Session, before: int | None = None) -> Iterator[Receipt]:
    """The analyst's debits, newest first; nobody in particular has none."""
    if session.analyst is None:
        return iter(())
    return session.ledger.entries(analyst=session.analyst, kind="debit", before=before, newest=True)
