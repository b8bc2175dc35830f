"""`Purchase` and `buy`: an answer for what it costs, or free where the ledger has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import Generic, TypeVar

from sfumato._dataclasses import dataclass
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Budget, Counter, Dataset, Memo, Receipt, Right
from sfumato.loss import PrivacyLoss
from sfumato.purchase.pacing import reading
from sfumato.schema import Windows

__all__ = [
    "Bought",
    "Purchase",
    "buy",
    "check_access",
    "is_no_dearer",
    "known",
    "offers_of",
    "on_record",
    "summed",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bought(Generic[T]):
    """An answer with the debit that paid for it.

    Attributes:
        answer: As it was released.
        receipt: Of the debit.
        free: Whether it was paid before, and nothing now.
        counted: What of the reader's limit it counts now, since somebody else has paid: unit → amount.
    """

    answer: T
    receipt: Receipt
    free: bool
    counted: Mapping[str, Fraction] = field(default_factory=dict)


def _newest(kept: Iterable[Bought[T]]) -> Bought[T] | None:
    return next(iter(kept), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase(Generic[T]):
    """What is asked for: its price, its question, how it is answered and how the answer is kept.

    Attributes:
        dataset: Whose budget pays.
        loss: What the answer costs.
        fingerprint: Of the question: under which its answer is found again.
        memo: What it is for, in public words.
        answer: Reads and adds noise; called once it is paid, with the right to read.
        write: The answer as bytes.
        read_back: And back.
        choose: Which of the answers on record, newest first, will do; None: none of them. The newest does
            unless something else is said.
        reads: The fingerprints of what `answer` reads; None: the question's own.
        check: Refuses what could not be answered: called before it is paid, and not for an answer on record.
        resumable: Whether `answer` takes blocks of what was paid (`right.block`), each with its own reads:
            then a fit whose process died is gone on with, for what it has not taken yet.
        known: The dataset as it was when this was priced: a debit is refused if it was declared anew since.
        takes: Whether an answer of somebody else's, which would count what it cost them, will do.
        windows: Where the budget is for each window of time, those whose rows `answer` reads: it is paid in
            each of them, and no other row is read. An answer on record serves if it was paid in just these.
            None: it does not say, and is refused there.

    Privacy:
        Claim: what `answer` gives carries `loss`. Conditions, the spender's: the noise it draws has that
        loss for what it reads; a fingerprint names all that the answer depends on but the price and, where
        the budget is for each window of time, the windows that are read, which receipts name; `answer` gives
        nothing but what may be released, `write` writes nothing else.
    """

    dataset: str
    loss: PrivacyLoss
    fingerprint: str
    memo: Memo
    answer: Callable[[Right], T]
    write: Callable[[T], bytes]
    read_back: Callable[[bytes], T]
    choose: Callable[[Iterator[Bought[T]]], Bought[T] | None] = _newest
    reads: tuple[str, ...] | None = None
    check: Callable[[], None] = lambda: None
    resumable: bool = False
    known: Dataset | None = None
    takes: Callable[[Receipt], bool] = lambda _: True
    windows: Windows | None = None


def is_no_dearer(budget: Budget, paid: Receipt, loss: PrivacyLoss) -> bool:
    """Whether what a debit cost is no more than this loss, in everything that the budget adds up."""
    if paid.loss is None:
        return False
    theirs, own = (budget.totals(budget.filter().price(each)) for each in (paid.loss, loss))
    return all(a <= b for a, b in zip(theirs, own, strict=True))


def summed(*counts: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """What several answers of others count together: unit → amount."""
    units = dict.fromkeys(unit for each in counts for unit in each)
    return {unit: sum((each.get(unit, Fraction(0)) for each in counts), Fraction(0)) for unit in units}


def check_access(ledger: Counter, dataset: str, analyst: str | None = None) -> None:
    """Refuse whoever may no longer ask.

    Raises:
        AccessDenied: for a closed budget or a revoked analyst.
    """
    ledger._refuse_closed(dataset, analyst)


def known(ledger: Counter, wanted: Purchase[T], analyst: str | None = None) -> Bought[T] | None:
    """The answer on record, if one will do that is open to the analyst: free, and nothing is read.

    Raises:
        AccessDenied: for a closed budget or a revoked analyst, who see nothing of what was bought before.
    """
    kept = _kept(wanted, ledger._recall(wanted.dataset, wanted.fingerprint, analyst, others=False, asks=True))
    return wanted.choose(Bought(wanted.read_back(payload), paid, True) for paid, payload in kept)


def on_record(ledger: Counter, wanted: Purchase[T], analyst: str | None = None) -> Bought[T] | None:
    """The answer on record that will do, whoever paid for it: to plan with, not to be shown or counted."""
    return known(ledger, wanted, analyst) or wanted.choose(iter(offers_of(ledger, wanted, analyst)))


def offers_of(ledger: Counter, wanted: Purchase[T], analyst: str | None = None) -> list[Bought[T]]:
    """The answers that others have paid for, and that do not count for this reader yet."""
    kept = _kept(wanted, ledger._recall(wanted.dataset, wanted.fingerprint, analyst, others=True))
    return [Bought(wanted.read_back(payload), paid, True) for paid, payload in kept if wanted.takes(paid)]


def _kept(wanted: Purchase[T], kept: Iterable[tuple[Receipt, bytes]]) -> Iterator[tuple[Receipt, bytes]]:
    """Those answers on record that are about the windows of time that are asked about."""
    return ((paid, payload) for paid, payload in kept if paid.windows == wanted.windows)


def _recalled(
    ledger: Counter, wanted: Purchase[T], analyst: str | None
) -> tuple[Bought[T] | None, BudgetExceeded | None]:
    """The answer on record; another's once it is counted, or why it cannot be."""
    bought, beyond = known(ledger, wanted, analyst), None
    if bought is not None:
        return bought, None
    offers = offers_of(ledger, wanted, analyst)
    while (bought := wanted.choose(iter(offers))) is not None:
        try:
            return replace(bought, counted=ledger.count_read(bought.receipt, analyst)), None
        except BudgetExceeded as exceeded:
            beyond = exceeded
            offers = [offer for offer in offers if offer.receipt.number != bought.receipt.number]
    return None, beyond


