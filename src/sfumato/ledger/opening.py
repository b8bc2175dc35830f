"""Opening a ledger: where its parts lie, and what must agree before anything is believed."""

from __future__ import annotations

import hmac
import os
from pathlib import Path
from typing import Protocol

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, LedgerTampered, LedgerUnusable
from sfumato.ledger.anchor import Anchor, FileAnchor, Held, Mark, NoAnchor, stale
from sfumato.ledger.book import Book
from sfumato.ledger.chain import Chain
from sfumato.ledger.checkpoint import Checkpoint, FileCheckpoint, NoCheckpoint
from sfumato.ledger.files import sweep, unusable, write_new
from sfumato.ledger.key import load_key, make_key, remember, signed_at
from sfumato.ledger.sqlite import SQLite
from sfumato.ledger.store import MIGRATIONS, OF_ANALYSTS, Identity, Store
from sfumato.random import salt, token

__all__ = ["POSTGRES", "STATE", "Opened", "Wish", "file_at", "opened"]

POSTGRES = ("postgresql://", "postgres://")
STATE = ".sfumato"
_ANNOUNCED = 2  # the version from which an anchor announces each commit


@dataclass(frozen=True, slots=True)
class Opened:
    """The parts of an open ledger."""

    store: Store
    chain: Chain
    anchor: Anchor
    checkpoint: Checkpoint
    book: Book
    fleeting: bool  # lives in this process's memory alone
    adopted: bool = False  # taken over although its anchor was lost or old


class _Places(Protocol):
    """Where key and anchor of a ledger lie."""

    def key(self, ledger: str) -> Path: ...

    def anchor(self, ledger: str) -> Path: ...

    def checkpoint(self, ledger: str) -> Path: ...

    @property
    def server(self) -> str:
        """A short name of the database, where key and anchor are not beside it."""
        ...


@dataclass(frozen=True, slots=True)
class _Beside:
    """For SQLite: named like the file."""

    folder: Path
    name: str
    server: str = ""

    def key(self, ledger: str) -> Path:
        del ledger
        return self.folder / f"{self.name}.key"

    def anchor(self, ledger: str) -> Path:
        del ledger
        return self.folder / f"{self.name}.anchor"

    def checkpoint(self, ledger: str) -> Path:
        del ledger
        return self.folder / f"{self.name}.checkpoint"


@dataclass(frozen=True, slots=True)
class _InFolder:
    """For PostgreSQL: named by the ledger's id, in one folder for all machines that use it."""

    folder: Path
    server: str

    def key(self, ledger: str) -> Path:
        return self.folder / f"{ledger}.key"

    def anchor(self, ledger: str) -> Path:
        return self.folder / f"{ledger}.anchor"

    def checkpoint(self, ledger: str) -> Path:
        return self.folder / f"{ledger}.checkpoint"


@dataclass(frozen=True, slots=True)
class Wish:
    """How a ledger is to be opened.

    Attributes:
        create: make one if there is none.
        adopt: take a chain that is whole although its anchor is lost.
        follow: check the chain, from the checkpoint on; False: for a reader that reports and does not refuse.
    """

    create: bool = True
    adopt: bool = False
    follow: bool = True


def opened(where: str | Path | None, state: Path | None, wish: Wish) -> Opened:
    """The parts of the ledger at a place, checked against each other."""
    if where is None or where == ":memory:":
        return _in_memory()
    if isinstance(where, str) and where.startswith(POSTGRES):
        return _in_postgres(where, Path(STATE) if state is None else state, wish)
    path = file_at(where)
    places = _Beside(path.parent if state is None else state.absolute(), path.name)
    # What remembers a ledger is written after it, so it is looked at first: another process may begin one.
    anchored = places.anchor("").exists()
    signed = places.key("").exists() and load_key(places.key("")).ledger is not None
    if not path.exists():
        if anchored:
            raise LedgerTampered(
                f"{path} is gone, but its anchor is still there: restore the latest copy of the ledger."
            )
        if signed:
            raise LedgerTampered(
                f"{path} is gone, but its key has signed it: restore the latest copy of the ledger. To begin "
                f"a new one on purpose, with a budget of its own, move {places.key('').name} away."
            )
        if not wish.create:
            raise LedgerUnusable(f"There is no ledger {path} yet: check the path; the first query makes one.")
    store = SQLite(path)
    try:
        return _checked(store, places, wish)
    except BaseException:
        store.close()
        raise


