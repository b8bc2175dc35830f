"""Published series that are audited by name: neighbouring histories of a small clinic, through a session."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.continual.factorisation import SCALE_BITS, Factorisation
from sfumato.ledger import Budget, Ledger
from sfumato.schema import Date, Int, PrivacyUnit, PrivateTable, Text
from sfumato.session import Session
from sfumato.session.series.points import Courses

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sfumato.loss import PrivacyLoss
    from sfumato.mechanisms.base import Side
    from sfumato.session.reading import Admit, Reading
    from sfumato.session.series.pricing import Pricing
    from sfumato.session.vault import Vault

__all__ = ["SERIES", "SeriesExample", "SeriesPair"]

Row = tuple[int, int, int]
State = tuple[Row, ...]
_START = datetime.date(1970, 1, 1)  # where windows of some days begin
_TEXT = "SELECT day, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY day"
_BY_CLINIC = "SELECT day, clinic, COUNT(*) AS n FROM visits GROUP BY day, clinic"
_HORIZON, _ALICE, _BOB = 4, 99, 98
_CLINICS = ("everybody", "alone")
_CROWD = 52  # in each step just as many as the threshold of what finds clinics
_SECRET = 32


@dataclass(frozen=True, slots=True)
class SeriesExample:
    """A series of two histories that differ in one privacy unit.

    Attributes:
        name: Short and unique.
        unit: Whose privacy is declared.
        left: The unit's rows in each state of one history: person, day, cost. After each state one more step
            is published.
        right: Those of the other history.
        max_steps: In how many steps a unit counts; None: in all that it has rows in.
    """

    name: str
    unit: PrivacyUnit
    left: tuple[State, ...]
    right: tuple[State, ...]
    max_steps: int | None = None

    def pair(self) -> SeriesPair:
        """Both series, paid for and read step by step."""
        with closing(Ledger.open(None)) as ledger:  # one for both: neighbours share the dataset's salt
            sides = [
                _published(self.unit, states, ledger, name, max_steps=self.max_steps)
                for name, states in (("left", self.left), ("right", self.right))
            ]
        return SeriesPair(sides[0][0], {"left": _columns(sides[0][1]), "right": _columns(sides[1][1])})


@dataclass(frozen=True, slots=True)
class FoundExample(SeriesExample):
    """The same by clinics that are not public: one of all others, and one of those who differ if `alone`.

    Attributes:
        alone: Whether who differs is in a clinic of their own.
    """

    alone: bool = False

    def pair(self) -> FoundPair:  # type: ignore[override]  # both have a loss and draw
        """Both series, paid for and read step by step."""
        with closing(Ledger.open(None)) as ledger:
            more: dict[str, Any] = {"price": (1, 0.2), "alone": self.alone, "max_steps": self.max_steps}
            sides = [
                _published(self.unit, states, ledger, name, _BY_CLINIC, **more)
                for name, states in (("left", self.left), ("right", self.right))
            ]
        return FoundPair(sides[0][0], {"left": sides[0][1], "right": sides[1][1]})


class FoundPair:
    """What was read for two series whose groups are found, which is done again at will.

    Attributes:
        loss: The claim.
    """

    def __init__(self, pricing: Pricing, readings: dict[Side, list[Reading]]) -> None:
        self.loss: PrivacyLoss = pricing.quote.loss
        self._pricing, self._readings = pricing, readings

    def draw(self, side: Side, count: int) -> NDArray[np.float64]:
        """That many series: for each clinic in which step it was found, if in any, and its numbers.

        Where units count in few steps, how many do in each comes after that.
        """
        rows = np.zeros((count, len(_CLINICS) + 1, 1 + _HORIZON))
        for row in rows:
            courses, groups = self._courses(), list[Any]()
            row[:-1, 0] = _HORIZON
            for step, reading in enumerate(self._readings[side]):
                point = courses.release_found(_counted(courses, reading))
                groups += point.found
                for (clinic,), units in zip(groups, point.units[0], strict=True):
                    own = row[_CLINICS.index(clinic)]
                    own[0], own[1 + step] = min(own[0], step), float(units)
                if courses.roster is not None:
                    row[-1, 1 + step] = float(point.units[-1][0])
        return rows.reshape(count, -1)

    def _courses(self) -> Courses:
        pricing = self._pricing
        return Courses(pricing.streams, random.salt(_SECRET), finding=pricing.finding, most=pricing.most)


def _counted(courses: Courses, reading: Reading) -> Reading:
    """What was read, with those who count in it as the next in the list of the series, if it has one."""
    if courses.roster is None:
        return reading
    *columns, (count,) = reading.columns
    courses.roster.now = [b""] * int(count)
    return replace(reading, columns=tuple(columns))


class SeriesPair:
    """The exact numbers of two series, whose noise is drawn again at will.

    Attributes:
        loss: The claim.
    """

    def __init__(self, pricing: Pricing, exact: dict[Side, list[Sequence[NDArray[Any]]]]) -> None:
        self.loss: PrivacyLoss = pricing.quote.loss
        self._pricing, self._exact = pricing, exact
        self._tests = [
            matrix.T @ matrix @ move / noise.sigma**2 * noise.grid
            for noise, move in zip(pricing.streams, self._moves(), strict=True)
            for matrix in [_matrix(noise.plan)]
        ]

    def _moves(self) -> list[NDArray[np.float64]]:
        """How far apart the two series are at each step, for each measurement of their only group."""
        return [
            np.array(
                [
                    float(right[place][0]) - float(left[place][0])
                    for left, right in zip(self._exact["left"], self._exact["right"], strict=True)
                ]
            )
            for place in range(len(self._pricing.streams))
        ]

    def draw(self, side: Side, count: int) -> NDArray[np.float64]:
        """That many series: the test that tells the two apart best, and all points."""
        rows = np.zeros((count, 1 + len(self._tests) * _HORIZON))
        for row in rows:
            courses = Courses(self._pricing.streams, random.salt(_SECRET))
            points = [courses.release(exact).units for exact in self._exact[side]]
            shown = np.array([[float(units[0]) for units in point] for point in points])
            row[0] = sum(shown[:, place] @ test for place, test in enumerate(self._tests))
            row[1:] = shown.ravel()
        return rows


def _matrix(plan: Factorisation) -> NDArray[np.float64]:
    """C·D, which makes the noise of the steps independent."""
    column = plan.factor.coefficients(_HORIZON)
    matrix = np.zeros((_HORIZON, _HORIZON))
    for step in range(_HORIZON):
        matrix[step:, step] = column[: _HORIZON - step] * (plan.scale(step) / 2.0**SCALE_BITS)
    return matrix


class _Watched:
    """A vault that keeps what was read."""

    def __init__(self, vault: Vault, kept: list[Reading]) -> None:
        self._vault, self._kept = vault, kept

    def check(self, *questions: Any, **more: Any) -> None:
        self._vault.check(*questions, **more)

    def read(self, *wanted: Any, **more: Any) -> Any:
        reading = self._vault.read(*wanted, **more)
        self._kept.append(reading)
        return reading

    def check_units(self, *questions: Any, **more: Any) -> None:
        self._vault.check_units(*questions, **more)

    def of_some_units(self, measured: Any, right: Any, admit: Admit) -> Any:
        """What is read, with the number of those who count as one more column."""
        counted: list[int] = []

        def watched(units: Sequence[str]) -> NDArray[np.bool_]:
            admitted = admit(units)
            counted.append(int(admitted.sum()))
            return admitted

        reading = self._vault.of_some_units(measured, right, watched)
        self._kept.append(replace(reading, columns=(*reading.columns, np.array(counted))))
        return reading


def _columns(readings: Sequence[Reading]) -> list[Sequence[NDArray[Any]]]:
    return [reading.columns for reading in readings]


def _published(
    unit: PrivacyUnit,
    states: tuple[State, ...],
    ledger: Ledger,
    name: str,
    text: str = _TEXT,
    *,
    price: tuple[int, float] = (4, 1e-5),
    alone: bool = False,
    max_steps: int | None = None,
) -> tuple[Pricing, list[Reading]]:
    """A series of a history in an analyst's name, one step for each state, and what was read for it."""
    kept: list[Reading] = []
    epsilon, delta = price
    budget = Budget(epsilon=20, delta=2 * delta)
    for step, rows in enumerate(states):
        table = _table((*_others(_CROWD if text == _BY_CLINIC else 20), *rows), unit, alone=alone)
        with (
            Session(table, budget=budget, ledger=ledger) as session,
            session.as_analyst(name) as own,
        ):
            own.vault = cast("Vault", _Watched(own.vault, kept))
            series = own.stream(
                text, start=_START, horizon=_HORIZON, epsilon=epsilon, delta=delta, max_steps=max_steps
            )
            end = _START + datetime.timedelta(days=step + 1)
            series.advance(now=datetime.datetime.combine(end, datetime.time(), datetime.UTC))
    return series.pricing, kept


