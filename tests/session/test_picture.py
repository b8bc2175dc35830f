"""Pictures of releases: what is drawn, in which order, and that a notebook shows it."""

import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from tables import make, rows


@pytest.fixture(scope="module")
def t():
    table = make(rows(300, 200))
    with sf.Session(table, budget=sf.Budget(epsilon=1000, delta=1e-6)) as session:
        yield session.table("visits")


def drawn(query, **options):
    return query.release(epsilon=50).plot(**options)


def ticks(figure, axis="x"):
    return [tick.get_text() for tick in getattr(figure.axes[-1], f"get_{axis}ticklabels")()]


def bars(axes):
    return [bar for bar in axes.patches if bar.get_width() == 0.7]


def test_categories_are_bars_with_the_greatest_first(t):
    figure = drawn(t.group_by("country").agg(n=sf.count()))
    assert ticks(figure) == ["FR", "DE", "IT"]  # in the table of the release, too, but by declaration
    heights = [bar.get_height() for bar in bars(figure.axes[0])]
    assert len(heights) == 3
    assert heights == sorted(heights, reverse=True)
    turned = drawn(t.group_by("country").agg(n=-1 * sf.count()))
    assert ticks(turned) == ["IT", "DE", "FR"]
    ordered = drawn(t.group_by("country").agg(n=sf.count()).sort("country"))
    assert ticks(ordered) == ["DE", "FR", "IT"]


def test_all_columns_with_bars_are_panels_unless_one_is_named(t):
    query = t.group_by("country").agg(n=sf.count(), spend=sf.mean("amount"))
    assert [axes.get_ylabel() for axes in drawn(query).axes] == ["n", "spend"]
    assert [axes.get_ylabel() for axes in drawn(query, column="spend").axes] == ["spend"]
    assert len(drawn(query, column=["spend", "n"]).axes) == 2
    for wrong in ("country", "m", ["n", "m"]):
        with pytest.raises(InvalidParameter, match="Columns with error bars: n, spend"):
            drawn(query, column=wrong)


def test_time_is_a_line_in_its_order(t):
    for key, first in ((sf.col("day").dt.truncate("month"), "2024-01"), (sf.col("day").dt.month(), "2")):
        figure = drawn(t.group_by(month=key).agg(n=sf.count()).sort("n"))
        assert not bars(figure.axes[0])
        at = figure.axes[0].lines[0].get_xdata()
        assert len(at) == 12
        assert (at[1:] > at[:-1]).all()
        assert ticks(figure)[0] == first


def test_bins_keep_their_order_and_a_notebook_shows_the_picture(t, tmp_path):
    figure = drawn(t.histogram("age", bins=4), path=tmp_path / "ages.png")
    assert ticks(figure) == ["0–27", "28–55", "56–83", "84–110"]
    assert figure._repr_png_()[:4] == (tmp_path / "ages.png").read_bytes()[:4] == b"\x89PNG"
    assert len(drawn(t.describe("age", "amount")).axes) == 6
