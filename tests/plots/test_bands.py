"""The picture of released values: what is drawn, not how it looks in pixels."""

import math
import subprocess
import sys
import threading

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.plots import noise_bands, noise_panels


def picture(count, *, width=2.0, label="key {}", **options):
    values = np.linspace(10, 20, count)
    labels = [label.format(place) for place in range(count)]
    return noise_bands(labels, values, values - width, values + width, **options)


def test_few_short_keys_stand_side_by_side(inside):
    figure = picture(5, label="k{}", title="Visits", ylabel="visits", confidence=0.95)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["k0", "k1", "k2", "k3", "k4"]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([4.0] * 5)
    assert [bar.get_y() for bar in axes.patches] == pytest.approx(np.linspace(10, 20, 5) - 2)
    (dots,) = (line for line in axes.lines if line.get_marker() == "o")
    assert list(dots.get_ydata()) == pytest.approx(list(np.linspace(10, 20, 5)))
    assert axes.get_ylabel() == "visits"
    assert figure.get_suptitle() == "Visits"
    assert "95 %" in figure.get_supxlabel()
    assert inside(figure)


@pytest.mark.parametrize(("count", "label"), [(9, "key {}"), (40, "key {}"), (3, "a rather long label {}")])
def test_more_keys_or_longer_ones_lie_in_rows_from_the_top(count, label, inside):
    figure = picture(count, label=label, ylabel="visits")
    (axes,) = figure.axes
    assert len(axes.patches) == count
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([4.0] * count)
    assert [text.get_text() for text in axes.get_yticklabels()] == [label.format(i) for i in range(count)]
    assert axes.yaxis_inverted()
    assert axes.get_xlabel() == "visits"
    assert inside(figure)


@pytest.mark.parametrize("count", [41, 366, 5000])
def test_very_many_keys_become_a_line_with_a_band(count, inside):
    figure = picture(count, label="2024-{:04d}")
    (axes,) = figure.axes
    assert not axes.patches
    assert len(axes.collections) == 1  # the band
    assert len(axes.lines[0].get_xdata()) == count
    assert 2 <= len(axes.get_xticklabels()) <= 11
    assert inside(figure)


@pytest.mark.parametrize(
    ("keys", "ticks"),
    [
        (np.linspace(0, 100, 1025), ["0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100"]),
        (range(110), ["0", "20", "40", "60", "80", "100"]),
        (range(1900, 2000), [str(year) for year in range(1900, 2000, 10)]),
        (
            np.linspace(-1, 1, 65),
            ["−1", "−0.8", "−0.6", "−0.4", "−0.2", "0", "0.2", "0.4", "0.6", "0.8", "1"],
        ),
        ([*range(50), 1_000_000.5], ["0", "200,000", "400,000"]),
    ],
)
def test_a_line_over_numbers_has_round_ticks_in_their_places(keys, ticks, inside):
    figure = noise_bands(keys, np.ones(len(keys)), np.zeros(len(keys)), np.ones(len(keys)))
    (axes,) = figure.axes
    assert list(axes.lines[0].get_xdata()) == list(keys)
    assert [text.get_text() for text in axes.get_xticklabels()][: len(ticks)] == ticks
    places = [float(tick.replace(",", "").replace("−", "-")) for tick in ticks]
    assert np.allclose(axes.get_xticks()[: len(ticks)], places)
    assert inside(figure)


@pytest.mark.parametrize("keys", [[*range(50), 3], [*range(50), math.inf], [True, *range(2, 52)], ["7"] * 60])
def test_other_keys_stand_one_after_the_other(keys):
    (axes,) = noise_bands(keys, np.ones(len(keys)), np.zeros(len(keys)), np.ones(len(keys))).axes
    assert list(axes.lines[0].get_xdata()) == list(range(len(keys)))
    assert axes.get_xticklabels()[0].get_text() == str(keys[0])


@pytest.mark.parametrize("count", [3, 12, 60])
def test_keys_have_a_name_and_a_note_may_be_another(count, inside):
    figure = picture(count, label="k{}", xlabel="drink", ylabel="people", note="What was found.")
    (axes,) = figure.axes
    assert {axes.get_xlabel(), axes.get_ylabel()} == {"drink", "people"}
    assert (axes.get_xlabel() == "drink") == (count != 12)  # the keys of rows stand on the left
    assert figure.get_supxlabel() == "What was found."
    assert inside(figure)


def test_one_group_without_a_name_is_a_picture_too():
    (axes,) = noise_bands([""], [42], [39], [45], ylabel="n").axes
    assert len(axes.patches) == 1
    low, high = axes.get_ylim()
    assert low < 39
    assert high > 45


def test_negative_values_keep_their_place_below_a_line_at_zero():
    (axes,) = noise_bands(["a", "b"], [-5, 3], [-9, -1], [-1, 7]).axes
    assert axes.get_ylim()[0] < -9
    assert axes.get_ylim()[1] > 7
    assert any(list(line.get_ydata()) == [0, 0] for line in axes.lines)
    (axes,) = noise_bands(["a", "b"], [-5, -9], [-6, -10], [-4, -8]).axes
    assert axes.get_ylim()[1] == 0


def test_values_far_from_zero_are_not_squeezed_to_show_it():
    assert noise_bands(["a", "b"], [100, 104], [99, 103], [101, 105]).axes[0].get_ylim()[0] > 90
    assert noise_bands(["a", "b"], [1, 104], [0.5, 103], [2, 105]).axes[0].get_ylim()[0] == 0


