"""The anchor: the head of the chain outside the database, and what is about to follow it."""

from __future__ import annotations

import hmac
import json
from pathlib import Path
from typing import Any, ClassVar, Protocol

from sfumato._dataclasses import dataclass
from sfumato.errors import LedgerTampered, LedgerUnusable
from sfumato.ledger.chain import Chain, canonical
from sfumato.ledger.files import locked, read_file, replace_file, unusable
from sfumato.ledger.slots import padded, slots_of, write_slot

__all__ = ["Anchor", "FileAnchor", "Held", "Mark", "NoAnchor", "Pending", "check_end", "stale"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A receipt's number and mac: all that is needed to recognise the chain up to there."""

    number: int
    mac: bytes


@dataclass(frozen=True, slots=True)
class Held:
    """What an anchor holds.

    Attributes:
        mark: The last receipt that is known to be on disk, kept answers aside.
        coming: The one that a commit was announced for, which may or may not have happened.
        early: Whether an earlier version wrote it, which announced nothing.

    Privacy:
        Claim: at any time the database ends at `mark` or at `coming`, kept answers behind them aside, since a
        commit is announced before it happens and marked after, one at a time under the database's lock; and
        what was not marked was never read for. So a database that ends elsewhere is an older copy, or the
        anchor is; either is refused. Receipts of kept answers are neither announced nor marked: they add
        nothing to any sum, so that an anchor or a database which lacks them gives no budget back, and a power
        cut may take those that no later commit has synced.
        Condition: there is one anchor. A copy of it goes stale with the next receipt but that of an answer.
    """

    mark: Mark
    coming: Mark | None = None
    early: bool = False

    def ends_at(self, head: Mark, due: Mark) -> bool:
        """Whether a database that ends there goes with this anchor.

        Args:
            head: Its last receipt.
            due: Its last receipt that is not of a kept answer.
        """
        return head in (self.mark, self.coming) or due in (self.mark, self.coming)


class Pending(Protocol):
    """A mark that is announced, and to be set once its receipts are committed."""

    def settle(self) -> None:
        """Sets it, durably, unless a later one is set."""
        ...


class Anchor(Protocol):
    """Where the head of the chain is remembered outside the database."""

    kept: ClassVar[bool]  # whether there must be one

    def read(self) -> Held | None:
        """What it holds, None if there is none; `LedgerTampered` if it is not one of this ledger."""
        ...

    def prepare(self, now: Mark, coming: Mark) -> Pending:
        """Announces, durably, that receipts up to `coming` are about to follow the head of now."""
        ...


class NoAnchor:
    """For a ledger in memory, which nothing outlives."""

    kept: ClassVar[bool] = False

    def read(self) -> Held | None:
        """None."""
        return None

    def prepare(self, now: Mark, coming: Mark) -> Pending:
        """Nothing to write."""
        del now, coming
        return self

    def settle(self) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What a file holds, and where the next content belongs."""

    held: Held
    order: int  # of the newest slot; 0 in a file of an earlier version, which has none
    slot: int  # which one that is


class FileAnchor:
    """A small file of two sealed slots, written in turns. Machines that share a ledger share its folder.

    Privacy:
        Claim: a slot that was torn or damaged lets no older database pass. Contents are numbered, and the
        newer slot counts. If only one can be read, the other was about to be written, and what this one
        announces was committed by then: its mark follows the commit, and so does the next announcement,
        except where a commit failed, whose announcement is then overwritten itself. So the receipt that a
        single slot announces, if it does, is where the database must end.
    """

    kept: ClassVar[bool] = True

    def __init__(self, path: Path, chain: Chain) -> None:
        self.path, self._chain = path, chain
        self._seen: tuple[bytes, _Found] | None = None  # the last content, and what it holds

    def read(self) -> Held | None:
        """What the file holds."""
        found = self._find()
        return None if found is None else found.held

    def prepare(self, now: Mark, coming: Mark) -> Pending:
        """Writes both to the file, so that a disk that fails shows before the commit."""
        try:
            with locked(self.path):
                found = self._find()
                self._write(found, Held(now, coming))
        except OSError as wrong:
            raise unusable("written", self.path, wrong) from None
        return _Announced(self, coming)

    def start(self, mark: Mark) -> None:
        """Makes the anchor of a ledger that has none; leaves one that is there."""
        try:
            with locked(self.path):
                if not self.path.exists():
                    self._write(None, Held(mark))
        except OSError as wrong:
            raise unusable("written", self.path, wrong) from None

    def settle(self, mark: Mark) -> None:
        """Marks a receipt that is committed, unless a later one is marked.

        Raises:
            OSError: if the file cannot be written.
        """
        with locked(self.path):
            found = self._find()
            if found is None or found.held.mark.number < mark.number:
                self._write(found, Held(mark))

    def _find(self) -> _Found | None:
        try:
            content = read_file(self.path)
        except FileNotFoundError:
            return None
        except OSError as wrong:
            raise unusable("read", self.path, wrong) from None
        seen = self._seen
        if seen is not None and seen[0] == content:
            return seen[1]
        slots = slots_of(content)
        found = self._whole(content) if slots is None else self._newest(slots)
        if found is None:
            raise LedgerTampered(
                f"{self.path.name} is not the anchor of this ledger, or was changed: put the latest back, or "
                "let the steward adopt the ledger as it stands: sfumato ledger adopt --reason …"
            )
        self._seen = content, found
        return found

    def _newest(self, slots: tuple[bytes, bytes]) -> _Found | None:
        """The newer of two slots that follow each other; of a single one, what it must have come to."""
        contents = [self._content(slot, in_slot=True) for slot in slots]
        whole = [
            (order, slot, held) for slot, (order, held) in enumerate(contents) if order and held is not None
        ]
        if not whole:
            return None
        order, slot, held = max(whole, key=lambda content: content[0])
        if len(whole) < 2 or abs(whole[0][0] - whole[1][0]) != 1:
            held = Held(held.coming or held.mark)
        return _Found(held, order, slot)

    def _whole(self, content: bytes) -> _Found | None:
        """What a file of an earlier version holds, which was replaced as a whole."""
        _, held = self._content(content, in_slot=False)
        return None if held is None else _Found(held, 0, 0)

    def _content(self, content: bytes, *, in_slot: bool) -> tuple[int, Held | None]:
        try:
            data = json.loads(content)
            coming, order = data.get("coming"), data["order"] if in_slot else 0
            held = Held(_mark(data), None if coming is None else _mark(coming), "coming" not in data)
            # The seal of the first version covers no order, so that it holds for no slot.
            sealed = type(order) is int and not (in_slot and held.early)
            sealed = sealed and hmac.compare_digest(data["seal"], self._seal(held, order))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return 0, None
        return (order, held) if sealed else (0, None)

    def _write(self, found: _Found | None, held: Held) -> None:
        if found is None or not found.order:
            replace_file(self.path, self._line(held, 1) + self._line(held, 2))
        elif found.held.coming is not None and found.held.mark == held.mark:
            # What was announced did not happen, and makes room: the slot before it says what did.
            write_slot(self.path, found.slot, self._line(held, found.order))
        else:
            write_slot(self.path, 1 - found.slot, self._line(held, found.order + 1))

    def _line(self, held: Held, order: int) -> bytes:
        content = {
            "ledger": self._chain.ledger,
            "order": order,
            **_plain(held.mark),
            "coming": None if held.coming is None else _plain(held.coming),
            "seal": self._seal(held, order),
        }
        return padded(canonical(content))

    def _seal(self, held: Held, order: int) -> str:
        mark = f"{held.mark.number}\n{held.mark.mac.hex()}"
        if held.early:
            return self._chain.seal("anchor", mark)
        coming = "" if held.coming is None else f"{held.coming.number}\n{held.coming.mac.hex()}"
        if not order:
            return self._chain.seal("anchor 2", f"{mark}\n{coming}")
        return self._chain.seal("anchor 3", f"{order}\n{mark}\n{coming}")


class _Announced:
    """A mark that the anchor announces."""

    def __init__(self, anchor: FileAnchor, mark: Mark) -> None:
        self._anchor, self._mark = anchor, mark

    def settle(self) -> None:
        """Sets it, durably, unless a later one is set."""
        try:
            self._anchor.settle(self._mark)
        except OSError as wrong:
            raise LedgerUnusable(
                f"What was just written to the ledger is on record and paid, but its anchor "
                f"{self._anchor.path.name} could not follow ({wrong.strerror}): make its folder writable."
            ) from None


def check_end(anchor: Anchor, head: Mark, due: Mark, database: str) -> None:
    """Refuses to append, under the database's lock, where database and anchor do not end at one place."""
    held = anchor.read()
    if held is None:
        if anchor.kept:
            raise LedgerTampered(
                "The anchor of this ledger was removed while it was open: put it back. Nothing was spent."
            )
    elif not held.ends_at(head, due):
        if held.mark.number < head.number:
            raise LedgerTampered(f"{stale(held, head)} Nothing was spent.")
        raise LedgerTampered(
            f"{database} ends at receipt {head.number}, but its anchor is at {held.mark.number}: an older "
            "copy was put in its place. Restore the latest copy."
        )


def stale(held: Held, head: Mark) -> str:
    """What to say about an anchor that is behind."""
    return (
        f"The anchor is at receipt {held.mark.number} and the ledger at {head.number}: it is an older copy, "
        "or another machine has an anchor of its own. A ledger has one: put the latest back, or name the "
        "folder that the machines share as state."
    )


def _mark(data: Any) -> Mark:
    number = data["number"]
    if type(number) is not int:
        raise ValueError("no number")
    return Mark(number, bytes.fromhex(data["mac"]))


def _plain(mark: Mark) -> dict[str, Any]:
    return {"number": mark.number, "mac": mark.mac.hex()}
