import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest

from quotes import make_quote
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.loss import GaussianLoss, PrivacyLoss
from sfumato.mechanisms import Gaussian, Geometric, Laplace
from sfumato.plan.expressions.tree import Column, call, literal
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.columns import Form
from sfumato.plan.prices.price import gaussian_rho, price
from sfumato.plan.questions.nodes import Aggregate, AggregateCall, Key, Measurement, Output, Report, Scan
from sfumato.plan.questions.sensitivity import WEIGHT, sensitivities
from sfumato.schema import Enum, Float, Int, PrivacyUnit, PrivateTable

COUNTRY = Key(Column("country"), ("FR", "DE"))
USERS = PrivacyUnit("user_id", max_groups=3)


def table(unit=None, **settings):
    schema = {
        "country": Enum("FR", "DE"),
        "amount": Float(0, 200, nullable=False),
        "loose": Float(0, 200),
        "age": Int(18, 99, nullable=False),
    }
    return PrivateTable("visits", source=None, unit=unit or PrivacyUnit.row(), schema=schema, **settings)


def report(keys=(COUNTRY,), **outputs):
    """Outputs: an aggregate, or a function of Column("a0"), … with the aggregates under `_`."""
    calls = list(outputs.pop("_", ()))
    columns = [Output(key.expression.name, Column(f"k{i}")) for i, key in enumerate(keys)]
    for name, output in outputs.items():
        if isinstance(output, AggregateCall):
            calls.append(output)
            output = Column(f"a{len(calls) - 1}")
        columns.append(Output(name, output))
    return Report(Aggregate(Scan("visits"), tuple(keys), tuple(calls)), tuple(columns))


COUNT = AggregateCall("count")
SUM, MEAN, STD = (AggregateCall(name, Column("amount")) for name in ("sum", "mean", "std_samp"))
COUNTED = report(n=COUNT)
FULL = report(n=COUNT, total=SUM, average=MEAN, deviation=STD)


# ── the price is exact ──


@pytest.mark.parametrize("epsilon", ["0.1", "0.3", 1, "1/3", "7.77"])
@pytest.mark.parametrize("unit", [None, USERS, PrivacyUnit.row(adjacency="exchange")])
@pytest.mark.parametrize("asked", [COUNTED, FULL])
def test_laplace_noise_costs_exactly_epsilon(asked, unit, epsilon):
    quote = make_quote(asked, table(unit), epsilon=epsilon)
    exact = Fraction(epsilon)
    assert quote.epsilon == quote.loss.pure == exact
    assert quote.loss.approximate == (exact, 0)
    assert quote.delta == 0
    assert quote.mechanism == "laplace"
    assert sum(each.epsilon for each in quote.mechanisms) == exact


@pytest.mark.parametrize("unit", [None, USERS, PrivacyUnit("user_id", adjacency="exchange")])
@pytest.mark.parametrize("asked", [COUNTED, FULL])
def test_gaussian_noise_proves_its_point(asked, unit):
    quote = make_quote(asked, table(unit), epsilon=1, delta="1e-7", mechanism="gaussian")
    assert isinstance(quote.loss, GaussianLoss)
    assert quote.loss.approximate == (1, Fraction("1e-7"))
    assert quote.delta == Fraction("1e-7")
    assert quote.loss.delta(1) <= 1e-7
    assert quote.loss.delta(Fraction("0.999")) > 1e-7  # nothing is left over
    spent = sum(
        found.l2_squared / (2 * Fraction(mechanism.sigma) ** 2)
        for found, mechanism in zip(sensitivities(quote.measured), quote.mechanisms, strict=True)
    )
    assert float(spent) == pytest.approx(float(quote.loss.rho), rel=1e-9)


def test_each_mechanism_is_built_for_its_own_sensitivity():
    for unit in (None, USERS, PrivacyUnit.row(adjacency="exchange")):
        for law in ("laplace", "gaussian"):
            quote = make_quote(FULL, table(unit), epsilon=1, delta="1e-7", mechanism=law)
            for found, mechanism in zip(sensitivities(quote.measured), quote.mechanisms, strict=True):
                assert mechanism.sensitivity == (found.l1 if law == "laplace" else found.l2)


def test_parts_that_do_not_sum_to_the_price_are_refused():
    measured = make_quote(FULL, table(), epsilon=1).measured
    parts = [Fraction(1, 4)] * (len(measured.measurements) - 1)
    with pytest.raises(InvalidParameter, match="sum to it exactly"):
        price(measured, "laplace", epsilon=Fraction(1), delta=Fraction(0), portions=parts)


