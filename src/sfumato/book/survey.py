"""Chapter 13 of the textbook: randomized response and unary encoding, by those who are asked.

The names and arguments are those of *Programming Differential Privacy* (Near and Abuah). Whatever takes the
answer of one person also takes those of many, each randomised by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import ctx
from numpy.typing import ArrayLike, NDArray

from sfumato.book._data import Floats, items_of, many
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local.coins import Coins
from sfumato.local.domain import Domain
from sfumato.local.response import BinaryResponse
from sfumato.numeric.exact import Rational, float_up, probability
from sfumato.numeric.figures import PRECISION, ball, upper
from sfumato.numeric.private_values import same

__all__ = [
    "aggregate",
    "chances",
    "debias_sales",
    "encode",
    "perturb",
    "perturb_bit",
    "rand_resp_sales",
    "unary_epsilon",
    "unary_price",
]

Bits = NDArray[np.int64]


def rand_resp_sales(response: Any, *, yes: object = "Sales") -> Any:
    """Whether the occupation is sales, by two coins: the truth, or what the second coin says.

    Trap of the original: none of these answers says how many people are in sales: half of them are coins, and
    a quarter is "yes" for no reason. `debias_sales` takes that out. Coins are from a generator that can be
    foretold, one person at a time.

    Args:
        response: One person's occupation, or a column of them.
        yes: The occupation that is asked about.

    Privacy:
        Total: ln 3 for each answer, to the person who gives it, whoever reads it (the local model); asking
        again costs as much again. See `sfumato.local.BinaryResponse`.
    """
    people = items_of(response) if many(response) else [response]
    truth = np.array([same(person, yes) for person in people], bool)
    answers = BinaryResponse.coins().encode(truth).astype(bool)
    return answers if many(response) else bool(answers[0])


def debias_sales(responses: ArrayLike) -> float:
    """How many people are in sales, from the answers of `rand_resp_sales`: 2·(yes − n/4).

    Trap of the original: it takes n from the table of everybody and not from the answers that came in.
    `sfumato.local` gives an interval with it.

    Privacy:
        Free: post-processing of answers that were randomised already.

    Raises:
        InvalidValue: if these are not answers, or there are none.
    """
    answers = np.asarray(responses)
    if answers.ndim != 1 or answers.dtype.kind not in "biu" or ((answers != 0) & (answers != 1)).any():
        raise InvalidValue("Responses must be a flat list of True and False, as rand_resp_sales gives them.")
    estimate = BinaryResponse.coins().aggregate(answers.astype(np.uint8)).estimate()
    return float(estimate.counts[1])


def encode(response: Any, *, domain: Sequence[Any]) -> Bits:
    """A bit for each value of the domain, 1 at the response; a row of them for each of many responses.

    Trap of the original: the domain is `data.unique()`, so that a value is in it because somebody has it. It
    must be a public list. And a response outside of it became a row of zeros, in silence.

    Args:
        response: One person's value, or a column of them.
        domain: All values that there are; public.

    Privacy:
        None yet: the row is the value. It must not leave the person's device before `perturb`.

    Raises:
        InvalidParameter: if the domain is not a list of at least two different values.
        InvalidValue: for a response outside of it, which is not shown.
    """
    values = Domain(domain)
    places = values.indices(items_of(response) if many(response) else [response])
    rows = np.zeros((places.size, values.size), np.int64)
    rows[np.arange(places.size), places] = 1
    return rows if many(response) else rows[0]


def perturb(encoded_response: ArrayLike, *, p: Rational = "3/4", q: Rational = "1/4") -> Bits:
    """Every bit drawn again: 1 with probability p where it was 1, with probability q where it was 0.

    Traps of the original: p = .75 and q = .25 look like the coins of `rand_resp_sales`, but two values differ
    in *two* bits, so that it costs ln 9 and not ln 3. A row with several ones costs more still; here only a
    row with exactly one is taken. `sfumato.local.UnaryEncoding` has less error for the same price.

    Args:
        encoded_response: A row of `encode`, or many.
        p: The probability that the own bit stays 1.
        q: The probability that another becomes 1; below p.

    Privacy:
        Total: `unary_epsilon(p, q)` for each row, ln 9 unless told otherwise, to the person whose row it is
        (the local model). Coins are exact, and all bits are drawn whatever the row is. Source: Erlingsson,
        Pihur, Korolova 2014.

    Raises:
        InvalidParameter: unless 0 < q < p < 1.
        InvalidValue: if a row is not made of zeros and exactly one 1.
    """
    own, other = chances(p, q)
    rows = np.asarray(encoded_response)
    if rows.dtype.kind not in "biu" or rows.ndim not in (1, 2) or rows.shape[-1] < 2:
        raise InvalidValue("Give rows of bits, as encode makes them.")
    if not ((rows == 0) | (rows == 1)).all() or not (rows.sum(axis=-1) == 1).all():
        raise InvalidValue("Every row must have exactly one 1: at the value that the person has.")
    noise = Coins(other).toss(rows.size).reshape(rows.shape)
    kept = Coins(own).toss(rows.size // rows.shape[-1]).reshape((*rows.shape[:-1], 1))
    return np.where(rows == 1, kept, noise).astype(np.int64)


def perturb_bit(bit: int, *, p: Rational = "3/4", q: Rational = "1/4") -> int:
    """One bit drawn again: 1 with probability p if it was 1, with probability q if it was 0.

    Trap of the original: for anything but 0 and 1 it gives None.

    Privacy:
        Total for one bit alone: the greater of ln(p/q) and ln((1 − q)/(1 − p)), ln 3 unless told otherwise.
        A row of bits costs more: see `perturb`.

    Raises:
        InvalidParameter: unless 0 < q < p < 1.
        InvalidValue: if it is not a bit.
    """
    own, other = chances(p, q)
    if many(bit) or not (same(bit, 0) or same(bit, 1)):
        raise InvalidValue("A bit is 0 or 1.")
    heads = Coins(own).toss(1), Coins(other).toss(1)
    return int(heads[0][0] if bit else heads[1][0])


def unary_epsilon(p: Rational, q: Rational) -> float:
    """What a row of `perturb` costs: ln(p(1 − q)/((1 − p)q)), rounded up.

    Trap of the original: for p below q it gives a negative price.

    Privacy:
        A figure, not a release; exact up to rounding. Source: Wang, Blocki, Li, Jha 2017, eq. (6).

    Raises:
        InvalidParameter: unless 0 < q < p < 1.
    """
    return float_up(unary_price(*chances(p, q)))


def aggregate(responses: ArrayLike, *, p: Rational = "3/4", q: Rational = "1/4") -> Floats:
    """How many people have each value of the domain, from their perturbed rows: (ones − nq)/(p − q).

    Traps of the original: p and q are written down a second time, and the estimates are wrong in silence if
    they differ from those of `perturb`. They may be negative and do not add up to n; that is what makes them
    unbiased. Their standard error is about √(n·q(1 − q))/(p − q) for a rare value.

    Args:
        responses: A row of bits from each person.
        p: As in `perturb`.
        q: As in `perturb`.

    Privacy:
        Free: post-processing of rows that were randomised already.

    Raises:
        InvalidParameter: unless 0 < q < p < 1.
        InvalidValue: if these are not rows of bits.
    """
    own, other = chances(p, q)
    try:
        rows = np.asarray(responses)
    except ValueError:
        rows = np.empty(0)
    if rows.ndim != 2 or rows.dtype.kind not in "biu" or not ((rows == 0) | (rows == 1)).all():
        raise InvalidValue("Give a row of bits from each person, all of one length, as perturb makes them.")
    ones = rows.sum(axis=0, dtype=np.int64)
    return np.asarray((ones - len(rows) * float(other)) / float(own - other))


def unary_price(p: Fraction, q: Fraction) -> Fraction:
    """The price of a row, rounded up by less than 2**-100."""
    with ctx.workprec(PRECISION):
        return upper((ball(p) * (1 - ball(q)) / ((1 - ball(p)) * ball(q))).log())


def chances(p: Rational, q: Rational) -> tuple[Fraction, Fraction]:
    """Both probabilities, exact.

    Raises:
        InvalidParameter: unless 0 < q < p < 1.
    """
    own, other = probability(p, "p"), probability(q, "q")
    if own <= other:
        raise InvalidParameter("p must exceed q: the own bit has to be likelier than the others.")
    return own, other
