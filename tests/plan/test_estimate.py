"""From noisy measurements to an answer: values, post-processing, and intervals that hold the truth."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.mechanisms import Gaussian, Geometric, Laplace
from sfumato.plan.answers.estimate import Estimates, estimate
from sfumato.plan.expressions.tree import Call, Column, Expression, call, literal
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.recipe import Estimator, Recipe
from sfumato.plan.questions.aggregates import Linear
from sfumato.plan.questions.aggregates._average import Average
from sfumato.plan.questions.aggregates.spread import Deviation
from sfumato.plan.questions.nodes import (
    Aggregate,
    Key,
    Measured,
    Measurement,
    OrderItem,
    Output,
    Report,
    Scan,
)
from sfumato.schema import PrivacyUnit
from sfumato.testing import seeded
from sfumato.testing.statistics import bernoulli_finding

CONFIDENCES = (0.5, 0.9, 0.95, 0.99)
K, N, S, M, V, D = (Column(name) for name in ("k0", "a0", "a1", "a2", "a3", "a4"))
SUM = Measurement("sum", Column("x"), -(2**29), 2**29, 26, whole=False)
SQUARES = Measurement("sum", call("multiply", Column("x"), Column("x")), -(2**29), 2**29, 23, whole=False)
MEASUREMENTS = (Measurement("rows"), SUM, SQUARES)
HALF, CENTER, SHIFT = Fraction(8), Fraction(50), Fraction(32)
ESTIMATORS = (
    Linear((0,), whole=True),
    Linear((1, 0), weights=(Fraction(1), CENTER)),
    Average((1, 0), center=CENTER, half=HALF, lower=CENTER - HALF, upper=CENTER + HALF),
    Deviation((1, 2, 0), half=HALF, shift=SHIFT, sample=True, lower=Fraction(0), upper=2 * HALF**2),
    Deviation((1, 2, 0), root=True, half=HALF, shift=SHIFT, lower=Fraction(0), upper=HALF),
)
PLAIN = (Noise("geometric", 2.0, whole=True), Noise("laplace", 3.0), Noise("laplace", 9.0))


def recipe_of(
    keys: Sequence[Any] | None,
    *,
    estimators: tuple[Estimator, ...] = ESTIMATORS,
    measurements: tuple[Measurement, ...] = MEASUREMENTS,
    row_order: tuple[int, ...] | None = None,
) -> Recipe:
    plan_keys = () if keys is None else (Key(Column("g"), tuple(keys)),)
    rows: tuple[tuple[Any, ...], ...] = ((),) if keys is None else tuple((key,) for key in keys)
    measured = Measured("t", "1", PrivacyUnit.row(), None, plan_keys, rows, measurements)
    order = tuple(range(len(rows))) if row_order is None else row_order
    return Recipe(measured, estimators, tuple(range(len(plan_keys))), order, ())


def report_of(recipe: Recipe, /, **post: Any) -> Report:
    columns = tuple(Output(name, expression) for name, expression in post.pop("columns").items())
    return Report(Aggregate(Scan("t"), recipe.measured.keys, ()), columns, **post)


def answer(
    columns: dict[str, Expression],
    noisy: Sequence[Any],
    keys: Sequence[Any] | None = ("a", "b", "c"),
    *,
    noises: Sequence[Noise] = PLAIN,
    recipe: Recipe | None = None,
    **post: Any,
) -> Estimates:
    recipe = recipe or recipe_of(keys)
    return estimate(recipe, report_of(recipe, columns=columns, **post), noises, noisy)


THREE = (np.array([40, 0, -2]), np.array([80.0, 4.0, 1.0]), np.array([-1000.0, 3.0, 3.0]))


def test_values_of_every_aggregate() -> None:
    got = answer({"key": K, "n": N, "s": S, "m": M, "v": V, "d": D}, THREE)
    assert got.columns["key"].tolist() == ["a", "b", "c"]
    assert got.columns["n"].tolist() == [40, 0, -2]
    assert got.columns["n"].dtype == np.int64
    assert got.columns["s"].tolist() == [80 + 50 * 40, 4.0, 1 - 100]
    assert got.columns["m"].tolist() == [52.0, 50.0, 50.0]
    spread = -25 + 32 - 4
    assert got.columns["v"].tolist() == [pytest.approx(spread * 40 / 39), 32, 32]
    assert got.columns["d"].tolist() == [
        pytest.approx(math.sqrt(spread)),
        pytest.approx(32**0.5),
        pytest.approx(32**0.5),
    ]
    assert got.intervals == ("n", "s", "m", "v", "d")


def test_values_are_held_within_the_declared_range() -> None:
    noisy = (np.array([2.0]), np.array([-900.0]), np.array([900.0]))
    got = answer({"m": M, "v": V, "d": D}, noisy, None)
    assert got.columns["m"].tolist() == [42.0]
    assert got.columns["v"].tolist() == [0.0]
    for name in ("m", "v", "d"):
        low, high = got.interval(name, 0.9)
        assert low[0] <= got.columns[name][0] <= high[0]


def test_whole_sums_are_whole_and_others_are_not() -> None:
    estimators = (
        Linear((0,), whole=True),
        Linear((0,)),
        Linear((0, 1), weights=(Fraction(1), Fraction(7)), whole=True),
    )
    measurements = (Measurement("sum", Column("x"), 0, 100), Measurement("rows"))
    recipe = recipe_of(None, estimators=estimators, measurements=measurements)
    noises = (Noise("laplace", 100.0, 0.5, True, 0.5), Noise("geometric", 2.0, whole=True))
    got = answer(
        {"w": Column("a0"), "f": Column("a1"), "c": Column("a2")}, ([12.4], [3]), noises=noises, recipe=recipe
    )
    assert [got.columns[name].dtype.kind for name in "wfc"] == ["i", "f", "i"]
    assert [got.columns[name][0] for name in "wfc"] == [12, 12.4, 33]
    assert got.half_width("w", 0.9)[0] == noises[0].quantile(0.9) == int(noises[0].quantile(0.9))


def test_numbers_beyond_64_bits_stay_numbers() -> None:
    recipe = recipe_of(None, estimators=(Linear((0,), whole=True),), measurements=(SUM,))
    got = answer({"s": Column("a0")}, ([3e30],), noises=(Noise("laplace", 1e29),), recipe=recipe)
    assert got.columns["s"][0] == 3e30
    low, high = got.interval("s", 0.9)
    assert low[0] < 3e30 < high[0]


def test_rows_follow_the_order_of_the_report() -> None:
    recipe = recipe_of(("a", "b", "c"), row_order=(2, 0, 1))
    got = answer({"k": K, "n": N}, THREE, recipe=recipe)
    assert got.columns["k"].tolist() == ["c", "a", "b"]
    assert got.columns["n"].tolist() == [-2, 40, 0]
    assert got.rows.tolist() == [2, 0, 1]
    np.testing.assert_array_equal(got.interval("n", 0.9)[0], got.columns["n"] - PLAIN[0].quantile(0.9))


def test_keys_are_given_back_as_they_are() -> None:
    for keys in (
        ("x", "y", "z"),
        (3, 1, 2),
        (True, False),
        (datetime.date(2020, 1, 1), datetime.date(2020, 2, 1)),
        (1.5,),
    ):
        noisy = tuple(array[: len(keys)] for array in THREE)
        got = answer({"k": K, "n": N}, noisy, keys)
        assert got.columns["k"].tolist() == list(keys)
        assert [type(each) for each in got.columns["k"].tolist()] == [type(each) for each in keys]
        assert got.intervals == ("n",)


def test_two_keys_in_another_order() -> None:
    keys = (Key(Column("g"), ("a", "b")), Key(Column("h"), (1, 2)))
    rows = (("a", 1), ("a", 2), ("b", 1), ("b", 2))
    measured = Measured("t", "1", PrivacyUnit.row(), None, keys, rows, MEASUREMENTS)
    recipe = Recipe(measured, ESTIMATORS, (1, 0), (3, 2, 1, 0), ())
    noisy = tuple(np.arange(4.0) for _ in range(3))
    got = answer({"h": K, "g": Column("k1"), "n": N}, noisy, recipe=recipe)
    assert got.columns["h"].tolist() == [2, 1, 2, 1]
    assert got.columns["g"].tolist() == ["b", "b", "a", "a"]
    assert got.columns["n"].tolist() == [3, 2, 1, 0]


def test_having_order_limit_and_offset_are_applied_to_released_values() -> None:
    keys = tuple("abcdef")
    count = np.array([5, 9, 9, 1, 7, 9])
    noisy = (count, np.zeros(6), np.zeros(6))
    columns = {"k": K, "n": N}
    having = call("greater", N, literal(4))
    by_count = (OrderItem(N, descending=True), OrderItem(K, descending=True))
    got = answer(columns, noisy, keys, having=having, order=by_count)
    assert got.columns["k"].tolist() == ["f", "c", "b", "e", "a"]
    ties = answer(columns, noisy, keys, order=(OrderItem(N, descending=True),))
    assert ties.columns["k"].tolist() == ["b", "c", "f", "e", "a", "d"]
    some = answer(columns, noisy, keys, having=having, order=by_count, limit=2, offset=1)
    assert some.columns["k"].tolist() == ["c", "b"]
    assert len(some.interval("n", 0.9)[0]) == len(some.half_width("n", 0.9)) == 2
    assert answer(columns, noisy, keys, offset=4).columns["k"].tolist() == ["e", "f"]


def test_nulls_are_sorted_to_the_end_that_was_asked_for() -> None:
    noisy = (np.array([0, 3, 1]), np.array([6.0, 6.0, 6.0]), np.zeros(3))
    ratio = call("divide", literal(6.0), N)
    columns = {"k": K, "r": ratio}
    for nulls_first, expected in ((True, ["a", "b", "c"]), (False, ["b", "c", "a"])):
        got = answer(columns, noisy, order=(OrderItem(ratio, nulls_first=nulls_first),))
        assert got.columns["k"].tolist() == expected
    assert got.columns["r"].tolist() == [2.0, 6.0, None]
    low, high = got.interval("r", 0.9)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [False, False, True]


@pytest.mark.parametrize("keys", [("a", "b", "c"), None])
def test_an_empty_answer_has_columns_and_intervals(keys: Sequence[str] | None) -> None:
    noisy = THREE if keys else tuple(array[:1] for array in THREE)
    mixed = call("modulo", N, literal(7))
    everything = {
        "n": N,
        "s": S,
        "m": M,
        "v": V,
        "d": D,
        "r": call("divide", S, N),
        "p": call("multiply", M, D),
        "o": mixed,
    }
    got = answer(everything, noisy, keys, having=call("greater", N, literal(10**6)))
    for name in everything:
        assert (
            len(got.columns[name]) == len(got.interval(name, 0.9)[0]) == len(got.half_width(name, 0.9)) == 0
        )


def test_all_null_columns() -> None:
    got = answer({"z": call("divide", S, literal(0)), "y": call("divide", N, call("subtract", N, N))}, THREE)
    assert got.columns["z"].tolist() == got.columns["y"].tolist() == [None] * 3
    assert np.isnan(got.interval("z", 0.9)).all()
    assert np.isnan(got.half_width("y", 0.9)).all()


def test_only_numbers_with_noise_have_intervals() -> None:
    size = Call("case", (call("greater", N, literal(5)), literal("many"), literal("few")))
    got = answer(
        {"k": K, "size": size, "some": call("greater", N, literal(0)), "five": literal(5), "n": N}, THREE
    )
    assert got.columns["size"].tolist() == ["many", "few", "few"]
    assert got.columns["some"].tolist() == [True, False, False]
    assert got.columns["five"].tolist() == [5, 5, 5]
    assert got.intervals == ("n",)
    for name in ("k", "size", "some", "five"):
        with pytest.raises(InvalidParameter, match="error bar"):
            got.interval(name, 0.9)
    with pytest.raises(InvalidParameter, match="no column"):
        got.interval("nothing", 0.9)
    for confidence in (0, 1, 2):
        with pytest.raises(InvalidParameter):
            got.interval("n", confidence)


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        answer({"n": N}, THREE[:2])
    with pytest.raises(InvalidParameter):
        answer({"n": N}, tuple(array[:2] for array in THREE))
    with pytest.raises(InvalidParameter):
        answer({"n": N}, THREE, noises=PLAIN[:2])


# --- coverage, with the real mechanisms ---------------------------------------------------------------

MANY, FEWER = 8_000, 1_000
UNITS = (Fraction(1), Fraction(1, 2**26), Fraction(1, 2**23))


class Simulation:
    """Many groups with the same exact sums, noised by real mechanisms: coverage is counted over groups."""

    def __init__(
        self,
        law: str,
        n: int,
        *,
        weighted: bool = False,
        spread: float = 9.0,
        mean: float = 3.0,
        size: int = FEWER,
    ) -> None:
        scale = 2**30 if weighted else 1
        units = tuple(unit / scale for unit in UNITS)
        # In fixed point; the exact values are what these integers say.
        integers = tuple(
            int(value / unit)
            for value, unit in zip((n, n * mean, n * (spread + mean**2 - float(SHIFT))), units, strict=True)
        )
        self.exact = tuple(float(integer * unit) for integer, unit in zip(integers, units, strict=True))
        sensitivities = tuple(scale * each for each in (1, 2**29, 2**29))
        mechanisms: list[Any] = [
            Gaussian(sigma=3 * each, sensitivity=each) if law == "gaussian" else Laplace("0.4", each)
            for each in sensitivities
        ]
        if law == "laplace" and not weighted:
            mechanisms[0] = Geometric("0.4", 1)
        self.noises = tuple(
            Noise.of(mechanism, unit, rounded=measurement.whole)
            for mechanism, unit, measurement in zip(mechanisms, units, MEASUREMENTS, strict=True)
        )
        # Noise does not depend on the value: drawn around 0 and added, since weighted sums exceed 64 bits.
        zeros = np.zeros(size, np.int64)
        with seeded(f"{law} {n} {weighted}"):
            drawn = [np.asarray(mechanism.release(zeros)) for mechanism in mechanisms]
        self.noisy = tuple(
            value + noise * float(unit) if unit != 1 else integer + noise
            for value, integer, noise, unit in zip(self.exact, integers, drawn, units, strict=True)
        )
        self.size = size
        self.recipe = recipe_of(range(size))

    def shares(
        self, columns: dict[str, tuple[Expression, float]], confidence: float, understate: float = 1.0
    ) -> dict[str, float]:
        noises = [Noise(n.law, n.scale * understate, n.slack, n.whole, n.rounding) for n in self.noises]
        got = answer(
            {name: each for name, (each, _) in columns.items()}, self.noisy, noises=noises, recipe=self.recipe
        )
        found = {}
        for name, (_, truth) in columns.items():
            low, high = got.interval(name, confidence)
            shown = np.ma.filled(got.columns[name].astype(float), np.nan)
            assert ((low <= shown) & (shown <= high) | np.isnan(shown)).all()
            half = got.half_width(name, confidence)
            assert ((np.abs(shown - truth) <= half) | (truth < low) | (truth > high) | np.isnan(shown)).all()
            inside = (low <= truth) & (truth <= high) | np.isnan(shown)
            found[name] = int(inside.sum())
        return found


simulated = functools.cache(Simulation)  # cases at another confidence look at the same groups


def aggregates(simulation: Simulation) -> dict[str, tuple[Expression, float]]:
    n, s, q = simulation.exact
    divisor = max(n, 1e-300)
    variance = q / divisor + float(SHIFT) - (s / divisor) ** 2 if n else float(SHIFT)
    sample = variance * n / (n - 1) if n > 1 else variance
    return {
        "n": (N, n),
        "s": (S, s + float(CENTER) * n),
        "m": (M, float(CENTER) + (s / n if n else 0.0)),
        "v": (V, min(max(sample, 0.0), 2 * float(HALF) ** 2)),
        "d": (D, math.sqrt(max(variance, 0.0))),
    }


def derived(simulation: Simulation) -> dict[str, tuple[Expression, float]]:
    n = simulation.exact[0]
    truth = aggregates(simulation)
    total, mean, deviation = truth["s"][1], truth["m"][1], truth["d"][1]
    return {
        "double": (call("add", call("multiply", literal(2), N), literal(1)), 2 * n + 1),
        "both": (call("subtract", S, call("multiply", literal(3), N)), total - 3 * n),
        "percent": (call("divide", call("multiply", literal(100.0), S), N), 100 * total / n),
        "guarded": (
            call("coalesce", call("divide", S, call("nullif", N, literal(0))), literal(0)),
            total / n,
        ),
        "shifted": (call("subtract", M, literal(50)), mean - 50),
        "whole": (call("floor", M), math.floor(mean)),
        "product": (call("multiply", M, D), mean * deviation),
        "ratio": (call("divide", D, M), deviation / mean),
        "square": (call("multiply", N, N), n * n),
        "size": (call("abs", call("subtract", N, S)), abs(n - total)),
        "most": (call("greatest", N, S, literal(10)), max(n, total, 10)),
        "root": (call("sqrt", S), math.sqrt(total)),
        "log": (call("ln", N), math.log(n)),
        "rounded": (call("round", M, literal(1)), math.floor(mean * 10 + 0.5) / 10),
        "power": (call("power", D, literal(2)), deviation**2),
        "cast": (call("divide", call("to_float", S), call("to_float", N)), total / n),
        "left": (call("modulo", N, literal(1000)), math.fmod(n, 1000)),
        "case": (Call("case", (call("greater", N, literal(100)), M, literal(0.0))), mean if n > 100 else 0.0),
    }


def covers(counts: dict[str, int], size: int, confidence: float, *, most: float = 1.0) -> None:
    for name, count in counts.items():
        bernoulli_finding(count, size, confidence, most, f"intervals of {name}").require(1e-9)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_every_aggregate_is_covered(law: str, weighted: bool, confidence: float) -> None:
    for n in (0, 1, 3, 20_000):
        simulation = simulated(law, n, weighted=weighted, spread=0.0 if n == 1 else 9.0)
        covers(simulation.shares(aggregates(simulation), confidence), FEWER, confidence)
    ends = simulated(law, 10, weighted=weighted, mean=8.0, spread=0.0)
    covers(ends.shares(aggregates(ends), confidence), FEWER, confidence)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_continuous_noise_is_covered_exactly_and_a_tenth_less_is_noticed(law: str, confidence: float) -> None:
    simulation = simulated(law, 20_000, weighted=True, size=MANY)
    columns = {name: each for name, each in aggregates(simulation).items() if name in "sm"}
    covers(simulation.shares(columns, confidence), MANY, confidence, most=confidence + 1e-3)
    if confidence >= 0.9:
        understated = simulation.shares(columns, confidence, understate=0.9)
        for name in columns:
            with pytest.raises(AssertionError):
                covers({name: understated[name]}, MANY, confidence)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("n", [12, 3000])
def test_expressions_over_results_are_covered(law: str, n: int, confidence: float) -> None:
    simulation = simulated(law, n)
    columns = derived(simulation)
    covers(simulation.shares(columns, confidence), FEWER, confidence)
    if n == 3000 and law == "gaussian":
        exact = {name: columns[name] for name in ("both", "percent", "shifted")}
        covers(simulation.shares(exact, confidence), FEWER, confidence, most=confidence + 1e-3)


def test_rounded_measurements_may_be_handed_over_too() -> None:
    simulation = Simulation("laplace", 400, weighted=True)
    simulation.noisy = (np.rint(simulation.noisy[0]), *simulation.noisy[1:])
    covers(simulation.shares(aggregates(simulation), 0.5), FEWER, 0.5)


def test_a_single_measurement_keeps_the_width_of_its_own_law() -> None:
    got = answer(
        {"n": N, "thousands": call("divide", N, literal(1000)), "less": call("subtract", literal(5), N)},
        THREE,
    )
    for confidence in CONFIDENCES:
        width = PLAIN[0].quantile(confidence)
        assert got.half_width("n", confidence).tolist() == [width] * 3
        assert got.half_width("thousands", confidence) == pytest.approx(width / 1000)
        assert got.half_width("less", confidence).tolist() == [width] * 3


def test_several_sources_of_noise_share_the_risk() -> None:
    got = answer(
        {"p": call("multiply", M, D), "m": M, "d": D, "twice": call("multiply", N, N), "n": N}, THREE
    )
    parts = [got.interval(name, "0.95") for name in "md"]
    corners = np.stack([a * b for a in parts[0] for b in parts[1]])
    low, high = got.interval("p", "0.9")
    assert low == pytest.approx(corners.min(axis=0))
    assert high == pytest.approx(corners.max(axis=0))
    assert got.interval("twice", "0.9")[1][0] == got.interval("n", "0.9")[1][0] ** 2  # one source only


def test_conditions_on_keys_are_known_and_those_on_noise_are_not() -> None:
    on_key = Call("case", (call("equal", K, literal("a")), N, call("multiply", literal(10), N)))
    on_noise = Call("case", (call("greater", N, literal(1)), N, literal(-1000)))
    got = answer({"k": on_key, "n": on_noise, "plain": N}, THREE)
    width = PLAIN[0].quantile(0.9)
    assert got.half_width("k", 0.9).tolist() == [width, 10 * width, 10 * width]
    assert got.interval("n", 0.9)[0].tolist() == [-1000.0] * 3


def test_keys_take_part_in_arithmetic_exactly() -> None:
    got = answer({"r": call("divide", N, K), "s": call("add", N, K)}, THREE, (1, 2, 4))
    width = PLAIN[0].quantile(0.9)
    assert got.half_width("r", 0.9) == pytest.approx([width, width / 2, width / 4])
    assert got.half_width("s", 0.9) == pytest.approx([width] * 3)
