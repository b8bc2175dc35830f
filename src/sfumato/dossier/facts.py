"""What is on record about one dataset: declared by the steward, or receipted by a ledger that verifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.catalog import Catalog, Role
from sfumato.errors import InvalidParameter, LedgerMismatch, LedgerTampered, SfumatoError
from sfumato.ledger.balance import Balance
from sfumato.ledger.budget import amount
from sfumato.ledger.rules import declared
from sfumato.loss import PrivacyLoss, compose
from sfumato.render import with_bar
from sfumato.schema import PrivacyUnit, PrivateTable, Windows
from sfumato.schema.windows import hull_of
from sfumato.session import Release, declaration_of
from sfumato.session.payload import Answer

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.ledger import Budget, Ledger, Receipt, Verification
    from sfumato.plan.prices.quoting import Quote
    from sfumato.session import Session

__all__ = ["Facts", "Paid", "facts", "foreseen", "many", "with_errors"]

_CONFIDENCE = 0.95
_NO_ACTS = frozenset({"debit", "release", "read", "block", "point", "register", "open", "version"})


@dataclass(frozen=True, slots=True)
class Paid:
    """One release that was paid for.

    Attributes:
        number: Of its receipt.
        time: When.
        analyst: Who asked, or None.
        question: The SQL, or what else was bought, in words; None where it was built in Python.
        mechanism: What drew the noise.
        epsilon: Its price; None where the receipt has it in another currency alone.
        delta: The other half of the price.
        errors: By column, the half-widths at 95 % confidence of the kept answer, from the narrowest to the
            widest; where it cannot be matched with its question any more, the half-width that is quoted, or
            words where that depends on the data. Empty where none was asked for.
        kept: Whether the answer is kept in the ledger.
        given: What was declared public and put in as it is; empty: nothing.
        state: Of a table that grows, the state that was read; empty: it has none.
        max_steps: Of a series, in how many steps a unit counts; None: in all in which it has rows.
    """

    number: int
    time: datetime
    analyst: str | None
    question: str | None
    mechanism: str
    epsilon: Fraction | None
    delta: Fraction | None
    errors: Mapping[str, str]
    kept: bool
    given: str = ""
    state: str = ""
    max_steps: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is on record about a dataset.

    Attributes:
        dataset: Its name.
        catalog: The steward's file.
        tables: Those that draw on its budget.
        unit: Whose privacy is protected.
        roles: By table and column.
        budget: As the ledger has it.
        balance: What is spent and left; where the budget is for each window of time, in the fullest of them.
        hindsight: The epsilon at the budget's delta had all of it been planned before the first answer.
        loss: Of all releases together, or of those in that window; None before the first.
        paid: The releases, oldest first.
        acts: The steward's acts that changed a budget or a declaration, oldest first.
        entries: How many receipts the ledger has in all; they verify. 0 where there is no ledger yet.
        head: The last link of its chain.
        begun: Whether the dataset is on record; before its first question all of this is the file's.
        windows: In how many windows of time something is paid, from the first to the last, where the budget
            is for each.
    """

    dataset: str
    catalog: Catalog
    tables: tuple[PrivateTable, ...]
    unit: PrivacyUnit
    roles: Mapping[str, Mapping[str, Role]]
    budget: Budget
    balance: Balance
    hindsight: float
    loss: PrivacyLoss | None
    paid: tuple[Paid, ...]
    acts: tuple[Receipt, ...]
    entries: int
    head: str
    begun: bool = True
    windows: int = 0

    @property
    def lifetime(self) -> str:
        """What one person may lose over all windows of time, in a sentence; empty where budgets have none."""
        if self.budget.each is None:
            return ""
        epsilon, span = amount(self.budget.epsilon), self.budget.span
        so_far = (
            f"So far {many(self.windows, 'such window')} {'is' if self.windows == 1 else 'are'} paid in, and "
            f"whoever is in all of them may lose up to epsilon {amount(self.budget.epsilon * self.windows)}."
        )
        return (
            f"The budget is for {span}, and none is for life: a person may lose up to epsilon {epsilon} in "
            f"each, and in n of them n times as much, at a delta that grows faster. "
            f"{so_far if self.windows else ''}"
        ).rstrip()

    @property
    def size(self) -> int | None:
        """About how many units there are, where the steward declared it."""
        declared = [table.size for table in self.tables if table.size is not None]
        return max(declared) if declared else None


