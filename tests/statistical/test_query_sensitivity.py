"""No unit moves what is read for a query by more than is claimed, whatever the query and the rows.

Random SQL over random tables that break every promise, each asked of the table and of neighbours in which one
unit is removed or exchanged. The test holds itself to what it covers, and planted bugs must turn it red.
"""

from __future__ import annotations

import functools
import random

import pytest

from neighbours import Bench, Outcome, examine
from query_mutants import MUTANTS
from random_queries import make_query
from random_tables import make_world
from sfumato.errors import QueryRefused
from sfumato.ledger import Budget
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.prices.recipe import recipe
from sfumato.plan.questions.aggregates import statistics
from sfumato.schema import PrivateTable
from sfumato.session import Session
from sfumato.testing.queries import exact_units

CHUNKS, ALL_CHUNKS, SIZE = (0, 2, 4, 7), range(20), 100  # in `make test`, and with `make stats`
LONG_CHUNKS, LONG_SIZE = 200, 500
EARLY = {  # questions that meet a planted bug soon
    "clamp one unit too wide": "mutants 2",
    "rows without a unit kept": "mutants 1",
    "groups of a unit not limited": "mutants 4",
    "no upper clamp": "mutants 1",
    "no lower clamp": "mutants 1",
    "declared bounds trusted": "mutants 1",
    "products in 64 bits": "mutants 13",
    "claim from the upper bound alone": "mutants 1",
    "exchange of two signs claimed as of one": "mutants 4",
}
EXTRA = {"cells", "values"}  # asked of groups that were selected
REWRITTEN = {"trunc_day"}  # a plan has another function in its place: `times.as_dates_and_times`
NODES = {
    *("Scan", "Where", "Aggregate", "Key", "AggregateCall", "Report", "Output", "OrderItem"),
    *("Call", "Column", "Literal", "having", "limit", "offset"),
    *("measures rows", "measures present", "measures sum", "measures units"),
}

# Kept on one worker, so that what the chunks found is still there when the whole is looked at.


@functools.cache
def chunk(number: int) -> Outcome:
    return examine(f"short {number}", SIZE)


@pytest.mark.parametrize(
    "number",
    [each if each in CHUNKS else pytest.param(each, marks=pytest.mark.stats) for each in ALL_CHUNKS],
)
def test_no_unit_moves_an_answer_by_more_than_claimed(number):
    assert chunk(number).broken == []


@pytest.mark.slow  # of the chunks that the others have asked
@pytest.mark.parametrize(
    ("chunks", "often", "some"),
    [(CHUNKS, 12, 4), pytest.param(ALL_CHUNKS, 50, 20, marks=pytest.mark.stats)],
)
def test_the_queries_cover_what_there_is(chunks, often, some):
    total = Outcome()
    for number in chunks:
        total.add(chunk(number))
    assert total.asked == len(chunks) * SIZE
    assert total.accepted >= 0.6 * total.asked
    assert total.reached >= 0.3 * total.accepted
    assert {name: total.nodes[name] for name in NODES if total.nodes[name] < often} == {}
    sums = [name for name, each in statistics().items() if each.arity == 1 and not each.external]
    assert {name: total.aggregates[name] for name in sums if total.aggregates[name] < often} == {}
    left = FUNCTIONS.keys() - REWRITTEN
    assert {name: total.functions[name] for name in left if total.functions[name] < some} == {}
    assert total.asked - total.accepted >= 0.1 * total.asked  # refusals are tried as well


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_turns_it_red(name):
    mutant = MUTANTS[name]
    with mutant.planted():
        outcome = examine(
            EARLY.get(name, "mutants"),
            8 * SIZE,
            plain=True,
            stop=True,
            adjacency=mutant.adjacency,
            about=mutant.about,
        )
    assert outcome.broken, f"{name} was not caught in {outcome.accepted} accepted queries"
    assert mutant.by in outcome.broken[0], outcome.broken[0]


@pytest.mark.parametrize(
    "number", [0, 1, *(pytest.param(each, marks=pytest.mark.stats) for each in (2, 3, 4))]
)
def test_a_session_reads_the_same_integers_and_finishes_every_answer(number):
    """The whole path on the real engine: same rows, same integers, and no failure after the noise either."""
    world = make_world(f"path {number}")
    unit, schema = world.tables["people"].unit, world.tables["people"].schema
    table = PrivateTable("people", source=world.base["people"], unit=unit, schema=schema)
    draw, answered = random.Random(f"path {number}"), 0
    with Session(table, budget=Budget(epsilon=1000, delta=1e-3)) as session:
        bench = Bench(world, salt=session.vault._salts.get("people", 0))
        for _ in range(20):
            try:
                query = session.sql(make_query(draw, table, plain=True).text)
                questions = recipe(query.report, table).questions  # refused where bounds are lacking
            except QueryRefused:
                continue
            for measured in questions:
                if not (measured.is_open and {each.kind for each in measured.measurements} & EXTRA):
                    assert exact_units(session.vault, measured) == exact_units(bench.vault, measured)
            release = query.release(epsilon=1)
            assert release.interval(0.9).num_rows == release.table.num_rows, query.text
            answered += 1
        bench.close()
    assert answered >= 12


@pytest.mark.stats
@pytest.mark.parametrize("number", range(LONG_CHUNKS))
def test_no_unit_moves_an_answer_by_more_than_claimed_in_a_long_run(number):
    outcome = examine(f"long {number}", LONG_SIZE)
    assert outcome.broken == []
    assert outcome.accepted >= 0.6 * outcome.asked
    assert outcome.reached >= 0.3 * outcome.accepted
