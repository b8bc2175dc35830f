"""Does one unit move what is read for a query by more than is claimed? Random queries on random tables."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import duckdb
from sqlglot import exp

from random_queries import make_query
from random_tables import Side, World, make_world
from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.duckdb import _SETTINGS
from sfumato.errors import QueryRefused
from sfumato.plan import sensitivity as claims
from sfumato.plan.expressions import Call, Column, Literal
from sfumato.plan.measure import recipe
from sfumato.plan.nodes import AggregateCall, Measured, Report
from sfumato.session import vault as vaults
from sfumato.sql.parse import parse
from sfumato.testing.queries import exact_units

__all__ = ["Bench", "Outcome", "examine"]

_QUERIES = 50  # of each world


@dataclass(slots=True)
class Outcome:
    """What was asked, what came of it, and every broken claim as a sentence."""

    asked: int = 0
    accepted: int = 0
    reached: int = 0
    broken: list[str] = field(default_factory=list)
    nodes: Counter[str] = field(default_factory=Counter)
    aggregates: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Take in what another part found."""
        for each in fields(self):
            mine, new = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, Counter):
                mine.update(new)
            else:
                setattr(self, each.name, mine + new)


class _Answer:
    """As much of an Arrow table as a vault looks at; making real ones takes longer than the queries."""

    def __init__(self, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.column_names, self.rows, self.num_rows = names, rows, len(rows)

    def column(self, name: str) -> _Answer:
        place = self.column_names.index(name)
        return _Answer([name], [row[place : place + 1] for row in self.rows])

    def to_pylist(self) -> list[Any]:
        return [row[0] for row in self.rows]


class Bench:
    """A world's table and its neighbours side by side in one engine, with the settings of the real one.

    It is the engine of a vault: one read of the vault runs the statement on the table and, as branches of the
    same statement, on some neighbours.
    """

    dialect = "duckdb"

    def __init__(self, world: World, *, optimised: bool = True) -> None:
        self.world = world
        self.vault = vaults.Vault(self, {"people": world.table})
        self.reads = 0
        self.neighbours: Sequence[Side] = ()
        self.answers: list[_Answer] = []
        self._connection = duckdb.connect(config={**_SETTINGS, "threads": 1})
        for name, rows in [("people", world.base), *((each.name, each.rows) for each in world.sides)]:
            self._connection.register("incoming", rows)
            ids = (
                "" if world.table.unit.column is None else f', "{world.table.unit.column}" AS "{UNIT_COLUMN}"'
            )
            self._connection.execute(f'CREATE TABLE "{name}" AS SELECT *{ids} FROM incoming')
            self._connection.unregister("incoming")
        if not optimised:
            self._connection.execute("PRAGMA disable_optimizer")

    def close(self) -> None:
        self._connection.close()

    def fetch(self, statement: exp.Expression) -> Any:
        """The answer of the table itself; those of the neighbours are kept."""
        self.reads += 1
        text = statement.sql("duckdb")
        texts = [text, *(text.replace('"people"', f'"{side.name}"') for side in self.neighbours)]
        found = self._connection.execute(
            " UNION ALL ".join(f"SELECT {i} AS side, * FROM ({each}) AS s{i}" for i, each in enumerate(texts))
        )
        names = [each[0] for each in found.description[1:]]
        rows = found.fetchall()
        self.answers = [_Answer(names, [row[1:] for row in rows if row[0] == i]) for i in range(len(texts))]
        return self.answers[0]

    def check(self, measured: Measured, neighbours: Sequence[Side]) -> tuple[float, list[str]]:
        """The greatest part of a claimed sensitivity that was reached, and which claims were broken."""
        self.neighbours, self.reads = neighbours, 0
        base = exact_units(self.vault, measured)
        broken = self._leaks(measured)
        claimed = claims.sensitivities(measured)
        most = 0.0
        for side, answer in zip(neighbours, self.answers[1:], strict=True):
            other = vaults._align(answer, measured)
            for place, claim in enumerate(claimed):
                moves = [a - b for a, b in zip(base[place], other[place], strict=True)]
                l1, l2_squared = sum(map(abs, moves)), sum(move * move for move in moves)
                if not side.moves:
                    claim = claims.Sensitivity(0, 0)
                else:
                    most = max(most, l1 / claim.l1)
                if l1 > claim.l1 or l2_squared > claim.l2_squared:
                    broken.append(
                        f"{side.name}: measurement {place} of {measured.measurements[place].kind} moves by "
                        f"{l1} in L1 (claimed {claim.l1}), {l2_squared} in squared L2 ({claim.l2_squared})"
                    )
        return most, broken

    def _leaks(self, measured: Measured) -> list[str]:
        """What left the engine and was not asked for."""
        keys = [f"k{i}" for i in range(len(measured.keys))]
        expected = [*keys, *(f"m{i}" for i in range(len(measured.measurements)))]
        found = [] if self.reads == 1 else [f"{self.reads} reads for one question"]
        public = set(measured.combinations)
        for answer in self.answers:
            if answer.column_names != expected:
                found.append(f"columns {answer.column_names} instead of {expected}")
            elif set(zip(*(answer.column(key).to_pylist() for key in keys), strict=True)) - public:
                found.append("a key that is not public left the engine")
            elif not keys and answer.num_rows != 1:
                found.append(f"{answer.num_rows} rows for one number")
        return found


def examine(
    seed: int | str,
    count: int,
    *,
    plain: bool = False,
    stop: bool = False,
    adjacency: str | None = None,
    about: str = "",
) -> Outcome:
    """Ask so many random queries, each of a table and two or three of its neighbours.

    Args:
        seed: The same seed asks the same.
        count: How many queries, fifty a table.
        plain: Leave out those that are meant to be refused.
        stop: At the first broken claim.
        adjacency: Of all tables; by default each has its own.
        about: Skip queries without these words.
    """
    total = Outcome()
    for part in range(0, count, _QUERIES):
        draw = random.Random(f"queries {seed}/{part}")
        # The engine's optimiser must not matter: most tables go without it, which is faster.
        bench = Bench(make_world(f"{seed}/{part}", adjacency=adjacency), optimised=draw.random() < 0.4)
        try:
            for _ in range(min(_QUERIES, count - part)):
                total.add(_one(bench, draw, plain=plain, about=about))
                if stop and total.broken:
                    return total
        finally:
            bench.close()
    return total


def _one(bench: Bench, draw: random.Random, *, plain: bool, about: str) -> Outcome:
    table = bench.world.table
    asked = make_query(draw, table, plain=plain)
    sides = list(bench.world.sides)
    neighbours = sides[:2] + draw.sample(sides[2:], draw.randint(0, 1))
    outcome = Outcome(asked=1)
    if about not in asked.text:
        return outcome
    try:
        report = parse(asked.text, {"people": table})
        measured = recipe(report, table).measured
    except QueryRefused:
        return outcome
    except Exception as error:
        outcome.broken.append(f"{error!r} for {asked.text}")
        return outcome
    outcome.accepted = 1
    outcome.texts.append(asked.text)
    _survey(report, measured, outcome)
    if asked.hopeless:
        outcome.broken.append(f"accepted: {asked.text}")
    try:
        reached, broken = bench.check(measured, neighbours)
    except Exception as error:
        reached, broken = 0.0, [repr(error)]
    outcome.reached = int(reached >= 0.5)
    outcome.broken += [f"{each}; {table.unit}; {asked.text}" for each in broken]
    return outcome


def _survey(report: Report, measured: Measured, outcome: Outcome) -> None:
    """Count each kind of node once a query, so that figures are of queries."""
    found = list(_parts(report)) + [f"measures {each.kind}" for each in measured.measurements]
    for clause in ("having", "limit", "offset"):
        if getattr(report, clause) not in (None, 0):
            found.append(clause)
    calls = {each.function for each in _nodes(report) if isinstance(each, AggregateCall)}
    outcome.nodes.update(set(found))
    outcome.aggregates.update(calls)
    outcome.functions.update({each.function for each in _nodes(report) if isinstance(each, Call)})


def _parts(report: Report) -> Iterator[str]:
    for node in _nodes(report):
        yield type(node).__name__


def _nodes(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        for each in node:
            yield from _nodes(each)
    elif is_dataclass(node):
        yield node
        if not isinstance(node, Column | Literal):
            for each in fields(node):
                yield from _nodes(getattr(node, each.name))
