"""Pictures of attacks: where a reconstruction breaks."""

import pytest

from sfumato.errors import InvalidParameter
from sfumato.plots.attacks import reconstruction_curve

NOISE = [0, 1, 2, 4, 8, 16, 32]
SHARES = [1, 1, 0.99, 0.9, 0.7, 0.6, 0.5]


def test_a_curve_of_noise_marks_its_root_and_the_guess(inside, tmp_path):
    figure = reconstruction_curve(
        NOISE,
        {"linear program": SHARES, "fast $transform$": SHARES[::-1]},
        people=64,
        title="Where it breaks",
        path=tmp_path / "curve.svg",
    )
    (axes,) = figure.axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["0", "√n/8", "√n/4", "√n/2", "√n", "2√n", "4√n"]
    assert "√n = 8" in axes.get_xlabel()
    drawn = [line for line in axes.lines if len(line.get_xdata()) == len(NOISE)]
    assert [list(line.get_ydata()) for line in drawn] == [SHARES, SHARES[::-1]]
    assert drawn[0].get_xdata()[4] == 1
    assert len({(line.get_linestyle(), line.get_marker()) for line in drawn}) == 2
    assert inside(figure)
    assert (tmp_path / "curve.svg").exists()


@pytest.mark.parametrize("noise", [[0.001, 1_000], [0, 1e-6, 1, 1e6], [3, 4], [100, 200]])
def test_any_range_of_noise_has_labels_that_do_not_overlap(noise, inside):
    figure = reconstruction_curve(noise, {"found": [0.1] * len(noise)}, people=100, guess=0.9)
    assert "√n" in [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert inside(figure)


@pytest.mark.parametrize(
    ("noise", "curves", "more"),
    [
        ([1], {"a": [1]}, {}),
        ([2, 1], {"a": [1, 1]}, {}),
        ([-1, 1], {"a": [1, 1]}, {}),
        ([0, float("inf")], {"a": [1, 1]}, {}),
        ([0, 1], {}, {}),
        ([0, 1], {str(place): [1, 1] for place in range(5)}, {}),
        ([0, 1], {"a": [1]}, {}),
        ([0, 1], {"a": [1, 1.1]}, {}),
        ([0, 1], {"a": [1, None]}, {}),
        ([0, 1], {"a": [1, 1]}, {"people": 0}),
        ([0, 1], {"a": [1, 1]}, {"guess": 2}),
    ],
)
def test_unusable_curves_are_refused(noise, curves, more):
    with pytest.raises(InvalidParameter):
        reconstruction_curve(noise, curves, **{"people": 4, **more})
