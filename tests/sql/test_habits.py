"""Calls of other dialects: the same question as in plainer words, or a refusal with them."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions import evaluate
from sfumato.schema import Date, Enum, Int, PrivacyUnit, PrivateTable, Text
from sfumato.sql.asking import ask

VISITS = PrivateTable(
    "visits",
    source=None,
    unit=PrivacyUnit("patient"),
    schema={
        "age": Int(0, 110),
        "city": Text(),
        "sex": Enum("F", "M"),
        "day": Date("2024-01-01", "2024-12-31"),
    },
)
PEOPLE = PrivateTable(
    "people", source=None, unit=PrivacyUnit("patient"), dataset="visits", schema={"born": Int(1900, 2024)}
)
TABLES = {"visits": VISITS, "people": PEOPLE}
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, privacy_unit_column = patient{more})"

PAIRS = [
    ("SUM(ZEROIFNULL(age))", "SUM(COALESCE(age, 0))"),
    ("SUM(NULLIFZERO(age))", "SUM(NULLIF(age, 0))"),
    ("SUM(IFF(age > 3, 1, ZEROIFNULL(age)))", "SUM(CASE WHEN age > 3 THEN 1 ELSE COALESCE(age, 0) END)"),
    ("APPROX_PERCENTILE(age, 0.9)", "QUANTILE_CONT(age, 0.9)"),
    ("PERCENTILE_APPROX(age, 0.9)", "QUANTILE_CONT(age, 0.9)"),
    ("APPROX_QUANTILES(age, 100)[OFFSET(90)]", "QUANTILE_CONT(age, 0.9)"),
    ("APPROX_QUANTILES(age, 4)[SAFE_ORDINAL(2)]", "QUANTILE_CONT(age, 0.25)"),
    ("COUNT_IF(REGEXP_LIKE(city, '^Ly'))", "COUNT_IF(city LIKE 'Ly%')"),
    ("COUNT_IF(REGEXP_MATCHES(city, 'on$'))", "COUNT_IF(city LIKE '%on')"),
    ("COUNT_IF(REGEXP_CONTAINS(city, '^(Lyon|Nice)$'))", "COUNT_IF(city IN ('Lyon', 'Nice'))"),
    ("COUNT_IF(REGEXP_MATCHES(city, '^a.*b.c.+$'))", "COUNT_IF(city LIKE 'a%b_c_%')"),
    ("COUNT_IF(REGEXP_MATCHES(city, '(?i)^100%'))", "COUNT_IF(city ILIKE '100!%%' ESCAPE '!')"),
    ("COUNT_IF(REGEXP_MATCHES(city, 'x', 'i'))", "COUNT_IF(city ILIKE '%x%')"),
    ("COUNT_IF(city IN UNNEST(['Lyon', 'Nice']))", "COUNT_IF(city IN ('Lyon', 'Nice'))"),
]


def same(one: str, other: str) -> bool:
    return ask(one, TABLES).report == ask(other, TABLES).report


def test_calls_of_other_dialects_mean_the_plain_ones():
    for foreign, plain in PAIRS:
        assert same(f"SELECT {foreign} AS n FROM visits", f"SELECT {plain} AS n FROM visits"), foreign


LISTED = "SELECT city AS g, COUNT(*) AS n FROM visits WHERE city IN ('Lyon', 'Nice') GROUP BY city"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT g, COUNT(*) AS n FROM UNNEST(['Lyon', 'Nice']) AS g LEFT JOIN visits ON g = city GROUP BY g",
        "SELECT g, COUNT(*) AS n FROM UNNEST(['Lyon', 'Nice']) AS t(g) JOIN visits ON city = g GROUP BY g",
        "SELECT g, COUNT(*) AS n FROM visits RIGHT JOIN UNNEST(['Lyon', 'Nice']) AS g ON g = city GROUP BY 1",
        "SELECT city AS g, COUNT(*) AS n FROM UNNEST(['Lyon', 'Nice']) AS city JOIN visits USING (city) "
        "GROUP BY city",
    ],
)
def test_unnest_lists_public_groups(text):
    assert same(text, LISTED)


def test_an_equality_in_each_branch_of_an_or_is_a_join():
    plain = "SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.patient = p.patient WHERE {0}"
    either = "(age > 3 AND sex = 'F') OR (born > 1950)"
    linked = "(v.patient = p.patient AND age > 3 AND sex = 'F') OR (born > 1950 AND v.patient = p.patient)"
    assert same(f"SELECT COUNT(*) AS n FROM visits v, people p WHERE {linked}", plain.format(either))
    assert same(f"SELECT COUNT(*) AS n FROM visits v JOIN people p ON {linked}", plain.format(either))
    alone = "(v.patient = p.patient) OR (v.patient = p.patient AND born > 1950)"
    assert same(f"SELECT COUNT(*) AS n FROM visits v, people p WHERE {alone}", plain.format("TRUE"))
    for text in (
        "SELECT COUNT(*) FROM visits v, people p WHERE (v.patient = p.patient AND age > 3) OR born > 1950",
        "SELECT COUNT(*) FROM visits v, people p WHERE v.patient = p.patient OR age > 3",
        "SELECT COUNT(*) FROM visits v, people p WHERE (v.patient = p.patient AND age > 3) "
        "OR (v.patient = p.patient AND sex = 'F') OR born > 1950",
    ):
        with pytest.raises(QueryRefused, match="side by side"):
            ask(text, TABLES)


REFUSED = [
    (
        "SELECT STRFTIME(day, '%Y-%m') AS m, COUNT(*) FROM visits GROUP BY 1",
        "Write DATE_TRUNC('month', day).",
    ),
    ("SELECT COUNT(*) FROM visits WHERE TO_CHAR(day, 'YYYY') = '2024'", "Write YEAR(day)."),
    ("SELECT COUNT(*) FROM visits WHERE FORMAT_DATE('%m', day) = '03'", "Write MONTH(day)."),
    ("SELECT COUNT(*) FROM visits WHERE DATE_FORMAT(day, '%c') = '3'", "DATE_TRUNC('month', day), or"),
    ("SELECT COUNT(*) FROM visits WHERE city ~ '^Ly'", "Write REGEXP_MATCHES"),
    ("SELECT APPROX_QUANTILES(age, 4) FROM visits", "QUANTILE_CONT(age, 0.5)"),
    ("SELECT APPROX_QUANTILES(age, 4)[2] FROM visits", "OFFSET(90)"),
    ("SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(city, sex)", "a constant pattern"),
    ("SELECT g, COUNT(*) FROM UNNEST(['a']) AS g GROUP BY g", "one equality"),
    ("SELECT g, COUNT(*) FROM visits LEFT JOIN UNNEST(['a']) AS g ON g = city GROUP BY g", "one equality"),
    ("SELECT COUNT(*) FROM visits WHERE city IN UNNEST([])", "list of constants"),
    (
        f"{CLAUSE.format(more=', min_privacy_units_per_group = 10')} sex, COUNT(*) FROM visits GROUP BY sex",
        "HAVING COUNT(DISTINCT patient) >= 10",
    ),
]


def test_what_has_no_form_is_refused_with_the_nearest():
    for text, words in REFUSED:
        with pytest.raises(QueryRefused) as refusal:
            ask(text, TABLES)
        assert words in str(refusal.value), str(refusal.value)


UNREAD = [
    *(r"\d", "[ab]", "a*", "a+", "a?", "a{2}", "(a|b)*", "(a", "a)", "a^", "$a", "(^a)", "(a$|b)", "*", "\\"),
    *("(?=a)", "(?P<n>a)", ".*?", ".{3}", "(a|b)(c|d)(e|f)(g|h)(i|j)(k|l)", "a|" * 40),
]


def test_patterns_of_other_kinds_are_refused():
    for pattern in UNREAD:
        with pytest.raises(QueryRefused, match="A regular expression here"):
            ask(f"SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(city, '{pattern}')", TABLES)


def _pattern(rng: random.Random, depth: int = 1) -> str:
    pieces = []
    for _ in range(rng.randint(0, 3)):
        kind = rng.randrange(6)
        if kind == 0 and depth:
            pieces.append("(" + "|".join(_pattern(rng, depth - 1) for _ in range(rng.randint(1, 2))) + ")")
        elif kind == 1:
            pieces.append(rng.choice([".", ".*", ".+"]))
        elif kind == 2:
            pieces.append("\\" + rng.choice(".%_!*(|\\"))
        else:
            pieces.append(rng.choice("aB%_!"))
    return "".join(pieces)


def test_patterns_that_are_read_fit_what_regular_expressions_fit():
    rng = random.Random(3)
    texts = ["".join(rng.choice("aB%_!.*(|\\\nb") for _ in range(rng.randint(0, 5))) for _ in range(150)]
    column = np.array(texts, dtype=object)
    fitting = 0
    for _ in range(40):
        whole = "|".join(
            rng.choice(["^", ""]) + _pattern(rng) + rng.choice(["$", ""]) for _ in range(rng.randint(1, 2))
        )
        folded = rng.random() < 0.3
        pattern = f"(?i){whole}" if folded else whole
        text = f"SELECT COUNT(*) AS n FROM visits WHERE REGEXP_MATCHES(city, '{pattern}')"
        predicate = ask(text, TABLES).report.child.predicate
        held = evaluate(predicate, {"city": column}).filled(False)
        flags = re.DOTALL | (re.IGNORECASE if folded else 0)
        expected = [re.search(whole.replace("$", r"\Z"), one, flags) is not None for one in texts]
        assert held.tolist() == expected, pattern
        fitting += sum(expected)
    assert 500 < fitting < 5_500  # the patterns tell texts apart
