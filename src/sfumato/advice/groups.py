"""Numbers by group: the most common value, a histogram, a table of groups; known groups or found ones."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.advice.declared import Declared, amounts, kinds
from sfumato.advice.numbers import NOISES, asked, error_of, noises, release, why_noise
from sfumato.advice.result import OUTSIDE, Advice, Option, best_of
from sfumato.advice.said import Said
from sfumato.advice.spelling import literal, price_of, rounded
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import (
    Exponential,
    GaussianSelection,
    Geometric,
    NoisyMax,
    PartitionSelection,
    PermuteAndFlip,
)

if TYPE_CHECKING:
    from sfumato.plan.prices.quote import Quote

__all__ = ["histogram", "most_common", "table_of_groups"]

_FLIPS = "permute-and-flip"
_COUNTS = "SELECT kind, COUNT(*) AS n FROM data GROUP BY kind"
_BOTH = "SELECT kind, COUNT(*) AS n, AVG(amount) AS m FROM data GROUP BY kind"
_PEOPLE = "SELECT kind, COUNT(DISTINCT person) AS n FROM data GROUP BY kind"
_NAMES = {
    "PartitionSelection": "partition selection",
    "GaussianSelection": "Gaussian selection",
    "AdaptiveSelection": "selection in two rounds",
}
_FEW = (
    "Noise does not shrink with a group: in small groups it may be as large as the number. Merge them before "
    "you ask, not after looking."
)
_LISTED = (
    "List the groups from public knowledge, never from the data: that a rare one is listed tells of somebody."
)


def most_common(said: Said) -> Advice:
    """The value that most rows have."""
    if not said.known:
        return _first_found(said)
    candidates, moved = said.groups, said.rows
    flips = PermuteAndFlip(said.epsilon, moved, monotone=True)
    exponential = Exponential(said.epsilon, moved, monotone=True)
    noisy = NoisyMax(said.epsilon, moved, monotone=True)
    sure = said.confidence
    options = [
        Option(_FLIPS, flips.error(sure, candidates=candidates)),
        Option("the exponential mechanism", exponential.error(sure, candidates=candidates), OUTSIDE),
        Option("noisy maximum", noisy.error(sure, candidates=candidates), OUTSIDE),
    ]
    counts = Geometric(said.epsilon, moved).error(said.confidence, size=candidates)
    options.append(Option("the greatest of a noisy histogram", 2 * counts))
    ranked = best_of(options)
    table = Declared(said, (kinds(said),), groups=_groups_of(said))
    chosen = ranked[0].name == _FLIPS
    lines = [f'answer = session.most_common("kind", epsilon={literal(said.epsilon)})', "print(answer)"]
    if not chosen:
        lines = release(f"{_COUNTS} ORDER BY n DESC LIMIT 1", said, "laplace", chosen="laplace")
    return Advice(
        said=said,
        use="session.most_common" if chosen else "COUNT with GROUP BY and ORDER BY in SQL",
        code=table.code(*lines),
        reads=table.reads,
        why=(
            f"A name alone takes less budget than a table of numbers. {_capital(ranked[0].name)} errs least "
            f"of all ways to choose among {candidates:,} values."
        ),
        price=price_of(said.epsilon, said.delta, used=False),
        error=ranked[0].error,
        meaning="the value that is named is at most so far behind the most common one",
        unit="rows",
        exact=True,
        options=ranked,
        trap=_LISTED,
        docs="docs/choices.md",
    )


def _first_found(said: Said) -> Advice:
    """The same where it is not public which values there are."""
    table = Declared(said, (kinds(said, known=False),), groups=_groups_of(said))
    half = said.epsilon / 2
    whole = _counts_of(table.quotes(_COUNTS)[""], said, size=said.groups)
    chosen = PermuteAndFlip(half, said.rows, monotone=True).error(said.confidence, candidates=said.groups)
    histogram, split = "the greatest of the groups that are found", "half to find groups, half to choose"
    options = best_of([Option(histogram, 2 * whole), Option(split, chosen)])
    if options[0].name == histogram:
        lines = _found(f"{_COUNTS} ORDER BY n DESC LIMIT 1", said)
        use = "COUNT with GROUP BY and ORDER BY in SQL"
    else:
        price = literal(half)
        lines = [
            *asked(_COUNTS),
            f"found = question.release(epsilon={price}, delta={literal(said.delta)})",
            f'answer = session.most_common("kind", epsilon={price}, among=found)',
            "print(answer)",
        ]
        use = "COUNT with GROUP BY in SQL, then session.most_common"
    least = _selection(said, said.epsilon if options[0].name == histogram else half).least(said.confidence)
    return Advice(
        said=said,
        use=use,
        code=table.code(*lines),
        reads=table.reads,
        why=(
            "Which values there are is private, so they are found first, which takes a delta; what is done "
            f"with noisy numbers afterwards is free. {_capital(options[0].name)} errs least."
        ),
        price=price_of(said.epsilon, said.delta, used=True),
        error=options[0].error,
        meaning=(
            f"the value that is named is at most so far behind the most common one, if {least:,} people "
            "have that"
        ),
        unit="rows",
        exact=True,
        options=options,
        trap="If nobody's value is shared by enough people, nothing is found: the table is empty then.",
        docs="docs/choices.md",
    )


def histogram(said: Said) -> Advice:
    """How many rows have each value."""
    if not said.known:
        return _found_groups(said)
    table = Declared(said, (kinds(said),), groups=_groups_of(said))
    quotes = table.quotes(_COUNTS)
    options = best_of(noises(quotes, "n"))
    noise, trap = _noise(options), f"{_LISTED} {_FEW}"
    if said.rows > 1:
        people = best_of(noises(table.quotes(_PEOPLE), "n"))[0]
        if (people.error or 0.0) < (options[0].error or 0.0):
            trap = (
                "This counts rows. If you mean people, ask COUNT(DISTINCT person): a person moves each group "
                f"by 1 at most, and {people.name} of ± {rounded(people.error or 0.0)} is enough. {_LISTED}"
            )
    return Advice(
        said=said,
        use="COUNT with GROUP BY in SQL",
        code=table.code(*release(_COUNTS, said, noise, chosen=quotes[""].mechanism)),
        reads=table.reads,
        why=(
            f"A person moves at most {said.rows:,} of the rows that all {said.groups:,} groups count, so "
            f"that they cost no more than one count of all. {why_noise(options, said)}"
        ),
        price=price_of(said.epsilon, said.delta, used=noise == "gaussian"),
        error=options[0].error,
        meaning="noise of each count, whatever the data are",
        unit="rows",
        exact=True,
        options=options,
        trap=trap,
        docs="docs/sql.md",
    )


def table_of_groups(said: Said) -> Advice:
    """A count and a mean of each group."""
    if not said.known:
        return _found_groups(said, means=True)
    table = Declared(said, (kinds(said), amounts(said)), groups=_groups_of(said), sized=True)
    quotes = table.quotes(_BOTH)
    options = best_of(noises(quotes, "m"))
    noise = _noise(options)
    quote = quotes[noise]
    each = max(said.people // said.groups, 1)
    counted = rounded(error_of(quote, "n") or 0.0)
    return Advice(
        said=said,
        use="COUNT and AVG with GROUP BY in SQL",
        code=table.code(*release(_BOTH, said, noise, chosen=quotes[""].mechanism)),
        reads=table.reads,
        why=(
            "One question for both numbers of all groups: they share one price, and the mean reuses the "
            f"count. {why_noise(options, said)}"
        ),
        price=price_of(said.epsilon, said.delta, used=noise == "gaussian"),
        error=options[0].error,
        meaning=f"of each mean, in groups of about {each:,} rows; each count is off by ± {counted}",
        unit="",
        exact=False,
        options=options,
        trap=_FEW,
        docs="docs/sql.md",
    )


def _found_groups(said: Said, *, means: bool = False) -> Advice:
    """Groups that nobody may know beforehand, with their numbers."""
    columns = (kinds(said, known=False), amounts(said)) if means else (kinds(said, known=False),)
    table = Declared(said, columns, groups=_groups_of(said))
    text = _BOTH if means else _COUNTS
    quote = table.quotes(text)[""]
    selection = quote.selection
    assert selection is not None
    mine, people = _NAMES[type(selection).__name__], _counts_people(quote)
    least = {mine: selection.least(said.confidence)}
    options = [Option(mine, _counts_of(quote, said) if people else None)]
    other = GaussianSelection if isinstance(selection, PartitionSelection) else PartitionSelection
    with contextlib.suppress(InvalidParameter):  # Gaussian selection needs a delta that is not tiny
        second = other(selection.epsilon, selection.delta, groups=selection.groups)
        name = _NAMES[other.__name__]
        least[name] = second.least(said.confidence)
        options.append(Option(name, second.error(said.confidence) if people else None))
    chosen = options[0].name
    return Advice(
        said=said,
        use="COUNT and AVG with GROUP BY in SQL" if means else "COUNT with GROUP BY in SQL",
        code=table.code(*_found(text, said)),
        reads=table.reads,
        why=(
            "Which groups there are is private: only those that enough people share are shown, by "
            f"{chosen}, which errs least here."
        ),
        price=price_of(said.epsilon, said.delta, used=True),
        error=_counts_of(quote, said),
        meaning=(
            f"noise of each count that is shown; a group of {least[chosen]:,} people is shown with this "
            "confidence, a much smaller one is not"
        ),
        unit="people" if people else "rows",
        exact=True,
        options=tuple(
            replace(option, name=f"{option.name}, groups from {least[option.name]:,} people on")
            for option in options
        ),
        trap=(
            "Small groups are left out, so the shown counts do not add up to all rows. A list of groups that "
            "is public needs no delta and loses none: say known=True if you have one."
        ),
        docs="docs/depth.md",
    )


def _found(text: str, said: Said) -> list[str]:
    price = f"epsilon={literal(said.epsilon)}, delta={literal(said.delta)}"
    return [*asked(text), f"answer = question.release({price})", "print(answer)"]


def _groups_of(said: Said) -> int:
    """In how many groups a person can be."""
    return min(said.rows, said.groups)


def _noise(options: tuple[Option, ...]) -> str:
    return next(name for name, told in NOISES.items() if told == options[0].name)


def _counts_people(quote: Quote) -> bool:
    """Whether the noisy counts by which groups are selected are the answer."""
    (column,) = (each for each in quote.columns if each.name == "n")
    return "not rows" in column.estimand


def _counts_of(quote: Quote, said: Said, *, size: int = 1) -> float:
    """The error of the counts of groups that are found, of `size` of them at once."""
    assert quote.selection is not None
    if _counts_people(quote):
        return quote.selection.error(said.confidence, size=size)
    sure = 1 - (1 - said.confidence) / size
    return quote.noises[0].quantile(sure)


def _selection(said: Said, epsilon: Fraction) -> PartitionSelection:
    return PartitionSelection(epsilon, said.delta, groups=_groups_of(said))


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
