"""Random histories of a table that a series is published of, and neighbours of them, step by step and exact.

A history is the states of a table, one after the other; after each the series goes on by some steps. Rows
come late, are corrected, move to another day and go. A neighbour has the rows of one unit besides, in any
states, any of them changed or deleted again later; or, by exchange, those of another unit in their place.
What a unit is stays fixed: a row that moves to another day is another row, and a person's rows that move to
another window are of another unit.

Where the groups are not public, those that join in each step are fixed beforehand, the same on both sides:
what finds them is compared by itself, as numbers of units in pairs of a step and a group.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.ledger import Ledger
from sfumato.session.series.finding import name_of, placed
from sfumato.session.series.points import Courses, Point
from sfumato.testing.stream import seeded
from windows_of_time import window as window_of_day

__all__ = ["KINDS", "Found", "Kind", "examine"]

START = datetime.date(2024, 1, 1)  # a Monday, in a leap year
SHOPS = ("a", "b")
MORE = ("a", "b", "c", "d")  # where they are not public
NOBODY = 10**6


@dataclass(frozen=True)
class Kind:
    """A unit and the steps of a series.

    Attributes:
        unit: Whom it protects.
        every: How long steps are.
        horizon: How many there are.
        by: The key of time in SQL; from `every` where it is empty.
        found: Whether the shops are not public.
        most: In how many steps a unit counts; None: in all that it has rows in.
        of: What is read instead of the visits: a question with one row for each unit.
    """

    unit: sf.PrivacyUnit
    every: str = "day"
    horizon: int = 6
    by: str = ""
    found: bool = False
    most: int | None = None
    of: str = ""

    @property
    def text(self) -> str:
        key = self.by or ("day" if self.every == "day" else f"DATE_TRUNC('{self.every}', day)")
        if self.of:
            kept = "LEAST(GREATEST(amount, 0), 10)"
            numbers = f"COUNT(*) AS n, SUM({kept}) AS total, AVG({kept}) AS mean"
            return f"SELECT {key} AS step, {numbers} FROM ({self.of}) AS v GROUP BY step"
        return (
            f"SELECT {key} AS step, shop, COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean "
            "FROM visits GROUP BY step, shop"
        )

    @property
    def days(self) -> int:
        """Over so many days rows are spread: all steps, and some before and after."""
        return self.horizon * {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[self.every] + 3


def _user(window: str | int | None = None, adjacency: str = "add-remove", **more: Any) -> sf.PrivacyUnit:
    limits = {"max_rows": 2, "max_groups": 2} | more
    time = None if window is None else "day"
    return sf.PrivacyUnit("user", adjacency=adjacency, window=window, time=time, **limits)


_LATEST = 'SELECT "user", MAX(day) AS day, MAX(amount) AS amount FROM visits GROUP BY "user"'
_FIRST = 'SELECT "user", MIN(day) AS day, SUM(amount) AS amount FROM visits WHERE amount > 0 GROUP BY "user"'

KINDS = {
    "rows": Kind(sf.PrivacyUnit.row(), horizon=8),
    "rows, exchanged": Kind(sf.PrivacyUnit.row(adjacency="exchange"), horizon=8),
    "people": Kind(_user(), horizon=5),
    "people, exchanged": Kind(_user(adjacency="exchange"), horizon=5),
    "weeks by days": Kind(_user("week"), horizon=8),
    "months by weeks": Kind(_user("month"), "week", 7),
    "weeks by months": Kind(_user("week"), "month", 3),
    "10 days by weeks": Kind(_user(10), "week", 5),
    "quarters by months": Kind(_user("quarter"), "month", 4),
    "3 days by days, exchanged": Kind(_user(3, "exchange"), horizon=8),
    "days by weeks": Kind(_user("day", max_rows=1), "week", 3),
    "weeks by another time": Kind(_user("week"), "day", 6, by="arrived"),
    "people in 2 steps": Kind(_user(), horizon=6, most=2),
    "people in 1 step": Kind(_user(max_rows=1, max_groups=1), horizon=6, most=1),
    "people in 2 steps, exchanged": Kind(_user(adjacency="exchange"), horizon=6, most=2),
    "weeks by days, in 3 steps": Kind(_user("week"), horizon=8, most=3),
    "people on their latest day": Kind(_user(), horizon=6, of=_LATEST),
    "people on their latest day, exchanged": Kind(_user(adjacency="exchange"), horizon=6, of=_LATEST),
    "people in the week of their first day": Kind(_user(), "week", 4, of=_FIRST),
    "found by rows": Kind(sf.PrivacyUnit.row(), horizon=8, found=True),
    "found by rows, exchanged": Kind(sf.PrivacyUnit.row(adjacency="exchange"), horizon=8, found=True),
    "found by people": Kind(_user(), horizon=5, found=True),
    "found by people, exchanged": Kind(_user(adjacency="exchange"), horizon=3, found=True),
    "found by people in 2 steps": Kind(_user(), horizon=6, found=True, most=2),
    "found by weeks": Kind(_user("week"), horizon=8, found=True),
    "found by weeks, one shop each": Kind(_user("week", max_rows=1, max_groups=1), horizon=8, found=True),
    "found by 3 days, exchanged": Kind(_user(3, "exchange"), horizon=8, found=True),
}

Rows = list[dict[str, Any]]


@dataclass
class Found:
    """What neighbours moved.

    Attributes:
        broken: Each broken claim as a sentence.
        steps: The most steps in which two neighbours differ, of those that were claimed.
        reached: The largest part of the claimed distance that two neighbours have, over all steps.
        pairs: The most pairs of a step and a group in which two neighbours differ, of those claimed.
    """

    broken: list[str] = field(default_factory=list)
    steps: int = 0
    reached: float = 0.0
    pairs: int = 0


def _row(draw: random.Random, kind: Kind, user: int, day: datetime.date | None = None) -> dict[str, Any]:
    when = START + datetime.timedelta(days=draw.randrange(-2, kind.days)) if day is None else day
    return {
        "user": user,
        "day": None if draw.random() < 0.05 and day is None else when,
        "arrived": START + datetime.timedelta(days=draw.randrange(kind.horizon)),
        "shop": draw.choice(MORE if kind.found else SHOPS),
        "amount": draw.choice([0, 0, 3, 10, 10, 99, None]),
    }


def _states(draw: random.Random, kind: Kind, count: int) -> list[Rows]:
    """States of everybody else's rows."""
    rows = [_row(draw, kind, user % 7) for user in range(25)]
    states = [rows]
    for _ in range(count - 1):
        rows = [dict(row) for row in rows]
        for row in draw.sample(rows, 5):
            row |= draw.choice([{"amount": 10}, {"day": START}, {"shop": "b"}, {"user": 3}])
        gone = draw.sample(range(len(rows)), 3)
        rows = [row for place, row in enumerate(rows) if place not in gone]
        rows += [_row(draw, kind, draw.randrange(7)) for _ in range(4)]
        states.append(rows)
    return states


