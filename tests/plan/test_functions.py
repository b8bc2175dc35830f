"""Every function against a real DuckDB: no row makes it raise, and its results keep the facts."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
import random
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sfumato.engines.dialect import DUCKDB
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, column_facts, domain_of, facts_of, resolve
from sfumato.plan.expressions.functions import FUNCTIONS, evaluate
from sfumato.plan.expressions.ranges import number
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, call, literal
from sfumato.schema import Bool, Date, Enum, Float, Int, Text
from sfumato.sql.write import expressions as written

lower_expression = functools.partial(written.lower_expression, dialect=DUCKDB)

SCHEMA = {
    "i": Int(-50, 40),
    "j": Int(0, 9, nullable=False),
    "big": Int(),
    "x": Float(-3.5, 7.25),
    "y": Float(0, 0.1, nullable=False),
    "z": Float(),
    "e": Enum("FR", "de", "Été"),
    "n": Enum(1, 2, 5),
    "t": Text(),
    "p": Bool(),
    "q": Bool(nullable=False),
    "d": Date("2019-12-30", "2021-03-01"),
    "w": Date(),
}
FACTS = {name: column_facts(kind) for name, kind in SCHEMA.items()}
TYPES = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
BY_KIND = {
    kind: [name for name, facts in FACTS.items() if facts.kind == kind]
    for kind in ("integer", "float", "text", "boolean", "date")
}

NASTY = {
    "integer": [None, 0, 1, -1, 2**63 - 1, -(2**63), 2**53, -(2**53) - 1, 7, 50_000_000],
    "float": [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, 0.5, -2.5, 1e19,
              2.0**63],
    "text": [None, "", " ", "a", "FR", "naïve", "🤦🏼‍♂️", "ß", "İ", "%_\\", "'", "12", "-1e400", "nan",
             "2024-02-30", "infinity", "2024-02-28", "0001-01-01", "x" * 3000, "\x00", "true",
             "９", "e\u0301", "9" * 400],
    "boolean": [None, True, False],
    # the ends of the engine's dates and its infinities, as days
    "date": [None, 0, -719162, 2932896, 2147483647, -2147483647, 2147483646, -2147483646, 18321, -800000,
             2932897],
}  # fmt: skip


def nasty(rows: int = 200) -> pa.Table:
    draw = random.Random(1)
    columns = {}
    for name, facts in FACTS.items():
        values = [draw.choice(NASTY[facts.kind]) for _ in range(rows)]
        columns[name] = pa.array(values, pa.int32() if facts.kind == "date" else TYPES[facts.kind])
        if facts.kind == "date":
            columns[name] = columns[name].cast(pa.date32())
    return pa.table(columns)


def _inside(name: str, draw: random.Random) -> object:
    facts = FACTS[name]
    if facts.nullable and draw.random() < 0.15:
        return None
    if facts.values is not None:
        return draw.choice(facts.values)
    match facts.kind:
        case "integer":
            low, high = (-2000, 2000) if facts.lower is None else (int(facts.lower), int(facts.upper))
            return draw.randint(low, high)
        case "float":
            low, high = (-1e6, 1e6) if facts.lower is None else (float(facts.lower), float(facts.upper))
            return draw.choice(
                [
                    low,
                    high,
                    0.0,
                    min(max(round(draw.uniform(low, high), 1), low), high),
                    draw.uniform(low, high),
                ]
            )
        case "text":
            return draw.choice(
                [
                    "",
                    "a",
                    "Ab",
                    "  b ",
                    "12",
                    "-3.5",
                    "abcabc",
                    "zürich",
                    "2024-02-28",
                    "x%y",
                    "no",
                    "日本語",
                    "TRUE",
                ]
            )
    first, last = (int(facts.lower), int(facts.upper)) if facts.lower is not None else (-100_000, 100_000)
    return draw.choice([first, last, draw.randint(first, last)])


def inside(rows: int = 150) -> pa.Table:
    draw = random.Random(2)
    columns = {}
    for name, facts in FACTS.items():
        values = [_inside(name, draw) for _ in range(rows)]
        if facts.kind == "date":
            columns[name] = pa.array(values, pa.int32()).cast(pa.date32())
        else:
            columns[name] = pa.array(values, TYPES[facts.kind])
    return pa.table(columns)


# What each function is called with: kinds, or lists of constants.
N, S, D, P = "number", "text", "date", "boolean"
WHOLE, ANY = "integer", "any"
CALLS: dict[str, list[tuple[object, ...]]] = {
    "add": [(N, N), (D, WHOLE), (WHOLE, D)],
    "subtract": [(N, N), (D, WHOLE), (D, D)],
    "multiply": [(N, N)],
    "divide": [(N, N)],
    "int_divide": [(WHOLE, WHOLE)],
    "modulo": [(N, N), (WHOLE, WHOLE)],
    **{name: [(N,)] for name in ("negate", "abs", "sign", "floor", "ceil", "trunc")},
    **{name: [(N,)] for name in ("sqrt", "ln", "log10", "log2", "exp")},
    "round": [(N,), (N, [0, 1, 2, 15, -1, -3, -15])],
    "power": [(N, [0, 1, 2, 3, -1, -2, 0.5, 2.5, -0.5, 40]), (N, N)],
    "width_bucket": [(N, [-3, 0, 0.1], [1, 7.5, 10**6], [1, 5, 100])],
    **{name: [(ANY, ANY)] for name in ("equal", "not_equal", "less", "less_equal")},
    **{name: [(ANY, ANY)] for name in ("greater", "greater_equal")},
    "is_distinct": [(ANY, ANY)],
    "is_not_distinct": [(ANY, ANY)],
    "in": [(N, [0, 1], [5, -1], [0.5]), (S, ["a", "FR"], ["12"]), (D, [datetime.date(2020, 2, 29)])],
    "and": [(P, P), (P, P, P), (P,)],
    "or": [(P, P), (P, P, P)],
    "not": [(P,)],
    "is_null": [(N,), (S,), (D,), (P,)],
    "case": [(P, ANY, ANY), (P, ANY, P, ANY, ANY), (P, N, [None]), (P, ["a"], ["b"])],
    "coalesce": [(ANY, ANY), (N, N, [0]), (S, ["none"])],
    "nullif": [(ANY, ANY), (N, [0])],
    "greatest": [(N, N), (N, N, [3]), (D, D)],
    "least": [(N, N), (N, N, [3]), (D, D)],
    "lower": [(S,)],
    "upper": [(S,)],
    **{name: [(S,), (S, ["ab", " ", "", "é"])] for name in ("trim", "ltrim", "rtrim")},
    "length": [(S,)],
    "substring": [(S, [1, 2, 2**31 - 1]), (S, [1, 3], [0, 2, 2**31 - 1])],
    "left": [(S, [0, 1, 2**31 - 1])],
    "right": [(S, [0, 1, 2**31 - 1])],
    "append": [(S, S)],
    "concat": [(S,), (S, S), (S, S, ["-"])],
    "replace": [(S, ["ab", "a", "", "é"], ["", "b"])],
    "like": [(S, ["a%", "%b%", "_", "", "%", "x\\%", "'"]), (S, ["a!%b", "!!%"], ["!"])],
    "ilike": [(S, ["A%", "fr", "%É%"]), (S, ["A!_%"], ["!"])],
    **{name: [(S, S), (S, ["a", "", "é"])] for name in ("starts_with", "ends_with", "contains", "position")},
    **{name: [(D,)] for name in ("year", "quarter", "month", "day")},
    **{name: [(D,)] for name in ("dayofweek", "isodow", "dayofyear", "week")},
    **{name: [(D,)] for name in ("trunc_year", "trunc_quarter", "trunc_month", "trunc_week")},
    "add_days": [(D, WHOLE), (D, [0, 31, -4_000_000, 4_000_000, 5_000_000])],
    "subtract_days": [(D, WHOLE), (D, [1, 4_000_000])],
    "add_months": [(D, [0, 1, -1, 12, 13, -120_000, 120_000])],
    "days_between": [(D, D)],
    "to_integer": [(N,), (P,), (S,)],
    "to_float": [(N,), (P,), (S,)],
    "to_text": [(N,), (P,), (S,), (D,)],
    "float_to_text": [("float",)],
    "integer_to_text": [(WHOLE,)],
    "to_date": [(S,), (D,)],
    "to_boolean": [(N,), (P,), (S,)],
}  # fmt: skip
GIVES: dict[str, tuple[str, ...]] = {
    "number": (
        "add",
        "multiply",
        "divide",
        "floor",
        "round",
        "abs",
        "length",
        "year",
        "negate",
        "modulo",
        "case",
    ),
    "float": ("to_float", "divide", "sqrt", "exp"),
    "integer": ("floor", "length", "year", "sign", "int_divide", "to_integer", "dayofweek"),
    "text": ("upper", "left", "concat", "append", "trim", "to_text", "case"),
    "date": ("trunc_month", "add_days", "add_months", "to_date", "coalesce", "trunc_week"),
    "boolean": ("less", "is_null", "and", "not", "like", "to_boolean", "in"),
}
CONSTANTS: dict[str, list[object]] = {
    "number": [0, 1, -1, 2, 10, 0.5, -2.5, 0.1, 1e-3, 7, 1000],
    "float": [0.0, 0.5, -2.5, 1e300],
    "integer": [0, 1, -1, 2, 10, 7],
    "text": ["a", "", "FR", "b%", "é"],
    "date": [datetime.date(2020, 2, 29), datetime.date(1970, 1, 1), datetime.date.max, datetime.date.min],
    "boolean": [True, False],
}


def random_call(name: str, draw: random.Random, depth: int = 2) -> Expression:
    shape = draw.choice(CALLS[name])
    kind = draw.choice(["number", "text", "date", "boolean"])
    return Call(name, tuple(_argument(each, kind, draw, depth) for each in shape))


def _argument(shape: object, shared: str, draw: random.Random, depth: int) -> Expression:
    if isinstance(shape, list):
        return literal(draw.choice(shape))
    kind = shared if shape == ANY else str(shape)
    luck = draw.random()
    if depth > 1 and luck < 0.35:
        return random_call(draw.choice(GIVES[kind]), draw, depth - 1)
    if luck < 0.45:
        return literal(draw.choice(CONSTANTS[kind]))
    if luck < 0.48:
        return Literal(None, None)
    return Column(draw.choice(BY_KIND["integer"] + BY_KIND["float"] if kind == "number" else BY_KIND[kind]))


def accepted(name: str, count: int, seed: int = 0) -> list[tuple[Expression, Facts]]:
    """Random calls that the rules accept, at least a third of those tried."""
    draw, found, tried = random.Random(f"{name}{seed}"), [], 0
    while len(found) < count:
        tried += 1
        assert tried < 3 * count + 100, f"{name}: most calls are refused"
        expression = random_call(name, draw)
        try:
            found.append((resolve(expression, FACTS), facts_of(expression, FACTS)))
        except QueryRefused:
            continue
    return found


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


def run(engine, expressions, table: str) -> pa.Table:
    columns = ", ".join(
        f"{lower_expression(each).sql('duckdb')} AS c{i}" for i, each in enumerate(expressions)
    )
    return engine.sql(f"SELECT {columns} FROM {table}").to_arrow_table()


def place(value: object, kind: str) -> object:
    return value.toordinal() - datetime.date(1970, 1, 1).toordinal() if kind == "date" else value


def check(values: pa.ChunkedArray, facts: Facts, expression: Expression) -> None:
    """Assert that every value lies within the facts."""
    listed = None if facts.values is None else {place(each, facts.kind) for each in facts.values}
    domain = domain_of(facts, 5000)
    keys = None if domain is None else {place(each, facts.kind) for each in domain}
    if facts.kind == "date" and not pa.types.is_null(values.type):
        assert pa.types.is_date32(values.type), expression
        values = values.cast(pa.int32())
    for value in set(values.to_pylist()):
        if value is None:
            assert facts.nullable, (expression, "NULL")
            continue
        if isinstance(value, float) and math.isnan(value):
            continue
        context = (expression, facts, value)
        assert type(value) in {"text": (str,), "boolean": (bool,), "date": (int,)}.get(
            facts.kind, (int, float)
        ), context
        if listed is not None:
            assert value in listed, context
        if facts.kind in ("text", None):
            continue
        assert facts.low <= value <= facts.high, context
        if facts.kind == "integer":
            assert not math.isfinite(value) or value == int(value), context
        if facts.step is not None:
            assert (Fraction(value) - facts.lower) % facts.step == 0, context
            assert keys is None or value in keys, context


def test_every_function_is_exercised():
    assert set(CALLS) == set(FUNCTIONS)
    assert all(each.doc.endswith(".") for each in FUNCTIONS.values())


@pytest.mark.parametrize("name", sorted(CALLS))
def test_no_row_makes_the_engine_raise(engine, name):
    found = accepted(name, 40)
    assert run(engine, [each for each, _ in found], "nasty").num_rows == 200
    conditions = [each for each, facts in found if facts.kind == "boolean"]
    for each in conditions[:5]:
        engine.execute(f"SELECT count(*) FROM nasty WHERE {lower_expression(each).sql('duckdb')}").fetchall()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_results_lie_within_the_facts(engine, name):
    found = accepted(name, 40)
    table = run(engine, [each for each, _ in found], "inside")
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
        for text, mine, theirs in zip(short_texts, ours, table[f"c{i}"].to_pylist(), strict=True):
            pattern = expression.arguments[1].value
            if name == "like" or (text + pattern).isascii():
                assert mine == theirs, (expression, text)


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


def arrays(table: pa.Table) -> dict[str, np.ndarray]:
    columns = {}
    for name in table.column_names:
        values = table[name].to_pylist()
        columns[name] = np.array(values, dtype=object)
    return columns


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"float_to_text"}))
@pytest.mark.parametrize("count", [15, pytest.param(60, marks=pytest.mark.stats)])
def test_compute_agrees_with_the_engine(engine, name, count):
    columns = arrays(inside())
    found = [each for each in accepted(name, count, seed=1) if not spells_a_fraction(each[0])]
    assert found
    table = run(engine, [each for each, _ in found], "inside")
    for i, (expression, facts) in enumerate(found):
        ours = evaluate(expression, columns)
        theirs = table[f"c{i}"]
        if facts.kind == "date" and not pa.types.is_null(theirs.type):
            theirs = theirs.cast(pa.int32())
            ours = np.ma.MaskedArray(ours.data.astype("datetime64[D]").astype(np.int64), mask=ours.mask)
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
    check(values, facts_of(expression, FACTS), expression)


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
