"""The checkpoint: what the receipts add up to at one of them, sealed, so that opening starts there."""

from __future__ import annotations

import contextlib
import hmac
import json
from pathlib import Path
from typing import Any, Protocol

from sfumato.errors import LedgerUnusable
from sfumato.ledger.account import Account
from sfumato.ledger.anchor import Mark
from sfumato.ledger.book import Book
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import Chain, canonical
from sfumato.ledger.files import read_whole, replace_file
from sfumato.ledger.seat import Seat
from sfumato.ledger.spans import Spans
from sfumato.ledger.store import Store
from sfumato.numeric.exact import read_fraction

__all__ = ["EVERY", "Checkpoint", "FileCheckpoint", "NoCheckpoint"]

EVERY = 256
"""Receipts after which a new one is written: about as many are read again when a ledger is opened."""

_PURPOSE = "checkpoint 4"
"""What the seal is for. A version that keeps something else in a book must change it: older ones are then
followed from the first receipt."""

_LARGEST = 2**26  # bytes; a ledger with more than that to remember is followed from its first receipt


class Checkpoint(Protocol):
    """Where the sums of a ledger at one of its receipts are kept outside the database."""

    def resume(self, store: Store) -> Book:
        """The book to follow the receipts from: at the checkpoint, or before the first receipt."""
        ...

    def keep(self, book: Book) -> None:
        """Writes down where the book is, if it has gone far enough since the last time; never fails."""
        ...

    def problems(self, book: Book) -> list[str]:
        """What is wrong with it, given the book of the receipt that it is of, all checked from the first."""
        ...

    @property
    def number(self) -> int:
        """The receipt that it is of; 0 if there is none that can be believed."""
        ...


class NoCheckpoint:
    """For a ledger in memory, which is never opened again."""

    number = 0

    def resume(self, store: Store) -> Book:
        """Never asked: such a ledger is not opened and not forked."""
        raise LedgerUnusable(f"{store.name} cannot be opened again.")

    def keep(self, book: Book) -> None:
        """Nothing."""

    def problems(self, book: Book) -> list[str]:
        """None."""
        del book
        return []


class FileCheckpoint:
    """A sealed file beside the anchor. It can be removed at any time: the next opening is slower.

    Privacy:
        Claim: the sums that a ledger goes on from are those of every debit ever written, as if all receipts
        had been checked. The state is sealed with the number and the mac of the receipt that it was computed
        at, under the key of the chain, by a process that had checked all before it (or had gone on from such
        a state). It is believed only where the database has that very receipt at that number, and the
        receipts after it are followed to the end that the anchor holds. So an older checkpoint of the same
        history only makes the tail longer; one that was changed, or is of another history, is not believed,
        and everything is checked from the first receipt. What is not seen on opening is an edit of receipts
        before the checkpoint: it changes no sum, and `verify` finds it.
    """

    def __init__(self, path: Path, chain: Chain) -> None:
        self.path, self._chain = path, chain
        self._kept = 0

    @property
    def number(self) -> int:
        """The receipt that it is of; 0 if there is none that can be believed."""
        held = self._read()
        return 0 if held is None else int(held["number"])

    def resume(self, store: Store) -> Book:
        """The book at the checkpoint, or before the first receipt where it cannot be believed."""
        held = self._read()
        if held is None:
            return Book(self._chain)
        number, mac = int(held["number"]), bytes.fromhex(held["mac"])
        rows = store.rows(number - 1, 2) if number > 1 else store.rows(1, 1)
        previous = rows[0].mac if number > 1 and rows else self._chain.start
        row = rows[-1] if rows else None
        if row is None or (row.number, row.mac) != (number, mac) or not self._chain.holds(row, previous):
            return Book(self._chain)
        book = Book(self._chain)
        book.accounts = {name: _account(name, data) for name, data in held["accounts"]}
        book.number, book.mac, self._kept = number, mac, number
        book.due = Mark(held["due"][0], bytes.fromhex(held["due"][1]))
        return book

    def keep(self, book: Book) -> None:
        """Writes down where the book is, if that is far enough from the last time; a failure costs nothing.

        It is not synced: a file that a power cut leaves empty or torn has no seal, and is not believed.
        """
        if book.number - self._kept < EVERY:
            return
        self._kept = book.number
        content = self._state(book)
        text = canonical(content | {"seal": self._seal(content)}) + "\n"
        if len(text) <= _LARGEST:
            with contextlib.suppress(OSError):
                replace_file(self.path, text.encode("ascii"), synced=False)

    def problems(self, book: Book) -> list[str]:
        """Whether its sums are those of the receipts up to its own, all of them checked."""
        held = self._read()
        if held is None or held["number"] != book.number:
            return []
        if {key: value for key, value in held.items() if key != "seal"} == self._state(book):
            return []
        return [
            f"The checkpoint {self.path.name} does not hold what the receipts up to {book.number} add up to: "
            "remove it; then everything is added up again."
        ]

    def _state(self, book: Book) -> dict[str, Any]:
        return {
            "ledger": self._chain.ledger,
            "number": book.number,
            "mac": book.mac.hex(),
            "due": [book.due.number, book.due.mac.hex()],
            "accounts": [[name, _plain(account)] for name, account in book.accounts.items()],
        }

    def _seal(self, content: dict[str, Any]) -> str:
        return self._chain.seal(_PURPOSE, canonical(content))

    def _read(self) -> dict[str, Any] | None:
        """What the file holds, if it bears the seal."""
        try:
            held = json.loads(read_whole(self.path, _LARGEST))
            seal = held.pop("seal")
            if not hmac.compare_digest(seal, self._seal(held)):
                return None
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        return dict(held)


