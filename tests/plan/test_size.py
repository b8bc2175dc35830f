"""Sizes are known before anything is paid: no row needs much memory, no expression much time."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import random

import duckdb
import pytest

from sfumato.engines.dialect import DUCKDB
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import column_facts, domain_of, facts_of, resolve
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.size import check_size, check_sizes, size_of
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, call, literal
from sfumato.schema import Bool, Date, Enum, Float, Int, Text, Time, Timestamp
from sfumato.sql.write import expressions as written

lower_expression = functools.partial(written.lower_expression, dialect=DUCKDB)

SCHEMA = {
    "i": Int(-50, 40),
    "big": Int(),
    "x": Float(-3.5, 7.25),
    "z": Float(),
    "e": Enum("FR", "de", "Été"),
    "t": Text(),
    "p": Bool(),
    "d": Date("2019-12-30", "2021-03-01"),
    "w": Date(),
    "m": Timestamp("2019-12-30T20:15:00", "2020-03-01T04:00:59"),
    "v": Timestamp(),
    "c": Time(),
}
FACTS = {name: column_facts(kind) for name, kind in SCHEMA.items()}
TYPES = {"integer": "BIGINT", "float": "DOUBLE", "text": "TEXT", "boolean": "BOOLEAN", "date": "DATE",
         "timestamp": "BIGINT", "time": "BIGINT"}  # fmt: skip
LONG = 100_000


@pytest.fixture(scope="module")
def engine():
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    columns = ", ".join(f"{name} {TYPES[facts.kind]}" for name, facts in FACTS.items())
    connection.execute(f"CREATE TABLE empty({columns})")
    # ß and Ⱥ take more bytes in the other case.
    letters = "('a'), ('ß'), ('Ⱥ'), ('ⱥ'), ('🤦'), (' ')"
    connection.execute(f"CREATE TABLE long AS SELECT repeat(c, {LONG}) AS t FROM (VALUES {letters}) AS r(c)")
    yield connection
    connection.close()


TEXT, NUMBER = Column("t"), literal(2**31 - 1)
MAKERS = {
    "lower": (TEXT,),
    "upper": (TEXT,),
    "trim": (TEXT, literal("x")),
    "ltrim": (TEXT, literal("x")),
    "rtrim": (TEXT, literal("x")),
    "substring": (TEXT, literal(1), NUMBER),
    "left": (TEXT, NUMBER),
    "right": (TEXT, NUMBER),
    "append": (TEXT, TEXT),
    "concat": (TEXT,) * 16,
    "replace": (TEXT, literal("ß"), literal("ab")),
}


def test_every_function_that_makes_a_text_is_tried():
    texts = {name for name, each in FUNCTIONS.items() if _kind(name) == "text"}
    passing = {"to_text", "integer_to_text", "float_to_text"}  # of a number; a text stays what it is
    assert texts - passing == set(MAKERS)


def _kind(name: str) -> str | None:
    """The kind of its results, if the first arguments are texts or whole numbers."""
    for arguments in ([TEXT], [Column("i")], list(MAKERS.get(name, ()))):
        try:
            return facts_of(Call(name, tuple(arguments)), FACTS).kind if name not in CHOICES else None
        except QueryRefused:
            continue
    return None


CHOICES = {"coalesce", "greatest", "least", "nullif", "case"}  # give back an argument as it is


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_what_is_made_has_a_public_length(engine, name):
    expression = Call(name, MAKERS[name])
    nested = call("append", call("append", expression, expression), call("upper", expression))
    for each, most in ((expression, 16 if name == "concat" else 2), (nested, 4)):
        shown = lower_expression(each).sql("duckdb")
        found = engine.sql(
            f"SELECT max(length(v)), max(strlen(v)) FROM (SELECT {shown} AS v FROM long)"
        ).fetchall()[0]
        assert found[0] <= most * 10_000
        assert found[1] <= most * 40_000


def test_a_planted_unguarded_function_is_noticed(engine, monkeypatch):
    monkeypatch.setitem(FUNCTIONS, "append", dataclasses.replace(FUNCTIONS["append"], guards=()))
    with pytest.raises(AssertionError):
        test_what_is_made_has_a_public_length(engine, "append")


def test_short_texts_are_not_changed_by_the_cut(engine):
    shown = lower_expression(call("concat", call("left", TEXT, literal(9_999)), literal("!"))).sql("duckdb")
    assert engine.sql(f"SELECT DISTINCT length({shown}) FROM long").fetchall() == [(10_000,)]


def test_many_texts_are_refused():
    parts = TEXT
    for _ in range(5):
        parts = call("append", parts, parts)
    check_size(call("append", TEXT, TEXT))
    with pytest.raises(QueryRefused, match="texts"):
        resolve(call("append", parts, parts), FACTS)
    with pytest.raises(QueryRefused, match="parts"):
        resolve(Call("concat", (TEXT,) * 17), FACTS)
    with pytest.raises(QueryRefused, match="too large"):
        check_sizes([call("upper", TEXT)] * 200)


def test_a_shared_part_is_counted_as_often_as_it_is_written():
    grown: Expression = Column("x")
    for _ in range(200):  # 2**200 nodes in the statement, 200 here
        grown = call("add", grown, grown)
    with pytest.raises(QueryRefused):
        resolve(grown, FACTS)
    with pytest.raises(QueryRefused):
        facts_of(grown, FACTS)
    with pytest.raises(QueryRefused):
        lower_expression(grown)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_size_follows_the_templates(name):
    """Doubling an argument's use in the statement is seen in the size."""
    least = FUNCTIONS[name].arity[0]
    count = least if name != "case" else 3
    small, large = (Call(name, tuple(part for _ in range(count))) for part in (Column("t"), _deep()))
    if name in ("like", "ilike", "in"):
        small, large = (Call(name, (each.arguments[0], literal("a"))) for each in (small, large))
    written = [lower_expression(each).sql("duckdb").count('"t"') for each in (small, large)]
    assert size_of(large).nodes - size_of(small).nodes >= (written[1] - written[0]) // 2