def test_the_loss_survives_the_wire():
    for law in ("laplace", "gaussian"):
        loss = make_quote(FULL, table(), epsilon=1, delta="1e-7", mechanism=law).loss
        assert PrivacyLoss.from_dict(json.loads(json.dumps(loss.to_dict()))) == loss


# ── which noise on which integers ──


def test_whole_counts_get_geometric_noise_and_weighted_ones_laplace_noise():
    (rows,) = make_quote(COUNTED, table(), epsilon=1).mechanisms
    assert rows == Geometric(1, 1)
    (exchanged,) = make_quote(COUNTED, table(PrivacyUnit.row(adjacency="exchange")), epsilon=1).mechanisms
    assert exchanged == Geometric(1, 2)
    (weighted,) = make_quote(COUNTED, table(USERS), epsilon=1).mechanisms
    assert weighted == Laplace(1, 3 * WEIGHT)
    units = AggregateCall("count_distinct")
    assert make_quote(report((), n=units), table(USERS), epsilon=1).mechanisms == (Geometric(1, 1),)
    assert make_quote(report(n=units), table(USERS), epsilon=1).mechanisms == (Laplace(1, 2 * WEIGHT),)
    (forced,) = make_quote(COUNTED, table(), epsilon=1, delta="1e-6", mechanism="gaussian").mechanisms
    assert isinstance(forced, Gaussian)


def test_errors_are_those_of_the_mechanisms_in_natural_units():
    for unit in (None, USERS):
        for law in ("laplace", "gaussian"):
            quote = make_quote(report(n=COUNT), table(unit), epsilon="0.2", delta="1e-6", mechanism=law)
            (mechanism,), (worth,), (measurement,) = (
                quote.mechanisms,
                quote.units,
                quote.measured.measurements,
            )
            for confidence in (0.5, 0.95, 0.999):
                plain = mechanism.error(confidence) * float(worth)
                shown = quote.error(confidence)["n"]
                assert plain - 1 <= shown <= plain + 0.51  # rounding to whole numbers
            assert measurement == Measurement("rows")


def test_linear_columns_have_an_error_and_others_depend_on_the_data():
    a, b = Column("a0"), Column("a1")
    asked = report(
        _=(COUNT, AggregateCall("count_distinct")),
        twice=call("multiply", literal(2), a),
        back=call("negate", call("divide", a, literal(4))),
        moved=call("add", a, literal(100)),
        cast=call("to_float", a),
        gone=call("subtract", a, a),
        apart=call("subtract", a, b),
        ratio=call("divide", a, b),
        square=call("multiply", a, a),
        root=call("sqrt", a),
        keyed=call("add", a, Column("k0")),
    )
    quote = make_quote(asked, table(USERS), epsilon=1)
    found, base = quote.error(), [noise.quantile(0.95) for noise in quote.noises]
    rows = next(i for i, each in enumerate(quote.measured.measurements) if each.kind == "rows")
    assert found["twice"] == pytest.approx(2 * base[rows])
    assert found["back"] == pytest.approx(base[rows] / 4)
    assert found["moved"] == found["cast"] == pytest.approx(base[rows])
    assert found["gone"] == 0
    assert max(base) < found["apart"] < sum(base)
    assert [found[name] for name in ("ratio", "square", "root", "keyed")] == [None] * 4
    assert found["country"] == 0


def test_a_centred_sum_has_the_error_of_its_two_parts():
    quote = make_quote(report(n=COUNT, total=SUM), table(), epsilon=1)
    estimator = quote.recipe.aggregates[1]
    assert len(estimator.parts) == 2
    total, rows = (quote.noises[part] for part in estimator.parts)
    found = quote.error()["total"]
    assert found > max(total.quantile(0.95), 100 * rows.quantile(0.95) * 0.8)
    assert found < total.quantile(0.95) + 100 * (rows.quantile(0.95) + 1)


def test_the_declared_size_gives_expected_errors_that_shrink_with_it():
    small, large = (make_quote(FULL, table(size=size), epsilon=1) for size in (2000, 2_000_000))
    for index in (3, 4):
        assert small.columns[index].half_width is None
        assert small.columns[index].expected > large.columns[index].expected * 100
    assert "in groups of 1,000" in str(small)
    assert make_quote(FULL, table(size=2), epsilon="0.001").columns[3].expected == 200  # the whole range


