"""Why an answer has no rows, or not all groups, in a sentence: from what was asked and released alone."""

from __future__ import annotations

import re
from collections.abc import Sized
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING

from sfumato.mechanisms import AdaptiveSelection

if TYPE_CHECKING:
    from sfumato.plan.prices.quoting import Quote

__all__ = ["few_groups", "missing_groups", "why_nothing"]

_GROUPS = re.compile(r"in (?:each of )?at most ([0-9,]+) groups?\b")  # of a unit, in an estimand
_THREE = Context(prec=3, rounding=ROUND_CEILING)


def why_nothing(quote: Quote, groups: int | None) -> str:
    """Why no row is left.

    Args:
        quote: What was asked.
        groups: How many groups were found in the data and released; None where they are public.
    """
    report = quote.report
    if groups == 0 and quote.selections:
        return f"No group is shown: {_too_few(quote)}. Group by something coarser, or pay a larger epsilon."
    if groups is None and not quote.measured.combinations:
        return "No group is left: WHERE excludes every value that the keys can have."
    if report.having is not None:
        return "No row is left: HAVING removed them all, by their noisy figures; asking without it is free."
    return "No row is left: LIMIT or OFFSET leaves none; asking without them is free."


def missing_groups(quote: Quote, groups: Sized | None) -> tuple[str, ...]:
    """That small groups have no line, if groups were found in the data and none stands for the others.

    Args:
        quote: What was asked.
        groups: The groups that were found in the data and released; None where they are public.
    """
    if not groups or not quote.selections or quote.measured.levels:
        return ()
    few = "few rows" if quote.rows.owner is None else f"few units ({quote.rows.owner})"
    return (f"Groups with {few} are left out: missing does not mean 0.",)


def few_groups(quote: Quote) -> tuple[str, ...]:
    """That groups lack units which are in others too, where the declared limit of groups cuts them.

    Args:
        quote: What was asked.
    """
    unit, owner = quote.measured.unit, quote.rows.owner
    cut = [match for phrase in quote.estimands.values() if (match := _GROUPS.search(phrase))]
    if not cut or owner is None or unit.max_groups != quote.rows.unit.max_groups:
        return ()  # another limit than the declared one was chosen for this question, which says so
    many = f"{unit.max_groups:,} group{'' if unit.max_groups == 1 else 's'}"
    return (
        f"Each {owner} counts in at most {many}: groups lack those that count in others. For more, the "
        "steward sets max_groups in sfumato.toml (more noise).",
    )


def _too_few(quote: Quote) -> str:
    """That no group was above the threshold: of units, or of what they weigh where groups are found so."""
    owner = f"units ({quote.rows.owner})" if quote.rows.owner else "rows"
    most = max(selection.threshold for selection in quote.selections)
    if any(isinstance(selection, AdaptiveSelection) for selection in quote.selections):
        weight = f"{_THREE.create_decimal(Decimal(most)):f}"
        return (
            f"of none do the {owner} weigh more than {weight} together after noise, where a unit in n groups "
            "weighs 1/√n in each"
        )
    return f"none has more than {most:,} {owner} after noise"
