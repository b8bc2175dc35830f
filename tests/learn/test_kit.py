"""Every model's examples keep their claims, and planted bugs are seen."""

from __future__ import annotations

import pytest

from sfumato.learn.examples import examples
from sfumato.testing.fits import check_fit
from sfumato.testing.mutants.fits import FIT_MUTANTS, planted
from sfumato.testing.stream import seeded

NAMED = {example.name: example for example in examples()}
CUT = ["logistic: a row at the corner", "logistic: three classes, somebody with many rows"]
CASES = [
    *[("no clipping", name) for name in [*CUT, "moments: somebody with many rows"]],
    *[("half the noise", name) for name in NAMED],
    ("a bound that is used twice", CUT[1]),
    *[("the true number of rows as normaliser", name) for name in NAMED],
    ("an intercept that is left out of the clip", CUT[0]),
]


@pytest.mark.parametrize("name", NAMED)
def test_questions_stay_within_their_claims_on_neighbours(name):
    with seeded(name):
        check_fit(NAMED[name])


def test_all_mutants_are_tried():
    assert {mutant for mutant, _ in CASES} == set(FIT_MUTANTS)


@pytest.mark.parametrize(("mutant", "name"), CASES)
def test_a_planted_bug_is_seen(mutant, name):
    example = NAMED[name]
    with seeded(f"{mutant}: {name}"), planted(mutant, type(example.make())), pytest.raises(AssertionError):
        check_fit(example)
