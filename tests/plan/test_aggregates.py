import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import column_facts, facts_of, refine
from sfumato.plan.expressions.functions import evaluate
from sfumato.plan.expressions.tree import Column, call, literal
from sfumato.plan.questions.aggregates import Linear, statistics, ways_of
from sfumato.plan.questions.aggregates import argument_of as bounded
from sfumato.plan.questions.aggregates._average import Average
from sfumato.plan.questions.nodes import AggregateCall, Measurement
from sfumato.plan.questions.sums import range_of
from sfumato.schema import Bool, Date, Enum, Float, Int, Text

COLUMNS = {
    name: column_facts(kind)
    for name, kind in {
        "age": Int(18, 99, nullable=False),
        "visits": Int(0, 10),
        "amount": Float(0, 200),
        "odd": Float("0.1", "0.7"),
        "sym": Float(-1, 1),
        "tiny": Float(0, "1e-9"),
        "huge": Float(0, 2**40),
        "big": Int(0, 2**40),
        "zero": Int(0, 0),
        "five": Float(5, 5),
        "open": Float(),
        "note": Text(),
        "day": Date("2020-01-01", "2020-12-31"),
        "ok": Bool(),
        "rank": Enum(1, 2, 3),
    }.items()
}


PAIRS = sorted(name for name, each in statistics().items() if each.arity == 2)


def plan(function, name, columns=COLUMNS):
    return ways_of(AggregateCall(function, name if name is None else Column(name)), columns)


# ── the value of an aggregate follows from its measurements ──


def argument_of(measurement, name, values):
    """The measured expression for each value, in exact arithmetic."""

    def value_of(expression, x):
        if expression == Column(name):
            return x
        if not hasattr(expression, "function"):
            return Fraction(expression.value)
        left, right = (value_of(each, x) for each in expression.arguments)
        return {"subtract": left - right, "multiply": left * right}[expression.function]

    return [value_of(measurement.argument, Fraction(x)) for x in values]


def measure(measurement, name, values):
    """The integer that the engine gives, in natural units."""
    if measurement.kind != "sum":
        return Fraction(len(values))
    units = (math.trunc(each * 2**measurement.bits) for each in argument_of(measurement, name, values))
    return Fraction(
        sum(min(max(each, measurement.lower), measurement.upper) for each in units), 2**measurement.bits
    )


def value_of(part, name, values):
    """The formula in the docstring of the estimator."""
    e = part.estimator
    parts = [measure(part.measurements[i], name, values) for i in e.parts]
    if isinstance(e, Linear):
        return e.constant + sum(weight * part for weight, part in zip(e.weights, parts, strict=True))
    theta = parts[0] / parts[-1]
    if isinstance(e, Average):
        return e.center + theta
    variance = parts[1] / parts[2] + e.shift - theta**2
    variance *= Fraction(parts[2], parts[2] - 1) if e.sample else 1
    return math.sqrt(variance) if e.root else variance


TRUTH = {
    "count": len,
    "sum": np.sum,
    "mean": np.mean,
    "var_pop": np.var,
    "var_samp": lambda x: np.var(x, ddof=1),
    "std_pop": np.std,
    "std_samp": lambda x: np.std(x, ddof=1),
}
COLUMN_NAMES = ["age", "visits", "amount", "odd", "sym", "tiny", "huge", "big", "rank"]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (function, name)
        for function, name in itertools.product(TRUTH, COLUMN_NAMES)
        if not (name in ("huge", "big") and function.startswith(("var", "std")))
    ],
)
def test_without_noise_every_way_gives_the_aggregate(function, name):
    facts = COLUMNS[name]
    generator = np.random.default_rng(7)
    values = generator.uniform(float(facts.lower), float(facts.upper), 40)
    if facts.whole:
        values = np.floor(values)
    scale = float(max(abs(facts.lower), abs(facts.upper))) ** (2 if function.startswith("var") else 1)
    for part in plan(function, name):
        found = value_of(part, name, values)
        assert float(found) == pytest.approx(float(TRUTH[function](values)), rel=1e-6, abs=1e-7 * scale)
        if facts.whole and function in ("count", "sum"):
            assert found == int(TRUTH[function](values))


