"""A Census-style release is whole, non-negative and consistent, and no dearer for it."""

import importlib.util
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.testing import seeded

PATH = Path(__file__).parents[2] / "examples" / "census.py"
spec = importlib.util.spec_from_file_location("census", PATH)
census = importlib.util.module_from_spec(spec)
spec.loader.exec_module(census)


@pytest.mark.parametrize("seed", range(5))
def test_age_by_sex_by_region_is_whole_non_negative_and_consistent(seed):
    truth = census.people()
    with seeded(seed):
        regions, cells, loss = census.measure(truth, "0.1")
    assert loss.rho == Fraction(1, 10)
    assert (cells < 0).any()
    table = census.consistent(regions, cells)
    assert table.dtype == np.int64
    assert table.shape == truth.shape
    assert (table >= 0).all()
    # The regions are those of the table itself, and close to the direct measurement.
    assert np.abs(table.sum(axis=(1, 2)) - np.maximum(regions, 0)).max() < 60
    assert np.abs(table - truth).mean() < np.abs(cells - truth).mean()


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=30), st.integers(0, 500))
def test_any_noise_becomes_whole_counts_with_the_stated_sum(values, total):
    found = census.whole(census.onto_total(np.array(values), total), total)
    assert found.sum() == total
    assert (found >= 0).all()
