"""A question that can be priced for free and answered once it is paid for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sfumato.errors import BudgetExceeded, InvalidParameter, QueryRefused
from sfumato.ledger import Memo, Right
from sfumato.numeric.exact import Rational, positive
from sfumato.plan.prices.quoting import Quote, make_quote
from sfumato.plan.prices.recipe import Recipe, recipe
from sfumato.plan.prices.words import exact as shown_exact
from sfumato.plan.questions.nodes import Bounding
from sfumato.plan.questions.prepared import ready
from sfumato.plan.questions.relations import rows_of
from sfumato.plan.questions.unbounded import FALLBACK, bounded, unbounded
from sfumato.purchase import Purchase
from sfumato.render import is_text
from sfumato.session.auto import SHARE, Bounds, buy_bounds, known_bounds
from sfumato.session.noise import privatise, privatise_extra, select, select_on_levels
from sfumato.session.payload import Answer
from sfumato.session.reading import Reading
from sfumato.session.release import Release
from sfumato.sql.asking import Asking

if TYPE_CHECKING:
    from sfumato.plan.questions.nodes import Report
    from sfumato.session.session import Session

__all__ = ["Query", "answered"]

Groups: TypeAlias = tuple[tuple[Any, ...], ...]


class Query:
    """A plan over one session's tables.

    Attributes:
        report: The plan.
        text: The SQL it was written in, if it was.
    """

    __slots__ = ("_asking", "_session", "report", "text")

    def __init__(
        self,
        session: Session,
        report: Report,
        text: str | None = None,
        asking: Asking | None = None,
    ) -> None:
        names = [*(each.name for each in report.columns), *(each.name for each in report.bars)]
        if not all(map(is_text, names)):
            raise QueryRefused("A column's name holds half a character.", "Give it another name.")
        self._session, self.report, self.text = session, report, text
        self._asking = Asking(report) if asking is None else asking

    @property
    def explain(self) -> bool:
        """Whether the text asks for its quote alone."""
        return self._asking.explain

    @property
    def priced(self) -> bool:
        """Whether the text names its own price."""
        return self._asking.epsilon is not None or self._asking.delta is not None

    def belongs_to(self, session: Session) -> bool:
        """Whether it was made by this session: its units and limits are those of that session's tables."""
        return self._session is session

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
        bounding: Bounding | None = None,
        bounds: Literal["auto"] | None = None,
        touched: bool = False,
    ) -> Quote:
        """What the answer would cost and how far off it would be. Free: no row is read, nothing is spent.

        Args:
            epsilon: The price; or give `error` instead.
            delta: What of the budget's delta this query may use; by default a hundredth of it, and 0 where
                the noise chosen is pure.
            error: Half-widths by column, or one for all: the least epsilon that reaches them is found.
            confidence: At which the half-widths hold.
            mechanism: "laplace" or "gaussian", to take the choice into your own hands.
            bounding: "reweight" or "choose": whether units in too many groups have their rows weighted down
                or some of their groups chosen; the two estimate different things.
            bounds: "auto": bounds for numbers that have none, and the number of groups where they are
                chosen, are bought with a fifth of the price; they serve later questions too, which then
                leave that fifth unspent.
            touched: Whether to report as well, for a twentieth of the price, which share of the units clamps,
                weights and the choice of groups touched: the cut that error bars do not cover.
        """
        report, notes = self._planned(bounding, touched), list(self._asking.notes)
        first = Fraction(0)
        if bounds is not None:
            asked = report
            report, epsilon, more = self._with_bounds(report, epsilon, bounds, pay=False)
            notes += more
            first = self._first(asked, epsilon)
        made = self._quoted(report, epsilon, delta, error, confidence, mechanism, notes)
        return replace(made, first=first) if first else made

    def _first(self, report: Report, rest: Rational) -> Fraction:
        """What would be paid for bounds before, if this is left of the price."""
        price = positive(rest, "epsilon") / (1 - SHARE)
        rows = rows_of(report.child.source, self._session.tables)
        return price * SHARE if known_bounds(self._session, report, rows, price) is None else Fraction(0)

    def _planned(self, bounding: Bounding | None, touched: bool) -> Report:
        """The plan with the wanted way of bounding."""
        report = self.report
        if touched:
            report = replace(report, child=replace(report.child, touched=True))
        if bounding is None:
            node, prepared = report.child, self._session.prepared
            if node.bounding in ("prepared", "grouped"):  # what ranks there are is known here, not there
                node = replace(node, bounding=None)
            served = ready(node, prepared[node.table]) if node.table in prepared else None
            return replace(report, child=node if served is None else replace(node, bounding=served))
        if bounding not in ("reweight", "choose"):
            raise InvalidParameter(f'bounding is "reweight" or "choose", not {str(bounding)[:40]!r}.')
        return replace(report, child=replace(report.child, bounding=bounding))

    def _with_bounds(
        self, report: Report, epsilon: Rational | None, bounds: str, *, pay: bool
    ) -> tuple[Report, Rational, tuple[str, ...]]:
        """The plan with bounds for what has none, what is left of the price, and what to say about it."""
        price = self._asking.epsilon if epsilon is None else epsilon
        if bounds != "auto":
            raise InvalidParameter(f'bounds is "auto" or left out, not {str(bounds)[:40]!r}.')
        if price is None:
            raise InvalidParameter("Bounds that are bought need a price: give an epsilon.")
        exact, rows = positive(price, "epsilon"), rows_of(report.child.source, self._session.tables)
        if pay:
            found: Bounds | None = buy_bounds(self._session, report, rows, exact)
        else:
            found = known_bounds(self._session, report, rows, exact)
        part = exact * SHARE  # whether it is spent or not: the same question again has the same price
        if found is None:
            needed = unbounded(report, rows)
            assumed = bounded(report, dict.fromkeys(needed, FALLBACK))
            told = (
                "Bounds would be bought first, and kept for later questions; the errors above are for "
                "numbers from 0 to 1 and declared limits, and change with what is found."
            )
            return assumed, exact - part, (told,)
        paid = f"Epsilon {shown_exact(found.spent)} was paid for bounds, which are kept for later questions."
        return found.report, exact - part, (*found.notes, *((paid,) if found.spent else ()))

    def _check_affordable(self, report: Report, quote: Quote, epsilon: Rational | None) -> None:
        """Refuse before bounds are bought what could not be asked or paid for afterwards."""
        session, price = self._session, self._asking.epsilon if epsilon is None else epsilon
        session.vault.check(quote.recipe.questions)
        rows = rows_of(report.child.source, session.tables)
        exact = positive(0 if price is None else price, "epsilon")
        if known_bounds(session, report, rows, exact) is not None:
            return
        balance = session.balance(session.dataset_of(report).name)
        if exact > balance.remaining or quote.delta > balance.remaining_delta:
            raise BudgetExceeded(
                f"This would cost epsilon {shown_exact(exact)} with its bounds, delta "
                f"{shown_exact(quote.delta)}; left are epsilon {float(balance.remaining):.6g}, delta "
                f"{float(balance.remaining_delta):.6g}. Nothing was spent."
            )

    def _quoted(
        self,
        report: Report,
        epsilon: Rational | None,
        delta: Rational | None,
        error: Mapping[str, Rational] | Rational | None,
        confidence: Rational,
        mechanism: str | None,
        notes: Sequence[str],
    ) -> Quote:
        session, asking = self._session, self._asking
        if epsilon is None and error is None:
            epsilon = asking.epsilon
        delta = asking.delta if delta is None else delta
        gate = session.dataset_of(report).budget
        allowed = Fraction(gate.delta) / 100 if delta is None else delta
        why = None
        if mechanism is None and gate.accountant != "basic" and allowed:
            mechanism, why = (
                "gaussian",
                f"Gaussian: a budget kept by {gate.accountant} is charged least for it.",
            )
        rows = rows_of(report.child.source, session.tables)
        if asking.lacking is not None and unbounded(report, rows):
            raise QueryRefused(*asking.lacking)
        quote = make_quote(
            report,
            rows,
            epsilon=epsilon,
            delta=allowed or None,
            error=error,
            confidence=confidence,
            mechanism=mechanism,
            why=why,
            adds=gate.accountant == "basic",
        )
        if quote.selection is not None and gate.accountant != "basic" and not gate.aside:
            raise QueryRefused(
                f"A budget kept by {gate.accountant} cannot pay for groups that are not public: finding them "
                "needs a delta of its own.",
                "List the values of the keys in WHERE, or have the budget opened as basic, or as zcdp with a "
                "part of delta aside.",
            )
        return replace(quote, notes=(*quote.notes, *notes)) if notes else quote

    def release(
        self,
        epsilon: Rational | None = None,
        *,
        delta: Rational | None = None,
        error: Mapping[str, Rational] | Rational | None = None,
        confidence: Rational = 0.95,
        mechanism: str | None = None,
        bounding: Bounding | None = None,
        bounds: Literal["auto"] | None = None,
        touched: bool = False,
    ) -> Release:
        """The private answer, paid for before a row is read; the arguments are those of `quote`.

        The same question about the same declared data was perhaps answered before, no less accurately: then
        that answer is given again, free.

        Raises:
            BudgetExceeded: if it does not fit; nothing was spent.
            AccessDenied: for a revoked analyst or a closed budget; nothing was spent.
            EngineFailed: if the read fails; the price stays paid.
        """
        if self.explain:
            raise QueryRefused("EXPLAIN asks for the quote alone.", "Call quote, or leave EXPLAIN out.")
        report, notes = self._planned(bounding, touched), list(self._asking.notes)
        found: tuple[str, ...] = ()
        if bounds is not None:
            if error is not None:
                raise InvalidParameter("Bounds that are bought need a price: give epsilon instead of error.")
            assumed, rest, _ = self._with_bounds(report, epsilon, bounds, pay=False)
            beforehand = self._quoted(assumed, rest, delta, error, confidence, mechanism, notes)
            self._check_affordable(report, beforehand, epsilon)
            report, epsilon, more = self._with_bounds(report, epsilon, bounds, pay=True)
            notes += more
            found = more
        quote = self._quoted(report, epsilon, delta, error, confidence, mechanism, notes)
        bought = self._session.buy(self.purchase(quote))
        return Release(quote, bought.answer, bought.receipt, free=bought.free, bounds=found)

    def recipe(self) -> Recipe:
        """What is measured for it, and how its columns follow."""
        return recipe(self._planned(None, False), rows_of(self.report.child.source, self._session.tables))

    def purchase(self, quote: Quote) -> Purchase[Answer]:
        """What `release` buys for a quote; what has no form in the engine's language is refused here."""
        session, questions = self._session, quote.recipe.questions
        session.vault.check(questions)

        def answer(right: Right) -> Answer:
            return answered(
                quote, lambda place, over: session.vault.read(questions, right, place=place, over=over)
            )

        return Purchase(
            dataset=session.dataset_of(quote.report).name,
            loss=quote.loss,
            fingerprint=quote.fingerprint,
            memo=Memo(
                "table" if self.text is None else "sql",
                self.text or "",
                quote.epsilon,
                quote.delta,
                quote.mechanism,
                quote.measured.table,
            ),
            answer=answer,
            write=Answer.to_bytes,
            read_back=Answer.from_bytes,
            choose=lambda kept: next((each for each in kept if each.answer.as_good_as(quote)), None),
        )


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
        if quote.measured.levels:
            places = range(main + len(quote.extras), len(quote.recipe.questions))
            survivors, units = select_on_levels(read(0, None), [read(each, None) for each in places], quote)
        else:
            survivors, units = select(read(0, None), quote.selections[0])
        groups, noisy = survivors.groups, privatise(survivors.columns, quote)
        del survivors
    elif main:
        noisy = privatise(read(0, None).columns, quote)
    extras = tuple(
        (each.epsilon, privatise_extra(read(place, groups if each.extra.measured.keys else None), each))
        for place, each in enumerate(quote.extras, start=main)
    )
    price = quote.selection_price
    return Answer(
        noisy, quote.noises, quote.epsilon, quote.delta, quote.mechanism, groups, units, extras, price
    )
