"""A budget as one bar: what is spent and by whom, what is asked for, what is left."""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, nonnegative, positive
from sfumato.plots._figure import (
    ACCENT,
    DOT,
    GREY,
    INK,
    LABEL,
    NOTE,
    finish,
    new_figure,
    number,
    plain_axes,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["budget_bar"]

# From dark to light, so that neighbours differ without colour; more parts than these are summed up.
_SHADES = (DOT, "#3f8fbb", "#7fb8d8", "#bcdcee", "#e3eff6")
_UP, _DOWN = Context(prec=6, rounding=ROUND_CEILING), Context(prec=6, rounding=ROUND_FLOOR)


def budget_bar(
    spent: Rational | Mapping[str, Rational],
    total: Rational,
    *,
    asked: Rational = 0,
    unit: str = "ε",
    title: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """One bar as long as the budget, with what is spent, what a new release asks for, and what is left.

    Args:
        spent: what is gone, as one number or by name (analyst, month, release); exact numbers stay exact.
        total: the whole budget.
        asked: the price of a release that is being considered; drawn beyond the end where it does not fit.
        unit: what the numbers are in.
        title: the title.
        path: where to write the picture, .png or .svg.
    """
    whole, wanted = positive(total, "total"), nonnegative(asked, "asked")
    parts = _parts(spent if isinstance(spent, Mapping) else {"spent": spent})
    gone = sum(parts.values(), Fraction(0))
    left = whole - gone - wanted
    figure = new_figure(7.0, 1.75 + (0.25 if title else 0.0) + 0.22 * (len(parts) // 3))
    axes = figure.subplots()
    start = Fraction(0)
    shades = _SHADES if len(parts) > 1 else (_SHADES[0],)
    for shade, (name, amount) in zip(shades, parts.items(), strict=False):
        said = f"{shortened(name, 24)} {_digits(amount, _UP)}"
        axes.barh(
            0, float(amount), 0.6, float(start), color=shade, edgecolor="white", linewidth=0.8, label=said
        )
        start += amount
    if wanted:
        said = f"asked {_digits(wanted, _UP)}"
        style: dict[str, Any] = {
            "facecolor": "#fbe3cd",
            "edgecolor": ACCENT,
            "hatch": "////",
            "linewidth": 0.8,
        }
        axes.barh(0, float(wanted), 0.6, float(start), label=said, **style)
    if left >= 0:
        said = f"left {_digits(left, _DOWN)}"
        axes.barh(
            0,
            float(left),
            0.6,
            float(whole - left),
            facecolor="white",
            edgecolor=GREY,
            linewidth=0.8,
            label=said,
        )
    axes.axvline(float(whole), color=INK, linewidth=1.6)
    axes.set_xlim(0, float(max(whole, gone + wanted)) * 1.02)
    axes.set_ylim(-0.45, 0.45)
    axes.set_yticks([])
    axes.xaxis.set_major_formatter(number)
    axes.set_xlabel(
        f"{unit}, of a budget of {_digits(whole, _DOWN)}", fontsize=LABEL, color=INK, parse_math=False
    )
    plain_axes(axes, values="x")
    axes.grid(False)
    legend = axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 0.98),
        ncols=4,
        frameon=False,
        fontsize=NOTE,
        handlelength=1.2,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    note = f"Does not fit: {_digits(-left, _UP)} more is asked for than is left." if left < 0 else ""
    return finish(figure, title=title, note=note, path=path)


def _parts(spent: Mapping[str, Rational]) -> dict[str, Fraction]:
    exact = {str(name): nonnegative(amount, "spent") for name, amount in spent.items()}
    if not exact:
        return {"spent": Fraction(0)}
    if len(exact) <= len(_SHADES):
        return exact
    kept = sorted(exact, key=lambda name: exact[name], reverse=True)[: len(_SHADES) - 1]
    rest = [amount for name, amount in exact.items() if name not in kept]
    if f"{len(rest)} others" in kept:
        raise InvalidParameter("Two parts of the spent budget have the same name.")
    return {name: exact[name] for name in exact if name in kept} | {
        f"{len(rest)} others": sum(rest, Fraction(0))
    }


def _digits(amount: Fraction, context: Context) -> str:
    """Six digits, rounded up for what is spent and down for what is left."""
    quotient = context.divide(context.create_decimal(amount.numerator), amount.denominator)
    return number(float(quotient))
