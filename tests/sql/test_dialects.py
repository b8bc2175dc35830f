"""GoogleSQL's clause, contribution bounds, EXPLAIN: what is read, what is left alone, what is refused."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.sql.text.dialects import Asked, understand
from sfumato.sql.text.intervals import interval_call
from sfumato.sql.text.statement import read

FULL = """
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(
    epsilon = 1.5, DELTA = .01, privacy_unit_column = v.id, max_groups_contributed = 3,
    group_selection_strategy = LAPLACE_THRESHOLD, min_privacy_units_per_group = 5,
    group_selection_epsilon = 0.1)
  country, COUNT(*, contribution_bounds_per_group => (0, 5)) AS n,
  AVG(x, contribution_bounds_per_group => (-1.5, +1e1)) AS a,
  PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 100)) AS p
FROM visits AS v GROUP BY country
"""
OLD = """
SELECT WITH ANONYMIZATION OPTIONS(epsilon = 1, kappa = 2, k_threshold = 10)
  ANON_COUNT(*), ANON_COUNT(* CLAMPED BETWEEN 0 AND 3), ANON_SUM(x CLAMPED BETWEEN -1 AND 2),
  ANON_AVG(f(x, 1) CLAMPED BETWEEN 0 AND 1), ANON_VAR_POP(x CLAMPED BETWEEN 0 AND 4),
  ANON_STDDEV_POP("x" CLAMPED BETWEEN 0 AND 5), ANON_PERCENTILE_CONT(x, 0.5 CLAMPED BETWEEN 0 AND 6),
  ANON_QUANTILES(x, 4 CLAMPED BETWEEN 0 AND 7)
