"""The anchor: the head of the chain outside the database, and what is about to follow it."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from sfumato.errors import LedgerTampered, LedgerUnusable
from sfumato.ledger.chain import Chain, canonical
from sfumato.ledger.files import locked, read_file, replace_file, unusable

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
        mark: The last receipt that is known to be written.
        coming: The one that a commit was announced for, which may or may not have happened.
        early: Whether an earlier version wrote it, which announced nothing.

    Privacy:
        Claim: at any time the database ends at `mark` or at `coming`, since a commit is announced before it
        happens and marked after, one at a time under the database's lock; and what was not marked was never
        read for. So a database that ends elsewhere is an older copy, or the anchor is; either is refused.
        Condition: there is one anchor. A copy of it goes stale with the next receipt.
    """

    mark: Mark
    coming: Mark | None = None
    early: bool = False

    def ends_at(self, head: Mark) -> bool:
        """Whether a database that ends there goes with this anchor."""
        return head in (self.mark, self.coming)


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


class FileAnchor:
    """A small sealed file, replaced as a whole. Machines that share a ledger share the folder it lies in."""

    kept: ClassVar[bool] = True

    def __init__(self, path: Path, chain: Chain) -> None:
        self.path, self._chain = path, chain

    def read(self) -> Held | None:
        """What the file holds."""
        try:
            data = json.loads(read_file(self.path))
            coming = data.get("coming")
            held = Held(_mark(data), None if coming is None else _mark(coming), "coming" not in data)
            sealed = hmac.compare_digest(data["seal"], self._seal(held))
        except FileNotFoundError:
            return None
        except OSError as wrong:
            raise unusable("read", self.path, wrong) from None
        except (ValueError, LookupError, TypeError, AttributeError):
            sealed = False
        if not sealed:
            raise LedgerTampered(
                f"{self.path.name} is not the anchor of this ledger, or was changed: put the latest back, or "
                "let the steward adopt the ledger as it stands: sfumato ledger adopt --reason …"
            )
        return held

    def prepare(self, now: Mark, coming: Mark) -> Pending:
        """Writes both to the file, so that a full disk shows before the commit."""
        try:
            with locked(self.path):
                self._write(Held(now, coming))
        except OSError as wrong:
            raise unusable("written", self.path, wrong) from None
        return _Announced(self, coming)

    def start(self, mark: Mark) -> None:
        """Makes the anchor of a ledger that has none; leaves one that is there."""
        try:
            with locked(self.path):
                if not self.path.exists():
                    self._write(Held(mark))
        except OSError as wrong:
            raise unusable("written", self.path, wrong) from None

    def settle(self, mark: Mark) -> None:
        """Marks a receipt that is committed, unless a later one is marked.

        Raises:
            OSError: if the file cannot be written.
        """
        with locked(self.path):
            held = self.read()
            if held is None or held.mark.number < mark.number:
                self._write(Held(mark))

    def _write(self, held: Held) -> None:
        content = {
            "ledger": self._chain.ledger,
            **_plain(held.mark),
            "coming": None if held.coming is None else _plain(held.coming),
            "seal": self._seal(held),
        }
        replace_file(self.path, (canonical(content) + "\n").encode("ascii"))

    def _seal(self, held: Held) -> str:
        mark = f"{held.mark.number}\n{held.mark.mac.hex()}"
        if held.early:
            return self._chain.seal("anchor", mark)
        coming = "" if held.coming is None else f"{held.coming.number}\n{held.coming.mac.hex()}"
        return self._chain.seal("anchor 2", f"{mark}\n{coming}")


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


def check_end(anchor: Anchor, head: Mark, database: str) -> None:
    """Refuses to append, under the database's lock, where database and anchor do not end at one place."""
    held = anchor.read()
    if held is None:
        if anchor.kept:
            raise LedgerTampered(
                "The anchor of this ledger was removed while it was open: put it back. Nothing was spent."
            )
    elif not held.ends_at(head):
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
