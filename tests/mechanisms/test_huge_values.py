"""Values of every size get the exact sum with their noise, rounded by one rule; no size is clamped."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato import random
from sfumato.errors import InvalidValue
from sfumato.mechanisms import _grid
from sfumato.mechanisms._grid import Grid
from sfumato.mechanisms.base import Example
from sfumato.samplers import continuous
from sfumato.samplers.wholes import Wholes
from sfumato.testing import assert_continuous, assert_discrete, check_mechanism, compare, record, seeded
from sfumato.testing.mechanisms import examine
from sfumato.testing.mutants.mechanisms import claimed
from sfumato.testing.replaying import Tape, lost

MOST = sys.float_info.max
MECHANISMS = {
    "usual": sf.Laplace(1, 1),
    "fine grid": sf.Laplace("1e20", "1e-250"),
    "coarse grid": sf.Laplace("0.3", "1e290"),
    "grid of integers": sf.Laplace(1, 2**30),
    "grid of 2**20": sf.Gaussian(sigma=2**50, sensitivity=2**50),
    "gaussian": sf.Gaussian(rho="0.5", sensitivity="0.1"),
}
Number = int | float
FLOATS_AT = Grid.floats_at


def doubles(grid: float, count: int) -> list[float]:
    """Finite doubles of all exponents, both signs, and those at the edges of what the code tells apart."""
    generator = np.random.default_rng(3)
    words = generator.integers(0, 2**64, count, np.uint64).tolist()
    drawn = [struct.unpack("<d", struct.pack("<Q", word))[0] for word in words]
    edges = [0.0, 5e-324, 2.0**-1022, 0.1, 1 / 3, 1e10, 1e30, MOST, math.nextafter(MOST, 0)]
    edges += [
        math.ldexp(grid, power)
        for power in (-64, -63, -1, 0, 52, 53, 61, 62, 63, 64, 115, 126)
        if power < 60 or math.log2(grid) + power < 1023
    ]
    edges += [math.nextafter(each, way) for each in edges for way in (0.0, math.inf)]
    return [sign * each for each in (*drawn, *edges) for sign in (1, -1) if math.isfinite(each)]


def integers(count: int) -> list[int]:
    """Integers of all lengths, up to some that no float comes near."""
    generator = np.random.default_rng(4)
    lengths = generator.integers(1, 1100, count).tolist()
    drawn = [int.from_bytes(generator.bytes(160), "little") >> (1280 - length) for length in lengths]
    edges = [2**k + d for k in (53, 61, 62, 63, 64, 1023, 1024) for d in (-1, 0, 1)]
    return [sign * each for each in (*drawn, *edges, 10**400) for sign in (1, -1)]


def split(value: Number, grid: float) -> tuple[int, int]:
    """A value in grid steps, cut towards zero at 2**-63: the whole part and 64 bits after the point."""
    halves = Fraction(value) / Fraction(grid) * 2**63
    return divmod(2 * (math.floor(halves) if halves > 0 else math.ceil(halves)), 2**64)


def nearest(exact: Fraction) -> float:
    """The nearest double by its definition, halves to even, at most the largest one, in whole numbers."""
    (top, bottom), sign = abs(exact).as_integer_ratio(), -1.0 if exact < 0 else 1.0
    gap = max(-1074, top.bit_length() - bottom.bit_length() - 53)  # 2**gap between floats, or half of that

    def steps(gap: int) -> tuple[int, int, int]:
        """How many such steps fit in, what is left, and what a whole step would be."""
        left, step = (top << -gap, bottom) if gap < 0 else (top, bottom << gap)
        return *divmod(left, step), step

    count, left, step = steps(gap)
    if count >= 2**53:
        gap += 1
        count, left, step = steps(gap)
    assert count < 2**53
    assert count >= 2**52 or gap == -1074 or not exact
    count += 2 * left > step or (2 * left == step and count % 2 == 1)
    return sign * (MOST if count >= 2 ** (1024 - gap) else math.ldexp(count, gap))


def drawn(
    mechanism: sf.Laplace | sf.Gaussian, fractions: Sequence[int], seed: int, *, singly: bool = False
) -> list[int]:
    """The noise that the bits of this seed give to fractions alone, rounded with them to whole grid steps."""
    add = random.add_laplace if isinstance(mechanism, sf.Laplace) else random.add_gaussian
    calls = [[fraction] for fraction in fractions] if singly else [fractions]
    noise: list[int] = []
    with seeded(seed):
        for call in calls:
            zeros = Wholes(np.zeros(len(call), np.int64))
            noise += add(zeros, np.array(call, np.uint64), mechanism._units).tolist()
    return noise


def expected(
    mechanism: sf.Laplace | sf.Gaussian, values: Sequence[Number], seed: int, *, singly: bool = False
) -> list[float]:
    """That noise plus the whole parts, in exact arithmetic."""
    pairs = [split(value, mechanism.grid) for value in values]
    noise = drawn(mechanism, [fraction for _, fraction in pairs], seed, singly=singly)
    sums = [whole + each for (whole, _), each in zip(pairs, noise, strict=True)]
    return [nearest(each * Fraction(mechanism.grid)) for each in sums]


def aimed(mechanism: sf.Laplace | sf.Gaussian, count: int, seed: int, *, singly: bool = False) -> list[int]:
    """Integers whose sums with the noise of this seed lie halfway between two floats, or one step beside."""
    step, generator = int(mechanism.grid), np.random.default_rng([count, seed])
    values = []
    for noise in drawn(mechanism, [0] * count, seed, singly=singly):
        half = 2 * int(generator.integers(2**52, 2**53)) + 1  # 54 bits: a float has 53
        target = half << int(generator.integers(generator.choice([12, 900])))
        beside, sign = int(generator.integers(-1, 2)), int(generator.choice([-1, 1]))
        values.append((sign * target + beside - noise) * step)
    return values


def released(release: Callable[[], object], seed: int) -> list[float]:
    with seeded(seed):
        return np.asarray(release(), np.float64).reshape(-1).tolist()


def errors(mechanism: sf.Laplace | sf.Gaussian, count: int = 300) -> int:
    """How many answers differ from the exact ones, over all ways to ask."""
    floats, whole = doubles(mechanism.grid, count), integers(count)
    wrong = 0
    for values in (floats, floats[5::60][:12], floats[-9:]):  # as one vector, and few from the pools
        wanted = expected(mechanism, values, 1)
        for form in (list, np.array, lambda x: np.array(x, object), lambda x: np.array(x)[None, :, None]):
            answers = released(lambda form=form, values=values: mechanism.release(form(values)), 1)
            wrong += sum(a != b for a, b in zip(answers, wanted, strict=True))
    for values in (whole, whole[3:15], [*floats[:40], *whole[:40]], [2**70, 0.5]):
        answers = released(lambda values=values: mechanism.release(np.array(values, object)), 2)
        wrong += sum(a != b for a, b in zip(answers, expected(mechanism, values, 2), strict=True))
    for values in (whole, whole[3:15]):
        answers = released(lambda values=values: mechanism.release_whole(values), 3)
        wrong += sum(a != b for a, b in zip(answers, expected(mechanism, values, 3), strict=True))
    for values, form in ((floats[::7], float), (floats[::7], np.float64), (whole[::7], int)):
        answers = released(lambda values=values, form=form: [mechanism.release(form(x)) for x in values], 4)
        wanted = expected(mechanism, values, 4, singly=True)
        wrong += sum(a != b for a, b in zip(answers, wanted, strict=True))
    return wrong


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_doubles_and_integers_of_every_size_get_the_exact_sum(mechanism: sf.Laplace | sf.Gaussian) -> None:
    assert errors(mechanism) == 0


def missed(mechanism: sf.Laplace | sf.Gaussian) -> int:
    """How many answers differ from the exact ones where the last bit of a sum decides."""
    wrong = 0
    for count in (400, 12):
        values = aimed(mechanism, count, 8)
        wanted = expected(mechanism, values, 8)
        for form in (lambda x: mechanism.release(np.array(x, object)), mechanism.release_whole):
            answers = released(lambda form=form, values=values: form(values), 8)
            wrong += sum(a != b for a, b in zip(answers, wanted, strict=True))
    values = aimed(mechanism, 60, 9, singly=True)
    answers = released(lambda: [mechanism.release(value) for value in values], 9)
    wanted = expected(mechanism, values, 9, singly=True)
    return wrong + sum(a != b for a, b in zip(answers, wanted, strict=True))


@pytest.mark.parametrize("name", ["grid of integers", "grid of 2**20"])
def test_sums_between_two_floats_go_to_the_nearer_one_and_halves_to_even(name: str) -> None:
    assert missed(MECHANISMS[name]) == 0


def _clamped(grid: Grid, units: Wholes) -> np.ndarray:
    return grid.floats(np.array([max(-(2**62), min(2**62, each)) for each in units.tolist()]))


def _twice_rounded(grid: Grid, units: Wholes) -> np.ndarray:
    """To 64 bits first, and from there to a float."""
    found = []
    for each in units.tolist():
        cut = max(0, abs(each).bit_length() - 64)
        found.append(grid.float_at((each + (1 << cut >> 1) >> cut) << cut))
    return np.array(found)


def _in_floats(grid: Grid, units: Wholes) -> np.ndarray:
    """High and low parts as floats, added: the high one is rounded before it meets the noise."""
    with np.errstate(over="ignore"):
        parts = [
            grid.float_at(each >> 32 << 32) + grid.float_at(each & 0xFFFFFFFF) for each in units.tolist()
        ]
    return np.clip(np.array(parts), -MOST, MOST)


def _infinite(grid: Grid, units: Wholes) -> np.ndarray:
    answers = FLOATS_AT(grid, units)
    return np.where(np.abs(answers) == MOST, np.copysign(np.inf, answers), answers)


@pytest.mark.parametrize("bug", [_clamped, _twice_rounded, _in_floats, _infinite])
def test_other_ways_to_round_are_seen(bug: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grid, "floats_at", bug)
    assert errors(MECHANISMS["usual"], 50) + missed(MECHANISMS["grid of integers"]) > 0


def test_a_value_that_is_rounded_to_a_float_first_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Grid.split
    monkeypatch.setattr(Grid, "split", lambda grid, value: plain(grid, max(-MOST, min(MOST, value)) + 0.0))
    assert missed(MECHANISMS["grid of integers"]) > 0


def test_a_single_sum_that_is_rounded_twice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _grid._float_of
    monkeypatch.setattr(_grid, "_float_of", lambda biased, grid: plain(biased >> 1 << 1, grid))
    assert missed(MECHANISMS["grid of integers"]) > 0


@pytest.mark.parametrize("most", [0, 5, 2**40])
def test_where_numbers_are_held_makes_no_difference(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held aside from 0, from 5 or from 2**62 on: which path a number takes is a matter of speed alone."""
    for mechanism in MECHANISMS.values():
        values = doubles(mechanism.grid, 300)
        usual = released(lambda mechanism=mechanism, values=values: mechanism.release(values), 5)
        with monkeypatch.context() as patch:
            patch.setattr(continuous, "_SAFE", most)
            again = released(lambda mechanism=mechanism, values=values: mechanism.release(values), 5)
        assert again == usual


