"""Scalers, quantiles, bins, encoders: sums within their claims, bounds that hold, figures of scikit-learn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sklearn.preprocessing as theirs

import sfumato as sf
from sfumato import learn
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Category, Number, number
from sfumato.learn._core.design import UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._steps import counts as counting
from sfumato.learn._steps import spreads as spreading
from sfumato.learn._steps.counts import cell_of, counts
from sfumato.learn._steps.quantiles import below, levels
from sfumato.learn._steps.spreads import spreads
from sfumato.loss import NO_LOSS

PRICE = {"epsilon": 1, "delta": "1e-6"}
RICH = {"epsilon": 10**6, "delta": "1e-6"}
PAID = {
    "standard": lambda: learn.StandardScaler(**PRICE, bounds=(-3, 5)),
    "plain standard": lambda: learn.StandardScaler(**PRICE, bounds=(-3, 5), with_mean=False, with_std=False),
    "bought range": lambda: learn.MinMaxScaler(**PRICE, bounds=(-3, 5), quantile_range=(5, 95)),
    "quantiles": lambda: learn.QuantileTransformer(**PRICE, bounds=(-3, 5), cells=16),
    "normal": lambda: learn.QuantileTransformer(**PRICE, bounds=(-3, 5), output_distribution="normal"),
    "bins": lambda: learn.KBinsDiscretizer(**PRICE, bounds=(-3, 5)),
    "ordinal bins": lambda: learn.KBinsDiscretizer(**PRICE, bounds=(-3, 5), encode="ordinal"),
    "common": lambda: learn.OneHotEncoder(
        **PRICE, bounds={"0": sf.Enum(-3, 5), "1": (-3, 5)}, min_frequency=0.2
    ),
}
FREE = {
    "declared range": lambda: learn.MinMaxScaler(bounds=(-3, 5), feature_range=(-1, 2)),
    "equal bins": lambda: learn.KBinsDiscretizer(bounds=(-3, 5), strategy="uniform"),
    "one-hot": lambda: learn.OneHotEncoder(bounds={"0": sf.Enum(-3, 5), "1": (-3, 5)}),
}
ALL = PAID | FREE


def made(seed, *, signed):
    """Random rows with extremes among them; now and then one person has most of them."""
    rng = np.random.default_rng(seed)
    columns = [number(f"n{at}", -1, 1) for at in range(rng.integers(1, 4))]
    columns += [] if signed else [Category("c", tuple("abc"))]
    size = int(rng.integers(0, 30))
    values = [
        rng.integers(-1, 3, size) if isinstance(column, Category) else rng.choice([-9, -1, -0.3, 0, 1], size)
        for column in columns
    ]
    design = Design(columns, intercept=False, signed=signed)
    units = rng.integers(0, 1 + size // 4, size) if seed % 2 else None
    return Rows(design, design.integers(values), None, units)


def without(rows, unit):
    kept = rows.units != unit if rows.units is not None else np.arange(len(rows)) != unit
    return Rows(rows.design, rows.integers[kept], None, None if rows.units is None else rows.units[kept])


def counted(rows):
    return counts(rows, range(len(rows.design.columns)), 4)


def spread(rows):
    return spreads(rows, range(len(rows.design.columns)))


def farthest(measured, rows):
    """How far the farthest unit moves the sums, as a part of the claim."""
    whole = measured(rows)
    units = range(len(rows)) if rows.units is None else np.unique(rows.units)
    parts = [Fraction(0)]
    for unit in units:
        other = measured(without(rows, unit))
        assert other.sensitivity == whole.sensitivity
        moved = sum((int(a) - int(b)) ** 2 for a, b in zip(whole.values, other.values, strict=True))
        parts.append(Fraction(moved) / whole.sensitivity**2)
    return max(parts)


@pytest.mark.parametrize(("measured", "signed"), [(counted, False), (spread, True)])
def test_nobody_moves_sums_beyond_the_claim_and_somebody_comes_close(measured, signed):
    parts = [farthest(measured, made(seed, signed=signed)) for seed in range(40)]
    assert max(parts) <= 1
    assert max(parts) > 0.99


@pytest.mark.parametrize(
    ("module", "name", "bug", "measured", "signed"),
    [
        (counting, "_weights", lambda units: np.full(len(units), 2.0**20), counted, False),
        (spreading, "clipped", lambda lines, bound: lines, spread, True),
        (spreading, "sqrt_up", lambda exact: float(exact) ** 0.5 / 2, spread, True),
        (counting, "sqrt_up", lambda exact: 1.0, counted, False),
    ],
    ids=[
        "rows weigh as units do",
        "no clipping of units",
        "half the claim",
        "columns are not counted in the claim",
    ],
)
def test_a_planted_bug_is_seen(monkeypatch, module, name, bug, measured, signed):
    monkeypatch.setattr(module, name, bug)
    assert max(farthest(measured, made(seed, signed=signed)) for seed in range(40)) > 1


@pytest.mark.parametrize("seed", range(0, 8, 2))
def test_sums_are_those_of_slow_arithmetic(seed):
    rows = made(seed, signed=True)
    slow = [
        [UNIT**2, *(int(x) * UNIT for x in row), *(UNIT**2 - int(x) ** 2 for x in row)]
        for row in rows.integers
    ]
    assert spread(rows).values.tolist() == [
        sum(line[at] for line in slow) for at in range(1 + 2 * len(rows.design.columns))
    ]
    rows = made(seed, signed=False)
    place, expected = 0, []
    for column in rows.design.columns:
        if isinstance(column, Number):
            cells = [min(int(row[place]) * 4 // UNIT, 3) for row in rows.integers]
            expected += [cells.count(cell) for cell in range(4)]
            place += 1
        else:
            expected += [sum(int(row[place + at]) > 0 for row in rows.integers) for at in range(3)]
    assert counted(rows).values.tolist() == expected


def test_cells_are_equally_wide_and_hold_their_ends():
    assert cell_of(np.array([0, UNIT // 4 - 1, UNIT // 4, UNIT], np.int16), 4).tolist() == [0, 0, 1, 3]


def test_distributions_ascend_whatever_the_noise():
    rng = np.random.default_rng(0)
    for noisy in (rng.normal(0, 100, 64), -np.ones(8), np.zeros(5), rng.normal(50, 5, 100)):
        shares = below(noisy)
        assert (np.diff(shares) > 0).all()
        assert shares[0] == 0
        assert shares[-1] == pytest.approx(1)
        found = levels(noisy, np.linspace(0, 1, 11), -2.0, 7.0)
        assert (np.diff(found) >= 0).all()
        assert found.min() >= -2
        assert found.max() <= 7


DATA = np.random.default_rng(1).choice([-3.0, 5.0, 0.1, 2.5, -1.7, 9.0, -40.0], (200, 2))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("size", [1, 200])
def test_what_comes_out_is_within_the_public_bounds(name, size):
    step = ALL[name]().fit(DATA[:size])
    changed = step.transform(DATA)
    bounds = step.output_bounds_
    assert list(bounds) == step.get_feature_names_out().tolist()
    lower, upper = np.array(list(bounds.values())).T
    assert (lower <= changed).all()
    assert (changed <= upper).all()
    assert step.inverse_transform(changed).shape == DATA.shape
    with pytest.raises(InvalidValue, match="columns"):
        step.inverse_transform(np.ones((2, 99)))


@pytest.mark.parametrize("name", PAID)
def test_tables_without_rows_give_a_step(name):
    step = PAID[name]()
    rows = step._rows(DATA, None, None)
    empty = Rows(rows.design, rows.integers[:0])
    step._keep(rows.design, step._learn(empty, Meter.alone(step._price())), step._price(), None)
    assert np.isfinite(step.transform(DATA)).all()


@pytest.mark.parametrize("name", FREE)
def test_what_is_declared_costs_nothing(name):
    step = FREE[name]().fit(DATA)
    assert step.loss == NO_LOSS
    assert step.receipt is None
    with pytest.raises(InvalidParameter, match="leave epsilon and delta out"):
        FREE[name]().set_params(epsilon=1, delta=1e-6).fit(DATA)
    with pytest.raises(InvalidParameter, match="buys no bounds"):
        FREE[name]().set_params(bounds="auto").fit(DATA)


@pytest.mark.parametrize("name", PAID)
def test_what_is_bought_has_a_price(name):
    assert PAID[name]().fit(DATA).loss.point == (1, Fraction("1e-6"))
    with pytest.raises(InvalidParameter, match="epsilon=1"):
        PAID[name]().set_params(epsilon=None).fit(DATA)


def test_without_noise_steps_are_scikit_learns():
    data = np.random.default_rng(2).normal(size=(4000, 2)).clip(-3, 3)
    mine = learn.StandardScaler(**RICH, bounds=(-4, 4)).fit(data)
    other = theirs.StandardScaler().fit(data)
    assert mine.mean_ == pytest.approx(other.mean_, abs=1e-3)
    assert mine.scale_ == pytest.approx(other.scale_, abs=1e-3)
    assert mine.transform(data) == pytest.approx(other.transform(data), abs=5e-3)
    assert mine.inverse_transform(mine.transform(data)) == pytest.approx(data)
    mine = learn.QuantileTransformer(**RICH, bounds=(-4, 4), cells=1024).fit(data)
    other = theirs.QuantileTransformer(n_quantiles=100).fit(data)
    assert mine.transform(data) == pytest.approx(other.transform(data), abs=0.01)
    mine = learn.KBinsDiscretizer(**RICH, bounds=(-4, 4), encode="ordinal").fit(data)
    edges = np.quantile(data, [0.2, 0.4, 0.6, 0.8], axis=0).T
    assert np.array([line[1:-1] for line in mine.bin_edges_]) == pytest.approx(edges, abs=0.02)
    ends = np.array([[-4.0, -4], [4, 4]])
    for ours, other in (
        (learn.MinMaxScaler(bounds=(-4, 4)), theirs.MinMaxScaler()),
        (
            learn.KBinsDiscretizer(bounds=(-4, 4), strategy="uniform"),
            theirs.KBinsDiscretizer(strategy="uniform", encode="onehot-dense"),
        ),
    ):
        assert ours.fit_transform(data) == pytest.approx(other.fit(ends).transform(data))


def test_categories_are_those_declared_and_numbers_pass():
    frame = pd.DataFrame({"sex": ["F", "M", "?"], "age": [20, 200, 30]})
    step = learn.OneHotEncoder(bounds={"sex": ["F", "M"], "age": (0, 100)}).set_output(transform="pandas")
    changed = step.fit_transform(frame)
    assert changed.columns.tolist() == ["sex_F", "sex_M", "age"]
    assert changed.to_numpy().tolist() == [[1, 0, 20], [0, 1, 100], [0, 0, 30]]
    assert step.inverse_transform(changed).tolist() == [["F", 20], ["M", 100], [None, 30]]
    with pytest.raises(InvalidParameter, match="OneHotEncoder before it"):
        learn.StandardScaler(**PRICE, bounds={"sex": ["F", "M"], "age": (0, 100)}).fit(frame)


def test_rare_categories_share_a_column():
    cells = np.array([["a"]] * 300 + [["b"]] * 200 + [["c"]] * 3, dtype=object)
    step = learn.OneHotEncoder(epsilon=50, delta=1e-6, bounds={"0": list("abcd")}, min_frequency=0.1).fit(
        cells
    )
    assert step.infrequent_categories_ == [("c", "d")]
    assert step.get_feature_names_out(["kind"]).tolist() == ["kind_a", "kind_b", "kind_infrequent"]
    assert step.transform([["a"], ["d"], ["?"]]).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_columns_of_one_category_weigh_as_one():
    alike = [Number(name, Fraction(0), Fraction(1), "sex") for name in ("F", "M")]
    design = Design([number("age", 0, 1), *alike], signed=True)
    assert design.most == 3
    rows = design.integers(np.array([[0.0, 1, 0], [1, 0, 0]]))
    assert rows.tolist() == [[-UNIT, UNIT, 0], [UNIT, 0, 0]]
    assert design.own_scale(np.array([1.0, 2, 3, 4]))[0].tolist() == [2, 2, 3]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (learn.StandardScaler(**PRICE, bounds=(0, 1), clip=0.001), "clip"),
        (learn.MinMaxScaler(bounds=(0, 1), feature_range=(1, 0)), "feature_range"),
        (learn.MinMaxScaler(**PRICE, bounds=(0, 1), quantile_range=(0, 101)), "quantile_range"),
        (learn.QuantileTransformer(**PRICE, bounds=(0, 1), n_quantiles=1), "n_quantiles"),
        (learn.QuantileTransformer(**PRICE, bounds=(0, 1), cells=1), "cells"),
        (learn.QuantileTransformer(**PRICE, bounds=(0, 1), output_distribution="cauchy"), "normal"),
        (learn.KBinsDiscretizer(**PRICE, bounds=(0, 1), n_bins=1), "n_bins"),
        (learn.KBinsDiscretizer(**PRICE, bounds=(0, 1), encode="onehot"), "onehot-dense"),
        (learn.KBinsDiscretizer(**PRICE, bounds=(0, 1), strategy="kmeans"), "strategy"),
        (learn.OneHotEncoder(**PRICE, bounds={"0": ["a"]}, min_frequency=-1), "min_frequency"),
        (learn.StandardScaler(**PRICE), "Bounds are needed"),
    ],
)
def test_bad_declarations_are_refused(step, words):
    with pytest.raises(InvalidParameter, match=words):
        step.fit([[0.5], [0.2]])
    assert not hasattr(step, "design_")


@pytest.mark.parametrize("name", ALL)
def test_a_step_is_written_and_read_back(name, tmp_path):
    step = ALL[name]().fit(DATA)
    learn.save(step, tmp_path / "step.json")
    again = learn.load(tmp_path / "step.json")
    assert again.transform(DATA).tolist() == step.transform(DATA).tolist()
    assert again.loss == step.loss
