"""What floats decide about draws is what exact arithmetic decides, from the same bits."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.samplers.test_law import all_laws

from sfumato.samplers import discrete, rough
from sfumato.samplers import law as laws
from sfumato.samplers.law import Law, box_chance, draw
from sfumato.samplers.table import Table

SCALES = [Fraction(s) for s in ("0.001", "1/3", "1", "10", "1000", "123456.789", "1e12", "1e16")]
OFFSETS = sorted({sign * (1 << bits) for sign in (-1, 1) for bits in (0, 10, 22, 26, 31, 33, 40)} | {0})


def without_floats(law: Law) -> Law:
    exact = replace(law)
    exact.__dict__["about"] = None
    return exact


def wrong_tables(law: Law) -> int:
    """Slots that a table from floats decides otherwise, and boundaries that it does not enclose."""
    table, exact = Table(law), Table(without_floats(law))
    return int(
        np.sum(table.lookup != exact.lookup)
        + np.sum(table._lower > exact._lower)
        + np.sum(table._upper < exact._upper)
    )


def wrong_symbols(law: Law) -> int:
    """Uniforms next to the boundaries of symbols that floats put elsewhere than integers do."""
    lower, upper = law.thresholds(64)
    wrong = 0
    for start in lower:
        for offset in OFFSETS:
            value = start + offset
            found = rough.symbol(law.about, value) if 0 <= value < 1 << 64 else None
            if found is not None:
                sure = bisect_right(upper, value) - 1
                wrong += found != sure or (sure + 1 < len(lower) and value + 1 > lower[sure + 1])
    return wrong


def wrong_chances(law: Law, stream) -> int:
    """Uniforms next to the chance of a point in a test box that floats decide on as integers do not."""
    wrong = 0
    for block in range(0, law.blocks, 5):
        for side in (block, ~block) if law.signed else (block,):
            place = Fraction(stream.bits(20), 1 << 20) * law.reach
            place = Fraction(int(place)) if law.discrete else place
            lower, upper = box_chance(law, side, place, place, 64)
            for offset in OFFSETS:
                value = lower + offset
                if 0 <= value < 1 << 64:
                    found = rough.accepted(law.about, block, law.least(side), place, value)
                    wrong += found is not None and found != (value + 1 <= lower)
                    wrong += found is not None and lower <= value < upper
    return wrong


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_floats_decide_as_integers_do_next_to_every_boundary(scale, stream):
    for law in all_laws(scale):
        assert law.about is not None
        assert wrong_symbols(law) == 0
        assert law.single or wrong_chances(law, stream) == 0


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_margin_is_much_wider_than_the_errors(scale):
    for law in all_laws(scale):
        lower, upper = law.thresholds(64)
        for start, low, high in zip(law.about.starts, lower, upper, strict=True):
            assert abs(Fraction(start) - Fraction(low + high, 2 << 64)) < Fraction(rough.MARGIN) / 64


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(10), Fraction(98765, 100)], ids=str)
def test_draws_and_the_bits_they_take_are_those_of_exact_arithmetic(scale, tools):
    for law in all_laws(scale):
        exact = without_floats(law)
        one, other = tools.Seeded(7), tools.Seeded(7)
        digits = 0 if law.discrete else 64
        drawn = [draw(one, law, digits) for _ in range(60)]
        assert drawn == [draw(other, exact, digits) for _ in range(60)]
        assert one.bits(64) == other.bits(64)


def test_no_exact_boundary_is_made_for_a_single_draw(stream):
    for law in all_laws(Fraction(1000)):
        draw(stream, law, 0 if law.discrete else 64)
        assert not law._made


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(10), Fraction(98765, 100)], ids=str)
def test_tables_from_floats_decide_as_those_from_integers(scale, tools):
    for law in all_laws(scale, laws.FINE):
        assert wrong_tables(law) == 0
        assert not law._made
        if law.discrete:
            drawn = [np.empty(3000, np.int64) for _ in range(2)]
            for which, out in zip((law, without_floats(law)), drawn, strict=True):
                discrete.fill(tools.Seeded(3), Table(which), out)
            assert np.array_equal(*drawn)


def test_a_boundary_next_to_the_edge_of_a_slot_is_left_to_integers():
    law = laws.laplace(Fraction(10))
    edge = rough.About(1.0, 0.0, 1.0, 1.0, [0.0, 0.25, 0.5 + 2.0**-30])
    assert rough.boundaries(law.about, 48) is not None
    assert rough.boundaries(edge, 48) is None
    assert rough.boundaries(replace(edge, starts=[0.0, 0.3, 0.5 + 2.0**-30]), 48) is not None


def test_what_is_beyond_floats_is_drawn_in_integers(stream):
    law = laws.gaussian(Fraction(1, 10**320), limit=laws.COARSE)
    assert law.about is None
    assert draw(stream, law) == 0


@pytest.mark.parametrize("bug", ["no margin", "a wrong slope", "half a chance"])
def test_the_search_finds_planted_bugs(stream, monkeypatch, bug):
    if bug == "no margin":
        monkeypatch.setattr(rough, "MARGIN", 0.0)
    elif bug == "a wrong slope":
        about = rough.about
        monkeypatch.setattr(rough, "about", lambda slope, *of: about(slope * (1 + Fraction(1, 2**25)), *of))
    else:
        monkeypatch.setattr(rough, "_WORD", 2.0**-65)
    found = [(wrong_symbols(law), wrong_chances(law, stream)) for law in all_laws(Fraction(1000))]
    assert sum(map(sum, found))
    if bug != "half a chance":
        assert sum(map(wrong_tables, all_laws(Fraction(1000), laws.FINE)))
