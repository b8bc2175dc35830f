"""Chapters 9 and 10 of the textbook: choosing the best option, and finding what exceeds a threshold.

The names and arguments are those of *Programming Differential Privacy* (Near and Abuah). A query is a
function of the table; those here are asked one by one, and no more of them than the answer needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from sfumato.book._data import Floats, items_of, many
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.noisy_max import NoisyMax
from sfumato.mechanisms.sparse_vector import NumericSparseVector, SparseVector
from sfumato.numeric.exact import Rational, as_fraction, positive

__all__ = [
    "above_threshold",
    "above_threshold_fail_signal",
    "exponential",
    "naive_above_threshold",
    "range_query_svt",
    "report_noisy_max",
    "score",
    "sparse",
]

_T = TypeVar("_T")
Query: TypeAlias = Callable[[Any], float]
"""A function of the table that gives a number."""

_SCALE = 1000


def score(data: Any, option: object) -> float:
    """How many thousand rows have this option.

    Traps of the original: an option that nobody has is a KeyError, which tells so. And the chapter takes its
    sensitivity to be 1, though thousands move by 1/1000, and so chooses almost at random.

    Privacy:
        None: exact. Its sensitivity is 1/1000 under adding or removing a row, and all such scores are
        monotone.

    Raises:
        InvalidValue: if the data is not one column.
    """
    return _counted(data)[option] / _SCALE


def exponential(
    x: Any,
    R: Iterable[_T],
    u: Callable[[Any, _T], float],
    sensitivity: Rational,
    epsilon: Rational,
    *,
    monotone: bool = False,
) -> _T:
    """One of the options, each with probability proportional to exp(ε·u(x, r)/(2Δ)).

    Traps of the original: `np.exp` overflows once ε·score/(2Δ) exceeds 709, and the choice fails with NaN; a
    float's probabilities are not those that were proven private. And `options = data.unique()` is
    itself a leak: an option that only one person has is there because of that person. Options must be a
    public list.

    Args:
        x: The data, handed to `u` as it is.
        R: The options; public.
        u: The score of an option. All options are scored in one pass where it is `score`.
        sensitivity: The most that any score moves between neighbours.
        epsilon: The price.
        monotone: A promise that all scores move the same way between any two neighbours, such as counts
            under adding or removing a row; it is worth twice the accuracy for the same price.

    Privacy:
        Total: epsilon (pure, and ε²/8-zCDP); see `sfumato.mechanisms.Exponential`.

    Raises:
        InvalidParameter: if a parameter is out of range or there are no options.
        InvalidValue: if a score is not a finite number.
    """
    mechanism, options = Exponential(epsilon, sensitivity, monotone=monotone), _options(R)
    return options[mechanism.select(_scores(x, options, u))]


def report_noisy_max(
    x: Any,
    R: Iterable[_T],
    u: Callable[[Any, _T], float],
    sensitivity: Rational,
    epsilon: Rational,
    *,
    monotone: bool = False,
) -> _T:
    """The option whose score is largest after Laplace noise on each.

    Trap of the original: noise of scale Δ/ε is enough where all scores move the same way, as counts do under
    adding or removing a row. Without that it is 2ε-private and no better: here the scale is 2Δ/ε
    unless `monotone` is promised. Options must be public (see `exponential`).

    Args:
        x: The data, handed to `u` as it is.
        R: The options; public.
        u: The score of an option. All options are scored in one pass where it is `score`.
        sensitivity: The most that any score moves between neighbours.
        epsilon: The price.
        monotone: A promise that all scores move the same way between any two neighbours.

    Privacy:
        Total: epsilon (pure); see `sfumato.mechanisms.NoisyMax`.

    Raises:
        InvalidParameter: if a parameter is out of range or there are no options.
        InvalidValue: if a score is not a finite number.
    """
    mechanism, options = NoisyMax(epsilon, sensitivity, monotone=monotone), _options(R)
    return options[mechanism.select(_scores(x, options, u))]


def above_threshold(
    queries: Iterable[Query],
    df: Any,
    T: Rational,
    epsilon: Rational,
    *,
    sensitivity: Rational = 1,
    monotone: bool = False,
) -> int | None:
    """The index of the first query whose answer is found above T, or None if there is none.

    Trap of the original: where no answer is above, it gives a random index, which looks like all others. It
    also takes every query to move by at most 1, and gets its two noises wrong for any other.

    Args:
        queries: Functions of the table; public, as is how many there are. An iterator may make each in view
            of earlier answers.
        df: The table, handed to each query as it is.
        T: The threshold; public.
        epsilon: The price of the whole run.
        sensitivity: The most that any answer moves between neighbours.
        monotone: A promise that all answers move the same way between any two neighbours; less noise for
            the same price.

    Privacy:
        Total: epsilon (pure), however many queries are tried; see `sfumato.mechanisms.AboveThreshold`.

    Raises:
        InvalidParameter: if a parameter is out of range or a query is not a function.
        InvalidValue: if an answer is not a finite number.
    """
    mechanism = AboveThreshold(epsilon, T, sensitivity=sensitivity, monotone=monotone)
    return mechanism.first(_answers(queries, df))


def above_threshold_fail_signal(
    queries: Iterable[Query],
    df: Any,
    T: Rational,
    epsilon: Rational,
    *,
    sensitivity: Rational = 1,
    monotone: bool = False,
) -> int | None:
    """The same as `above_threshold`, which returns None as well where nothing is found.

    Trap of the original: 0 is an index and None is not, but `if not index` takes them for the same.

    Privacy:
        Total: epsilon (pure). That nothing was found is part of the answer, and paid for.
    """
    return above_threshold(queries, df, T, epsilon, sensitivity=sensitivity, monotone=monotone)


def naive_above_threshold(
    queries: Sequence[Query], df: Any, T: Rational, epsilon: Rational, *, sensitivity: Rational = 1
) -> int | None:
    """The first query whose answer is above T after noise on every answer: what `above_threshold` saves.

    Trap of the original: it spends its epsilon on *every* query, |queries|·epsilon in all, and reads as if it
    spent one. Here epsilon is the price of the whole, an equal share of it for each query, and the noise is
    |queries| times that of one: for a contrast, not for use.

    Args:
        queries: Functions of the table; all are asked.
        df: The table, handed to each query as it is.
        T: The threshold; public.
        epsilon: The price of the whole, by basic composition.
        sensitivity: The most that any answer moves between neighbours.

    Privacy:
        Total: epsilon (pure): |queries| answers that move by the sensitivity each are a vector that moves by
        |queries| times that in L1.

    Raises:
        InvalidParameter: if a parameter is out of range or a query is not a function.
        InvalidValue: if an answer is not a finite number.
    """
    bar, bound = as_fraction(T, "T"), positive(sensitivity, "sensitivity")
    spent = positive(epsilon, "epsilon")
    answers = list(_answers(queries, df))
    mechanism = Laplace(spent, max(1, len(answers)) * bound)
    above = np.flatnonzero(mechanism.release(answers) >= float(bar))
    return int(above[0]) if above.size else None


def sparse(
    queries: Iterable[Query],
    df: Any,
    c: int,
    T: Rational,
    epsilon: Rational,
    *,
    sensitivity: Rational = 1,
    monotone: bool = False,
) -> list[int]:
    """The indices of the first c queries whose answers are found above T, or of fewer.

    Trap of the original: it starts again after each finding, with ε/c for each run, so that the noise of its
    queries has scale 4c/ε; one run that shares ε better between threshold and queries has less.

    Args:
        queries: Functions of the table, asked until c are found.
        df: The table, handed to each query as it is.
        c: After how many findings it stops.
        T: The threshold; public.
        epsilon: The price of the whole run.
        sensitivity: The most that any answer moves between neighbours.
        monotone: A promise that all answers move the same way between any two neighbours.

    Privacy:
        Total: epsilon (pure), all c findings included; see `sfumato.mechanisms.SparseVector`.

    Raises:
        InvalidParameter: if a parameter is out of range or a query is not a function.
        InvalidValue: if an answer is not a finite number.
    """
    mechanism = SparseVector(epsilon, T, count=c, sensitivity=sensitivity, monotone=monotone)
    return mechanism.above(_answers(queries, df))


def range_query_svt(
    queries: Iterable[Query],
    df: Any,
    c: int,
    T: Rational,
    epsilon: Rational,
    *,
    sensitivity: Rational = 1,
    monotone: bool = False,
) -> list[float]:
    """The answers, with noise, of the first c queries that are found above T, or of fewer.

    Traps of the original: it never looks at its `df`, but at a global table, so that whoever hands it a
    part of the data, or that of next month, is answered about another. And an answer does not say which
    query it belongs to: `sfumato.mechanisms.NumericSparseVector` tells the index too, for the same price.

    Args:
        queries: Functions of the table, asked until c are found.
        df: The table, handed to each query as it is.
        c: After how many findings it stops.
        T: The threshold; public.
        epsilon: The price of findings and answers together.
        sensitivity: The most that any answer moves between neighbours.
        monotone: A promise that all answers move the same way between any two neighbours.

    Privacy:
        Total: epsilon (pure): half for the findings, half for the c answers, whose noise is fresh; see
        `sfumato.mechanisms.NumericSparseVector`.

    Raises:
        InvalidParameter: if a parameter is out of range or a query is not a function.
        InvalidValue: if an answer is not a finite number.
    """
    mechanism = NumericSparseVector(epsilon, T, count=c, sensitivity=sensitivity, monotone=monotone)
    return [answer for _, answer in mechanism.above(_answers(queries, df))]


def _answers(queries: Iterable[Query], df: Any) -> Iterator[float]:
    """The answers one by one; a generator, so that none is computed that is not needed."""
    if not isinstance(queries, Iterable):
        raise InvalidParameter("queries must be functions of the table, in the order they are to be tried.")

    def asked() -> Iterator[float]:
        for query in queries:
            if not callable(query):
                raise InvalidParameter("Every query must be a function that takes the table.")
            yield query(df)

    return asked()


def _options(R: Iterable[_T]) -> list[_T]:
    if not isinstance(R, Iterable) or isinstance(R, str | bytes):
        raise InvalidParameter("R must be a public list of the options to choose from.")
    options = list(R)
    if not options:
        raise InvalidParameter("R must hold at least one option.")
    return options


def _scores(x: Any, options: list[_T], u: Callable[[Any, _T], float]) -> Floats | list[float]:
    if not callable(u):
        raise InvalidParameter("u must be a function that takes the data and an option.")
    if u is score:
        counts = _counted(x)
        return [counts[option] / _SCALE for option in options]
    return [u(x, option) for option in options]


def _counted(data: Any) -> Counter[Any]:
    if not many(data):
        raise InvalidValue("The data must be one column of values.")
    counts: Counter[Any] = Counter()
    for value in items_of(data):
        try:
            counts[value] += 1
        except TypeError:  # a list, which is not one of the options
            continue
    return counts