def test_expected_errors_are_about_right():
    """Against many draws at the place that they are quoted for: evenly spread, a quarter off the middle."""
    import numpy as np

    quote = make_quote(report(average=MEAN), table(size=20_000), epsilon=1)
    (estimator,) = quote.recipe.aggregates
    generator = np.random.default_rng(1)
    total, rows = (quote.noises[part] for part in estimator.parts)
    n, theta = 10_000, 50.0
    s = theta * n + generator.laplace(0, total.scale, 40_000)
    count = n + generator.laplace(0, rows.scale, 40_000)
    assert np.quantile(np.abs(s / count - theta), 0.95) == pytest.approx(quote.columns[1].expected, rel=0.05)


# ── asking for accuracy ──


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("unit", [None, USERS, PrivacyUnit.row(adjacency="exchange")])
@pytest.mark.parametrize("width", [3, 50, "1234.5"])
def test_the_least_epsilon_reaches_the_error_and_less_does_not(width, unit, law):
    settings = {"delta": "1e-7", "mechanism": law}
    quote = make_quote(COUNTED, table(unit), error={"n": width}, **settings)
    assert quote.error()["n"] <= float(width)
    again = make_quote(COUNTED, table(unit), epsilon=quote.epsilon, **settings)
    assert again.error() == quote.error()
    assert quote.epsilon == Fraction(f"{float(quote.epsilon):.6g}")
    less = quote.epsilon - Fraction(10) ** (math.floor(math.log10(quote.epsilon)) - 5)
    assert make_quote(COUNTED, table(unit), epsilon=less, **settings).error()["n"] > float(width)


def test_each_column_gets_what_it_needs():
    asked = report(n=AggregateCall("count", Column("loose")), rows=COUNT)
    quote = make_quote(asked, table(), error={"n": 100, "rows": 10})
    assert quote.error() == {"country": 0, "n": 100, "rows": 10}
    alone = [make_quote(COUNTED, table(), error=width).epsilon for width in (100, 10)]
    assert float(quote.epsilon) == pytest.approx(float(sum(alone)), rel=1e-4)
    assert quote.loss.pure == quote.epsilon


def test_a_column_without_a_target_keeps_a_share():
    asked = report(n=AggregateCall("count", Column("loose")), rows=COUNT)
    quote = make_quote(asked, table(), error={"rows": 10})
    assert quote.error()["rows"] == 10
    assert quote.error()["n"] == 10


def test_one_number_is_for_all_columns():
    quote = make_quote(report(n=COUNT, m=AggregateCall("count", Column("loose"))), table(), error=25)
    assert quote.error() == {"country": 0, "n": 25, "m": 25}


def test_a_linear_column_of_several_measurements_is_reached_too():
    quote = make_quote(report(n=COUNT, total=SUM), table(), error={"total": 5000, "n": 100})
    assert quote.error()["total"] == pytest.approx(5000, rel=1e-4)
    assert quote.error()["total"] <= 5000
    assert quote.error()["n"] <= 100


def test_a_lone_target_is_not_paid_for_with_the_usual_split():
    target = {"total": 5000}
    quote = make_quote(report(n=COUNT, total=SUM), table(), error=target)
    usual = make_quote(report(n=COUNT, total=SUM), table(), epsilon=quote.epsilon)
    assert quote.error()["total"] <= 5000 < usual.error()["total"]


def test_two_targets_for_one_measurement_are_both_reached():
    for widths in ((10, 40), (40, 10)):
        asked = report(_=(COUNT,), n=Column("a0"), twice=call("multiply", literal(2), Column("a0")))
        quote = make_quote(asked, table(), error=dict(zip(("n", "twice"), widths, strict=True)))
        assert quote.error()["n"] <= widths[0]
        assert quote.error()["twice"] <= widths[1]
        assert quote.error()["n"] == min(widths[0], widths[1] / 2)


@pytest.mark.parametrize("width", ["1e9", "1e15", "1e40"])
def test_an_error_that_anything_reaches_costs_next_to_nothing(width):
    assert make_quote(COUNTED, table(), error=width).epsilon < Fraction(1, 10**8)


def test_the_cheaper_noise_is_taken():
    many = {f"c{i}": AggregateCall("count", call("add", Column("loose"), literal(i))) for i in range(30)}
    for asked, law in ((COUNTED, "laplace"), (report(**many), "gaussian")):
        quote = make_quote(asked, table(), error=100, delta="1e-6")
        assert quote.mechanism == law
        other = "gaussian" if law == "laplace" else "laplace"
        dearer = make_quote(asked, table(), error=100, delta="1e-6", mechanism=other)
        assert dearer.epsilon > quote.epsilon
        assert f"{float(dearer.epsilon):g}" in quote.why


