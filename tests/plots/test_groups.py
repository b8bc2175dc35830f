"""The picture of what noise does to groups."""

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.plots import group_figures

NAN, INF = float("nan"), float("inf")


def test_each_group_is_drawn_with_and_without_noise_and_what_it_lost(inside):
    private = [(0.8, 0.79, 0.81), (0.6, 0.4, 0.8), (NAN, NAN, NAN)]
    plain = [(0.82, 0.81, 0.83), (0.8, 0.6, 0.9), (0.5, -INF, INF)]
    lost = [(0.02, 0.01, 0.03), (0.2, -0.1, 0.5), (NAN, NAN, NAN)]
    figure = group_figures(
        ["everybody", "a group with a name that does not fit anywhere at all", "$x$"],
        [12_000, 30, 1],
        private,
        plain,
        lost,
        value="accuracy",
        title="Groups",
    )
    left, right = figure.axes
    assert [label.get_text()[-6:] for label in left.get_yticklabels()] == ["12,000", "all  30"[-6:], "$x$  1"]
    drawn = {one.get_label(): one.lines[0].get_xdata().tolist() for one in left.containers}
    assert drawn == {"without noise": [0.82, 0.8, 0.5], "with noise": [0.8, 0.6]}
    assert np.allclose(right.containers[0].lines[0].get_xdata(), [0.02, 0.2])
    assert inside(figure)


def test_one_panel_where_nothing_is_compared(inside):
    figure = group_figures(["everybody"], [3], [(0.5, 0.1, 0.9)], value="selected")
    assert len(figure.axes) == 1
    assert inside(figure)


@pytest.mark.parametrize(("labels", "sizes"), [([], []), (["a"] * 25, [1] * 25), (["a"], [1, 2])])
def test_what_cannot_be_drawn_is_refused(labels, sizes):
    with pytest.raises(InvalidParameter):
        group_figures(labels, sizes, [(0.5, 0.4, 0.6)] * len(labels), value="x")
