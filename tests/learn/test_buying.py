"""Bounds that a fit buys: within the claim for every unit, out of the fit's own price, and near the data."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.learn import Moments, base
from sfumato.learn._core import buying
from sfumato.learn._core.buying import SHARE, sizes
from sfumato.learn._core.declared import declared
from sfumato.learn.examples import Example, Given, examples
from sfumato.plan.questions.unbounded import GRID
from sfumato.testing.fits import check_fit

PAID = {"epsilon": 1, "delta": "1e-6"}


def table(seed, *, units):
    """Columns of any sizes, somebody with most of the rows among people with few."""
    rng = np.random.default_rng(seed)
    size, width = int(rng.integers(0, 25)), int(rng.integers(1, 5))
    sizes_ = np.array([0, 1, -1, 1e-30, 0.3, -70, 1e6, 1e300, -1e300, 2**53])
    columns = [rng.choice(sizes_[: rng.integers(1, len(sizes_))], size) for _ in range(width)]
    return columns, rng.integers(0, 1 + size // 4, size) if units else None


def moved(columns, units):
    """The most that anybody moves the counts, squared, over what is claimed."""
    whole = sizes(columns, units)
    worst = Fraction(0)
    for unit in range(len(columns[0])) if units is None else np.unique(units):
        kept = np.arange(len(columns[0])) != unit if units is None else units != unit
        fewer = sizes([column[kept] for column in columns], None if units is None else units[kept])
        assert (fewer.sensitivity, fewer.step) == (whole.sensitivity, whole.step)
        square = sum((int(a) - int(b)) ** 2 for a, b in zip(whole.values, fewer.values, strict=True))
        worst = max(worst, square / whole.sensitivity**2)
    return worst


@pytest.mark.parametrize("seed", range(16))
def test_nobody_moves_the_counts_beyond_the_claim(seed):
    assert moved(*table(seed, units=seed % 2 == 0)) <= 1


@pytest.mark.parametrize(
    ("name", "bug", "units"),
    [
        ("sqrt_up", lambda exact: 1.0, False),
        ("_factors", lambda squares, most: np.ones_like(squares), True),
        ("_SHORTER", 1 + 2.0**-9, True),
    ],
    ids=["a column is free", "no clipping of units", "clipped a little too long"],
)
def test_a_planted_bug_is_seen(monkeypatch, name, bug, units):
    monkeypatch.setattr(buying, name, bug)
    assert any(moved(*table(seed, units=units)) > 1 for seed in range(40))


@pytest.mark.parametrize("seed", range(4))
def test_rows_without_units_are_counted_whole(seed):
    columns, _ = table(seed, units=False)
    counts = sizes(columns, None).values.reshape(len(columns), GRID.cells)
    for column, found in zip(columns, counts.tolist(), strict=True):
        assert found == [int(np.sum(GRID.cell_of(column) == cell)) for cell in range(GRID.cells)]


def test_bounds_are_near_the_data_and_are_told_with_their_price():
    rng = np.random.default_rng(7)
    columns = np.c_[rng.normal(40, 5, 4000), rng.uniform(0, 1, 4000) * 1000]
    model = Moments(**PAID, bounds={"x0": "auto", "x1": (0, 1000)}).fit(columns)
    lower, upper = model.bounds_["x0"]
    assert 10 <= lower <= 33
    assert 47 <= upper <= 80
    assert set(model.bounds_) == {"x0"}
    assert abs(model.mean_[0] - 40) < 3
    paid = model.bounds_paid_
    assert (paid.share, paid.rho) == (SHARE, model.loss.rho * SHARE)
    assert "x0" in str(paid)
    assert "1/10" in str(paid)
    assert model.loss == Moments(**PAID, bounds=(0, 1)).loss
    model.set_params(bounds=(0, 1000)).fit(columns)
    assert not hasattr(model, "bounds_")
    assert not hasattr(model, "bounds_paid_")


@pytest.mark.parametrize("values", [[[0.0, 0.0]], [[1e300, -1e300]], [[5.0, 5.0]] * 50])
def test_any_rows_give_bounds_and_a_model(values):
    model = Moments(**PAID, bounds="auto").fit(values)
    assert all(lower < upper for lower, upper in model.bounds_.values())
    assert np.isfinite(model.mean_).all()


def test_a_bound_read_off_the_data_is_seen(monkeypatch):
    rows = np.full((20, 1), 3.0)
    pair = Example(
        "read off",
        lambda: Moments(**PAID, bounds="auto"),
        Given(rows),
        Given(np.vstack([rows, [[900.0]]])),
    )
    check_fit(pair)

    def dishonest(records, meter):
        bought = buying.buy(records, meter)
        columns = declared({"x0": (0, records.columns.max())}, ["x0"])
        bought.rows.design = bought.rows.design.with_columns(columns)
        return bought

    monkeypatch.setattr(base, "buy", dishonest)
    with pytest.raises(AssertionError, match="bounds depend on the data"):
        check_fit(pair)


def test_more_than_the_rest_is_refused_after_bounds(monkeypatch):
    monkeypatch.setattr("sfumato.fits.meter._Part.noisy", lambda self, *asked: self._whole.noisy(*asked))
    with pytest.raises(BudgetExceeded):
        Moments(**PAID, bounds="auto").fit([[1.0]])


def test_categories_cannot_be_bought():
    frame = pa.table({"age": [1.0, 2.0], "sex": ["F", "M"]})
    for bounds in ("auto", {"age": (0, 9), "sex": "auto"}):
        with pytest.raises(InvalidParameter, match="list them"):
            Moments(**PAID, bounds=bounds).fit(frame)
    model = Moments(**PAID, bounds={"age": "auto", "sex": ["F", "M"]}).fit(frame)
    assert list(model.bounds_) == ["age"]


@pytest.mark.parametrize("bounds", ["automatic", "au", {"x0": "aut"}])
def test_other_words_are_refused(bounds):
    with pytest.raises(InvalidParameter, match=r"must be"):
        Moments(**PAID, bounds=bounds).fit([[1.0]])


def with_auto(model, auto):
    return clone(model).set_params(**auto)


def test_every_family_buys_bounds_through_the_base_alone():
    """Each registered example once more, with nothing declared about its numbers."""
    kinds = set()
    for example in examples():
        model = example.make()
        names = {"bounds", "target_bounds"} & set(model.get_params())
        numbers = isinstance(example.left.X, np.ndarray) and example.left.X.dtype.kind == "f"
        if type(model) in kinds or not names or not numbers or model.bounds is None:
            continue
        auto = {name: "auto" for name in names if getattr(model, name) is not None}
        make = partial(with_auto, model, auto)
        check_fit(Example(example.name, make, example.left, example.right))
        kinds.add(type(model))
    assert len(kinds) > 4