def test_an_average_needs_a_declared_size():
    with pytest.raises(QueryRefused, match=r"average.*depends on the data.*size that the steward declares"):
        make_quote(FULL, table(), error={"average": 1})
    with pytest.raises(QueryRefused, match="depends on the data"):
        make_quote(FULL, table(size=100_000), error={"average": 1})  # of a group, nobody declared the size
    alone = report((), n=COUNT, total=SUM, average=MEAN, deviation=STD)
    quote = make_quote(alone, table(size=100_000), error={"average": 1})
    assert quote.columns[2].expected == pytest.approx(1, rel=1e-4)
    assert any("declared size, 100,000" in note for note in quote.notes)


def test_what_cannot_be_known_is_refused_whatever_is_declared():
    asked = report(
        _=(COUNT, AggregateCall("count_distinct")), ratio=call("divide", Column("a0"), Column("a1"))
    )
    with pytest.raises(QueryRefused, match=r"depends on the data.*Give an epsilon instead"):
        make_quote(asked, table(USERS, size=1000), error={"ratio": 1})


def test_unknown_columns_name_the_nearest():
    with pytest.raises(InvalidParameter, match=r"no column 'totl'; did you mean 'total'"):
        make_quote(FULL, table(), error={"totl": 3})
    with pytest.raises(InvalidParameter, match="country is public"):
        make_quote(FULL, table(), error={"country": 3})


def test_an_error_below_the_rounding_has_no_price():
    with pytest.raises(QueryRefused, match="No price makes n that accurate"):
        make_quote(COUNTED, table(USERS), error={"n": "0.25"})


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("short", ["n", "both", "total"])
def test_the_column_that_no_price_is_enough_for_is_named(short, law):
    asked = report(
        _=(COUNT, SUM), n=Column("a0"), both=call("add", Column("a0"), Column("a1")), total=Column("a1")
    )
    errors = {"n": 500, "both": 5000, "total": 5000} | {short: "0.01"}
    with pytest.raises(QueryRefused, match=f"No price makes {short} that accurate"):
        make_quote(asked, table(USERS), error=errors, mechanism=law, delta="1e-6")


@pytest.mark.parametrize(
    "form",
    [
        Form("a", ((0, 2.0),)),
        Form("a", ((0, 1.0), (1, -3.0)), rounding=0.5),
        Form("a", ((0, 1.0), (1, 100.0)), per_row=True, most=0.2),
        Form("a", ((0, 1.0), (1, 100.0)), per_row=True),
        Form("a", ((0, 1.0), (1, 2.0), (2, 3.0)), rounding=2.5),
        Form("a", tuple((i, 1.0 + i) for i in range(8))),
        Form("a", ()),
    ],
)
@pytest.mark.parametrize(
    "laws", [("laplace",), ("gaussian",), ("geometric", "laplace"), ("laplace", "gaussian")]
)
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999"])
def test_whether_a_width_is_reached_is_known_without_the_search_for_it(form, laws, confidence):
    noises = [Noise(laws[i % len(laws)], 3.0 + i, 0.25 * i) for i in range(8)]
    width = form.width(noises, confidence, 1000)
    for wanted in (width, width * (1 + 1e-12), width + 1, width * 1e9):
        assert form.within(wanted, noises, confidence, 1000)
    for wanted in (width * (1 - 1e-9), width / 2, 0.0):
        assert form.within(wanted, noises, confidence, 1000) == (wanted >= width)
    assert not Form("a", None).within(1e9, noises, confidence, 1000)
    assert form.within(1e9, noises, confidence) == (not form.per_row)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"epsilon": 1, "error": 5},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"epsilon": True},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -1},
        {"epsilon": 1, "confidence": 1},
        {"epsilon": 1, "mechanism": "staircase"},
        {"epsilon": 1, "mechanism": "gaussian"},
        {"epsilon": 1, "mechanism": "gaussian", "delta": 0},
        {"error": {}},
        {"error": 0},
        {"error": {"n": -3}},
        {"error": {"n": "few"}},
    ],
)
def test_unusable_requests_are_refused(settings):
    with pytest.raises(InvalidParameter):
        make_quote(COUNTED, table(), **settings)


@pytest.mark.parametrize("error", [5, {"nope": 3}, {"country": 1}])
def test_an_error_needs_a_column_with_noise(error):
    public = replace(COUNTED, columns=COUNTED.columns[:1])
    with pytest.raises(InvalidParameter, match="No column of this result has noise: give an epsilon"):
        make_quote(public, table(), error=error)


