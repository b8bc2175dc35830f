"""A release over time as a small picture: the numbers as a line, their ranges as a band."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from sfumato.publishing.entries import Published
from sfumato.render import shown

__all__ = ["picture"]

_WIDTH, _HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 12, 30, 26
_MOST = 2000  # points


def picture(release: Published) -> str:
    """The first number of a release that has one row for each window, as SVG; else nothing."""
    table = release.table
    if table is None or not 2 <= table.num_rows <= _MOST or table.num_rows != release.windows:
        return ""
    if not release.figures:
        return ""
    place = release.figures[0]
    values, errors = _numbers(release.values(place)), _numbers(release.values(place + 1))
    if values is None or errors is None:
        return ""
    low = [value - error for value, error in zip(values, errors, strict=True)]
    high = [value + error for value, error in zip(values, errors, strict=True)]
    return _drawn(table.column_names[place], low, values, high, release)


def _numbers(values: list[Any]) -> list[float] | None:
    usable = all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        for value in values
    )
    return [float(value) for value in values] if usable else None


def _drawn(name: str, low: list[float], values: list[float], high: list[float], release: Published) -> str:
    bottom, top = min(*low, 0.0), max(*high, 0.0)
    across = (_WIDTH - _LEFT - _RIGHT) / (len(values) - 1)
    scale = (_HEIGHT - _TOP - _BOTTOM) / ((top - bottom) or 1.0)

    def points(heights: list[float]) -> list[str]:
        return [
            f"{_LEFT + across * at:.1f},{_HEIGHT - _BOTTOM - (height - bottom) * scale:.1f}"
            for at, height in enumerate(heights)
        ]

    band = " ".join([*points(high), *reversed(points(low))])
    zero = _HEIGHT - _BOTTOM + bottom * scale
    label = f"{name} from {release.first} to {release.last}, with its noise"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{zero:.1f}" y2="{zero:.1f}"/>'
        f'<polygon class="band" points="{band}"/><polyline class="line" points="{" ".join(points(values))}"/>'
        f'<text x="{_LEFT}" y="14">{escape(name)} ± noise</text>'
        f'<text x="{_LEFT - 8}" y="{_TOP + 4}" text-anchor="end">{escape(_figure(top))}</text>'
        f'<text x="{_LEFT - 8}" y="{zero + 4:.1f}" text-anchor="end">0</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{escape(release.first)}</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 6}" text-anchor="end">{escape(release.last)}</text></svg>'
    )


def _figure(value: float) -> str:
    return shown(round(value)) if abs(value) >= 10 else shown(float(f"{value:.2g}"))