def _others(many: int) -> State:
    return tuple((person, person % _HORIZON, person % 11) for person in range(many))


def _table(rows: State, unit: PrivacyUnit, *, alone: bool) -> PrivateTable:
    source = pa.table(
        {
            "person": [person for person, _, _ in rows],
            "day": [_START + datetime.timedelta(days=day) for _, day, _ in rows],
            "cost": [cost for _, _, cost in rows],
            "clinic": [_CLINICS[alone and person >= _BOB] for person, _, _ in rows],
        }
    )
    schema = {"day": Date("1970-01-01", "1971-01-01"), "cost": Int(0, 10), "clinic": Text()}
    return PrivateTable("visits", source=source, unit=unit, schema=schema)


def _series() -> tuple[SeriesExample, ...]:
    nothing: tuple[State, ...] = ((),) * _HORIZON
    once: State = ((_ALICE, 1, 10),)
    always: State = tuple((_ALICE, day, 10) for day in range(_HORIZON) for _ in range(3))
    two_days: State = tuple((_ALICE, day, 10) for day in (2, 3) for _ in range(3))
    late: State = ((_BOB, 3, 10),)
    return (
        SeriesExample("series: a row that is deleted again", PrivacyUnit.row(), nothing, ((), once, (), ())),
        SeriesExample(
            "series: a row in place of another",
            PrivacyUnit.row(adjacency="exchange"),
            (once,) * _HORIZON,
            (late,) * _HORIZON,
        ),
        SeriesExample(
            "series: somebody in all steps",
            PrivacyUnit("person", max_rows=1),
            nothing,
            (always,) * _HORIZON,
        ),
        SeriesExample(
            "series: two days of somebody",
            PrivacyUnit("person", max_rows=1, window=2, time="day"),
            nothing,
            ((), (), two_days, two_days),
        ),
        SeriesExample(
            "series: somebody who is erased and comes again, in two steps",
            PrivacyUnit("person", max_rows=1),
            nothing,
            (always, (), always, always),
            max_steps=2,
        ),
        FoundExample(
            "series: somebody alone in a clinic that nobody knew",
            PrivacyUnit("person", max_rows=1),
            nothing,
            (always,) * _HORIZON,
            alone=True,
        ),
        FoundExample(
            "series: somebody who counts in one step of a clinic that nobody knew",
            PrivacyUnit("person", max_rows=1),
            nothing,
            (always,) * _HORIZON,
            max_steps=1,
            alone=True,
        ),
        FoundExample(
            "series: somebody more in a clinic that nobody knew",
            PrivacyUnit("person", max_rows=1),
            nothing,
            (always,) * _HORIZON,
        ),
    )


SERIES = _series()
