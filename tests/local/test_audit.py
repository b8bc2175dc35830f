"""Every client, audited: samples never refute its claim and come close to it, and planted bugs are caught."""

import math

import numpy as np
import pytest

from sfumato.audit import lower_bound
from sfumato.local.examples import examples
from sfumato.testing import assert_discrete, seeded
from sfumato.testing.mutants.local import LOCAL_MUTANTS

SURE = 1 - 1e-9
SAMPLES = 60_000
ALL = examples()


def bound(example, seed, samples=SAMPLES):
    with seeded(f"local/{seed}/{example.name}"):
        left, right = example.draw("left", samples), example.draw("right", samples)
    return lower_bound(left, right, confidence=SURE).epsilon


def claim(example):
    return float(example.loss.epsilon(0.0))


def test_names_are_unique():
    names = [each.name for each in ALL]
    assert len(names) == len(set(names)) >= 12


@pytest.mark.parametrize("example", ALL, ids=lambda each: each.name)
def test_samples_do_not_refute_the_claim(example):
    found = bound(example, "honest")
    assert found <= claim(example)
    # An auditor that sees nothing proves nothing: with so few samples it still sees a good part.
    assert found >= 0.6 * example.tight * claim(example), (found, claim(example))


@pytest.mark.parametrize("example", [each for each in ALL if each.pmf], ids=lambda each: each.name)
def test_the_exact_law_keeps_the_claim_and_reaches_it(example):
    left, right = example.pmf("left"), example.pmf("right")
    assert left.keys() == right.keys()
    for law in (left, right):
        assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    ratio = max(max(left[x] / right[x], right[x] / left[x]) for x in left)
    assert math.log(ratio) == pytest.approx(claim(example), rel=1e-9)


@pytest.mark.parametrize("example", [each for each in ALL if each.pmf], ids=lambda each: each.name)
@pytest.mark.parametrize("side", ["left", "right"])
def test_reports_follow_the_exact_law(example, side):
    law = example.pmf(side)
    with seeded(f"law/{side}/{example.name}"):
        drawn = example.draw(side, SAMPLES)
    rows = drawn.tolist() if drawn.ndim == 1 else list(map(tuple, drawn.tolist()))
    places = {x: i for i, x in enumerate(law)}
    codes = np.array([places[row] for row in rows])
    assert_discrete(codes, dict(enumerate(law.values())))


@pytest.mark.parametrize("mutant", LOCAL_MUTANTS.values(), ids=lambda each: each.name)
def test_planted_bugs_are_caught_and_their_twins_are_not(mutant):
    assert bound(mutant.planted, "planted") > claim(mutant.planted)
    assert bound(mutant.honest, "twin") <= claim(mutant.honest)


def test_the_true_bit_that_is_never_flipped_is_named():
    assert "RAPPOR that never flips a true bit" in LOCAL_MUTANTS
