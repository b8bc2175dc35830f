"""From the steward's file to an open session or ledger."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli.output import unbroken
from sfumato.cli.process import all_is_loaded
from sfumato.errors import (
    AccessDenied,
    CatalogUnusable,
    InvalidParameter,
    LedgerMismatch,
    LedgerTampered,
    LedgerUnusable,
)

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.engines import Engine
    from sfumato.ledger import Budget, Ledger, Steward
    from sfumato.session import Session

__all__ = [
    "UnknownDataset",
    "acting",
    "begun_ledger",
    "config_flag",
    "dataset_named",
    "declared_limits",
    "exactly",
    "ledger_if_begun",
    "ledger_of_accounts",
    "ledger_place",
    "limit_in_toml",
    "line_of_budget",
    "listed_as",
    "open_all",
    "open_ledger",
    "open_session",
    "read_catalog",
    "state_folder",
    "steward_of",
]


_LISTED = "listed in"  # how the reason of a limit begins that the file has given


class UnknownDataset(InvalidParameter):
    """A dataset was named that is not there, or none where there are several."""

    headline = "Which dataset?"


def read_catalog(config: Path | None, ledger: str | None = None, analyst: str | None = None) -> Catalog:
    """The catalog that the flags and the environment point at."""
    from sfumato.catalog import Catalog

    return Catalog.read(config, ledger=ledger, analyst=analyst)


def state_folder(catalog: Catalog) -> Path:
    """The folder of the ledger's key."""
    return catalog.state or Path(str(catalog.ledger)).absolute().parent


def config_flag(path: Path) -> str:
    """What a command must add so that it finds this catalog: nothing, or ` --config FILE`."""
    from sfumato.catalog import Catalog

    with suppress(CatalogUnusable, OSError):
        if Catalog.find().resolve() == path.resolve():
            return ""
    return f" --config {shlex.quote(str(path))}"


