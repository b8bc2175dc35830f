"""From the steward's file to an open session or ledger."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import CatalogUnusable, LedgerMismatch, LedgerUnusable

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.ledger import Ledger
    from sfumato.session import Session

__all__ = ["dataset_named", "existing_ledger", "open_ledger", "open_session", "read_catalog"]


def read_catalog(config: Path | None, ledger: str | None = None, analyst: str | None = None) -> Catalog:
    """The catalog that the flags and the environment point at."""
    from sfumato.catalog import Catalog

    return Catalog.read(config, ledger=ledger, analyst=analyst)


@contextmanager
def open_session(catalog: Catalog, dataset: str) -> Iterator[Session]:
    """A session on the tables of one dataset, its limits on record, for the catalog's analyst."""
    from sfumato.engines import DuckDB
    from sfumato.ledger import Ledger
    from sfumato.session import Session

    catalog.admit(dataset)
    limits = catalog.engine
    engine = DuckDB(threads=limits.threads, memory=limits.memory, timeout=limits.timeout)
    try:
        ledger = Ledger.open(catalog.ledger, state=catalog.state)
        try:
            session = Session(
                *catalog.members(dataset),
                budget=catalog.budgets[dataset],
                ledger=ledger,
                engine=engine,
                analyst=catalog.analyst,
            )
            _set_limits(catalog, dataset, ledger)
            yield session
        finally:
            ledger.close()
    finally:
        engine.close()


def _set_limits(catalog: Catalog, dataset: str, ledger: Ledger) -> None:
    """Put the file's limits on record where there is none; to change one is the steward's own act."""
    cap = catalog.budgets[dataset]
    for analyst, limit in catalog.limits.get(dataset, {}).items():
        known = ledger.balance(dataset, analyst)
        on_record = (known.epsilon, known.delta)
        if not known.open or on_record == (limit.epsilon, limit.delta):
            continue  # a limit would let a revoked analyst in again: that is an act of its own
        if on_record != (cap.epsilon, cap.delta):
            raise LedgerMismatch(
                f"The ledger has another limit on record for {analyst[:40]!r} than {catalog.path.name}; put "
                f"that in force with: sfumato ledger limit {dataset} {analyst} --reason …"
            )
        ledger.limit(dataset, analyst, limit, reason=f"listed in {catalog.path.name}")


@contextmanager
def open_ledger(config: Path | None, ledger: str | None) -> Iterator[Ledger]:
    """The ledger that flag, environment or catalog name; it must exist."""
    from sfumato.ledger import Ledger

    where, state = existing_ledger(config, ledger)
    opened = Ledger.open(where, state=state)
    try:
        yield opened
    finally:
        opened.close()


def existing_ledger(config: Path | None, ledger: str | None) -> tuple[str, Path | None]:
    """Where the ledger is that flag, environment or catalog name, and where its state is kept.

    Raises:
        LedgerUnusable: if there is no such file: looking at a ledger must not make one.
    """
    where, state = _place(config, ledger)
    if "://" not in where and not Path(where).exists():
        raise LedgerUnusable(f"There is no ledger at {where} yet; the first query makes it.")
    return where, state


def _place(config: Path | None, ledger: str | None) -> tuple[str, Path | None]:
    named = ledger or os.environ.get("SFUMATO_LEDGER")
    try:
        catalog = read_catalog(config, ledger)
    except CatalogUnusable:
        if not named or config is not None:
            raise
        return named, None
    return catalog.ledger, catalog.state


def dataset_named(name: str | None, known: list[str]) -> str:
    """The dataset of that name, or the only one there is."""
    from sfumato.catalog.keys import nearest

    if name is None:
        if len(known) == 1:
            return known[0]
        raise CatalogUnusable(
            f"Say which dataset: one of {', '.join(sorted(known))}." if known else "There is none."
        )
    if name not in known:
        raise CatalogUnusable(f"There is no dataset {name[:40]!r}.{nearest(name, known)}")
    return name
