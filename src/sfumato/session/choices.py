"""Choices that are bought: the most common value of a column, the first question above a threshold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from sfumato._dataclasses import dataclass
from sfumato.accounting import BasicFilter, ConcentratedFilter, Filter
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.ledger import Memo, Receipt, Right
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms import AboveThreshold, Exponential, PermuteAndFlip
from sfumato.numeric.exact import Rational, as_fraction, as_integer, positive, read_fraction, show
from sfumato.plan.expressions.tree import Column
from sfumato.plan.expressions.written import written
from sfumato.plan.prices.price import instrument
from sfumato.plan.prices.recipe import Recipe
from sfumato.plan.questions.aggregates import Linear
from sfumato.plan.questions.aggregates.count import count as rows
from sfumato.plan.questions.nodes import Measured, Report
from sfumato.plan.questions.sensitivity import in_one_group
from sfumato.plan.questions.terms import Col
from sfumato.purchase import Bought, Purchase
from sfumato.schema import PrivateTable, Windows
from sfumato.schema.windows import hull_of
from sfumato.session.candidates import check_kinds, listed_values, not_public
from sfumato.session.release import Release

T = TypeVar("T")

if TYPE_CHECKING:
    from sfumato.session.query import Query
    from sfumato.session.session import Session

__all__ = [
    "Choice",
    "Crossing",
    "KeptChoice",
    "Offer",
    "choosing",
    "crossing",
    "first_above",
    "most_common",
]


class KeptChoice(NamedTuple):
    """What a choice leaves on record: the places that were chosen, and the price."""

    places: tuple[int, ...]
    epsilon: Fraction

    def to_bytes(self) -> bytes:
        """Text that `from_bytes` reads back."""
        return json.dumps({"format": 1, "places": self.places, "epsilon": str(self.epsilon)}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> KeptChoice:
        """What `to_bytes` wrote."""
        stored = json.loads(data)
        return cls(tuple(stored["places"]), read_fraction(stored["epsilon"]))


@dataclass(frozen=True, slots=True)
class Offer(Generic[T]):
    """A choice that can be bought, and how what was bought is shown."""

    purchase: Purchase[KeptChoice]
    shown: Callable[[Bought[KeptChoice]], T]


@dataclass(frozen=True, slots=True, repr=False)
class Choice:
    """Values that were chosen privately, the likeliest first.

    Attributes:
        values: What was chosen, one after the other.
        among: The candidates, which are public.
        epsilon: The price of all of them.
        receipt: Of the debit.
        free: Whether it was paid before, and nothing now.
    """

    values: tuple[Any, ...]
    among: tuple[Any, ...]
    epsilon: Fraction
    receipt: Receipt
    free: bool
    _mechanism: Exponential | PermuteAndFlip
    _unit: Fraction

    @property
    def value(self) -> Any:
        """The first one."""
        return self.values[0]

    def error(self, confidence: Rational = 0.95) -> float:
        """How many rows, weighted as in a count of them, a choice has fewer than the best that was left."""
        far = self._mechanism.error(confidence, size=len(self.values), candidates=len(self.among))
        return far * float(self._unit)

    def __str__(self) -> str:
        """The values, and how far off they may be."""
        told = ", ".join(str(value) for value in self.values)
        return f"{told} (each at most {self.error(0.95):.4g} rows behind the best left, at 0.95 confidence)"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True, repr=False)
class Crossing:
    """Which question was the first to reach a threshold.

    Attributes:
        place: Its place in the list, from 0; None: none did.
        query: That question.
        threshold: What was to be reached.
        epsilon: The price.
        receipt: Of the debit.
        free: Whether it was paid before, and nothing now.
    """

    place: int | None
    query: Query | None
    threshold: Fraction
    epsilon: Fraction
    receipt: Receipt
    free: bool
    _mechanism: AboveThreshold
    _unit: Fraction
    _size: int

    def error(self, confidence: Rational = 0.95) -> float:
        """α: the one found is at least threshold − α, all before it at most threshold + α."""
        return self._mechanism.error(confidence, size=self._size) * float(self._unit)

    def __str__(self) -> str:
        """Which one, and how far off that may be."""
        which = "none of them" if self.place is None else f"number {self.place + 1} of {self._size}"
        return f"{which} (above {show(self.threshold)} ± {self.error(0.95):.4g} at 0.95 confidence)"

    def __repr__(self) -> str:
        return str(self)


def most_common(
    session: Session,
    column: str | Col,
    epsilon: Rational,
    *,
    table: str | None = None,
    among: Iterable[Any] | Release | None = None,
    count: int = 1,
) -> Choice:
    """The most common value of a column, or the first few, each chosen among those that are left.

    ```python
    s.most_common("city", epsilon=0.1).value
    ```

    Rows count as in `SELECT city, COUNT(*) … GROUP BY city`: each unit within its limits. NULL is nobody's
    choice. The values to choose from are public: those that the column is declared with, or `among`. They are
    never the data's own: a value that one person alone has would tell that they are there.

    Args:
        session: Whose ledger pays.
        column: Its name, or an expression over columns: `col("age") // 10`.
        epsilon: The price of all choices together.
        table: Which table; may be left out where there is one.
        among: The values to choose from: a list that anyone may know, or a release with the column in it,
            whose values were paid for.
        count: How many.

    Privacy:
        Claim: `epsilon`-DP, or where the budget adds up ρ, count·(ε/count)²/8-zCDP. Each choice is
        permute-and-flip, or the exponential mechanism, at ε/count over the values left, whose scores move
        by at most `in_one_group`, all one way under add/remove. The values left are fixed by what was chosen
        before, so the choices compose adaptively; the filter that the debit paid for counts them. Sources:
        McKenna, Sheldon 2020; Rogers, Roth, Ullman, Vadhan 2016; Dong, Durfee, Rogers 2020 (bounded range).

    Raises:
        QueryRefused: if the values are not public; nothing was spent.
        BudgetExceeded: if it does not fit; nothing was spent.
    """
    asked = choosing(session, column, epsilon, table=table, among=among, count=count)
    return asked.shown(session.buy(asked.purchase))


def choosing(
    session: Session,
    column: str | Col,
    epsilon: Rational,
    *,
    table: str | None = None,
    among: Iterable[Any] | Release | None = None,
    count: int = 1,
) -> Offer[Choice]:
    """What `most_common` buys."""
    price, many = positive(epsilon, "epsilon"), as_integer(count, "count")
    chosen = session.table(_only_table(session) if table is None else table)
    if not isinstance(column, str | Col) or (isinstance(column, Col) and among is not None):
        raise InvalidParameter(
            "column must be a column's name, or without among an expression such as col(…)."
        )
    listed = column if isinstance(column, Col) or among is None else listed_values(column, among)
    try:
        query = chosen.group_by(listed).agg(n=rows())
        measured = query.recipe().measured
    except QueryRefused:
        check_kinds(chosen.table, column, listed)
        raise
    if measured.is_open:
        raise not_public(column)
    places = [place for place, key in enumerate(measured.combinations) if key[0] is not None]
    if many > len(places):
        raise InvalidParameter(f"count must be at most {len(places)}, the number of values to choose from.")
    dataset, portion = session.dataset_of(query.report), price / many
    adds = dataset.budget.accountant == "basic"
    tool, mine = (
        instrument(measured.measurements[0], measured),
        in_one_group(measured.measurements[0], measured),
    )
    monotone = measured.unit.adjacency != "exchange"
    mechanism = (PermuteAndFlip if adds else Exponential)(portion, mine, monotone=monotone)
    gate: Filter = BasicFilter(price) if adds else ConcentratedFilter(many * portion * portion / 8)

    def answer(right: Right) -> KeptChoice:
        steps = right.steps(gate)
        scores = session.vault.read((measured,), right).columns[0].tolist()
        left, picked = list(places), list[int]()
        for _ in range(many):
            steps.take(mechanism.loss)
            picked.append(left.pop(mechanism.select([scores[place] for place in left])))
        return KeptChoice(tuple(picked), price)

    def shown(bought: Bought[KeptChoice]) -> Choice:
        values, candidates = (
            tuple(measured.combinations[place][0] for place in some)
            for some in (bought.answer.places, places)
        )
        return Choice(
            values, candidates, bought.answer.epsilon, bought.receipt, bought.free, mechanism, tool.unit
        )

    name = column if isinstance(column, str) else written(column.expression, 30)
    words = f"{name} of {measured.table}" + (f", the first {many}" if many > 1 else "")
    law = "permute-and-flip" if adds else "exponential"
    wanted = _purchase(
        dataset=dataset.name,
        loss=gate.loss,
        facts=["most common", many],
        questions=(measured,),
        memo=Memo("most common", words, price, Fraction(0), law, measured.table),
        answer=answer,
        price=price,
        check=lambda: session.vault.check((measured,)),
    )
    return Offer(wanted, shown)


def first_above(
    session: Session, questions: Sequence[Query | str], threshold: Rational, epsilon: Rational
) -> Crossing:
    """The first of several questions whose answer (noisily) reaches a threshold, at one price for all.

    ```python
    days = [f"SELECT COUNT(*) AS n FROM visits WHERE day = {day}" for day in range(1, 31)]
    s.first_above(days, threshold=100, epsilon=0.5).place
    ```

    The questions are read one after the other, and none after the one that is found.

    Args:
        session: Whose ledger pays.
        questions: SQL or queries of this session about one dataset, each with one number: a count of rows
            or units, or a sum.
        threshold: What is to be reached; public.
        epsilon: The price, whatever the number of questions.

    Privacy:
        Claim: `epsilon`-DP for the place, or for the answer that there was none: above-threshold over values
        that a unit moves by at most the largest `in_one_group` of them, all one way where all count and
        units are added or removed. The order and number of the questions are public. Source: Lyu, Su, Li
        2017, Alg. 7 (see `AboveThreshold`).

    Raises:
        QueryRefused: if a question has more than one number; nothing was spent.
        BudgetExceeded: if it does not fit; nothing was spent.
    """
    asked = crossing(session, questions, threshold, epsilon)
    return asked.shown(session.buy(asked.purchase))


def crossing(
    session: Session, questions: Sequence[Query | str], threshold: Rational, epsilon: Rational
) -> Offer[Crossing]:
    """What `first_above` buys."""
    price, bar = positive(epsilon, "epsilon"), as_fraction(threshold, "threshold")
    asked = _queries(session, questions)
    measured = tuple(_single(query.report, query.recipe()) for query in asked)
    datasets = {session.dataset_of(query.report).name for query in asked}
    if len(datasets) > 1 or len({question.fingerprint for question in measured}) < len(measured):
        raise QueryRefused(
            "The questions are about several datasets, or one of them is asked twice.",
            "Give different questions that one budget pays for.",
        )
    tools = [instrument(question.measurements[0], question) for question in measured]
    unit = min(tool.unit for tool in tools)  # powers of two: all values are whole numbers of the smallest
    scales = [int(tool.unit / unit) for tool in tools]
    largest = max(
        in_one_group(question.measurements[0], question) * scale
        for question, scale in zip(measured, scales, strict=True)
    )
    monotone = all(
        question.measurements[0].lower >= 0 and question.unit.adjacency != "exchange" for question in measured
    )
    mechanism = AboveThreshold(price, bar / unit, sensitivity=largest, monotone=monotone)

    def answer(right: Right) -> KeptChoice:
        def values() -> Iterator[int]:
            for question, scale in zip(measured, scales, strict=True):
                yield session.vault.read((question,), right).columns[0].tolist()[0] * scale

        place = mechanism.first(values())
        return KeptChoice(() if place is None else (place,), price)

    def shown(bought: Bought[KeptChoice]) -> Crossing:
        place = next(iter(bought.answer.places), None)
        query, paid = None if place is None else asked[place], bought.answer.epsilon
        return Crossing(place, query, bar, paid, bought.receipt, bought.free, mechanism, unit, len(measured))

    windows = hull_of(query.windows for query in asked)
    words, first = f"{show(bar)}, of {len(measured)} questions about {measured[0].table}", measured[0].table
    wanted = _purchase(
        dataset=datasets.pop(),
        loss=mechanism.loss,
        facts=["first above", str(bar)],
        questions=measured,
        memo=Memo("first above", words, price, Fraction(0), "above-threshold", first),
        answer=answer,
        price=price,
        check=lambda: session.vault.check(measured, windows=windows),
        windows=windows,
    )
    return Offer(wanted, shown)


def _purchase(
    *,
    dataset: str,
    loss: PrivacyLoss,
    facts: list[Any],
    questions: tuple[Measured, ...],
    memo: Memo,
    answer: Callable[[Right], KeptChoice],
    price: Fraction,
    check: Callable[[], None],
    windows: Windows | None = None,
) -> Purchase[KeptChoice]:
    """A choice: the fingerprint covers spender and reads; one on record that cost no less will do."""
    reads = tuple(question.fingerprint for question in questions)

    def as_good(kept: Iterator[Bought[KeptChoice]]) -> Bought[KeptChoice] | None:
        return next((bought for bought in kept if bought.answer.epsilon >= price), None)

    return Purchase(
        dataset=dataset,
        loss=loss,
        fingerprint=hashlib.sha256(json.dumps([*facts, *reads]).encode()).hexdigest(),
        memo=memo,
        answer=answer,
        write=KeptChoice.to_bytes,
        read_back=KeptChoice.from_bytes,
        choose=as_good,
        reads=reads,
        check=check,
        windows=windows,
    )


def _only_table(session: Session) -> str:
    private = [name for name, table in session.tables.items() if isinstance(table, PrivateTable)]
    if len(private) > 1:
        raise InvalidParameter(f"Say which table: table={private[0]!r}, for one.")
    return private[0]


def _queries(session: Session, questions: Sequence[Query | str]) -> list[Query]:
    from sfumato.session.query import Query

    if isinstance(questions, str | bytes) or not isinstance(questions, Sequence) or not questions:
        raise InvalidParameter("questions must be a list of SQL texts or queries, in the order to try them.")
    asked = [session.sql(question) if isinstance(question, str) else question for question in questions]
    if not all(isinstance(query, Query) and query.belongs_to(session) for query in asked):
        raise InvalidParameter("Each question must be SQL, or a query of this session.")
    if any(query.explain for query in asked):
        raise QueryRefused("EXPLAIN asks for the quote alone.", "Leave EXPLAIN out.")
    if any(query.priced for query in asked):
        raise QueryRefused(
            "A question that names its own price cannot be compared with a threshold.",
            "Leave its OPTIONS out: one epsilon pays for all questions.",
        )
    return asked


def _single(report: Report, recipe: Recipe) -> Measured:
    """The one number that a question asks for, refused where there is more or less to it than a number."""
    plain = not report.child.keys and report.having is None and report.limit is None and not report.offset
    one = len(report.columns) == 1 and report.columns[0].expression == Column("a0")
    estimator = recipe.aggregates[0] if len(recipe.aggregates) == 1 else None
    counted = isinstance(estimator, Linear) and estimator.rows is None
    if not (plain and one and counted and not recipe.extras and len(recipe.measured.measurements) == 1):
        raise QueryRefused(
            "Only one count of rows or units, or one sum, without groups can be compared with a threshold.",
            "Ask SELECT COUNT(*) AS n FROM … WHERE …, or SELECT SUM(x) AS s FROM ….",
        )
    return recipe.measured
