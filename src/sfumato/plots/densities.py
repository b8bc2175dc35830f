"""The laws of noise: two neighbours and the ratio between them, and several laws over each other."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.numeric.rounding import Floats
from sfumato.plots._figure import (
    ACCENT,
    BAND,
    DOT,
    GREY,
    INK,
    LABEL,
    NOTE,
    STYLES,
    finish,
    new_figure,
    number,
    numbers,
    plain_axes,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["density_curves", "neighbouring_densities"]

_SPAN = 30.0  # powers of e below the peak: what is smaller is not drawn
_MASS = 2.0  # a law has 1 in all; what has so much more is not a law


def neighbouring_densities(
    at: Sequence[float] | Floats,
    left: Sequence[float] | Floats,
    right: Sequence[float] | Floats,
    *,
    epsilon: float,
    names: tuple[str, str] = ("without", "with"),
    title: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Two densities of answers above, and below the logarithm of their ratio within the band of ±epsilon.

    Where the ratio leaves the band it is marked: there an answer tells more than epsilon allows, which a
    mechanism with a delta may do now and then.

    Args:
        at: The answers, increasing.
        left: The logarithm of the density of each, for one of two neighbouring inputs.
        right: The same for the other input.
        epsilon: How far apart the logarithms may be.
        names: What the two inputs are called.
        title: The title.
        path: Where to write the picture, .png or .svg.

    Raises:
        InvalidParameter: for densities in place of their logarithms, as far as that can be seen: they would
            sum to far more than 1.
    """
    places, logs = _laws(at, dict(zip(names, (left, right), strict=True)))
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise InvalidParameter("epsilon must be positive and finite.")
    figure = new_figure(7.2, 5.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for (name, law), (colour, style) in zip(logs.items(), STYLES, strict=False):
        above.plot(
            places, np.exp(law), color=colour, linestyle=style, linewidth=2.0, label=shortened(name, 40)
        )
        above.fill_between(places, 0, np.exp(law), color=colour, alpha=0.1, linewidth=0.0)
    above.set_ylim(bottom=0)
    _named(above, _kind(places, logs))
    above.legend(loc="upper right", frameon=False, fontsize=NOTE)
    one, other = logs.values()
    with np.errstate(invalid="ignore"):  # where neither is possible there is no ratio
        ratio = other - one
    most = 1.35 * max(epsilon, min(float(np.max(np.abs(_finite(ratio)), initial=0.0)), 4 * epsilon))
    leaves = np.abs(ratio) > epsilon * (1 + 1e-9)
    drawn = np.clip(ratio, -0.98 * most, 0.98 * most)  # what only one input can give is at the edge
    below.axhspan(-epsilon, epsilon, color=BAND, alpha=0.5, linewidth=0.0)
    below.plot(places, np.where(leaves, np.nan, drawn), color=DOT, linewidth=2.0)
    below.plot(places, np.where(leaves, drawn, np.nan), color=ACCENT, linewidth=2.4)
    below.set_ylim(-most, most)
    below.set_yticks([-epsilon, 0.0, epsilon], ["−ε", "0", "ε"])
    _named(below, "log of the ratio")
    below.set_xlabel("answer", fontsize=LABEL, color=INK)
    note = f"The band is ± ε = {number(epsilon)}: " + (
        "where the line leaves it, an answer tells more. "
        "Delta is the price of these answers, not how likely they are."
        if leaves.any()
        else "no answer is more than e^ε times as likely with one input as with the other."
    )
    return finish(figure, title=title, note=note, path=path)


def density_curves(
    at: Sequence[float] | Floats,
    curves: Mapping[str, Sequence[float] | Floats],
    *,
    title: str = "",
    note: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Several densities over each other: as they are above, where tails look alike, and in logarithms below.

    Args:
        at: The answers, increasing.
        curves: Up to four, name → the logarithm of the density of each answer.
        title: The title.
        note: The footnote.
        path: Where to write the picture, .png or .svg.
    """
    places, logs = _laws(at, curves)
    figure = new_figure(7.2, 5.8)
    above, below = figure.subplots(2, 1, sharex=True)
    for (name, law), (colour, style) in zip(logs.items(), STYLES, strict=False):
        above.plot(
            places, np.exp(law), color=colour, linestyle=style, linewidth=2.0, label=shortened(name, 40)
        )
        below.plot(places, law / np.log(10), color=colour, linestyle=style, linewidth=2.0)
    above.set_ylim(bottom=0)
    _named(above, _kind(places, logs))
    above.legend(loc="upper right", frameon=False, fontsize=NOTE)
    top = max(float(np.max(_finite(law), initial=-np.inf)) for law in logs.values())
    low = min(float(np.min(_finite(law), initial=np.inf)) for law in logs.values())
    below.set_ylim(max(low, top - _SPAN) / np.log(10), (top + 1) / np.log(10))
    below.yaxis.set_major_formatter(_power)
    _named(below, f"{_kind(places, logs)}, logarithmic")
    below.set_xlabel("noise", fontsize=LABEL, color=INK)
    return finish(figure, title=title, note=note, path=path)


def _laws(
    at: Sequence[float] | Floats, curves: Mapping[str, Sequence[float] | Floats]
) -> tuple[Floats, dict[str, Floats]]:
    places = numbers(at, "at")
    if len(places) < 2 or not np.isfinite(places).all() or np.any(np.diff(places) <= 0):
        raise InvalidParameter("at must be increasing numbers, at least two.")
    if not 1 <= len(curves) <= len(STYLES):
        raise InvalidParameter(f"One to {len(STYLES)} curves fit in one picture.")
    logs = {name: numbers(law, "log-densities", length=len(places)) for name, law in curves.items()}
    if any(np.isnan(law).any() or np.isposinf(law).any() for law in logs.values()):
        raise InvalidParameter("log-densities must be numbers, or minus infinity where the density is 0.")
    if not all(np.isfinite(law).any() for law in logs.values()):
        raise InvalidParameter("A density must be above 0 somewhere.")
    if any(_least_mass(places, law) > _MASS for law in logs.values()):
        raise InvalidParameter(
            "These are not log-densities: the densities would sum to far more than 1: give those of "
            "log_density, or np.log of a density."
        )
    return places, logs


def _least_mass(places: Floats, law: Floats) -> float:
    """What the density has at least between the places.

    Between two places a density with one peak is nowhere below the smaller of its two ends. So this is never
    more than the integral, however coarse the grid; trapezoids would be, around a narrow peak.
    """
    with np.errstate(over="ignore"):
        return float(np.sum(np.exp(np.minimum(law[:-1], law[1:])) * np.diff(places)))


def _kind(places: Floats, logs: Mapping[str, Floats]) -> str:
    """What the heights are: whole numbers have probabilities, which sum to 1 at most."""
    whole = bool(np.all(places == np.rint(places)))
    most = max(float(np.exp(law).sum()) for law in logs.values()) if whole else np.inf
    return "probability" if most <= 1 + 1e-9 else "density"


def _finite(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def _named(axes: Axes, name: str) -> None:
    plain_axes(axes, values="y")
    axes.set_ylabel(name, fontsize=LABEL, color=INK)
    axes.spines["bottom"].set_visible(True)
    axes.spines["bottom"].set_color(GREY)
    axes.xaxis.set_major_formatter(number)


def _power(value: float, _position: float | None = None) -> str:
    return number(10.0**value) if value >= -4 else f"1e{value:.0f}".replace("-", "−")
