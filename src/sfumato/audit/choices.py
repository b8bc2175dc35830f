"""Choices and profiles that are audited by name: bought again and again, about made-up neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.ledger import Budget
from sfumato.ledger.budget import Accountant
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms.base import Side
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.nodes import Measured
from sfumato.plan.questions.relations import Rows
from sfumato.plan.questions.spread import Spread
from sfumato.purchase import Purchase
from sfumato.schema import Enum, Int, PrivacyUnit, PrivateTable, Windows
from sfumato.session import Session
from sfumato.session.choices import choosing, crossing
from sfumato.session.profile import profile_purchase
from sfumato.session.reading import Reading
from sfumato.session.vault import Vault

__all__ = ["CHOICES", "ChoiceExample", "ChoicePair"]

Row = tuple[int, str, int]
_PLENTY = 10**9  # answers that the budget pays for: what is audited is a price, not what is left
_CITIES = ("Lyon", "Nice", "Paris")


class _Remembering(Vault):
    """A vault that asks its engine each question once: rows and salt decide an answer, and both stay."""

    _known: dict[str, Reading]
    _written: dict[str, Any]

    @classmethod
    def of(cls, vault: Vault) -> _Remembering:
        copy = cls.__new__(cls)
        copy.__dict__ = {**vault.__dict__, "_known": {}, "_written": {}}
        return copy

    def _read(
        self,
        measured: Measured,
        place: int,
        wanted: Measured | None = None,
        *,
        spread: Spread | None = None,
        windows: Windows | None = None,
    ) -> Reading:
        assert wanted is None
        assert spread is None
        assert windows is None
        name = measured.fingerprint
        if name not in self._known:
            self._known[name] = super()._read(measured, place)
        return self._known[name]

    def _statement(
        self,
        measured: Measured,
        rows: Rows | None = None,
        spread: Spread | None = None,
        windows: Windows | None = None,
    ) -> Any:
        assert rows is None
        assert spread is None
        assert windows is None
        name = measured.fingerprint
        if name not in self._written:
            self._written[name] = super()._statement(measured)
        return self._written[name]


class ChoicePair:
    """A choice about each of two neighbouring tables, bought again for each draw: debit, right, record.

    Attributes:
        loss: The claim.
    """

    def __init__(self, example: ChoiceExample) -> None:
        self._example = example
        with closing(example.session("left")) as session:
            self.loss: PrivacyLoss = example.ask(session).loss

    def draw(self, side: Side, count: int) -> NDArray[Any]:
        """That many answers about one of the tables, as one number each."""
        with closing(self._example.session(side)) as session:
            session.vault = _Remembering.of(session.vault)
            wanted = self._example.ask(session)
            reads = wanted.reads or (wanted.fingerprint,)
            bought = [
                # A question of its own each time, or the second would be the first again, free.
                session.buy(replace(wanted, fingerprint=f"draw {number}", reads=reads))
                for number in range(count)
            ]
        return np.array([self._example.number(result.answer) for result in bought])


def _places(choice: Any) -> int:
    """The places that were chosen, as one number."""
    base = len(_CITIES) + 1
    return sum(int(place + 1) * base**at for at, place in enumerate(choice.places))


def _heights(answer: Any) -> float:
    """How full the cell of those with two rows is, units and rows together, in scales of their noise."""
    return float(
        sum(noisy[1] / noise.scale for noisy, noise in zip(answer.noisy, answer.noises, strict=True))
    )


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A choice about two tables that differ in one privacy unit.

    Attributes:
        name: short and unique.
        left: the rows of one table.
        right: those of the other.
        unit: whose privacy is declared.
        ask: what is bought.
        number: an answer as a number.
        accountant: what keeps the budget, which decides on the mechanism.
    """

    name: str
    left: tuple[Row, ...]
    right: tuple[Row, ...]
    unit: PrivacyUnit
    ask: Callable[[Session], Purchase[Any]]
    accountant: Accountant = "basic"
    number: Callable[[Any], float] = _places

    def session(self, side: Side) -> Session:
        """One about the table of a side, with a ledger in memory."""
        rows: Iterable[Row] = self.left if side == "left" else self.right
        names = ("person", "city", "cost")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        table = PrivateTable(
            "visits",
            source=pa.table(columns),
            unit=self.unit,
            schema={"city": Enum(*_CITIES, nullable=False), "cost": Int(0, 10)},
        )
        delta = 0 if self.accountant == "basic" else "1e-6"
        return Session(table, budget=Budget(_PLENTY, delta, self.accountant))

    def pair(self) -> ChoicePair:
        """Ready to be drawn from."""
        return ChoicePair(self)


def _choices() -> tuple[ChoiceExample, ...]:
    def rows(*numbers: int) -> tuple[Row, ...]:
        cities = [city for city, number in zip(_CITIES, numbers, strict=True) for _ in range(number)]
        return tuple((person, city, person % 11) for person, city in enumerate(cities))

    row, two = PrivacyUnit.row(), PrivacyUnit("person", max_groups=2)
    exchange = PrivacyUnit("person", adjacency="exchange")
    alice: tuple[Row, ...] = tuple((99, city, 10) for city in ("Nice", "Paris"))
    counts = [f"SELECT COUNT(*) AS n FROM visits WHERE cost >= {least}" for least in (9, 6, 3)]

    def common(session: Session) -> Purchase[Any]:
        return choosing(session, "city", 1).purchase

    def profile(session: Session) -> Purchase[Any]:
        return profile_purchase(session, session.tables["visits"], Fraction(2))

    def groups(session: Session) -> Purchase[Any]:
        return profile_purchase(session, session.tables["visits"], Fraction(2), (Column("city"),))

    return (
        ChoiceExample("choice: most common", rows(2, 3, 0), rows(2, 2, 0), row, common),
        ChoiceExample("choice: most common, a person", rows(4, 3, 2) + alice, rows(4, 3, 2), two, common),
        ChoiceExample("choice: most common, exchange", rows(3, 2, 0), rows(2, 3, 0), exchange, common),
        ChoiceExample(
            "choice: the two most common",
            rows(2, 3, 1),
            rows(2, 2, 1),
            row,
            lambda session: choosing(session, "city", 2, count=2).purchase,
        ),
        ChoiceExample("choice: most common, zcdp", rows(2, 3, 0), rows(2, 2, 0), row, common, "zcdp"),
        ChoiceExample(
            "choice: first above",
            (*rows(5, 5, 0), (99, "Lyon", 10)),
            rows(5, 5, 0),
            row,
            lambda session: crossing(session, counts, 2, 2).purchase,
        ),
        ChoiceExample("profile: rows", rows(2, 2, 0) + alice, rows(2, 2, 0), two, profile, number=_heights),
        ChoiceExample("profile: groups", rows(2, 2, 0) + alice, rows(2, 2, 0), two, groups, number=_heights),
    )


CHOICES: tuple[ChoiceExample, ...] = _choices()
"""What `registry.run` audits of choices and profiles that are bought."""
