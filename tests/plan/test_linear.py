"""Linear forms: one walk over expressions, in fractions before the data are read and in arrays afterwards."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from sfumato.plan.answers.boxes import Affine
from sfumato.plan.expressions.linear import linear_form
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, call, literal
from sfumato.plan.prices.columns import _leaf

NAMES = ("a0", "a1", "a2")


def tree(draw: random.Random, depth: int) -> Expression:
    """A random expression of numbers."""
    if depth == 0 or draw.random() < 0.2:
        return draw.choice((Column(draw.choice(NAMES)), literal(draw.choice((-3, 0, 2, 0.5)))))
    name = draw.choice(("add", "subtract", "multiply", "divide", "negate", "to_float", "abs"))
    many = 1 if name in ("negate", "to_float", "abs") else 2
    return Call(name, tuple(tree(draw, depth - 1) for _ in range(many)))


def value(expression: Expression, at: dict[str, Fraction]) -> Fraction | None:
    """What it is worth, by itself; None where it divides by 0."""
    if isinstance(expression, Column):
        return at[expression.name]
    if isinstance(expression, Literal):
        return Fraction(expression.value)
    parts = [value(each, at) for each in expression.arguments]
    if None in parts or (expression.function == "divide" and not parts[1]):
        return None
    rules = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
        "negate": lambda a: -a,
        "to_float": lambda a: a,
        "abs": abs,
    }
    return rules[expression.function](*parts)


def in_arrays(part: Column | Literal) -> Affine:
    """The same leaves as rows of two, over three measurements."""
    if isinstance(part, Literal):
        return Affine(np.array([float(part.value)]), np.zeros((3, 1)))
    form = np.zeros((3, 1))
    form[NAMES.index(part.name)] = 1.0
    return Affine(np.zeros(2), form)


def test_a_form_is_the_expression() -> None:
    draw, linear = random.Random("forms"), 0
    for _ in range(1500):
        expression = tree(draw, draw.randint(1, 4))
        exact, arrays = linear_form(expression, _leaf), linear_form(expression, in_arrays)
        if exact is None:
            continue
        linear += 1
        assert arrays is not None
        at = {name: Fraction(draw.randint(-50, 50), 7) for name in NAMES}
        total = exact.constant + sum(factor * at[f"a{i}"] for i, factor in exact.factors.items())
        assert total == value(expression, at), expression
        factors = [float(exact.factors.get(i, 0)) for i in range(3)]
        np.testing.assert_allclose(arrays.form[:, 0], factors, rtol=1e-12)
        np.testing.assert_allclose(arrays.constant, float(exact.constant), rtol=1e-12, atol=1e-12)
    assert linear > 500


@pytest.mark.parametrize(
    "expression",
    [
        call("multiply", Column("a0"), Column("a1")),
        call("divide", Column("a0"), literal(0)),
        call("divide", literal(1), Column("a0")),
        call("abs", Column("a0")),
        call("add", Column("a0"), Column("k0")),
        call("add", Column("a0"), literal("x")),
        call("add", Column("a0"), literal(True)),
    ],
)
def test_what_is_no_form_of_the_aggregates(expression: Expression) -> None:
    assert linear_form(expression, _leaf) is None
