"""Exact rational parameters: what a caller writes is what is drawn, priced and stored."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, Never, TypeAlias, cast

import numpy as np

from sfumato.errors import InvalidParameter

__all__ = [
    "Rational",
    "as_fraction",
    "as_integer",
    "decimal_up",
    "delta_of",
    "float_down",
    "float_up",
    "floor_log2",
    "listed",
    "nonnegative",
    "positive",
    "probability",
    "read_decimal",
    "read_fraction",
    "show",
]

Rational: TypeAlias = int | float | Decimal | Fraction | str
"""What a public parameter may be written as. A float means the decimal that its `repr` shows: 0.1 is 1/10."""

# Beyond these a parameter is surely a mistake, and exact arithmetic with it would only be slow.
_LONGEST, _MOST = 20_000, 2**63
_SMALLEST, _LARGEST = Fraction(1, 10**300), Fraction(10**300)
_LONG = 10**300
# What a document may hold: as many digits as Python writes, twice, and a slash.
_WRITTEN, _DIGITS, _BITS = 10_000, 4_300, 14_285
# Python also reads other scripts' digits and underscores; a price must be read by everyone as it is by us.
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_RATIO = re.compile(r"[+-]?[0-9]+/[0-9]+")


def as_fraction(value: Rational, name: str) -> Fraction:
    """The exact rational that `value` denotes.

    Text is a decimal or a ratio in the digits 0 to 9, such as 0.1, 1e-6 or 1/3.

    Raises:
        InvalidParameter: if it is not a finite number.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool | np.bool_):
        raise InvalidParameter(f"{name} must be a number, not a truth value.")
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    if isinstance(value, np.floating):
        value = str(value)  # the shortest decimal at its own precision
    elif isinstance(value, float):
        value = repr(value)
    if not isinstance(value, str | Decimal):
        kind = type(value).__name__
        raise InvalidParameter(
            f"{name} must be an int, float, Decimal, Fraction or decimal text, not {kind}."
        )
    try:
        return _decimal(value) if isinstance(value, Decimal) else _written(value)
    except (ValueError, ArithmeticError):
        raise InvalidParameter(
            f"{name} must be a finite number, not {str(value)[:40]!r}{_with_point(str(value))}."
        ) from None


def _with_point(text: str) -> str:
    """Advice for 0,3. Not for 1,000, which may mean a thousand."""
    plain = text.strip(" ")
    match = len(text) <= 40 and re.fullmatch("[0-9]{1,15},[0-9]{1,15}", plain, re.ASCII)
    if not match or re.fullmatch("[1-9][0-9]{0,2},[0-9]{3}", plain):
        return ""
    return f"; write {plain.replace(',', '.')}, with a point"


def _written(text: str) -> Fraction:
    plain = text.strip(" ")
    if len(text) <= _LONGEST:
        if _RATIO.fullmatch(plain):
            return Fraction(plain)
        if _DECIMAL.fullmatch(plain):
            return _decimal(Decimal(plain))
    raise ValueError


def _decimal(number: Decimal) -> Fraction:
    # Spelt out, 1e999999999 would fill the memory.
    if (
        not number.is_finite()
        or len(number.as_tuple().digits) > _LONGEST
        or abs(number.adjusted()) > _LONGEST
    ):
        raise ValueError
    return Fraction(number)


def read_fraction(written: object) -> Fraction:
    """The exact number that a document holds as text, such as `3/4`, `0.1` or `1e-6`.

    Documents come from files and from other machines. What `Fraction` would need more time and memory for
    than the text is long, such as 1e999999999, is refused, and so is what could not be written down again.

    Raises:
        ValueError: if it is none, or too long.
    """
    if isinstance(written, str) and len(written) <= _WRITTEN:
        exact = None
        if _RATIO.fullmatch(written):
            numerator, _, denominator = written.partition("/")
            if max(len(numerator.lstrip("+-")), len(denominator)) <= _DIGITS and denominator.strip("0"):
                exact = Fraction(int(numerator), int(denominator))
        elif _DECIMAL.fullmatch(written):
            exact = Fraction(read_decimal(written))
        if exact is not None and max(exact.numerator.bit_length(), exact.denominator.bit_length()) <= _BITS:
            return exact
    return _no_number()


def read_decimal(written: str) -> Decimal:
    """The decimal that a document holds as text; spelt out, it has no more digits than can be written.

    Raises:
        ValueError: if it is none, or too long.
    """
    try:
        number = Decimal(written) if len(written) <= _WRITTEN else _no_number()
    except ArithmeticError:
        _no_number()
    if number.is_finite() and abs(number.adjusted()) >= _DIGITS:
        _no_number()
    return number