def facts(
    catalog: Catalog,
    ledger: Ledger,
    dataset: str,
    *,
    session: Callable[[], Session | None] | None = None,
    known: Facts | None = None,
) -> Facts:
    """What is on record about a dataset.

    Args:
        catalog: the steward's file.
        ledger: its ledger; it must verify.
        dataset: which one.
        session: makes one on that dataset, to tell the error of each answer; without it none is told. It is
            called once the dataset is known: a session registers what is not.
        known: what this gave before, without a session: given again while the ledger ends where it did.

    Raises:
        LedgerTampered: if the ledger does not verify: a dossier rests on it.
        LedgerMismatch: if the file declares a unit or bounds that are not those on record.
        InvalidParameter: if the ledger has no such dataset.
    """
    verification = _verified(ledger)
    if known is None or not _holds(known, catalog, dataset, verification):
        known = _recorded(catalog, ledger, dataset, verification)
    return known if session is None else with_errors(known, ledger, session=session)


def _holds(known: Facts, catalog: Catalog, dataset: str, verification: Verification) -> bool:
    """Whether nothing was written since; before the first debit, the window of a balance is today's."""
    same = known.head, known.entries, known.dataset
    timeless = bool(known.paid) or known.budget.each is None
    return (
        same == (verification.head, verification.entries, dataset) and known.catalog is catalog and timeless
    )


def _recorded(catalog: Catalog, ledger: Ledger, dataset: str, verification: Verification) -> Facts:
    """What is on record, without errors."""
    # A session would put a new version or, before the first debit, another budget on record; this only looks.
    budget, _ = _on_record(catalog, ledger, dataset)
    tables = catalog.members(dataset)
    receipts = list(ledger.entries(dataset))
    debits = [receipt for receipt in receipts if receipt.kind == "debit"]
    windows = hull_of(debit.windows for debit in debits)
    balance = ledger.balance(dataset, window=windows)
    kept = {receipt.memo.get("debit") for receipt in receipts if receipt.kind == "release"}
    met = [debit for debit in debits if windows is None or _is_in(debit, balance.window)]
    losses = [debit.loss for debit in met if debit.loss is not None]
    return Facts(
        dataset,
        catalog,
        tables,
        _unit(tables),
        {table.name: catalog.roles.get(table.name, {}) for table in tables},
        budget,
        balance,
        balance.retrospective,  # now, while the ledger is open
        compose(losses) if losses else None,
        tuple(_paid(debit, kept) for debit in debits),
        tuple(receipt for receipt in receipts if receipt.kind not in _NO_ACTS),
        verification.entries,
        verification.head,
        windows=0 if windows is None else windows.count,
    )


def _on_record(catalog: Catalog, ledger: Ledger, dataset: str) -> tuple[Budget, bool]:
    """The budget on record, and whether the declaration there is the file's to the version."""
    known = {entry.name: entry for entry in ledger.datasets()}
    if dataset not in known:
        raise InvalidParameter(
            f"The ledger has nothing about {dataset[:40]!r}; ask a first question, or name another dataset."
        )
    on_record = known[dataset].declaration
    wanted = declared(declaration_of(catalog.members(dataset)))
    if {**wanted, "version": None} != {**on_record, "version": None}:
        raise LedgerMismatch(
            f"{catalog.path.name} declares {dataset[:40]!r} otherwise than the ledger has it on record, and "
            "a dossier tells what was promised; put the file back, or run `sfumato ledger redeclare`."
        )
    return known[dataset].budget, wanted == on_record


def with_errors(
    known: Facts,
    ledger: Ledger,
    *,
    session: Callable[[], Session | None],
    latest: int | None = None,
) -> Facts:
    """The same with the errors of answers.

    Args:
        known: what `facts` gives without a session.
        ledger: where that is from.
        session: makes one on that dataset.
        latest: of how many answers, the newest first; None: of all.
    """
    budget, same = _on_record(known.catalog, ledger, known.dataset)
    kept_as_is = bool(known.paid) or known.catalog.budgets.get(known.dataset) == budget
    asked = session() if same and kept_as_is else None
    if asked is None:
        return known
    numbers = {paid.number for paid in known.paid}
    newest = ledger.entries(known.dataset, kind="debit", newest=True)
    errors = {
        debit.number: _errors(asked, debit)
        for debit in islice((debit for debit in newest if debit.number in numbers), latest)
    }
    paid = tuple(replace(each, errors=errors.get(each.number, {})) for each in known.paid)
    return replace(known, paid=paid)


def _is_in(debit: Receipt, window: str) -> bool:
    """Whether a debit is charged in a window."""
    paid = debit.windows
    return paid is None or paid.first <= Windows.named(paid.each, window).first <= paid.last


