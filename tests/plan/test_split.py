import itertools
import json
import math
import random
from fractions import Fraction

import pytest

from quotes import make_quote
from sfumato.plan.expressions.tree import Column
from sfumato.plan.prices.price import instruments
from sfumato.plan.prices.recipe import recipe
from sfumato.plan.prices.split import POWERS, importance, least_cost, shares
from sfumato.plan.prices.ways import best_ways
from sfumato.plan.questions.aggregates import Linear, Part
from sfumato.plan.questions.aggregates._average import Average
from sfumato.plan.questions.aggregates.spread import Deviation
from sfumato.plan.questions.nodes import Aggregate, AggregateCall, Key, Measurement, Output, Report, Scan
from sfumato.schema import Enum, Float, Int, PrivacyUnit, PrivateTable

LAWS = ("laplace", "gaussian")


def table(unit=None, columns=12):
    schema = {f"x{i}": Float(0, 10 ** (i % 4 + 1), nullable=False) for i in range(columns)}
    schema |= {"age": Int(18, 99, nullable=False), "city": Enum("a", "b", "c", "d")}
    return PrivateTable("t", source=None, unit=unit or PrivacyUnit.row(), schema=schema)


def report(*aggregates, keys=()):
    node = Aggregate(Scan("t"), tuple(keys), tuple(aggregates))
    return Report(node, tuple(Output(f"c{i}", Column(f"a{i}")) for i in range(len(aggregates))))


def call(function, name=None):
    return AggregateCall(function, None if name is None else Column(name))


def costs_of(found, law):
    sizes = {each.measurement: each.size(law) for each in instruments(found.measured)}
    sizes |= {
        each: sizes.get(each, float(each.magnitude * Fraction(1, 2**each.bits)))
        for part in found.yardsticks
        for each in part.measurements
    }
    costs = importance(found.parts, found.yardsticks, sizes.__getitem__, law)
    return [costs[each] for each in found.measured.measurements]


