"""Pictures of meaning: curves above guessing, and deployments that are never mixed across units."""

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.plots import deployments_chart, tradeoff_curve

RATES = np.linspace(0, 1, 11)


def test_curves_differ_by_more_than_colour(inside):
    curves = {f"ε = {power}": RATES**power for power in (1.0, 0.5, 0.2, 0.1)}
    figure = tradeoff_curve(RATES, curves, title="What ε lets an attacker do")
    (axes,) = figure.axes
    assert len(axes.lines) == 5
    assert len({line.get_linestyle() for line in axes.lines}) >= 4
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["guessing", *curves]
    assert axes.get_xlim() == axes.get_ylim() == (0, 1)
    assert inside(figure)


def test_one_curve_has_its_gap_to_guessing_shaded():
    assert len(tradeoff_curve(RATES, {"one": RATES}).axes[0].collections) == 1
    assert not tradeoff_curve(RATES, {"one": RATES, "two": RATES}).axes[0].collections


@pytest.mark.parametrize(
    ("rates", "curves"),
    [
        (RATES, {}),
        (RATES, {str(place): RATES for place in range(5)}),
        (RATES, {"a": RATES[:3]}),
        (RATES, {"a": RATES + 1}),
        (RATES[::-1], {"a": RATES}),
        ([], {"a": []}),
        ([float("nan")], {"a": [0.5]}),
    ],
)
def test_unusable_curves_are_refused(rates, curves):
    with pytest.raises(InvalidParameter):
        tradeoff_curve(rates, curves)


def test_deployments_stand_in_blocks_of_one_unit_each(inside):
    figure = deployments_chart(
        ["one", "two", "three", "four $"],
        [4, 0.01, 1.5, 30],
        ["person", "event", "person", "event"],
        here=(2, "person"),
        title="Published",
        note="Source: a registry.",
    )
    (axes,) = figure.axes
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == ["person", "three", "▸ here", "one", "event", "two", "four $"]
    assert axes.get_yticklabels()[0].get_fontweight() == "bold"
    assert axes.get_xscale() == "log"
    low, high = axes.get_xlim()
    assert low < 0.01
    assert high > 30
    own = [line for line in axes.lines if line.get_marker() == "D"]
    assert [float(line.get_xdata()[0]) for line in own] == [2.0]
    assert "says nothing about" in " ".join(figure.get_supxlabel().split())
    assert "Source: a registry." in " ".join(figure.get_supxlabel().split())
    assert inside(figure)


def test_a_release_of_another_unit_gets_a_block_of_its_own():
    (axes,) = deployments_chart(["one"], [4], ["person"], here=(2, "event")).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["person", "one", "event", "▸ here"]


@pytest.mark.parametrize("epsilon", [0, -1, float("inf"), float("nan"), None])
def test_epsilons_off_the_axis_are_refused(epsilon):
    with pytest.raises(InvalidParameter):
        deployments_chart(["one"], [epsilon], ["person"])
