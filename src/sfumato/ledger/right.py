"""`Right`: what a debit gives the process that paid, and nobody else; `Steps`: the same, spent bit by bit."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn, Protocol

from sfumato.errors import AccessDenied, BudgetExceeded, InvalidParameter
from sfumato.numeric.exact import Rational, positive

if TYPE_CHECKING:
    from sfumato.accounting import Filter
    from sfumato.ledger.receipt import Receipt
    from sfumato.loss import PrivacyLoss

__all__ = ["Blocks", "Right", "Steps", "granted"]

_MINT = object()
_WHOLE, _NOTHING = Fraction(1), Fraction(0)


class Blocks(Protocol):
    """The ledger, as far as a fit that can be resumed needs it."""

    def left(self, receipt: Receipt) -> Fraction:
        """The part of a debit that no block has taken."""
        ...

    def take(self, receipt: Receipt, share: Fraction) -> Receipt:
        """Writes down that a part is taken, and gives the debit's receipt as it is on record."""
        ...


class Right:
    """The right to read what a debit paid for, each part once; it lives in the memory of who paid.

    It comes from `Ledger.debit` alone. It cannot be made from a receipt, copied, pickled or used in a forked
    process, so that a receipt that is read back, however old, opens nothing: whoever is killed after a
    debit has paid, and has to pay again to read.

    Attributes:
        receipt: The debit's receipt: what was paid, for everybody to see.
        share: Which part of it this right may spend by steps: all, or that of a block.

    Privacy:
        Claim: each read that a debit paid for happens at most once, in one process. A part is marked as read
        before it is, under a lock; the mark dies with the right, and a right is handed out once for each
        debit, after it was committed and anchored. Condition: whoever reads private rows calls `use` first,
        with what is read (the vault does).
    """

    __slots__ = (
        "__weakref__",
        "_blocks",
        "_lock",
        "_process",
        "_reads",
        "_stepping",
        "_used",
        "receipt",
        "share",
    )

    def __init__(
        self,
        receipt: Receipt,
        reads: Iterable[str],
        mint: object = None,
        *,
        share: Fraction = _WHOLE,
        blocks: Blocks | None = None,
    ) -> None:
        """Made by `Ledger.debit`."""
        if mint is not _MINT:
            raise AccessDenied(
                "A right to read comes from a debit, not from a receipt: pay for the question."
            )
        self.receipt = receipt
        self.share, self._blocks = share, blocks
        self._reads, self._used = frozenset(reads), set[tuple[str, Hashable]]()
        self._process, self._lock, self._stepping = os.getpid(), threading.Lock(), False

    def use(self, read: str, part: Hashable = 0) -> None:
        """Uses up the right to one read; called before it.

        Args:
            read: The fingerprint of what is about to be read.
            part: Which part of it.

        Raises:
            AccessDenied: if it was not paid for, was read before, or was paid by another process.
        """
        self.check_process()
        if read not in self._reads:
            raise AccessDenied("This receipt was not paid for this question.")
        with self._lock:
            if (read, part) in self._used:
                raise AccessDenied("This receipt was used before: every read is paid for by itself.")
            self._used.add((read, part))

    def check_process(self) -> None:
        """Refuses a process that did not pay: one that was forked since."""
        if self._process != os.getpid():
            raise AccessDenied("This was paid for by another process, which alone may read it.")

    def steps(self, gate: Filter) -> Steps:
        """What was paid for, to be spent step by step; once for each right.

        Args:
            gate: A filter with nothing spent whose `loss` is the one that was debited.
        """
        return Steps(self, gate)

    @property
    def left(self) -> Fraction:
        """The part of a fit that can be resumed which no process has taken yet; 0 for every other right."""
        return _NOTHING if self._blocks is None else self._blocks.left(self.receipt)

    def block(self, share: Rational, reads: Iterable[str] = ()) -> Right:
        """Takes a part of a fit that can be resumed, in advance and durably: a block taken is spent.

        Args:
            share: Which part of what was paid, above 0 and at most what is left.
            reads: The fingerprints of what may be read for it, once each.

        Returns:
            The right to that part, for this process alone.

        Raises:
            BudgetExceeded: if less is left.
            AccessDenied: if the debit is not for a fit that can be resumed, or was closed or revoked since.

        Privacy:
            Claim: the blocks of a debit are at most the whole of it, whatever is killed whenever and however
            many processes take some: a block is committed and anchored before its right exists, and sums are
            kept by the ledger. So the steps of all of them stay within what the filter allows.
        """
        self.check_process()
        if self._blocks is None:
            raise AccessDenied("This debit was not made for a fit that can be resumed.")
        part = positive(share, "share")
        return granted(self._blocks.take(self.receipt, part), reads, share=part)

    def _begin(self) -> None:
        """Uses up the right to spend it step by step."""
        self.check_process()
        if self._blocks is not None:
            raise AccessDenied("A fit that can be resumed is spent block by block: take one first.")
        with self._lock:
            if self._stepping:
                raise AccessDenied("This receipt was used before: every fit is paid for by itself.")
            self._stepping = True

    def __reduce__(self) -> NoReturn:
        raise TypeError("A right to read cannot be pickled or copied: each read is paid for by itself.")


