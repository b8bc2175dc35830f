"""`Account`: one dataset's budget, what is spent of it and who asks; whether its gates admit a loss."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import AccessDenied, BudgetExceeded, LedgerMismatch, LedgerUnusable, UnsupportedLoss
from sfumato.ledger.budget import Budget, Totals
from sfumato.ledger.gates import Asked, exceeded, parts_of, refuse_in_windows, sums_in
from sfumato.ledger.names import alike, new_name
from sfumato.ledger.receipt import Dataset
from sfumato.ledger.seat import Seat, together, totals_in
from sfumato.ledger.spans import Piece, Spans, added
from sfumato.ledger.spare import Spare, spared
from sfumato.loss import PrivacyLoss
from sfumato.schema import Windows
from sfumato.schema.windows import span_of

__all__ = ["Account", "Charge"]


@dataclass(frozen=True, slots=True)
class Charge:
    """A loss that both gates admit: its price and the sums once it is paid."""

    price: Totals
    totals: Totals  # where the budget is for each window, of the window in which each is the largest
    analyst_totals: Totals
    adjacency: str | None
    windows: Windows | None  # in which it is charged, where the budget is for each


@dataclass(slots=True)
class Account:
    """One dataset: its budget and declaration in force, the last debit, and who sits at it."""

    id: str
    name: str
    salt: bytes
    declaration: dict[str, Any]
    chosen_by: str | None = None
    since: int = 0  # the receipt that last declared or opened it; versions and raised budgets do not count
    budget: Budget | None = None
    closed: bool = False
    adopted: bool = False  # taken over without its anchor: debits may have been cut off
    last: int = 0  # the last debit
    sums: Mapping[str, str] = field(default_factory=dict)  # what is spent in all, as that debit has it
    adjacency: str | None = None  # the neighbours that the losses so far hold for, if one of them says so
    debits: int = 0
    given: set[int] = field(default_factory=set)  # debits whose answers the steward gave to all
    taken: dict[int, Fraction] = field(default_factory=dict)  # the part that blocks took of each debit
    lengths: dict[int, int] = field(default_factory=dict)  # how many points each series has, by its debit
    seats: dict[str, Seat] = field(default_factory=dict)  # by each spelling on record
    spans: Spans = field(default_factory=Spans)  # what is spent in each window, where the budget is for each
    _spellings: dict[str, list[str]] = field(default_factory=dict)

    @property
    def cap(self) -> Budget:
        """The budget in force."""
        if self.budget is None:
            raise LedgerUnusable(f"The dataset {self.name!r} has no budget on record: restore the ledger.")
        return self.budget

    @property
    def bound(self) -> bool:
        """Whether unit, bounds and budget are fixed: once something was, or may have been, spent.

        A database that is older than its anchor does not open, so that one which was put back to before the
        first debit is here only if it was adopted.
        """
        return self.debits > 0 or self.closed or self.adopted

    @property
    def totals(self) -> Totals:
        """What is spent in all; where the budget is for each window, in one that nobody has named yet."""
        return totals_in(self.sums, self.spans, self.cap)

    def spent(self, windows: Windows | None) -> list[Piece]:
        """Where most is spent, of these windows if the budget is for each; else what is spent in all."""
        if self.cap.each is None:
            return [Piece(None, self.totals, self.debits)]
        return self.spans.fullest(windows)

    def charged_in(self, windows: Windows | None) -> Windows | None:
        """The windows that a loss is charged in; None where the budget is for all time.

        Raises:
            LedgerMismatch: if the budget is for each window, and none are named.
        """
        each = self.cap.each
        if each is None:
            return None
        if windows is None or windows.each != each:
            raise LedgerMismatch(
                f"The budget of {self.name!r} is for {self.cap.span}, and this does not say of which "
                f"{span_of(each) if isinstance(each, int) else f'{each}s'} it reads rows; nothing was spent. "
                "Ask in SQL, or with s.table, and name dates: WHERE day >= DATE '2026-03-01' AND "
                "day < DATE '2026-04-01'."
            )
        return windows

    def seat(self, analyst: str | None) -> Seat:
        """Where an analyst sits, however the name is spelled; nobody has no limit of their own."""
        known = [] if analyst is None else self._spellings.get(alike(analyst), [])
        return together([self.seats[name] for name in known]) if known else _NOBODY

    def own(self, spelling: str | None) -> Seat:
        """What is on record under this very spelling."""
        return _NOBODY if spelling is None else self.seats.get(spelling, _NOBODY)

    def take_seat(self, spelling: str) -> Seat:
        """The seat of this very spelling, made if there is none."""
        if spelling not in self.seats:
            self.sit(spelling, Seat())
        return self.seats[spelling]

    def sit(self, spelling: str, seat: Seat) -> None:
        """Gives a spelling that has none yet a seat."""
        self.seats[spelling] = seat
        self._spellings.setdefault(alike(spelling), []).append(spelling)

    def spelling(self, analyst: str) -> str:
        """The analyst's name as it is on record; a new one is checked."""
        known = self._spellings.get(alike(analyst), [])
        if known:
            return analyst if analyst in known else known[0]
        return new_name(analyst, "analyst")

    def everybody(self) -> dict[str, Seat]:
        """All analysts by `alike` of their names."""
        return {key: together([self.seats[name] for name in known]) for key, known in self._spellings.items()}

    def dataset(self) -> Dataset:
        """The account as a value."""
        declared = copy.deepcopy(self.declaration)  # whoever is given it cannot change what is on record
        return Dataset(
            self.id, self.name, self.salt, self.cap, declared, self.closed, self.chosen_by, self.since
        )

    def refuse_stale(self, known: Dataset) -> None:
        """Refuses who priced a loss for a declaration or a budget that are no longer those on record.

        Privacy:
            Claim: what is debited was priced for the unit that is on record at that moment. Asked within the
            debit's transaction, so that of several who declare a dataset differently before its first debit
            one can pay, and the others are refused from then on.
        """
        if (known.id, known.since) != (self.id, self.since):
            raise LedgerMismatch(
                f"{self.name!r} was declared otherwise or given another budget since this session was "
                f"opened (receipt {self.since}); nothing was spent. Open the session again."
            )

    def refuse_others(self, loss: PrivacyLoss) -> None:
        """Refuses a loss that holds for other neighbours than those that the dataset's unit was declared for.

        Asked where a debit is made, not where an old one is read again: what was paid stays paid.
        """
        unit = self.declaration.get("unit")
        declared = unit.get("adjacency") if isinstance(unit, dict) else None
        own = loss.adjacency
        if own is not None and declared not in (None, own):
            raise UnsupportedLoss(
                f"This loss holds for {own} neighbours and {self.name!r} protects {declared} neighbours: "
                "restate the loss; nothing was spent."
            )

    def refuse_closed(self, analyst: str | None) -> None:
        """Refuses whoever may no longer ask.

        Raises:
            AccessDenied: if the budget is closed or the analyst revoked.
        """
        if self.closed:
            raise AccessDenied(
                f"The budget of {self.name!r} is closed: nothing more can be asked and nothing was spent."
            )
        if self.seat(analyst).revoked:
            raise AccessDenied(
                f"{analyst!r} may no longer ask about {self.name!r}; nothing was spent. A new limit from the "
                "steward would allow it again."
            )

    def priced(self, loss: PrivacyLoss, analyst: str | None, windows: Windows | None = None) -> Charge:
        """What this loss costs here, once the dataset's gate and the analyst's have admitted it.

        Args:
            loss: what is asked for.
            analyst: who asks, in a spelling on record.
            windows: of which windows rows are read, where the budget is for each.

        Raises:
            AccessDenied: if the budget is closed or the analyst revoked.
            BudgetExceeded: if it does not fit; nothing was spent.
            LedgerMismatch: if it names no windows, and the budget is for each.

        Privacy:
            Claim: both gates are filters resumed from the exact sums of every loss admitted so far, so that
            all that is admitted stays within the dataset's budget, whoever asks. Where the budget is for each
            window, every window has such gates with sums of its own, and a loss is admitted by all that it
            names or by none: it is enough to ask those that no other one is as full as, since a gate that
            admits a loss also admits it where less is spent. Source: see `Budget`.
        """
        seat, paid = self.seat(analyst), self.charged_in(windows)
        self.refuse_closed(analyst)
        price = self.cap.totals(self.cap.filter().price(loss))
        later = self._after(loss, price, paid)
        own = f"the limit of {analyst!r} on {self.name!r}"
        self._refuse_beyond(seat, loss, paid, lambda at, spent: exceeded(own + at, seat.limit, price, spent))
        return Charge(
            price=price,
            totals=self._largest(self.spent(paid), price),
            analyst_totals=self._with(analyst, price, paid),
            adjacency=later,
            windows=paid,
        )

    def _after(self, loss: PrivacyLoss, price: Totals, windows: Windows | None) -> str | None:
        """The neighbours that all losses hold for once the dataset's gates have admitted this one."""
        adjacency = self.adjacency
        for piece in self.spent(windows):
            spent = sums_in(piece, self.cap)
            try:
                adjacency = self.cap.filter(spent, self.adjacency).after(loss).adjacency
            except BudgetExceeded:
                whose = f"the budget of {self.name!r}{_in(windows, piece)}"
                raise exceeded(whose, self.cap, price, spent) from None
        return adjacency

    def spare(self, analyst: str | None, *, finds: bool, windows: Windows | None = None) -> Spare:
        """What a question takes of delta where it names none; never more than both gates would admit now.

        Args:
            analyst: who asks, in a spelling on record.
            finds: whether it looks for groups, for which accountants that add up ρ have a delta aside.
            windows: of which windows it reads rows, where the budget is for each; None: of one that nobody
                has asked about.
        """
        seat, adds = self.seat(analyst), self.cap.accountant == "basic"
        told = [] if adds else [Spare(self.cap.hundredth, f"a hundredth of {_BUDGETS}")]
        fresh = self.cap.each is not None and windows is None
        gates = [(_BUDGETS, self.cap, self.totals if fresh else self._most(self.spent(windows)))]
        if seat.limit is not None:
            own = self.totals if fresh else self._most(seat.spent(self.cap, windows))
            gates.append(("your limit's", seat.limit, own))
        for whose, budget, spent in gates:
            if adds or (finds and "delta" in budget.units):
                part = whose if adds else f"what is aside of {whose}"
                told.append(spared(budget.limits[1], budget.limits[1] - spent[1], part))
        return min(told, key=lambda spare: spare.delta)  # the first of equals is the dataset's

    def refuse_several(self, losses: Sequence[Asked], analyst: str | None) -> None:
        """Refuses losses that could not all be admitted, one after the other; changes nothing.

        Args:
            losses: in their order; one that the dataset does not pay for is another's answer, which only
                counts toward the analyst's limit.
            analyst: who asks, in a spelling on record.

        Raises:
            AccessDenied: if the budget is closed or the analyst revoked.
            BudgetExceeded: if they do not fit.
            LedgerMismatch: if one names no windows, and the budget is for each.
        """
        self.refuse_closed(analyst)
        seat = self.seat(analyst)
        named = [one._replace(windows=self.charged_in(one.windows)) for one in losses]
        paid = [one for one in named if one.pays]
        for one in named:
            self.refuse_others(one.loss)
        whose, own = f"the budget of {self.name!r}", f"the limit of {analyst!r} on {self.name!r}"
        if self.cap.each is not None:
            refuse_in_windows(whose, self.cap, self.spans, paid, self.adjacency)
            if seat.limit is not None:
                refuse_in_windows(own, seat.limit, seat.spans, named, self.adjacency)
            return
        gates = [(whose, self.cap, self.totals, paid)]
        if seat.limit is not None:
            gates.append((own, seat.limit, seat.totals(self.cap), named))
        for told, budget, spent, asked in gates:
            gate = budget.filter(spent, self.adjacency)
            prices = [budget.totals(gate.price(one.loss)) for one in asked]
            try:
                for one in asked:
                    gate = gate.after(one.loss)
            except BudgetExceeded:
                price = tuple(sum(parts, Fraction(0)) for parts in zip(*prices, strict=True))
                if budget is seat.limit and not named[-1].pays:
                    raise self._beyond(seat, price, "", spent) from None
                raise exceeded(told, budget, price, spent) from None

    def counted(
        self, loss: PrivacyLoss, analyst: str, windows: Windows | None = None
    ) -> tuple[Totals, Totals]:
        """What another's answer counts for this analyst, and their sums with it.

        Args:
            loss: what the answer cost.
            analyst: who reads it.
            windows: in which it was paid; None: in all there are.

        Raises:
            BudgetExceeded: if it is not within their limit.
        """
        seat, price = self.seat(analyst), self.cap.totals(self.cap.filter().price(loss))
        self._refuse_beyond(seat, loss, windows, lambda at, spent: self._beyond(seat, price, at, spent))
        return price, self._with(analyst, price, windows)

    def _beyond(self, seat: Seat, price: Totals, at: str, spent: Totals) -> BudgetExceeded:
        return BudgetExceeded(
            "Somebody else's answer to this question is on record, and reading it counts toward your own "
            f"limit on {self.name!r}{at}: {parts_of(seat.limit, price, spent)}. Nothing was "
            "spent; ask the steward for a larger limit, or to give this answer to all."
        )

    def _refuse_beyond(
        self,
        seat: Seat,
        loss: PrivacyLoss,
        windows: Windows | None,
        refusal: Callable[[str, Totals], BudgetExceeded],
    ) -> None:
        """Refuses what is not within a seat's limit, in some window."""
        if seat.limit is None:
            return
        for piece in seat.spent(self.cap, windows):
            spent = sums_in(piece, self.cap)
            try:
                seat.limit.filter(spent, self.adjacency).after(loss)
            except BudgetExceeded:
                raise refusal(_in(windows, piece), spent) from None

    def _with(self, analyst: str | None, price: Totals, windows: Windows | None) -> Totals:
        """The sums of this very spelling with a price added."""
        return self._largest(self.own(analyst).spent(self.cap, windows), price)

    def _most(self, pieces: Sequence[Piece]) -> Totals:
        """The largest of each sum."""
        return tuple(map(max, zip(*(sums_in(piece, self.cap) for piece in pieces), strict=True)))

    def _largest(self, pieces: Sequence[Piece], price: Totals) -> Totals:
        """The largest of each sum once a price is added."""
        return added(self._most(pieces), price)


def _in(windows: Windows | None, piece: Piece) -> str:
    """In which window something does not fit, in words."""
    if windows is None:
        return ""
    first = windows.first if piece.first is None else piece.first
    return f" in {Windows(windows.each, first, first)}"


_NOBODY = Seat()
_BUDGETS = "the budget's"