def _deep() -> Expression:
    return call("coalesce", *(Column("t"),) * 9)


@pytest.mark.parametrize("template", ["divide", "sqrt", "ln", "power", "add_months", "nullif", "modulo"])
def test_nested_calls_are_refused_before_they_are_slow(engine, template):
    grown: Expression = Column("d") if template == "add_months" else Column("x")
    depth = 0
    while size_of(grown).nodes <= 4000:
        depth += 1
        more = () if template in ("sqrt", "ln") else (literal(2),)
        grown = call(template, grown, *more)
        if template in ("divide", "modulo"):
            grown = call(template, literal(1), grown.arguments[0])
        if size_of(grown).nodes > 4000:
            break
        resolved = resolve(grown, FACTS)
        shown = lower_expression(resolved).sql("duckdb")
        assert "NULLIF" not in shown  # a macro that repeats its argument unseen
        assert len(shown) < 80_000
    assert 5 < depth < 20
    with pytest.raises(QueryRefused, match="too large"):
        resolve(grown, FACTS)


def test_days_after_days_are_one_sum():
    day: Expression = Column("w")
    for _ in range(25):
        day = call("subtract", call("add", call("add", day, literal(1)), literal(2)), literal(1))
    assert resolve(day, FACTS) == call("subtract_days", Column("w"), literal(-50))
    assert facts_of(day, FACTS) == facts_of(call("add_days", Column("w"), literal(50)), FACTS)
    end = datetime.date.max.isoformat()
    there_and_back = call("subtract", call("add", Column("w"), literal(9)), literal(9))
    shown = lower_expression(there_and_back, columns=SCHEMA).sql("duckdb")
    found = duckdb.sql(f"SELECT {shown} FROM (SELECT DATE '{end}' AS w)").fetchall()
    assert found == [(datetime.date.max,)]
    assert facts_of(there_and_back, {"w": column_facts(Date("9999-12-01", "9999-12-31"))}).upper == (
        column_facts(Date("9999-12-01", "9999-12-31")).upper
    )


