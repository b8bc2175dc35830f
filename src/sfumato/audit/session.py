"""Audits of whole private queries: what two neighbouring tables let an analyst tell apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.blackbox import LEAST, lower_bound
from sfumato.audit.bounds import Bound, asked_at
from sfumato.engines.prepared import salt_of
from sfumato.errors import InvalidParameter
from sfumato.ledger import Budget, Ledger, Right
from sfumato.ledger.budget import Accountant
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_integer, delta_of, positive
from sfumato.plan.prices.quoting import Quote
from sfumato.schema import PrivateTable, PublicTable
from sfumato.session import Query, Session
from sfumato.session.answering import answered
from sfumato.session.noise import privatise
from sfumato.session.payload import Answer
from sfumato.session.reading import Reading

__all__ = ["Data", "QueryPair", "query_bound", "query_pair"]

Data: TypeAlias = PrivateTable | Sequence[PrivateTable | PublicTable]
"""One private table, or all the tables of a session."""
Ask: TypeAlias = str | Callable[[Session], Query]
_BLOCK = 1 << 20  # numbers privatised in one call
_PLENTY, _MOST = 1000, Fraction(99, 100)


class QueryPair:
    """A question, read once about each of two neighbouring tables, whose answers can be drawn at will.

    Attributes:
        quote: What the answer costs: the claim.
    """

    def __init__(self, quote: Quote, left: _Readings, right: _Readings) -> None:
        self.quote = quote
        self._sides: dict[Side, _Readings] = {"left": left, "right": right}
        self._groups: dict[tuple[Any, ...], int] = {}
        for side in (left, right):
            for group in side.candidates:
                self._groups.setdefault(group, len(self._groups))

    @property
    def loss(self) -> PrivacyLoss:
        """The claim."""
        return self.quote.loss

    def draw(self, side: Side, count: int) -> NDArray[Any]:
        """That many private answers about one of the tables, a row of numbers each.

        Where groups are public, a row has the noisy measurements. Where they are found, it has for each
        group that either table holds whether it was released, its noisy number of units and its noisy
        measurements, 0 where it was not: which says the same as the release.
        """
        readings, quote = self._sides[side], self.quote
        if quote.selection is None and not quote.extras:
            return _stacked(readings.read(0, None), quote, count)
        rows = [self._row(answered(quote, readings.read)) for _ in range(count)]
        return np.array(rows, dtype=np.float64).reshape(count, -1)

    def _row(self, answer: Answer) -> list[float]:
        extras = [float(x) for _, arrays in answer.extras for array in arrays for x in np.ravel(array)]
        if answer.groups is None:
            return [float(x) for numbers in answer.noisy for x in np.ravel(numbers)] + extras
        assert answer.units is not None
        wide = np.zeros((2 + len(answer.noisy), len(self._groups)))
        places = np.array([self._groups[group] for group in answer.groups], dtype=np.intp)
        wide[0, places], wide[1, places] = 1.0, answer.units
        for at, column in enumerate(answer.noisy, start=2):
            wide[at, places] = column
        return [*wide.ravel().tolist(), *extras]


def query_pair(
    left: Data,
    right: Data,
    ask: Ask,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    accountant: Accountant = "basic",
) -> QueryPair:
    """The question about both tables, each paid for and read once, ready to be drawn from.

    Args:
        left: one table, or all tables of a session.
        right: the same declaration with a neighbouring source.
        ask: the question: SQL, or a function from a session to a query.
        epsilon: the price of the question.
        delta: what of delta the question may use.
        accountant: what keeps the budget, which decides on the noise that is chosen.

    Raises:
        InvalidParameter: if the two sides are not declared alike, or the question cannot be audited so.
    """
    sides = [_tables(left), _tables(right)]
    _check_alike(*sides)
    budget = _budget(epsilon, delta, accountant)
    with closing(Ledger.open(None)) as ledger:
        # One ledger for both: the salt that chooses groups is the dataset's, and neighbours share it.
        quotes, both = [], []
        for tables in sides:
            with Session(*tables, budget=budget, ledger=ledger) as session:
                readings = _Readings(session, _query(session, ask), epsilon, delta)
                readings.fill()
                quotes.append(readings.quote)
                both.append(readings)
    if quotes[0].fingerprint != quotes[1].fingerprint or quotes[0].loss != quotes[1].loss:
        raise InvalidParameter("ask gave a different question on each side; let it ask the same one.")
    return QueryPair(quotes[0], *both)


def query_bound(
    left: Data,
    right: Data,
    ask: Ask,
    *,
    epsilon: Rational,
    delta: Rational = 0,
    samples: int = 100_000,
    confidence: float = 0.999,
    whole: bool = False,
    accountant: Accountant = "basic",
) -> Bound:
    """The epsilon that answers to one query about two neighbouring tables prove, through the whole data path.

    ```python
    bound = query_bound(visits, without_alice, "SELECT COUNT(*) AS n FROM visits", epsilon=1)
    bound.refutes(1)
    ```

    Each side is a session of its own with a ledger in memory: the query is quoted, debited, read by the
    vault and given its noise, exactly as for an analyst. By default each side is read once and only the
    noise is drawn `samples` times: a read is a deterministic function of the rows and of the dataset's salt,
    and both sides have the same salt. With `whole`, everything is done `samples` times, to the released
    table: some tens of milliseconds each, for a few hundred samples that rest on nothing.

    The event is told in what the noise falls on, which is not the released table unless `whole`: an average
    is measured as a number of rows and a sum, one coordinate each, and a sum is an integer in fixed point.

    Args:
        left: one table, or all tables of a session.
        right: the same declaration with a source that differs in one privacy unit: a whole person with all
            rows added or removed, or, where the unit's adjacency is "exchange", put in the place of another.
        ask: the question: SQL, or a function from a session to a query.
        epsilon: the price of the question.
        delta: what of delta the question may use; the bound is for the delta that its quote says.
        samples: how many answers to draw a side.
        confidence: the probability that the bound is true.
        whole: whether to open a session, pay and read for every single answer.
        accountant: what keeps the budget: "zcdp", say, chooses Gaussian noise where there is a delta.

    Privacy:
        The claim of `lower_bound` for the query on this pair, at the delta of its quote. Condition: nobody
        checks that the two sources are neighbours; a pair that differs in more than one unit, in the sense
        of its adjacency, says nothing about the claim. The two sources are read and the bound is
        about them: made-up neighbours are for everyone, real ones for the steward.

    Raises:
        InvalidParameter: if the two sides are not declared alike, or a number is out of range.
        QueryRefused: if the query is.
    """
    _, confidence = asked_at(0, confidence)
    samples = as_integer(samples, "samples", least=LEAST)
    if whole:
        sides = [_tables(left), _tables(right)]
        _check_alike(*sides)
        first, second = (_Whole(tables, ask, epsilon, delta, accountant) for tables in sides)
        return lower_bound(first.draw, second.draw, delta=first.delta, confidence=confidence, samples=samples)
    pair = query_pair(left, right, ask, epsilon=epsilon, delta=delta, accountant=accountant)
    bound = lower_bound(
        lambda count: pair.draw("left", count),
        lambda count: pair.draw("right", count),
        delta=float(pair.quote.delta),
        confidence=confidence,
        samples=samples,
    )
    # An average of small costs is measured as a count and a sum of integers of 60 bits: say so.
    return replace(bound, event=f"{bound.event}, of what is measured for the answer, in fixed point")


class _Readings:
    """The exact integers of a quote's questions about one table, each debited and read by the vault."""

    def __init__(self, session: Session, query: Query, epsilon: Rational, delta: Rational) -> None:
        self.quote = query.quote(epsilon, delta=delta)
        self._session, self._query = session, query
        self._kept: list[Reading] = []

    @property
    def candidates(self) -> Sequence[tuple[Any, ...]]:
        """The groups that could be released, where they are not public."""
        return () if self.quote.selection is None else self._kept[0].groups

    def fill(self) -> None:
        """Pay once and read whatever an answer may need, while the session is open."""
        questions, extras = self.quote.recipe.questions, self.quote.extras
        if self.quote.selection is not None and (
            self.quote.measured.levels
            or self.quote.spread is not None
            or any(question.extra.measured.keys for question in extras)
        ):
            raise InvalidParameter(
                "What is read for this query depends on the groups that were found; audit it with whole=True."
            )

        def answer(right: Right) -> Answer:
            vault, places = self._session.vault, range(len(questions))
            self._kept = [vault.read(questions, right, place=place) for place in places]
            return answered(self.quote, self.read)

        # The other side's answer is on the same ledger, and is another table's: it will not do.
        wanted = replace(self._query.purchase(self.quote), answer=answer, choose=lambda _kept: None)
        self._session.buy(wanted)

    def read(self, place: int, over: Any) -> Reading:
        """As the vault gave it."""
        assert over is None
        return self._kept[place]


