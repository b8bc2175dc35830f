"""Certificates: what is drawn is the law, box by box, in an arithmetic of its own."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, fmpz

from sfumato.errors import InvalidParameter
from sfumato.samplers import law as laws
from sfumato.samplers.law import SURE, TAIL, TEST, Law

SCALES = [Fraction(s) for s in ("0.001", "1/3", "1", "10", "1000", "123456.789", "1e9", "1e12")]
TINY = Fraction(1, 10**100)
BITS = 700


def all_laws(scale: Fraction, limit: int = laws.COARSE) -> list[Law]:
    return [
        laws.geometric(1 / scale, limit=limit),
        laws.laplace(scale, limit=limit),
        laws.gaussian(scale**2, limit=limit),
        laws.laplace(scale, discrete=False, limit=limit),
        laws.gaussian(scale**2, discrete=False, limit=limit),
    ]


def weight(tools, law: Law, magnitude: Fraction) -> arb:
    """exp(-phi(|x|)), straight from the definition of the law."""
    return tools.exp_ball(law.slope * magnitude + law.curvature * magnitude**2)


def volumes(tools, law: Law) -> list[arb]:
    """The volume over W of every symbol, from the definition in the module's docstring."""
    out = []
    for kind, block in law.symbols:
        index = block if block >= 0 else ~block
        near = index * law.width + (1 if block < 0 and law.discrete else 0)
        far = near + (law.width - 1 if law.discrete else law.width)
        if kind == TAIL:
            tangent = law.slope + 2 * law.curvature * near
            out.append(weight(tools, law, near) / (1 - tools.exp_ball(tangent * law.width)))
        elif kind == TEST:
            out.append(weight(tools, law, near) - weight(tools, law, far))
        else:
            out.append(weight(tools, law, far))
    return out


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_every_symbol_has_its_probability_to_100_digits(precise, tools, scale):
    for law in all_laws(scale):
        truth = volumes(tools, law)
        total = sum(truth, arb(0))
        lower, upper = law.boundaries(BITS)
        assert lower[0] == upper[0] == 0
        ends = [*zip(lower, upper, strict=True), (1 << BITS, 1 << BITS)]
        for volume, (start, end) in zip(truth, pairwise(ends), strict=True):
            # The true share lies within what the boundaries allow, and they allow hardly anything.
            least, most = (arb(fmpz(x)) / arb(2) ** BITS for x in (end[0] - start[1], end[1] - start[0]))
            assert not least > volume / total
            assert not most < volume / total
            assert most - least < tools.ball(TINY)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_boundaries_that_tables_use_enclose_the_true_ones(precise, tools, scale):
    for law in all_laws(scale, laws.FINE if scale == 10 else laws.COARSE):
        truth = volumes(tools, law)
        total = sum(truth, arb(0))
        before = arb(0)
        for low, high, volume in zip(*law.thresholds(64), truth, strict=True):
            start = before / total * arb(2) ** 64
            assert not arb(fmpz(low)) > start
            assert not arb(fmpz(high)) < start
            assert high - low <= 1
            before += volume


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_boxes_and_acceptance_add_up_to_the_density(precise, tools, scale):
    """At points of inner, middle and outer blocks: sure height + test height x acceptance = exp(-phi)."""
    for law in all_laws(scale):
        if law.single:
            continue
        heights = dict(zip(law.symbols, volumes(tools, law), strict=True))
        for block in (0, 1, law.blocks // 2, law.blocks - 1, ~0, ~(law.blocks - 1)):
            if (SURE, block) not in heights:
                continue
            index = block if block >= 0 else ~block
            for share in (Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1)):
                place = law.reach * share
                if law.discrete:
                    place = Fraction(int(place))
                lower, upper = laws.box_chance(law, block, place, place, BITS)
                assert 0 <= lower <= upper <= 1 << BITS
                truth = weight(tools, law, index * law.width + law.least(block) + place)
                for bound in (lower, upper):
                    drawn = heights[SURE, block] + heights[TEST, block] * arb(fmpz(bound)) / arb(2) ** BITS
                    assert abs(drawn - truth) < tools.ball(TINY)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_tails_and_acceptance_add_up_to_the_density(precise, tools, scale):
    for law in all_laws(scale):
        heights = dict(zip(law.symbols, volumes(tools, law), strict=True))
        for sign, _ in law.sides:
            block = law.blocks if sign > 0 else ~law.blocks
            start = law.start(block)
            ratio = tools.exp_ball(law.tangent(start) * law.width)
            for extra in (0, 1, 5):
                place = Fraction(int(law.reach / 2)) if law.discrete else law.reach / 3
                lower, upper = laws.tail_chance(law, block, extra, place, place, BITS)
                truth = weight(tools, law, start + extra * law.width + place)
                for bound in (lower, upper):
                    proposed = heights[TAIL, block] * (1 - ratio) * ratio**extra
                    drawn = proposed * arb(fmpz(bound)) / arb(2) ** BITS
                    assert abs(drawn - truth) < tools.ball(TINY)


