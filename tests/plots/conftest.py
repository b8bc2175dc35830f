"""What a picture must never do, whatever it shows."""

import itertools

import pytest


@pytest.fixture
def inside():
    """A check that nothing is cut off at the picture's edge and no two tick labels of an axis overlap."""

    def check(figure):
        figure.draw_without_rendering()
        renderer = figure.canvas.get_renderer()
        box = figure.get_tightbbox(renderer)  # in inches
        assert box.x0 >= -0.01
        assert box.y0 >= -0.01
        assert box.x1 <= figure.get_figwidth() + 0.01
        assert box.y1 <= figure.get_figheight() + 0.01
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                shown = [
                    tick.label1
                    for tick in axis.get_major_ticks()
                    if low <= tick.get_loc() <= high and tick.label1.get_visible() and tick.label1.get_text()
                ]
                boxes = [label.get_window_extent(renderer) for label in shown]
                if not any(label.get_rotation() for label in shown):
                    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
        return True

    return check