def test_deep_builders_are_refused():
    deep: Expression = Column("x")
    for _ in range(5000):
        deep = call("negate", deep)
    with pytest.raises(QueryRefused, match="deeply"):
        resolve(deep, FACTS)
    wide: Expression = call("equal", Column("i"), literal(0))
    for i in range(150):
        wide = call("or", wide, call("equal", Column("i"), literal(i)))
    assert len(resolve(wide, FACTS).arguments) == 151
    listed = Call("in", (Column("big"), *(literal(i) for i in range(10_000))))
    assert len(resolve(listed, FACTS).arguments) == 10_001


def test_keys_beyond_64_bits_are_refused_in_the_plan():
    key = call("case", Column("p"), call("floor", literal(-1e30)), literal(0))
    with pytest.raises(QueryRefused, match="64 bits"):
        domain_of(facts_of(key, FACTS))
    huge = literal(10**18)
    for _ in range(6):
        huge = call("multiply", huge, huge)
    assert facts_of(call("case", Column("p"), huge, literal(0)), FACTS).values is None


@pytest.mark.parametrize("text", ["\x00", "\ud800", "x" * 10_001])
def test_constants_without_a_form_are_refused_in_the_plan(text):
    with pytest.raises(QueryRefused, match="text constant"):
        facts_of(call("equal", Column("t"), literal(text)), FACTS)


@pytest.mark.parametrize("digits", [True, 1.0, "1", None, datetime.date(2020, 1, 1)])
def test_digits_and_months_are_whole_numbers(digits):
    for name, column in (("round", "x"), ("add_months", "d"), ("left", "t")):
        with pytest.raises(QueryRefused):
            facts_of(call(name, Column(column), literal(digits)), FACTS)


CONSTANTS = [0, 1, -1, 2, 5, 2**63 - 1, 2**70, 1.5, -0.0, 1e308, float("inf"), float("nan"), True, False,
             None, "", "a", "%a!", "!", "12", "x" * 2000, "2020-02-30", "\x00", datetime.date(2020, 2, 29),
             datetime.date.max, datetime.date.min, datetime.datetime(2020, 2, 29, 12, 30, 1),
             datetime.datetime.min, datetime.time(8, 30)]  # fmt: skip


def wild(draw: random.Random, depth: int) -> Expression:
    luck = draw.random()
    if depth and luck < 0.3:
        return wild_call(draw.choice(sorted(FUNCTIONS)), draw, depth - 1)
    if luck < 0.55:
        return literal(draw.choice(CONSTANTS))
    return Column(draw.choice(sorted(FACTS)))


def wild_call(name: str, draw: random.Random, depth: int) -> Expression:
    least, most = FUNCTIONS[name].arity
    count = draw.choice([least, least, most or least + 2, draw.randint(0, 5)])
    return Call(name, tuple(wild(draw, depth) for _ in range(count)))


def binds(engine, name: str, seed: int, count: int) -> int:
    """How many of so many calls with arguments of any kind are accepted; each of them must bind."""
    draw, accepted = random.Random(f"{name}{seed}"), 0
    for _ in range(count):
        expression = wild_call(name, draw, 1)
        try:
            resolved, facts = resolve(expression, FACTS), facts_of(expression, FACTS)
            domain_of(facts)
        except QueryRefused:
            continue
        accepted += 1
        shown = lower_expression(resolved).sql("duckdb")
        (kind,) = engine.sql(f"SELECT {shown} AS v FROM empty").types
        given = {"BIGINT": "number", "DOUBLE": "number", "INTEGER": "number", "VARCHAR": "text"}
        numbers = ("integer", "float", "timestamp", "time")  # engines hold times as seconds
        wanted = "number" if facts.kind in numbers else facts.kind
        if facts.kind is not None and not _only_nulls(resolved):
            assert given.get(str(kind), str(kind).lower()) == wanted, (expression, kind, shown)
    return accepted


