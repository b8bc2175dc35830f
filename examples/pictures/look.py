"""How the pictures of the documentation look: one size, one palette by day and one by night, and plain SVG.

A picture is a function that draws on a `Sheet`; its docstring says in words what one sees, for those who
cannot. Files are the same bytes each time they are made, with the versions that requirements/ pins.
"""

from __future__ import annotations

import inspect
import io
import itertools
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

ROOT = Path(__file__).parents[2] / "docs" / "pictures"
WIDTH, HEIGHT = 640 / 96, 360 / 96  # inches; browsers show 96 pixels in each
TITLE, LABEL, TICK, NOTE = 11.0, 9.0, 8.0, 8.0  # points
# Measured in DejaVu Sans, which is wider than the others: what fits here fits there.
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Look:
    """The colours of a picture.

    Those by day are the ones of `sfumato.plots`: blue and orange of Okabe and Ito, which every kind of
    colour vision tells apart. Lines also differ in their dashes, points in their shape, bars in lightness.
    """

    paper: str
    ink: str
    grey: str
    faint: str
    blue: str
    orange: str
    sky: str
    band: str
    glow: str


DAY = Look("#ffffff", "#1c1c1c", "#5f5f5f", "#dddddd", "#00507d", "#d9730d", "#4f9bc4", "#a8d1ea", "#fbe3cd")
NIGHT = Look(
    "#1c2026", "#e8e6e1", "#a5abb5", "#363c46", "#8fd0f5", "#ee8d3c", "#5b9cc9", "#2b4a60", "#4d3420"
)


class Sheet:
    """An empty picture with what all pictures share.

    Attributes:
        look: The colours.
        figure: The figure of matplotlib.
        lines: Colour and dashes of the first, second, third and fourth line.
    """

    def __init__(self, look: Look) -> None:
        self.look = look
        layout = ConstrainedLayoutEngine(w_pad=0.11, h_pad=0.07, wspace=0.04, hspace=0.02)
        self.figure = Figure(figsize=(WIDTH, HEIGHT), facecolor=look.paper, layout=layout)
        self.lines = ((look.blue, "-"), (look.orange, "--"), (look.ink, "-."), (look.sky, ":"))

    def say(self, title: str, note: str) -> None:
        """The title above, and one line of small print below."""
        self.figure.suptitle(
            title, x=0.016, ha="left", fontsize=TITLE, fontweight="bold", color=self.look.ink
        )
        self.figure.supxlabel(note, x=0.016, ha="left", fontsize=NOTE, color=self.look.grey)

    def panels(self, rows: int = 1, columns: int = 1, *, x: str = "", y: str = "", **how: Any) -> list[Axes]:
        """The axes, row by row; the last row has the name of x, and the first column that of y."""
        grid = self.figure.subplots(rows, columns, squeeze=False, **how)
        for (row, column), axes in np.ndenumerate(grid):
            self.plain(axes)
            if x and row == rows - 1:
                self.name_x(axes, x)
            if y and column == 0:
                self.name_y(axes, y)
        return list(grid.flat)

    def plain(self, axes: Axes) -> None:
        """Axes with a light grid along the values and no box around."""
        axes.set_facecolor("none")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(self.look.grey)
        axes.spines["bottom"].set_linewidth(0.8)
        axes.grid(axis="y", color=self.look.faint, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(which="both", labelsize=TICK, labelcolor=self.look.ink, color=self.look.grey)
        axes.tick_params(axis="y", which="both", length=0)
        axes.tick_params(axis="x", which="both", length=3)
        axes.xaxis.set_major_formatter(number)
        axes.yaxis.set_major_formatter(number)

    def name_x(self, axes: Axes, name: str) -> None:
        axes.set_xlabel(name, fontsize=LABEL, color=self.look.ink, labelpad=2)

    def name_y(self, axes: Axes, name: str) -> None:
        axes.set_ylabel(name, fontsize=LABEL, color=self.look.ink)

    def legend(self, axes: Axes, *, columns: int = 4, of_all: bool = False) -> None:
        """What lines and marks mean, above the axes, where nothing is drawn; or above all panels."""
        how: dict[str, Any] = {"frameon": False, "fontsize": NOTE, "labelcolor": self.look.ink}
        how |= {"columnspacing": 1.5, "handlelength": 2.0, "borderpad": 0.2, "labelspacing": 0.3}
        named: dict[str, Any] = {}
        for panel in self.figure.axes if of_all else [axes]:
            named = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True)) | named
        place = {"loc": "lower left", "bbox_to_anchor": (-0.012, 1.0), "ncols": columns}
        legend = axes.legend(named.values(), named, **place, **how)
        if of_all:  # it may be wider than its panel: an empty title keeps the room
            legend.set_in_layout(False)
            axes.set_title(" ", fontsize=NOTE)

    def write(self, axes: Axes, text: str, at: tuple[float, float], **how: Any) -> None:
        """A few words in the picture."""
        how = {
            "fontsize": NOTE,
            "color": self.look.ink,
            "ha": "left",
            "va": "center",
            "linespacing": 1.3,
        } | how
        axes.text(*at, text, **how)

    def check(self) -> None:
        """Refuse a picture of which something is cut off, or whose labels lie over each other.

        Raises:
            ValueError: if so.
        """
        FigureCanvasAgg(self.figure)
        self.figure.draw_without_rendering()
        box = self.figure.get_tightbbox()
        if min(box.x0, box.y0) < 0 or box.x1 > WIDTH or box.y1 > HEIGHT:
            raise ValueError("Something is cut off at the edge.")
        legends = [legend for axes in self.figure.axes if (legend := axes.get_legend())]
        above = [*self.figure.texts, *legends]
        for one, other in itertools.combinations([part.get_window_extent() for part in above], 2):
            if one.overlaps(other):
                raise ValueError("The legend lies over another, or over the title.")
        for axes, of in itertools.product(self.figure.axes, "xy"):
            axis = axes.xaxis if of == "x" else axes.yaxis
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            labels = [tick.label1 for tick in ticks if tick.label1.get_visible() and tick.label1.get_text()]
            boxes = [label.get_window_extent() for label in labels]
            if any(one.overlaps(other) for one, other in itertools.pairwise(boxes)):
                raise ValueError(f"Labels of the {of}-axis lie over each other.")

    def svg(self, words: str) -> str:
        """The picture as a file: no date, no versions, numbers to a hundredth, names by their order."""
        self.check()
        drawn = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "sfumato"}):
            FigureCanvasSVG(self.figure).print_svg(drawn, metadata=nothing)
        text = re.sub(r" *<metadata>.*?</metadata>\n", "", drawn.getvalue(), flags=re.S)
        text = re.sub(r"<[^>]*>", _rounded, text, flags=re.S)
        text = text.replace("'DejaVu Sans'", "sans-serif")
        text = text.replace("</style>", f"text {{font-family: {FONTS} !important}}</style>", 1)
        for place, name in enumerate(dict.fromkeys(re.findall(r'id="([a-z][0-9a-f]{10})"', text))):
            text = text.replace(name, f"s{place}")
        head, rest = text.split(">\n <defs>", 1)
        title = f' role="img">\n <title>{escape(words)}</title>\n <defs>'
        return "\n".join(line.rstrip() for line in (head + title + rest).splitlines()) + "\n"


