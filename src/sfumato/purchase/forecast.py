"""`Forecast`: what several purchases in a row will debit and count, known before the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Counter
from sfumato.ledger.gates import Asked
from sfumato.loss import PrivacyLoss
from sfumato.purchase.buying import Bought, Purchase, known, offers_of
from sfumato.schema import Windows

__all__ = ["Forecast"]

T = TypeVar("T")


class Forecast:
    """For an answer that is paid in steps: none is paid where a later one would be refused.

    Each purchase is expected in the order in which `buy` will be called; `check` then holds all of them
    against the gates that decide on debits and reads.
    """

    def __init__(self, ledger: Counter, dataset: str) -> None:
        self._ledger, self._dataset = ledger, dataset
        self._losses: list[Asked] = []
        self._paid: dict[str, list[Asked]] = {}  # what will be on record by then, by its fingerprint
        self._beyond: BudgetExceeded | None = None  # why another's answer cannot be read
        self._checked = 0  # how many there were when they were last held against the gates

    def expect(self, wanted: Purchase[T], *, new: bool = False) -> Bought[T] | None:
        """The answer on record that `buy` will give for the next purchase; None: it will pay.

        Args:
            wanted: The next one.
            new: Whether it is a stand-in for a question that is known only once earlier ones are answered: it
                is priced as one that is not on record.

        Raises:
            AccessDenied: for a closed budget or a revoked analyst.
        """
        kept = None if new else known(self._ledger, wanted)
        if kept is not None:
            return kept
        offers = [] if new else offers_of(self._ledger, wanted)
        while (offer := wanted.choose(iter(offers))) is not None:
            assert offer.receipt.loss is not None
            step = Asked(offer.receipt.loss, False, offer.receipt.windows)
            try:
                self._ledger.refuse_several(self._dataset, [*self._losses, step])
            except BudgetExceeded as exceeded:
                self._beyond = exceeded
            else:
                self._losses.append(step)
                return offer
            offers = [other for other in offers if other.receipt.number != offer.receipt.number]
        wanted.check()
        paid = Asked(wanted.loss, windows=wanted.windows)
        if new or self._is_new(wanted.fingerprint, paid):
            self._losses.append(paid)
        return None

    def expect_debit(self, loss: PrivacyLoss, windows: Windows | None = None, *, fingerprint: str) -> None:
        """A debit that is no purchase, such as the one that pays for all points of a series.

        Args:
            loss: What it costs.
            windows: Where the budget is for each window of time, those that it is paid in.
            fingerprint: Of what it pays for.
        """
        paid = Asked(loss, windows=windows)
        if self._is_new(fingerprint, paid):
            self._losses.append(paid)

    def _is_new(self, fingerprint: str, paid: Asked) -> bool:
        """Whether none that comes before is the same: the second one is then on record, and free."""
        before = self._paid.setdefault(fingerprint, [])
        if paid in before:
            return False
        before.append(paid)
        return True

    @property
    def debits(self) -> int:
        """How many debits are expected."""
        return sum(asked.pays for asked in self._losses)

    def fits(self, losses: Sequence[Asked]) -> bool:
        """Whether debits of these would be admitted, too, one after the other, after all that is expected."""
        try:
            self._ledger.refuse_several(self._dataset, [*self._losses, *losses])
        except BudgetExceeded:
            return False
        return True

    def admits(self, loss: PrivacyLoss) -> bool:
        """Whether the last purchase would be admitted with this loss in place of its own."""
        try:
            self._ledger.refuse_several(
                self._dataset, [*self._losses[:-1], self._losses[-1]._replace(loss=loss)]
            )
        except BudgetExceeded:
            return False
        return True

    def check_on_the_way(self) -> None:
        """`check`, whenever twice as many are expected as the last time.

        For purchases that may be very many: they are refused after at most twice as many as are admitted, and
        all checks together take about as long as the last one.

        Raises:
            BudgetExceeded: as `check`.
            UnsupportedLoss: as `check`.
        """
        if len(self._losses) >= max(1, 2 * self._checked):
            self.check()
            self._checked = len(self._losses)

    def check(self) -> None:
        """Refuse what could not be paid for to its end.

        Raises:
            BudgetExceeded: if it does not fit; nothing was spent or counted.
            UnsupportedLoss: if the budget cannot add up one of the losses.
        """
        try:
            self._ledger.refuse_several(self._dataset, self._losses)
        except BudgetExceeded:
            if self._beyond is not None:
                raise self._beyond from None
            raise