def _only_nulls(expression: Expression) -> bool:
    if isinstance(expression, Literal):
        return expression.value is None
    return isinstance(expression, Call) and any(_only_nulls(each) for each in expression.arguments)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_whatever_is_accepted_binds(engine, name):
    rare = name in ("like", "ilike", "substring", "width_bucket", "replace", "ends_with", "case") or (
        name in ("add_months", "left", "right")
    )
    found = binds(engine, name, 0, 3000 if rare else 150)
    assert found > 0 or name == "width_bucket"  # whose constants rarely fit


@pytest.mark.stats
@pytest.mark.parametrize("seed", range(1, 4))
def test_more_of_whatever_binds(engine, seed):
    for name in FUNCTIONS:
        binds(engine, name, seed, 500)


def looked_at(expression: Expression) -> tuple[int, int]:
    """The parts and the depth of IN and AND over columns and constants, each part by itself."""
    if isinstance(expression, Literal):
        return 0, 0
    if isinstance(expression, Column):
        return 1, 0
    below = [looked_at(part) for part in expression.arguments]
    same = [isinstance(part, Call) and part.function == expression.function for part in expression.arguments]
    depth = max(
        deep + (0 if flat and expression.function == "and" else 1)
        for (_, deep), flat in zip(below, same, strict=True)
    )
    if expression.function == "in":
        return 2 + below[0][0] + len(below) // 128, depth
    return len(below) - 1 + sum(nodes for nodes, _ in below), depth


def test_lists_of_constants_have_the_size_of_their_parts():
    draw = random.Random(3)
    for _ in range(40):
        lists = [
            Call(
                "in",
                (Column("big"), *(literal(draw.randrange(99)) for _ in range(draw.choice([1, 40, 300])))),
            )
            for _ in range(draw.randint(2, 5))
        ]
        whole = Call("and", (Call("and", tuple(lists)), Column("p")))
        size = size_of(whole)
        assert (size.nodes, size.depth) == looked_at(whole)
    assert size_of(literal(1)).nodes == 0


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("big", lambda draw: draw.randint(-9, 9)),
        ("z", lambda draw: draw.randint(-9, 9) / 4),
        ("z", lambda draw: draw.choice([draw.randint(-9, 9), 0.5])),
        ("t", lambda draw: draw.choice("abcÉ 'xyz")),
        ("w", lambda draw: datetime.date(draw.choice([1, 999, 2024]), 1, draw.randint(1, 9))),
        ("w", lambda draw: f"2024-01-0{draw.randint(1, 9)}"),
        ("e", lambda draw: draw.choice(["FR", "de", "?"])),
        ("p", lambda draw: draw.choice([True, False])),
    ],
)
def test_a_list_of_constants_is_told_as_each_of_them_is(name, constant):
    draw = random.Random(7)
    for _ in range(20):
        values = [constant(draw) for _ in range(draw.randint(1, 12))]
        asked = Call("in", (Column(name), *map(literal, values)))
        apart = Call("or", tuple(Call("equal", (Column(name), literal(value))) for value in values))
        found, one = resolve(asked, FACTS), [resolve(part, FACTS) for part in apart.arguments]
        days = [datetime.date.fromisoformat(v) if name == "w" and isinstance(v, str) else v for v in values]
        assert [option.value for option in found.arguments[1:]] == sorted(set(days))
        assert set(found.arguments[1:]) == {part.arguments[1] for part in one}
        facts, of_or = facts_of(asked, FACTS), facts_of(apart, FACTS)
        assert (facts.kind, facts.nullable) == (of_or.kind, of_or.nullable)
        assert name in ("e", "p") or facts == of_or