FROM t
"""


def clause(options: str) -> str:
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) country, COUNT(*) FROM t GROUP BY country"


def sql(asked: Asked) -> str:
    return asked.select.sql("duckdb", comments=False)


def bounds(tree: exp.Expr) -> dict[str, object]:
    """The bounds by the aggregate's text, in which no two of these tests' aggregates agree."""
    return {node.sql("duckdb"): node.meta["bounds"] for node in tree.walk() if "bounds" in node.meta}


def pair(per: str, lower: float, upper: float) -> tuple[str, Fraction, Fraction]:
    return per, Fraction(lower), Fraction(upper)


def test_everything_the_clause_can_say() -> None:
    asked = understand(FULL)
    assert sql(asked) == (
        "SELECT country, COUNT(*) AS n, AVG(x) AS a, QUANTILE_CONT(x, 0.5) AS p FROM visits AS v"
        " GROUP BY country"
    )
    assert (asked.epsilon, asked.delta) == (Fraction(3, 2), Fraction(1, 100))
    assert (asked.unit_table, asked.unit_column) == ("v", "id")
    assert (asked.max_groups, asked.max_rows, asked.min_units) == (3, None, 5)
    assert (asked.public_groups, asked.group_selection_epsilon) == (False, Fraction(1, 10))
    assert (asked.google, asked.explain, asked.notes) == (True, False, ())
    assert bounds(asked.select) == {
        "COUNT(*)": pair("group", 0, 5),
        "AVG(x)": pair("group", -1.5, 10),
        "QUANTILE_CONT(x, 0.5)": pair("row", 0, 100),
    }


def test_what_the_clause_leaves_open_stays_open() -> None:
    for text in (clause(""), "SELECT WITH DIFFERENTIAL_PRIVACY country, COUNT(*) FROM t GROUP BY country"):
        asked = understand(text)
        assert asked.google
        assert (asked.epsilon, asked.delta, asked.unit_column, asked.max_groups) == (None,) * 4
        assert (asked.max_rows, asked.public_groups, asked.min_units) == (None,) * 3


def test_decimals_are_exact() -> None:
    asked = understand(clause("epsilon = 0.1, delta = 1E-9"))
    assert (asked.epsilon, asked.delta) == (Fraction(1, 10), Fraction(1, 10**9))


def test_other_options() -> None:
    asked = understand(
        clause("Epsilon = 1, max_rows_contributed = 7, group_selection_strategy = public_groups")
    )
    assert (asked.max_rows, asked.public_groups) == (7, True)
    assert understand(clause('privacy_unit_column = "User Id"')).unit_column == "User Id"


def test_deprecated_spellings_are_read_with_a_note() -> None:
    asked = understand(OLD)
    assert sql(asked) == (
        'SELECT COUNT(*), COUNT(*), SUM(x), AVG(F(x, 1)), VAR_POP(x), STDDEV_POP("x"), QUANTILE_CONT(x, 0.5),'
        " APPROX_QUANTILE(x, [0, 0.25, 0.5, 0.75, 1]) FROM t"
    )
    found = [node.meta.get("bounds") for node in asked.select.expressions]
    assert found == [
        None,
        pair("group", 0, 3),
        pair("group", -1, 2),
        pair("group", 0, 1),
        *(pair("row", 0, upper) for upper in (4, 5, 6, 7)),
    ]
    assert (asked.max_groups, asked.min_units) == (2, 10)
    assert len(asked.notes) == 3 + 7
    assert asked.notes[:2] == (
        "WITH ANONYMIZATION is deprecated: write WITH DIFFERENTIAL_PRIVACY.",
        "kappa is deprecated: write max_groups_contributed.",
    )
    assert all(" is deprecated: write " in note for note in asked.notes)


def test_refusals_speak_of_the_name_that_was_typed() -> None:
    assert understand("SELECT ANON_SUM(x) FROM t").select.expressions[0].meta["typed"] == "ANON_SUM"


def test_bounds_need_no_clause() -> None:
    asked = understand("SELECT SUM(x, contribution_bounds_per_group => (0, 10)) FILTER (WHERE y) FROM t")
    assert not asked.google
    assert sql(asked) == "SELECT SUM(x) FILTER(WHERE y) FROM t"
    assert bounds(asked.select) == {"SUM(x)": pair("group", 0, 10)}


def test_copies_keep_bounds() -> None:
    asked = understand(FULL)
    assert bounds(asked.select.copy()) == bounds(asked.select)
    wrapped = exp.Paren(this=asked.select.expressions[1].this.copy()).copy()
    assert wrapped.this.meta["bounds"] == pair("group", 0, 5)


def test_a_column_may_be_called_clamped() -> None:
    asked = understand(
        "SELECT WITH ANONYMIZATION ANON_SUM(2 * clamped CLAMPED BETWEEN 0 AND 1),"
        " SUM(clamped BETWEEN 0 AND 1) FROM t"
    )
    assert sql(asked) == "SELECT SUM(2 * clamped), SUM(clamped BETWEEN 0 AND 1) FROM t"
    assert bounds(asked.select) == {"SUM(2 * clamped)": pair("group", 0, 1)}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT \"WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1)\", COUNT(*) FROM t",
        "SELECT 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 9999)' AS \"ANON_SUM(*)\" FROM t",
        "SELECT COUNT(*) /* SELECT WITH DIFFERENTIAL_PRIVACY ? $1 */ FROM t -- ANON_SUM(x) :a @b",
        "SELECT \"contribution_bounds_per_group => (0, 1)\", anon_sum, options, clamped FROM t WHERE e = '?'",
        "SELECT $$ SELECT WITH ANONYMIZATION ? $$, \"ANON_SUM\"(x), \"$1\" FROM \"EXPLAIN\"",
        "WITH anonymization AS (SELECT 1) SELECT COUNT(*) FROM anonymization",
        "SELECT 1 FROM differential_privacy WHERE x = '@name' AND y = 'EXPLAIN' AND @z > 1 AND f(a => 1)",
        "SELECT x::int, y[1:n], {'a': 1, 'b':end}, kappa, k_threshold, epsilon FROM t",
    ],
)  # fmt: skip
def test_names_texts_and_comments_are_left_alone(text: str) -> None:
    asked = understand(text)
    assert asked == Asked(select=read(text))
    assert sql(asked) == read(text).sql("duckdb", comments=False)
    assert not bounds(asked.select)


def test_the_clause_stands_in_the_outermost_select() -> None:
    inner = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) COUNT(*) FROM t"
    for text in (inner, f"({inner})", f"(({inner}))", f"WITH a AS (SELECT 1) {inner}", f"{inner};"):
        assert understand(text).epsilon == 1
    assert understand("FROM t SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) COUNT(*)").epsilon == 1


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT COUNT(*) FROM t",
        "explain privacy select count(*) from t;",
        "-- how much?\n/* EXPLAIN */ EXPLAIN\nPRIVACY -- ANALYZE\n SELECT COUNT(*) FROM t",
        "EXPLAIN (SELECT COUNT(*) FROM t)",
        "EXPLAIN FROM t SELECT COUNT(*)",
    ],
)
def test_explain(text: str) -> None:
    asked = understand(text)
    assert asked.explain
    assert sql(asked) == "SELECT COUNT(*) FROM t"
    assert asked.select.expressions[0].meta["typed"].lower() == "count"


def test_explain_with_everything() -> None:
    asked = understand("EXPLAIN PRIVACY " + FULL.replace("1.5, DELTA", "?, DELTA"), [2])
    assert (asked.explain, asked.google, asked.epsilon) == (True, True, 2)
    assert len(bounds(asked.select)) == 3
    assert understand("EXPLAIN SELECT COUNT(*) FROM t WHERE x = ';'").explain


def test_explain_says_where_a_text_is_wrong() -> None:
    with pytest.raises(QueryRefused, match="line 2, column 10, near 'FROM'"):
        understand("EXPLAIN SELECT COUNT(*\n         FROM t")
    with pytest.raises(QueryRefused, match="line 1, column 24, near 'FROM'"):
        understand("EXPLAIN SELECT COUNT(* FROM t")


def wrong() -> list[tuple[str, str]]:
    lines = (Path(__file__).parent / "fixtures" / "dialects.sql").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.strip() and not line.startswith("--")]
    return [
        (text, found.removeprefix("refused: ")) for text, found in zip(kept[::2], kept[1::2], strict=True)
    ]


@pytest.mark.parametrize(("text", "sentence"), wrong(), ids=lambda text: str(text)[-60:])
def test_wrong_texts_are_refused_with_help(text: str, sentence: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        understand(text)
    assert sentence in str(refusal.value)
    assert refusal.value.fix
    assert len(str(refusal.value)) < 300
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("DP_INTERVAL_LOW(n)", ("low", "n", Fraction(95, 100))),
        ('dp_interval_high("My Sum", .9)', ("high", "My Sum", Fraction(9, 10))),
        ("Dp_Interval_High((n), (0.5))", ("high", "n", Fraction(1, 2))),
        ("ABS(n)", None),
        ("other(n)", None),
    ],
)
def test_interval_calls(call: str, expected: object) -> None:
    assert interval_call(understand(f"SELECT COUNT(*) AS n, {call} FROM t").select.expressions[1]) == expected


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("DP_INTERVAL_LOW()", "DP_INTERVAL_LOW takes the alias of an aggregate, and a level if you like."),
        ("DP_INTERVAL_LOW(n, 0.9, 1)", "DP_INTERVAL_LOW takes the alias of an aggregate, and a level"),
        ("DP_INTERVAL_LOW(COUNT(*))", "the alias of an aggregate, not the aggregate itself. Write COUNT"),
        ("DP_INTERVAL_LOW(*)", "DP_INTERVAL_LOW takes the alias of an aggregate in SELECT."),
        ("DP_INTERVAL_HIGH(t.n)", "DP_INTERVAL_HIGH takes the alias of an aggregate in SELECT."),
        ("DP_INTERVAL_HIGH('n')", "DP_INTERVAL_HIGH takes the alias of an aggregate in SELECT."),
        ("DP_INTERVAL_HIGH(n, 95)", "lies between 0 and 1. Write DP_INTERVAL_HIGH(n, 0.95)."),
        ("DP_INTERVAL_HIGH(n, 1)", "lies between 0 and 1."),
        ("DP_INTERVAL_HIGH(n, -0.5)", "The level of DP_INTERVAL_HIGH is a number."),
        ("DP_INTERVAL_HIGH(n, '0.95')", "The level of DP_INTERVAL_HIGH is a number."),
        ("DP_INTERVAL_HIGH(n, x)", "The level of DP_INTERVAL_HIGH is a number."),
    ],
)  # fmt: skip
def test_wrong_interval_calls(call: str, sentence: str) -> None:
    node = understand(f"SELECT COUNT(*) AS n, {call} FROM t").select.expressions[1]
    with pytest.raises(QueryRefused) as refusal:
        interval_call(node)
    assert sentence in str(refusal.value)
    assert refusal.value.fix


def test_plain_texts_mean_what_they_meant() -> None:
    for text in ("SELECT COUNT(*) FROM t", "SELECT a, SUM(b) FROM t WHERE c AND d AND e GROUP BY a LIMIT 3"):
        assert understand(text) == Asked(select=read(text))


# ------------------------------------------------------------------------------------------------ any text

GOOD = [
    FULL,
    OLD,
    clause("epsilon = 1, delta = 1e-6, max_rows_contributed = 3"),
    "SELECT SUM(x, contribution_bounds_per_group => (0, 1)) AS s, DP_INTERVAL_LOW(s) FROM t WHERE @x > 1",
    "EXPLAIN PRIVACY SELECT a, COUNT(*) FROM t WHERE b > 1 LIMIT 3",
    "SELECT COUNT(*) FROM t WHERE a = $n OR :n > 3",
]
SEEDS = [*GOOD * 10, *(text for text, _ in wrong()), "SELECT COUNT(*) FROM t WHERE b > ? AND c = $n LIMIT :k"]
PIECES = sorted({piece for text in SEEDS for piece in text.replace("(", " ( ").replace(")", " ) ").split()})
VALUES: list[object] = [None, [], [1], ["a", 2.5, True], {"n": 1}, {"k": 2, "n": "x"}, {"y": None}]


def outcome(text: str, values: object = None) -> str:
    try:
        asked = understand(text, values)  # type: ignore[arg-type]
    except (QueryRefused, InvalidParameter) as error:
        return str(error)
    assert isinstance(asked.select, exp.Select)
    assert not list(asked.select.find_all(exp.Placeholder, exp.Parameter))
    return "understood"


def test_scrambled_texts_are_understood_or_refused() -> None:
    draw = random.Random(5)
    outcomes = []
    for _ in range(1200):
        pieces = draw.choice(SEEDS).replace("(", " ( ").replace(")", " ) ").split()
        for _ in range(draw.randrange(1, 4)):
            place = draw.randrange(len(pieces) + 1)
            pieces[place : place + draw.randrange(3)] = draw.choice(([], [draw.choice(PIECES)]))
        outcomes.append(outcome(" ".join(pieces), draw.choice(VALUES) if draw.random() < 0.3 else None))
    assert outcomes.count("understood") > 40
    assert len(set(outcomes)) > 80


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join), st.sampled_from(VALUES))
def test_pieces_in_any_order_are_understood_or_refused(text: str, values: object) -> None:
    assert outcome(f"SELECT WITH {text}", values)
    assert outcome(f"EXPLAIN SELECT COUNT( {text}", values)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused(text: str) -> None:
    assert outcome(text)
    assert outcome(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({text}) COUNT(*) FROM t")
    assert outcome(f"SELECT SUM(x, contribution_bounds_per_group => ({text})) FROM t", [1])


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.permutations(FULL.replace("(", " ( ").replace(")", " ) ").split()))
def test_shuffled_texts_are_understood_or_refused(pieces: list[str]) -> None:
    assert outcome(" ".join(pieces))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(" * 3000,
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(" + "epsilon = 1," * 9000,
        "SELECT " + "SUM(x, contribution_bounds_per_group => (0, 1)) + " * 3000 + "?",
        "SELECT " + "ANON_SUM(" * 3000,
        "SELECT WITH " * 3000,
        "EXPLAIN " * 3000,
        "EXPLAIN SELECT WHERE " + "(" * 3000,
        "SELECT COUNT(*) FROM t WHERE " + "x + " * 3000 + "? > 1",
        "x" * 300_000,
    ],
    ids=lambda text: text[:30],
)
def test_monsters_are_refused(text: str) -> None:
    assert outcome(text, [1]) != "understood"


@pytest.mark.parametrize("text", ["", " ", ";", "--", "'", "\x00", "EXPLAIN ;", "SELECT WITH", None, 3])
def test_no_query_at_all(text: object) -> None:
    with pytest.raises(QueryRefused):
        understand(text)  # type: ignore[arg-type]
