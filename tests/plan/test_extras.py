"""Questions beside the sums: their grids, their sensitivities and where their results are."""

import functools
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.dialect import DUCKDB
from sfumato.plan.answers.outside import outside_of
from sfumato.plan.expressions.tree import Column
from sfumato.plan.intervals.cdf import quantile_intervals
from sfumato.plan.prices.extras import Distinct, QuantileSet
from sfumato.plan.prices.recipe import recipe
from sfumato.plan.prices.touched import Touched
from sfumato.plan.questions.grids import CellGrid, grid_of
from sfumato.plan.questions.slots import Slot
from sfumato.plan.questions.sums import Range
from sfumato.sql.read.parse import parse
from sfumato.sql.write import expressions as written

lower_expression = functools.partial(written.lower_expression, dialect=DUCKDB)

ROW, USER = sf.PrivacyUnit.row(), sf.PrivacyUnit("u", max_groups=2, max_rows=5)
OTHER = sf.PrivacyUnit("u", max_groups=2, max_rows=5, adjacency="exchange")
WEIGHT = 2**30


def found(text, unit=USER):
    schema = {"k": sf.Enum("a", "b"), "x": sf.Int(0, 50), "y": sf.Float(-1, 1), "big": sf.Int(0, 10**6)}
    table = sf.PrivateTable("t", source=None, unit=unit, schema=schema)
    return recipe(parse(text, {"t": table}), table)


# Grids.


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**6), st.booleans(), st.sampled_from([1, 100, 10**6]))
def test_a_grid_covers_its_range_with_few_cells(lower, span, whole, groups):
    grid = grid_of(Range(Column("x"), Fraction(lower), Fraction(lower + span), whole, nullable=True), groups)
    assert 1 <= grid.cells <= 4096 + 1
    end = grid.lower + grid.cells * grid.width
    assert grid.lower == lower
    assert end >= lower + span + (1 if whole else 0)
    if grid.whole:
        assert whole
        assert (grid.width, grid.cells) == (1, span + 1)
        assert grid.value(np.arange(grid.cells)).tolist() == list(range(lower, lower + span + 1))
    cells = np.array([0, grid.cells - 1])
    low, high = grid.ends(cells, cells)
    assert ((low <= grid.value(cells)) & (grid.value(cells) <= high)).all()


@pytest.mark.parametrize(
    ("lower", "upper", "whole"),
    [(0, 50, True), (-7, 7, True), (0, 10**6, True), (-1, 1, False), (0, 200, False), (5, 5, False)],
)
def test_the_engine_counts_a_number_in_the_cell_that_holds_it(lower, upper, whole):
    grid = grid_of(Range(Column("x"), Fraction(lower), Fraction(upper), whole, nullable=True), 1)
    index = lower_expression(grid.index(Column("x"))).sql("duckdb")
    kind = "BIGINT" if whole else "DOUBLE"
    generator = np.random.default_rng(4)
    drawn = generator.integers(lower, upper + 1, 300) if whole else generator.uniform(lower, upper, 300)
    values = [lower, upper, *drawn.tolist()]
    text = f"SELECT x, {index} FROM (SELECT CAST(UNNEST(?) AS {kind}) AS x)"
    for value, cell in duckdb.execute(text, [values]).fetchall():
        held = np.array([min(max(int(cell), 0), grid.cells - 1)])  # as the clamp of the measurement does
        low, high = grid.ends(held, held)
        assert low[0] <= value <= high[0]


# Sensitivities.


@pytest.mark.parametrize(
    ("unit", "reach"), [(ROW, 1), (USER, 5 * WEIGHT), (OTHER, 10 * WEIGHT)], ids=["row", "user", "exchange"]
)
@pytest.mark.parametrize("keys", ["", " GROUP BY k"])
def test_the_noise_of_quantiles_is_for_a_units_whole_weight(unit, reach, keys):
    (extra,) = found(f"SELECT MEDIAN(x) AS m, MIN(x) AS l FROM t{keys}", unit).extras
    assert isinstance(extra, QuantileSet)
    assert extra.levels == (0, Fraction(1, 2))
    priced = extra.priced(Fraction(2))
    assert extra.grid.cells == 51
    assert priced.bars.sensitivity == reach
    assert priced.selection.sensitivity * (2 if priced.selection.exchange else 1) == reach
    assert priced.selection.exchange == (unit is OTHER)
    assert priced.selection.epsilon + priced.bars.epsilon == 2
    assert priced.loss.pure == 2
    assert priced.unit == (1 if unit is ROW else Fraction(1, WEIGHT))


