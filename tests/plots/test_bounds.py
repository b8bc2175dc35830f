"""What was measured beside what was promised: one picture, legible, or a clear refusal."""

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.plots import against_bound

GROWS = [10, 100, 1000]


def draw(**more):
    given = {"grows": GROWS, "measured": {"private": [1, 2, 3]}, "promised": {}} | more
    grows, measured, promised = given.pop("grows"), given.pop("measured"), given.pop("promised")
    return against_bound(grows, measured, promised, of="buyers", value="revenue", **given)


def test_every_curve_is_there_and_named(tmp_path, inside):
    path = tmp_path / "curve.png"
    figure = draw(
        measured={"private": [1, 2, 3], "noisy": [0, 0, 1]},
        promised={"promised": [np.nan, 1, 2]},
        spread=([0.5, 1.5, 2.5], [1.5, 2.5, 3.5]),
        optimum=[2, 3, 4],
        logarithmic="x",
        title="Revenue",
        note="epsilon 1",
        path=path,
    )
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "private",
        "noisy",
        "promised",
        "the best there is",
    ]
    assert axes.get_xscale() == "log"
    assert axes.get_yscale() == "linear"
    assert axes.lines[0].get_ydata().tolist() == [1, 2, 3]
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert inside(figure)


@pytest.mark.parametrize("grows", [[10, 12, 15], [100, 400, 900], [3, 40, 150], [1, 1e4, 1e9]])
def test_labels_of_a_short_logarithmic_axis_do_not_overlap(grows, inside):
    figure = draw(grows=grows, measured={"private": grows}, logarithmic="xy")
    assert inside(figure)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"measured": {}}, "One to 4 measured curves"),
        ({"promised": dict.fromkeys("abcd", GROWS)}, "at most 3 bounds"),
        ({"grows": [1, 1, 2]}, "must increase"),
        ({"grows": [1], "measured": {"a": [1]}}, "at least two places"),
        ({"measured": {"a": [1, 2]}}, "as many numbers"),
        ({"promised": {"a": [1, 2]}}, "as many numbers"),
        ({"measured": {"a": ["x", 2, 3]}}, "list of numbers"),
    ],
)
def test_curves_that_cannot_be_drawn_are_refused(more, words):
    with pytest.raises(InvalidParameter, match=words):
        draw(**more)
