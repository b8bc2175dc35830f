"""What a table prepared for a grouping serves, and how far one unit moves it."""

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.engines.dialect import DUCKDB
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.tree import Column
from sfumato.plan.prices.price import instrument
from sfumato.plan.prices.recipe import measured_of, recipe
from sfumato.plan.prices.touched import Touched
from sfumato.plan.questions.bounding import boundings
from sfumato.plan.questions.bounding.choose import Choose
from sfumato.plan.questions.bounding.grouped import Grouped
from sfumato.plan.questions.bounding.reweight import Reweight
from sfumato.plan.questions.needs import needs_of, ready
from sfumato.plan.questions.nodes import Measured, Measurement, Scan
from sfumato.plan.questions.sensitivity import Sensitivity, rows_in_group, sensitivity, step
from sfumato.plan.questions.unbounded import groups_of
from sfumato.schema import Bool, Enum, Float, PrivacyUnit, PrivateTable, Text
from sfumato.sql.asking import ask
from sfumato.sql.write.lower import lower

A = Column("a")
UNIT = PrivacyUnit("u", max_groups=2, max_rows=6)
SCHEMA = {"a": Float(-2, 3), "city": Enum("Lyon", "Nice", "Metz"), "note": Text(), "ok": Bool(nullable=False)}


def table(unit=UNIT):
    return PrivateTable("t", source=None, unit=unit, schema=SCHEMA)


def node_of(text):
    return ask(text, {"t": table()}).report.child


# ── sensitivities, by brute force over everything that the ranks leave one unit ──


def contributions(measurement, unit, groups):
    """All that one unit can add: at most k groups, at most r rows of weight 1 in each."""
    values = [None, -99, 0, 99]
    most = rows_in_group(unit)
    rows = [
        each
        for size in range(most + 1)
        for each in itertools.combinations_with_replacement(values, size)
        if size == 0 or not (measurement.kind == "sum" and set(each) == {None})
    ]
    for mine in itertools.product(rows, repeat=groups):
        if sum(map(bool, mine)) <= unit.max_groups:
            yield tuple(_added(measurement, each) for each in mine)


def _added(measurement, values):
    if measurement.kind == "rows":
        return len(values)
    if measurement.kind == "units":
        return int(bool(values))
    known = [value for value in values if value is not None]
    if measurement.kind == "present":
        return len(known)
    return sum(min(max(value, measurement.lower), measurement.upper) for value in known)


MEASUREMENTS = {
    "rows": Measurement("rows"),
    "present": Measurement("present", A),
    "positive": Measurement("sum", A, 0, 3),
    "away from zero": Measurement("sum", A, 2, 3),
    "negative": Measurement("sum", A, -3, -1),
    "both signs": Measurement("sum", A, -2, 3),
    "units": Measurement("units"),
}


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("name", MEASUREMENTS)
def test_sensitivities_are_attained_and_never_exceeded(name, groups, adjacency):
    measurement = MEASUREMENTS[name]
    for k, m in ((1, 1), (2, 2), (2, 4), (1, 3), (3, 3)):
        unit = PrivacyUnit("u", max_groups=k, max_rows=m, adjacency=adjacency)
        found = set(contributions(measurement, unit, groups))
        changes = found
        if adjacency == "exchange":
            changes = {
                tuple(x - y for x, y in zip(*pair, strict=True)) for pair in itertools.product(found, found)
            }
        l1 = max(sum(map(abs, each)) for each in changes)
        l2 = max(sum(x * x for x in each) for each in changes)
        claimed = sensitivity(measurement, unit, groups=groups, bounding=Grouped())
        assert claimed == Sensitivity(l1, l2), unit


def test_more_groups_than_are_listed_move_no_more_than_unlisted_ones():
    for adjacency in ("add-remove", "exchange"):
        unit = PrivacyUnit("u", max_groups=2, max_rows=6, adjacency=adjacency)
        some, all_ = (
            sensitivity(MEASUREMENTS["rows"], unit, groups=n, bounding=Grouped()) for n in (4, None)
        )
        assert some == all_ == (Sensitivity(6, 18) if adjacency == "add-remove" else Sensitivity(12, 36))