def _made_states(draw: random.Random, kind: Kind, stops: Sequence[int], user: int) -> list[Rows]:
    """The rows of one unit in each state, mostly all on a day of the steps that are read next."""
    long, states = {"day": 1, "week": 7}[kind.every], []
    for begin, end in zip([0, *stops], stops, strict=False):
        days = [START + datetime.timedelta(days=draw.randrange(begin, end) * long) for _ in range(2)]
        rows = [_row(draw, kind, user, day) | {"amount": 9} for day in days[: draw.choice([1, 1, 1, 2])]]
        states.append([] if draw.random() < 0.1 else rows)
    return states


def _unit_states(draw: random.Random, kind: Kind, stops: Sequence[int], user: int) -> list[Rows]:
    """The rows of one unit in each state: any number, any of them gone or changed in another."""
    if kind.of:
        return _made_states(draw, kind, stops, user)
    unit, count = kind.unit, len(stops)
    if unit.is_row:
        row = _row(draw, kind, user, START + datetime.timedelta(days=draw.randrange(kind.horizon)))
        row["amount"] = draw.choice([0, 10])
        return [
            [{**row, "amount": draw.choice([row["amount"], 10])}][: draw.random() < 0.9] for _ in range(count)
        ]
    days = every = [START + datetime.timedelta(days=place) for place in range(-2, kind.days)]
    if unit.window is not None:
        chosen = window_of_day(draw.choice(every), unit.window)
        days = [day for day in every if window_of_day(day, unit.window) == chosen]
    full = draw.random() < 0.5  # on each day of the window
    states = []
    for _ in range(count):
        those = (
            [draw.choice(days) for _ in range(draw.choice([0, 1, 12, 12]))] if not full else [*days, *days]
        )
        rows = [_row(draw, kind, user, day) for day in those]
        same = draw.random() < 0.5
        states.append([row | ({"shop": "a", "amount": 10} if same else {}) for row in rows])
    return states