@pytest.mark.parametrize(
    ("unit", "reach"), [(ROW, 1), (USER, 5), (OTHER, 10)], ids=["row", "user", "exchange"]
)
@pytest.mark.parametrize("keys", ["", " GROUP BY k"])
def test_the_noise_of_distinct_values_is_for_what_a_unit_vouches_for(unit, reach, keys):
    (extra,) = found(f"SELECT COUNT(DISTINCT x) AS d FROM t{keys}", unit).extras
    assert isinstance(extra, Distinct)
    priced = extra.priced(Fraction(3))
    assert priced.mechanism.sensitivity == reach
    assert priced.loss.pure == 3


def test_two_levels_at_the_same_price_are_noisier_than_one():
    one = found("SELECT MEDIAN(x) AS m FROM t").extras[0].priced(Fraction(1)).selection
    two = found("SELECT MEDIAN(x) AS m, MAX(x) AS l FROM t").extras[0].priced(Fraction(1)).selection
    # One inner level has a sixth of the price for its selection, others share a quarter.
    assert two.rate(Fraction(1, 2)) == one.rate(Fraction(1, 2)) * 6 / 8


def test_extremes_say_what_they_aim_at():
    priced = (
        found("SELECT MIN(x) AS l, MEDIAN(x) AS m, MAX(x) AS h FROM t", ROW).extras[0].priced(Fraction(2))
    )
    least, greatest = priced.notes
    rows = priced.selection.guard(51)
    aimed = f"MIN of x is the value that about {rows:,} rows fall below, or the median of fewer than"
    assert least.startswith(aimed)
    assert greatest.endswith("the very greatest lies between the bar's lower end and the declared bound.")
    assert found("SELECT MEDIAN(x) AS m FROM t").extras[0].priced(Fraction(2)).notes == []
    assert [aim.guard for aim in priced.aims] == [rows, None, rows]


def test_answers_on_record_keep_the_bars_of_their_tree():
    priced = found("SELECT MEDIAN(x) AS m FROM t", ROW).extras[0].priced(Fraction(4))
    tree, noise = priced.former
    assert noise.scale == tree.levels  # a quarter of the price for each row's weight on every level
    weights = [100] * 51
    nodes = np.array([tree.counts(weights)], dtype=float)
    kept = outside_of(priced, (np.array([[25]]), nodes))
    low, high = kept.interval(0, 0.05)
    assert kept.value(0).tolist() == [25]
    assert (low[0], high[0]) == tuple(ends[0] for ends in quantile_intervals(tree, nodes, noise, "1/2", 0.05))


# Places.


def test_quantiles_of_one_number_are_one_question_and_others_are_others():
    made = found(
        "SELECT MAX(x) AS a, COUNT(DISTINCT x) AS b, MEDIAN(y) AS c, COUNT(*) AS d, MIN(x) AS e FROM t"
    )
    assert [type(each).__name__ for each in made.extras] == ["QuantileSet", "QuantileSet", "Distinct"]
    assert [each.results for each in made.extras] == [2, 1, 1]
    assert len(made.questions) == 4
    assert [type(each).__name__ for each in made.estimators] == ["Linear"]
    slots = [each for each in made.aggregates if isinstance(each, Slot)]
    top, values, middle, least = ((each.extra, each.place) for each in slots)
    assert (top, least, middle, values) == ((0, 1), (0, 0), (1, 0), (2, 0))


def test_a_share_of_touched_units_comes_last():
    schema = {"x": sf.Int(0, 50)}
    table = sf.PrivateTable("t", source=None, unit=USER, schema=schema)
    report = parse("SELECT SUM(x) AS s, MEDIAN(x) AS m FROM t", {"t": table})
    made = recipe(replace(report, child=replace(report.child, touched=True)), table)
    assert isinstance(made.extras[-1], Touched)
    assert made.extras[-1].priced(Fraction(1)).loss.pure == 1


def test_cells_of_equal_width_are_selected_by_their_middle():
    grid = CellGrid(Fraction(-1), Fraction(1, 8), 16, False)
    assert grid.value(np.array([0, 15])).tolist() == [-1 + 1 / 16, 1 - 1 / 16]
    low, high = grid.ends(np.array([0]), np.array([15]))
    assert (low[0], high[0]) == (-1, 1)