@pytest.mark.parametrize(
    "example",
    [
        Example.of_release("laplace at 2**40", sf.Laplace(1, 1), 2.0**40, 2.0**40 + 1),
        Example.of_release("laplace at -1e13", sf.Laplace("0.1", 3), -1e13, -1e13 + 3),
        Example.of_release("laplace: vector", sf.Laplace(2, 3), (1e12, -1e12), (1e12 + 1, -1e12 - 2)),
        Example.of_release("gaussian at 1e12", sf.Gaussian(rho="0.5", sensitivity=1), 1e12, 1e12 + 1),
        Example.of_release("tiny noise at 1", sf.Laplace("1e12", 1), 1.0, 1.0 + 2.0**-39),
    ],
    ids=lambda example: example.name,
)
def test_the_conformance_kit_passes_huge_values(example: Example) -> None:
    tight = 0.0 if example.name.startswith("tiny") else 0.55  # a neighbour at full distance is a world away
    check_mechanism(example, samples=20_000, tight=tight)


@pytest.mark.parametrize("value", [2.0**40, -(2.0**40), 10**12, 10**12 + 1])
def test_single_huge_values_follow_the_law(value: Number) -> None:
    mechanism = sf.Laplace(1, 1)
    with seeded(6):
        noise = np.array([mechanism.release(value) for _ in range(20_000)]) - value
    assert_continuous(noise, stats.laplace.cdf)
    with pytest.raises(AssertionError):
        assert_continuous(noise * 1.1, stats.laplace.cdf)


