"""What is worked out about an expression is kept with it: never for other columns, nor as a part of it."""

from __future__ import annotations

import pickle
import random
from fractions import Fraction

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.deduce import resolve_with_facts
from sfumato.plan.expressions.narrow import refine
from sfumato.plan.expressions.normal import normal
from sfumato.plan.expressions.ranges import Facts
from sfumato.plan.expressions.size import size_of
from sfumato.plan.expressions.tree import Column, call, columns_of, from_wire, literal, names_of, to_wire

NUMBERS = ("add", "subtract", "multiply", "greatest", "least", "coalesce")
COMPARED = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def _number(draw, depth):
    if depth == 0 or draw.random() < 0.2:
        return draw.choice([Column("x"), Column("y"), literal(draw.randint(-5, 5)), literal(0.5)])
    if draw.random() < 0.3:
        return call("case", _truth(draw, depth - 1), _number(draw, depth - 1), _number(draw, depth - 1))
    return call(draw.choice(NUMBERS), _number(draw, depth - 1), _number(draw, depth - 1))


def _truth(draw, depth):
    roll = draw.random()
    if depth == 0 or roll < 0.5:
        return call(draw.choice(COMPARED), _number(draw, max(depth - 1, 0)), _number(draw, max(depth - 1, 0)))
    if roll < 0.65:
        return call("in", draw.choice([Column("x"), Column("y")]), *map(literal, draw.sample(range(9), 3)))
    if roll < 0.75:
        return call("not", _truth(draw, depth - 1))
    return call(draw.choice(["and", "or"]), *(_truth(draw, depth - 1) for _ in range(draw.randint(1, 3))))


def _columns(draw):
    def facts(kind):
        low = Fraction(draw.randint(-9, 9))
        values = draw.choice([None, (int(low), int(low) + 2)]) if kind == "integer" else None
        high = low + 2 if values else low + draw.randint(0, 9)
        return Facts(kind, draw.random() < 0.5, low, high, Fraction(1) if kind == "integer" else None, values)

    return {name: facts(draw.choice(["integer", "float"])) for name in ("x", "y")}


def _outcome(expression, columns):
    try:
        resolved, facts = resolve_with_facts(expression, columns)
        known = refine(expression, columns) if facts.kind == "boolean" else None
    except QueryRefused as refusal:
        return str(refusal)
    wires = to_wire(resolved), to_wire(normal(expression)), to_wire(normal(resolved))
    return wires, facts, known, size_of(resolved), hash(resolved)


def test_what_is_known_of_other_columns_is_not_taken_for_these():
    draw, told = random.Random(3), set()
    for _ in range(25):
        expression = _truth(draw, 3)
        for _ in range(3):  # what was worked out for columns before is still there
            columns = _columns(draw)
            outcome = _outcome(expression, columns)
            assert outcome == _outcome(from_wire(to_wire(expression)), columns)
            told.add(str(outcome[1]))
    assert len(told) > 4


def test_names_are_those_of_the_columns_in_order():
    draw = random.Random(4)
    for _ in range(40):
        expression = _truth(draw, 3)
        assert names_of(expression) == tuple(dict.fromkeys(columns_of(expression)))


def test_notes_are_no_part_of_an_expression():
    expression = call("and", call("less", Column("x"), literal(3)), call("less", Column("y"), literal(4)))
    twin = from_wire(to_wire(expression))
    resolve_with_facts(expression, _columns(random.Random(5)))
    assert expression.notes
    assert (expression, repr(expression), hash(expression)) == (twin, repr(twin), hash(twin))
    assert not pickle.loads(pickle.dumps(expression)).notes
