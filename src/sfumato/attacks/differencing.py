"""Differencing: two harmless answers whose difference is one person.

A company of 25 says that its people earn 500,000 on average. It hires one more and says 505,000. Both are
averages over a crowd, and 26 · 505,000 − 25 · 500,000 = 630,000 is the pay of the newcomer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import median

from sfumato.attacks._asking import Answer, Ask, answers_of, numbers_given, trials_given
from sfumato.attacks._power import LEAK, counted_power, leak_given, one_in, stated
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_fraction, as_integer, show

__all__ = ["difference", "differencing", "differencing_totals"]

_MORE = "take more trials, a smaller tolerance, or a larger leak"
_FLOAT = Fraction(sys.float_info.max)  # a miss may be beyond all floats, and is told as the largest


def difference(first: Rational, second: Rational, *, first_size: int, second_size: int) -> float:
    """What the newcomer has, from the average before and the average after.

    In exact fractions, so that exact averages give the exact value. Where several came (or left), it is
    their average.

    Example:
        >>> difference(500_000, 505_000, first_size=25, second_size=26)
        630000.0

    Raises:
        InvalidParameter: if an average is not a finite number, or nobody came or left.
    """
    before, after = as_fraction(first, "first"), as_fraction(second, "second")
    sizes = as_integer(first_size, "first_size"), as_integer(second_size, "second_size")
    return float(_newcomer(before, after, *sizes))


def _newcomer(first: Fraction, second: Fraction, first_size: int, second_size: int) -> Fraction:
    if first_size == second_size:
        raise InvalidParameter("first_size and second_size must differ: somebody must have come or left.")
    return (second * second_size - first * first_size) / (second_size - first_size)


def differencing(
    ask_first: Ask,
    ask_second: Ask,
    *,
    first_size: int,
    second_size: int,
    truth: Answer,
    tolerance: Rational,
    trials: int = 100,
    ask_without: Ask | None = None,
    bounds: tuple[Rational, Rational] | None = None,
    leak: float = LEAK,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often two averages give away the newcomer's value, beside what is reached without the newcomer.

    Steward-only: it is scored against the truth, and nothing pays for that.

    The baseline is the first of these that is given:

    - `ask_without`: the same attack where the second average is computed *without* the newcomer. It is the
      right one for a private release: what the others tell about the newcomer does not harm the newcomer,
      and ε bounds how far the two rates can be apart (see Privacy).
    - `bounds`: a uniform guess within public bounds, a known probability. An estimate outside of them is
      mirrored back at the bounds, so that one that is nothing but noise is as good as such a guess.
    - neither: somebody who has seen the first answer only, and guesses that the newcomer is like the rest.

    Args:
        ask_first: gives the average before, each time it is called. It may give a list: the averages of as
            many groups of the same sizes, each of which is a trial.
        ask_second: gives the average after.
        first_size: how many people are in the first average; public.
        second_size: how many are in the second.
        truth: the newcomer's value, or the list of them.
        tolerance: how far from it an estimate may be and still count as a hit.
        trials: how often both are asked.
        ask_without: gives the second average over everybody but the newcomer.
        bounds: the least and the largest value that anybody can have; public.
        leak: the share of trials whose answers are exact in the leak that has to be noticed (power).
        target: what is attacked, in words.
        confidence: of all intervals.

    Example:
        On exact averages every trial is a hit, and a guess has none:

        >>> differencing(lambda: 500_000, lambda: 505_000, first_size=25, second_size=26,
        ...              truth=630_000, tolerance=0).works
        True

        On two `AVG` of a session at ε = 1/2 each, 1 in all, hits are as frequent as without the newcomer.

    Privacy:
        Claim: where both averages together are (ε, δ)-DP for the newcomer, the rate of hits is at most
        e^ε times the rate on releases without the newcomer, plus δ: a hit is an event of the released
        pair (post-processing). Source: Dwork, McSherry, Nissim, Smith 2006; Wasserman, Zhou 2010.

    Raises:
        InvalidParameter: if a function raises or gives something other than finite numbers, or the
            parameters do not fit each other.
        BudgetExceeded: if that is what a function raises.
    """
    sizes = as_integer(first_size, "first_size"), as_integer(second_size, "second_size")
    _newcomer(Fraction(0), Fraction(0), *sizes)
    return _differencing(
        [(ask_first, "ask_first"), (ask_second, "ask_second"), (ask_without, "ask_without")],
        lambda before, after: _newcomer(before, after, *sizes),
        attack="differencing",
        what="the person's value",
        lone="the person guessed to be like the first average",
        truth=truth,
        tolerance=tolerance,
        trials=trials,
        bounds=bounds,
        leak=leak,
        target=target,
        confidence=confidence,
    )


