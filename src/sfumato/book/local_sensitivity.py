"""Chapter 7 of the textbook: averages by global and local sensitivity, and by sample and aggregate.

The names and arguments are those of *Programming Differential Privacy* (Near and Abuah). Values are clamped
to 0 … u; the originals clamp from above alone, so that one negative value moves a sum by more than u.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.book._data import Floats, column_of, levels_of, numbers_of
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.propose_test_release import ProposeTestRelease
from sfumato.mechanisms.sample_and_aggregate import SampleAndAggregate
from sfumato.numeric.exact import Rational, as_integer, positive

__all__ = ["average", "dist_to_high_ls", "gs_avg", "ls_at_distance", "ptr_avg", "saa_avg_age"]

# A mean is rounded to a float, which moves it by less than this share of u; the test allows for it.
_ROUNDING = Fraction(1, 2**50)


def gs_avg(df: Any, u: Rational, epsilon: Rational, *, column: str = "Age") -> float:
    """The average of values clamped to 0 … u, as a noisy sum over a noisy count, between 0 and u.

    Traps of the original: it divides by a noisy count that may be 0 or negative, and answers −300 for an age;
    values are clamped from above alone; and the sum is of floats, which move by more than u when one row
    changes how the others round.

    Args:
        df: The values, or a table with the column.
        u: The public upper bound.
        epsilon: The price.
        column: Its name in a table.

    Privacy:
        Total: epsilon (pure), half for the sum, half for the count. What is done to the quotient is
        post-processing.

    Raises:
        InvalidParameter: if a parameter is out of range.
        InvalidValue: if the values are not finite numbers.
    """
    share = positive(epsilon, "epsilon") / 2
    return average(numbers_of(df, column), positive(u, "u"), sum_price=share, count_price=share)


def average(values: Floats, upper: Fraction, *, sum_price: Fraction, count_price: Fraction) -> float:
    """A noisy sum of values clamped to 0 … upper over a noisy count, held to where averages are.

    Privacy:
        Total: sum_price + count_price (pure), under adding or removing a row.
    """
    levels, most, step = levels_of(values, upper)
    total = Laplace(sum_price, most).release(int(levels.sum())) * float(step)
    count = Laplace(count_price, 1).release(len(values))
    return float(np.clip(total / max(count, 1.0), 0.0, float(upper)))


def ls_at_distance(df: Any, u: Rational, k: int, *, column: str = "Age") -> float:
    """The most that the average of values in 0 … u could move by one row, k rows from this data.

    Trap of the original: |u/(n − k + 1)| is the most that one row *more* moves an average of n − k; one row
    less moves it by up to u/(n − k). Beyond k = n the original turns round and falls again.

    Privacy:
        None: an exact function of the private number of rows.

    Raises:
        InvalidParameter: if u is not positive or k is negative.
        InvalidValue: if there are no rows to count.
    """
    bound, away = positive(u, "u"), as_integer(k, "k", least=0)
    return float(bound / max(1, _rows(df, column) - away))


def dist_to_high_ls(df: Any, u: Rational, b: Rational, *, column: str = "Age") -> int:
    """How many rows must change before the average of values in 0 … u could move by more than b.

    Trap of the original: a loop over the distances, built on a local sensitivity that is off by one (see
    `ls_at_distance`), so that the test passes data one row too near. Here it is a formula.

    Privacy:
        None: an exact function of the private number of rows. It moves by at most 1 between neighbours, and
        is 0 for both wherever their averages differ by more than b: what `ptr_avg` needs of it.

    Raises:
        InvalidParameter: unless 0 < b < u.
    """
    bound, proposed = _proposed(u, b)
    return _distance(_rows(df, column), bound, proposed)


def ptr_avg(
    df: Any,
    u: Rational,
    b: Rational,
    epsilon: Rational,
    delta: Rational,
    logging: bool = False,
    *,
    column: str = "Age",
) -> float | None:
    """The average of values clamped to 0 … u with noise for a sensitivity of b, or None if the test fails.

    Traps of the original: its threshold ln(2/δ)/(2ε) lets data at distance 0 pass with probability ½√(δ/2):
    11 in a million for δ = 10⁻⁹, and not one in a billion. Test and release take ε each, so that it costs
    2ε. Its distance is off by one (`dist_to_high_ls`), and δ = 1/n² is taken from the private number of
    rows.

    Args:
        df: The values, or a table with the column.
        u: The public upper bound of the values.
        b: The proposed sensitivity of their average; public, below u.
        epsilon: The price of test and release together.
        delta: The probability that the test may pass wrongly.
        logging: Whether to print what the test asks for, and whether it passed; the outcome says so anyway.
        column: Its name in a table.

    Privacy:
        Total: (epsilon, delta), whether or not there is an answer: half of epsilon for the test, half for
        the release; see `sfumato.mechanisms.ProposeTestRelease`. Proof of its conditions: an average of N
        values in 0 … u moves by at most u/N when one of them goes (v and the average a of the others are at
        most u apart, and it moves by |v − a|/N; an empty table has average 0). So the distance is that of the
        number of rows to the least N with u/N ≤ b, which moves by at most 1, and is 0 for both of two
        neighbours whose averages differ by more than b. The float that the average is rounded to is allowed
        for in the distance.

    Raises:
        InvalidParameter: if a parameter is out of range.
        InvalidValue: if the values are not finite numbers.
    """
    bound, proposed = _proposed(u, b)
    mechanism = ProposeTestRelease(epsilon, delta, bound=proposed)
    values = numbers_of(df, column)
    levels, _, step = levels_of(values, bound)
    mean = float(Fraction(int(levels.sum())) * step / max(1, len(values)))
    margin = proposed - bound * _ROUNDING
    distance = _distance(len(values), bound, margin) if margin > 0 else 0
    answer = mechanism.release(mean, distance)
    if logging:
        outcome = "failed" if answer is None else "passed"
        print(f"The test asks for a noisy distance above {mechanism.threshold}; it {outcome}.")
    return answer


def saa_avg_age(
    k: int,
    epsilon: Rational,
    logging: bool = False,
    *,
    df: Any,
    lower: Rational = 0,
    upper: Rational = 100,
    column: str = "Age",
) -> float:
    """The average age by sample and aggregate: the noisy mean of the averages of k random parts.

    Traps of the original: it slices by position, so that one row inserted at the top moves a row into every
    chunk, and all k answers change, where noise for one is added. It makes fewer than k chunks for many k and
    n, and still divides its sensitivity by k: 12 rows and k = 8 make 6 chunks. And `logging` prints the
    size of a chunk, which tells the private number of rows.

    Args:
        k: How many parts; public.
        epsilon: The price.
        logging: Whether to print the (public) scale of the noise.
        df: The values, or a table with the column.
        lower: The public lower bound of an average.
        upper: The public upper bound.
        column: Its name in a table.

    Privacy:
        Total: epsilon (pure); see `sfumato.mechanisms.SampleAndAggregate`: rows go to random parts, and the
        divisor is always k.

    Raises:
        InvalidParameter: if a parameter is out of range.
        InvalidValue: if the values are not finite numbers.
    """
    mechanism = SampleAndAggregate(epsilon, lower, upper=upper, chunks=k)
    if logging:
        width = float((mechanism.upper - mechanism.lower) / mechanism.chunks / mechanism.epsilon)
        print(f"{mechanism.chunks} parts; noise of scale {width:.6g}.")
    return mechanism.release(_mean, numbers_of(df, column))


def _mean(part: NDArray[Any]) -> float:
    """The average of a part that is not empty, by a sum that cannot overflow: a warning would tell of data.

    Each value is first made smaller by a power of two above the number of rows, which is exact but for values
    so near to 0 that no average shows them. An average is at most the largest value, so that the way back
    stays finite but for a last rounding, which `math.ldexp` would call an error.
    """
    shift = len(part).bit_length()
    with np.errstate(under="ignore"):
        small = float(np.ldexp(part, -shift).sum()) / len(part)
    try:
        return math.ldexp(small, shift)
    except OverflowError:
        return math.copysign(math.inf, small)


def _rows(df: Any, column: str) -> int:
    return len(numbers_of(column_of(df, column)))


def _proposed(u: Rational, b: Rational) -> tuple[Fraction, Fraction]:
    bound, proposed = positive(u, "u"), positive(b, "b")
    if proposed >= bound:
        raise InvalidParameter(
            "b must be less than u: no average in 0 … u moves by more, so nothing is tested."
        )
    return bound, proposed


def _distance(rows: int, bound: Fraction, proposed: Fraction) -> int:
    """The least k with bound/(rows − k) > proposed, or with no rows left."""
    least = -(-bound // proposed)  # the fewest rows whose average moves by at most `proposed`
    return max(0, rows - int(least) + 1)