def test_the_certificate_notices_a_missing_tail_and_a_wrong_sign(precise, tools):
    """Planted bugs: a cut without its tails, and zero counted on both sides, change the shares visibly."""
    law = laws.laplace(Fraction(10), limit=laws.COARSE)
    truth = volumes(tools, law)
    total = sum(truth, arb(0))
    shares = [v / total for v in truth]
    cut = sum(truth[2:], arb(0))
    assert abs(shares[-1] - truth[-1] / cut) > tools.ball(TINY)
    lower, _ = law.boundaries(BITS)
    last = arb(fmpz((1 << BITS) - lower[-1])) / arb(2) ** BITS
    assert abs(last - shares[-1]) < tools.ball(TINY)
    assert abs(last - truth[-1] / cut) > tools.ball(TINY)
    both = Law(law.slope, law.curvature, law.exponent, law.blocks, discrete=False)
    assert volumes(tools, both)[0] != truth[0]


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(300)], ids=str)
def test_single_draws_follow_the_law(stream, tools, scale):
    count, reach = 2000, int(40 * scale) + 5
    cases = [
        (laws.laplace(scale, limit=laws.COARSE), tools.laplace_mass(float(scale))),
        (laws.gaussian(scale**2, limit=laws.COARSE), tools.gaussian_mass(float(scale**2))),
        (laws.geometric(1 / scale, limit=laws.COARSE), tools.geometric_mass(float(1 / scale))),
    ]
    for law, mass in cases:
        values = np.array([laws.draw(stream, law) for _ in range(count)])
        assert tools.chi_square(values, mass, -reach, reach) > tools.ALPHA


def test_tails_are_drawn_right_when_they_hold_half_of_the_mass(stream, tools):
    """A cut of two blocks makes every other draw a tail."""
    for slope, curvature, mass in (
        (Fraction(1, 9), Fraction(0), tools.laplace_mass(9.0)),
        (Fraction(0), Fraction(1, 2 * 81), tools.gaussian_mass(81.0)),
    ):
        law = Law(slope, curvature, exponent=2, blocks=2)
        values = np.array([laws.draw(stream, law) for _ in range(3000)])
        assert np.count_nonzero(np.abs(values) > 8) > 900
        assert tools.chi_square(values, mass, -300, 300) > tools.ALPHA
        # A planted bug, tails that are never drawn, fails the same test.
        assert tools.chi_square(values[np.abs(values) <= 8], mass, -300, 300) < tools.ALPHA


def test_scales_that_do_not_fit_are_refused():
    with pytest.raises(InvalidParameter, match=r"2\*\*56"):
        laws.laplace(Fraction(2**57))
    with pytest.raises(InvalidParameter, match=r"2\*\*56"):
        laws.gaussian(Fraction(2**114))
    with pytest.raises(InvalidParameter, match=r"2\*\*56"):
        laws.geometric(Fraction(1, 2**57))