def _rounded(tag: re.Match[str]) -> str:
    """A tag with its numbers to a hundredth of a point."""
    return re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), tag[0])


Drawing = Callable[[Sheet], None]


def words(drawing: Drawing) -> str:
    """What one sees, as one line."""
    return " ".join((inspect.getdoc(drawing) or "").split())


def slug(drawing: Drawing) -> str:
    return drawing.__name__.replace("_", "-")


def drawn(drawing: Drawing, look: Look) -> str:
    """The file of one picture."""
    sheet = Sheet(look)
    drawing(sheet)
    return sheet.svg(words(drawing))


def main(drawings: Sequence[Drawing], folder: str) -> None:
    """Write all pictures, or those whose names are given, by day and by night."""
    chosen = sys.argv[1:]
    unknown = set(chosen) - {slug(drawing) for drawing in drawings}
    if unknown:
        raise SystemExit(f"There is no picture {', '.join(sorted(unknown))}.")
    target = ROOT / folder
    target.mkdir(parents=True, exist_ok=True)
    for drawing in drawings:
        if not chosen or slug(drawing) in chosen:
            for look, suffix in ((DAY, ""), (NIGHT, "-dark")):
                path = target / f"{slug(drawing)}{suffix}.svg"
                path.write_text(drawn(drawing, look), encoding="utf-8")
            print(target.name, slug(drawing))


# ── numbers


def number(value: float, _place: float | None = None) -> str:
    """A tick's number: digits grouped, and a real minus sign."""
    if value and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}".replace("e-0", "e-").replace("-", "−")
    return f"{value:,.6g}".replace("-", "−")


def percent(value: float, _place: float | None = None) -> str:
    return f"{100 * value:.3g} %"
