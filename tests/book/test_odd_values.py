"""One odd value of a column decides no type, no shape and no refusal of the others."""

from __future__ import annotations

import numpy as np

from odd_targets import book_targets
from odd_values import search
from sfumato.book import _data


def test_no_value_decides_for_others_in_any_function_of_a_column():
    found = search(book_targets())
    assert found.findings == []
    assert found.pairs > 1100
    assert found.answered > 900


def test_the_old_conversion_is_caught(monkeypatch):
    monkeypatch.setattr(_data, "floats_each_of", lambda values, flat, other: np.asarray(values, np.float64))
    assert search([each for each in book_targets() if each.name == "gs_avg"]).findings