class _Whole:
    """Answers of sessions that are opened for one of them each."""

    def __init__(
        self,
        tables: tuple[Any, ...],
        ask: Ask,
        epsilon: Rational,
        delta: Rational,
        accountant: Accountant,
    ) -> None:
        self._tables, self._ask, self._price, self._delta = tables, ask, epsilon, delta
        self._budget = _budget(epsilon, delta, accountant)
        with self._query() as query:
            quote = query.quote(epsilon, delta=delta)
        self.delta = float(quote.delta)
        report = quote.report
        self._is_even = (
            quote.selection is None and report.having is None and report.limit is None and not report.offset
        )

    @contextmanager
    def _query(self) -> Iterator[Query]:
        with Session(*self._tables, budget=self._budget, ledger=None) as session:
            yield _query(session, self._ask)

    def draw(self, count: int) -> Any:
        """The columns of the released table, one tuple an answer; numbers where their places are public.

        What they are taken for follows from the question, and from no answer: see `lower_bound`.
        """
        rows = []
        for _ in range(count):
            with self._query() as query:
                table = query.release(self._price, delta=self._delta).table
            columns = [column for column in table.columns if not self._is_even or _is_number(column.type)]
            rows.append(tuple(value for column in columns for value in column.to_pylist()))
        return np.array(rows, dtype=np.float64) if self._is_even and rows[0] else rows