CORNER = 2.0**54  # floats are 4 apart above, and 2 below


def corner_law(centre: float, scale: float) -> dict[int, float]:
    """The probability of each float around the corner, by its distance: the mass of what rounds to it."""
    points = [2 * k if k < 0 else 4 * k for k in range(-60, 60)]
    ends = [(a + b) / 2 for a, b in pairwise(points)]
    masses = np.diff(stats.laplace.cdf([-np.inf, *ends, np.inf], loc=centre, scale=scale))
    return dict(zip(points, masses.tolist(), strict=True))


def spaced(mechanism: sf.Laplace, value: float, count: int) -> np.ndarray:
    """The planted bug: noise is rounded to the spacing of floats at the value, and added then."""
    noise, step = mechanism.release(np.zeros(count)), np.spacing(value)
    return value + np.rint(noise / step) * step


@pytest.mark.parametrize("value", [CORNER, CORNER - 2, CORNER - 4, CORNER + 4])
def test_noise_below_the_spacing_of_floats_is_rounded_with_the_sum(value: float) -> None:
    mechanism = sf.Laplace(1, 4)
    with seeded(7):
        answers = mechanism.release(np.full(40_000, value))
        careless = spaced(mechanism, value, 40_000)
    law = corner_law(value - CORNER, 4.0)
    assert_discrete((answers - CORNER).astype(np.int64), law)
    if value >= CORNER:
        with pytest.raises(AssertionError):
            assert_discrete((careless - CORNER).astype(np.int64), law)


