"""How an attack asks, and what it takes for an answer: finite numbers, and an error that quotes none."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.numeric.exact import Rational, as_fraction, as_integer
from sfumato.numeric.rounding import Floats

__all__ = [
    "Answer",
    "Ask",
    "Bits",
    "Subset",
    "answers_of",
    "as_bits",
    "asked",
    "collected",
    "finite_array",
    "numbers_given",
    "trials_given",
]

Answer: TypeAlias = Rational | npt.ArrayLike
"""A number, or a list of them: the answers to as many questions asked at once."""

Ask: TypeAlias = Callable[[], Any]
"""Whatever answers: a query that is released, a mechanism that is called, a web page that is read."""

Bits: TypeAlias = npt.NDArray[np.bool_]

Subset: TypeAlias = Callable[[Bits], Any]
"""Answers how many of a set of people, marked True, have the bit."""

_LARGEST = 10**300  # of a tolerance, which is also shown as a float
_PLAIN = (int, float, np.int64, np.float64)


def asked(ask: Callable[..., Any], name: str, *given: object) -> Any:
    """The raw answer; whatever is raised becomes one sentence, except a refusal of the ledger.

    Raises:
        InvalidParameter: if `ask` cannot be called or raises.
        BudgetExceeded: if that is what it raises: an attack may well run into it.
    """
    if not callable(ask):
        raise InvalidParameter(f"{name} must be a function that answers, not a value.")
    try:
        return ask(*given)
    except BudgetExceeded:
        raise
    except Exception as error:
        # The message of the error may hold a row: only its kind is passed on, and its chain is cut.
        kind = type(error).__name__
    raise InvalidParameter(f"{name} must answer with finite numbers, but raised {kind}; mend it first.")


def numbers_given(value: Any, name: str) -> tuple[Fraction, ...]:
    """A number or a list of numbers, each exact; a float means the decimal that it shows.

    Raises:
        InvalidParameter: if it is empty, or anything in it is not a finite number.
    """
    if hasattr(value, "as_py"):  # a scalar of Arrow
        value = value.as_py()
    if hasattr(value, "to_pylist"):  # a column of Arrow
        value = value.to_pylist()
    if isinstance(value, np.ndarray):
        several: list[Any] = list(value) if value.ndim == 1 else [value[()]] if value.ndim == 0 else []
    elif isinstance(value, str) or not hasattr(value, "__iter__"):
        several = [value]
    else:
        several = list(value)
    try:
        exact = tuple(as_fraction(number, name) for number in several)
    except InvalidParameter:
        exact = ()  # its message may quote what was given
    if not exact:
        raise InvalidParameter(f"{name} must be a finite number, or a flat list of them.")
    return exact


def answers_of(ask: Ask, name: str, count: int) -> tuple[Fraction, ...]:
    """The `count` exact numbers that `ask` answers with.

    Raises:
        InvalidParameter: if it raises, or answers with anything else.
        BudgetExceeded: if it raises that.
    """
    numbers = numbers_given(asked(ask, name), f"what {name} answers")
    if len(numbers) != count:
        raise InvalidParameter(
            f"{name} answers with {len(numbers)} numbers where truth has {count}; give one for each."
        )
    return numbers


def trials_given(trials: int, tolerance: Rational) -> tuple[int, Fraction]:
    """The number of trials and the tolerance, checked."""
    allowed = as_fraction(tolerance, "tolerance")
    if allowed < 0:
        raise InvalidParameter("tolerance must not be negative.")
    if allowed > _LARGEST:
        raise InvalidParameter("tolerance must be at most 1e300.")
    return as_integer(trials, "trials"), allowed


def finite_array(value: Any, name: str, *, dimensions: int) -> Floats:
    """The value as an array of finite floats with so many dimensions, none of them empty.

    Raises:
        InvalidParameter: otherwise.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    if array.ndim != dimensions or not array.size or not np.isfinite(array).all():
        shape = "a list" if dimensions == 1 else "a table (people by attributes)"
        raise InvalidParameter(f"{name} must be {shape} of finite numbers, and not empty.")
    return array


def as_bits(value: Any, name: str, *, dimensions: int = 1) -> Bits:
    """The value as truth values, given as such or as zeros and ones.

    Raises:
        InvalidParameter: if anything else is in it.
    """
    array = finite_array(value, name, dimensions=dimensions)
    bits: Bits = array == 1
    if not (bits | (array == 0)).all():
        raise InvalidParameter(f"{name} must hold zeros and ones only.")
    return bits


def collected(ask: Subset | npt.ArrayLike, subsets: Any) -> Floats:
    """One finite number for each subset, asked for or given.

    Raises:
        InvalidParameter: if they are not as many, or not finite numbers.
    """
    if not callable(ask):
        told = finite_array(ask, "the answers", dimensions=1)
        if len(told) != len(subsets):
            raise InvalidParameter(f"There must be an answer for each of the {len(subsets):,} subsets.")
        return told
    told = np.empty(len(subsets))
    # A copy, since whoever answers may write into it; the Hadamard subsets are made again anyway.
    shared = isinstance(subsets, np.ndarray)
    for row in range(len(subsets)):
        told[row] = _number(asked(ask, "ask", subsets[row].copy() if shared else subsets[row]))
    return told


def _number(answer: Any) -> float:
    if type(answer) in _PLAIN and math.isfinite(answer):  # by far the most frequent
        return float(answer)
    exact = numbers_given(answer, "what ask answers")
    if len(exact) != 1:
        raise InvalidParameter("ask must answer with one number for a set of people.")
    return float(exact[0])