def granted(
    receipt: Receipt, reads: Iterable[str], *, share: Fraction = _WHOLE, blocks: Blocks | None = None
) -> Right:
    """The right that what was just written down gives; for the ledger alone."""
    return Right(receipt, reads, _MINT, share=share, blocks=blocks)


class Steps:
    """One debit that covers a whole fit, spent step by step in memory: a choice, a marginal, a gradient.

    ```python
    steps = right.steps(BasicFilter(1))             # the debit's loss was BasicFilter(1).loss
    steps.take(mechanism.loss)                      # before each draw of noise
    ```

    The ledger sees the debit and never the steps: how many there were leaves no record.

    Privacy:
        Claim: all that is released by steps carries the loss that was debited, whatever each step's price
        and question owe to earlier answers. Source: the gate is a fully adaptive filter (see
        `sfumato.accounting`), and what it guarantees in all is exactly the debited loss. Conditions: each
        draw of noise on private values is preceded by `take` with its loss; nothing of a step is shown
        before the whole answer is (or else the fit is an interactive mechanism beside other questions:
        Haney et al. 2023 prove that filters hold there too for these four kinds of sums).
    """

    __slots__ = ("_gate", "_lock", "_right")

    def __init__(self, right: Right, gate: Filter) -> None:
        paid, whole = right.receipt.loss, gate.loss
        adjacency = None if paid is None else paid.adjacency
        if paid is None or paid != (whole if adjacency is None else whole.under(adjacency)):
            raise AccessDenied("This fit was paid for a loss other than its filter allows.")
        if any(gate.spent if isinstance(gate.spent, tuple) else (gate.spent,)):
            raise InvalidParameter("A fit begins with a filter that has spent nothing.")
        right._begin()
        before = 1 - right.share  # what other blocks of this debit may have spent, at most
        spent = (
            tuple(part * before for part in gate.budget)
            if isinstance(gate.budget, tuple)
            else gate.budget * before
        )
        self._right, self._gate, self._lock = right, gate.resumed(spent, adjacency), threading.Lock()

    def take(self, loss: PrivacyLoss, read: str | None = None) -> Right:
        """Counts a step before it is done.

        Args:
            loss: What this step costs.
            read: The fingerprint of what it reads, if it reads something.

        Returns:
            The right to read that, once.

        Raises:
            BudgetExceeded: if the steps so far leave too little of what was paid.
        """
        self._right.check_process()
        with self._lock:
            try:
                self._gate = self._gate.after(loss)
            except BudgetExceeded:
                raise BudgetExceeded(
                    "This step is beyond what was paid for: nothing was read, and the price stays paid."
                ) from None
        return granted(self._right.receipt, () if read is None else (read,))

    def __reduce__(self) -> NoReturn:
        raise TypeError("Steps that were paid for cannot be pickled or copied.")
