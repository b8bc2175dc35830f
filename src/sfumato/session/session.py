"""`Session`: tables that may be asked, the budget that pays, the ledger that remembers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import date
from heapq import merge
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.engines.base import engine as open_engine
from sfumato.engines.base import engine_of, missing_members
from sfumato.engines.dialect import EARLIER
from sfumato.errors import EngineFailed, InvalidParameter, LedgerMismatch, QueryRefused, SfumatoError
from sfumato.ledger import Balance, Budget, Counter, Dataset, Ledger, Receipt
from sfumato.ledger.budget import amount
from sfumato.ledger.names import spelled
from sfumato.numeric.exact import Rational, as_integer, positive
from sfumato.plan.builder import Selection
from sfumato.plan.expressions.names import NotAList, nearest
from sfumato.plan.questions.aggregates.count import count
from sfumato.plan.questions.paid_windows import windows_read
from sfumato.plan.questions.terms import Col
from sfumato.purchase import Bought, Purchase, buy
from sfumato.schema import PrivateTable, PublicTable, Windows, dataset_of
from sfumato.session.attaching import Attached, attach, declaration_of
from sfumato.session.lately import Lately
from sfumato.session.profile import buy_profile
from sfumato.session.query import Query
from sfumato.session.release import Release
from sfumato.session.states import about_states, all_states, state_of, states_named
from sfumato.session.texts import Texts
from sfumato.session.unreadable import buy_unread
from sfumato.session.vault import Vault
from sfumato.sql.text.parameters import Values
from sfumato.sql.views import joined_view

if TYPE_CHECKING:
    from sfumato.engines.base import Engine
    from sfumato.plan.expressions.tree import Expression
    from sfumato.plan.prices.quoting import Quote
    from sfumato.plan.questions.nodes import Measured, Report
    from sfumato.session.choices import Choice, Crossing
    from sfumato.session.intervals import Known
    from sfumato.session.series import Of, Stream
    from sfumato.validation import Validation

__all__ = ["Session"]

T = TypeVar("T")


class Session(NotAList):
    """Private tables with a budget. It may be used from several threads.

    ```python
    s = Session(visits, budget=Budget(epsilon=2, delta=1e-6), ledger="visits.ledger")
    q = s.sql("SELECT country, COUNT(*) AS n FROM visits GROUP BY country")
    print(q.quote(epsilon=0.3))
    r = q.release(epsilon=0.3)
    ```

    Attributes:
        tables: The private tables by name.
        ledger: Where every answer is paid from: the `Ledger`, or, if an analyst asks, their `Counter` of it.
        vault: What reads, for what a debit gave.
        prepared: The tables whose rows have ranks, so that a filter bounds them; by name the columns of the
            grouping that they were prepared for, if any.
        remark: What is said beside every answer: of a rehearsal, that it is one.
        profiled: What the profile of a table measures and the end of its ladder, by the table's name and the
            keys of groups, once it was asked for.
        texts: What texts mean, and what they were quoted at: nothing of it is data.
        lately: What was made of the answers that were read again lately.
        asked_unread: The question how many cells of a column could not be read, with a quote, by table and
            column.
    """

    _not_a_list = (
        'Ask about a table: s.table("visits"), s.sql("SELECT COUNT(*) AS n FROM visits"); '
        "rows are not handed out, nor can searches of scikit-learn take them."
    )

    def __init__(
        self,
        *tables: PrivateTable | PublicTable,
        budget: Budget | None = None,
        ledger: str | Path | Counter | None = None,
        engine: Engine | str | None = None,
        analyst: str | None = None,
    ) -> None:
        """Attach the sources, open the ledger, and find or open the budget of each table's dataset.

        Sources come first, so that one that cannot be used leaves nothing on record.

        Args:
            *tables: At least one private one, and any public ones, with different names.
            budget: What may be spent on each dataset in all. May be left out for a ledger that has it; until
                something is spent the last one given holds.
            ledger: A path (SQLite), a `postgresql://` address, an open ledger, or None: it lives and dies
                with the session.
            engine: What runs the reads, or its name; by default the one that the addresses of sources name,
                or the one inside this process.
            analyst: In whose name to ask, where the steward has set limits; see also `as_analyst`.

        Raises:
            LedgerMismatch: if something was spent, and the ledger has another budget, unit or bounds on
                record.
            AccessDenied: if an analyst is named and the ledger has no budget on record yet, or another
                version: what to open and declare is the steward's.
            SourceUnusable: if a source cannot be opened or lacks a declared column; in the steward's own
                session also if a CSV file would lose rows to a quote or to text that is not UTF-8.
        """
        private = [table for table in tables if isinstance(table, PrivateTable)]
        if not private or not all(isinstance(table, PrivateTable | PublicTable) for table in tables):
            raise InvalidParameter("A session takes one or more PrivateTable: Session(visits, budget=…).")
        if len({table.name.lower() for table in tables}) != len(tables):
            raise InvalidParameter("Two tables of a session have the same name.")
        whose = ledger.analyst if analyst is None and isinstance(ledger, Counter) else analyst
        self._own_ledger = not isinstance(ledger, Counter)
        self._own_engine, self._owner = engine is None or isinstance(engine, str), True
        self._engine = _opened(engine, tables)
        try:
            attached = attach(self._engine, tables, whole=whose is None)
            self.ledger: Counter = ledger if isinstance(ledger, Counter) else Ledger.open(ledger)
            if whose is not None and self.ledger.whose(whose) != self.ledger.analyst:
                self.ledger = Counter(self.ledger, whose, closes=self._own_ledger)
                self._own_ledger = True
            self._begin(attached, budget)
        except BaseException:
            self.close()
            raise

    @classmethod
    def _over(cls, attached: Attached, ledger: Counter) -> Session:
        """A session on tables that are attached already; neither engine nor ledger is its own."""
        made = object.__new__(cls)
        made.ledger, made._engine = ledger, attached.engine
        made._own_engine = made._own_ledger = False
        made._owner = True
        made._begin(attached, None)
        return made

    def _begin(self, attached: Attached, budget: Budget | None) -> None:
        """Find or open the budget of each dataset."""
        self._attached = attached
        _unambiguous(self.ledger, set(attached.members))
        self._datasets = {
            name: self.ledger.register(
                name, declaration_of(members), budget, chosen_by=self._engine.dialect.digest.name
            )
            for name, members in attached.members.items()
        }
        self._begun()

    def _begun(self) -> None:
        """Make what reads, once it is known whose budgets pay."""
        whose = self._whose()
        salts = {name: _salt(dataset.salt) for name, dataset in whose.items()}
        digests = {name: dataset.chosen_by or EARLIER for name, dataset in whose.items()}
        self.vault = Vault(self._engine, self.tables, salts, digests)
        self.profiled: dict[tuple[str, tuple[Expression, ...]], tuple[Measured, int]] = {}
        self.asked_unread: dict[tuple[str, str], tuple[Query, Quote]] = {}
        self.remark = about_states(self.tables)
        self.texts, self.lately = Texts(self.tables), Lately()

    @property
    def tables(self) -> Mapping[str, Any]:
        """The tables by name, to look at: what is declared about them is on record and stays."""
        return self._attached.tables

    @property
    def prepared(self) -> Mapping[str, tuple[str, ...]]:
        """The prepared tables by name, with the columns of the grouping that they were prepared for."""
        return self._attached.prepared

    @property
    def analyst(self) -> str | None:
        """In whose name it asks; None: the steward's own."""
        return self.ledger.analyst

    def as_analyst(self, name: str) -> Session:
        """A session in an analyst's name, within their limit, over the same engine and attached tables.

        Nothing is opened or attached again, so that it costs about as much as a look into the ledger. It has
        no way to the steward's acts (see `Counter`), and asks in no other name. Each may be used from a
        thread of its own. Closing it ends it alone; closing this session, whose engine and ledger they are,
        ends all that it gave: close it last.

        Args:
            name: Of the analyst; a new one is not limited but by the dataset's budget.

        Raises:
            AccessDenied: if this session itself is an analyst's, or the ledger has another version by now.
            LedgerMismatch: if the ledger has other declarations by now.
            EngineFailed: if this session is closed.
        """
        self._check_open()
        other = object.__new__(Session)
        other.ledger = Counter(self.ledger, name)
        other._engine, other._own_engine, other._own_ledger = self._engine, False, True
        other._owner = False
        other._begin(self._attached, None)
        for dataset in other._datasets:
            other.ledger.is_open(dataset)  # refuses a name that could be taken for another
        return other

    def at(self, state: str, *, table: str | None = None) -> Session:
        """The same session about data as they were: an answer on record is free, any other is paid as usual.

        It pays from the same budget, since the same people are in all states, and ends with this session.

        Args:
            state: The steward's word for it: `s.at("2026-02").sql(…)`.
            table: Of which table, where another one that grows has no such state.

        Raises:
            InvalidParameter: if there is no such state.
            SourceUnusable: if its files are gone.
        """
        return self._in(states_named(self.tables, state, table))

    def growing(self) -> Session:
        """The same session about tables as they are, whichever their newest state: for what goes on over it.

        A series is read so, and what is published window by window; where no table has states, it is this
        session itself.
        """
        return self._in(all_states(self.tables))

    def _in(self, states: Mapping[str, str]) -> Session:
        self._check_open()
        if all(self.tables[name].version == state for name, state in states.items()):
            return self
        other = copy(self)
        other._own_engine = other._own_ledger = other._owner = False
        other._attached = self._attached.at(states)
        other._begun()
        return other

    def rehearse(self, *, seed: int = 0) -> Session:
        """A session over made-up rows in the shape of these tables, to try questions on: nothing is spent.

        The rows follow from the declarations alone; none of the data is read. It has budgets of its own, as
        large as the datasets' own ones, so that what does not fit is refused there too.

        Args:
            seed: The same seed makes the same rows.
        """
        budgets = {name: dataset.budget for name, dataset in self._datasets.items()}
        from sfumato.session.rehearsal import rehearsal

        return rehearsal(self.tables.values(), budgets, seed=seed)

    def validate(self) -> Validation:
        """Hold what is declared about its tables against their rows: exact, for the steward alone.

        Privacy:
            None, see `validation.validate`: it pays nothing, keeps nothing, and no question depends on it.

        Raises:
            AccessDenied: if this session is an analyst's.
            SourceUnusable: if a source cannot be read to its end.
        """
        from sfumato.validation.run import refuse_analysts, validate

        self._check_open()
        refuse_analysts(self.analyst)
        return validate(*self.tables.values())

    def sql(self, text: str, parameters: Values = None) -> Query:
        """A question in SQL, also in GoogleSQL's or Snowflake's words.

        Args:
            text: One SELECT.
            parameters: Values for `?` and `$1` in order, or for `$name`, `:name` and `@name` by name.

        Raises:
            QueryRefused: with the reason and the nearest thing that would work.
        """
        return Query(self, self.texts.asked(text, parameters), text)

    def stream(
        self,
        text: str,
        parameters: Values = None,
        *,
        horizon: int,
        start: Any,
        epsilon: Rational,
        delta: Rational | None = None,
        of: Of = "running",
        window: int | None = None,
        zone: str = "UTC",
        max_steps: int | None = None,
    ) -> Stream:
        """A series: the same question about each step of time, the whole of it paid for once.

        ```python
        daily = s.stream("SELECT day, COUNT(*) AS n FROM visits GROUP BY day",
                         start="2026-01-01", horizon=365, epsilon=1)
        daily.advance()     # each day from now on: reads the days that are over since, and no other row
        daily.table()       # how many up to each day, with intervals
        ```

        Args:
            text: A SELECT that is grouped by one date, `DATE_TRUNC` of one, or a whole number that counts
                steps, and by other keys. Groups of keys that are not public have points from the step on in
                which enough units are in them.
            parameters: As for `sql`.
            horizon: How many steps there are at most.
            start: The value of the date in the first of them.
            epsilon: The price of all points together.
            delta: Its other half; by default what the budget spares for one question.
            of: What the noise is best for: totals so far, "running"; of the last `window` steps, "window";
                or "steps". All three can be had of any series.
            window: Over how many steps those go.
            zone: The time zone in which a step of dates ends; of timestamps it ends in UTC.
            max_steps: In how many steps one unit counts: the first in which it has rows. The noise is for so
                many then. By default it counts in all of them.

        Nothing is spent before the first `advance`. The same series again, also in another process, goes on
        where it is.

        Raises:
            QueryRefused: with the reason and the nearest thing that would work.
            InvalidParameter: for an unusable horizon, start, window or zone.
        """
        from sfumato.session.series import opened

        growing = self.growing()
        return opened(
            growing,
            growing.sql(text, parameters),
            horizon=horizon,
            start=start,
            epsilon=epsilon,
            delta=delta,
            of=of,
            window=window,
            zone=zone,
            max_steps=max_steps,
        )

    def table(self, name: str) -> Selection[Query]:
        """A question in Python: `s.table("visits").group_by("country").agg(n=sf.count())`."""
        known = {spelling.lower(): spelling for spelling in self.tables}
        if str(name).lower() not in known:
            raise QueryRefused(
                f"There is no table {str(name)[:60]!r}.", nearest(str(name), list(self.tables), "Tables")
            )
        table = self.tables[known[name.lower()]]
        if not isinstance(table, PrivateTable):
            raise QueryRefused(f"{table.name} is public: read it directly.", "Ask a private table.")
        return Selection(
            table,
            lambda report: Query(self, report),
            related=lambda joins: joined_view(self.tables, table.name, joins),
        )

    def most_common(
        self,
        column: str | Col,
        epsilon: Rational,
        *,
        table: str | None = None,
        among: Iterable[Any] | Release | None = None,
        count: int = 1,
    ) -> Choice:
        """The most common value of a column, or the first few; see `choices.most_common`."""
        from sfumato.session.choices import most_common

        return most_common(self, column, epsilon, table=table, among=among, count=count)

    def profile(
        self, table: str, epsilon: Rational, *, by: str | Col | Sequence[str | Col] | None = None
    ) -> Known:
        """How many rows units have, on a ladder: bought for this price, or free where the ledger has it.

        Where the table's is declared, that one, free.

        Args:
            table: Of which table.
            epsilon: For which price.
            by: Columns or expressions: then it is in how many of their groups units are, a profile of its
                own. Questions with just these keys have narrower intervals where groups of units are cut.

        It is kept for all questions about the table: their intervals then cover what limits cut, and
        `max_rows="auto"` chooses limits by it.
        """
        found = self.tables.get(table)
        if not isinstance(found, PrivateTable) or found.unit.column is None:
            raise QueryRefused(
                f"There is nothing to profile in {str(table)[:60]!r}: it is not a private table whose units "
                "can have several rows.",
                "Name one that has a unit column.",
            )
        keys: tuple[Expression, ...] = ()
        if by is not None:
            listed = [by] if isinstance(by, str | Col) else list(by)
            grouped = self.table(found.name).group_by(*listed).agg(n=count())
            keys = tuple(key.expression for key in grouped.report.child.keys)
        return buy_profile(self, found, positive(epsilon, "epsilon"), keys)

    def unreadable(self, table: str, column: str, epsilon: Rational) -> Release:
        """How many cells of a column are not blank in the source and could not be read as declared.

        Such cells are NULL, and rows with one are left out of what is asked about that column. The count is
        paid for, and kept, like any other: the column `cells` of the release. Once it is there, intervals
        over all rows allow for the rows that such cells left out.

        Args:
            table: A private table.
            column: One that is declared.
            epsilon: The price.

        Raises:
            QueryRefused: if there is no such column, or its type always fits.
        """
        return buy_unread(self, table, column, epsilon)

    def unread(self, table: str) -> frozenset[str]:
        """The columns of a table of which some cells may be no value of the declared kind, by their types."""
        return self._attached.unread.get(table, frozenset())

    def showing(self, table: PrivateTable) -> Session:
        """The same session where more columns of a table are declared; nothing is put on record of it."""
        other = copy(self)
        tables = MappingProxyType({**self.tables, table.name: table})
        other._attached = replace(self._attached, tables=tables)
        other.vault = self.vault.showing(tables)
        return other

    def first_above(
        self, questions: Sequence[Query | str], threshold: Rational, epsilon: Rational
    ) -> Crossing:
        """The first of several questions whose answer reaches a threshold; see `choices.first_above`."""
        from sfumato.session.choices import first_above

        return first_above(self, questions, threshold, epsilon)

    def dataset_of(self, report: Report) -> Dataset:
        """Whose budget a plan draws on."""
        return self.dataset_with(self.tables[report.child.table])

    def windows_of(self, report: Report) -> Windows | None:
        """The windows of time that a plan reads rows of, where the budget is for each; None: it is for all.

        Raises:
            QueryRefused: if the budget is for each window, and the plan leaves open which it reads.
        """
        each, node = self.dataset_of(report).budget.each, report.child
        return None if each is None else windows_read(each, node.source, node.predicate, self.tables)

    def windows_in(self, measured: Measured) -> Windows | None:
        """The same of what is measured, such as the rows of a fit.

        Raises:
            QueryRefused: if the budget is for each window, and the condition leaves open which are read.
        """
        each = self.dataset_with(self.tables[measured.table]).budget.each
        return None if each is None else windows_read(each, measured.rows, measured.predicate, self.tables)

    def dataset_with(self, table: PrivateTable) -> Dataset:
        """Whose budget a table draws on."""
        private = [other for other in self.tables.values() if isinstance(other, PrivateTable)]
        return self._datasets[dataset_of(table, private)]

    def _whose(self) -> dict[str, Dataset]:
        """The dataset of each private table, which has the digest that chooses groups, and its key."""
        private = [table for table in self.tables.values() if isinstance(table, PrivateTable)]
        return {table.name: self._datasets[dataset_of(table, private)] for table in private}

    def balance(self, dataset: str | None = None, *, window: Windows | str | date | None = None) -> Balance:
        """What is spent and left of a dataset's budget, by its own gate; for the session's analyst if any.

        Args:
            dataset: Its name; may be left out where there is one.
            window: Where the budget is for each window of time, of which: "2026-03", or one of its days.
                None: the one that it is now.
        """
        if dataset is None:
            if len(self._datasets) > 1:
                names = ", ".join(sorted(self._datasets))
                raise InvalidParameter(f"Say which dataset's balance: one of {names}.")
            dataset = next(iter(self._datasets))
        return self.ledger.balance(dataset, self.analyst, window=window)

    def releases(self, *, after: int | Receipt = 0, most: int | None = None) -> list[Receipt]:
        """The receipts of what was released before about this session's datasets, oldest first.

        Args:
            after: Only those after this receipt, or its number: `s.releases(after=page[-1], most=100)`.
            most: At most so many, a page.
        """
        begin = after.number if isinstance(after, Receipt) else after
        size = None if most is None else as_integer(most, "most")
        each = [self.ledger.entries(name, kind="debit", after=begin) for name in self._datasets]
        return list(islice(merge(*each, key=attrgetter("number")), size))

    def reread(self, receipt: int | Receipt) -> Release:
        """The answer that a receipt paid for, free: of a question in SQL that is on record for this session.

        Raises:
            InvalidParameter: if there is none; then the question itself can be asked again, which is free
                as well.
        """
        from sfumato.session.rereading import found, reread

        return reread(self, found(self, receipt))

    def buy(self, wanted: Purchase[T]) -> Bought[T]:
        """An answer in this session's name: from the ledger, or paid for, read and kept (see `purchase`)."""
        if not isinstance(wanted, Purchase):
            raise InvalidParameter(f"buy takes a Purchase, not {type(wanted).__name__}; to ask: s.sql(…).")

        def check() -> None:
            self._check_open()
            wanted.check()

        state = state_of(self.tables, wanted.memo.table)
        memo = replace(wanted.memo, state=state) if state else wanted.memo
        known = self._datasets.get(wanted.dataset)
        return buy(self.ledger, replace(wanted, check=check, known=known, memo=memo))

    def _check_open(self) -> None:
        if self._attached.ended.is_set():
            raise EngineFailed("This session is closed, or the steward's that gave it; open a new one.")

    def close(self) -> None:
        """Give back the engine and the ledger, unless they were handed in or are another session's."""
        if self._owner and hasattr(self, "_attached"):
            self._attached.ended.set()
        if self._own_engine:
            self._engine.close()
        if self._own_ledger and hasattr(self, "ledger"):
            self.ledger.close()

    def __repr__(self) -> str:
        """Such as `<Session of visits, as 'ada': epsilon 1.5 of 2 left>`."""
        if not hasattr(self, "_attached"):
            return "<Session that could not be opened>"
        who = "" if self.analyst is None else f", as {self.analyst!r}"
        try:
            self._check_open()
            balances = [self.balance(name) for name in self._datasets]
        except SfumatoError:
            return f"<Session of {', '.join(self.tables)}{who}: closed>"
        left = [
            f"epsilon {amount(one.remaining)} of {amount(one.epsilon)}" + (one.window and f" in {one.window}")
            for one in balances
        ]
        return f"<Session of {', '.join(self.tables)}{who}: {', '.join(left)} left>"

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _opened(engine: Engine | str | None, tables: Sequence[PrivateTable | PublicTable]) -> Engine:
    """The engine that was handed in, the one of that name, or the one that reads such sources."""
    if engine is None or isinstance(engine, str):
        return open_engine(engine_of(table.source for table in tables) if engine is None else engine)
    if isinstance(engine, type):
        raise InvalidParameter(f"engine is the class {engine.__name__[:40]}; write {engine.__name__[:40]}().")
    if missing := missing_members(engine):
        lacks = "" if len(missing) > 5 else f", which lacks {', '.join(missing)}"
        raise InvalidParameter(f"engine must be an Engine or its name, not {type(engine).__name__}{lacks}.")
    return engine


def _unambiguous(ledger: Counter, names: set[str]) -> None:
    """Refuse new datasets whose names are spellings of another's: each would open a second budget."""
    known = {dataset.name for dataset in ledger.datasets()}
    for name in names - known:
        other = spelled(name, (known | names) - {name})
        if other is not None:
            raise LedgerMismatch(
                f"The datasets {name!r} and {other!r} are one name in another case or spelling; write them "
                "alike, or they would have a budget each."
            )


def _salt(minted: bytes) -> int:
    """63 bits that belong to a dataset and are not part of its fingerprints."""
    return int.from_bytes(hashlib.sha256(b"choice of groups" + minted).digest()[:8], "big") >> 1
