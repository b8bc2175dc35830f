"""Why an answer has no rows, in a sentence: from what was asked and released, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.plan.prices.quoting import Quote

__all__ = ["why_nothing"]


def why_nothing(quote: Quote, groups: int | None) -> str:
    """Why no row is left.

    Args:
        quote: What was asked.
        groups: How many groups were found in the data and released; None where they are public.
    """
    report, selection = quote.report, quote.selection
    if groups == 0 and selection is not None:
        owner = quote.rows.owner or "row"
        return (
            f"No group is shown: none has more than {selection.threshold} units ({owner}) after noise. "
            "Group by something coarser, or pay a larger epsilon."
        )
    if groups is None and not quote.measured.combinations:
        return "No group is left: WHERE excludes every value that the keys can have."
    if report.having is not None:
        return "No row is left: HAVING removed them all, by their noisy figures; asking without it is free."
    return "No row is left: LIMIT or OFFSET leaves none; asking without them is free."
