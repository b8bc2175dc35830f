"""Copies and walks of trees are what the parser's own are."""

from __future__ import annotations

import random

import pytest
from sqlglot import exp, parse_one

from random_queries import make_query
from random_tables import make_world
from sfumato.engines.trees import copied, nodes_of
from sfumato.sql.text.listed import listed_in
from sfumato.sql.text.statement import read

DRAW = random.Random(6)
TABLE = make_world("trees").tables["people"]
TEXTS = [make_query(DRAW, TABLE, plain=True).text for _ in range(12)] + [
    "SELECT DATE_TRUNC('month', day), COUNT(*) /* all */ FROM t WHERE a IN (1, 2) AND b > 1 GROUP BY 1",
    "WITH q AS (SELECT ROW_NUMBER() OVER (PARTITION BY u ORDER BY d DESC) AS n FROM t) SELECT SUM(n) FROM q",
]


def _placed(tree: exp.Expr) -> list[object]:
    """Each node with its place in its parent, and all that is noted of it."""
    return [
        (type(node), node.arg_key, node.index, node.comments, node.meta, node.parent is not None)
        for node in tree.walk()
    ]


@pytest.mark.parametrize("text", TEXTS)
def test_a_copy_is_what_the_parser_copies(text):
    tree = parse_one(text, dialect="duckdb")
    twin, its = copied(tree), tree.copy()
    assert twin == its
    assert _placed(twin) == _placed(its)
    assert not {*map(id, nodes_of(twin))} & {*map(id, nodes_of(tree))}
    assert all(child.parent is node for node in nodes_of(twin) for child in node.iter_expressions())
    assert [*map(id, nodes_of(tree))] == [id(node) for node in tree.walk()]


def test_nodes_are_put_in_the_place_of_others():
    tree = parse_one("a + f(a, b)", dialect="duckdb")
    columns = list(tree.find_all(exp.Column))
    others = {id(column): exp.Literal.number(place) for place, column in enumerate(columns)}
    twin = copied(tree, others)
    assert twin.sql("duckdb") == "0 + F(1, 2)"
    assert all(child.parent is node for node in nodes_of(twin) for child in node.iter_expressions())
    assert tree.sql("duckdb") == "a + F(a, b)"
    assert copied(columns[0], others) is others[id(columns[0])]


def test_a_copy_keeps_a_long_list():
    tree = read(f"SELECT COUNT(*) FROM t WHERE a IN ({', '.join(map(str, range(50)))})")
    (found,) = [one for node in nodes_of(copied(tree)) if (one := listed_in(node)) is not None]
    assert found.nodes == 50