def test_an_integer_is_worth_what_it_says():
    for measurement in MEASUREMENTS.values():
        assert step(measurement, UNIT, bounding=Grouped()) == 1
    assert step(Measurement("sum", A, 0, 9, bits=4), UNIT, bounding=Grouped()) == Fraction(1, 16)


@pytest.mark.parametrize(
    ("measurement", "keyed"),
    [
        (Measurement("cells", A, 0, 7), True),
        (Measurement("sum", A, 0, 7, per="total"), True),
        (Measurement("sum", A, 0, 7, per="average"), True),
        (Measurement("rows"), False),
    ],
)
def test_what_ranks_of_groups_do_not_hold_has_no_claim(measurement, keyed):
    with pytest.raises(InvalidParameter, match="nothing else"):
        sensitivity(measurement, UNIT, groups=3, keyed=keyed, bounding=Grouped())


# ── which questions are served ──

GROUPED = {
    "SELECT city, COUNT(*) AS n FROM t GROUP BY city": ("city",),
    "SELECT city, AVG(a) AS n, STDDEV(a) AS s FROM t WHERE a > 1 GROUP BY city": ("city",),
    "SELECT city, COUNT(DISTINCT u) AS n FROM t GROUP BY city": ("city",),
    "SELECT city, MEDIAN(a) AS m, COUNT(*) AS n FROM t GROUP BY city": ("city",),
    "SELECT note, COUNT(*) AS n FROM t GROUP BY note": ("note",),
    "SELECT note, MEDIAN(a) AS m FROM t GROUP BY note": ("note",),
    "SELECT x.ok, x.note, SUM(a) AS n FROM t AS x GROUP BY ok, note": ("note", "ok"),
    "SELECT note, ok, SUM(a) AS n FROM t GROUP BY note, ok": ("note", "ok"),
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) city, SUM(a) AS n FROM t GROUP BY city": ("city",),
    "SELECT c, COUNT(*) AS n FROM (SELECT city AS c FROM t) AS s GROUP BY c": ("city",),
}
RANKED = {
    "SELECT city, COUNT(*) AS n FROM (SELECT note AS city FROM t) AS s GROUP BY city": ("city",),
    "SELECT city, COUNT(*) AS n FROM (SELECT UPPER(city) AS city FROM t) AS s GROUP BY city": ("city",),
    "SELECT COUNT(*) AS n FROM t": ("city",),
    "SELECT ok, COUNT(*) AS n FROM t GROUP BY ok": ("city",),
    "SELECT city, ok, COUNT(*) AS n FROM t GROUP BY city, ok": ("city",),
    "SELECT city, COUNT(*) AS n FROM t GROUP BY city": ("city", "ok"),
    "SELECT UPPER(city) AS c, COUNT(*) AS n FROM t WHERE UPPER(city) IN ('A') GROUP BY UPPER(city)": (
        "city",
    ),
    "SELECT city, MEDIAN(a) AS m FROM t GROUP BY city": ("city",),
    "SELECT city, COUNT(DISTINCT u) AS n FROM t WHERE a > 1 GROUP BY city": ("city",),
    "SELECT note, COUNT(*) AS n FROM t WHERE a > 1 GROUP BY note": ("note",),
    "SELECT city, COUNT(*) AS n FROM t GROUP BY city ": (),
}
NOT = {
    "SELECT city, ok, COUNT(*) AS n FROM t GROUP BY ROLLUP (city, ok)": ("city", "ok"),
    "SELECT city, COUNT(*) AS n FROM (SELECT u, city FROM t GROUP BY u, city) AS s GROUP BY city": ("city",),
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6) city, COUNT(*) AS n FROM t WHERE a > 1 "
    "GROUP BY city": ("city",),
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6) city, "
    "SUM(a, contribution_bounds_per_group => (0, 5)) AS n FROM t GROUP BY city": ("city",),
}
SERVED = {**dict.fromkeys(GROUPED, "grouped"), **dict.fromkeys(RANKED, "prepared"), **dict.fromkeys(NOT)}


