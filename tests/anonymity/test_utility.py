"""What is left of a table as k grows."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.anonymity import generalize, mondrian, utility
from sfumato.errors import InvalidParameter
from sfumato.plots import utility_curve
from sfumato.random import simulation

DRAW = simulation(1)
TABLE = pa.table({"age": DRAW.integers(18, 90, 300), "sex": DRAW.integers(0, 2, 300), "ill": ["x"] * 300})
QUASI = ["age", "sex"]


def test_the_curve_is_one_less_the_penalty_at_each_k():
    found = utility(TABLE, QUASI, ks=[5, 2, 20, 900])
    assert found.ks == (2, 5, 20)  # 900 rows are not there
    for k, local, whole in zip(found.ks, found.local, found.whole, strict=True):
        assert local == 1 - mondrian(TABLE, QUASI, k).ncp
        assert whole == 1 - generalize(TABLE, QUASI, k).ncp
    assert found.local[0] >= found.local[1] >= found.local[2]
    assert found.whole[0] >= found.whole[1] >= found.whole[2]
    assert "What is left of the quasi-identifiers of 300 rows" in str(found)
    assert max(map(len, str(found).splitlines())) <= 80


def test_the_picture_has_a_line_for_each_way():
    figure = utility(TABLE, "age", ks=[2, 10]).plot()
    (axes,) = figure.axes
    assert [line.get_xdata().tolist() for line in axes.lines] == [[2, 10], [2, 10]]
    assert np.all([(line.get_ydata() >= 0) & (line.get_ydata() <= 1) for line in axes.lines])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "10"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: utility(TABLE, QUASI, ks=[1]), "at least 2"),
        (lambda: utility(TABLE, QUASI, ks=[301]), "fewer rows"),
        (lambda: utility(TABLE, "nothing"), "nothing"),
        (lambda: utility_curve([2, 2], {"a": [1, 1]}), "must increase"),
        (lambda: utility_curve([2, 3], {"a": [1, 1.5]}), "between 0 and 1"),
        (lambda: utility_curve([2, 3], {}), "One to 4"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()
