from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from sfumato.samplers import discrete
from sfumato.samplers import law as laws
from sfumato.samplers.law import Law
from sfumato.samplers.table import UNDECIDED, Table

SCALES = [Fraction(s) for s in ("1/3", "1", "10", "100", "700")]


def draws(stream, table: Table, count: int) -> np.ndarray:
    out = np.empty(count, np.int64)
    discrete.fill(stream, table, out)
    return out


def family(tools, scale: Fraction):
    yield laws.laplace(scale), tools.laplace_mass(float(scale))
    yield laws.gaussian(scale**2), tools.gaussian_mass(float(scale**2))
    yield laws.geometric(1 / scale), tools.geometric_mass(float(1 / scale))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_vectors_follow_the_law(stream, tools, scale):
    reach = int(40 * scale) + 5
    for law, mass in family(tools, scale):
        values = draws(stream, Table(law), 300_000)
        assert tools.chi_square(values, mass, -reach, reach) > tools.ALPHA


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_vectors_follow_the_law_when_every_path_is_taken_often(stream, tools, scale):
    """Three bits index the table, two more are compared and floats decide half of the acceptances."""
    reach = int(40 * scale) + 5
    for law, mass in family(tools, scale):
        table = Table(law, prefix=3, suffix=2, margin=0.25)
        before = stream.singles
        values = draws(stream, table, 1500)
        assert stream.singles - before > 30
        assert tools.chi_square(values, mass, -reach, reach) > tools.ALPHA


@pytest.mark.parametrize("scale", ["1e5", "1e9", "1e12", "1e16"])
def test_large_scales_have_the_continuous_shape_and_uniform_low_digits(stream, tools, scale):
    """Against the distribution function in 64 equal cells, and the last digit base 16."""
    scale = Fraction(scale)
    count = 200_000
    for law, quantile in (
        (laws.laplace(scale), lambda p: np.where(p < 0.5, np.log(2 * p), -np.log(2 - 2 * p))),
        (laws.gaussian(scale**2), special.ndtri),
    ):
        values = draws(stream, Table(law), count)
        edges = quantile(np.arange(1, 64) / 64) * float(scale)
        cells = np.searchsorted(edges, values)
        assert tools.chi_square(cells, lambda k: np.full(k.size, 1 / 64), 0, 63) > tools.ALPHA
        assert tools.chi_square(values & 15, lambda k: np.full(k.size, 1 / 16), 0, 15) > tools.ALPHA


def test_tiny_scales_give_zero(stream):
    for law in (
        laws.laplace(Fraction(1, 1000)),
        laws.gaussian(Fraction(1, 10**6)),
        laws.geometric(Fraction(1000)),
    ):
        assert not draws(stream, Table(law), 100_000).any()


def test_tails_reach_vectors(stream, tools):
    """A law cut after two blocks: most draws are tails, and the result is the same law."""
    law = Law(Fraction(1, 40), Fraction(0), exponent=2, blocks=2)
    values = draws(stream, Table(law), 2000)
    assert np.count_nonzero(np.abs(values) > 8) > 1000
    assert tools.chi_square(values, tools.laplace_mass(40.0), -1000, 1000) > tools.ALPHA


def test_magnitudes_beyond_64_bits_saturate(stream):
    law = Law(Fraction(1, 2**64), Fraction(0), exponent=60, blocks=2)
    values = draws(stream, Table(law), 300)
    largest = 2**63 - 1
    assert set(np.sign(values[np.abs(values) == largest]).tolist()) == {-1, 1}
    assert values.min() >= -largest
    assert np.count_nonzero(np.abs(values) == largest) > 100


def test_both_signs_of_a_block_are_mirror_images(stream, tools):
    """x and -x are equally likely, also where a block holds 16 integers and zero belongs to one side."""
    law = laws.laplace(Fraction(500))
    assert law.exponent > 2
    values = draws(stream, Table(law), 300_000)
    width = 1 << law.exponent
    for sign in (1, -1):
        low = (sign * values)[(sign * values > 0)] % width
        ratio = np.exp(-1 / 500)
        expected = ratio ** ((np.arange(width) - 1) % width)
        expected /= expected.sum()
        assert tools.chi_square(low, lambda k, e=expected: e[k], 0, width - 1) > tools.ALPHA


class _Careless(Table):
    """A planted bug: thresholds cut to the bits of the table, and what they leave open not refined."""

    def __post_init__(self) -> None:
        super().__post_init__()
        left = np.maximum.accumulate(np.where(self.lookup == UNDECIDED, 0, np.arange(self.lookup.size)))
        filled = self.lookup[left]
        object.__setattr__(self, "lookup", np.where(filled == UNDECIDED, 0, filled).astype(np.int16))


def test_planted_bugs_fail_the_same_tests(stream, tools):
    law, mass = laws.gaussian(Fraction(100)), tools.gaussian_mass(100.0)
    good = draws(stream, Table(law), 300_000)
    assert tools.chi_square(good, mass, -200, 200) > tools.ALPHA
    assert tools.chi_square(draws(stream, _Careless(law, prefix=9), 300_000), mass, -200, 200) < tools.ALPHA
    assert tools.chi_square(draws(stream, Table(law, prefix=9), 300_000), mass, -200, 200) > tools.ALPHA
    assert tools.chi_square(np.abs(good), mass, -200, 200) < tools.ALPHA  # no sign
    mirrored = np.where(good < 0, good + 1, good)  # zero on both sides
    assert tools.chi_square(mirrored, mass, -200, 200) < tools.ALPHA
    assert tools.chi_square(good, tools.gaussian_mass(105.0), -200, 200) < tools.ALPHA


def test_proposals_that_skip_the_test_fail(stream, tools):
    """Without the acceptance step the steps of the boxes show."""
    law = Law(Fraction(1, 80), Fraction(0), exponent=3, blocks=64)
    mass = tools.laplace_mass(80.0)
    table = Table(law)
    assert tools.chi_square(draws(stream, table, 1_000_000), mass, -2000, 2000) > tools.ALPHA
    out = np.empty(1_000_000, np.int64)
    discrete._propose(stream, table, out)
    assert tools.chi_square(out, mass, -2000, 2000) < tools.ALPHA


def test_an_empty_vector_and_odd_lengths(stream):
    table = Table(laws.laplace(Fraction(3)))
    assert draws(stream, table, 0).size == 0
    assert draws(stream, table, 7).size == 7
    assert UNDECIDED not in draws(stream, table, 2**16 + 3)
