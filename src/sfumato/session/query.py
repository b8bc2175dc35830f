"""A question that can be priced for free and answered once it is paid for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.ledger import Memo, Right
from sfumato.numeric.exact import Rational
from sfumato.plan.expressions.names import NotAList, no_method
from sfumato.plan.prices.extras import PricedQuantiles
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.quoting import Quote
from sfumato.plan.prices.recipe import Recipe
from sfumato.plan.prices.terms import Terms
from sfumato.plan.questions.listed import check_listed
from sfumato.plan.questions.needs import ready
from sfumato.plan.questions.terms import Col
from sfumato.plan.questions.windowing import check_windows
from sfumato.plan.shaping import first, keep, put_in_order
from sfumato.purchase import Purchase, summed
from sfumato.render import is_text
from sfumato.session.affordable import affordable
from sfumato.session.answering import answered
from sfumato.session.auto import (
    SHARE,
    buy_bounds,
    known_bounds,
)
from sfumato.session.payload import Answer
from sfumato.session.profile import known_groups, limits_of
from sfumato.session.quoted import price_of, quoted_in, spared, with_bounds
from sfumato.session.recalling import serves
from sfumato.session.release import Release
from sfumato.session.spoken import asked_of, in_words
from sfumato.session.standing import standing
from sfumato.session.unreadable import known_unread
from sfumato.session.writing import write
from sfumato.session.written import Written
from sfumato.sql.asking import Asking

if TYPE_CHECKING:
    from sfumato.plan.questions.nodes import Report
    from sfumato.schema import Windows
    from sfumato.session.session import Session

__all__ = ["Query"]

_RELEASED = "Release it first: .release(epsilon=0.5) gives a result that has table, to_pandas() and plot()."
_HABITS: dict[str, str] = {
    **dict.fromkeys(("collect", "execute", "run", "fetch", "fetchall", "fetchone", "show"), _RELEASED),
    **dict.fromkeys(("to_pandas", "to_polars", "to_arrow", "df", "table", "plot", "interval"), _RELEASED),
    **dict.fromkeys(("order_by", "sort_values"), 'Write .sort("n", descending=True).'),
    **dict.fromkeys(("cost", "price", "explain_analyze"), "Write .quote(epsilon=0.5), which is free."),
    "tail": 'Sort the other way round: .sort("n").head(5).',
}


class Query(NotAList):
    """A plan over one session's tables.

    Attributes:
        text: The SQL it was written in, if it was.
    """

    __slots__ = ("_asking", "_session", "_windows", "text")
    _not_a_list = f"A question has no rows. {_RELEASED}"

    def __init__(
        self,
        session: Session,
        asked: Report | Asking,
        text: str | None = None,
        *,
        windows: Windows | None = None,
    ) -> None:
        asking = asked if isinstance(asked, Asking) else Asking(Plan.of(asked, session.tables))
        report = asking.report
        names = [*(column.name for column in report.columns), *(bar.name for bar in report.bars)]
        if not all(map(is_text, names)):
            raise QueryRefused("A column's name holds half a character.", "Give it another name.")
        check_listed(report.child, session.tables)
        check_windows(report.child.source, session.tables)
        self._session, self._asking, self.text, self._windows = session, asking, text, windows

    @property
    def report(self) -> Report:
        """The plan as it is shown."""
        return self._asking.report

    @property
    def plan(self) -> Plan:
        """What is asked, with what is known about the rows."""
        return self._asking.plan

    @property
    def windows(self) -> Windows | None:
        """The windows of time that it reads rows of, where the budget is for each; None: it is for all time.

        Raises:
            QueryRefused: if the budget is for each window, and the question leaves open which it reads.
        """
        return self._paid_in(self.report)

    def _paid_in(self, report: Report) -> Windows | None:
        return self._windows or self._session.windows_of(report)

    def about(self, plan: Plan, windows: Windows | None = None) -> Query:
        """A question in the same words whose plan is another, such as one about a part of its groups.

        Args:
            plan: What is asked then.
            windows: In which windows of time it is paid; None: in those that the plan names.
        """
        return Query(self._session, replace(self._asking, plan=plan), self.text, windows=windows)

    @property
    def explain(self) -> bool:
        """Whether the text asks for its quote alone."""
        return self._asking.explain

    @property
    def priced(self) -> bool:
        """Whether the text names its own price."""
        return self._asking.epsilon is not None or self._asking.delta is not None

    @property
    def names_delta(self) -> bool:
        """Whether the text names its own delta."""
        return self._asking.delta is not None

    def __getattr__(self, name: str) -> Any:
        raise no_method(self, "A question", name, _HABITS)

    def sort(self, *columns: str, descending: bool | Sequence[bool] = False) -> Query:
        """The same question with its groups in the order of these columns of the result. Free.

        Args:
            *columns: Keys or released values.
            descending: Whether the greatest come first; or for each column whether they do.

        Raises:
            QueryRefused: if the result has no such column, or only the first groups are left.
        """
        each = [descending] * len(columns) if isinstance(descending, bool) else list(descending)
        if not columns or len(each) != len(columns):
            raise InvalidParameter('sort takes columns of the result: sort("n", descending=True).')
        return self._shaped(put_in_order(self._asking.plan, columns, each))

    def head(self, n: int = 5) -> Query:
        """The same question with the first groups alone, of those that are released. Free."""
        return self._shaped(first(self._asking.plan, n))

    def limit(self, n: int = 5) -> Query:
        """The same as `head`."""
        return self.head(n)

    def filter(self, *conditions: Col) -> Query:
        """The same question with those groups alone whose released values satisfy all of these. Free."""
        if not all(isinstance(condition, Col) for condition in conditions):
            raise InvalidParameter('filter takes conditions such as col("n") >= 100.')
        return self._shaped(keep(self._asking.plan, [condition.expression for condition in conditions]))

    def _shaped(self, plan: Plan) -> Query:
        return Query(self._session, replace(self._asking, plan=plan), self.text, windows=self._windows)

    def belongs_to(self, session: Session) -> bool:
        """Whether it was made by this session: its units and limits are those of that session's tables."""
        return self._session is session

    def __repr__(self) -> str:
        return in_words(self._asking.plan, self.text)

    def quote(
        self,
        epsilon: Rational | None = None,
        *,
        delta: Rational | None = None,
        error: Mapping[str, Rational] | Rational | None = None,
        confidence: Rational = 0.95,
        mechanism: str | None = None,
        bounding: str | None = None,
        bounds: Literal["auto"] | None = None,
        touched: bool = False,
        profile: bool | None = None,
    ) -> Quote:
        """What the answer would cost and how far off it would be. Free: no row is read, nothing is spent.

        Args:
            epsilon: The price; or give `error` instead.
            delta: What of the budget's delta this query may use. By default a hundredth of it, and less once
                less than half of it is left, so that it never runs out; 0 where the noise chosen is pure.
            error: Half-widths by column, or one for all: the least epsilon that reaches them is found.
            confidence: At which the half-widths hold.
            mechanism: "laplace" or "gaussian", to take the choice into your own hands.
            bounding: "reweight" or "choose": whether units in too many groups have their rows weighted down
                or some of their groups chosen; the two estimate different things.
            bounds: "auto": bounds for numbers that have none, and the number of groups where they are
                chosen, are bought with a fifth of the price; they serve later questions too, which then
                leave that fifth unspent.
            touched: Whether to report as well, for a twentieth of the price, which share of the units clamps,
                weights and the choice of groups touched: the cut that noise bars leave out.
            profile: Whether to buy a profile of how many rows units have, for a fifth of the price, where the
                ledger has none: with it intervals cover the rows that limits cut. By default it is bought
                where the table's max_rows is "auto", which it chooses. What was bought serves all later
                questions about the table.
        """
        terms = Terms.of(
            epsilon,
            delta=delta,
            error=error,
            confidence=confidence,
            mechanism=mechanism,
            bounding=bounding,
            bounds=bounds,
            touched=touched,
            profile=profile,
        ).after(self._asking.epsilon, self._asking.delta)
        plan = self._planned(terms)
        terms = spared(self._session, plan, terms, self._paid_in(plan.report))
        limits = limits_of(self._session, plan, terms)
        plan, terms, told = limits.plan, limits.terms, limits.told
        first, what = limits.first, "a profile"
        if terms.bounds is not None:
            price = price_of(terms)
            chosen = known_bounds(self._session, plan, price)
            plan, terms, more = with_bounds(self._session, plan, terms, chosen)
            told = (*told, *more)
            what = "a profile and bounds" if limits.first else "bounds"
            first += price * SHARE if chosen is None else 0
        quote = replace(self._quoted(plan, terms, told), first=first, first_for=what)
        asked = limits.asked if terms.bounds is None else None
        return replace(limits.left_open(quote), standing=standing(self._session, quote, asked, self.purchase))

    def _planned(self, terms: Terms) -> Plan:
        """The plan with the wanted way of bounding."""
        plan, prepared = self._asking.plan, self._session.prepared
        node = plan.report.child
        if terms.bounding is not None:
            return plan.asking(touched=terms.touched or node.touched, bounding=terms.bounding)
        if node.bounding is not None and not node.bounding.asked:
            # What ranks there are is known here, not there.
            node = replace(node, bounding=None)
        served = ready(node, prepared[node.table]) if node.table in prepared else None
        return plan.asking(touched=terms.touched or node.touched, bounding=served or node.bounding)

    def _quoted(self, plan: Plan, terms: Terms, told: tuple[str, ...] = ()) -> Quote:
        def made() -> Quote:
            windows = self._paid_in(plan.report)
            return quoted_in(self._session, self._asking, plan, terms, told=told, windows=windows)

        if terms.error is not None:
            return made()
        return self._session.texts.quoted(plan, (terms, told, self._session.remark), made)

    def release(
        self,
        epsilon: Rational | None = None,
        *,
        delta: Rational | None = None,
        error: Mapping[str, Rational] | Rational | None = None,
        confidence: Rational = 0.95,
        mechanism: str | None = None,
        bounding: str | None = None,
        bounds: Literal["auto"] | None = None,
        touched: bool = False,
        profile: bool | None = None,
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
        terms = Terms.of(
            epsilon,
            delta=delta,
            error=error,
            confidence=confidence,
            mechanism=mechanism,
            bounding=bounding,
            bounds=bounds,
            touched=touched,
            profile=profile,
        ).after(self._asking.epsilon, self._asking.delta)
        plan = self._planned(terms)
        terms = spared(self._session, plan, terms, self._paid_in(plan.report))
        limits = limits_of(self._session, plan, terms)
        limits = affordable(self._session, limits, self._quoted, self.purchase)
        if limits.first:
            limits = limits.bought(self._session)
        plan, terms, told, counted = limits.plan, limits.terms, limits.told, limits.counted
        first = {"the profile": limits.spent}
        if terms.bounds is not None:
            price = price_of(terms)
            chosen = known_bounds(self._session, plan, price) or buy_bounds(self._session, plan, price)
            counted = summed(counted, chosen.counted)
            first["bounds"] = chosen.spent
            plan, terms, more = with_bounds(self._session, plan, terms, chosen)
            told = (*told, *more)
        quote = self._quoted(plan, terms, told)
        unread = known_unread(self._session, plan)
        bought = self._session.buy(self.purchase(quote, limits.asked if terms.bounds is None else None))
        notes = (*_meanings(quote), *told, *(() if unread is None else unread.notes))
        release = Release(
            quote,
            bought.answer,
            bought.receipt,
            free=bought.free,
            bounds=(*filter(None, (self._session.remark,)), *notes),
            profile=limits.profile,
            groups=None if terms.profile is False else known_groups(self._session, quote),
            unread=unread,
            counted=bought.counted,
            besides=counted,
            first=first,
        )
        return self._session.lately.shared(release, bought.answer) if bought.free else release

    def write(
        self,
        folder: str | Path,
        epsilon: Rational | None = None,
        *,
        delta: Rational | None = None,
        confidence: Rational = 0.95,
        mechanism: str | None = None,
        bounding: str | None = None,
        errors: bool = False,
    ) -> Written:
        """The private answer as Parquet files: for more groups than fit in memory, with the engine Spark.

        Groups are selected and noise is drawn where they are, part by part, and only what is released is
        written; the ledger keeps the digests of the files. The same question again gives the same files,
        free, copied into another folder if that is asked for.

        Args:
            folder: A new folder, seen by this process and by all tasks of Spark; Sfumato must be installed
                where they run.
            epsilon: The price.
            delta: What of the budget's delta it may use, as for `release`.
            confidence: At which half-widths and intervals hold.
            mechanism: "laplace" or "gaussian".
            bounding: "reweight" or "choose".
            errors: Whether to write half-widths and intervals, too, as `Release.to_arrow` has them.

        Raises:
            QueryRefused: for public groups, or what needs all groups in one place; nothing was spent.
            InvalidParameter: if the folder has files, or cannot be made; nothing was spent.
            BudgetExceeded: if it does not fit; nothing was spent.
            AccessDenied: for a revoked analyst or a closed budget; nothing was spent.
            EngineFailed: if the read fails; the price stays paid.
        """
        if self.explain:
            raise QueryRefused("EXPLAIN asks for the quote alone.", "Call quote, or leave EXPLAIN out.")
        quote = self.quoted_once(
            epsilon, delta=delta, confidence=confidence, mechanism=mechanism, bounding=bounding
        )
        return write(self._session, quote, self._memo(quote), folder, errors=errors)

    def quoted_once(
        self,
        epsilon: Rational | None,
        *,
        delta: Rational | None = None,
        confidence: Rational = 0.95,
        mechanism: str | None = None,
        bounding: str | None = None,
        steps: int | None = None,
    ) -> Quote:
        """A quote for what is read once, with nothing bought before: of files, and of series (`steps`)."""
        terms = Terms.of(
            epsilon, delta=delta, confidence=confidence, mechanism=mechanism, bounding=bounding, profile=False
        ).after(self._asking.epsilon, self._asking.delta)
        plan = self._planned(terms)
        terms = spared(self._session, plan, terms, self._paid_in(plan.report))
        limits = limits_of(self._session, plan, replace(terms, once=True, steps=steps))
        return self._quoted(limits.plan, limits.terms, limits.told)

    def recipe(self) -> Recipe:
        """What is measured for it, and how its columns follow."""
        return self._planned(Terms()).recipe

    def purchase(self, quote: Quote, asked: Fraction | None = None) -> Purchase[Answer]:
        """What `release` buys for a quote; what has no form in the engine's language is refused unpaid.

        Args:
            quote: What is asked, and its own price.
            asked: The price that was asked for, with the part of it that went into a profile.
        """
        session, questions = self._session, quote.recipe.questions
        windows = self._paid_in(quote.report)

        def answer(right: Right) -> Answer:
            return answered(
                quote,
                lambda place, over, spread=None: session.vault.read(
                    questions, right, place=place, over=over, spread=spread
                ),
            )

        return Purchase(
            dataset=session.dataset_of(quote.report).name,
            loss=quote.loss,
            fingerprint=quote.fingerprint,
            memo=self._memo(quote, asked),
            answer=answer,
            write=Answer.to_bytes,
            read_back=Answer.from_bytes,
            choose=lambda kept: next((bought for bought in kept if serves(bought, quote, asked)), None),
            check=lambda: session.vault.check(questions, quote.rows, spread=quote.spread, windows=windows),
            windows=windows,
        )

    def _memo(self, quote: Quote, asked: Fraction | None = None) -> Memo:
        return Memo(
            "table" if self.text is None else "sql",
            asked_of(self._asking.plan) if self.text is None else self.text,
            quote.epsilon,
            quote.delta,
            quote.mechanism,
            quote.measured.table,
            asked if asked != quote.epsilon else None,
            quote.unnamed,
        )


def _meanings(quote: Quote) -> tuple[str, ...]:
    """What extremes are of which a head only says the name."""
    extras = [extra for extra in quote.extras if isinstance(extra, PricedQuantiles)]
    return tuple(dict.fromkeys(note for extra in extras for note in extra.notes))