@pytest.mark.parametrize("function", ["mean", "var_pop", "var_samp", "std_pop", "std_samp"])
@pytest.mark.parametrize("name", ["age", "odd", "sym"])
def test_the_declared_limits_of_an_aggregate_are_attained_and_not_passed(function, name):
    low, high = float(COLUMNS[name].lower), float(COLUMNS[name].upper)
    (part, *_) = plan(function, name)
    lower, upper = float(part.estimator.lower), float(part.estimator.upper)
    samples = [[low] * 3, [high] * 3, [low, high], [low, low, high], [low, high, high, high]]
    found = [TRUTH[function](np.array(each)) for each in samples]
    assert lower == pytest.approx(min(found), abs=1e-12)
    assert max(found) <= upper * (1 + 1e-12)
    assert max(found) >= upper * (1 - 1e-3)


# ── clamps and units ──


@pytest.mark.parametrize(
    ("function", "name"),
    [
        *itertools.product(("sum", "mean"), COLUMN_NAMES),
        *(("var_pop", name) for name in COLUMN_NAMES if name not in ("huge", "big")),
    ],
)
def test_clamps_hold_the_range_and_no_more(function, name):
    facts = COLUMNS[name]
    ends = [facts.lower, facts.upper, (facts.lower + facts.upper) / 2]
    if facts.whole:
        ends[2] = Fraction(math.floor(ends[2]))
    for part in plan(function, name):
        for each in part.measurements:
            if each.kind != "sum":
                continue
            units = [math.trunc(x * 2**each.bits) for x in argument_of(each, name, ends)]
            assert each.lower <= min(units)
            assert max(units) <= each.upper
            assert max(abs(x) for x in units) >= each.magnitude - 2


def test_whole_numbers_keep_whole_or_half_units():
    (sums,) = {part.measurements[0] for part in plan("sum", "age")[:1]}
    assert (sums.lower, sums.upper, sums.bits, sums.whole) == (18, 99, 0, True)
    centred = plan("mean", "age")[0].measurements[0]
    assert (centred.lower, centred.upper, centred.bits, centred.whole) == (-81, 81, 1, False)
    squares = plan("var_pop", "age")[0].measurements[1]
    assert squares.bits == 2
    assert abs(squares.lower + squares.upper) <= 1  # shifted so that both ends are as far


def test_fractions_take_about_2_to_the_30_units():
    for name in ("amount", "odd", "sym", "tiny"):
        for part in plan("mean", name):
            assert 2**28 <= part.measurements[0].magnitude <= 2**30
    assert plan("sum", "huge")[0].measurements[0].bits == 0


def test_a_filter_narrows_the_clamp():
    predicate = call(
        "and", call("greater_equal", Column("age"), literal(20)), call("less", Column("age"), literal(31))
    )
    estimator = plan("mean", "age", refine(predicate, COLUMNS))[0].estimator
    assert (estimator.center, estimator.half) == (25, 5)


def test_a_range_of_one_value_still_has_a_sensitivity():
    for name in ("zero", "five"):
        for function in ("sum", "mean", "var_samp", "std_pop"):
            for part in plan(function, name):
                assert all(each.magnitude >= 1 for each in part.measurements)
    assert plan("mean", "five")[0].estimator.lower == plan("mean", "five")[0].estimator.upper == 5


def test_truth_values_count_as_zero_and_one():
    part = plan("sum", "ok")[0]
    assert (part.measurements[0].lower, part.measurements[0].upper) == (0, 1)
    assert part.measurements[0].argument.function == "case"
    assert plan("mean", "ok")[0].estimator.center == Fraction(1, 2)


def test_counts_of_what_may_be_missing_look_at_it():
    (some,), (every,) = (plan("count", name) for name in ("note", "age"))
    assert some.measurements == (Measurement("present", Column("note")),)
    assert every.measurements == (Measurement("rows"),)
    assert plan("count", None)[0].measurements == (Measurement("rows"),)
    assert plan("count_distinct", None)[0].measurements == (Measurement("units"),)


# ── refusals ──


@pytest.mark.parametrize("function", ["sum", "mean", "var_samp", "std_pop"])
def test_without_bounds_the_refusal_says_how_to_get_some(function):
    with pytest.raises(QueryRefused, match=r"bounds for open.*LEAST\(GREATEST\(open, LOW\), HIGH\)"):
        plan(function, "open")
    clamped = call("least", call("greatest", Column("open"), literal(0)), literal(100))
    total = ways_of(AggregateCall(function, clamped), COLUMNS)[0].measurements[0]
    assert Fraction(total.upper, 2**total.bits) in (50, 100)


@pytest.mark.parametrize("name", ["note", "day"])
def test_text_and_dates_are_not_averaged(name):
    with pytest.raises(QueryRefused, match="for numbers"):
        plan("mean", name)


