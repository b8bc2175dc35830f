"""The ledger, as far as a run of steps needs it."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.learn.torch.checking import kind_of
from sfumato.ledger import Counter, Memo, Right
from sfumato.loss import PrivacyLoss
from sfumato.numeric.exact import as_integer

__all__ = ["Payer", "all_taken"]


class Payer:
    """Pays for a run, once and whole, and takes its steps from what was paid.

    Args:
        ledger: Which.
        dataset: Whose budget.
        analyst: In whose name.
        block: How many steps are taken at once.

    Privacy:
        Claim: of the steps that a debit paid for each is taken once, durably, before it is run, by whatever
        processes resume the run. Proof: blocks are shares of the debit that the ledger adds up, and never
        beyond 1 (`ledger.blocks`).
    """

    def __init__(self, ledger: Counter, dataset: str, analyst: str | None, block: int) -> None:
        if not dataset:
            raise InvalidParameter("Say whose budget pays: dataset='photos'.")
        if not isinstance(ledger, Counter):
            raise InvalidParameter(
                f"ledger must be an open one, such as sf.Ledger.open('a.ledger'), not {kind_of(ledger)}."
            )
        for name, value in (("dataset", dataset), ("analyst", analyst)):
            if value is not None and not isinstance(value, str):
                raise InvalidParameter(f"{name} must be a name, as text, not {kind_of(value)}.")
        self.ledger, self.dataset, self.analyst = ledger, dataset, analyst
        self.block = as_integer(block, "block")
        self._right: Right | None = None

    def take(self, declared: dict[str, Any], loss: PrivacyLoss, words: str) -> tuple[int, int]:
        """How many steps may be run now, and how many are left after those.

        Raises:
            BudgetExceeded: if the run does not fit into the budget, or all of its steps were taken.
        """
        if self._right is None:
            self._right = self._begun(declared, loss, words)
        steps: int = declared["steps"]
        left = int(self._right.left * steps)
        some = min(self.block, left)
        if not some:
            raise all_taken(steps)
        self._right.block(Fraction(some, steps))
        return some, left - some

    def end(self, taken: int) -> None:
        """Writes down that the run is over."""
        assert self._right is not None
        self.ledger.record(self._right, json.dumps({"steps": taken}).encode())

    def _begun(self, declared: dict[str, Any], loss: PrivacyLoss, words: str) -> Right:
        """The run that was paid for and has steps left, or a new debit for the whole."""
        fingerprint = hashlib.sha256(json.dumps(["deep run", declared], sort_keys=True).encode()).hexdigest()
        with self.ledger.turn(self.dataset, fingerprint):
            begun = self.ledger.resume(self.dataset, fingerprint, self.analyst)
            if begun is not None:
                return begun
            memo = Memo(
                "fit",
                words,
                epsilon=Fraction(declared["epsilon"]),
                delta=Fraction(declared["delta"]),
                mechanism="gaussian",
            )
            return self.ledger.debit(
                self.dataset, loss, fingerprint=fingerprint, analyst=self.analyst, memo=memo, resumable=True
            )


def all_taken(steps: int) -> BudgetExceeded:
    """What is said of a run without steps."""
    return BudgetExceeded(
        f"All {steps:,} steps that were paid for are taken: a run of more steps is paid for by itself."
    )