def differencing_totals(
    ask_everyone: Ask,
    ask_others: Ask,
    *,
    truth: Answer,
    tolerance: Rational,
    trials: int = 100,
    ask_without: Ask | None = None,
    bounds: tuple[Rational, Rational] | None = None,
    leak: float = LEAK,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How often a count or sum over all, minus the one over all but a person, gives away that person.

    Steward-only: it is scored against the truth, and nothing pays for that.

    The two questions may look like any others: how many people smoke, and how many smoke who were not born
    on that day in that village. The baselines are those of `differencing`; with neither `ask_without` (the
    first total, computed without the person) nor `bounds`, it is a guess of zero.

    Args:
        ask_everyone: gives the total over all, each time it is called; or a list, one for each of as many
            people, each of whom is a trial.
        ask_others: gives the total over all but the person.
        truth: what the person adds to the total: the bit, or the value; or the list of them.
        tolerance: how far from it an estimate may be and still count as a hit (for a bit below 1).
        trials: how often both are asked.
        ask_without: gives the first total where the person is not in the data.
        bounds: the least and the largest value that anybody can have; public.
        leak: the share of trials whose answers are exact in the leak that has to be noticed (power).
        target: what is attacked, in words.
        confidence: of all intervals.

    Privacy:
        As for `differencing`.

    Raises:
        InvalidParameter: if a function raises or gives something other than finite numbers, or the
            parameters do not fit each other.
        BudgetExceeded: if that is what a function raises.
    """
    return _differencing(
        [(ask_others, "ask_others"), (ask_everyone, "ask_everyone"), (ask_without, "ask_without")],
        lambda others, everyone: everyone - others,
        attack="differencing of totals",
        what="the person's value",
        lone="the person guessed to add nothing",
        truth=truth,
        tolerance=tolerance,
        trials=trials,
        bounds=bounds,
        leak=leak,
        target=target,
        confidence=confidence,
    )


def _differencing(
    asks: Sequence[tuple[Ask | None, str]],
    estimate: Callable[[Fraction, Fraction], Fraction],
    *,
    attack: str,
    what: str,
    lone: str,
    truth: Answer,
    tolerance: Rational,
    trials: int,
    bounds: tuple[Rational, Rational] | None,
    leak: float,
    target: str,
    confidence: float,
) -> Outcome:
    values, share = numbers_given(truth, "truth"), leak_given(leak)
    count, allowed = trials_given(trials, tolerance)
    (ask_base, base_name), (ask_more, more_name), (ask_without, without_name) = asks
    if ask_base is None or ask_more is None:
        raise InvalidParameter(f"{base_name} and {more_name} must be functions that answer.")
    limits = _limits(bounds, values) if ask_without is None and bounds is not None else None
    misses: list[Fraction] = []
    control = 0
    for _ in range(count):
        base = answers_of(ask_base, base_name, len(values))
        more = answers_of(ask_more, more_name, len(values))
        if ask_without is not None:
            plain_base = answers_of(ask_base, base_name, len(values))
            without = answers_of(ask_without, without_name, len(values))
            guesses = [estimate(*pair) for pair in zip(plain_base, without, strict=True)]
        else:
            # The difference to a group in which nobody came: "like the rest" for averages, 0 for totals.
            guesses = [estimate(answer, answer) for answer in base]
        control += sum(abs(x - value) <= allowed for x, value in zip(guesses, values, strict=True))
        for before, after, value in zip(base, more, values, strict=True):
            guess = estimate(before, after)
            misses.append(abs((guess if limits is None else _mirrored(guess, *limits)) - value))
    guess_reached: Tally | float = Tally(control, len(misses))
    guessing = "the same attack on a release without them" if ask_without is not None else lone
    if limits is not None:
        guess_reached, guessing = _uniform(limits, values, allowed), "uniform within the public bounds"
    found_out = Outcome(
        attack,
        f"{what} is found within ±{show(allowed)}",
        Tally(sum(miss <= allowed for miss in misses), len(misses)),
        guess_reached,
        guessing,
        target,
        confidence,
        {"tolerance": float(allowed), "median_miss": float(min(median(misses), _FLOAT))},
    )
    # Exact answers give the exact value, so that each trial with them is a hit.
    words = f"exact answers in {one_in(share, 'trial')}"
    return stated(found_out, lambda: counted_power(found_out, share, words), advice=_MORE)


def _limits(bounds: tuple[Rational, Rational], values: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidParameter("bounds must be two numbers, the least and the largest value.")
    low, high = as_fraction(bounds[0], "bounds"), as_fraction(bounds[1], "bounds")
    if low >= high:
        raise InvalidParameter("bounds must be two numbers, the least below the largest.")
    if not all(low <= value <= high for value in values):
        raise InvalidParameter("truth must lie within the bounds; give the bounds that the steward declared.")
    return low, high


def _mirrored(guess: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """The guess, folded at the bounds as often as it takes."""
    folded = (guess - low) % (2 * (high - low))
    return low + min(folded, 2 * (high - low) - folded)


def _uniform(limits: tuple[Fraction, Fraction], values: Sequence[Fraction], allowed: Fraction) -> float:
    """The probability that a uniform guess within the limits is a hit, on average over the people."""
    low, high = limits
    near = [min(high, value + allowed) - max(low, value - allowed) for value in values]
    return float(sum(near) / (len(near) * (high - low)))