def test_null_is_not_averaged():
    with pytest.raises(QueryRefused, match="NULL"):
        range_of("AVG", literal(None), COLUMNS)
    with pytest.raises(QueryRefused, match="something to aggregate"):
        range_of("AVG", None, COLUMNS)


def test_squares_beyond_exact_floats_are_refused():
    with pytest.raises(QueryRefused, match=r"2\*\*53"):
        plan("var_pop", "big")


def test_unknown_columns_are_refused():
    with pytest.raises(QueryRefused, match="no column"):
        plan("sum", "amout")


@pytest.mark.parametrize(
    "argument",
    [
        call("least", call("greatest", call("log10", Column("n")), literal(-1e300)), literal(1)),
        call("multiply", literal(1e308), literal(1)),
        call("abs", literal(2**63 - 1)),
    ],
)
@pytest.mark.parametrize("name", ["sum", "mean", "var_pop", "var_samp", "std_pop", "std_samp"])
def test_ranges_beyond_whole_floats_are_refused(name, argument):
    with pytest.raises(QueryRefused, match=r"2\*\*"):
        ways_of(AggregateCall(name, argument), {"n": column_facts(Int(0, 9))})


# ── two columns ──


def evaluated(expression, row):
    """The value of a measured expression on one row, in exact arithmetic; None is NULL."""
    if isinstance(expression, Column):
        return row[expression.name]
    if not hasattr(expression, "function"):
        return None if expression.value is None else Fraction(expression.value)
    name = expression.function
    if name == "case":
        *pairs, default = expression.arguments
        for condition, result in zip(pairs[::2], pairs[1::2], strict=True):
            if evaluated(condition, row):
                return evaluated(result, row)
        return evaluated(default, row)
    values = [evaluated(each, row) for each in expression.arguments]
    if name == "is_null":
        return values[0] is None
    if name in ("least", "greatest"):
        return (min if name == "least" else max)(each for each in values if each is not None)
    if any(each is None for each in values):
        return None
    return {
        "and": lambda *both: all(both),
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "abs": abs,
        "less_equal": lambda a, b: a <= b,
        "not": lambda a: not a,
    }[name](*values)


def read(measurement, rows):
    """The integer that the engine gives for these rows, in natural units."""
    if measurement.kind == "rows":
        return Fraction(len(rows))
    values = [evaluated(measurement.argument, row) for row in rows]
    if measurement.kind == "present":
        return Fraction(sum(each is not None for each in values))
    units = [math.trunc(each * 2**measurement.bits) for each in values if each is not None]
    assert all(measurement.lower <= each <= measurement.upper for each in units)
    return Fraction(sum(units), 2**measurement.bits)


def numbers(name, generator, count):
    facts = COLUMNS[name]
    values = generator.uniform(float(facts.lower), float(facts.upper), count)
    values = np.floor(values) if facts.whole else values
    missing = generator.random(count) < (0.3 if facts.nullable else 0)
    return [None if gone else Fraction(float(value)) for value, gone in zip(values, missing, strict=True)]


PAIRED = [
    ("age", "visits"),
    ("amount", "age"),
    ("odd", "sym"),
    ("tiny", "amount"),
    ("age", "rank"),
    ("age", "age"),
    ("amount", "amount"),
    ("zero", "age"),
]


@pytest.mark.parametrize(("one", "two"), PAIRED)
@pytest.mark.parametrize("function", PAIRS)
def test_pairs_follow_from_their_measurements_over_the_rows_where_both_are_present(function, one, two):
    generator = np.random.default_rng(5)
    first, second = numbers(one, generator, 60), numbers(two, generator, 60)
    rows = [{one: x, two: x if one == two else y} for x, y in zip(first, second, strict=True)]
    (part,) = ways_of(AggregateCall(function, Column(one), Column(two)), COLUMNS)
    e = part.estimator
    parts = [read(part.measurements[i], rows) for i in e.parts]
    s, t, p, *squares, n = parts
    both = [(float(row[one]), float(row[two])) for row in rows if None not in row.values()]
    assert n == len(both)
    assert 20 < n <= 60
    covariance = p / n - (s / n) * (t / n)
    x, y = np.array(both).T
    scale = float(e.half * e.other_half)
    if function != "corr":
        expected = np.cov(x, y, ddof=1 if e.sample else 0)[0, 1]
        found = covariance * (n / (n - 1) if e.sample else 1)
        assert float(found) == pytest.approx(expected, abs=1e-6 * scale)
        assert float(e.lower) <= expected <= float(e.upper)
        return
    variances = squares[0] / n + e.shift - (s / n) ** 2, squares[1] / n + e.other_shift - (t / n) ** 2
    assert sorted(map(float, variances)) == pytest.approx(sorted([np.var(x), np.var(y)]), rel=1e-5, abs=1e-30)
    if all(variances):
        found = float(covariance) / math.sqrt(variances[0] * variances[1])
        assert found == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-5)


