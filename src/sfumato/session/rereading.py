"""The answer that a receipt paid for, read again: free, whoever else asks meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.ledger import Receipt
from sfumato.numeric.exact import as_integer
from sfumato.session.payload import Answer
from sfumato.session.release import Release

if TYPE_CHECKING:
    from sfumato.ledger import Memo
    from sfumato.plan.prices.quoting import Quote
    from sfumato.session.session import Session

__all__ = ["found", "reread"]


def found(session: Session, receipt: int | Receipt) -> Receipt:
    """The receipt of this number.

    Raises:
        InvalidParameter: if the session's ledger shows none.
    """
    number = receipt.number if isinstance(receipt, Receipt) else as_integer(receipt, "receipt")
    known = next(session.ledger.entries(after=number - 1), None)
    if known is None or known.number != number:
        raise InvalidParameter(f"There is no receipt {number}: s.releases() lists them.")
    return known


def reread(session: Session, receipt: Receipt) -> Release:
    """The answer to the question of a receipt, as the ledger keeps it. Nothing is read or paid.

    Args:
        session: Who reads: an analyst what is open to them, the steward everything.
        receipt: Of a debit for a question in SQL.

    Privacy:
        The ledger gives what it would give to the same question (`Counter.recall`): no row is read, and
        what is made of the answer is post-processing.

    Raises:
        InvalidParameter: if there is no such answer, or the text alone does not say what was asked.
    """
    number = receipt.number
    again = f"Ask the question of receipt {number} again: what is on record is free."
    if receipt.kind != "debit" or receipt.purpose.sql is None or receipt.fingerprint is None:
        raise InvalidParameter(f"Receipt {number} paid for no question in SQL. {again}")
    try:
        quote = _quoted(session, receipt.purpose)
    except SfumatoError:  # declared otherwise since, or asked with parameters
        raise InvalidParameter(f"The text of receipt {number} alone does not ask it now. {again}") from None
    if quote.fingerprint != receipt.fingerprint:
        raise InvalidParameter(f"The text of receipt {number} alone asks something else by now. {again}")
    for paid, payload in session.ledger.recall(receipt.dataset, quote.fingerprint):
        if paid.number == number:
            return Release(quote, Answer.from_bytes(payload), paid, free=True)
    raise InvalidParameter(f"No answer of receipt {number} is on record for you. {again}")


def _quoted(session: Session, memo: Memo) -> Quote:
    if memo.state:
        states = getattr(session.tables.get(memo.table), "states", ())
        session = session.at(memo.state, table=memo.table) if memo.state in states else session.growing()
    named = "delta" not in memo.unnamed
    return session.sql(memo.words).quote(
        epsilon=memo.epsilon if memo.asked is None else memo.asked, delta=memo.delta if named else None
    )
