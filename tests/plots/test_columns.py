"""Pictures of columns: bars of values, areas of numbers, and what is missing in words."""

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.plots import column_counts


def _panel(columns, **options):
    return column_counts(columns, **options).axes[0]


def test_the_area_of_a_bar_of_numbers_is_its_rows():
    spans = {"age": [(0.0, 1.0), (1.0, 11.0), None]}
    axes = _panel({"age": (["0", "1 to 10", None], [30.0, 20.0, 5.0])}, spans=spans)
    areas = [bar.get_height() * bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(areas, [30, 20])
    assert axes.get_title(loc="right") == "missing 5"
    assert not len(axes.get_yticks())


def test_a_value_has_a_bar_and_what_is_missing_words():
    axes = _panel({"sex": (["F", "M", None], [3000.0, 1000.0, 1200.0])})
    assert [bar.get_height() for bar in axes.patches] == [3000, 1000]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["F", "M"]
    assert axes.get_title(loc="right") == "missing 1,200"
    assert any("," in axes.yaxis.get_major_formatter()(value, 0) for value in axes.get_yticks())


def test_days_are_months_on_the_axis():
    axes = _panel({"day": (["a"], [4.0])}, spans={"day": [(18262.0, 18993.0)]}, dates=["day"])
    assert axes.xaxis.get_major_formatter()(18262, 0) == "2020-01"


@pytest.mark.parametrize("many", [1, 2, 5, 8, 9, 64])
def test_labels_have_room(many):
    names = [f"a rather long name {at}" for at in range(many)]
    axes = _panel({"kind": (names, [1.0] * many)})
    assert sum(len(label.get_text()) for label in axes.get_xticklabels()) <= max(26, 3 * many)


def test_no_columns_or_too_many_are_refused():
    for columns in ({}, {f"c{at}": (["a"], [1.0]) for at in range(25)}, {"c": (["a"], [1.0, 2.0])}):
        with pytest.raises(InvalidParameter):
            column_counts(columns)