@pytest.mark.parametrize("function", PAIRS)
def test_the_order_of_a_pair_does_not_matter(function):
    one, two = (
        ways_of(AggregateCall(function, Column(x), Column(y)), COLUMNS)
        for x, y in (("amount", "visits"), ("visits", "amount"))
    )
    assert one == two


def test_pairs_share_their_sums_with_other_aggregates_where_nothing_is_missing():
    (pair,) = ways_of(AggregateCall("corr", Column("age"), Column("amount")), COLUMNS)
    (spread,) = plan("var_pop", "amount")
    assert set(spread.measurements) & set(pair.measurements) == set(spread.measurements)


def test_products_reach_as_far_up_as_down():
    for one, two in PAIRED:
        (part,) = ways_of(AggregateCall("covar_pop", Column(one), Column(two)), COLUMNS)
        product = part.measurements[part.estimator.parts[2]]
        assert product.lower + product.upper in (0, 1)
    assert (
        ways_of(AggregateCall("covar_pop", Column("age"), Column("rank")), COLUMNS)[0].measurements[2].bits
        == 1
    )


@pytest.mark.parametrize("function", PAIRS)
def test_pairs_without_bounds_are_refused(function):
    with pytest.raises(QueryRefused, match="bounds for open"):
        ways_of(AggregateCall(function, Column("open"), Column("age")), COLUMNS)
    with pytest.raises(QueryRefused, match="for numbers"):
        ways_of(AggregateCall(function, Column("age"), Column("note")), COLUMNS)
    with pytest.raises(QueryRefused, match="two columns"):
        ways_of(AggregateCall(function, Column("age")), COLUMNS)
    with pytest.raises(QueryRefused, match=r"2\*\*53"):
        ways_of(AggregateCall(function, Column("huge"), Column("big")), COLUMNS)


# ── bounds that the question gives ──


def test_bounds_for_each_row_make_the_range():
    bounds = ("row", Fraction(-3), Fraction(9, 2))
    asked = AggregateCall("var_pop", Column("open"), bounds=bounds)
    (part,) = ways_of(asked, COLUMNS)
    total = part.measurements[0]
    assert total.argument == call("subtract", bounded(asked, COLUMNS), literal(0.75))
    assert part.estimator.half == Fraction(total.upper, 2**total.bits) == Fraction(15, 4)
    within = ways_of(AggregateCall("mean", Column("age"), bounds=("row", Fraction(0), Fraction(30))), COLUMNS)
    assert (within[0].estimator.lower, within[0].estimator.upper) == (18, 30)


def test_what_is_missing_stays_missing_under_bounds():
    bounds = ("row", Fraction(2), Fraction(9))
    held = bounded(AggregateCall("sum", Column("visits"), bounds=bounds), COLUMNS)
    assert facts_of(held, COLUMNS).nullable  # LEAST and GREATEST alone would take a bound for NULL
    found = evaluate(held, {"visits": np.ma.MaskedArray([0.0, 5.0, 50.0, 3.0], mask=[0, 0, 0, 1])})
    assert found.tolist() == [2, 5, 9, None]


@pytest.mark.parametrize(
    ("function", "name", "bounds", "match"),
    [
        ("count", "age", ("row", 0, 1), "no bounds for each row"),
        ("sum", "note", ("row", 0, 1), "for numbers"),
        ("sum", "age", ("row", 2, 1), "lower one first"),
        ("sum", "age", ("row", 0, 2**64), "below"),
        ("sum", "age", ("group", 0, 1), "not supported here"),
    ],
)
def test_other_bounds_are_refused(function, name, bounds, match):
    with pytest.raises(QueryRefused, match=match):
        ways_of(
            AggregateCall(function, Column(name), bounds=(bounds[0], *map(Fraction, bounds[1:]))), COLUMNS
        )


def test_what_is_not_measured_by_sums_is_refused_here():
    with pytest.raises(QueryRefused, match="not measured by sums"):
        ways_of(AggregateCall("max", Column("age")), COLUMNS)