REPORTS = {
    "count and average": report(call("count"), call("mean", "age")),
    "three sums": report(*(call("sum", f"x{i}") for i in range(3))),
    "deviation": report(call("std_samp", "age"), call("count")),
    "sum, average and count": report(call("sum", "x1"), call("mean", "x1"), call("count")),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", REPORTS)
def test_no_other_split_is_better_by_one_percent(name, law):
    costs = costs_of(recipe(REPORTS[name], table()), law)
    power = POWERS[law]

    def cost(split):
        return sum(c / float(s) ** power for c, s in zip(costs, split, strict=True))

    ours = cost(shares(costs, law))
    steps = range(1, 100)
    grid = (
        [*each, 100 - sum(each)]
        for each in itertools.product(steps, repeat=len(costs) - 1)
        if sum(each) < 100
    )
    best = min(cost([part / 100 for part in split]) for split in grid)
    assert ours <= best * 1.01
    assert ours >= least_cost(costs, law) * (1 - 1e-12)
    assert ours <= least_cost(costs, law) * 1.0001


@pytest.mark.parametrize("law", LAWS)
def test_shares_are_exact_positive_and_short(law):
    found = shares([1.0, 1e-30, 0.0, 5.0, 1.0], law)
    assert sum(found) == 1
    assert min(found) > 0
    assert found[0] == found[4]
    assert max(each.denominator for each in found) <= 5000
    assert shares([0.3, 0.3, 0.3], law) == (Fraction(1, 3),) * 3
    assert shares([0.0, 0.0], law) == (Fraction(1, 2),) * 2


def test_the_laws_differ_in_how_they_share():
    costs = [1.0, 64.0]
    assert shares(costs, "laplace") == (Fraction(1, 5), Fraction(4, 5))
    assert float(shares(costs, "gaussian")[0]) == pytest.approx(1 / 9, rel=1e-3)


def test_gradients_are_those_of_the_formulas():
    """Against difference quotients at the place that the docstring names."""
    half = 40.0
    mean = Average((0, 1), center=Fraction(10), half=Fraction(40), lower=Fraction(-30), upper=Fraction(50))
    spread = Deviation((0, 1, 2), half=Fraction(40), shift=Fraction(800))
    n, theta, v = 1000.0, half / 2, half**2 / 3

    def mean_of(s, count):
        return s / count

    def variance_of(s, q, count):
        return q / count + 800 - (s / count) ** 2

    for function, at, found in (
        (mean_of, [theta * n, n], mean.gradients()),
        (variance_of, [theta * n, (v - 800 + theta**2) * n, n], spread.gradients()),
    ):
        for i, gradient in enumerate(found):
            moved = list(at)
            moved[i] += 1e-4
            assert abs(function(*moved) - function(*at)) / 1e-4 * n == pytest.approx(gradient, rel=1e-3)


def test_a_mean_from_a_plain_sum_counts_how_far_its_range_is_from_zero():
    plain = Average((0, 1), half=Fraction(100), lower=Fraction(90), upper=Fraction(100))
    assert plain.gradients() == (1.0, 97.5)
    assert Linear((0, 1), weights=(Fraction(1), Fraction(-7))).gradients() == (1.0, 7.0)


def test_importance_is_one_for_a_lone_measurement_whatever_its_size():
    total = Measurement("sum", Column("x"), 0, 1000)
    part = Part((total,), Linear((0,)))
    for law in LAWS:
        assert importance([part], [part], lambda _: 1000.0, law) == {total: pytest.approx(1.0)}
        doubled = importance([part, part], [part, part], lambda _: 1000.0, law)
        assert doubled == {total: pytest.approx(2.0)}


# ── which noise, and which way to measure ──


def law_for(columns, delta="1e-7", unit=None, epsilon=1):
    asked = report(*(call("sum", f"x{i}") for i in range(columns)))
    return make_quote(asked, table(unit, columns), epsilon=epsilon, delta=delta).mechanism


def test_many_columns_turn_to_gaussian_noise_and_no_sooner_than_they_should():
    # Equal columns: Laplace has k·ln(20), Gaussian √k·1.96·σ(1, 1e-7), so they meet at k = (1.96σ/ln 20)².
    sigma = 1 / math.sqrt(
        2
        * float(
            make_quote(report(call("count")), table(), epsilon=1, delta="1e-7", mechanism="gaussian").loss.rho
        )
    )
    meet = (1.959964 * sigma / math.log(20)) ** 2
    assert 5 < meet < 20
    assert law_for(math.floor(meet)) == "laplace"
    assert law_for(math.ceil(meet)) == "gaussian"
    assert law_for(math.ceil(meet), delta=None) == "laplace"


def test_units_in_many_groups_turn_to_gaussian_noise():
    keys = [Key(Column("city"), ("a", "b", "c", "d")), Key(Column("age"), tuple(range(18, 48)))]
    asked = report(call("count_distinct"), keys=keys)
    laws = [
        make_quote(asked, table(PrivacyUnit("u", max_groups=k)), epsilon=1, delta="1e-7").mechanism
        for k in (1, 2, 50, 100)
    ]
    assert laws == ["laplace", "laplace", "gaussian", "gaussian"]


@pytest.mark.parametrize(
    "functions", [["sum", "count"], ["sum", "mean"], ["sum", "mean", "count"], ["sum"], ["mean"]]
)
@pytest.mark.parametrize("column", ["x1", "age"])
def test_the_chosen_way_to_measure_beats_measuring_everything_apart(functions, column):
    asked = report(*(call(each, column if each != "count" else None) for each in functions))
    found = recipe(asked, table())
    ours = least_cost(costs_of(found, "laplace"), "laplace")
    apart = {each for part in found.yardsticks for each in part.measurements}
    size = {each: float(each.magnitude * Fraction(1, 2**each.bits)) for each in apart}
    costs = importance(found.yardsticks, found.yardsticks, size.__getitem__, "laplace")
    assert ours <= least_cost(costs.values(), "laplace") * (1 + 1e-9)
    if len(functions) == 3:
        assert ours < 0.6 * least_cost(costs.values(), "laplace")


def every_way_anew(ways, size):
    """`best_ways` as it is defined: the whole cost of each way that is tried, over all aggregates."""
    calls = sorted(ways, key=lambda each: json.dumps(each.to_wire()))
    chosen = {each: ways[each][0] for each in calls}
    yardsticks = list(chosen.values())

    def cost(parts):
        costs = importance([parts[each] for each in calls], yardsticks, size, "laplace")
        return least_cost(costs.values(), "laplace")

    alike = {}
    for each in calls:
        if len(ways[each]) > 1:
            alike.setdefault(each.argument, []).append(each)
    for group in alike.values():
        best = cost(chosen)
        for picks in itertools.product(*(ways[each] for each in group)):
            tried = chosen | dict(zip(group, picks, strict=True))
            if (tried_cost := cost(tried)) < best * (1 - 1e-9):
                best, chosen = tried_cost, tried
    return chosen


def random_ways(draw):
    """Aggregates over a few measurements that several share, with up to three ways each."""
    pool = [Measurement("sum", Column(f"x{i}"), -draw.randint(0, 9), draw.randint(1, 99)) for i in range(8)]
    ways = {}
    for place in range(draw.randint(1, 7)):
        parts = []
        for _ in range(draw.randint(1, 3)):
            own = tuple(draw.sample(pool, draw.randint(1, 3)))
            weights = tuple(Fraction(draw.randint(1, 9), draw.randint(1, 9)) for _ in own)
            parts.append(Part(own, Linear(tuple(range(len(own))), weights=weights)))
        ways[AggregateCall(draw.choice(["sum", "mean", "std_samp"]), Column(f"y{place % 4}"))] = tuple(parts)
    return ways


def test_the_best_ways_are_those_that_the_whole_cost_gives():
    draw, other = random.Random(5), 0
    for _ in range(60):
        ways = random_ways(draw)
        found = best_ways(ways, lambda each: float(each.magnitude))
        assert found == every_way_anew(ways, lambda each: float(each.magnitude))
        other += any(found[each] != ways[each][0] for each in ways)
    assert other > 20  # the choice mattered
