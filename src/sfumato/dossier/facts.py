"""What is on record about one dataset: declared by the steward, or receipted by a ledger that verifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.catalog import Catalog, Role
from sfumato.errors import InvalidParameter, LedgerMismatch, LedgerTampered, SfumatoError
from sfumato.ledger.rules import declared
from sfumato.loss import PrivacyLoss, compose
from sfumato.schema import PrivacyUnit, PrivateTable
from sfumato.session import declaration_of

if TYPE_CHECKING:
    from sfumato.ledger import Balance, Budget, Ledger, Receipt
    from sfumato.session import Session

__all__ = ["Facts", "Paid", "facts"]


@dataclass(frozen=True, slots=True)
class Paid:
    """One release that was paid for.

    Attributes:
        number: Of its receipt.
        time: When.
        analyst: Who asked, or None.
        question: The SQL, or None where it was asked in another way.
        mechanism: What drew the noise.
        epsilon: Its price; None where the receipt has it in another currency alone.
        delta: The other half of the price.
        errors: By column, the half-width at 95 % confidence that was quoted, or words where it depends on
            the data.
        kept: Whether the answer is kept in the ledger.
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
        balance: What is spent and left.
        hindsight: The epsilon at the budget's delta had all of it been planned before the first answer.
        loss: Of all releases together; None before the first.
        paid: The releases, oldest first.
        acts: The steward's acts that changed a budget or a declaration, oldest first.
        entries: How many receipts the ledger has in all; they verify.
        head: The last link of its chain.
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

    @property
    def size(self) -> int | None:
        """About how many units there are, where the steward declared it."""
        declared = [table.size for table in self.tables if table.size is not None]
        return max(declared) if declared else None


def facts(
    catalog: Catalog, ledger: Ledger, dataset: str, *, session: Callable[[], Session | None] | None = None
) -> Facts:
    """What is on record about a dataset.

    Args:
        catalog: the steward's file.
        ledger: its ledger; it must verify.
        dataset: which one.
        session: makes one on that dataset, to quote the error of each question again; without it none is
            told. It is called once the dataset is known: a session registers what is not.

    Raises:
        LedgerTampered: if the ledger does not verify: a dossier rests on it.
        LedgerMismatch: if the file declares another unit or other bounds than are on record.
        InvalidParameter: if the ledger has no such dataset.
    """
    found = ledger.verify()
    if not found.ok:
        raise LedgerTampered(
            f"The ledger does not verify ({found.problems[0].rstrip('.')}), and a dossier rests on it; "
            "run `sfumato ledger verify` for all that is wrong."
        )
    known = {each.name: each for each in ledger.datasets()}
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
    # A session would put a new version on record, and this only looks.
    asked = None if session is None or wanted != on_record else session()
    tables, balance = catalog.members(dataset), ledger.balance(dataset)
    receipts = list(ledger.entries(dataset))
    kept = {each.memo.get("debit") for each in receipts if each.kind == "release"}
    debits = [each for each in receipts if each.kind == "debit"]
    losses = [each.loss for each in debits if each.loss is not None]
    owners = [table.unit for table in tables if not table.unit.is_via] or [table.unit for table in tables]
    return Facts(
        dataset,
        catalog,
        tables,
        owners[0],
        {table.name: catalog.roles.get(table.name, {}) for table in tables},
        known[dataset].budget,
        balance,
        balance.retrospective,  # now, while the ledger is open
        compose(losses) if losses else None,
        tuple(_paid(each, kept, asked) for each in debits),
        tuple(each for each in receipts if each.kind not in ("debit", "release", "register", "open")),
        found.entries,
        found.head,
    )


def _paid(receipt: Receipt, kept: set[Any], session: Session | None) -> Paid:
    memo = receipt.memo
    question = memo.get("sql")
    return Paid(
        receipt.number,
        receipt.time,
        receipt.analyst,
        str(question) if question else None,
        str(memo.get("mechanism", "")),
        _amount(receipt, "epsilon"),
        _amount(receipt, "delta"),
        _errors(session, question, memo) if session is not None and question and "epsilon" in memo else {},
        receipt.number in kept,
    )


def _amount(receipt: Receipt, name: str) -> Fraction | None:
    """The price as it was asked for, or as the gate has it; None where neither says."""
    told = receipt.memo.get(name)
    return receipt.price.get(name) if told is None else Fraction(told)


def _errors(session: Session, question: str, memo: Mapping[str, Any]) -> dict[str, str]:
    """The error that a free quote of the same question at the same price tells; nothing is spent."""
    try:
        quote = session.sql(question).quote(
            epsilon=Fraction(memo["epsilon"]), delta=Fraction(memo.get("delta", 0))
        )
    except SfumatoError:  # declared otherwise since, or asked with parameters
        return {}
    told = {}
    for column in quote.columns:
        if column.public:
            continue
        if column.half_width is not None:
            told[column.name] = f"± {column.half_width:.4g}"
        elif column.expected is not None:
            told[column.name] = f"about ± {column.expected:.3g}"
        else:
            told[column.name] = "in the answer"
    return told
