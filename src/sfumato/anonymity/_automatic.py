"""A hierarchy for a column that was given none: from its name, its type and how far its values reach."""

from __future__ import annotations

from fractions import Fraction

from sfumato.anonymity.codes import Coded, text_of
from sfumato.anonymity.hierarchy import Hierarchy
from sfumato.schema.classify import words_of

__all__ = ["automatic"]

_POSTAL = frozenset(
    "zip zipcode postcode postal postalcode plz postleitzahl cp cap cep 邮编 郵便番号 индекс".split(" ")  # noqa: SIM905
)
_LONGEST = 12  # characters of a code that is read from the left
_FIRST = 16  # the narrowest intervals cut the column into about so many
_WIDEST = 10**300  # intervals must not be wider, nor narrower than one over it
_DIGITS = 4  # so many digits or more, always as many, are a code


def automatic(column: Coded) -> Hierarchy:
    """Intervals for numbers, months to decades for days, stars for zip codes, and `*` for categories."""
    if column.kind in ("date", "time"):
        return Hierarchy.dates(times=column.kind == "time")
    if _is_postal(column):
        return Hierarchy.prefixes(max(len(text_of(value) or "") for value in column.values[: column.proper]))
    if column.kind == "number" and column.proper > 1:
        return Hierarchy.intervals(*_widths(column))
    return Hierarchy.flat()


def _is_postal(column: Coded) -> bool:
    texts = [text_of(value) or "" for value in column.values[: column.proper]]
    longest = max(map(len, texts), default=0)
    if not 1 < longest <= _LONGEST:
        return False
    if {*words_of(column.name), "".join(words_of(column.name))} & _POSTAL:
        return column.kind == "text" or all(
            isinstance(value, int) and value >= 0 for value in column.values[: column.proper]
        )
    return (
        column.kind == "text"
        and longest >= _DIGITS
        and all(len(text) == longest and text.isascii() and text.isdigit() for text in texts)
    )


def _widths(column: Coded) -> list[Fraction]:
    """Widths that double, from a round number on, while more than one is needed to cover the column."""
    low, high = (Fraction(repr(value) if isinstance(value, float) else str(value)) for value in _ends(column))
    extent = high - low
    whole = all(isinstance(value, int) for value in column.values[: column.proper])
    width = _round_up(max(extent / _FIRST, Fraction(2 if whole else 0)))
    widths = []
    while width < extent and width <= _WIDEST:
        if width * _WIDEST >= 1:
            widths.append(width)
        width *= 2
    return widths


def _ends(column: Coded) -> tuple[object, object]:
    return column.values[0], column.values[column.proper - 1]


def _round_up(number: Fraction) -> Fraction:
    """The least of 1, 2, 5, 10, 20, 50, … (and of the tenths, hundredths, …) that is not below the number."""
    power = Fraction(1)
    while power > number:
        power /= 10
    while 10 * power <= number:
        power *= 10
    return next(step * power for step in (1, 2, 5, 10) if step * power >= number)