def test_missing_values_leave_a_gap_that_is_said_and_open_bands_run_to_the_edge():
    figure = noise_bands(["a", "b", "c"], [1, None, 3], [0, None, -math.inf], [2, math.nan, math.inf])
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["no value"]
    open_band = axes.patches[2]
    assert (open_band.get_y(), open_band.get_y() + open_band.get_height()) == pytest.approx(axes.get_ylim())
    (axes,) = noise_bands(["a"], [None], [None], [None]).axes
    assert axes.get_ylim() == (-1, 1)


def test_a_value_between_two_gaps_of_a_line_is_still_seen():
    values = [1.0, None, 3.0, None, *[5.0] * 50]
    (axes,) = noise_bands(range(54), values, values, values).axes
    seen = {float(x) for line in axes.lines if line.get_marker() == "o" for x in line.get_xdata()}
    assert seen == {0.0, 2.0}


@pytest.mark.parametrize("size", [1e-300, 1e-7, 1.0, 1e15, 1e300])
def test_any_size_of_number_is_drawn(size, inside):
    figure = noise_bands(["a", "b"], [size, -size], [0, -2 * size], [2 * size, 0], title="t", ylabel="y")
    assert np.isfinite(figure.axes[0].get_ylim()).all()
    assert inside(figure)


def test_labels_are_text_and_nothing_else(inside):
    names = ["$5–$10", r"$\frac{$", "Île·東京", "two\nlines", "x" * 300, "", "_hidden", "ok"]
    figure = noise_bands(names, range(8), range(8), range(8), title=r"$\frac{$", ylabel="$x_$")
    shown = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert shown[:4] == ["$5–$10", r"$\frac{$", "Île·□□", "two lines"]
    assert len(shown[4]) <= 36
    assert "…" in shown[4]
    assert shown[6] == "_hidden"
    assert inside(figure)  # drawing parses no mathematics and warns of no missing glyph


def test_long_titles_are_wrapped_inside_the_picture(inside):
    assert inside(
        picture(3, label="k{}", title="A very long title about very many things " * 8, ylabel="y " * 90)
    )


def test_panels_share_their_keys(inside):
    columns = ([1, 2, 3], [0, 1, 2], [2, 3, 4])
    figure = noise_panels(["a", "b", "c"], {"n": columns, "mean": columns}, title="Two")
    assert [axes.get_ylabel() for axes in figure.axes] == ["n", "mean"]
    long = ["a long label number one", "b", "c"]
    figure = noise_panels(long, {"n": columns, "mean": columns})
    assert [axes.get_xlabel() for axes in figure.axes] == ["n", "mean"]
    assert [len(axes.patches) for axes in figure.axes] == [3, 3]
    assert inside(figure)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([], [], [], []), "nothing to draw"),
        ((["a"], [1, 2], [1], [1]), "as many"),
        ((["a"], [1], [2], [1]), "above high"),
        ((["a"], ["x"], [2], [1]), "list of numbers"),
    ],
)
def test_unusable_arguments_are_refused(arguments, words):
    with pytest.raises(InvalidParameter, match=words):
        noise_bands(*arguments)


def test_too_many_panels_are_refused():
    with pytest.raises(InvalidParameter, match="At most 6"):
        noise_panels(["a"], {str(i): ([1], [0], [2]) for i in range(7)})


@pytest.mark.parametrize(
    ("name", "start"), [("x.png", b"\x89PNG"), ("X.PNG", b"\x89PNG"), ("x.svg", b"<?xml")]
)
def test_pictures_are_written_whole(tmp_path, name, start):
    path = tmp_path / name
    path.write_bytes(b"old")
    picture(3, path=path)
    assert path.read_bytes().startswith(start)
    assert [found.name for found in tmp_path.iterdir()] == [name]
    picture(3, path=str(path))


def test_a_failed_write_leaves_the_old_picture_and_no_litter(tmp_path):
    with pytest.raises(InvalidParameter, match=r"\.png or \.svg"):
        picture(3, path=tmp_path / "x.docx")
    with pytest.raises(InvalidParameter, match=r"no folder for x\.png; make it first"):
        picture(3, path=tmp_path / "no" / "x.png")
    (tmp_path / "x.png").mkdir()
    with pytest.raises(InvalidParameter, match=r"x\.png cannot be written there"):
        picture(3, path=tmp_path / "x.png")
    assert [found.name for found in tmp_path.iterdir()] == ["x.png"]


def test_threads_draw_side_by_side(tmp_path):
    threads = [
        threading.Thread(target=picture, args=(5,), kwargs={"path": tmp_path / "x.png"}) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found.name for found in tmp_path.iterdir()] == ["x.png"]


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    for name in [*filter(lambda name: name.split(".")[0] == "matplotlib", sys.modules)]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"pip install 'sfumato\[plots\]'"):
        picture(3)


def test_drawing_touches_no_global_state():
    program = """
import sys, sfumato.plots
assert "matplotlib" not in sys.modules
import matplotlib
settings = lambda: {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
before = settings()
sfumato.plots.noise_bands(["a"], [1], [0], [2])
assert "matplotlib.pyplot" not in sys.modules
assert settings() == before
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
