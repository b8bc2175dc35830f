"""The picture of a table before and after it was anonymised."""

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.plots import before_after


def bars(axes):
    """The bars by what the legend calls them: place, length."""
    return {
        each.get_label(): [(round(bar.get_y() + bar.get_height() / 2), bar.get_width()) for bar in each]
        for each in axes.containers
    }


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_rows_are_counted_by_the_size_of_their_class(inside):
    figure = before_after([1, 1, 3, 5], [5, 5], k=5, lost={"age": 0.25, "city": 0.0}, title="Ten people")
    left, right = figure.axes
    assert names(left.yaxis) == ["1", "2–4", "5 or more"]
    assert np.allclose(bars(left)["before"], [(0, 0.2), (1, 0.3), (2, 0.5)])
    assert np.allclose(bars(left)["after"], [(2, 1.0)])
    assert names(right.yaxis) == ["age", "city"]
    assert [bar.get_width() for bar in right.containers[1]] == [0.25]
    assert "20 % were one of a kind before; none was left out" in figure.get_supxlabel()
    assert inside(figure)


def test_a_bar_alone_stands_beside_its_label_and_two_share_it():
    (axes, _) = before_after([1, 1, 3, 5], [5, 5], k=5, lost={"age": 0.25}).axes
    middles = {
        each.get_label(): [bar.get_y() + bar.get_height() / 2 for bar in each] for each in axes.containers
    }
    assert middles["before"] == pytest.approx([0, 1, 1.81])
    assert middles["after"] == pytest.approx([2.19])


def test_what_was_left_out_has_a_bar_of_its_own(inside):
    figure = before_after([1, 9], [9], k=2, lost={"age": 0.1}, title="Left out")
    assert names(figure.axes[0].yaxis)[-1] == "left out"
    assert bars(figure.axes[0])["after"][-1] == (3, pytest.approx(0.1))
    assert "10 % were left out" in figure.get_supxlabel()
    assert inside(figure)


@pytest.mark.parametrize("k", [1, 2, 3, 50, 10_000])
def test_any_k_and_many_sizes_fit(k, inside):
    sizes = np.array([1, 2, 3, 70, 4_000, 2_000_000])
    lost = {f"a rather long name of a column {place}": place / 12 for place in range(12)}
    figure = before_after(sizes, sizes[sizes >= k], k=k, lost=lost, title="A title of some length, " * 9)
    assert inside(figure)


def test_small_shares_are_never_said_to_be_nothing(inside):
    figure = before_after([1, 999_999], [999_999], k=2, lost={"age": 1e-6, "$x$_y": 0.99999})
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "<0.1 %" in said
    assert ">99.9 %" in said
    assert inside(figure)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"before": []}, "before needs classes"),
        ({"before": [0, 1]}, "whole numbers from 1 on"),
        ({"before": [0.5]}, "whole numbers from 1 on"),
        ({"after": [9]}, "more rows than before"),
        ({"k": 0}, "k must be at least 1"),
        ({"lost": {}}, "One to"),
        ({"lost": {"age": 1.5}}, "between 0 and 1"),
        ({"path": "picture.pdf"}, "png or .svg"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, said):
    with pytest.raises(InvalidParameter, match=said):
        before_after(**{"before": [2, 2], "after": [4], "k": 2, "lost": {"age": 0.5}} | arguments)
