import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import QueryRefused
from sfumato.plan.aggregates import AGGREGATES, range_of
from sfumato.plan.expressions import Column, call, literal
from sfumato.plan.facts import column_facts, refine
from sfumato.plan.nodes import Measurement
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


def plan(function, name, columns=COLUMNS):
    return AGGREGATES[function].plan(Column(name), columns)


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
    """The formula in the docstring of `Estimator`."""
    e = part.estimator
    parts = [measure(part.measurements[i], name, values) for i in e.parts]
    if e.kind == "count":
        return parts[0]
    if e.kind == "sum":
        return parts[0] + (e.center * parts[1] if len(parts) == 2 else 0)
    theta = parts[0] / parts[-1]
    if e.kind == "mean":
        return e.center + theta
    variance = parts[1] / parts[2] + e.shift - theta**2
    variance *= Fraction(parts[2], parts[2] - 1) if e.sample else 1
    return variance if e.kind == "var" else math.sqrt(variance)


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
    (some,), (every,) = (AGGREGATES["count"].plan(Column(name), COLUMNS) for name in ("note", "age"))
    assert some.measurements == (Measurement("present", Column("note")),)
    assert every.measurements == (Measurement("rows"),)
    assert AGGREGATES["count"].plan(None, COLUMNS)[0].measurements == (Measurement("rows"),)
    assert AGGREGATES["count_distinct"].plan(None, COLUMNS)[0].measurements == (Measurement("units"),)


# ── refusals ──


@pytest.mark.parametrize("function", ["sum", "mean", "var_samp", "std_pop"])
def test_without_bounds_the_refusal_says_how_to_get_some(function):
    with pytest.raises(QueryRefused, match=r"bounds for open.*LEAST\(GREATEST\(open, 0\), 100\)"):
        plan(function, "open")
    clamped = call("least", call("greatest", Column("open"), literal(0)), literal(100))
    assert AGGREGATES[function].plan(clamped, COLUMNS)[0].estimator.half in (50, 100)


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
        AGGREGATES[name].plan(argument, {"n": column_facts(Int(0, 9))})
