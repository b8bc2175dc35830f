"""`Counter`: where an analyst pays and reads, and decides nothing."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter as Multiset
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date
from fractions import Fraction
from typing import Any, Self

from sfumato.errors import (
    AccessDenied,
    InvalidParameter,
    LedgerMismatch,
    LedgerUnusable,
    SfumatoError,
    Spent,
)
from sfumato.ledger.anchor import Mark
from sfumato.ledger.balance import Balance, balance_of, counts_in, may_ask, window_shown
from sfumato.ledger.blocks import BlocksOf
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import Row, plain, text
from sfumato.ledger.gates import Asked
from sfumato.ledger.journal import Journal
from sfumato.ledger.memo import Memo
from sfumato.ledger.names import alike
from sfumato.ledger.receipt import Dataset, Kind, Receipt, loss_text, stored_loss, windows_facts
from sfumato.ledger.right import Right, granted
from sfumato.ledger.rules import account_of, analyst_of, changes, declared, named
from sfumato.ledger.series import SeriesOf
from sfumato.ledger.sharing import count_read, is_open_to
from sfumato.ledger.spare import Spare
from sfumato.ledger.turns import turn
from sfumato.ledger.verification import Verification, audit
from sfumato.loss import PrivacyLoss
from sfumato.numeric.exact import as_integer
from sfumato.schema import Windows

__all__ = ["Counter"]

_LARGEST_PAYLOAD = 2**30


class Counter:
    """A ledger as an analyst has it: pays in one name, reads, and has nothing that a steward decides with.

    Powers are added, never taken away: `Ledger` is a counter that pays in any name and puts datasets on
    record, and the steward's acts are in `Steward`, which takes a `Ledger` and refuses a counter. All of them
    hold the same `Journal`, and a counter holds nothing else: no ledger and no act can be reached from it,
    from its answers or from a session over it. That guards against slips and borrowed scripts: whoever can
    read the ledger's key can open the ledger itself.

    Privacy:
        Claim: a `Right` from `debit` exists only if its loss was admitted by the dataset's filter (see
        `Budget`) and is durable: committed by the database with full sync, then anchored outside it. Whatever
        is killed whenever, what was released is on record. A receipt opens nothing (see `Right`).
        Conditions: the database keeps what it says it committed; key and anchor are kept from whoever can
        write to the database.
    """

    def __init__(self, ledger: Counter, analyst: str, *, closes: bool = False) -> None:
        """The analysts' side of a ledger, for one of them.

        Args:
            ledger: The steward's.
            analyst: In whose name it pays.
            closes: Whether closing this closes the ledger: where nobody else has it.

        Raises:
            AccessDenied: if the ledger is itself an analyst's counter.
        """
        if ledger.analyst is not None:
            raise AccessDenied(
                "Only the steward can let an analyst in; this session belongs to an analyst. Ask the steward."
            )
        self._begin(ledger._journal, text(analyst, "analyst"), closes=closes)

    def _begin(self, journal: Journal, analyst: str | None, *, closes: bool) -> None:
        self._held, self._analyst, self._closes, self._closed = journal, analyst, closes, False

    @property
    def analyst(self) -> str | None:
        """In whose name it pays; None: in any, as the steward's ledger does."""
        return self._analyst

    def whose(self, analyst: str | None = None) -> str | None:
        """In whose name a question that names this analyst, or nobody, is paid here.

        Raises:
            AccessDenied: if that is not this counter's analyst.
        """
        own = self._analyst
        if own is not None and analyst is not None and alike(text(analyst, "analyst")) != alike(own):
            raise AccessDenied(
                f"This session asks in the name of {own!r} and in no other: open one for each analyst."
            )
        return analyst if own is None else own

    # ── reading

    def end(self) -> Mark:
        """The last receipt: while it is the last, nothing more is spent, decided or on record."""
        with self._journal.reading() as book:
            return book.head

    def datasets(self) -> list[Dataset]:
        """All datasets, in the order of their registration."""
        with self._journal.reading() as book:
            return [account.dataset() for account in book.accounts.values()]

    def balance(
        self, dataset: str, analyst: str | None = None, *, window: Windows | str | date | None = None
    ) -> Balance:
        """What is spent and left of a dataset's budget, or of one analyst's share of it.

        Args:
            dataset: its name.
            analyst: whose share; None: everybody's.
            window: where the budget is for each window of time, of which: its name ("2026-03"), one of its
                days, or of several the one with the least left. None: the one that it is now.

        Raises:
            AccessDenied: by an analyst's counter, for somebody else's share.
            InvalidParameter: for a window that is none, or of a budget for all time.
        """
        asked = None if analyst is None else self.whose(analyst)
        with self._journal.reading() as book:
            account = account_of(book, dataset)
            who = analyst_of(asked, account)
            until, debits, at = book.number, account.debits, window_shown(account, who, window)
            name, reads = account.name, frozenset(account.seat(who).reads)  # as they are now
            return balance_of(account, who, lambda: self._losses(name, who, until, debits, reads, at), at)

    def spare(
        self,
        dataset: str,
        *,
        finds: bool = False,
        analyst: str | None = None,
        windows: Windows | None = None,
    ) -> Spare:
        """What a question takes of delta where it names none, by what is left of the budget and the limit.

        Args:
            dataset: its name.
            finds: whether the question looks for groups that are not public.
            analyst: who asks; None is the counter's own analyst.
            windows: which windows it reads, where the budget is for each.
        """
        payer = self.whose(analyst)
        with self._journal.reading() as book:
            account = account_of(book, dataset)
            return account.spare(analyst_of(payer, account), finds=finds, windows=windows)

    def is_open(self, dataset: str, analyst: str | None = None) -> bool:
        """Whether a dataset's budget is open, and this analyst may ask."""
        payer = self.whose(analyst)
        with self._journal.reading() as book:
            account = account_of(book, dataset)
            return may_ask(account, analyst_of(payer, account))

    def _refuse_closed(self, dataset: str, analyst: str | None) -> None:
        """Refuses whoever may no longer ask, and says why."""
        payer = self.whose(analyst)
        with self._journal.reading() as book:
            account = account_of(book, dataset)
            account.refuse_closed(analyst_of(payer, account))

    def entries(
        self,
        dataset: str | None = None,
        *,
        analyst: str | None = None,
        kind: Kind | None = None,
        after: int = 0,
        before: int | None = None,
        newest: bool = False,
    ) -> Iterator[Receipt]:
        """All receipts in order, or those of one dataset or analyst.

        An analyst's counter leaves out others' limits and accounts.

        Args:
            dataset: only those of this one.
            analyst: only those in this name, however it is spelled; others are not read.
            kind: of these, only what happened so; needs a dataset or an analyst.
            after: only those with larger numbers.
            before: only those with smaller numbers.
            newest: whether the newest come first.
        """
        wanted = None if dataset is None else text(dataset, "dataset")
        whose = None if analyst is None else text(analyst, "analyst")
        if kind is not None and wanted is None and whose is None:
            raise InvalidParameter("Receipts of one kind are listed for one dataset or analyst: say which.")
        with self._journal.reading() as book:
            until = book.number
        if before is not None:
            until = min(until, as_integer(before, "before", least=0) - 1)
        for row in self._journal.rows(
            until,
            dataset=wanted,
            analyst=whose,
            kind=kind,
            after=as_integer(after, "after", least=0),
            newest=newest,
        ):
            if self._shows(row):
                yield Receipt.of(row)

    def _shows(self, row: Row) -> bool:
        others = self._analyst is not None and alike(row.analyst or "") != alike(self._analyst)
        return not (others and row.kind in ("limit", "revoke", "access"))

    def export(self) -> list[dict[str, Any]]:
        """All receipts as plain data."""
        return [receipt.to_dict() for receipt in self.entries()]

    def recall(
        self, dataset: str, fingerprint: str, analyst: str | None = None
    ) -> list[tuple[Receipt, bytes]]:
        """Earlier answers to a question, newest first: the receipt of each debit and what was recorded.

        For an analyst those that cost them nothing more: their own, what was given to all, and what counts
        toward their limit already (see `count_read`). The steward's ledger, asked in no name, gives all.

        Raises:
            AccessDenied: by an analyst's counter, if the budget is closed or the analyst revoked.
        """
        return self._recall(dataset, fingerprint, analyst, others=False)

    def given(self, dataset: str) -> frozenset[int]:
        """The numbers of the debits whose answers the steward gave to all."""
        with self._journal.reading() as book:
            return frozenset(account_of(book, dataset).given)

    def count_read(self, receipt: Receipt, analyst: str | None = None) -> Mapping[str, Fraction]:
        """Counts another's answer toward the reader's limit, durably and once; from then on `recall` has it.

        Args:
            receipt: of the debit that paid for it.
            analyst: who reads; None is the counter's own analyst.

        Returns:
            What was counted now, in the budget's units; nothing for an answer that was open to the reader.

        Raises:
            BudgetExceeded: if it is not within the reader's limit; nothing was counted.
            AccessDenied: if the budget is closed or the reader revoked.
        """
        reader = self.whose(analyst)
        with self._journal.writing() as draft:
            debit = self._journal.row(receipt.number)
            if debit.mac.hex() != receipt.mac or debit.kind != "debit":
                raise LedgerMismatch("This receipt is not of a debit on this ledger.")
            account = account_of(draft.book, debit.dataset)
            return count_read(draft, account, analyst_of(reader, account), debit)

    def _recall(
        self, dataset: str, fingerprint: str, analyst: str | None, *, others: bool, asks: bool = False
    ) -> list[tuple[Receipt, bytes]]:
        """The answers that are open to a reader, or those that are not.

        Args:
            dataset: its name.
            fingerprint: of the question.
            analyst: who reads.
            others: whether those that are not open to them.
            asks: whether to refuse who may no longer ask, as a counter always does.
        """
        reader = self.whose(analyst)
        if others and reader is None:
            return []  # all are open to nobody in particular
        journal = self._journal
        with journal.reading() as book:
            account = account_of(book, dataset)
            if asks or self._analyst is not None:
                account.refuse_closed(analyst_of(reader, account))
            return [
                (Receipt.of(answer.debit), journal.kept.payload(answer))
                for answer in journal.kept.about(account.name, text(fingerprint, "fingerprint"))
                if is_open_to(account, reader, answer.debit) != others
            ]

    def verify(
        self, *, progress: Callable[[float, str], None] | None = None, beside: bool = False
    ) -> Verification:
        """Reads the whole ledger again: every mac, every loss through its gate, every answer, the anchor.

        Args:
            progress: is told how much is done, from 0 to 1, and what is being done.
            beside: while other threads go on to pay and read, over a connection of its own; a ledger in
                memory has but one, and they wait.
        """
        journal = self._journal
        with journal.still() as end:
            own = journal.store.another() if beside else None
            parts = journal.chain, journal.anchor, journal.checkpoint
            if own is None:
                return audit(journal.store, *parts, known=end, progress=progress)
        try:
            return audit(own, *parts, known=end, progress=progress)
        finally:
            own.close()

    # ── paying

    def debit(
        self,
        dataset: str,
        loss: PrivacyLoss,
        *,
        fingerprint: str,
        analyst: str | None = None,
        memo: Memo | Mapping[str, Any] | None = None,
        reads: Iterable[str] | None = None,
        resumable: bool = False,
        points: int = 0,
        known: Dataset | None = None,
        windows: Windows | None = None,
    ) -> Right:
        """Pays for a release, and gives the right to read for it. The debit is durable before it returns.

        Args:
            dataset: its name.
            loss: what the release costs.
            fingerprint: of the question, under which `recall` finds its answer.
            analyst: who asks; None is the counter's own analyst, and on a `Ledger` nobody in particular, whom
                only the dataset's budget limits.
            memo: what it is for, in public words, such as the query, or other public facts; never a value
                from the data.
            reads: the fingerprints of what it lets this process read, once each; by default the question's.
            resumable: whether a fit is paid for that takes blocks (`Right.block`), also in another process
                after this one has died. Without a block nothing is read for it.
            points: of how many points a series is paid for (see `series`); 0: it is none. Each is read for by
                itself.
            known: the dataset as it was when the loss was priced; None: whatever is on record will do.
            windows: where the budget is for each window of time, those whose rows may be read: it is charged
                in each of them, and no row of another is read (`Vault`). Not kept where it is for all time.

        Raises:
            BudgetExceeded: if it does not fit. Nothing was spent.
            AccessDenied: if the budget is closed or the analyst revoked, or another one than this counter's.
                Nothing was spent.
            UnsupportedLoss: if the loss is not for the neighbours that the dataset's unit has.
            LedgerMismatch: if the dataset was declared anew since it was `known`, or the budget is for each
                window and no windows are named. Nothing was spent.
        """
        if not isinstance(loss, PrivacyLoss):
            raise InvalidParameter(f"A debit takes a loss, not {type(loss).__name__}; pass mechanism.loss.")
        payer, question = self.whose(analyst), text(fingerprint, "fingerprint")
        noted = memo.to_dict() if isinstance(memo, Memo) else memo or {}
        facts, written = plain(noted, "memo"), loss.to_dict()
        with self._journal.writing() as draft:
            account = account_of(draft.book, dataset)
            who = analyst_of(payer, account)
            if known is not None:
                account.refuse_stale(known)
            account.refuse_others(loss)
            paid = account.priced(loss, who, windows)
            units = account.cap.units
            draft.add(
                "debit",
                account.name,
                analyst=who,
                fingerprint=question,
                loss=written,
                price=named(units, paid.price),
                totals=named(units, paid.totals),
                analyst_totals=named(units, paid.analyst_totals),
                adjacency=paid.adjacency,
                memo=facts,
                **({"resumable": True} if resumable else {}),
                **({"points": as_integer(points, "points")} if points else {}),
                **windows_facts(paid.windows),
            )
        if points:
            return granted(Receipt.of(draft.rows[0]), ())
        if resumable:
            return granted(Receipt.of(draft.rows[0]), (), blocks=self._blocks)
        return granted(Receipt.of(draft.rows[0]), (question,) if reads is None else reads)

    def refuse_several(
        self,
        dataset: str,
        losses: Sequence[Asked | tuple[PrivacyLoss, bool] | tuple[PrivacyLoss, bool, Windows | None]],
        analyst: str | None = None,
    ) -> None:
        """Refuses losses that the gates would not all admit in a row; debits and counts nothing.

        For what pays more than once: so that no part of it is paid where the rest would be refused. It keeps
        nothing back: what others spend meanwhile can still be in the way.

        Args:
            dataset: its name.
            losses: in their order, each with whether the dataset pays for it, too, as `debit` does; otherwise
                it is another's answer, as `count_read` takes it; and with the windows that it reads, where
                the budget is for each.
            analyst: who asks; None is the counter's own analyst.

        Raises:
            BudgetExceeded: if they do not fit.
            AccessDenied: if the budget is closed or the analyst revoked.
            UnsupportedLoss: if one is not for these neighbours, or has nothing that this budget adds up.
        """
        payer = self.whose(analyst)
        with self._journal.reading() as book:
            account = account_of(book, dataset)
            account.refuse_several([Asked(*one) for one in losses], analyst_of(payer, account))

    def record(self, right: Right, payload: bytes) -> None:
        """Keeps the answer that a debit paid for, so that `recall` finds it. Once for each debit.

        It is there for every process when this returns, and synced to disk with the next receipt that is not
        of an answer: a power cut before may take the answer, never the debit.
        """
        if not isinstance(right, Right):
            raise InvalidParameter("record takes the right that debit gave.")
        right.check_process()
        receipt = right.receipt
        if not isinstance(payload, bytes) or len(payload) > _LARGEST_PAYLOAD:
            raise InvalidParameter("payload must be bytes, at most a gibibyte.")
        with self._journal.writing(answer=True) as draft:
            row = self._journal.row(receipt.number)
            if row.mac.hex() != receipt.mac:
                raise LedgerMismatch("This receipt is not from this ledger.")
            if self._journal.store.payload(row.number) is not None:
                raise Spent(f"The answer of receipt {row.number} is already recorded.")
            self._journal.store.keep(row.number, payload)
            draft.add(
                "release",
                row.dataset,
                analyst=row.analyst,
                fingerprint=row.fingerprint,
                debit=row.number,
                digest=hashlib.sha256(payload).hexdigest(),
                size=len(payload),
            )

    def resume(self, dataset: str, fingerprint: str, analyst: str | None = None) -> Right | None:
        """The right to go on with a fit that this analyst paid for and did not end, with something left."""
        payer, question = self.whose(analyst), text(fingerprint, "fingerprint")
        with self._journal.reading() as book:
            account = account_of(book, dataset)
            debit = self._blocks.unfinished(account.name, question, analyst_of(payer, account))
        return None if debit is None else granted(debit, (), blocks=self._blocks)

    @property
    def series(self) -> SeriesOf:
        """The series that were paid for in advance: its analyst's, or on the steward's ledger all."""
        return SeriesOf(self._journal, self._analyst)

    @contextlib.contextmanager
    def turn(self, dataset: str, fingerprint: str) -> Iterator[None]:
        """One thread of one process at a time for a question: the others wait, and then find its answer.

        A process that dies gives its turn back, whatever it has paid.
        """
        journal = self._journal
        names = (journal.chain.ledger, text(dataset, "dataset"), text(fingerprint, "fingerprint"))
        with turn(names, journal.claim, journal.give_back):
            yield

    def register(
        self,
        name: str,
        declaration: Mapping[str, Any],
        budget: Budget | None,
        *,
        chosen_by: str | None = None,
    ) -> Dataset:
        """The dataset of this name: as it is on record, or, by a `Ledger`, new with this budget.

        Args:
            name: its identity, for good; not that of a file, a view or a content.
            declaration: "unit", "version" and everything else that the steward promises, as plain data.
            budget: None means the one on record.
            chosen_by: the name of the digest that decides whose rows and groups count; once something was
                spent, the one on record stays.

        Until the first debit whatever is declared last is on record: unit, bounds and budget. After it they
        stay, but for the version.

        Raises:
            LedgerMismatch: if something was spent, and the budget, the unit or the bounds are others than on
                record.
            AccessDenied: by an analyst's counter, if it is not on record, or declared otherwise there.
        """
        dataset, wanted = text(name, "name"), declared(declaration)
        if budget is not None and not isinstance(budget, Budget):
            raise InvalidParameter(
                f"budget must be a Budget such as sf.Budget(epsilon=1), not {type(budget).__name__}."
            )
        with self._journal.reading() as book:
            known = book.accounts.get(dataset)
            chooses = chosen_by if self._analyst is None else None
            if known is not None and not changes(known, wanted, budget, chooses):
                return known.dataset()
        return self._decide(dataset, wanted, budget, chosen_by)

    def _decide(
        self, dataset: str, wanted: dict[str, Any], budget: Budget | None, chosen_by: str | None
    ) -> Dataset:
        """Puts on record what is not, or not so: nothing that an analyst does."""
        del wanted, budget, chosen_by
        with self._journal.reading() as book:
            if dataset not in book.accounts:
                raise AccessDenied(
                    f"The ledger has no budget for {dataset!r}, and only the steward can open one; this "
                    "session belongs to an analyst. Open a session without analyst= first."
                )
        raise AccessDenied(
            f"{dataset!r} is on record with another version, schema, bounds, unit or budget, which only the "
            "steward can change; this session belongs to an analyst."
        )

    # ── how it is done

    def __repr__(self) -> str:
        """Such as `<Ledger visits.ledger: visits, sales>`, or `<Counter visits.ledger, of 'ada': visits>`."""
        whose = "" if self._analyst is None else f", of {self._analyst!r}"
        try:
            holds = ", ".join(dataset.name for dataset in self.datasets()) or "nothing on record"
        except SfumatoError:
            holds = "closed, or not to be read"
        return f"<{type(self).__name__} {self._held.store.name.removeprefix('The ledger ')}{whose}: {holds}>"

    def close(self) -> None:
        """Ends this counter, and lets go of the database where nobody else has it; safe to call twice."""
        self._closed = True
        if self._closes:
            self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def _journal(self) -> Journal:
        """The journal, while this is open."""
        if self._closed:
            raise LedgerUnusable("This ledger is closed: open it again.")
        return self._held

    @property
    def _blocks(self) -> BlocksOf:
        return BlocksOf(self._journal)

    def _losses(
        self,
        dataset: str,
        analyst: str | None,
        until: int,
        debits: int,
        reads: Set[int],
        window: Windows | None,
    ) -> list[tuple[PrivacyLoss, int]]:
        """The losses that an analyst, or everybody, had paid for or read up to a receipt, and how often.

        Where the budget is for each window, those of one of them.
        """
        whose = None if analyst is None else alike(analyst)
        counts = Multiset(
            loss_text(row)
            for row in self._journal.debits(dataset, until, debits)
            if (whose is None or whose == alike(row.analyst or "") or row.number in reads)
            and (window is None or counts_in(row, window))
        )
        return [(stored_loss(written), count) for written, count in counts.items()]