def _table(rows: Rows, kind: Kind) -> sf.PrivateTable:
    types = {"user": pa.int64(), "day": pa.date32(), "arrived": pa.date32(), "shop": pa.string()}
    types["amount"] = pa.int64()
    source = pa.table({name: pa.array([row[name] for row in rows], kept) for name, kept in types.items()})
    schema = {
        "day": sf.Date("2024-01-01", "2027-12-31", nullable=True),
        "arrived": sf.Date("2024-01-01", "2027-12-31"),
        "shop": sf.Text() if kind.found else sf.Enum(SHOPS),
        "amount": sf.Int(0, 10, nullable=True),
    }
    return sf.PrivateTable("visits", source=source, schema=schema, unit=kind.unit)


Met = tuple[list[list[np.ndarray]], list[dict[str, int]]]


@contextmanager
def _watched(seed: str) -> Iterator[Met]:
    """The exact numbers of each point, and the units of each group that was read for it.

    What is released in their place is the same on both sides, and so are the groups that join.
    """
    met: list[list[np.ndarray]] = []
    counted: list[dict[str, int]] = []
    path = random.Random(f"path {seed}")
    joins = [[(shop,) for shop in MORE if path.random() < 0.6] for _ in range(16)]

    def release(self: Courses, exact: Sequence[np.ndarray]) -> Point:
        exact = self._with_units(exact)
        met.append([np.array([int(value) for value in values], object) for values in exact])
        for course in self._courses:
            course.skip()
        kept = b"" if self.roster is None else self.roster.closed(0.0, 0.0)
        return Point(tuple(np.zeros(len(values), np.int64) for values in exact), b"", roster=kept)

    def release_found(self: Courses, reading: Any) -> Point:
        names = [name_of(group) for group in self._finding.groups(reading)]
        counted.append(dict(zip(names, map(int, reading.units), strict=True)))
        new = tuple(shop for shop in joins[self.next] if name_of(shop) not in self._known)
        self._known |= {name_of(shop): len(self._known) + place for place, shop in enumerate(new)}
        for course in self._courses:
            if not course.mechanism.groups:
                course.widen(len(self._known))
        point = release(self, [placed(column, names, self._known) for column in reading.columns])
        return Point(point.units, b"", found=new, roster=point.roster)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Courses, "release", release)
        patch.setattr(Courses, "release_found", release_found)
        yield met, counted


def _published(states: list[Rows], stops: list[int], kind: Kind, seed: str) -> tuple[Any, Met]:
    """The pricing of a series, the exact numbers of each of its points and the units of its groups."""
    with seeded(seed), _watched(seed) as met, Ledger.open() as ledger:
        for rows, stop in zip(states, stops, strict=True):
            budget = sf.Budget(epsilon=10, delta="1e-4")
            with sf.Session(_table(rows, kind), budget=budget, ledger=ledger) as session:
                series = session.stream(
                    kind.text,
                    start=START,
                    horizon=kind.horizon,
                    epsilon=1,
                    delta="1e-6",
                    max_steps=kind.most,
                )
                end = series.pricing.calendar.value(stop)
                moment = datetime.datetime.combine(end, datetime.time(), datetime.UTC)
                series.advance(now=moment)
        return series.pricing, met


