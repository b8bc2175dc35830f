"""The picture of an answer, chosen by its shape: bars, a line with its band, a histogram, a figure."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any, Literal

from markupsafe import Markup

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import Rational
from sfumato.render import key
from sfumato.server.page.drawing import Frame, Scale, number, ticks
from sfumato.session import Release

__all__ = ["Chart", "chart_of", "drawable"]

_MOST_BARS, _MOST_POINTS = 40, 400
_MOST_LABELS = 8
_ROW, _WIDE, _FIGURES = 26, 720, 96
_LETTERS, _LETTER = 22, 12  # of a name at most, and how wide one is where letters are large: on a phone


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture and what is said below it.

    Attributes:
        kind: What it is.
        picture: As SVG.
        note: What is drawn, in a sentence.
    """

    kind: Literal["bars", "line", "histogram", "figure"]
    picture: Markup
    note: str


@dataclass(frozen=True, slots=True)
class _Points:
    """What is drawn: places, values and the ends of their intervals, without those that have no value."""

    labels: list[Any]
    values: list[float]
    lows: list[float]
    highs: list[float]

    def in_order(self, places: Sequence[int]) -> _Points:
        return _Points(
            *([part[place] for place in places] for part in (self.labels, self.values, self.lows, self.highs))
        )

    @property
    def every(self) -> int:
        """Of how many one is drawn, so that a picture holds them; chosen by place, never by value."""
        return -(-len(self.values) // _MOST_POINTS) or 1


def drawable(release: Release) -> list[str]:
    """The columns that have error bars."""
    ends = release.interval(kind="noise").column_names
    return [name for name in release.table.column_names if f"{name}_low" in ends]


def chart_of(release: Release, column: str, confidence: Rational) -> Chart | None:
    """The picture of a column; None where there is nothing to draw.

    Args:
        release: The answer.
        column: One with error bars.
        confidence: How often the bars hold.
    """
    keys = [name for name in release.table.column_names if name not in drawable(release)]
    points = _points(release, keys, column, confidence)
    if not points.values:
        return None
    often = f"{float(confidence) * 100:g} %"
    by = f" by {', '.join(keys)}" if keys else ""
    title = f"{column}{by}, with intervals at {often}"
    if len(points.values) == 1:
        return Chart(
            "figure",
            _figure(points, title),
            f"The dot is the released value; the band holds {often} of the time.",
        )
    kind = _kind(keys, points)
    if kind == "line":
        return Chart(
            kind,
            _line(points, title, keys[0], column),
            f"The line joins released values; the band holds {often} of the time, at each place."
            f"{_thinned(points)}",
        )
    if kind == "histogram":
        return Chart(
            kind,
            _histogram(points, title, keys[0], column),
            f"Bars are released values; each whisker holds {often} of the time.",
        )
    ordered = points if release.quote.report.order or _is_ordered(points) else _greatest_first(points)
    left_out = len(ordered.values) - _MOST_BARS
    more = ""
    if left_out > 0:
        more = f" {left_out:,} more are in the table."
        if ordered is not points:
            more += " Those shown are the greatest by their noisy figures, and look greater than they are."
    shown = ordered.in_order(range(min(len(ordered.values), _MOST_BARS)))
    return Chart(
        "bars",
        _bars(shown, title),
        f"Bars are released values; each whisker holds {often} of the time.{more}",
    )


def _points(release: Release, keys: list[str], column: str, confidence: Rational) -> _Points:
    ends = release.interval(confidence, "noise")
    names = [release.table[name].to_pylist() for name in keys]
    values, lows, highs = (
        table[name].to_pylist()
        for table, name in ((release.table, column), (ends, f"{column}_low"), (ends, f"{column}_high"))
    )
    labels = [_label(keys, cells) for cells in zip(*names, strict=True)] if keys else [column] * len(values)
    kept = [
        place
        for place, trio in enumerate(zip(values, lows, highs, strict=True))
        if all(isinstance(one, int | float) and math.isfinite(one) for one in trio)
    ]
    return _Points(labels, values, lows, highs).in_order(kept)


def _label(keys: list[str], cells: Sequence[Any]) -> Any:
    """What a row is called; two ends of a bin are a pair of numbers."""
    if len(cells) == 1:
        return cells[0]
    if _is_binned(keys) and all(_is_number(cell) for cell in cells):
        return tuple(cells)
    return ", ".join("NULL" if cell is None else key(cell) for cell in cells)


def _is_binned(keys: list[str]) -> bool:
    stems = [name.removesuffix(end) for name, end in zip(keys, ("_from", "_to"), strict=False)]
    return len(keys) == 2 and stems[0] == stems[1] != keys[0]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(keys: list[str], points: _Points) -> Literal["bars", "line", "histogram"]:
    labels = points.labels
    if all(isinstance(label, tuple) for label in labels):
        return "histogram" if points.every == 1 else "line"
    if len(keys) != 1:
        return "bars"
    if all(isinstance(label, datetime.date) for label in labels):
        return "line"
    if not all(_is_number(label) for label in labels):
        return "bars"
    return "histogram" if points.every == 1 and _step(labels) != 1 else "line"


def _step(labels: Sequence[float]) -> float:
    """How far apart numbers are at least: bins of a width lie on its multiples; 1 where they do not."""
    ordered = sorted(set(labels))
    gaps = [high - low for low, high in pairwise(ordered)]
    least = min(gaps, default=1.0)
    even = all(math.isclose(gap / least, round(gap / least), abs_tol=1e-6) for gap in gaps)
    return least if even else 1.0


def _is_ordered(points: _Points) -> bool:
    return all(_is_number(label) for label in points.labels)


def _greatest_first(points: _Points) -> _Points:
    return points.in_order(sorted(range(len(points.values)), key=lambda place: -points.values[place]))


def _range(points: _Points) -> tuple[float, float]:
    """From nought, or below it, to the highest end."""
    low, high = min(0.0, *points.lows), max(0.0, *points.highs)
    return (low, high) if high > low else (low, low + 1)


def _thinned(points: _Points) -> str:
    return "" if points.every == 1 else f" One of {points.every} is drawn: the files have all."


def _place(label: Any) -> float:
    if isinstance(label, tuple):
        return float(label[0])
    if isinstance(label, datetime.datetime):
        return label.timestamp()
    return float(label.toordinal()) if isinstance(label, datetime.date) else float(label)


def _line(points: _Points, title: str, across: str, upwards: str) -> Markup:
    points = points.in_order(
        sorted(range(len(points.values)), key=lambda place: _place(points.labels[place]))[:: points.every]
    )
    places = [_place(label) for label in points.labels]
    frame = Frame(title, (places[0], places[-1]), _range(points), across=across, upwards=upwards)
    days = any(isinstance(label, datetime.date) for label in points.labels)
    words = [(place, key(label)) for place, label in zip(places, points.labels, strict=True)]
    step = max(1, math.ceil(len(words) / (_MOST_LABELS - 2 * days)))
    frame.axes(across=words[::step] if days or len(words) <= _MOST_LABELS else None)
    frame.band(list(zip(places, points.lows, strict=True)), list(zip(places, points.highs, strict=True)))
    return frame.line(list(zip(places, points.values, strict=True))).drawn()


def _histogram(points: _Points, title: str, across: str, upwards: str) -> Markup:
    pairs = [label if isinstance(label, tuple) else None for label in points.labels]
    width = 0.0 if all(pairs) else _step([label for label in points.labels if not isinstance(label, tuple)])
    bins = [
        pair or (float(label), float(label) + width) for pair, label in zip(pairs, points.labels, strict=True)
    ]
    whole = (min(low for low, _ in bins), max(high for _, high in bins))
    across = across.removesuffix("_from") if all(pairs) else across
    frame = Frame(title, whole, _range(points), across=across, upwards=upwards).axes()
    trios = zip(bins, points.values, points.lows, points.highs, strict=True)
    for (left, right), value, low, high in trios:
        gap = (right - left) * 0.04
        frame.bar((left + gap, right - gap), value).whisker((left + right) / 2, low, high)
    return frame.drawn()


def _figure(points: _Points, title: str) -> Markup:
    """One number: where it is, and where the true one may be."""
    low, high = points.lows[0], points.highs[0]
    margin = (high - low) * 0.75 or abs(high) * 0.1 or 1.0
    scale = Scale(low - margin, high + margin, 40, _WIDE - 40)
    width = max(scale(high) - scale(low), 1)
    parts = [
        f'<path class="axis" d="M40 34H{_WIDE - 40}"/>',
        f'<rect class="band" x="{scale(low)}" y="22" width="{width:.2f}" height="24" rx="4"/>',
        f'<circle class="dot" cx="{scale(points.values[0])}" cy="34" r="6"/>',
    ]
    parts += [
        f'<text x="{scale(value)}" y="68" text-anchor="middle">{number(value)}</text>'
        for value in ticks(scale.low, scale.high, 6)
    ]
    return _svg(title, 78, parts)


def _bars(points: _Points, title: str) -> Markup:
    """Categories below each other, so that long names have room."""
    names = [_short("NULL" if label is None else key(label)) for label in points.labels]
    begin = 18 + _LETTER * max(map(len, names))
    scale = Scale(*_range(points), begin, _WIDE - _FIGURES)
    count, zero = len(points.values), scale(0.0)
    height = count * _ROW + 34
    parts = []
    for value in ticks(scale.low, scale.high, 4):
        at = scale(value)
        parts.append(f'<path class="axis" d="M{at} 4V{height - 26}"/>')
        parts.append(f'<text x="{at}" y="{height - 8}" text-anchor="middle">{number(value)}</text>')
    rows = zip(names, points.values, points.lows, points.highs, strict=True)
    for place, (name, value, low, high) in enumerate(rows):
        top = place * _ROW + 6
        middle = top + (_ROW - 8) / 2
        left, right = sorted((zero, scale(value)))
        parts += [
            f'<text class="strong" x="{begin - 10}" y="{middle + 4}" text-anchor="end">',
            f"{escape(name)}</text>",
            f'<rect class="bar" x="{left}" y="{top}" width="{max(right - left, 0.5):.2f}" ',
            f'height="{_ROW - 8}" rx="2"/>',
            f'<path class="whisker" d="M{scale(low)} {middle}H{scale(high)}'
            f'M{scale(low)} {middle - 5}V{middle + 5}M{scale(high)} {middle - 5}V{middle + 5}"/>',
            f'<text x="{max(scale(high), right) + 8:.2f}" y="{middle + 4}">{escape(number(value))}</text>',
        ]
    return _svg(title, height, parts)


def _short(words: str) -> str:
    return words if len(words) <= _LETTERS else words[: _LETTERS - 1] + "…"


def _svg(title: str, height: float, parts: Sequence[str]) -> Markup:
    name = escape(title)
    head = f'<svg class="chart" viewBox="0 0 {_WIDE} {height}" role="img" aria-label="{name}">'
    return Markup(f"{head}<title>{name}</title>{''.join(parts)}</svg>")