def _stacked(reading: Reading, quote: Quote, count: int) -> NDArray[Any]:
    """`count` answers at once: noise falls on each integer by itself, so copies of them give copies of it."""
    size = max(1, sum(len(column) for column in reading.columns))
    blocks = []
    for start in range(0, count, max(1, _BLOCK // size)):
        some = min(count - start, max(1, _BLOCK // size))
        noisy = privatise([np.tile(column, some) for column in reading.columns], quote)
        blocks.append(np.concatenate([numbers.reshape(some, -1) for numbers in noisy], axis=1))
    return np.concatenate(blocks)


def _tables(data: Data) -> tuple[Any, ...]:
    tables = (data,) if isinstance(data, PrivateTable) else tuple(data) if isinstance(data, Sequence) else ()
    if not tables or not all(isinstance(table, PrivateTable | PublicTable) for table in tables):
        raise InvalidParameter(
            "Each side of a query audit is a PrivateTable, or a list of a session's tables."
        )
    return tables


def _check_alike(left: Sequence[Any], right: Sequence[Any]) -> None:
    """Refuse sides whose declarations differ in more than the source, or whose rows were chosen apart."""
    if [table.declaration() for table in left] != [table.declaration() for table in right]:
        raise InvalidParameter("The two sides must have the same declaration: only their source may differ.")
    if [salt_of(table.source) for table in left] != [salt_of(table.source) for table in right]:
        raise InvalidParameter(
            "The two sides were prepared with different salts, which choose other rows of everybody: prepare "
            "both with one, as in prepare(…, salt=…), or give the files that they were prepared from."
        )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _budget(epsilon: Rational, delta: Rational, accountant: Accountant) -> Budget:
    """One that never runs out: what is audited is a price, not what is left."""
    price, slack = positive(epsilon, "epsilon"), delta_of(delta)
    if accountant == "basic":
        return Budget(_PLENTY * price, min(_PLENTY * slack, _MOST))
    return Budget(_PLENTY * price, _MOST, accountant, aside=_MOST / 2 if accountant == "zcdp" else 0)


def _query(session: Session, ask: Ask) -> Query:
    query = session.sql(ask) if isinstance(ask, str) else ask(session)
    if not isinstance(query, Query):
        raise InvalidParameter(
            "ask must be SQL, or a function that gives a query of the session it is given."
        )
    return query
