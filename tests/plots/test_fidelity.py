"""The page about a synthetic table."""

import pytest

from sfumato.errors import InvalidParameter
from sfumato.plots import Curves, Rates, Whiskers, fidelity_page

NAN, INF = float("nan"), float("inf")
ERRORS = Curves("Errors", "total variation", "pairs", {"one": [0.1, 0.3, NAN], "$x$": [NAN]}, is_percent=True)
GROUPS = Whiskers(
    "Models",
    "AUC",
    ["everybody", "a group whose name does not fit anywhere at all"],
    [9000, 3],
    ("from synthetic", [(0.8, 0.7, 0.9), (NAN, NAN, NAN)]),
    ("from real", [(0.9, 0.8, 1.0), (0.5, -INF, INF)]),
)
ATTACKS = Rates("Attacks", ["a", "b"], [0.5, 0.9], [(0.4, 0.6), (0.8, 1)], [(0.45, 0.55), None], [0.6, None])


def test_panels_stand_two_beside_each_other_and_a_last_one_alone(inside):
    figure = fidelity_page([ERRORS, GROUPS, ATTACKS], title="A page", note="For the steward alone.")
    errors, groups, attacks = figure.axes
    assert errors.lines[0].get_xdata().tolist() == [0.1, 0.1, 0.3]
    assert errors.lines[0].get_ydata().tolist() == [0, 0.5, 1]
    assert len(errors.lines) == 1  # of nothing there is no curve
    assert [label.get_text()[-5:] for label in groups.get_yticklabels()] == ["9,000", "ll  3"]
    assert len(attacks.collections) == 3  # two whiskers, and what is allowed
    assert attacks.get_position().width > 1.5 * errors.get_position().width
    assert inside(figure)


@pytest.mark.parametrize("panel", [ERRORS, GROUPS, ATTACKS])
def test_a_panel_alone(inside, panel):
    assert inside(fidelity_page([panel]))


@pytest.mark.parametrize(
    "panels",
    [
        [],
        [ERRORS] * 7,
        [Curves("", "", "", {})],
        [Whiskers("", "", [], [], ("", []), ("", []))],
        [Rates("", ["a"], [], [], [], [])],
    ],
)
def test_what_cannot_be_drawn_is_refused(panels):
    with pytest.raises(InvalidParameter):
        fidelity_page(panels)