def file_at(where: str | Path) -> Path:
    """The path of a ledger's file.

    Raises:
        InvalidParameter: if it is none.
    """
    if not isinstance(where, str | Path) or "://" in str(where) or not str(where):
        raise InvalidParameter("A ledger is a path, an address postgresql://…, or None for one in memory.")
    if "\x00" in str(where) or not _is_path(where):
        raise InvalidParameter("The path of a ledger holds a character that no path can hold.")
    return Path(where).absolute()


def is_empty(address: str) -> bool:
    """Whether no ledger was begun yet in a PostgreSQL, by what is there alone."""
    from sfumato.ledger.postgres import Postgres

    store = Postgres(address)
    try:
        return store.version() == 0
    finally:
        store.close()


def _is_path(where: str | Path) -> bool:
    """Whether the system can write this name; bytes that are not UTF-8 arrive as halves of characters."""
    try:
        os.fsencode(where)
    except UnicodeEncodeError:
        return False
    return True


def _in_postgres(address: str, folder: Path, wish: Wish) -> Opened:
    from sfumato.ledger.postgres import Postgres

    folder = folder.absolute()
    store = Postgres(address)
    try:
        known = folder / f"{store.place}.ledger"
        # What remembers it is written after it, so it is looked at first: another process may begin one.
        witness = known if known.exists() else signed_at(folder, store.place)
        if witness and store.version() == 0:
            raise LedgerTampered(
                f"{store.name} is gone, but {witness} remembers one: restore the latest copy of the database."
            )
        parts = _checked(store, _InFolder(folder, store.place), wish)
        if not known.exists():
            write_new(known, f"{parts.chain.ledger}\n".encode())
        elif known.read_text().strip() != parts.chain.ledger:
            raise LedgerTampered(
                f"{store.name} is not the one that {known} remembers: restore the latest copy of the "
                "database."
            )
    except BaseException:
        store.close()
        raise
    return parts


def _in_memory() -> Opened:
    store, chain = SQLite(None), Chain(salt(32), token())
    store.migrate(0)
    store.create(Identity(len(MIGRATIONS), chain.ledger, _seal(chain)))
    return Opened(store, chain, NoAnchor(), NoCheckpoint(), Book(chain), fleeting=True)


def _checked(store: Store, places: _Places, wish: Wish) -> Opened:
    version = store.version()
    if version == 0 and not wish.create:
        raise LedgerUnusable(f"{store.name} is empty: check the address or the path.")
    if version < len(MIGRATIONS):
        _upgrade(store, places)
    identity = store.identity()
    if identity.version > len(MIGRATIONS):
        raise LedgerUnusable(f"{store.name} was written by a newer Sfumato: upgrade to open it.")
    key = load_key(places.key(identity.id))
    chain = Chain(key.secret, identity.id)
    if not hmac.compare_digest(identity.seal.encode(), _seal(chain).encode()):
        raise LedgerTampered(
            f"The key {places.key(identity.id).name} is not the one of this ledger: put the right one back."
        )
    path = places.anchor(identity.id)
    anchor, book, adopted = FileAnchor(path, chain), Book(chain), False
    checkpoint = FileCheckpoint(places.checkpoint(identity.id), chain)
    sweep(path)
    sweep(checkpoint.path)
    if wish.follow:
        if not wish.adopt:  # whoever takes a ledger over checks all of it
            book = checkpoint.resume(store)
        adopted = _hold(store, book, anchor, begun=key.ledger is not None, adopt=wish.adopt)
        remember(places.key(identity.id), key, identity.id, places.server)
        checkpoint.keep(book)
        _index(store)
    return Opened(store, chain, anchor, checkpoint, book, fleeting=False, adopted=adopted)


