"""A made-up answer of a question's shape, with the noise that a price would give.

Names of groups come from what is declared, heights from nothing but the question: no row is near.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice, product

from markupsafe import Markup

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.deduce import facts_of
from sfumato.plan.expressions.tree import Column
from sfumato.plan.prices.quote import ColumnQuote, Quote
from sfumato.plan.questions.sources import AggregateCall
from sfumato.render import key, shown
from sfumato.server.page.drawing import Frame, number, ticks

__all__ = ["Mock", "mock", "noisy"]

SIZE = (520, 300)
"""Of the pictures of this section, which stand in pairs."""
_BARS, _PAIRS, _POINTS, _ANY, _NEAR = 8, 4, 400, 1_000, 0.25
_HEIGHTS = (1.0, 0.62, 0.86, 0.45, 0.74, 0.55, 0.93, 0.68)
_UNNAMED = ("group A", "group B", "group C", "group D", "group E")
_COUNTS = ("count", "count_distinct", "count_values")
_MIDDLES = ("mean", "min", "max", "quantile", "geometric_mean", "harmonic_mean")
_WORDS = (
    (0.05, "Clear: the noise is small beside it."),
    (0.25, "Readable: large differences show, small ones may be noise."),
    (1.0, "Blurred: only very large differences show."),
    (math.inf, "Drowned: the noise is larger than what is measured."),
)


@dataclass(frozen=True, slots=True)
class Mock:
    """What is shown of a made-up answer.

    Attributes:
        column: Which column of the answer.
        about: About how large its values are made up to be.
        rows: The groups that are drawn, each with its made-up value, and whether all fit.
        groups: How many groups the answer would have; None: they are found in the data, for a price.
        half_width: How far off a value may be, 95 times in 100; None: that depends on the data.
        told: The same in words.
        estimand: What it estimates.
        verdict: Whether that is much, in words.
        picture: All of it.
    """

    column: str
    about: float
    rows: tuple[tuple[str, float], ...]
    groups: int | None
    half_width: float | None
    told: str
    estimand: str
    verdict: str
    picture: Markup


def noisy(quote: Quote) -> list[str]:
    """The columns of the answer that have noise."""
    return [column.name for column in quote.columns if not column.public]


def mock(quote: Quote, *, size: int | None, name: str = "", about: float | None = None) -> Mock | None:
    """A made-up answer; None where nothing in it has noise.

    Args:
        quote: Of the question, at a price.
        size: About how many units there are, if that is declared.
        name: Which column; the first that has noise by default.
        about: How large its values are made up to be; by default what declared bounds and sizes suggest.
    """
    names = noisy(quote)
    if not names:
        return None
    place = [column.name for column in quote.columns].index(name if name in names else names[0])
    column = quote.columns[place]
    many, labels = _groups(quote)
    large = about or _about(quote, place, size, many or len(_UNNAMED))
    heights = [large * share for share in _shares(len(labels))]
    half = column.half_width if column.half_width is not None else column.expected
    rows = tuple(zip(labels, heights, strict=True))
    return Mock(
        column=column.name,
        about=large,
        rows=rows,
        groups=many,
        half_width=half,
        told=column.told,
        estimand=column.estimand,
        verdict=_verdict(half, large),
        picture=_single(column, large, half, quote) if not quote.measured.keys else _drawn(rows, half, large),
    )


def _groups(quote: Quote) -> tuple[int | None, list[str]]:
    """How many groups there would be, and what some of them are called: all of them on a line."""
    keys = quote.measured.keys
    if not keys:
        return 1, ["the answer"]
    if any(one.values is None for one in keys):
        return None, list(_UNNAMED)
    listed = [[key(value) for value in one.values or ()] for one in keys]
    most = _BARS if len(keys) == 1 else _PAIRS  # so that both of their names can be read
    if len(keys) == 1 and len(listed[0]) > 2 * _BARS:
        most = _POINTS
    names = [" · ".join(words) for words in islice(product(*listed), most)]
    return quote.measured.groups, names


def _shares(many: int) -> list[float]:
    """How high made-up values are beside each other: a gentle wave where they make a line."""
    if many > _BARS:
        return [0.75 + 0.25 * math.sin(7 * at / many) for at in range(many)]
    return list(_HEIGHTS[:many])


def _about(quote: Quote, place: int, size: int | None, groups: int) -> float:
    """How large a value might be, by what is public: never what it is."""
    in_group = max(1.0, round((size or _ANY * groups) / groups))
    expression = quote.report.columns[place].expression
    call = _call(quote, expression.name) if isinstance(expression, Column) else None
    if call is not None and call.function in _COUNTS:
        return _round(in_group)
    if call is not None and call.argument is not None and call.function in ("sum", *_MIDDLES):
        known = facts_of(call.argument, quote.rows.columns)
        ends = (known.lower, known.upper) if call.bounds is None else call.bounds[1:]
        if None not in ends:
            middle = float(sum(map(Fraction, ends)) / 2) or float(ends[1] or 1)  # type: ignore[arg-type]
            return _round(abs(middle) * (in_group if call.function == "sum" else 1))
    return _round(in_group)


def _call(quote: Quote, name: str) -> AggregateCall | None:
    calls = quote.report.child.aggregates
    return next((call for at, call in enumerate(calls) if name == f"a{at}"), None)


def _round(value: float) -> float:
    """To two digits: it is made up, and should look so."""
    return float(f"{value:.2g}") or 1.0


def _verdict(half: float | None, about: float) -> str:
    if half is None:
        return "How far off it is depends on the data: the answer brings an interval of its own."
    return next(words for most, words in _WORDS if half <= most * abs(about))


def _drawn(rows: tuple[tuple[str, float], ...], half: float | None, about: float) -> Markup:
    """Bars with what noise may do to each; a line with a band where there are many groups."""
    low, high = (0.0, 1.4 * about) if about > 0 else (1.4 * about, 0.0)
    far = 0.0 if half is None else half
    title = f"A made-up answer with {len(rows)} groups of about {number(about)}, each off by {number(far)}"
    picture = Frame(title, (0, len(rows)), (low, high), size=SIZE)

    def within(value: float) -> float:
        return min(max(value, low), high)

    if len(rows) > _BARS:
        step = max(1, len(rows) // 4)
        picture.axes(
            across=[(at + 0.5, _short(rows[at][0], 10)) for at in range(0, len(rows) - step // 2, step)]
        )
        middle = [(at + 0.5, height) for at, (_, height) in enumerate(rows)]
        below = [(x, within(y - far)) for x, y in middle]
        picture.band(below, [(x, within(y + far)) for x, y in middle])
        return picture.line(middle).drawn()
    room = max(4, 48 // len(rows))
    picture.axes(across=[(at + 0.5, _short(name, room)) for at, (name, _) in enumerate(rows)])
    for at, (_, height) in enumerate(rows):
        picture.bar((at + 0.2, at + 0.8), height)
    for at, (_, height) in enumerate(rows):
        if far:
            picture.bar((at + 0.2, at + 0.8), within(height + far), "band over", base=within(height - far))
            picture.whisker(at + 0.5, within(height - far), within(height + far))
    return picture.drawn()


def _single(column: ColumnQuote, about: float, half: float | None, quote: Quote) -> Markup:
    """One number: where its answers would fall, every second time within the inner band."""
    low, high = about - abs(about) * _NEAR, about + abs(about) * _NEAR
    title = f"A made-up answer of {number(about)}, off by {number(half or 0)} at most 95 times in 100"
    picture = Frame(title, (low, high), (0, 1), across=_short(column.name, 30), size=SIZE)
    inside = [value for value in ticks(low, high, 5) if low < value < high]
    picture.axes(across=[(value, number(value)) for value in inside], upwards=False)
    for far in (half, quote.error("0.5").get(column.name)):
        if far is not None:
            picture.bar((max(about - far, low), min(about + far, high)), 0.8, "band")
    picture.line([(about, 0), (about, 0.8)])
    told = "" if half is None else f" ± {shown(half, half)}"
    return picture.text(
        picture.x(about), picture.y(0.86), f"made up: {number(about)}{told}", kind="strong"
    ).drawn()


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