def test_noise_that_is_rounded_before_it_is_added_shows_the_value() -> None:
    """Below the corner, half of the floats can be reached from one neighbour alone."""
    mechanism = sf.Laplace(1, 4)
    sides = CORNER, CORNER - 4
    honest = examine(Example.of_release("rounded last", mechanism, *sides), samples=20_000, tight=0.0)
    assert not [each for each in honest.failures if each.check in ("loss", "support")]
    planted = claimed(
        "rounded first", mechanism, *sides, lambda value, count: spaced(mechanism, value, count)
    )
    assert "loss" in {each.check for each in examine(planted, samples=20_000, tight=0.0).failures}


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_the_size_of_a_value_decides_nothing_but_the_sum(mechanism: sf.Laplace | sf.Gaussian) -> None:
    """Values in one place of an array, of any size: the same call for noise, and the same answer from it."""
    edge = mechanism.grid * 2.0**62 if mechanism.grid < 1e280 else 1e300
    sizes = [0.0, 1.0, edge, math.nextafter(edge, 0), 2 * edge, -MOST]
    shapes = (float, lambda x: [x, 0.5], lambda x: np.append(np.zeros(40), x))
    for shape in shapes:
        for value in sizes:
            sides = [lambda x=x, shape=shape: mechanism.release(shape(x)) for x in (0.25, value)]
            assert compare(*sides, inside=True) == []
    for value in (2**61, 2**62, 2**80, -(10**400)):
        sides = [lambda x=x: mechanism.release_whole([x, 7]) for x in (1, value)]
        assert compare(*sides, inside=True) == []


def test_a_value_that_is_added_after_the_draw_is_seen_by_the_replay() -> None:
    mechanism = sf.Laplace(1, 1)

    def careless(value: float) -> float:
        small = abs(value) < 2.0**32
        return mechanism.release(value if small else 0.0) + (0.0 if small else value)

    sides = [lambda x=x: careless(x) for x in (2.0**32 - 1, 2.0**32)]
    assert compare(*sides, inside=True) != []


@pytest.mark.parametrize("start", [10**10, 10**25, -(10**60)])
def test_what_huge_neighbours_lose_is_paid_for(start: int) -> None:
    """Nearly all of the price is lost, and no more: nothing is cut off on the way to the noise."""

    def tapes(mechanism: sf.Laplace | sf.Gaussian) -> list[Tape]:
        return [record(lambda x=x: mechanism.release_whole([x, 5]), inside=True) for x in (start, start + 3)]

    laplace, gaussian = sf.Laplace("0.7", 3), sf.Gaussian(rho="0.2", sensitivity=3)
    for paid, price in (
        (lost(*tapes(laplace))[0], laplace.epsilon),
        (lost(*tapes(gaussian))[1], gaussian.rho),
    ):
        assert price * (1 - Fraction(1, 2**50)) < paid <= price


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused_beside_huge_values(bad: float) -> None:
    for value in (bad, [1e300, bad], np.append(np.full(40, 1e300), bad), np.array([10**400, bad], object)):
        with pytest.raises(InvalidValue, match="finite"):
            sf.Laplace(1, 1).release(value)
