"""Maps of shares side by side."""

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.plots import share_maps

NAN = float("nan")


def test_each_cell_says_its_share_and_all_maps_have_one_scale(inside):
    one, other = [[0.0, 1.0], [0.254, NAN]], [[0.5, 0.5], [0.5, 0.51]]
    figure = share_maps({"real": one, "$x$": other}, rows=["a", "b"], columns=[0, 1], title="Two maps")
    left, right = figure.axes
    assert [text.get_text() for text in left.texts] == ["0", "100", "25"]
    assert [text.get_text() for text in right.texts] == ["50", "50", "50", "51"]
    assert {axes.images[0].get_clim() for axes in (left, right)} == {(0, 1)}
    assert right.get_title(loc="left") == "$x$"
    assert inside(figure)


@pytest.mark.parametrize(("rows", "columns", "maps"), [(1, 1, 1), (12, 12, 4), (2, 12, 2), (12, 2, 4)])
def test_any_size_fits_and_long_names_are_cut(rows, columns, maps, inside):
    shares = np.linspace(0, 1, rows * columns).reshape(rows, columns)
    figure = share_maps(
        {f"a method whose name goes on and on, number {place}": shares for place in range(maps)},
        rows=[f"a long label {place}" for place in range(rows)],
        columns=[f"label {place}" for place in range(columns)],
        down="a column with a long name, " * 3,
        across="another column with a long name, " * 3,
        title="A title of some length, " * 9,
        note="A note of some length, " * 9,
    )
    assert inside(figure)


@pytest.mark.parametrize(
    ("maps", "said"),
    [
        ({}, "From 1 to 4"),
        ({str(place): [[0.5]] for place in range(5)}, "From 1 to 4"),
        ({"a": [[0.5, 0.5]]}, "1 rows of 1"),
        ({"a": [[1.5]]}, "between 0 and 1"),
        ({"a": [[float("inf")]]}, "between 0 and 1"),
        ({"a": [["x"]]}, "from 0 to 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(maps, said):
    with pytest.raises(InvalidParameter, match=said):
        share_maps(maps, rows=[0], columns=[0])
    with pytest.raises(InvalidParameter, match="1 to 12"):
        share_maps({"a": np.zeros((13, 1))}, rows=range(13), columns=[0])
