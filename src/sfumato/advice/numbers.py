"""One number of all rows: a count, a sum, a mean, a median."""

from __future__ import annotations

import textwrap
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.advice.declared import LONG, Declared, amounts
from sfumato.advice.result import OUTSIDE, Advice, Option, best_of
from sfumato.advice.said import Said
from sfumato.advice.spelling import literal, price_of, rounded
from sfumato.mechanisms import Geometric, Staircase, TruncatedLaplace
from sfumato.mechanisms.quantiles import Quantiles
from sfumato.plan.prices.extras import PricedQuantiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sfumato.plan.prices.quote import Quote

__all__ = ["NOISES", "asked", "count", "error_of", "mean", "median", "noises", "release", "sum_", "why_noise"]

NOISES = {"laplace": "Laplace noise", "gaussian": "Gaussian noise"}
_HALF = Fraction(1, 2)


def count(said: Said) -> Advice:
    """How many rows there are."""
    table, text = Declared(said), "SELECT COUNT(*) AS n FROM data"
    quotes = table.quotes(text)
    options = best_of([*noises(quotes, "n"), *_others(said, Fraction(said.rows))])
    trap = "Each further answer costs again: the budget above is spent by this one."
    if said.rows > 1:
        one = table.quotes("SELECT COUNT(DISTINCT person) AS n FROM data")
        people = min(option.error or 0.0 for option in noises(one, "n"))
        trap = (
            f"This counts rows. If you mean people, ask COUNT(DISTINCT person): a person moves it by 1, not "
            f"by {said.rows:,}, and it is off by ± {rounded(people)} only."
        )
    return _advice(table, text, quotes, options, said, "rows", f"a person moves it by {said.rows:,}", trap)


def sum_(said: Said) -> Advice:
    """The sum of a number."""
    table, text = Declared(said, (amounts(said),)), "SELECT SUM(amount) AS n FROM data"
    quotes = table.quotes(text)
    most = said.rows * max(abs(said.lower), abs(said.upper))
    options = best_of([*noises(quotes, "n"), *_others(said, most)])
    trap = (
        "Noise grows with the bounds. Take bounds that hold for nearly all values and are known without "
        "the data: values beyond are cut to them, and one that is far too wide buys nothing but noise."
    )
    return _advice(table, text, quotes, options, said, "", f"a person moves it by {literal(most)}", trap)


def mean(said: Said) -> Advice:
    """The mean of a number."""
    table = Declared(said, (amounts(said),), sized=True)
    text = "SELECT AVG(amount) AS n FROM data"
    quotes = table.quotes(text)
    options = best_of(noises(quotes, "n"))
    trap = (
        "Do not divide a noisy sum by the exact number of rows: that number is private too. AVG divides by a "
        "noisy one, and its error counts both."
    )
    moved = f"a noisy sum is divided by a noisy count: {said.people:,} people share that noise"
    return _advice(table, text, quotes, options, said, "", moved, trap, exact=False)


def median(said: Said) -> Advice:
    """The middle of all values."""
    table, text = Declared(said, (amounts(said),)), "SELECT MEDIAN(amount) AS n FROM data"
    with table.session() as session:
        quote = session.sql(text).quote(said.epsilon, delta=0)
    (priced,) = quote.extras
    assert isinstance(priced, PricedQuantiles)
    grid = priced.extra.grid
    steps = (grid.cells - 1).bit_length()
    chosen = Quantiles(said.epsilon, [_HALF], sensitivity=said.rows)
    halving = Geometric(said.epsilon / steps, said.rows)
    options = best_of(
        [
            Option(
                "the exponential mechanism over public cells", chosen.error(said.confidence, cells=grid.cells)
            ),
            Option(
                f"halving the range {steps} times by noisy counts", halving.error(said.confidence, size=steps)
            ),
        ]
    )
    best = options[0]
    share = 100 * (best.error or 0.0) / table.size
    return Advice(
        said=said,
        use="MEDIAN in SQL",
        code=table.code(*release(text, said, "laplace", chosen="laplace")),
        reads=table.reads,
        why=(
            "A value near the middle is selected. The error is in ranks, so that it hardly grows with the "
            f"bounds. {best.name.capitalize()} errs least."
        ),
        price=price_of(said.epsilon, said.delta, used=False),
        error=best.error,
        meaning=(
            f"so many rows, {rounded(share)} % of about {table.size:,}, lie between the answer and the true "
            f"middle at most, give or take a cell of {float(grid.width):.2g}"
        ),
        unit="ranks",
        exact=False,
        options=options,
        trap=(
            "Noise on the exact median would have to cover the whole range between the bounds: one person "
            "can move it that far."
        ),
        docs="docs/mechanisms.md",
    )