def _hold(store: Store, book: Book, anchor: FileAnchor, *, begun: bool, adopt: bool) -> bool:
    """Checks the receipts after the book's, and that database and anchor end at one place; whether adopted.

    The anchor is read first: what it marks was committed before, so that the database has it when it is read
    afterwards. And it is read again: each commit is announced before, so that it has what was read.
    """
    before = _held(anchor, adopt=adopt)
    _follow(store, book, None if before is None else before.mark)
    head, due = book.head, book.due
    held = _held(anchor, adopt=adopt)
    if held is None:
        # Whoever wrote the first receipt had set an anchor before.
        if (begun or book.number) and not adopt:
            raise LedgerTampered(
                f"The anchor {anchor.path.name} is missing from {anchor.path.parent}: put it back, or, where "
                "several machines share this ledger, name the folder that they share (state). If it is lost, "
                "the steward may adopt the ledger as it stands: sfumato ledger adopt --reason …"
            )
        anchor.start(due)
        return begun or bool(book.number)
    if held.mark.number <= head.number:
        ends = held.ends_at(head, due)
        if not ends and not adopt:
            raise LedgerTampered(
                f"{stale(held, head)} If it is lost, the steward may adopt the ledger as it stands: sfumato "
                "ledger adopt --reason …"
            )
        if not ends:
            _settle(anchor, head)
        elif held.mark not in (head, due):
            _settle(anchor, due)
        return not ends
    return False


def _settle(anchor: FileAnchor, head: Mark) -> None:
    try:
        anchor.settle(head)
    except OSError as wrong:
        raise unusable("written", anchor.path, wrong) from None


def _held(anchor: FileAnchor, *, adopt: bool) -> Held | None:
    try:
        return anchor.read()
    except LedgerTampered:
        if not adopt:
            raise
        anchor.path.unlink(missing_ok=True)
        return None


def _follow(store: Store, book: Book, mark: Mark | None) -> None:
    """Checks the receipts after the book's, and that the anchor's is among them."""
    for row in store.walk(book.number + 1):
        book.follow((row,))
        if mark is not None and mark.number == row.number and mark.mac != row.mac:
            raise LedgerTampered(
                f"Receipt {row.number} is not the one that the anchor holds: the ledger was rewritten. "
                "Restore the latest copy."
            )
    if mark is not None and mark.number > book.number:
        raise LedgerTampered(
            f"{store.name} ends at receipt {book.number}, but its anchor is at {mark.number}: it is an older "
            "copy, or receipts were cut off. Restore the latest copy."
        )


def _upgrade(store: Store, places: _Places) -> None:
    """Makes the tables, or brings them up to date, in one transaction."""
    store.begin()
    try:
        version = store.version()
        if version == 0:
            ledger = token()
            if places.anchor(ledger).exists():
                raise LedgerTampered(
                    f"{store.name} is empty, but its anchor is not: restore the latest copy."
                )
            chain = Chain(make_key(places.key(ledger)).secret, ledger)
            store.migrate(0)
            store.create(Identity(len(MIGRATIONS), ledger, _seal(chain)))
        else:
            if version < _ANNOUNCED:
                _renew(store, places)
            store.migrate(version)
        store.commit()
    except BaseException:
        store.rollback()
        raise


def _index(store: Store) -> None:
    """Makes the index that ledgers of before have not; who may not, or has no room, goes on without."""
    if store.has_index(OF_ANALYSTS):
        return
    try:
        store.begin()
        store.index()
        store.commit()
    except LedgerUnusable:
        store.rollback()
    except BaseException:
        store.rollback()
        raise


def _renew(store: Store, places: _Places) -> None:
    """Replaces an anchor that an earlier version wrote, which may be behind: commits were not announced."""
    identity = store.identity()
    chain = Chain(load_key(places.key(identity.id)).secret, identity.id)
    anchor, book = FileAnchor(places.anchor(identity.id), chain), Book(chain)
    try:
        held = anchor.read()
    except LedgerTampered:
        return  # which is said, or adopted, by whoever opens it
    if held is not None and held.early:
        _follow(store, book, held.mark)
        _settle(anchor, Mark(book.number, book.mac))


def _seal(chain: Chain) -> str:
    return chain.seal("identity", "")
