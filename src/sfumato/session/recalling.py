"""Whether an answer on record is the one to a question that is asked again."""

from __future__ import annotations

from fractions import Fraction

from sfumato.plan.prices.quoting import Quote
from sfumato.purchase import Bought
from sfumato.session.payload import Answer

__all__ = ["serves"]


def serves(bought: Bought[Answer], quote: Quote, asked: Fraction | None) -> bool:
    """Whether an answer on record is as good as what is asked for, or was given for the same price.

    Of such a price a part went into the profile, and the answer had the rest. An error that is asked for is
    one: then no price serves in its place.
    """
    answer, purpose = bought.answer, bought.receipt.purpose
    whole = asked is not None and purpose.asked is not None and purpose.asked >= asked
    same = whole and (purpose.delta or 0) >= quote.delta and answer.mechanism == quote.mechanism
    accurate = answer.as_good_as(quote) or quote.is_reached_by(answer.noises)
    return answer.has_all(quote) and (same or accurate or _by_default(bought, quote, whole=whole))


def _by_default(bought: Bought[Answer], quote: Quote, *, whole: bool) -> bool:
    """Whether an answer on record was asked for just so, and only the delta that the budget spared differs.

    What is spared follows what is left, and which noise is best follows from that: an answer at the same
    epsilon, with neither of them named, is the answer to this question.

    Args:
        bought: The answer.
        quote: What is asked for.
        whole: Whether it was given for the same price, part of which went into the profile.
    """
    answer, unnamed = bought.answer, {*quote.unnamed} & {*bought.receipt.purpose.unnamed}
    return (
        "delta" in unnamed
        and quote.target is None
        and (whole or answer.epsilon >= quote.epsilon)
        and (answer.mechanism == quote.mechanism or "mechanism" in unnamed)
    )