def noises(quotes: Mapping[str, Quote], column: str) -> list[Option]:
    """The kinds of noise that were quoted, with their error for a column."""
    return [Option(NOISES[name], error_of(quotes[name], column)) for name in NOISES if name in quotes]


def error_of(quote: Quote, column: str) -> float | None:
    """The half-width of a column, or about what it will be."""
    (told,) = (each for each in quote.columns if each.name == column)
    return told.expected if told.half_width is None else told.half_width


def release(text: str, said: Said, noise: str, *, chosen: str) -> list[str]:
    """The lines that ask and pay.

    Args:
        text: The question.
        said: What was said.
        noise: The noise to have.
        chosen: What a session chooses by itself; then it need not be named.
    """
    price = [f"epsilon={literal(said.epsilon)}"]
    price += [f"delta={literal(said.delta)}"] * (noise == "gaussian")
    price += [f'mechanism="{noise}"'] * (noise != chosen)
    return [*asked(text), f"answer = question.release({', '.join(price)})", "print(answer)"]


def asked(text: str) -> list[str]:
    """The lines that make a question of a text."""
    whole = f'question = session.sql("{text}")'
    if len(whole) <= LONG:
        return [whole]
    first, *rest = textwrap.wrap(text, LONG - 8)
    return ["question = session.sql(", f'    "{first}"', *(f'    " {part}"' for part in rest), ")"]


def why_noise(options: tuple[Option, ...], said: Said) -> str:
    """Why this noise, in a sentence."""
    best = options[0].name
    if not said.delta:
        return f"A pure price allows {best}."
    return f"{best} errs least at this epsilon and delta."


def _advice(
    table: Declared,
    text: str,
    quotes: Mapping[str, Quote],
    options: tuple[Option, ...],
    said: Said,
    unit: str,
    moved: str,
    trap: str,
    *,
    exact: bool = True,
) -> Advice:
    noise = next(name for name, told in NOISES.items() if told == options[0].name)
    function = text.split()[1].split("(")[0]
    return Advice(
        said=said,
        use=f"{function} in SQL",
        code=table.code(*release(text, said, noise, chosen=quotes[""].mechanism)),
        reads=table.reads,
        why=f"It is one number, and {moved}. {why_noise(options, said)}",
        price=price_of(said.epsilon, said.delta, used=noise == "gaussian"),
        error=options[0].error,
        meaning="noise, whatever the data are" if exact else "if there are about as many people as you said",
        unit=unit,
        exact=exact,
        options=options,
        trap=trap,
        docs="docs/sql.md",
    )


def _others(said: Said, moved: Fraction) -> list[Option]:
    """What else gives one number: mechanisms that a session does not use."""
    others = [Option("sf.Staircase", Staircase(said.epsilon, moved).error(said.confidence), OUTSIDE)]
    if said.delta:
        cut = TruncatedLaplace(said.epsilon, said.delta, sensitivity=moved)
        others.append(Option("sf.TruncatedLaplace", cut.error(said.confidence), OUTSIDE))
    return others
