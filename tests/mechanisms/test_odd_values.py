"""One odd value among private ones decides no type, no shape and no refusal of another: searched by pairs."""

from __future__ import annotations

import numpy as np
import pytest

from odd_targets import mechanism_targets
from odd_values import search
from sfumato.errors import InvalidValue
from sfumato.mechanisms import _grid, _scores, randomized_response, sample_and_aggregate
from sfumato.numeric.private_ids import Ids


def test_no_value_decides_for_others_in_any_mechanism():
    found = search(mechanism_targets())
    assert found.findings == []
    assert found.pairs > 2000
    assert found.answered > 700
    assert found.refused > 900


def _named(found):
    return {finding.partition(",")[0] for finding in found.findings}


def _mixed(value, *, truths=False):
    """As numbers were read before: by the type that NumPy makes of all of them."""
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        raise InvalidValue("regular") from None
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise InvalidValue("other")
    if array.dtype.kind == "f" and any(isinstance(each, int) and abs(each) > 2**53 for each in value):
        raise InvalidValue("only integers or only floats")
    return array


def _sorted(values, *, rows, uneven):
    distinct, codes = np.unique(np.asarray(values), return_inverse=True)
    return Ids(codes, distinct)


@pytest.mark.parametrize(
    ("module", "name", "planted", "caught"),
    [
        (_grid, "numbers_of", _mixed, "laplace"),
        (_scores, "numbers_of", _mixed, "exponential"),
        (sample_and_aggregate, "rows_of", lambda values, dtype: np.asarray(values), "sample and aggregate"),
        (sample_and_aggregate, "ids_of", _sorted, "sample and aggregate: units"),
        (
            randomized_response,
            "_flattened",
            lambda value: (randomized_response.column_of(np.asarray(value), ""), np.shape(value)),
            "response of two",
        ),
    ],
    ids=["numbers", "scores", "rows", "units", "categories"],
)
def test_the_old_conversions_are_caught(monkeypatch, module, name, planted, caught):
    monkeypatch.setattr(module, name, planted)
    assert caught in _named(search([each for each in mechanism_targets() if each.name == caught]))