@pytest.mark.parametrize("delta", [None, "1e-7", "1e-200"])
@pytest.mark.parametrize("epsilon", ["1e-9", 50, 1000])
def test_extreme_prices_are_quoted_too(epsilon, delta):
    quote = make_quote(report(n=COUNT, average=MEAN), table(), epsilon=epsilon, delta=delta)
    assert quote.epsilon == Fraction(epsilon)
    assert (quote.columns[1].half_width == 0) == (quote.epsilon > 1)
    assert "\nn " in str(quote)


def test_where_one_noise_cannot_be_drawn_the_other_is():
    assert make_quote(COUNTED, table(USERS), epsilon="1e-13", delta="1e-7").mechanism == "gaussian"
    with pytest.raises(InvalidParameter, match="too small"):
        make_quote(COUNTED, table(USERS), epsilon="1e-13")


# ── what is shown ──


@pytest.mark.parametrize("unit", [None, USERS, PrivacyUnit("user_id", max_groups=2, adjacency="exchange")])
@pytest.mark.parametrize("size", [None, 10**6])
@pytest.mark.parametrize("delta", [None, "1e-7"])
def test_a_quote_fits_in_80_columns_and_tells_what_it_must(unit, size, delta):
    asked = report(n=COUNT, users=AggregateCall("count_distinct"), total=SUM, average=MEAN, deviation=STD)
    quote = make_quote(asked, table(unit, size=size), epsilon="0.3", delta=delta)
    text = str(quote)
    assert max(map(len, text.splitlines())) <= 80
    assert "epsilon 0.3" in text
    assert quote.why.split(":")[0] in text
    assert "2 by country" in text
    assert "left out" in text
    assert ("weighted down" in text) == (unit is not None)
    assert ("exchange" in text) == (unit is not None and unit.adjacency == "exchange")
    assert all(each.name in text for each in quote.columns)
    assert all(f"{each.share:.0%}" in text for each in quote.measurements)
    assert sum(each.share for each in quote.measurements) == pytest.approx(1)


def test_the_display_escapes_what_it_shows():
    schema = {"<b>": Float(0, 1)}
    odd = PrivateTable("visits", source=None, unit=PrivacyUnit.row(), schema=schema)
    asked = Report(
        Aggregate(Scan("visits"), (), (AggregateCall("sum", Column("<b>")),)), (Output("<i>", Column("a0")),)
    )
    html = make_quote(asked, odd, epsilon=1)._repr_html_()
    assert "<b>" not in html
    assert "<i>" not in html
    assert "&lt;b&gt;" in html


def test_plain_data_can_be_written_as_json():
    quote = make_quote(FULL, table(size=10**5), epsilon="0.3", delta="1e-7")
    data = json.loads(json.dumps(quote.to_dict(), allow_nan=False))
    assert (data["epsilon"], data["epsilon_exact"], data["delta"]) == (0.3, "3/10", 0.0)
    assert [each["name"] for each in data["columns"]] == ["country", "n", "total", "average", "deviation"]
    assert data["columns"][3]["error"] is None
    assert data["columns"][3]["expected_error"] > 0
    assert data["fingerprint"] == quote.measured.fingerprint


def test_a_quote_is_a_pure_function():
    one, other = (make_quote(FULL, table(size=10), epsilon=1, delta="1e-7") for _ in range(2))
    assert str(one) == str(other)
    assert one.loss == other.loss
    assert one.to_dict() == other.to_dict()


def test_asking_twice_changes_nothing():
    one = make_quote(report(n=COUNT, average=MEAN), table(), epsilon=1)
    twice = make_quote(report(n=COUNT, average=MEAN, m=COUNT, o=COUNT), table(), epsilon=1)
    assert one.mechanisms == twice.mechanisms


def test_ten_thousand_keys_are_one_question():
    keys = [Key(Column("age"), tuple(range(10_000)))]
    quote = make_quote(report(keys, n=COUNT, average=MEAN), table(), epsilon=1, delta="1e-7")
    assert len(quote.measured.combinations) == 10_000
    assert quote.loss.pure == 1
    assert "10,000 by age" in str(quote)


def test_calibration_is_remembered():
    gaussian_rho.cache_clear()
    for _ in range(3):
        make_quote(FULL, table(), epsilon="0.123", delta="1e-7")
    assert gaussian_rho.cache_info().misses == 1
