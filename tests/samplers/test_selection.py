from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from flint import arb, fmpz

from sfumato.samplers import selection
from sfumato.samplers.enclosure import exp_minus


def test_the_table_encloses_the_exponential(precise, tools):
    lower, upper = selection._powers()
    assert lower.size == upper.size == selection._LAST + 1
    for q in [0, 1, 2, 255, 256, 257, 5000, selection._LAST - 1, selection._LAST]:
        truth = tools.exp_ball(Fraction(q, 256)) * arb(2) ** 62
        assert arb(fmpz(int(lower[q]))) <= truth
        assert truth <= arb(fmpz(int(upper[q])))
        assert int(upper[q]) - int(lower[q]) <= 1
    assert np.all(np.diff(upper.astype(np.int64)) <= 0)
    assert int(lower[-1]) == 0


@pytest.mark.parametrize("rate", ["1/1000", "1/3", "17", "1e-12", "edge"])
def test_steps_are_never_above_the_exact_exponent(rate):
    """q <= 256 rate gap for any gap: what the bounds of all weights rest on."""
    # The last one makes 256 rate gap an integer less a relative 2**-50, where a product rounded up would be
    # too large.
    rate = Fraction(2**50 - 1, 2**58) if rate == "edge" else Fraction(rate)
    gaps = np.array([0, 1, 2, 3, 255, 10**6, 2**53 + 1, 2**62 + 3, 2**63, 2**64 - 1], np.uint64)
    gaps = np.concatenate([gaps, np.arange(0, 3000, dtype=np.uint64)])
    _, q = selection._steps(gaps, rate)
    for gap, step in zip(gaps.tolist(), q.tolist(), strict=True):
        exact = 256 * rate * gap
        assert 0 <= step <= exact
        assert step >= min(exact * (1 - Fraction(1, 2**40)) - 1, selection._LAST)


@pytest.mark.parametrize("bits", [1, 5, 42, 61])
def test_every_cap_is_at_least_its_weight(bits):
    """All entries, against integers of 200 bits: a cap below its weight would be a wrong law."""
    caps = selection._caps(bits)
    assert caps.size == selection._LAST + 1
    for q in range(0, caps.size, 37):
        assert int(caps[q]) << 200 >= exp_minus(Fraction(q, 256), 200)[1] << bits
    assert int(caps[0]) <= (1 << bits) + 1
    assert int(caps.min()) == 1


def softmax(scores: np.ndarray, rate: Fraction) -> np.ndarray:
    weights = np.exp(float(rate) * (scores - scores.max()))
    return weights / weights.sum()


@pytest.mark.parametrize(
    ("scores", "rate"),
    [
        ([0], "1"),
        ([3, 3, 3, 3], "1/2"),
        ([0, 1, 2, 3, 4, 5], "1/3"),
        ([-100, 0, 1, 50], "1/20"),
        ([5, 0, 5, -7, 4], "0"),
        ([10, 9, 8], "1/1000000"),
    ],
)
def test_choices_follow_the_exponential_weights(stream, tools, scores, rate):
    array, rate = np.array(scores, np.int64), Fraction(rate)
    picks = np.array([selection.choose(stream, array, rate) for _ in range(2500)])
    truth = softmax(array, rate)
    if array.size == 1:
        assert not picks.any()
    else:
        assert tools.chi_square(picks, lambda k: truth[k], 0, array.size - 1) > tools.ALPHA


def test_planted_bugs_in_choice_fail(stream, tools):
    array, rate = np.arange(6), Fraction(1, 3)
    picks = np.array([selection.choose(stream, array, rate) for _ in range(2500)])
    for wrong in (softmax(array, rate / 2), softmax(-array, rate), np.full(6, 1 / 6)):
        assert tools.chi_square(picks, lambda k, w=wrong: w[k], 0, 5) < tools.ALPHA


def test_bounds_alone_are_not_the_law(stream, tools, monkeypatch):
    """With a coarse table the acceptance step does all the work: the law is right, and wrong without it."""
    lower, upper = selection._powers()
    rough = np.repeat(upper[::256], 256)[: upper.size]  # bounds too high by up to e
    monkeypatch.setattr(selection, "_powers", lambda: (lower, rough))
    # What follows from the table is kept: neither one of before nor the rough one of now may be shared.
    monkeypatch.setattr(selection, "_caps", selection._caps.__wrapped__)
    array, rate = np.arange(8), Fraction(1, 3)
    truth = softmax(array, rate)
    picks = np.array([selection.choose(stream, array, rate) for _ in range(2500)])
    assert tools.chi_square(picks, lambda k: truth[k], 0, 7) > tools.ALPHA
    monkeypatch.setattr(selection.scalar, "is_below", lambda *_: True)
    picks = np.array([selection.choose(stream, array, rate) for _ in range(2500)])
    assert tools.chi_square(picks, lambda k: truth[k], 0, 7) < tools.ALPHA


