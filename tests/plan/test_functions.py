"""Every function against a real DuckDB: no row makes it raise, and its results keep the facts."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sfumato.engines.dialect import DUCKDB
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, facts_of, resolve
from sfumato.plan.expressions.functions import FUNCTIONS, evaluate
from sfumato.plan.expressions.ranges import number, value_at
from sfumato.plan.expressions.tree import Call, Column, Expression, call, literal
from sfumato.sql.write import expressions as written
from sfumato.testing.calls import BY_KIND, CALLS, FACTS, accepted, check, inside, nasty

lower_expression = functools.partial(written.lower_expression, dialect=DUCKDB)


@pytest.fixture(scope="module")
def engine():
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, table in (("nasty", nasty()), ("inside", inside())):
        connection.register("given", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")
    yield connection
    connection.close()


def lowered(expressions) -> str:
    return ", ".join(f"{lower_expression(each).sql('duckdb')} AS c{i}" for i, each in enumerate(expressions))


def run(engine, expressions, table: str) -> pa.Table:
    return engine.sql(f"SELECT {lowered(expressions)} FROM {table}").to_arrow_table()


@functools.cache
def forty(name: str) -> tuple[list[tuple[Expression, Facts]], str]:
    """Calls of a function with what they are in SQL: made once, asked about rows of both kinds."""
    found = accepted(name, 40)
    return found, lowered([each for each, _ in found])


def test_every_function_is_exercised():
    assert set(CALLS) == set(FUNCTIONS)
    assert all(each.doc.endswith(".") for each in FUNCTIONS.values())


@pytest.mark.parametrize("name", sorted(CALLS))
def test_no_row_makes_the_engine_raise(engine, name):
    found, columns = forty(name)
    assert engine.sql(f"SELECT {columns} FROM nasty").to_arrow_table().num_rows == 200
    conditions = [each for each, facts in found if facts.kind == "boolean"]
    for each in conditions[:5]:
        engine.execute(f"SELECT count(*) FROM nasty WHERE {lower_expression(each).sql('duckdb')}").fetchall()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_results_lie_within_the_facts(engine, name):
    found, columns = forty(name)
    table = engine.sql(f"SELECT {columns} FROM inside").to_arrow_table()
    for i, (expression, facts) in enumerate(found):
        check(table[f"c{i}"], facts, expression)


@pytest.mark.stats
@pytest.mark.parametrize("seed", range(14, 16))
def test_more_of_the_same(engine, seed):
    for name in CALLS:
        found = accepted(name, 60, seed)
        run(engine, [each for each, _ in found], "nasty")
        table = run(engine, [each for each, _ in found], "inside")
        for i, (expression, facts) in enumerate(found):
            check(table[f"c{i}"], facts, expression)


LETTERS = ("a", "A", "x", "X", "!", "%", "_", "\\", "é", "É", "K", "k", "'", "İ", "ß")


def patterns(name: str, seed: int, count: int) -> list[tuple[Expression, Facts]]:
    """Random patterns that are accepted, most with an escape character that occurs in them."""
    draw, found = random.Random(seed), []
    while len(found) < count:
        pattern = "".join(draw.choices(LETTERS, k=draw.randint(0, 5)))
        marks = [literal(draw.choice(LETTERS))] if draw.random() < 0.8 else []
        try:
            expression = call(name, Column("t"), literal(pattern), *marks)
            found.append((expression, facts_of(expression, FACTS)))
        except QueryRefused:
            continue
    return found


@pytest.fixture(scope="module")
def short_texts(engine):
    """All texts of up to two of these characters, and longer ones."""
    draw = random.Random(5)
    texts = ["", *LETTERS, *(a + b for a in LETTERS for b in LETTERS)]
    texts += ["".join(draw.choices(LETTERS, k=draw.randint(3, 7))) for _ in range(300)]
    engine.register("given", pa.table({"t": texts}))
    engine.execute("CREATE TABLE short AS SELECT * FROM given")
    engine.unregister("given")
    return texts


@pytest.mark.parametrize("name", ["like", "ilike"])
@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.stats)])
def test_no_pattern_makes_the_engine_raise(engine, short_texts, name, count):
    found = [each for each, _ in patterns(name, 1, count)]
    table = run(engine, found, "short")
    for i, expression in enumerate(found):
        ours = evaluate(expression, {"t": np.array(short_texts, dtype=object)})
        assert resolve(resolve(expression, FACTS), FACTS) == resolve(expression, FACTS)
        pairs = zip(ours.tolist(), table[f"c{i}"].to_pylist(), strict=True)
        differ = [text for text, (mine, theirs) in zip(short_texts, pairs, strict=True) if mine != theirs]
        pattern = expression.arguments[1].value
        assert not [text for text in differ if name == "like" or (text + pattern).isascii()], expression


@pytest.mark.parametrize("name", ["like", "ilike"])
def test_a_pattern_with_many_wildcards_is_tried_without_going_back(name):
    """Else each further % would multiply the time: this one would never end."""
    text = Column("t")
    found = evaluate(
        call("or", call(name, text, literal("%a" * 8 + "%b")), call(name, text, literal("%_a" * 8 + "%c"))),
        {"t": np.array(["a" * 5000, "a" * 5000 + "b", "ba" * 2000 + "c", "c"], dtype=object)},
    )
    assert found.tolist() == [False, True, True, False]


@pytest.mark.parametrize("name", ["like", "ilike"])
@pytest.mark.parametrize(("pattern", "mark"), [("bobX", "x"), ("bobx", "X"), ("bobX%", "x"), ("BOBÉ", "é")])
def test_an_escape_character_in_the_other_case_is_none(engine, name, pattern, mark):
    expression = call(name, Column("t"), literal(pattern), literal(mark))
    assert resolve(expression, FACTS) == call(name, Column("t"), literal(pattern))
    shown = lower_expression(expression).sql("duckdb")
    assert "ESCAPE" not in shown
    engine.sql(f"SELECT {shown} FROM (VALUES ('alice'), ('bobby'), ('bob'), ('bobx')) AS r(t)").fetchall()


@pytest.mark.parametrize("name", ["like", "ilike"])
@pytest.mark.parametrize(("pattern", "mark"), [("bobx", "x"), ("!", "!"), ("a!!!", "!"), ("é", "é")])
def test_a_pattern_that_ends_with_its_escape_character_is_refused(name, pattern, mark):
    with pytest.raises(QueryRefused, match="Double it"):
        resolve(call(name, Column("t"), literal(pattern), literal(mark)), FACTS)


@pytest.mark.parametrize("mark", ["x", "é", "\\", "#"])
def test_the_engines_escape_character_is_ours(mark):
    expression = call("ilike", Column("t"), literal(f"A!{mark}%b%"), literal(mark))
    assert resolve(expression, FACTS).arguments[1:] == (literal("A!!!%b%"), literal("!"))
    assert lower_expression(expression).sql("duckdb").endswith("'A!!!%b%' ESCAPE '!'")


@pytest.mark.parametrize("mark", [1, True, None, datetime.date(2020, 1, 1), "", "ab", 2.5])
def test_an_escape_that_is_no_character_is_refused(mark):
    with pytest.raises(QueryRefused, match="ESCAPE"):
        resolve(call("like", Column("t"), literal("a%"), literal(mark)), FACTS)


def spells_a_fraction(expression: Expression) -> bool:
    """Whether a float is written as text: over results, whole numbers are written without a point."""
    if not isinstance(expression, Call):
        return False
    if (
        expression.function in ("to_text", "float_to_text")
        and facts_of(expression.arguments[0], FACTS).kind == "float"
    ):
        return True
    return any(spells_a_fraction(each) for each in expression.arguments)


@functools.cache
def arrays_inside() -> dict[str, np.ndarray]:
    return arrays(inside())


def arrays(table: pa.Table) -> dict[str, np.ndarray]:
    columns = {}
    for name in table.column_names:
        values = table[name].to_pylist()
        if FACTS[name].kind in ("timestamp", "time"):
            values = [None if each is None else value_at(each, FACTS[name].kind) for each in values]
        columns[name] = np.array(values, dtype=object)
    return columns


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"float_to_text"}))
@pytest.mark.parametrize("count", [15, pytest.param(60, marks=pytest.mark.stats)])
def test_compute_agrees_with_the_engine(engine, name, count):
    columns = arrays_inside()
    found = [each for each in accepted(name, count, seed=1) if not spells_a_fraction(each[0])]
    assert found
    table = run(engine, [each for each, _ in found], "inside")
    for i, (expression, facts) in enumerate(found):
        ours = evaluate(expression, columns)
        theirs = table[f"c{i}"]
        if facts.kind == "date" and not pa.types.is_null(theirs.type):
            theirs = theirs.cast(pa.int32())
            ours = np.ma.MaskedArray(ours.data.astype("datetime64[D]").astype(np.int64), mask=ours.mask)
        if facts.kind in ("timestamp", "time"):
            ours = np.ma.MaskedArray(ours.data.astype(np.int64), mask=ours.mask)
        masks = np.ma.getmaskarray(ours)
        for value, mask, other in zip(ours.data, masks, theirs.to_pylist(), strict=True):
            context = (expression, value, other)
            if other is None or (isinstance(other, float) and math.isnan(other)):
                assert mask, context
            elif isinstance(other, float | int) and not isinstance(other, bool):
                assert not mask, context
                assert value == other or math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-9), context
            else:
                assert not mask, context
                assert value == other, context


def told_apart(engine, expressions) -> list[Expression]:
    """Those whose results differ where arguments do in the sign of a zero or of NaN alone."""
    engine.execute("CREATE TABLE IF NOT EXISTS signed AS SELECT * FROM nasty")
    floats = ", ".join(
        f"CASE WHEN {name} = 0 OR isnan({name}) THEN -{name} ELSE {name} END AS {name}"
        for name in BY_KIND["float"]
    )
    other = f"(SELECT * REPLACE ({floats}) FROM signed)"
    texts = [lower_expression(each).sql("duckdb") for each in expressions]
    shown = ", ".join(f"({text}) AS c{i}" for i, text in enumerate(texts))
    same = ", ".join(f"bool_and(a.c{i} IS NOT DISTINCT FROM b.c{i})" for i in range(len(texts)))
    query = (
        f"SELECT {same} FROM (SELECT {shown} FROM signed) a POSITIONAL JOIN (SELECT {shown} FROM {other}) b"
    )
    (found,) = engine.execute(query).fetchall()
    return [each for each, alike in zip(expressions, found, strict=True) if not alike]


@pytest.mark.parametrize("name", sorted(CALLS))
def test_equal_arguments_give_equal_results(engine, name):
    assert told_apart(engine, [each for each, _ in accepted(name, 12, seed=3)]) == []


@pytest.mark.parametrize(
    ("name", "sql", "arguments"),
    [
        ("float_to_text", "CAST({0} AS TEXT)", (Column("z"),)),
        ("power", "POWER({0}, {1})", (Column("z"), literal(-1))),
    ],
)
def test_a_planted_function_that_sees_the_sign_of_zero_is_noticed(engine, monkeypatch, name, sql, arguments):
    expression = Call(name, arguments)
    assert told_apart(engine, [expression]) == []
    monkeypatch.setitem(FUNCTIONS, name, dataclasses.replace(FUNCTIONS[name], sql=sql))
    assert told_apart(engine, [expression]) == [expression]


def test_a_planted_wrong_interval_is_noticed(engine, monkeypatch):
    honest = FUNCTIONS["multiply"]

    def corners(first: Facts, second: Facts) -> Facts:  # forgets that two negatives make a positive
        exact = honest.rule(first, second)
        return number(exact.kind, first.low * second.low, first.high * second.high, nullable=exact.nullable)

    monkeypatch.setitem(FUNCTIONS, "multiply", dataclasses.replace(honest, rule=corners))
    expression = call("multiply", Column("i"), Column("x"))
    values = run(engine, [expression], "inside")["c0"]
    with pytest.raises(AssertionError):
        check(values, facts_of(expression, FACTS), expression)
    monkeypatch.undo()
    again = call("multiply", Column("i"), Column("x"))  # what was worked out before stays with its expression
    check(values, facts_of(again, FACTS), again)


@pytest.mark.parametrize(
    ("name", "sql", "arguments"),
    [
        ("add", "{0} + {1}", (Column("big"), Column("big"))),
        ("add_days", "{0} + CAST({1} AS INTEGER)", (Column("w"), literal(1))),
        ("to_integer", "CAST({0} AS BIGINT)", (Column("z"),)),
        ("trunc_month", "CAST(DATE_TRUNC('month', {0}) AS DATE)", (Column("w"),)),
    ],
)
def test_a_planted_partial_template_is_noticed(engine, monkeypatch, name, sql, arguments):
    monkeypatch.setitem(FUNCTIONS, name, dataclasses.replace(FUNCTIONS[name], sql=sql, guards=()))
    with pytest.raises(duckdb.Error):
        run(engine, [Call(name, arguments)], "nasty")


def test_rounding_a_large_whole_number_need_not_give_one(engine):
    expression = call("round", call("round", Column("z")), literal(15))
    assert facts_of(expression, FACTS).kind == "float"


def test_null_is_what_the_caller_says():
    columns = {
        "masked": np.ma.MaskedArray([1, 2, 3], mask=[True, False, False]),
        "nan": np.array([1.0, np.nan, 3.0]),
        "none": np.array([None, "b", "c"], dtype=object),
        "days": np.array(["2024-01-01", "NaT", "2024-01-03"], dtype="datetime64[D]"),
    }
    for name, where in (("masked", 0), ("nan", 1), ("none", 0), ("days", 1)):
        assert list(evaluate(call("is_null", Column(name)), columns)) == [i == where for i in range(3)]
    total = evaluate(call("add", Column("masked"), Column("nan")), columns)
    assert total.tolist() == [None, None, 6.0]
    ratio = evaluate(call("divide", Column("nan"), literal(0)), columns)
    assert ratio.tolist() == [None, None, None]
    kept = evaluate(call("greater", Column("masked"), literal(2)), columns).filled(False)
    assert kept.tolist() == [False, False, True]
    later = evaluate(call("add", Column("days"), literal(1)), columns)
    assert later.tolist()[0] == datetime.date(2024, 1, 2)


def test_evaluation_refuses_instead_of_failing():
    columns = {"a": np.array([1.0]), "s": np.array(["x"], dtype=object)}
    for expression in (
        call("add", Column("a"), Column("s")),
        call("equal", Column("a"), Column("s")),
        call("median", Column("a")),
        call("year", Column("s")),
    ):
        with pytest.raises(QueryRefused):
            evaluate(expression, columns)


def test_a_dialect_without_a_template_is_refused():
    bare = dataclasses.replace(DUCKDB, name="bare", common=frozenset({"subtract"}))
    lower_expression(call("subtract", Column("i"), literal(1)), dialect=bare)
    with pytest.raises(QueryRefused, match=r"ADD has no proven form in bare"):
        lower_expression(call("add", Column("i"), literal(1)), dialect=bare)
