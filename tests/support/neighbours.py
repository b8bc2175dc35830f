"""Does one unit move what is read for a query by more than is claimed? Random queries on random tables."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Protocol

import duckdb
import pyarrow as pa
from sqlglot import exp

from random_queries import Asked, make_query
from random_shapes import make_shape
from random_shop import make_shop
from random_tables import Side, World, make_world
from sfumato.engines import prepare
from sfumato.engines.base import UNIT_COLUMN, pointer_column
from sfumato.engines.dialect import DUCKDB, Dialect
from sfumato.engines.duckdb import _SETTINGS
from sfumato.errors import EngineFailed, QueryRefused
from sfumato.plan.expressions.tree import Call, Column, Literal
from sfumato.plan.prices.recipe import recipe
from sfumato.plan.questions import sensitivity as claims
from sfumato.plan.questions.bounding import boundings
from sfumato.plan.questions.nodes import AggregateCall, Block, Joined, Measured, Report, Where
from sfumato.plan.questions.others import Line, lines_of, picks_of
from sfumato.plan.questions.relations import rows_of
from sfumato.plan.questions.sensitivity import Sensitivity
from sfumato.plan.questions.unbounded import bounded, sizes_of, unbounded
from sfumato.schema import PrivateTable, pointers_of
from sfumato.session.reading import Reading, _timed, on_lines, reading
from sfumato.session.vault import Vault, _closed
from sfumato.sql.asking import ask
from sfumato.sql.write.lower import CELL, UNITS

__all__ = ["Bench", "Outcome", "examine", "examine_form"]

_QUERIES, _SHAPES = 50, 22  # of each world
_RARE = {"per unit", "per unit and key", "window", "choose"}  # claims are reached by few neighbours


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

    type = pa.null()  # its values are read one by one
    null_count = 1  # some may be missing
    num_chunks = 1

    def __init__(self, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.column_names, self.rows, self.num_rows = names, rows, len(rows)

    def column(self, name: str) -> _Answer:
        place = self.column_names.index(name)
        return _Answer([name], [row[place : place + 1] for row in self.rows])

    def to_pylist(self) -> list[Any]:
        return [row[0] for row in self.rows]

    def set_column(self, place: int, name: str, values: pa.Array) -> _Answer:
        names = [*self.column_names[:place], name, *self.column_names[place + 1 :]]
        new = values.to_pylist()
        rows = [(*row[:place], value, *row[place + 1 :]) for row, value in zip(self.rows, new, strict=True)]
        return _Answer(names, rows)

    def chunk(self, _: int) -> pa.Array:
        return pa.array(self.to_pylist())


def _identity(rows: pa.Table, column: str) -> str:
    """The ids as an engine shows them: NaN is none."""
    if pa.types.is_floating(rows.schema.field(column).type):
        return f'CASE WHEN NOT isnan("{column}") THEN "{column}" END'
    return f'"{column}"'


class Store(Protocol):
    """Another engine that statements are run on; names have its quotes around them."""

    dialect: Dialect
    quotes: str

    def text(self, statement: exp.Expr) -> str: ...

    def fill(self, name: str, rows: pa.Table) -> None: ...

    def execute(self, text: str) -> tuple[list[str], list[tuple[Any, ...]]]: ...


class Bench:
    """A world's tables and their neighbours side by side in one engine, with the settings of the real one.

    It is the engine of a vault: one read of the vault runs the statement on the tables and, as branches of
    the same statement, on some neighbours.
    """

    def __init__(
        self,
        world: World,
        *,
        optimised: bool = True,
        salt: int = 0,
        threads: int = 1,
        store: Store | None = None,
    ) -> None:
        self.world, self._store = world, store
        self.dialect = DUCKDB if store is None else store.dialect
        self._text = DUCKDB.text if store is None else store.text
        self._quotes = '"' if store is None else store.quotes
        self.vault = Vault(self, world.tables, dict.fromkeys(world.tables, salt))
        self.reads = 0
        self.neighbours: Sequence[Side] = ()
        self.answers: list[_Answer] = []
        self.groups: list[tuple[Any, ...]] = []  # that an open question found
        self._connection = duckdb.connect(config={**_SETTINGS, "threads": threads})
        self._there: set[str] = set()
        if not optimised:
            self._connection.execute("PRAGMA disable_optimizer")

    def _fill(self, name: str, incoming: pa.Table, suffix: str = "") -> None:
        """Make a table once it is asked for."""
        if f"{name}{suffix}" in self._there:
            return
        self._there.add(f"{name}{suffix}")
        self._connection.register("incoming", incoming)
        unit = getattr(self.world.tables[name], "unit", None)
        named = unit is not None and unit.column is not None and not unit.is_via
        ids = f', {_identity(incoming, unit.column)} AS "{UNIT_COLUMN}"' if named else ""
        pointers = pointers_of(each for each in self.world.tables.values() if isinstance(each, PrivateTable))
        ids += "".join(f', "{each}" AS "{pointer_column(each)}"' for each in pointers.get(name, ()))
        select = f"SELECT *{ids} FROM incoming"
        if name in self.world.prepared:
            kinds = {column: kind.kind for column, kind in self.world.tables[name].schema.items()}
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW attached AS {select}")
            select = prepare.statement("attached", kinds, b"salt", DUCKDB, self.world.prepared[name])
        self._connection.execute(f'CREATE TABLE "{name}{suffix}" AS {select}')
        self._connection.unregister("incoming")
        if self._store is not None:
            made = self._connection.sql(f'SELECT * FROM "{name}{suffix}"').to_arrow_table()
            self._store.fill(f"{name}{suffix}", made)

    def close(self) -> None:
        self._connection.close()

    def fetch(self, statement: exp.Expression) -> Any:
        """The answer of the tables themselves; those of the neighbours are kept."""
        self.reads += 1
        text = self._text(statement)
        for name, rows in self.world.base.items():
            if self._quoted(name) in text:
                self._fill(name, rows)
        texts = [text, *(self._moved(text, side) for side in self.neighbours)]
        names, rows = self._execute(
            " UNION ALL ".join(f"SELECT {i} AS side, * FROM ({each}) AS s{i}" for i, each in enumerate(texts))
        )
        self.answers = [_Answer(names, [row[1:] for row in rows if row[0] == i]) for i in range(len(texts))]
        return self.answers[0]

    def _execute(self, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        if self._store is not None:
            names, rows = self._store.execute(text)
            return names[1:], rows
        found = self._connection.execute(text)
        return [each[0] for each in found.description[1:]], found.fetchall()

    def _moved(self, text: str, side: Side) -> str:
        """The statement over the tables of a neighbour."""
        for name, rows in side.rows.items():
            if self._quoted(name) in text:
                self._fill(name, rows, f" {side.name}")
                text = text.replace(self._quoted(name), self._quoted(f"{name} {side.name}"))
        return text

    def _quoted(self, name: str) -> str:
        return f"{self._quotes}{name}{self._quotes}"

    def _read(self, measured: Measured) -> Any:
        """The answer to the statement that a vault makes; a failure says no more than there."""
        checked = [made for asked, *_, made in self.vault._made.values() if asked is measured]
        statement = checked[0] if checked else self.vault._statement(measured)
        try:
            return self.fetch(statement)
        except duckdb.Error as error:
            raise EngineFailed(type(error).__name__) from None

    def check(
        self,
        measured: Measured,
        neighbours: Sequence[Side],
        *,
        read: Measured | None = None,
        few: float = 1.0,
    ) -> tuple[float, list[str]]:
        """The greatest part of a claimed sensitivity that was reached, and which claims were broken.

        Args:
            measured: The question.
            neighbours: Where it is asked as well.
            read: What is read in its place: more groups, of which those of the question are kept.
            few: Which part of the groups that are found is selected, where there are several levels of them:
                the list is the same for all neighbours, since it is public by then.
        """
        self.neighbours, self.reads = neighbours, 0
        self._read(read or measured)
        self.answers = [_timed(each, self.vault.kinds(measured)) for each in self.answers]
        first = reading(self.answers[0], measured)
        broken = self._leaks(measured) if read is None else []
        claimed, lines = _claims(measured), tuple[Line, ...]()
        if measured.is_open:
            self.groups = [
                *dict.fromkeys(key for each in self.answers for key in reading(each, measured).groups)
            ]
        if measured.is_open and measured.levels:
            picks = picks_of(measured, self.groups)
            ranked = sorted(picks, key=lambda pick: hashlib.sha256(repr(pick).encode()).digest())
            lines = lines_of(measured, ranked[: round(few * len(ranked))])
        base, most = _vectors(first, measured, lines), 0.0
        for side, answer in zip(neighbours, self.answers[1:], strict=True):
            other = _vectors(reading(answer, measured), measured, lines)
            for (name, mine), (_, new), claim in zip(base, other, claimed, strict=True):
                l1, l2_squared = _moves(mine, new)
                if not side.moves:
                    claim = Sensitivity(0, 0)
                elif claim.l1:
                    most = max(most, l1 / claim.l1)
                if l1 > claim.l1 or l2_squared > claim.l2_squared:
                    broken.append(
                        f"{side.name}: measurement {name} moves by {l1} in L1 (claimed {claim.l1}), "
                        f"{l2_squared} in squared L2 ({claim.l2_squared})"
                    )
        return most, broken

    def _leaks(self, measured: Measured) -> list[str]:
        """What left the engine and was not asked for."""
        keys = [f"k{i}" for i in range(len(measured.keys))]
        cells = [CELL] if any(each.kind == "cells" for each in measured.measurements) else []
        units = [UNITS] if measured.is_open else []
        expected = [*keys, *cells, *(f"m{i}" for i in range(len(measured.measurements))), *units]
        found = [] if self.reads == 1 else [f"{self.reads} reads for one question"]
        public = set(measured.combinations if measured.together is None else measured.together)
        for answer in self.answers:
            if answer.column_names != expected:
                found.append(f"columns {answer.column_names} instead of {expected}")
            elif not keys and not cells and answer.num_rows != 1:
                found.append(f"{answer.num_rows} rows for one number")
            elif keys and not measured.is_open:
                left = set(zip(*(answer.column(key).to_pylist() for key in keys), strict=True)) - public
                # Where NULL is among the groups, keys are only told apart one by one.
                listed = [{row[i] for row in public} for i in range(len(keys))]
                loose = any(None in values for values in listed)
                if any(not loose or any(map(_other, row, listed)) for row in left):
                    found.append("a key that is not public left the engine")
        return found


def _other(value: Any, listed: set[Any]) -> bool:
    return value not in listed


Vector = dict[Any, int]


def _vectors(found: Reading, measured: Measured, lines: Sequence[Line] = ()) -> list[tuple[str, Vector]]:
    """What was read for each measurement: by group, by group and cell, or added up on lines."""
    if found.cells is not None:
        places = zip(*found.cells.nonzero(), strict=True)
        return [("0 of cells", {place: int(found.cells[place]) for place in places})]
    named = [f"{i} of {each.kind}" for i, each in enumerate(measured.measurements)]
    columns: list[Vector] = [
        dict(zip(found.groups, column.tolist(), strict=True)) for column in found.columns
    ]
    if lines:
        columns = [dict(zip(lines, map(int, column), strict=True)) for column in on_lines(found, lines)]
    vectors = list(zip(named, columns, strict=True))
    if found.units is not None:
        vectors.append(
            ("of units for the selection", dict(zip(found.groups, found.units.tolist(), strict=True)))
        )
    return vectors


def _claims(measured: Measured) -> list[Sensitivity]:
    """The claim for each of the vectors; for a selection that a unit counts once in its groups."""
    found = list(claims.sensitivities(measured))
    if measured.is_open:
        unit = measured.unit
        most = unit.max_groups * (2 if unit.adjacency == "exchange" else 1)
        found.append(Sensitivity(most, most))
    return found


def _moves(first: Vector, second: Vector) -> tuple[int, int]:
    moves = [first.get(key, 0) - second.get(key, 0) for key in first.keys() | second.keys()]
    return sum(map(abs, moves)), sum(move * move for move in moves)


def examine(
    seed: int | str,
    count: int,
    *,
    plain: bool = False,
    stop: bool = False,
    adjacency: str | None = None,
    about: str = "",
    store: Callable[[], Store] | None = None,
) -> Outcome:
    """Ask so many random queries, each of a table and two or three of its neighbours.

    Args:
        seed: The same seed asks the same.
        count: How many queries, fifty a table.
        plain: Leave out those that are meant to be refused.
        stop: At the first broken claim.
        adjacency: Of all tables; by default each has its own.
        about: Skip queries without these words.
        store: Makes another engine to run them on.
    """
    total = Outcome()
    for part in range(0, count, _QUERIES):
        draw = random.Random(f"queries {seed}/{part}")
        # The engine's optimiser must not matter: most tables go without it, which is faster.
        world, optimised = make_world(f"{seed}/{part}", adjacency=adjacency), draw.random() < 0.4
        bench = Bench(world, optimised=optimised, store=None if store is None else store())
        try:
            for _ in range(min(_QUERIES, count - part)):
                asked = make_query(draw, bench.world.tables["people"], plain=plain)
                total.add(_one(bench, draw, asked) if about in asked.text else Outcome(asked=1))
                if stop and total.broken:
                    return total
        finally:
            bench.close()
    return total


def examine_form(
    form: str,
    seed: int | str,
    count: int,
    *,
    stop: bool = False,
    adjacency: str | None = None,
    about: str = "",
    store: Callable[[], Store] | None = None,
) -> Outcome:
    """Ask so many random questions of one form, each of a shop and two or three of its neighbours."""
    total = Outcome()
    for part in range(0, count, _SHAPES):
        draw = random.Random(f"shapes {form}/{seed}/{part}")
        world = make_shop(f"{form}/{seed}/{part}", adjacency=adjacency)
        if form == "per unit and key":  # whoever is in one group has one row there
            world = replace(world, sides=tuple(sorted(world.sides, key=lambda side: side.name[:3] != "wid")))
        optimised, salt = draw.random() < 0.4, draw.getrandbits(63)
        bench = Bench(world, optimised=optimised, salt=salt, store=None if store is None else store())
        try:
            for _ in range(min(_SHAPES, count - part)):
                asked = make_shape(draw, form)
                most = 1 if asked.auto is not None else 3 if form in _RARE else 2
                total.add(_one(bench, draw, asked, most=most) if about in asked.text else Outcome(asked=1))
                if stop and total.broken:
                    return total
        finally:
            bench.close()
    return total


def _one(bench: Bench, draw: random.Random, asked: Asked, *, most: int = 3) -> Outcome:
    sides = list(bench.world.sides)
    if most == 3:
        neighbours = sides[:2] + draw.sample(sides[2:], draw.randint(0, 1))
    else:
        neighbours = draw.sample(sides[:2], 1) + draw.sample(sides[2:], most - 1)
    outcome = Outcome(asked=1)
    try:
        report, questions = _questions(asked, bench.world.tables)
        if bench.dialect is not DUCKDB:  # what it has no form for is refused before anything is paid
            bench.vault.check(questions)
    except QueryRefused:
        return outcome
    except Exception as error:
        outcome.broken.append(f"{error!r} for {asked.text}")
        return outcome
    outcome.accepted = 1
    outcome.texts.append(asked.text)
    _survey(report, questions, outcome)
    if asked.hopeless:
        outcome.broken.append(f"accepted: {asked.text}")
    reached = 0.0
    for measured in questions:
        try:
            wanted = _readable(measured, bench.groups, draw)
            whole = measured if wanted is not measured and draw.random() < 0.3 else None
            few = draw.choice((0.0, 0.1, 0.3, 0.6, 1.0)) if measured.is_open and measured.levels else 1.0
            part, broken = bench.check(wanted, neighbours, read=whole, few=few)
        except Exception as error:
            part, broken = 0.0, [repr(error)]
        reached = max(reached, part)
        unit = measured.unit
        outcome.broken += [f"{each}; {unit!r}; {measured.bounding}; {asked.text}" for each in broken]
    outcome.reached = int(reached >= 0.5)
    return outcome


def _questions(asked: Asked, tables: Mapping[str, Any]) -> tuple[Report, tuple[Measured, ...]]:
    """The plan of a text, and all that is read for it; with `auto` also for bounds that are bought first."""
    report = ask(asked.text, tables, asked.parameters).report
    rows = rows_of(report.child.source, tables)
    sizes: list[Measured] = []
    if asked.auto:
        calls = unbounded(report, rows)
        sizes = [sizes_of(each.argument, rows) for each in calls if each.argument is not None]
        report = bounded(report, dict.fromkeys(calls, asked.auto))
    if asked.bounding is not None:
        report = replace(report, child=replace(report.child, bounding=boundings()[asked.bounding]))
    return report, (*dict.fromkeys(sizes), *recipe(report, rows).questions)


def _readable(measured: Measured, groups: list[tuple[Any, ...]], draw: random.Random) -> Measured:
    """The question as it is read: extra ones about groups that were found are about some of them."""
    if not measured.is_open or all(each.kind not in ("cells", "values") for each in measured.measurements):
        return measured
    return _closed(measured, tuple(sorted(draw.sample(groups, min(len(groups), 8)), key=repr)))


def _survey(report: Report, questions: Sequence[Measured], outcome: Outcome) -> None:
    """Count each kind of node once a query, so that figures are of queries."""
    found = list(_parts(report))
    found += [f"measures {part.kind}" for each in questions for part in each.measurements]
    found += [word for each in questions for word in _manner(each)]
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
        if isinstance(node, Joined):
            yield "with a public table" if node.is_public else "with private rows"
            yield from ["outer"] if node.outer else []
        if isinstance(node, AggregateCall) and node.bounds is not None:
            yield f"bounds per {node.bounds[0]}"
        if isinstance(node, Block | Where):
            yield "Block or condition"


def _manner(measured: Measured) -> Iterator[str]:
    """How a question is read."""
    unit = measured.unit
    yield f"bounded by {measured.bounding}"
    yield from ["open"] if measured.is_open else []
    yield from ["levels"] if measured.levels else []
    yield from ["open levels"] if measured.levels and measured.is_open else []
    yield from ["rows as units"] if unit.column is None else []
    yield from ["owners elsewhere"] if unit.is_via else []


def _nodes(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        for each in node:
            yield from _nodes(each)
    elif is_dataclass(node):
        yield node
        if not isinstance(node, Column | Literal):
            for each in fields(node):
                yield from _nodes(getattr(node, each.name))