def _plain(account: Account) -> dict[str, Any]:
    return {
        "id": account.id,
        "salt": account.salt.hex(),
        "declaration": account.declaration,
        "chosen_by": account.chosen_by,
        "since": account.since,
        "budget": None if account.budget is None else account.budget.to_dict(),
        "closed": account.closed,
        "adopted": account.adopted,
        "last": account.last,
        "sums": dict(account.sums),
        "adjacency": account.adjacency,
        "debits": account.debits,
        "given": sorted(account.given),
        "taken": [[debit, str(part)] for debit, part in sorted(account.taken.items())],
        "lengths": [[debit, length] for debit, length in sorted(account.lengths.items())],
        # A list: which spelling of a name came first matters.
        "seats": [[spelling, _plain_seat(seat)] for spelling, seat in account.seats.items()],
        "spans": account.spans.to_dict(),
    }


def _account(name: str, data: dict[str, Any]) -> Account:
    account = Account(
        id=data["id"],
        name=name,
        salt=bytes.fromhex(data["salt"]),
        declaration=data["declaration"],
        chosen_by=data["chosen_by"],
        since=data["since"],
        budget=None if data["budget"] is None else Budget.from_dict(data["budget"]),
        closed=data["closed"],
        adopted=data["adopted"],
        last=data["last"],
        sums=data["sums"],
        adjacency=data["adjacency"],
        debits=data["debits"],
        given=set(data["given"]),
        taken={debit: read_fraction(part) for debit, part in data["taken"]},
        lengths=dict(data["lengths"]),
        spans=Spans.from_dict(data["spans"]),
    )
    for spelling, seat in data["seats"]:
        account.sit(spelling, _seat(seat))
    return account


def _plain_seat(seat: Seat) -> dict[str, Any]:
    return {
        "limit": None if seat.limit is None else seat.limit.to_dict(),
        "revoked": seat.revoked,
        "allotted": seat.allotted,
        "last": seat.last,
        "sums": dict(seat.sums),
        "debits": seat.debits,
        "reads": sorted(seat.reads),
        "since": seat.since,
        "spans": seat.spans.to_dict(),
    }


def _seat(data: dict[str, Any]) -> Seat:
    return Seat(
        limit=None if data["limit"] is None else Budget.from_dict(data["limit"]),
        revoked=data["revoked"],
        allotted=data["allotted"],
        last=data["last"],
        sums=data["sums"],
        debits=data["debits"],
        reads=set(data["reads"]),
        since=data["since"],
        spans=Spans.from_dict(data["spans"]),
    )
