"""One form for what means the same: equal values before and after, and the same form from any dress."""

from __future__ import annotations

import random

import numpy as np
import pytest

from sfumato.plan.expressions.functions import evaluate
from sfumato.plan.expressions.normal import conjunction, normal
from sfumato.plan.expressions.tree import Call, Column, Expression, call, literal

X, Y, FLAG = Column("x"), Column("y"), Column("flag")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def number(draw: random.Random, depth: int) -> Expression:
    if depth == 0 or draw.random() < 0.4:
        return draw.choice((X, Y, literal(draw.randrange(4)), literal(1.5)))
    return call(
        draw.choice(("add", "multiply", "subtract", "least", "greatest")),
        number(draw, depth - 1),
        number(draw, depth - 1),
    )


def condition(draw: random.Random, depth: int) -> Expression:
    match draw.randrange(6) if depth else 0:
        case 0:
            return call(draw.choice(COMPARISONS), number(draw, 1), number(draw, 1))
        case 1:
            return call("not", condition(draw, depth - 1))
        case 2 | 3:
            parts = tuple(condition(draw, depth - 1) for _ in range(draw.randrange(1, 4)))
            return Call(draw.choice(("and", "or")), parts)
        case 4:
            return Call("in", (X, *(literal(draw.randrange(4)) for _ in range(draw.randrange(1, 4)))))
    return FLAG


def test_values_stay_the_same() -> None:
    draw = random.Random(11)
    grid = [
        (x, y, flag)
        for x in (0.0, 1.0, 2.0, np.nan)
        for y in (1.0, 3.0, np.nan)
        for flag in (True, False, None)
    ]
    columns = {
        "x": np.array([row[0] for row in grid]),
        "y": np.array([row[1] for row in grid]),
        "flag": np.array([row[2] for row in grid], dtype=object),
    }
    changed = 0
    for _ in range(400):
        expression = condition(draw, 3)
        made = normal(expression)
        assert normal(made) == made
        before, after = evaluate(expression, columns), evaluate(made, columns)
        assert np.array_equal(
            np.broadcast_to(before.filled(False), 36), np.broadcast_to(after.filled(False), 36)
        )
        changed += made != expression
    assert changed > 200


def test_order_of_conditions_does_not_matter() -> None:
    draw = random.Random(12)
    for _ in range(100):
        parts = [condition(draw, 2) for _ in range(4)]
        first = conjunction(parts)
        draw.shuffle(parts)
        nested = call("and", call("and", parts[0], parts[1]), call("and", parts[2], parts[3]))
        assert conjunction(parts) == first == conjunction([nested])


@pytest.mark.parametrize(
    ("written", "made"),
    [
        (call("greater", literal(3), X), call("less", X, literal(3))),
        (call("greater", X, Y), call("less", Y, X)),
        (call("not", call("not", FLAG)), FLAG),
        (call("not", call("less", X, literal(3))), call("greater_equal", X, literal(3))),
        (call("equal", literal(3), X), call("equal", X, literal(3))),
        (call("in", X, literal(10)), call("equal", X, literal(10))),
        (call("in", X, literal(10), literal(9), literal(10)), call("in", X, literal(9), literal(10))),
        (
            call("or", call("equal", X, literal(2)), call("in", X, literal(1))),
            call("in", X, literal(1), literal(2)),
        ),
        (call("and", FLAG, call("equal", literal(1), literal(1))), FLAG),
        (call("add", Y, X), call("add", X, Y)),
        (call("subtract", Y, X), call("subtract", Y, X)),
    ],
)
def test_forms(written: Expression, made: Expression) -> None:
    assert normal(written) == made


def test_nothing_asked_for() -> None:
    assert conjunction([literal(True)]) is None
    assert conjunction([]) is None
    assert conjunction([FLAG]) == FLAG


def test_null_is_not_equal_to_itself() -> None:
    null = literal(None)
    assert normal(call("equal", null, null)) == call("equal", null, null)