def _no_number() -> Never:
    raise ValueError(f"A stored number is text such as 3/4 or 0.1, with at most {_DIGITS:,} digits.")


def positive(value: Rational, name: str) -> Fraction:
    """The exact value of a parameter that must be positive (and of sane size)."""
    exact = as_fraction(value, name)
    if 0 < exact.numerator <= _LONG and exact.denominator <= _LONG:  # both, hence neither too small nor large
        return exact
    if exact <= 0:
        raise InvalidParameter(f"{name} must be greater than 0, not {show(exact)}.")
    if not _SMALLEST <= exact <= _LARGEST:
        raise InvalidParameter(f"{name} must lie between 1e-300 and 1e300.")
    return exact


def nonnegative(value: Rational, name: str) -> Fraction:
    """The exact value of a parameter that must be zero or positive."""
    exact = as_fraction(value, name)
    if exact.numerator > 0:
        return positive(exact, name)
    _no_negative_zero(exact, value, name)
    if exact == 0:
        return exact
    raise InvalidParameter(f"{name} must be at least 0, not {show(exact)}.")


def _no_negative_zero(exact: Fraction, value: Rational, name: str) -> None:
    """Refuse -0: whoever writes a sign there meant another number."""
    if exact == 0 and str(value).lstrip().startswith("-"):
        raise InvalidParameter(f"{name} must be at least 0, not -0.")


def probability(value: Rational, name: str) -> Fraction:
    """The exact value of a parameter that must lie strictly between 0 and 1."""
    exact = as_fraction(value, name)
    if not 0 < exact < 1:
        raise InvalidParameter(f"{name} must lie strictly between 0 and 1, not {show(exact)}.")
    if 1 - exact < _SMALLEST:  # floats would take the rest for nothing
        raise InvalidParameter(f"{name} must be at most 1 - 1e-300.")
    return positive(exact, name)


def delta_of(value: Rational, name: str = "delta") -> Fraction:
    """The exact value of a delta at which a curve is read: 0 is allowed, 1 is not."""
    exact = as_fraction(value, name)
    _no_negative_zero(exact, value, name)
    if not 0 <= exact < 1:
        raise InvalidParameter(f"{name} must be at least 0 and below 1, not {show(exact)}.")
    return exact if exact == 0 else probability(exact, name)


def as_integer(value: int, name: str, *, least: int = 1) -> int:
    """A parameter that must be a whole number of at least `least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InvalidParameter(f"{name} must be a whole number (an int, such as 1), not {_kind(value)}.")
    if value < least:
        raise InvalidParameter(f"{name} must be at least {least}.")
    if value > _MOST:
        raise InvalidParameter(f"{name} must be at most 2**63.")
    return int(value)


def listed(values: object, name: str, *, length: int | None = None) -> list[Any]:
    """The items of a parameter that must be a list or the like."""
    try:
        items = None if isinstance(values, str | bytes) else list(values)  # type: ignore[call-overload]
    except TypeError:
        items = None
    if items is None or (length is not None and len(items) != length):
        raise InvalidParameter(f"{name} must be a list{'' if length is None else f' of {length} items'}.")
    return cast("list[Any]", items)


def _kind(value: object) -> str:
    kind = type(value).__name__
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def show(exact: Fraction) -> str:
    """A short decimal for messages."""
    try:
        return f"{float(exact):g}"
    except OverflowError:
        return "a number beyond 1e308"


def float_up(exact: Fraction) -> float:
    """The least float whose binary value is not below `exact`."""
    numerator, denominator = exact.numerator, exact.denominator
    try:
        x = numerator / denominator  # correctly rounded
    except OverflowError:
        return math.inf if numerator > 0 else -math.nextafter(math.inf, 0.0)
    a, b = x.as_integer_ratio()
    return x if a * denominator >= numerator * b else math.nextafter(x, math.inf)


def float_down(exact: Fraction) -> float:
    """The greatest float that is not above `exact`."""
    return -float_up(-exact)


def decimal_up(exact: Fraction) -> float:
    """The least float whose *decimal*, what its `repr` shows, is not below `exact`: 0.3 for 3/10.

    For figures that people read and hand back: a float means its decimal wherever it is taken as a parameter.
    """
    try:
        x = float(exact)
    except OverflowError:
        return float_up(exact)
    return x if Fraction(repr(x)) >= exact else math.nextafter(x, math.inf)


def floor_log2(exact: Fraction) -> int:
    """The greatest `e` with 2**e ≤ `exact`, for a positive rational."""
    guess = exact.numerator.bit_length() - exact.denominator.bit_length()
    return guess if Fraction(2) ** guess <= exact else guess - 1
