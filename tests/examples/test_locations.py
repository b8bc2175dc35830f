"""Locations: a promise for rows shows who goes to a lonely place, a promise for phones does not."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.testing import seeded

PATH = Path(__file__).parents[2] / "examples" / "locations.py"
spec = importlib.util.spec_from_file_location("locations", PATH)
locations = importlib.util.module_from_spec(spec)
spec.loader.exec_module(locations)
X, Y = locations.LONELY


@pytest.fixture(scope="module")
def rows():
    return locations.visits(600)


def test_a_row_is_no_promise_for_who_has_fifty(rows):
    with seeded("rows"):
        town, error = locations.counted(rows, sf.PrivacyUnit.row())
    assert town[Y, X] > 30 > 3 * error
    with seeded("phones"):
        town, error = locations.counted(rows, sf.PrivacyUnit("phone", max_groups=locations.MOST))
    assert abs(town[Y, X]) < 3 * error
    assert town.argmax() in (8 * 4 + 3, 8 * 4 + 2, 8 * 3 + 3)  # the centre is still there


def test_each_phone_tells_one_place(rows):
    with seeded("local"):
        town, error = locations.told(rows, "8")  # hardly any noise, to see what is counted
    x, y = rows["x"].to_numpy(), rows["y"].to_numpy()
    last = np.r_[
        np.arange(5, 1_800, 3), 1_849
    ]  # the third visit of each, and of phone 0 the last of the fifty
    true = np.bincount(8 * y[last] + x[last], minlength=64).reshape(8, 8)
    assert np.abs(town - true).max() < 4 * error


def test_the_example_runs_and_fits_eighty_columns(capsys):
    with seeded("locations"):
        locations.main(600)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert [line.split("  ")[0] for line in said.splitlines()[-5:-2]] == [
        "a row is protected", "a phone is protected", "each phone by itself",
    ]  # fmt: skip
