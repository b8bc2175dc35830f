"""A value outside the domain is refused by itself, whatever the others of its batch are."""

from __future__ import annotations

import numpy as np

from odd_targets import local_targets
from odd_values import search
from sfumato.local import _numbers


def test_no_value_decides_for_others_in_any_client():
    found = search(local_targets())
    assert found.findings == []
    assert found.pairs > 2000
    assert found.answered > 200
    assert found.refused > 1500


def test_a_conversion_of_all_values_at_once_is_caught(monkeypatch):
    monkeypatch.setattr(_numbers, "floats_of", lambda values, flat, other: np.asarray(values))
    assert search([each for each in local_targets() if "mean" in each.name]).findings
