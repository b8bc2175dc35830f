"""Every model's examples keep their claims, and planted bugs are seen."""

from __future__ import annotations

import pytest

from sfumato.learn.examples import examples
from sfumato.testing.fits import check_fit


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_questions_stay_within_their_claims_on_neighbours(example):
    check_fit(example)
