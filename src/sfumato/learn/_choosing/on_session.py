"""A choice between models on a session: what it reads, its one purchase, and what the ledger says to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from sfumato.fits.kept import Kept
from sfumato.fits.paying import Released, note_of, spared
from sfumato.learn._choosing.trials import Fitted, Given, model_of, models_of, unchecked
from sfumato.learn._core import paying
from sfumato.learn._core.declared import Following
from sfumato.learn._core.design import Design
from sfumato.learn._core.on_session import bought_design, reading_of
from sfumato.learn._core.reading import Reading
from sfumato.learn._core.records import Records
from sfumato.learn.base import PrivateEstimator
from sfumato.ledger import Memo, Right
from sfumato.ledger.spare import Spare
from sfumato.loss import GaussianLoss, PrivacyLoss
from sfumato.purchase import Purchase
from sfumato.session import Session

__all__ = ["Asked", "asked"]


class Asked(NamedTuple):
    """Rows of a session that models are chosen on, each between its own parameters.

    Attributes:
        estimator: The model that candidates are made of; it knows what the table declares of the target.
        given: The parameters of each candidate.
        reading: What is read, once, for all of them.
        spare: Where delta comes from, if nobody named it.
    """

    estimator: PrivateEstimator
    given: tuple[Given, ...]
    reading: Reading
    spare: Spare | None

    @property
    def delta(self) -> Fraction | None:
        """What the budget spares, if nobody named a delta."""
        return None if self.spare is None else self.spare.delta or None

    @property
    def exchange(self) -> bool:
        """Whether neighbours have one unit exchanged."""
        return self.reading.wanted.exchange

    @property
    def max_rows(self) -> int | None:
        """How many rows of one unit are read, at most; None: each row is a unit."""
        return self.reading.wanted.max_rows if self.reading.wanted.has_units else None

    def rehearse(self, paid: GaussianLoss) -> None:
        """Refuses whatever a fit of a candidate would refuse, before anything is paid.

        Args:
            paid: What one fit costs.
        """
        for model in models_of(self.estimator, self.given):
            model._check_session()
            model._rehearse(_design(model, self.reading.design), paid)

    def purchase(
        self,
        session: Session,
        loss: PrivacyLoss,
        *,
        memo: Memo,
        facts: Any,
        choose: Callable[[Records], Released],
    ) -> Purchase[Kept]:
        """The one purchase that the whole choice is.

        Args:
            session: Who pays.
            loss: What all fits and scores cost together.
            memo: Who spends, in which words and with which noise.
            facts: All else that the answer depends on but the price, as plain data.
            choose: From the rows to what is released, and the bounds that were bought.

        Privacy:
            Claim: what is recorded carries `loss`, if `choose` has that loss for rows that differ by those
            of one unit: one debit pays for all trials, and rows are read once (`whole_purchase`).
        """

        def released(right: Right) -> Released:
            return choose(self.reading.records(right, self.estimator._target_read))

        return paying.whole_purchase(
            session, self.reading, loss, memo=memo, facts=facts, released=released, spare=self.spare
        )

    def told(self, session: Session, wanted: Purchase[Kept]) -> tuple[str, str]:
        """Where delta comes from, if nobody named it; and what the ledger says to the purchase."""
        return "" if self.spare is None else self.spare.told, note_of(session, wanted)

    def model(self, at: int, kept: Kept, rho: Fraction) -> tuple[PrivateEstimator, Fitted]:
        """The candidate that was chosen, and what is on record of it.

        Args:
            at: Its number.
            kept: Its arrays, and the bounds that its fit bought.
            rho: What that fit had of the price.
        """
        model = model_of(self.estimator, self.given[at])
        design = _design(model, bought_design(model, self.reading, kept, rho))
        return model, Fitted(design, kept.learned, model._bounds_paid)


def asked(
    estimator: Any,
    given: Sequence[Given],
    session: Session,
    rows: Any,
    *,
    target: Any,
    parameters: Any,
    named: bool,
) -> Asked:
    """What a choice on a session reads; nothing is read yet.

    Args:
        estimator: The model; it stays as it is.
        given: The parameters of each candidate.
        session: Whose rows are read.
        rows: As `fit` takes them after the session.
        target: The column that is to be learned.
        parameters: Values for the text's parameters.
        named: Whether the price has a delta.

    Raises:
        InvalidParameter: for declarations that are missing or contradict each other.
        QueryRefused: for a text that asks for something else than rows.
    """
    first = unchecked(estimator, given[0])
    reading = reading_of(first, session, rows, target, parameters, plain=True)
    told = unchecked(estimator, {})
    told._public = first._public
    return Asked(told, tuple(given), reading, None if named else spared(session, reading.wanted.table))


def _design(model: PrivateEstimator, design: Design) -> Design:
    """The same columns as this candidate takes them."""
    return model._design_of(Following(design.columns), [column.name for column in design.columns])
