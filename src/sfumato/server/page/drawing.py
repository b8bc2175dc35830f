"""Charts as SVG from plain numbers: scales, axes, lines with bands, bars with whiskers, gauges.

Colours are classes of `static/page.css`, so that a chart follows light and dark. Every chart has a title that
screen readers say; numbers are beside it in a table, so that nothing is in a picture alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from html import escape

from markupsafe import Markup

from sfumato._dataclasses import dataclass

__all__ = ["Frame", "Scale", "figure", "gauge", "number", "ticks"]

_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 14, 40


def figure(value: Fraction | float) -> str:
    """A number for people, to six digits."""
    return f"{float(value):.6g}"


def number(value: float) -> str:
    """A number beside an axis."""
    size = abs(value)
    if size >= 1e6 or (0 < size < 1e-3):
        return f"{value:.3g}"
    return f"{value:,.0f}" if size >= 100 or value == int(value) else f"{value:.3g}"


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two, a few of them."""
    if not high > low or not math.isfinite(high - low):
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / most))
    step *= next(times for times in (1, 2, 5, 10) if (high - low) / (step * times) <= most)
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places on a picture.

    Attributes:
        low: The value at `start`.
        high: The value at `end`.
        start: A place.
        end: Another.
        logarithmic: Whether equal ratios are equally far apart.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
        share = 0.5 if high == low else (value - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 2)


class Frame:
    """A chart that is drawn piece by piece.

    Args:
        title: What it shows, for those who cannot see it.
        x: The lowest and highest value across.
        y: The same upwards.
        across: What is across, in a word or two.
        upwards: What is upwards.
        logarithmic: Whether equal ratios are equally far apart across.
        size: How wide and high it is, in its own units: letters are 12 of them high.
    """

    def __init__(
        self,
        title: str,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        across: str = "",
        upwards: str = "",
        logarithmic: bool = False,
        size: tuple[int, int] = (_WIDTH, _HEIGHT),
    ) -> None:
        self._width, self._height = size
        self.x = Scale(*x, _LEFT, self._width - _RIGHT, logarithmic)
        self.y = Scale(*y, self._height - _BOTTOM, _TOP)
        self._title, self._across, self._upwards = title, across, upwards
        self._parts: list[str] = []

    def axes(self, *, across: Sequence[tuple[float, str]] | None = None, upwards: bool = True) -> Frame:
        """Lines and numbers at the sides; `across`: values with their words, else round numbers."""
        for value in ticks(self.y.low, self.y.high) if upwards else ():
            at = self.y(value)
            self.shape(f'<path class="axis" d="M{_LEFT} {at}H{self._width - _RIGHT}"/>')
            self.text(_LEFT - 8, at + 4, number(value), anchor="end")
        words = across
        if words is None:
            words = [(value, number(value)) for value in ticks(self.x.low, self.x.high, 8)]
        for value, word in words:
            self.text(self.x(value), self._height - _BOTTOM + 18, word)
        bottom = self._height - _BOTTOM
        self.shape(f'<path class="axis" d="M{_LEFT} {bottom}H{self._width - _RIGHT}"/>')
        if self._across:
            self.text((_LEFT + self._width - _RIGHT) / 2, self._height - 4, self._across)
        if self._upwards:
            self.text(_LEFT, 10, self._upwards, anchor="start")
        return self

    def shape(self, text: str) -> Frame:
        """A piece of SVG that was made of numbers alone."""
        self._parts.append(text)
        return self

    def text(self, x: float, y: float, words: str, *, anchor: str = "middle", kind: str = "") -> Frame:
        """Words at a place of the picture, cut where they are long."""
        short = words if len(words) <= 24 else words[:23] + "…"
        style = f' class="{kind}"' if kind else ""
        return self.shape(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(short)}</text>'
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str = "line") -> Frame:
        """Points joined."""
        places = " ".join(f"{self.x(x)},{self.y(y)}" for x, y in points)
        return self.shape(f'<polyline class="{kind}" points="{places}"/>')

    def band(
        self,
        low: Sequence[tuple[float, float]],
        high: Sequence[tuple[float, float]],
        kind: str = "band",
    ) -> Frame:
        """What is between two lines."""
        places = " ".join(f"{self.x(x)},{self.y(y)}" for x, y in [*low, *reversed(high)])
        return self.shape(f'<polygon class="{kind}" points="{places}"/>')

    def bar(self, x: tuple[float, float], y: float, kind: str = "bar", *, base: float = 0.0) -> Frame:
        """A bar between two values across, from `base` up or down to a value."""
        left, right = self.x(x[0]), self.x(x[1])
        top, bottom = sorted((self.y(y), self.y(base)))
        size = f'width="{max(right - left, 1):.2f}" height="{max(bottom - top, 0.5):.2f}"'
        return self.shape(f'<rect class="{kind}" x="{left}" y="{top}" {size}/>')

    def whisker(self, x: float, low: float, high: float) -> Frame:
        """From one value to another, with ends: where the true one may be."""
        at, bottom, top = self.x(x), self.y(low), self.y(high)
        path = f"M{at} {bottom}V{top}M{at - 5} {top}H{at + 5}M{at - 5} {bottom}H{at + 5}"
        return self.shape(f'<path class="whisker" d="{path}"/>')

    def drawn(self) -> Markup:
        """The picture."""
        title = escape(self._title)
        head = (
            f'<svg class="chart" viewBox="0 0 {self._width} {self._height}" role="img" aria-label="{title}">'
        )
        return Markup(head + f"<title>{title}</title>" + "".join(self._parts) + "</svg>")


def gauge(used: float, *, more: float = 0.0, title: str = "") -> Markup:
    """How much of a budget is used, and how much more would be: shares between 0 and 1."""
    used, more = min(max(used, 0.0), 1.0), max(more, 0.0)
    kind = "bad" if used >= 1 else "warn" if used >= 0.8 else ""
    extra = min(more, 1 - used)
    parts = [
        '<svg class="gauge" viewBox="0 0 100 4" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(title)}">',
        '<rect class="all" width="100" height="4"/>',
        f'<rect class="used {kind}" width="{100 * used:.2f}" height="4"/>',
        f'<rect class="next" x="{100 * used:.2f}" width="{100 * extra:.2f}" height="4"/>' if extra else "",
        "</svg>",
    ]
    return Markup("".join(parts))