def _compared(found: Found, pricing: Any, ours: list[Any], theirs: list[Any], name: str) -> None:
    horizon, touches = pricing.horizon, pricing.choice.plan.touches
    assert len(ours) == len(theirs)
    if len(ours) > horizon:
        found.broken.append(f"{name}: {len(ours)} points where {horizon} were paid for")
        return
    moved_steps = set()
    share = 0.0
    for place, noise in enumerate(pricing.streams):
        plan = noise.plan
        moves = np.array(
            [
                np.pad((mine[place] - other[place]).astype(float), (0, len(MORE) - mine[place].size))
                for mine, other in zip(ours, theirs, strict=True)
            ]
        )
        lengths = np.sqrt((moves**2).sum(axis=1))
        most = float(noise.sensitivity) * (1 + 1e-12)
        if lengths.max() > most:
            found.broken.append(f"{name}: measurement {place} moves by {lengths.max()}, claimed {most}")
        moved_steps |= set(np.flatnonzero(lengths).tolist())
        scales = 1 if plan.scales is None else (plan.scales / 2.0**16)[: len(moves), None]
        column = plan.factor.coefficients(plan.horizon)
        whole = np.zeros((plan.horizon, moves.shape[1]))
        for step, move in enumerate(moves * scales):
            whole[step:] += column[: plan.horizon - step, None] * move
        ratio = float(np.sqrt((whole**2).sum())) / (float(plan.norm) * float(noise.sensitivity))
        if ratio > 1 + 1e-9:
            found.broken.append(f"{name}: measurement {place} moves {ratio} times as far as claimed in all")
        share += ratio**2 * float(noise.rho)
    paid = float(sum(mechanism.rho for mechanism in pricing.quote.mechanisms))
    if share > paid * (1 + 1e-9):
        found.broken.append(f"{name}: the whole costs {share}, paid is {paid}")
    if len(moved_steps) > touches:
        found.broken.append(f"{name}: a unit is in {len(moved_steps)} steps, claimed are {touches}")
    found.steps = max(found.steps, len(moved_steps))
    found.reached = max(found.reached, (share / paid) ** 0.5)


def _tested(found: Found, pricing: Any, ours: list[Any], theirs: list[Any], name: str) -> None:
    """What decides on groups: in how many pairs neighbours differ, by how much, and whom it shows alone."""
    if pricing.finding is None:
        return
    selection = pricing.finding.selection
    most = selection.groups * (2 if selection.exchange else 1)
    pairs = lone = 0
    for mine, other in zip(ours, theirs, strict=True):
        for group in mine.keys() | other.keys():
            difference = abs(mine.get(group, 0) - other.get(group, 0))
            pairs += difference > 0
            lone += difference > 0 and group not in other
            if difference > 1:
                found.broken.append(f"{name}: a unit counts {difference} in a group of a step")
    if pairs > most:
        found.broken.append(f"{name}: a unit is in {pairs} pairs, claimed are {most}")
    seen = 1 - (1 - selection.keep_probability(1)) ** lone
    if seen > float(selection.delta) * (1 + 1e-9):
        found.broken.append(
            f"{name}: a unit alone is seen with probability {seen}, claimed {selection.delta}"
        )
    found.pairs = max(found.pairs, pairs)


def examine(name: str, seed: int | str, histories: int) -> Found:
    """Random histories of a kind, each beside one neighbour."""
    found, kind = Found(), KINDS[name]
    for part in range(histories):
        draw = random.Random(f"{name} {seed} {part}")
        count = draw.choice([1, 2, 3])
        stops = [*sorted(draw.sample(range(1, kind.horizon), count - 1)), kind.horizon]
        rest = _states(draw, kind, count)
        first = _unit_states(draw, kind, stops, NOBODY)
        second: list[Rows] = [[] for _ in first]
        if kind.unit.adjacency == "exchange":
            second = _unit_states(draw, kind, stops, NOBODY + 1)
            if kind.unit.is_row:  # one row for one row, as long as they are there
                second = [both[: len(mine)] or [] for both, mine in zip(second, first, strict=True)]
                first = [mine[: len(both)] for both, mine in zip(second, first, strict=True)]
        runs = [
            _published([a + b for a, b in zip(rest, own, strict=True)], stops, kind, f"{name} {seed} {part}")
            for own in (first, second)
        ]
        (priced, (ours, mine)), (_, (theirs, others)) = runs
        _compared(found, priced, ours, theirs, f"{name} {part}")
        _tested(found, priced, mine, others, f"{name} {part}")
    return found
