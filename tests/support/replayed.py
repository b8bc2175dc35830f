"""Whole questions on neighbouring tables, replayed: what an analyst could see must not differ."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sfumato as sf
from random_queries import Asked, make_query
from random_shapes import make_shape
from random_shop import make_shop
from random_tables import Side, World, make_world
from sfumato.engines.prepare import prepare
from sfumato.errors import SfumatoError
from sfumato.testing import seeded
from sfumato.testing.replaying import record, replay

__all__ = ["Outcome", "replay_forms", "replay_queries", "seen_of", "sessions"]

_BUDGET = sf.Budget(10**9, "0.9")
_ADJACENT = ("add-remove", "exchange")


@dataclass(slots=True)
class Outcome:
    """How many questions were replayed, in how many of them noise was met, and each finding as a sentence."""

    asked: int = 0
    answered: int = 0
    meetings: int = 0
    verbs: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


@contextmanager
def sessions(
    world: World, side: Side, prepared: Sequence[str] = ()
) -> Iterator[tuple[sf.Session, sf.Session]]:
    """The same tables with the rows of a world and of a neighbour, in sessions with the same salts."""
    with ExitStack() as stack:
        made = []
        for rows in (world.base, {**world.base, **side.rows}):
            folder = Path(stack.enter_context(TemporaryDirectory()))
            tables = _filled(world, rows, {name: _prepared(world, rows, name, folder) for name in prepared})
            with seeded("sessions"):
                made.append(stack.enter_context(sf.Session(*tables, budget=_BUDGET)))
        yield made[0], made[1]


def _prepared(world: World, rows: Mapping[str, Any], name: str, folder: Path) -> str:
    """The file of a prepared table, with a salt that neighbours share."""
    path = folder / f"{name}.duckdb"
    filled = replace(world.tables[name], source=rows[name])
    prepare(filled, path, group_by=world.prepared[name], salt=b"shared")
    return str(path)


def _filled(world: World, rows: Mapping[str, Any], prepared: Mapping[str, str]) -> list[Any]:
    filled: dict[str, Any] = {name: rows[name] for name in world.tables if name not in world.prepared}
    filled |= prepared
    if "places" in filled:  # the real engine holds its key to be unique
        keys = filled["places"].column("place").to_pylist()
        filled["places"] = filled["places"].take([keys.index(key) for key in dict.fromkeys(keys)])
    return [replace(world.tables[name], source=source) for name, source in filled.items()]


def seen_of(session: sf.Session, asked: Asked, price: Mapping[str, Any]) -> Any:
    """Everything that an analyst sees of a question, and all that is kept of it or sent to the engine."""
    statements: list[str] = []
    engine = session.vault._engine
    real = engine.fetch
    engine.fetch = lambda one, **more: (statements.append(one.sql("duckdb")), real(one, **more))[1]
    try:
        query = session.sql(asked.text, asked.parameters)
        quote = query.quote(**price)
        released = query.release(**price)
        bars = [_outcome(released.error), _outcome(released.interval)]
        shown = [_outcome(lambda: released.table), str(released), repr(released), released._repr_html_()]
        kept = session.ledger.recall(released.receipt.dataset, quote.fingerprint)
        lines = [_without_time(each.to_dict()) for each in session.ledger.entries()][-3:]
        again = query.release(**price)
        return [
            str(quote),
            statements,
            shown,
            bars,
            [each[1] for each in kept],
            lines,
            again.free,
            str(again),
        ]
    finally:
        engine.fetch = real


def _outcome(call: Any) -> Any:
    try:
        return call()
    except SfumatoError as error:
        return error


def _without_time(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in ("time", "mac")}


def _replayed(
    outcome: Outcome, pair: tuple[sf.Session, sf.Session], asked: Asked, price: Any, name: str
) -> bool:
    """Whether the two sides agree; once they do not, their ledgers differ for ever."""
    left, right = pair
    tape = record(lambda: seen_of(left, asked, price))
    other = replay(lambda: seen_of(right, asked, price), tape)
    outcome.asked += 1
    outcome.answered += bool(tape.meetings)
    outcome.meetings += len(tape.meetings)
    outcome.verbs.update(each.name for each in tape.meetings)
    outcome.broken += [f"{name}: {each}; {asked.text}; {price}" for each in other.findings]
    return not other.findings


def _price(draw: random.Random, asked: Asked) -> dict[str, Any]:
    price: dict[str, Any] = {"epsilon": draw.choice(("0.5", 1, 3))}
    if asked.bounding in ("reweight", "choose"):
        price["bounding"] = asked.bounding
    if asked.auto is not None:
        price["bounds"] = "auto"
    if draw.random() < 0.15:
        price["touched"] = True
    if draw.random() < 0.3:
        price["mechanism"] = draw.choice(("laplace", "gaussian"))
    return price


def replay_queries(seed: int | str, worlds: int, queries: int) -> Outcome:
    """Random queries over random tables with odd values, each on a table and one neighbour."""
    outcome = Outcome()
    for part in range(worlds):
        draw = random.Random(f"replay {seed}/{part}")
        world = make_world(f"replay {seed}/{part}", adjacency=_ADJACENT[part % 2])
        with sessions(world, draw.choice([each for each in world.sides if each.moves])) as pair:
            for _ in range(queries):
                asked = make_query(draw, world.tables["people"], plain=True)
                if not _replayed(outcome, pair, asked, _price(draw, asked), "people"):
                    break
    return outcome


def replay_forms(forms: Sequence[str], seed: int | str, worlds: int, queries: int) -> Outcome:
    """Random questions of each form over random shops of linked tables, which the forms share."""
    outcome = Outcome()
    for part in range(worlds):
        name = f"replay {' '.join(forms)}/{seed}/{part}"
        world = make_shop(name, adjacency=_ADJACENT[part % 2])
        draws = {form: random.Random(f"replay {form}/{seed}/{part}") for form in forms}
        asked = [(form, make_shape(draw, form)) for form, draw in draws.items() for _ in range(queries)]
        prepared = [name for name in world.prepared if any(name in each.text for _, each in asked)]
        side = draws[forms[0]].choice([each for each in world.sides if each.moves])
        with sessions(world, side, prepared) as pair:
            for form, each in asked:
                if not _replayed(outcome, pair, each, _price(draws[form], each), form):
                    break
    return outcome
