"""`Steward`: budgets raised and closed, limits set and taken back, each with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from sfumato.errors import AccessDenied, InvalidParameter, LedgerMismatch
from sfumato.ledger.allotment import allot, latest, take_back
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import text
from sfumato.ledger.counter import Counter
from sfumato.ledger.gates import refuse_unfit
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.receipt import Receipt
from sfumato.ledger.rules import (
    Draft,
    account_of,
    comparable,
    declared,
    open_account,
    reason_of,
    same_unit,
    within_cap,
)
from sfumato.ledger.sharing import give
from sfumato.numeric.exact import as_integer

__all__ = ["Steward"]


class Steward:
    """What only a steward may do: `Steward(ledger).limit("visits", "ada", Budget(1), reason="a project")`.

    It holds the ledger; the ledger knows nothing of it. So an act is in nobody's hands who was not given a
    `Ledger`, and what an analyst is given is a `Counter`, which is refused here.
    """

    __slots__ = ("_by", "_ledger")

    def __init__(self, ledger: Counter, *, by: str | None = None) -> None:
        """The acts on this ledger.

        Args:
            ledger: The steward's.
            by: Who acts, by name, to be on each receipt; None: somebody who has the machine itself.

        Raises:
            AccessDenied: if it is an analyst's counter.
        """
        if not isinstance(ledger, Counter):
            raise InvalidParameter(f"A steward acts on a Ledger, not {type(ledger).__name__}.")
        if not isinstance(ledger, Ledger):
            raise AccessDenied(
                "Only the steward can do this; this session belongs to an analyst. Ask the steward."
            )
        self._ledger, self._by = ledger, None if by is None else text(by, "by")

    @contextmanager
    def _writing(self) -> Iterator[Draft]:
        with self._ledger._journal.writing() as draft:
            draft.by = self._by
            yield draft

    def __repr__(self) -> str:
        return repr(self._ledger).replace("<Ledger", "<Steward of the ledger", 1)

    def raise_budget(self, dataset: str, budget: Budget, *, reason: str) -> Receipt:
        """Puts a larger budget of the same accountant in force; what was spent stays spent.

        Before the first debit it may be a smaller one, too.

        Privacy:
            Claim: from then on the larger (ε, δ) holds for everything, earlier answers included. Condition:
            the steward decides it for reasons of their own.
        """
        with self._writing() as draft:
            account = open_account(draft.book, dataset)
            wanted = comparable(budget, account)
            lower = any(new < old for new, old in zip(wanted.limits, account.cap.limits, strict=True))
            if lower and account.bound:
                raise LedgerMismatch(
                    f"Once something was spent a budget can only be raised: {account.name!r} has "
                    f"{account.cap}. To stop spending, close it or limit the analysts."
                )
            draft.add("raise", account.name, budget=wanted.to_dict(), reason=reason_of(reason))
        return Receipt.of(draft.rows[0])

    def close_budget(self, dataset: str, *, reason: str) -> Receipt:
        """Closes a budget for good: what was released can be recalled, nothing more is admitted."""
        with self._writing() as draft:
            draft.add("close", open_account(draft.book, dataset).name, reason=reason_of(reason))
        return Receipt.of(draft.rows[0])

    def limit(self, dataset: str, analyst: str, budget: Budget, *, reason: str) -> Receipt:
        """Limits what one analyst may spend in all, within the dataset's budget; what they spent counts.

        A new limit replaces the old one, and lifts a revocation.
        """
        with self._writing() as draft:
            account = open_account(draft.book, dataset)
            wanted = within_cap(comparable(budget, account), account)
            draft.add(
                "limit",
                account.name,
                analyst=account.spelling(text(analyst, "analyst")),
                budget=wanted.to_dict(),
                reason=reason_of(reason),
            )
        return Receipt.of(draft.rows[0])

    def allot(self, dataset: str, limits: Mapping[str, Budget | None], *, reason: str) -> list[Receipt]:
        """Limits several analysts at once, all or none; `take_back` undoes it.

        None in place of a budget revokes: that analyst may ask nothing more. What the others may still spend
        fits together into what the dataset has left, less what earlier allotments keep for analysts who are
        not named here.
        """
        why = reason_of(reason)
        with self._writing() as draft:
            allot(draft, open_account(draft.book, dataset), limits, why)
        return [Receipt.of(row) for row in draft.rows]

    def take_back(self, dataset: str, *, reason: str) -> list[Receipt]:
        """Undoes the last allotment: the limits before it are in force again, and what was spent stays spent.

        Raises:
            LedgerMismatch: if there is none, or one of its limits was changed since.
        """
        why = reason_of(reason)
        with self._writing() as draft:
            account = open_account(draft.book, dataset)
            self._ledger._journal.refuse_edits()  # old receipts decide which limits are put back
            take_back(draft, account, latest(self._ledger._journal.store, account.name), why)
        return [Receipt.of(row) for row in draft.rows]

    def revoke(self, dataset: str, analyst: str, *, reason: str, force: bool = False) -> Receipt:
        """Lets an analyst ask nothing more, until a new limit is set.

        Args:
            dataset: its name.
            analyst: whom.
            reason: why.
            force: also for a name that the ledger has never seen and that may be a slip for another.

        Raises:
            InvalidParameter: for such a name.
        """
        with self._writing() as draft:
            account = account_of(draft.book, dataset)
            who = account.spelling(text(analyst, "analyst"))
            near = [] if who in account.seats or force else get_close_matches(who, account.seats, n=1)
            if near:
                raise InvalidParameter(
                    f"{dataset!r} has never seen {who[:40]!r}. Did you mean {near[0]!r}? To shut that name "
                    "out all the same, add force=True."
                )
            draft.add("revoke", account.name, analyst=who, reason=reason_of(reason))
        return Receipt.of(draft.rows[0])

    def give(
        self, dataset: str, receipts: Receipt | int | Iterable[Receipt | int], *, reason: str
    ) -> list[Receipt]:
        """Gives answers on record to all: reading them counts toward nobody's limit from now on.

        Args:
            dataset: its name.
            receipts: The debits that paid for them (`release.receipt`), or their numbers.
            reason: why.

        Raises:
            LedgerMismatch: if one is not a debit of this dataset.
        """
        several = [receipts] if isinstance(receipts, Receipt | int) else list(receipts)
        numbers = [one.number if isinstance(one, Receipt) else as_integer(one, "receipts") for one in several]
        why = reason_of(reason)
        with self._writing() as draft:
            account = account_of(draft.book, dataset)
            for number in numbers:
                if not 1 <= number <= draft.book.number:
                    raise LedgerMismatch(f"There is no receipt {number}: sfumato ledger show lists them.")
            give(draft, account, map(self._ledger._journal.row, dict.fromkeys(numbers)), why)
        return [Receipt.of(row) for row in draft.rows]

    def redeclare(self, dataset: str, declaration: Mapping[str, Any], *, reason: str) -> Receipt:
        """Changes what is declared about a dataset, bounds included; its unit until something was spent."""
        wanted = declared(declaration)
        with self._writing() as draft:
            account = account_of(draft.book, dataset)
            same_unit(account, wanted)
            refuse_unfit(account.name, wanted, account.cap)
            draft.add("redeclare", account.name, declaration=wanted, reason=reason_of(reason))
        return Receipt.of(draft.rows[0])

    def adopted(self, *, reason: str) -> list[Receipt]:
        """Puts on record, at every dataset, that the steward took this ledger over without its anchor.

        See `adopt` of `open`: what was cut off before is not noticed.
        """
        why = reason_of(reason)
        with self._writing() as draft:
            for name in draft.book.accounts:
                draft.add("adopt", name, reason=why)
        return [Receipt.of(row) for row in draft.rows]

    def access(self, account: str, act: str, **facts: str) -> Receipt:
        """Puts on record what is done about an account of the server: nothing of any budget changes by it.

        Args:
            account: Whose.
            act: What is done, in a word or two.
            facts: What else there is to say, in public words.

        Raises:
            InvalidParameter: if nobody is named who does it.
        """
        if self._by is None:
            raise InvalidParameter("Say who acts on the account: Steward(ledger, by=NAME).")
        with self._writing() as draft:
            draft.add("access", "", analyst=text(account, "account"), act=text(act, "act"), **facts)
        return Receipt.of(draft.rows[0])
