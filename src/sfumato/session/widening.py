"""The steward's session over more tables than before, on a ledger and an engine that are open."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato.schema import PrivateTable, PublicTable
from sfumato.session.attaching import attach, declaration_of
from sfumato.session.session import Session

if TYPE_CHECKING:
    from sfumato.engines.base import Engine
    from sfumato.ledger import Budget, Ledger

__all__ = ["opened"]


def opened(
    tables: Sequence[PrivateTable | PublicTable],
    new: Collection[str],
    *,
    budgets: Mapping[str, Budget | None],
    ledger: Ledger,
    engine: Engine,
) -> Session:
    """The steward's session on these tables. Another one over the same ledger and engine goes on.

    Sources come first, so that one that cannot be used leaves nothing on record. Closing it closes neither
    ledger nor engine.

    Args:
        tables: All of them.
        new: The names of those that no session had yet: they are looked through for rows that would be lost.
        budgets: Of the datasets that are put on record; None: as it is there. So are all others.
        ledger: Where answers are paid from.
        engine: What runs the reads.

    Raises:
        SourceUnusable: if a source cannot be opened or lacks a declared column, or rows would be lost.
        LedgerMismatch: if the ledger has another budget, unit or bounds on record.
    """
    for table in tables:
        if table.name in new:
            engine.check_whole(table.reads)
    attached = attach(engine, tables, whole=False)
    for dataset, budget in budgets.items():
        declared = declaration_of(attached.members[dataset])
        ledger.register(dataset, declared, budget, chosen_by=engine.dialect.digest.name)
    return Session._over(attached, ledger)
