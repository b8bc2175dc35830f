from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from sfumato.errors import InvalidParameter
from sfumato.samplers import continuous, discrete
from sfumato.samplers import law as laws
from sfumato.samplers.law import SURE, Law
from sfumato.samplers.table import UNDECIDED, Table, fall

SCALES = [Fraction(s) for s in ("0.001", "1/3", "10", "1000", "1e12")]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_a_slot_decides_only_what_lies_wholly_in_its_box(scale):
    """Every decided slot against boundaries of 300 bits: both of its ends lie in the box that it names."""
    for law in (laws.laplace(scale), laws.gaussian(scale**2, discrete=False)):
        table = Table(law)
        lower, upper = law.boundaries(300)
        ends = [*lower[1:], 1 << 300]
        begins = dict(zip(law.symbols, zip(upper, ends, strict=True), strict=True))
        decided = 0
        for block in np.unique(table.lookup[table.lookup != UNDECIDED]).tolist():
            slots = np.flatnonzero(table.lookup == block)
            begin, end = begins[SURE, block]
            assert begin <= int(slots[0]) << (300 - 16)
            assert (int(slots[-1]) + 1) << (300 - 16) <= end
            assert slots.size == slots[-1] - slots[0] + 1
            decided += slots.size
        assert decided > 0.9 * 2**16


def test_slots_that_could_be_decided_are():
    """Not one slot is left to the slow path without need."""
    law = laws.laplace(Fraction(10))
    lower, _ = law.thresholds(64)
    holds_a_boundary = {value >> 48 for value in lower[1:]}
    undecided = set(np.flatnonzero(Table(law).lookup == UNDECIDED).tolist())
    assert undecided == holds_a_boundary


def test_an_off_by_one_slot_is_noticed():
    """The certificate above has power: a table moved by one slot names a wrong box somewhere."""
    law = laws.laplace(Fraction(10))
    moved = np.roll(Table(law).lookup, 1)
    lower, upper = law.boundaries(300)
    ends = [*lower[1:], 1 << 300]
    begins = dict(zip(law.symbols, zip(upper, ends, strict=True), strict=True))
    wrong = 0
    for slot in np.flatnonzero(moved != UNDECIDED).tolist():
        begin, end = begins[SURE, int(moved[slot])]
        wrong += not (begin <= slot << 284 and (slot + 1) << 284 <= end)
    assert wrong > 0


def test_the_series_is_as_exact_as_the_margin_needs():
    """Against SciPy's expm1, which is another implementation: far closer than the margin of 2**-44."""
    drops = np.concatenate([np.linspace(0, 0.125, 20_001), np.logspace(-12, -1, 1000)])
    exact = -special.expm1(-drops)
    assert np.all(np.abs(fall(drops) - exact) <= 2.0**-49 * exact)


def test_the_series_against_integers_at_its_worst_end():
    lower, upper = (Fraction(v, 2**200) for v in laws.exp_minus(Fraction(1, 8), 200))
    value = Fraction(float(fall(np.array([0.125]))[0]))
    assert abs(value / (1 - upper) - 1) < Fraction(1, 2**48)
    assert abs(value / (1 - lower) - 1) < Fraction(1, 2**48)


@pytest.mark.parametrize("exponent", [4, 40])
def test_float_chances_agree_with_exact_ones(exponent):
    """The float acceptance probability lies within a thousandth of the margin of the exact enclosure."""
    scale = Fraction(2) ** exponent * 20
    for law in (laws.laplace(scale), laws.gaussian(scale**2), laws.gaussian(scale**2, discrete=False)):
        table = Table(law)
        blocks = [0, 1, law.blocks // 3, law.blocks - 1]
        near = np.array(blocks, float)
        for share in (Fraction(1, 7), Fraction(1, 2), Fraction(6, 7)):
            place = law.reach * share
            place = Fraction(int(place)) if law.discrete else place
            step = np.full(len(blocks), float(place / law.width))
            reach = np.float64(float(law.reach / law.width))
            got = 1 - fall(table.drop(near, step)) / fall(table.drop(near, reach))
            for block, value in zip(blocks, got.tolist(), strict=True):
                lower, upper = laws.box_chance(law, block, place, place, 200)
                assert abs(Fraction(value) - Fraction(lower, 2**200)) < Fraction(1, 2**46)
                assert abs(Fraction(value) - Fraction(upper, 2**200)) < Fraction(1, 2**46)


def test_floats_and_exact_arithmetic_decide_alike(tools):
    """The same bits, with every acceptance decided by floats and then by integers, give the same draws."""
    for scale in (Fraction(700), Fraction(10**9)):
        for law in (laws.laplace(scale), laws.gaussian(scale**2), laws.geometric(1 / scale)):
            drawn = []
            for margin in (2.0**-44, 2.0):
                out = np.empty(4000, np.int64)
                discrete.fill(tools.Seeded(5), Table(law, margin=margin), out)
                drawn.append(out.tolist())
            assert drawn[0] == drawn[1]
        for law in (laws.laplace(scale, discrete=False), laws.gaussian(scale**2, discrete=False)):
            tables = Table(law), Table(law, margin=2.0)
            points = [continuous.floors(tools.Seeded(5), table, 4000) for table in tables]
            assert points[0] == points[1]


def test_blocks_too_wide_for_the_series_are_refused():
    with pytest.raises(InvalidParameter, match="narrow"):
        Table(Law(Fraction(1), Fraction(0), exponent=2, blocks=4))
