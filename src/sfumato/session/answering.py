"""The private answer to what was paid: each question is read once and made private at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sfumato.mechanisms import AdaptiveSelection, GaussianSelection
from sfumato.plan.prices.quoting import Quote
from sfumato.session.noise import privatise, privatise_extra, select, select_in_rounds, select_on_levels
from sfumato.session.payload import Answer
from sfumato.session.reading import Reading

__all__ = ["answered"]


def answered(quote: Quote, read: Callable[..., Reading]) -> Answer:
    """The private answer to all questions of a quote, each read once and made private at once.

    Args:
        quote: What was asked and paid.
        read: Gives the exact integers of one of its questions, by its place and over which groups; where
            groups are found by weight, also by how units' weights are spread.

    Exact integers have no name here for longer than a line: a frame that outlives an error must not hold
    them.
    """
    groups: Sequence[tuple[Any, ...]] | None = None
    units = None
    main = int(len(quote.recipe.questions) > len(quote.extras))
    noisy: tuple[Any, ...] = ()
    if main and quote.selection is not None:
        if quote.measured.levels:
            places = range(main + len(quote.extras), len(quote.recipe.questions))
            survivors, units = select_on_levels(read(0, None), [read(place, None) for place in places], quote)
        elif isinstance(quote.selection, AdaptiveSelection):
            survivors = select_in_rounds(lambda spread: read(0, None, spread), quote.selection)
        else:
            survivors, units = select(read(0, None), quote.selection)
        groups, noisy = survivors.groups, privatise(survivors.columns, quote)
        del survivors
    elif main:
        noisy = privatise(read(0, None).columns, quote)
    extras = tuple(
        (extra.epsilon, privatise_extra(read(place, groups if extra.extra.measured.keys else None), extra))
        for place, extra in enumerate(quote.extras, start=main)
    )
    return Answer(
        noisy,
        quote.noises,
        quote.epsilon,
        quote.delta,
        quote.mechanism,
        groups,
        units,
        extras,
        quote.selection_price,
        isinstance(quote.selection, GaussianSelection),
    )
