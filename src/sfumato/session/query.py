"""A question that can be priced for free and answered once it is paid for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from sfumato.errors import AccessDenied
from sfumato.numeric.exact import Rational
from sfumato.plan.quote import Quote, make_quote
from sfumato.plan.relations import rows_of
from sfumato.session.noise import privatise, privatise_extra, select
from sfumato.session.payload import Answer
from sfumato.session.reading import Reading
from sfumato.session.release import Release

if TYPE_CHECKING:
    from sfumato.plan.nodes import Report
    from sfumato.session.session import Session

__all__ = ["Query", "answered"]

Groups: TypeAlias = tuple[tuple[Any, ...], ...]


class Query:
    """A plan over one session's tables.

    Attributes:
        report: The plan.
        text: The SQL it was written in, if it was.
    """

    __slots__ = ("_session", "report", "text")

    def __init__(self, session: Session, report: Report, text: str | None = None) -> None:
        self._session, self.report, self.text = session, report, text

    def __repr__(self) -> str:
        return f"Query({self.text!r})" if self.text is not None else f"Query({self.report!r})"

    def quote(
        self,
        epsilon: Rational | None = None,
        *,
        delta: Rational | None = None,
        error: Mapping[str, Rational] | Rational | None = None,
        confidence: Rational = 0.95,
        mechanism: str | None = None,
    ) -> Quote:
        """What the answer would cost and how far off it would be. Free: no row is read, nothing is spent.

        Args:
            epsilon: The price; or give `error` instead.
            delta: What of the budget's delta this query may use; by default a hundredth of it, and 0 where
                the noise chosen is pure.
            error: Half-widths by column, or one for all: the least epsilon that reaches them is found.
            confidence: At which the half-widths hold.
            mechanism: "laplace" or "gaussian", to take the choice into your own hands.
        """
        session = self._session
        gate = session.dataset_of(self.report).budget
        allowed = Fraction(gate.delta) / 100 if delta is None else delta
        why = None
        if mechanism is None and gate.accountant != "basic" and allowed:
            mechanism, why = (
                "gaussian",
                f"Gaussian: a budget kept by {gate.accountant} is charged least for it.",
            )
        return make_quote(
            self.report,
            rows_of(self.report.child.source, session.tables),
            epsilon=epsilon,
            delta=allowed or None,
            error=error,
            confidence=confidence,
            mechanism=mechanism,
            why=why,
        )

    def release(
        self,
        epsilon: Rational | None = None,
        *,
        delta: Rational | None = None,
        error: Mapping[str, Rational] | Rational | None = None,
        confidence: Rational = 0.95,
        mechanism: str | None = None,
    ) -> Release:
        """The private answer, paid for before a row is read; the arguments are those of `quote`.

        The same question about the same declared data was perhaps answered before, no less accurately: then
        that answer is given again, free.

        Raises:
            BudgetExceeded: if it does not fit; nothing was spent.
            AccessDenied: for a revoked analyst or a closed budget; nothing was spent.
            EngineFailed: if the read fails; the price stays paid.
        """
        quote = self.quote(epsilon, delta=delta, error=error, confidence=confidence, mechanism=mechanism)
        session, questions = self._session, quote.recipe.questions
        session.vault.check(questions)
        dataset = session.dataset_of(self.report).name
        with session.question(quote.fingerprint):
            if not session.balance(dataset).open:
                raise AccessDenied(
                    "This budget is closed, or you may no longer ask; nothing was spent. Ask the steward."
                )
            for receipt, payload in session.ledger.recall(dataset, quote.fingerprint):
                answer = Answer.from_bytes(payload)
                if answer.as_good_as(quote):
                    return Release(quote, answer, receipt, free=True)
            memo = {
                "epsilon": str(quote.epsilon),
                "delta": str(quote.delta),
                "mechanism": quote.mechanism,
                "table": quote.measured.table,
            } | ({} if self.text is None else {"sql": self.text})
            receipt = session.ledger.debit(
                dataset, quote.loss, fingerprint=quote.fingerprint, analyst=session.analyst, memo=memo
            )

            def read(place: int, over: Groups | None) -> Reading:
                return session.vault.read(questions, receipt, place=place, over=over)

            answer = answered(quote, read)
            session.ledger.record(receipt, answer.to_bytes())
        return Release(quote, answer, receipt, free=False)


def answered(quote: Quote, read: Callable[[int, Groups | None], Reading]) -> Answer:
    """The private answer to all questions of a quote, each read once and made private at once.

    Exact integers have no name here for longer than a line: a frame that outlives an error must not hold
    them.
    """
    groups: Groups | None = None
    units = None
    main = int(len(quote.recipe.questions) > len(quote.extras))
    noisy: tuple[Any, ...] = ()
    if main and quote.selection is not None:
        survivors, units = select(read(0, None), quote)
        groups, noisy = survivors.groups, privatise(survivors.columns, quote)
        del survivors
    elif main:
        noisy = privatise(read(0, None).columns, quote)
    extras = tuple(
        (each.epsilon, privatise_extra(read(place, groups), each))
        for place, each in enumerate(quote.extras, start=main)
    )
    selection = None if quote.selection is None else (quote.selection.epsilon, quote.selection.delta)
    return Answer(
        noisy, quote.noises, quote.epsilon, quote.delta, quote.mechanism, groups, units, extras, selection
    )
