"""The picture of a budget: lengths, safe digits, and what does not fit."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.plots import budget_bar


def said(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def lengths(figure):
    return [(bar.get_x(), bar.get_width()) for bar in figure.axes[0].patches]


def test_the_bar_is_as_long_as_the_budget(inside):
    figure = budget_bar("0.7", 2, asked=0.3, title="Budget of visits")
    assert said(figure) == ["spent 0.7", "asked 0.3", "left 1"]
    assert np.allclose(lengths(figure), [(0.0, 0.7), (0.7, 0.3), (1.0, 1.0)])
    assert figure.axes[0].get_xlabel() == "ε, of a budget of 2"
    assert inside(figure)


def test_an_exact_budget_is_exactly_used_up():
    assert said(budget_bar({str(place): 0.1 for place in range(3)}, 0.3))[-1] == "left 0"
    assert said(budget_bar(0, 2)) == ["spent 0", "left 2"]
    assert said(budget_bar({}, 2)) == ["spent 0", "left 2"]


def test_digits_are_rounded_to_the_safe_side():
    assert said(budget_bar(Fraction(1, 3), 1)) == ["spent 0.333334", "left 0.666666"]
    assert said(budget_bar("0.99999999", 1)) == ["spent 1", "left 1e−08"]


def test_what_does_not_fit_is_drawn_beyond_the_end_and_said():
    figure = budget_bar(1, 2, asked="1.5")
    assert "Does not fit: 0.5 more" in figure.get_supxlabel()
    assert said(figure) == ["spent 1", "asked 1.5"]
    assert figure.axes[0].get_xlim()[1] > 2.5
    assert "fit" not in budget_bar(1, 2, asked=1).get_supxlabel()


def test_small_parts_are_summed_up_and_nothing_is_lost(inside):
    spent = {f"analyst number {place} $x$": Fraction(place, 10) for place in range(1, 9)}
    figure = budget_bar(spent, 5, asked="0.1", title="By analyst", unit="ε at δ = 1e-6")
    assert said(figure)[-3:] == ["4 others 1", "asked 0.1", "left 1.3"]
    assert len(said(figure)) == 7
    assert sum(width for _, width in lengths(figure)) == pytest.approx(5.0)
    assert inside(figure)


@pytest.mark.parametrize(("spent", "total", "asked"), [(-1, 2, 0), (1, 0, 0), (1, 2, -1), ("x", 2, 0)])
def test_unusable_numbers_are_refused(spent, total, asked):
    with pytest.raises(InvalidParameter):
        budget_bar(spent, total, asked=asked)