@pytest.mark.parametrize("text", SERVED)
def test_ranks_serve_the_questions_that_they_fit(text):
    found = ready(node_of(text), (GROUPED | RANKED | NOT)[text])
    assert (None if found is None else found.name) == SERVED[text]


def test_a_way_that_was_chosen_already_stays():
    node = node_of("SELECT city, COUNT(*) AS n FROM t GROUP BY city")
    assert ready(replace(node, bounding=Reweight()), ("city",)) is None
    assert ready(replace(node, bounding=Choose()), ("city",)) == Grouped()  # GoogleSQL, without a condition


def made(text, unit=UNIT, **changes):
    report = ask(text, {"t": table(unit)}).report
    report = replace(report, child=replace(report.child, bounding=Grouped(), **changes))
    return recipe(report, table(unit))


def test_a_question_says_how_it_is_held_and_so_do_those_beside_it():
    asked = "SELECT {0}, MEDIAN(a) AS m, COUNT(DISTINCT note) AS d, COUNT(*) AS n FROM t GROUP BY {0}"
    for key, rest in (("city", "prepared"), ("note", "reweight")):
        found = made(asked.format(key))
        assert found.measured.bounding.name == "grouped"
        assert [each.measured.bounding.name for each in found.extras] == [rest, rest]
        for each in (extra.measured for extra in found.extras):
            assert instrument(each.measurements[0], each).sensitivity.l1 > 0


@pytest.mark.parametrize(
    ("text", "bounding"),
    [
        ("SELECT city, COUNT(DISTINCT u) AS n FROM t WHERE a > 1 GROUP BY city", "reweight"),
        ("SELECT note, COUNT(*) AS n FROM t WHERE a > 1 GROUP BY note", "choose"),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6) city, "
            "SUM(a, contribution_bounds_per_group => (0, 5)) AS n FROM t GROUP BY city",
            "choose",
        ),
        ("SELECT COUNT(*) AS n FROM t", "reweight"),
    ],
)
def test_what_the_ranks_cannot_hold_is_held_otherwise(text, bounding):
    assert not Grouped().serves(needs_of(node_of(text)))
    assert made(text).measured.bounding.name == bounding


def test_more_groups_than_rows_are_never_kept():
    found = made(
        "SELECT city, COUNT(*) AS n FROM t GROUP BY city", PrivacyUnit("u", max_groups=4, max_rows=2)
    )
    assert (found.measured.unit.max_groups, found.measured.unit.max_rows) == (2, 2)


def test_limits_of_the_question_are_limits_on_the_ranks():
    found = made("SELECT note, COUNT(*) AS n FROM t GROUP BY note", limits=(1, None)).measured
    assert found.unit.max_groups == 1
    text = lower(found, {"t": table()}, DUCKDB).sql("duckdb")
    assert '"sfumato group" <= 1' in text
    assert '"sfumato place" <= 3' in text


def test_it_is_another_question_than_the_same_held_otherwise():
    text = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"
    report = ask(text, {"t": table()}).report
    ways = [*boundings().values()]
    found = [measured_of(replace(report, child=replace(report.child, bounding=way)), table()) for way in ways]
    assert [each.bounding for each in found] == ways
    assert len({each.fingerprint for each in found}) == len(ways) >= 4


def test_the_number_of_groups_can_be_bought_as_where_they_are_chosen():
    report = ask("SELECT city, COUNT(*) AS n FROM t GROUP BY city", {"t": table()}).report
    grouped, chosen, ranked = (
        groups_of(replace(report, child=replace(report.child, bounding=boundings()[way])), table())
        for way in ("grouped", "choose", "prepared")
    )
    assert isinstance(grouped, Measured)
    assert grouped == chosen
    assert ranked is None


def test_who_is_touched_is_told_but_behind_a_condition():
    plain = made("SELECT city, COUNT(*) AS n FROM t GROUP BY city", touched=True)
    (extra,) = plain.extras
    assert isinstance(extra, Touched)
    assert extra.measured.bounding.name == "reweight"
    assert extra.measured.source.source.predicate is None  # ranks know of no list of keys
    assert extra.measured.source.source.source == Scan("t")
    assert made("SELECT city, COUNT(*) AS n FROM t WHERE a > 1 GROUP BY city", touched=True).extras == ()
