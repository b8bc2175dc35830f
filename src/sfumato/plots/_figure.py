"""What all pictures share: the palette, text that cannot break a drawing, and the way to disk."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sfumato._files import write_whole
from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.numeric.rounding import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "ACCENT",
    "BAND",
    "DOT",
    "FAINT",
    "GREY",
    "INK",
    "LABEL",
    "NOTE",
    "STYLES",
    "finish",
    "new_figure",
    "number",
    "numbers",
    "plain_axes",
    "printable",
    "shortened",
    "wrapped",
]

# Blue and orange of Okabe and Ito (2008), told apart by every kind of colour vision; each role also differs
# in lightness (ink 10, dot 36, accent 58, band 83), line style or marker, so that greyscale reads the same.
INK, GREY, FAINT = "#1c1c1c", "#5f5f5f", "#dddddd"
DOT, BAND, ACCENT = "#00507d", "#a8d1ea", "#d9730d"
STYLES: tuple[tuple[str, str], ...] = ((DOT, "-"), (ACCENT, "--"), (INK, "-."), ("#4f9bc4", ":"))
TITLE, LABEL, TICK, NOTE = 12.0, 10.0, 9.0, 8.5  # points
_DPI = 150
_FORMATS = ("png", "svg")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in inches that belongs to nobody: no window, no global list of figures."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        from sfumato.plots._picture import Picture
    except ImportError:
        raise MissingExtra("Pictures need matplotlib: pip install 'sfumato[plots]'.") from None
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08, wspace=0.05, hspace=0.05)
    figure = Picture(figsize=(width, height), dpi=_DPI, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    return figure


def finish(figure: Figure, *, title: str, note: str, path: str | os.PathLike[str] | None) -> Figure:
    """The figure with its title and footnote, also written to `path` if one is given.

    A file appears whole or not at all: it is written beside its place and then renamed.
    """
    columns = max(24, int(figure.get_figwidth() * 9.2))
    if title:
        figure.suptitle(
            wrapped(title, columns=columns, lines=3),
            x=0.01,
            ha="left",
            fontsize=TITLE,
            fontweight="bold",
            color=INK,
            parse_math=False,
        )
    if note:
        figure.supxlabel(
            wrapped(note, columns=int(figure.get_figwidth() * 14.5), lines=6),
            x=0.01,
            ha="left",
            fontsize=NOTE,
            color=GREY,
            parse_math=False,
        )
    figure.align_ylabels()
    if path is not None:
        _write(figure, Path(path))
    return figure


def _write(figure: Figure, path: Path) -> None:
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _FORMATS:
        raise InvalidParameter("A picture is written as .png or .svg; give a path that ends so.")
    if not path.parent.is_dir():
        raise InvalidParameter(f"There is no folder for {path.name[:100]}; make it first.")
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, metadata={"Date": None} if kind == "svg" else {})
    try:
        write_whole(path, drawn.getvalue())
    except OSError:
        raise InvalidParameter(
            f"{path.name[:100]} cannot be written there; check the folder, its rights and its room."
        ) from None


def plain_axes(axes: Axes, *, values: str) -> None:
    """Axes with a light grid along the values only ("x" or "y") and no box around."""
    for side in ("top", "right", "left" if values == "x" else "bottom"):
        axes.spines[side].set_visible(False)
    for spine in axes.spines.values():
        spine.set_color(GREY)
        spine.set_linewidth(0.8)
    axes.grid(axis="x" if values == "x" else "y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=TICK, colors=INK, color=GREY, length=3)
    axes.tick_params(axis="y" if values == "x" else "x", length=0)


# ── numbers


def numbers(values: Sequence[float | None] | Floats, name: str, *, length: int | None = None) -> Floats:
    """The values as floats; None is NaN, which is drawn as a gap.

    Raises:
        InvalidParameter: if they are not numbers, or not as many as there are labels.
    """
    try:
        array = np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(f"{name} must be a list of numbers.") from None
    if length is not None and len(array) != length:
        raise InvalidParameter(f"{name} must have as many numbers as there are labels, {length}.")
    return array


def number(value: float, _position: float | None = None) -> str:
    """A tick's number: digits grouped, a real minus sign, powers of ten only where digits would not fit."""
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.3g}".replace("-", "−")
    return f"{value:,.10g}".replace("-", "−")


# ── text


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    return frozenset(font.get_charmap())


def printable(text: object) -> str:
    """The text on one line, with a box for what the font of the picture cannot draw.

    Matplotlib would draw the box too, but with a warning for each.
    """
    known = _glyphs()
    one_line = " ".join(str(text).split())
    return "".join(letter if ord(letter) in known else "□" for letter in one_line)


def shortened(text: object, columns: int) -> str:
    """The text in at most so many letters, its middle left out: keys often differ at both ends."""
    line = printable(text)
    if len(line) <= columns:
        return line
    tail = columns // 3
    return line[: columns - tail - 1].rstrip() + "…" + line[-tail:].lstrip()


def wrapped(text: object, *, columns: int, lines: int) -> str:
    """The text broken into at most so many lines."""
    kept = shortened(text, columns * lines)
    return "\n".join(textwrap.wrap(kept, columns, max_lines=lines, placeholder=" …"))