def foreseen(catalog: Catalog, dataset: str, *, ledger: Ledger | None = None) -> Facts:
    """What the steward's file says about a dataset before its first question.

    Args:
        catalog: the steward's file.
        dataset: which one.
        ledger: where other datasets are on record already; it must verify. None where the first question
            will make it.

    Raises:
        LedgerTampered: if the ledger does not verify.
    """
    verification = None if ledger is None else _verified(ledger)
    tables, budget = catalog.members(dataset), catalog.budgets[dataset]
    return Facts(
        dataset,
        catalog,
        tables,
        _unit(tables),
        {table.name: catalog.roles.get(table.name, {}) for table in tables},
        budget,
        _unspent(dataset, budget),
        0.0,
        None,
        (),
        (),
        0 if verification is None else verification.entries,
        "" if verification is None else verification.head,
        begun=False,
    )


def _unspent(dataset: str, budget: Budget) -> Balance:
    """The balance of a budget from which nothing was paid."""
    nothing = Fraction(0)
    return Balance(
        dataset=dataset,
        analyst=None,
        accountant=budget.accountant,
        epsilon=budget.epsilon,
        delta=budget.delta,
        spent=nothing,
        remaining=budget.epsilon,
        spent_delta=nothing,
        remaining_delta=budget.delta,
        entries=0,
        open=True,
        closed=False,
        limited=False,
        shared=False,
        gate={},
        _losses=list,
    )


def many(count: int, noun: str) -> str:
    """So many of something: "1 release", "2 releases"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _verified(ledger: Ledger) -> Verification:
    verification = ledger.verify()
    if not verification.ok:
        raise LedgerTampered(
            f"The ledger does not verify ({verification.problems[0].rstrip('.')}), and a dossier rests on "
            "it; run `sfumato ledger verify` for all that is wrong."
        )
    return verification


def _unit(tables: tuple[PrivateTable, ...]) -> PrivacyUnit:
    """Whose privacy is protected: that of the table which names the units, not of one that points to it."""
    owners = [table.unit for table in tables if not table.unit.is_via] or [table.unit for table in tables]
    return owners[0]


def _paid(receipt: Receipt, kept: set[Any]) -> Paid:
    memo = receipt.purpose
    return Paid(
        receipt.number,
        receipt.time,
        receipt.analyst,
        str(memo) or None,
        memo.mechanism,
        receipt.price.get("epsilon") if memo.epsilon is None else memo.epsilon,
        receipt.price.get("delta") if memo.delta is None else memo.delta,
        {},
        receipt.number in kept,
        memo.given,
        memo.state,
        receipt.memo.get("max_steps"),
    )


def _errors(session: Session, receipt: Receipt) -> dict[str, str]:
    """The error bars of a release, by column: of the kept answer, else of a free quote; nothing is spent.

    Only the kept answer knows those that depend on the data: an average's follow from how large its groups
    came out, and a quote could but guess at that. Bars of an answer are post-processing of it.
    """
    memo = receipt.purpose
    if memo.sql is None or memo.epsilon is None:
        return {}
    try:
        if memo.state:
            states = getattr(session.tables.get(memo.table), "states", ())
            known = memo.state in states
            session = session.at(memo.state, table=memo.table) if known else session.growing()
        quote = session.sql(memo.words).quote(epsilon=memo.epsilon, delta=memo.delta or 0)
        kept = _kept(session, quote, receipt)
        values, bars = ({}, {}) if kept is None else (_columns(kept.table), _columns(kept.error(_CONFIDENCE)))
    except SfumatoError:  # declared otherwise since, or asked with parameters
        return {}
    told = {}
    for column in quote.columns:
        if column.public:
            continue
        if column.name in bars:
            told[column.name] = _span(values[column.name], bars[column.name])
        elif column.half_width is not None:
            told[column.name] = f"± {column.half_width:.4g}"
        else:
            told[column.name] = "in the answer"
    return told


def _columns(table: pa.Table) -> dict[str, list[object]]:
    return {name: table[name].to_pylist() for name in table.column_names}


def _kept(session: Session, quote: Quote, receipt: Receipt) -> Release | None:
    """The answer that this receipt paid for, where it answers just what is quoted."""
    if receipt.fingerprint != quote.fingerprint or receipt.dataset is None:
        return None
    for paid, payload in session.ledger.recall(receipt.dataset, quote.fingerprint):
        if paid.number == receipt.number:
            return Release(quote, Answer.from_bytes(payload), paid, free=True)
    return None


def _span(values: list[object], widths: list[object]) -> str:
    """From the narrowest bar of a column to its widest, as they are shown beside the values."""
    shown = [with_bar(value, width).partition("± ")[2] for value, width in zip(values, widths, strict=True)]
    known = sorted(filter(None, shown), key=lambda bar: float(bar.replace(",", "").replace("∞", "inf")))
    if not known:
        return "in the answer"
    return f"± {known[0]}" if known[0] == known[-1] else f"± {known[0]} to {known[-1]}"
