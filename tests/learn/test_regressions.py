"""Regressions: questions keep their claims on any neighbours, odd tables give models, and they are good."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import learn_coverage as least_squares
from benchmarks import learn_coverage_logistic as coverage

from sfumato.errors import InvalidParameter, NotCertified
from sfumato.fits.meter import Meter, price
from sfumato.learn import LinearRegression, LogisticRegression, PoissonRegression, Ridge
from sfumato.learn._core import sums
from sfumato.learn._core.declared import Number
from sfumato.learn._core.design import Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._weights import standard
from sfumato.learn._weights.curves import logistic
from sfumato.learn._weights.descent import field
from sfumato.learn._weights.standard import averages, curvature, means, parts
from sfumato.testing.fits import check_pair
from sfumato.testing.stream import seeded

PAID = {"epsilon": 1, "delta": "1e-6"}
BOUNDS = {"a": (0, 4), "b": (-1, 1), "c": ["x", "y", "z"]}
MODELS = {
    "two classes": lambda: LogisticRegression(**PAID, bounds=BOUNDS, classes=[0, 1]),
    "three classes": lambda: LogisticRegression(**PAID, bounds=BOUNDS, classes=[0, 1, 2]),
    "a line": lambda: LinearRegression(**PAID, bounds=BOUNDS, target_bounds=(0, 2)),
    "a ridge": lambda: Ridge(**PAID, bounds=BOUNDS, target_bounds=(0, 2), alpha=0.5),
    "counts": lambda: PoissonRegression(**PAID, bounds=BOUNDS, target_bounds=(0, 2)),
}


def table(seed, size):
    """Numbers within and beyond their bounds, categories listed or not, people with many rows."""
    rng = np.random.default_rng(seed)
    X = pa.table(
        {
            "a": rng.choice([-9.0, 0, 0.1, 2, 4, 50], size),
            "b": rng.uniform(-2, 2, size),
            "c": rng.choice(["x", "y", "z", "none"], size).tolist(),
        }
    )
    units = rng.integers(0, 1 + size // 3, size) if seed % 2 else np.arange(size)
    return X, rng.integers(0, 2, size), units


def without(X, y, units, unit):
    kept = units != unit
    return X.filter(kept.tolist()), y[kept], units[kept]


def neighbours(name, seed):
    model, other = MODELS[name](), MODELS[name]()
    X, y, units = table(seed, 12)
    fewer = without(X, y, units, units[seed % 12])
    grouped = seed % 2
    left = model._rows(X, y, units if grouped else None)
    right = other._rows(fewer[0], fewer[1], fewer[2] if grouped else None)
    return model, left, other, right


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", MODELS)
def test_nobody_moves_a_question_beyond_its_claim(name, seed):
    check_pair(*neighbours(name, seed))


def _all_of_it(rows):
    return None if rows.units is None else np.full(len(rows), 2.0**20)


@pytest.mark.parametrize(
    ("module", "name", "bug"),
    [
        (standard, "parts", _all_of_it),
        (sums, "_held", lambda found, *_: found * 2),
    ],
    ids=["each of a unit's rows counts as a whole", "no clipping"],
)
def test_a_planted_bug_is_seen(monkeypatch, module, name, bug):
    monkeypatch.setattr(module, name, bug)
    seen = 0
    for seed in range(6):
        try:
            check_pair(*neighbours("two classes", seed))
        except AssertionError:
            seen += 1
    assert seen


def few(seed, *, units):
    X, y, whose = table(seed, 17)
    return MODELS["two classes"]()._rows(X, y, whose if units else None)


class Exact(Meter):
    """Gives sums as they are."""

    def noisy(self, total, share):
        return np.array([float(int(value) * total.step) for value in total.values])


@pytest.mark.parametrize("units", [False, True])
def test_means_and_averages_are_those_of_slow_arithmetic(units):
    rows = few(5, units=units)
    shares = parts(rows)
    whole = [Fraction(int(share), 2**20) for share in shares] if units else [Fraction(1)] * len(rows)
    if units:
        assert all(
            sum(whole[at] for at in np.flatnonzero(rows.units == unit)) <= 1 for unit in set(rows.units)
        )
    counted = averages(rows, [(slice(None), rows.target[:, None] * 2.0**20)], 1, Fraction(1))
    exact = sum(share * int(label) for share, label in zip(whole, rows.target, strict=True))
    assert int(counted.values[0]) * counted.step == exact
    paid = price(1, "1e-6")
    mean, variance, _ = means(rows, Exact.alone(paid), Fraction(1, 10), 1.0)
    count = float(sum(whole))
    mean, variance, _ = means(rows, Exact.alone(paid), Fraction(1, 10), count)
    slow = [
        sum(share * Fraction(int(x), 2**14) for share, x in zip(whole, column, strict=True)) / sum(whole)
        for column in rows.integers.T
    ]
    assert mean == pytest.approx([float(x) for x in slow], abs=1e-12)
    squares = [
        sum(share * (Fraction(int(x), 2**14) - middle) ** 2 for share, x in zip(whole, column, strict=True))
        / sum(whole)
        for column, middle in zip(rows.integers.T, slow, strict=True)
    ]
    assert variance == pytest.approx([float(x) for x in squares], abs=1e-5)


@pytest.mark.parametrize("units", [False, True])
def test_curvature_is_that_of_slow_arithmetic_where_no_row_is_long(units):
    rows = few(5, units=units)
    paid = price(1, "1e-6")
    scale = standard.standard(rows, Exact.alone(paid), Fraction(1, 10), 17.0)
    near = scale.rows(rows)
    bent = curvature(near, Exact.alone(paid), Fraction(1, 10), 17.0, 40.0)
    shares = parts(near)
    whole = np.ones(len(near)) if shares is None else shares / 2.0**20
    z = near.integers * (standard.REACH / 2.0**14)
    assert bent.matrix - bent.ridge * np.eye(len(bent.matrix)) == pytest.approx(
        (z * whole[:, None]).T @ z / 17, abs=0.02
    )


@pytest.mark.parametrize("units", [False, True])
def test_one_pass_over_the_rows_gives_what_two_give(units):
    rows = few(5, units=units)
    near = field(rows, Exact.alone(price(1, "1e-6")), 17.0, scaling=Fraction(1, 10), bending=Fraction(1, 10))
    weights = np.linspace(-1, 1, near.standard.width)[:, None]

    def residuals(place, margins):
        return logistic(margins) - rows.target[place, None] * 2.0**20

    def weigh(_, margins):
        return logistic(margins) * 2.0**-20

    share = Fraction(1, 10)
    slope, bent = near.gradient_and_bent(weights, residuals, weigh, 1.0, (share, share))
    assert (slope == near.gradient(weights, residuals, 1.0, share)).all()
    assert (bent.matrix == near.bent(weights, weigh, share).matrix).all()
    assert np.abs(bent.matrix - near.curvature.matrix).max() > 0.01


def test_squares_that_are_found_on_the_way_are_those_of_all_rows():
    left, right = few(5, units=False), few(5, units=False)
    places = [slice(0, 5), slice(5, 12), slice(12, 17)]
    blocks = [right.integers[place].astype(float) for place in places]
    for at in (1, 0, 2, 1):  # in any order
        whole = np.column_stack([blocks[at], np.full(len(blocks[at]), 2.0**14)])
        assert (right.squares_of(places[at], whole) == left.squares()[places[at]]).all()
    assert (right.squares() == left.squares()).all()


class Seen(Exact):
    """Keeps the last sums that it was asked for."""

    def noisy(self, total, share):
        self.total = total
        return super().noisy(total, share)


def bends(units, weigh):
    """By how much each unit moves the curvature, over what is claimed; rows are as long as they can be."""
    rng = np.random.default_rng(3)
    integers = (rng.choice([0, 40, 512, -700, 16384], (12, 3))).astype(np.int16)
    integers[0] = 16384
    design = Design([Number(f"z{at}", Fraction(-1), Fraction(1)) for at in range(3)], intercept=False)
    whose = np.arange(12) // 2 if units else None

    def total(kept):
        rows = Rows(design, integers[kept], None, None if whose is None else whose[kept])
        meter = Seen.alone(price(1, "1e-6"))
        curvature(rows, meter, Fraction(1, 10), 12.0, 2.0, weigh=weigh)
        return meter.total

    everyone = np.arange(12) if whose is None else whose
    whole = total(everyone >= 0)
    moves = [whole.values - total(everyone != unit).values for unit in set(everyone)]
    return [sum(int(value) ** 2 for value in moved) / whole.sensitivity**2 for moved in moves]


WEIGHED = pytest.mark.parametrize("weigh", [None, lambda _, block: np.full(len(block), 0.9)])


@WEIGHED
@pytest.mark.parametrize("units", [False, True])
def test_nobody_moves_the_curvature_beyond_the_claim_however_long_a_row_is(units, weigh):
    assert max(bends(units, weigh)) <= 1


@WEIGHED
@pytest.mark.parametrize("units", [False, True])
def test_rows_that_are_not_shortened_are_seen(monkeypatch, units, weigh):
    monkeypatch.setattr(standard, "_SHORTER", 1.5)
    assert max(bends(units, weigh)) > 1


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [0, 1, 5])
def test_odd_tables_give_models(name, size):
    model = MODELS[name]()
    X, _, units = table(1, size)
    rows = model._rows(X, np.ones(size, np.int64), units)  # one class, a constant target
    learned = model._learn(rows, Meter.alone(model.loss))
    model._keep(rows.design, learned, model.loss, None)
    assert all(np.isfinite(np.asarray(part)).all() for part in learned.values())
    seen = model.predict(table(2, 6)[0])
    assert seen.shape == (6,)
    if hasattr(model, "classes_"):
        assert set(seen.tolist()) <= set(model.classes_.tolist())
        assert model.predict_proba(table(2, 6)[0]).sum(axis=1) == pytest.approx(np.ones(6))
    if name != "counts":
        with pytest.raises(NotCertified, match="No standard errors here"):
            _ = model.standard_errors_


def drawn(seed, size, slopes, *, spread=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (size, len(slopes))).clip(-5, 5)
    margin = X @ np.array(slopes)
    return (
        X,
        margin,
        margin + rng.normal(0, spread, size),
        (rng.random(size) < 1 / (1 + np.exp(-margin))).astype(int),
    )


def test_models_come_close_to_the_truth_where_there_is_plenty():
    X, margin, y, labels = drawn(1, 20_000, [1.0, -0.5])
    with seeded(3):
        line = LinearRegression(epsilon=1, delta=1e-6, bounds=(-5, 5), target_bounds=(-8, 8)).fit(X, y)
        two = LogisticRegression(epsilon=1, delta=1e-6, bounds=(-5, 5), classes=[0, 1]).fit(X, labels)
    assert line.coef_ == pytest.approx([1, -0.5], abs=0.05)
    assert two.coef_[0] == pytest.approx([1, -0.5], abs=0.1)
    assert two.odds_ratios()[0, 1] < np.e < two.odds_ratios()[0, 2]
    assert two.predict_log_proba(X[:3]) == pytest.approx(np.log(two.predict_proba(X[:3])))
    assert (line.p_values_[:2] < 1e-6).all()
    low, high = line.confidence_intervals(0.999)[0]
    assert low < 1 < high
    with pytest.raises(InvalidParameter, match="level"):
        line.confidence_intervals(1.0)
    assert np.corrcoef(line.predict(X), margin)[0, 1] > 0.99


def test_three_classes_are_told_apart():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 4000)
    X = (np.array([[0, 2], [2, 0], [-2, -2]])[labels] + rng.normal(0, 1, (4000, 2))).clip(-6, 6)
    with seeded(1):
        model = LogisticRegression(epsilon=1, delta=1e-6, bounds=(-6, 6), classes=[2, 0, 1]).fit(X, labels)
    assert model.score(X, labels) > 0.9
    assert model.coef_.shape == (3, 2)
    with pytest.raises(NotCertified, match="more than two classes"):
        model.odds_ratios()


def test_counts_are_expected_where_they_are():
    X, margin, _, _ = drawn(6, 20_000, [0.6, -0.3])
    y = np.random.default_rng(7).poisson(np.exp(margin + 0.5))
    with seeded(5):
        model = PoissonRegression(epsilon=1, delta=1e-6, bounds=(-5, 5), target_bounds=(0, 40)).fit(X, y)
    assert model.coef_ == pytest.approx([0.6, -0.3], abs=0.05)
    assert model.intercept_ == pytest.approx(0.5, abs=0.05)
    assert model.predict(X).max() <= 40
    with pytest.raises(InvalidParameter, match="begin at 0"):
        PoissonRegression(**PAID, bounds=(-5, 5), target_bounds=(1, 40)).fit(X, y)


def test_a_penalty_draws_weights_to_zero_and_has_no_intervals():
    X, _, y, _ = drawn(4, 20_000, [1.0])
    with seeded(5):
        ridge = Ridge(epsilon=5, delta=1e-6, bounds=(-5, 5), target_bounds=(-8, 8), alpha=20_000).fit(X, y)
    assert ridge.coef_ == pytest.approx([0.5], abs=0.03)
    with pytest.raises(NotCertified, match="penalty"):
        ridge.confidence_intervals()
    with pytest.raises(InvalidParameter, match="alpha"):
        Ridge(epsilon=1, delta=1e-6, bounds=(-5, 5), target_bounds=(-8, 8), alpha=-1).fit(X[:5], y[:5])


def held(kind, runs, size, slopes, epsilon):
    """How often intervals of 95 % hold the true weights, where they are told."""
    hits, truth = [], np.append(slopes, 0.0)
    for seed in range(runs):
        X, _, y, labels = drawn(100 + seed, size, slopes)
        with seeded(seed):
            if kind == "line":
                model = LinearRegression(epsilon=epsilon, delta=1e-6, bounds=(-5, 5), target_bounds=(-12, 12))
                model.fit(X, y)
            else:
                model = LogisticRegression(epsilon=epsilon, delta=1e-6, bounds=(-5, 5), classes=[0, 1])
                model.fit(X, labels)
        try:
            ends = model.confidence_intervals(0.95)
        except NotCertified:
            continue
        hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert len(hits) > runs / 2
    return float(np.mean(hits)), len(hits) * len(truth)


@pytest.mark.parametrize("kind", ["line", "two classes"])
def test_intervals_hold(kind):
    rate, count = held(kind, 12, 6_000, [0.8], 4)
    assert rate > 0.95 - 4.5 * (0.95 * 0.05 / count) ** 0.5


@pytest.mark.stats
@pytest.mark.parametrize("kind", ["line", "two classes"])
@pytest.mark.parametrize(("size", "slopes", "epsilon"), [(30_000, [0.8, -0.3, 0.0], 1), (4_000, [1.0], 8)])
def test_intervals_hold_no_more_than_one_percent_less_often(kind, size, slopes, epsilon):
    rate, count = held(kind, 1500, size, slopes, epsilon)
    assert rate > 0.94 - 2 * (0.95 * 0.05 / count) ** 0.5, rate


def test_what_is_cut_of_errors_with_a_long_tail_is_in_the_interval_of_the_intercept():
    case, hits = least_squares.Case("normal", "log-normal", 3, 1.0), []
    columns, target = case.bounds()
    for seed in range(12):
        X, y = case.drawn(np.random.default_rng(seed), case.size)
        with seeded(seed):
            model = LinearRegression(1, 1e-6, bounds=columns, target_bounds=target).fit(X, y)
        low, high = model.confidence_intervals(0.95)[-1]
        hits.append(low <= case.weights[-1] <= high)
    assert np.mean(hits) > 0.7


@pytest.mark.stats
@pytest.mark.parametrize(
    ("columns", "chances", "times"),
    [("half are 1", "strong", 1.8), ("exponential", "rare", 5), ("a tenth are 1", "weak", 1.5)],
)
def test_intervals_hold_where_few_rows_say_much(columns, chances, times):
    hits, offered, _ = coverage.held(coverage.Design(columns, chances, 1, 8.0, times=times), 400, seed=3)
    assert offered > 200
    assert hits.sum() / (2 * offered) > 0.94 - 2 * (0.95 * 0.05 / (2 * offered)) ** 0.5


def test_a_column_that_decides_the_class_has_no_interval():
    rng = np.random.default_rng(5)
    X = (rng.random((6000, 2)) < 0.5).astype(float)
    labels = np.where(X[:, 0] > 0, 1, rng.integers(0, 2, 6000))
    with seeded("decides"):
        model = LogisticRegression(epsilon=8, delta=1e-6, bounds=(0, 1), classes=[0, 1]).fit(X, labels)
    assert model.coef_[0, 0] > 3
    with pytest.raises(NotCertified, match="No standard errors here"):
        model.odds_ratios()


def test_steps_that_have_not_settled_have_no_interval():
    # Plenty of rows and little noise, so that nothing else stands in the way.
    X, _, _, labels = drawn(5, 20_000, [12.0])
    with seeded("long steps"):
        model = LogisticRegression(epsilon=40, delta=1e-6, bounds=(-5, 5), classes=[0, 1]).fit(X, labels)
    with pytest.raises(NotCertified, match="steps were still long at the end"):
        model.odds_ratios()


def test_categories_do_not_drift_against_the_intercept():
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(0, 2, 3000), rng.integers(0, 2, 3000)
    frame = pa.table({"sex": np.array(["F", "M"])[codes], "age": rng.uniform(0, 1, 3000)})
    with seeded("drift"):
        model = LogisticRegression(1, 1e-6, {"sex": ["F", "M"], "age": (0, 1)}, [0, 1]).fit(frame, labels)
    assert np.abs(model.coef_).max() < 2
    assert abs(model.intercept_[0]) < 2
    assert model.coef_[0, 0] + model.coef_[0, 1] == pytest.approx(model.intercept_[0])