def test_scores_at_the_ends_of_int64_do_not_overflow(stream):
    ends = np.array([-(2**63), 2**63 - 1, 0], np.int64)
    assert selection._gaps(ends).tolist() == [2**64 - 1, 0, 2**63 - 1]
    assert {selection.choose(stream, ends, Fraction(1)) for _ in range(50)} == {1}
    assert selection.flip(stream, ends, Fraction(1)).tolist() == [False, True, False]
    picks = [selection.choose(stream, ends, Fraction(1, 2**64)) for _ in range(300)]
    assert set(picks) == {0, 1, 2}
    assert selection.choose(stream, ends, Fraction(10**290)) == 1


def test_a_million_candidates(stream, tools):
    scores = np.arange(1_000_000) % 1000
    groups = np.array([selection.choose(stream, scores, Fraction(1, 100)) % 1000 // 100 for _ in range(100)])
    truth = softmax(np.arange(1000), Fraction(1, 100)).reshape(10, 100).sum(axis=1)
    assert tools.chi_square(groups, lambda k: truth[k], 0, 9) > tools.ALPHA


def test_heads_have_their_probability(stream, tools):
    gaps = np.array([0, 1, 2, 3, 5, 8, 13, 50], np.int64)
    rate = Fraction(1, 7)
    count = 20_000
    heads = np.array([selection.flip(stream, np.tile(-gaps, 500), rate) for _ in range(count // 500)])
    totals = heads.reshape(-1, gaps.size)
    assert totals[:, 0].all()
    for column, gap in enumerate(gaps.tolist()):
        chance = float(np.exp(-float(rate) * gap))
        if gap:
            ok = tools.chi_square(
                totals[:, column].astype(int), lambda k, c=chance: np.array([1 - c, c])[k], 0, 1
            )
            assert ok > tools.ALPHA
    # Independence of neighbours, and a planted bug: one coin for all.
    both = (totals[:, 1] & totals[:, 2]).mean()
    apart = totals[:, 1].mean() * totals[:, 2].mean()
    assert abs(both - apart) < 0.02


@pytest.mark.parametrize("margin", [2.0**-40, 0.5])
def test_the_second_coin_alone(stream, tools, monkeypatch, margin):
    """Its float and its exact decisions follow the same law; far exponents are always exact."""
    monkeypatch.setattr(selection, "_MARGIN", margin)
    rate, gap, q = Fraction(1, 1000), 1000, 253  # z = 1 - 253/256
    count = 4000
    gaps = np.full(count, gap, np.uint64)
    x = np.full(count, float(rate * gap))
    heads = selection._second(stream, gaps, rate, x=x, q=np.full(count, q))
    chance = float(np.exp(-3 / 256))
    assert (
        tools.chi_square(heads.astype(int), lambda k: np.array([1 - chance, chance])[k], 0, 1) > tools.ALPHA
    )
    heads = selection._second(
        stream, gaps, rate, x=x, q=np.zeros(count, np.intp)
    )  # z = 1: too far for floats
    chance = float(np.exp(-1))
    assert (
        tools.chi_square(heads.astype(int), lambda k: np.array([1 - chance, chance])[k], 0, 1) > tools.ALPHA
    )


def test_a_uniform_choice_among_heads_is_permute_and_flip(stream, tools):
    """Against the definition: go through a uniform order and stop at the first heads."""
    scores, rate = np.array([4, 3, 1, 0]), Fraction(1, 2)
    chances = np.exp(-0.5 * (4 - scores))
    exact = np.zeros(4)
    for order in permutations(range(4)):
        left = 1 / 24
        for i in order:
            exact[i] += left * chances[i]
            left *= 1 - chances[i]
    picks = []
    for _ in range(4000):
        heads = np.flatnonzero(selection.flip(stream, scores, rate))
        picks.append(heads[stream.bits(64) % heads.size])
    assert tools.chi_square(np.array(picks), lambda k: exact[k], 0, 3) > tools.ALPHA