def buy(ledger: Counter, wanted: Purchase[T], analyst: str | None = None) -> Bought[T]:
    """The answer: free from the record, or paid for, read, made private and recorded, in this order.

    Privacy:
        Claim: nothing is read before its debit is durable; of several threads and processes that ask at once
        one pays, and the others are given its answer; whatever is killed at whatever point, what was debited
        stays paid, and is read by nobody but the process that paid. Whoever waits for a process that dies,
        or that fails, pays itself: a failure must not be a free answer. An answer that somebody else paid
        for costs the dataset nothing and counts, once and before it is given, toward the reader's own limit
        (see `Counter.count_read`); where that does not allow it, the reader may pay for one of their own.

    Raises:
        BudgetExceeded: if it does not fit; nothing was spent.
        AccessDenied: for a closed budget or a revoked analyst; nothing was spent.
        LedgerMismatch: if the dataset was declared anew since it was priced, or its budget is for each window
            of time and the purchase does not say which it reads; nothing was spent.
    """
    recalled, _ = _recalled(ledger, wanted, analyst)
    if recalled is not None:
        return recalled
    with ledger.turn(wanted.dataset, wanted.fingerprint):
        recalled, beyond = _recalled(ledger, wanted, analyst)  # who had the turn before may have paid
        if recalled is not None:
            return recalled
        begun = ledger.resume(wanted.dataset, wanted.fingerprint, analyst) if wanted.resumable else None
        if begun is not None and (begun.receipt.loss, begun.receipt.windows) != (wanted.loss, wanted.windows):
            begun = None  # another price is another fit, and so are other windows
        wanted.check()
        try:
            right = begun or ledger.debit(
                wanted.dataset,
                wanted.loss,
                fingerprint=wanted.fingerprint,
                analyst=analyst,
                memo=wanted.memo,
                reads=wanted.reads,
                resumable=wanted.resumable,
                known=wanted.known,
                windows=wanted.windows,
            )
        except BudgetExceeded:
            if beyond is not None:
                raise beyond from None
            raise
        with reading(wanted.dataset):
            answer = wanted.answer(right)
        ledger.record(right, wanted.write(answer))
    return Bought(answer, right.receipt, begun is not None)