@contextmanager
def open_session(catalog: Catalog, dataset: str) -> Iterator[Session]:
    """A session on the tables of one dataset, its limits on record, for the catalog's analyst."""
    from sfumato.ledger import Ledger
    from sfumato.session import Session

    all_is_loaded()
    catalog.admit(dataset)
    _own_ledger(catalog)
    engine = catalog.engine.open(table.source for table in catalog.members(dataset))
    try:
        ledger = Ledger.open(catalog.ledger, state=catalog.state)
        try:
            _declare(catalog, dataset, ledger, engine)
            session = Session(
                *catalog.members(dataset),
                *catalog.public,
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


@contextmanager
def open_all(catalog: Catalog) -> Iterator[Session]:
    """The steward's session on all tables of the file, budgets and limits on record.

    Raises:
        AccessDenied: if an analyst is named.
    """
    from sfumato.ledger import Ledger
    from sfumato.session import Session

    acting()
    all_is_loaded()
    engine = catalog.engine.open(table.source for table in catalog.tables)
    with ExitStack() as closing:
        closing.callback(engine.close)
        ledger = closing.enter_context(Ledger.open(catalog.ledger, state=catalog.state))
        for dataset in catalog.budgets:
            _declare(catalog, dataset, ledger, engine)
            _set_limits(catalog, dataset, ledger)
        yield Session(*catalog.tables, *catalog.public, ledger=ledger, engine=engine)


def _declare(catalog: Catalog, dataset: str, ledger: Ledger, engine: Engine) -> None:
    """Put on record what the file declares; it is the steward's, whoever asks."""
    from sfumato.session import declaration_of

    ledger.register(
        dataset,
        declaration_of(list(catalog.members(dataset))),
        catalog.budgets[dataset],
        chosen_by=engine.dialect.digest.name,
    )


def _own_ledger(catalog: Catalog) -> None:
    """Refuse an analyst's question that a ledger other than the steward's would pay.

    Raises:
        AccessDenied: if an analyst is named, and a flag or the environment names another ledger.
    """
    if catalog.moved and catalog.analyst is not None:
        raise AccessDenied(
            f"{catalog.analyst[:40]} asks, and the ledger that pays is the one of {catalog.path.name}: leave "
            "out --ledger and unset SFUMATO_LEDGER."
        )


def _set_limits(catalog: Catalog, dataset: str, ledger: Ledger) -> None:
    """Put the file's limits on record where there is none; to change one is the steward's own act.

    A limit that cannot be put on record, or is another one there, stops the analyst whose it is.
    """
    from sfumato.ledger.names import alike

    for analyst, limit in catalog.limits.get(dataset, {}).items():
        try:
            _set_limit(catalog, dataset, ledger, analyst, limit)
        except LedgerMismatch:
            if catalog.analyst is not None and alike(analyst) == alike(catalog.analyst):
                raise


def _set_limit(catalog: Catalog, dataset: str, ledger: Ledger, analyst: str, limit: Budget) -> None:
    known = ledger.balance(dataset, analyst)
    if not known.open:
        return  # a limit would let a revoked analyst in again: that is an act of its own
    same = (known.epsilon, known.delta) == (limit.epsilon, limit.delta)
    if not known.limited or (not same and _follows(ledger, dataset, analyst)):
        steward_of(ledger).limit(dataset, analyst, limit, reason=f"{_LISTED} {catalog.path.name}")
    elif not same:
        figures = f"--epsilon {exactly(limit.epsilon)}"
        if limit.delta or known.delta:
            figures += f" --delta {exactly(limit.delta)}"
        raise LedgerMismatch(
            f"The limit of {analyst[:40]!r} on {dataset} is epsilon {exactly(known.epsilon)}, delta "
            f"{exactly(known.delta)} in the ledger, and epsilon {exactly(limit.epsilon)}, delta "
            f"{exactly(limit.delta)} in {catalog.path.name}. If the ledger is right, write "
            f"{unbroken(limit_in_toml(analyst, known.epsilon, known.delta))} into the file's "
            f"[datasets.{dataset}.analysts]; if the file is right, the steward runs: "
            + unbroken(
                f"sfumato ledger limit {shlex.quote(dataset)} {shlex.quote(analyst)} {figures}"
                f"{config_flag(catalog.path)} --reason …"
            )
        )


def _follows(ledger: Ledger, dataset: str, analyst: str) -> bool:
    """Whether a limit is still the file's to change: it came from the file, and nothing was spent yet."""
    if any(ledger.entries(dataset, kind="debit")):
        return False
    acts = [
        entry
        for entry in ledger.entries(dataset)
        if entry.kind == "limit" and entry.analyst and listed_as(analyst, [entry.analyst])
    ]
    return bool(acts) and str(acts[-1].memo.get("reason", "")).startswith(_LISTED)


def exactly(value: Fraction) -> str:
    """An exact number that can be typed in again: 0.5, or 1/3."""
    short = f"{float(value):.15g}"
    return short if Fraction(short) == value else str(value)


def limit_in_toml(analyst: str, epsilon: Fraction, delta: Fraction) -> str:
    """A limit as the toml has it: `alice = { epsilon = 0.5 }`."""
    from sfumato.catalog.write import toml_key, toml_number

    figures = f"epsilon = {toml_number(exactly(epsilon))}"
    if delta:
        figures += f", delta = {toml_number(exactly(delta))}"
    return f"{toml_key(analyst)} = {{ {figures} }}"


def line_of_budget(path: Path, dataset: str) -> str:
    """Where the toml has a dataset's epsilon: `, line 3 of sfumato.toml`; empty where it is not found."""
    with suppress(OSError, UnicodeDecodeError):
        section = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            text = line.strip()
            if text.startswith("["):
                section = text.partition("]")[0].lstrip("[").replace('"', "").strip()
            elif section == f"datasets.{dataset}" and text.partition("=")[0].strip() == "epsilon":
                return f", line {number} of {path.name}"
    return ""


def listed_as(analyst: str, listed: Iterable[str]) -> str | None:
    """An analyst's name as a list spells it; None if it is not there."""
    from sfumato.ledger.names import spelled

    return spelled(analyst, listed)


def declared_limits(config: Path | None, dataset: str) -> dict[str, Budget]:
    """Who is listed in the toml, if there is one."""
    try:
        return dict(read_catalog(config).limits.get(dataset, {}))
    except CatalogUnusable:
        if config is not None:
            raise
        return {}


def acting() -> None:
    """Refuse a steward's act to somebody who works in an analyst's name.

    A guard against slips. What keeps an analyst from the ledger is that they cannot read its key.

    Raises:
        AccessDenied: if SFUMATO_ANALYST is set.
    """
    who = os.environ.get("SFUMATO_ANALYST", "").strip()
    if who:
        raise AccessDenied(
            f"Only the steward can do this, and SFUMATO_ANALYST says that you are {who[:40]}: as the "
            "steward, unset it first."
        )


def steward_of(ledger: Ledger) -> Steward:
    """The steward's acts on a ledger; `acting` comes before it is opened."""
    from sfumato.ledger import Steward

    return Steward(ledger)


@contextmanager
def open_ledger(config: Path | None, ledger: str | None) -> Iterator[Ledger]:
    """The ledger that flag, environment or catalog name; it must exist: looking must not make one."""
    from sfumato.ledger import Ledger

    where, state = ledger_place(config, ledger)
    opened = Ledger.open(where, state=state, create=False)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def begun_ledger(config: Path | None, ledger: str | None, dataset: str, *, write: bool) -> Iterator[Ledger]:
    """The ledger with this dataset in it, before anything was asked, too.

    Where it is not on record yet, the catalog's declaration and budget are registered; without `write` only
    in memory, since looking must not make anything.
    """
    from sfumato.ledger import Ledger
    from sfumato.session import declaration_of

    where, state = ledger_place(config, ledger)
    with ExitStack() as closing:
        book = ledger_if_begun(where, state)
        if book is not None:
            closing.enter_context(book)
        if book is None or dataset not in {entry.name for entry in book.datasets()}:
            catalog = read_catalog(config, ledger)
            members = catalog.members(dataset_named(dataset, list(catalog.budgets)))
            if not write:
                book = closing.enter_context(Ledger.open(None))
            elif book is None:
                book = closing.enter_context(Ledger.open(where, state=state))
            chosen_by = None
            if write:
                engine = catalog.engine.open(table.source for table in members)
                closing.callback(engine.close)
                chosen_by = engine.dialect.digest.name
            declared = declaration_of(list(members))
            book.register(dataset, declared, catalog.budgets[dataset], chosen_by=chosen_by)
        yield book


def ledger_if_begun(where: str, state: Path | None) -> Ledger | None:
    """The ledger at a place, or None where nothing has made one yet.

    Raises:
        LedgerUnusable: if one is there, or was by its anchor, or is behind an address, and does not open.
    """
    from sfumato.ledger import Ledger

    try:
        return Ledger.open(where, state=state, create=False)
    except LedgerTampered:  # such as one that is gone while its anchor is there
        raise
    except LedgerUnusable:
        if "://" in where or os.path.lexists(where):
            raise
        return None


def ledger_of_accounts(where: str, state: Path | None) -> Ledger | None:
    """The ledger that acts on accounts are put on, or None where nothing has made one yet.

    Raises:
        LedgerUnusable: if one is there, or was, and does not open.
    """
    from sfumato.ledger.opening import is_empty

    try:
        return ledger_if_begun(where, state)
    except LedgerTampered:
        raise
    except LedgerUnusable:
        if "://" in where and is_empty(where):
            return None
        raise


def ledger_place(config: Path | None, ledger: str | None) -> tuple[str, Path | None]:
    """Where the ledger is that flag, environment or catalog name, and where its state is kept."""
    named = ledger or os.environ.get("SFUMATO_LEDGER", "").strip()
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
        raise UnknownDataset(
            f"Say which dataset: one of {', '.join(sorted(known))}." if known else "There are no datasets."
        )
    if name not in known:
        raise UnknownDataset(f"There is no dataset {name[:40]!r}.{nearest(name, known)}")
    return name
