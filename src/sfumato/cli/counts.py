"""`sfumato histogram` and `sfumato crosstab`: questions that need no SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.ask import WritingOptions, answer_question
from sfumato.cli.failures import reported
from sfumato.cli.options import AskerOptions, JsonOption, spread
from sfumato.cli.question import PricingOptions, check_priced
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.plan.builder import Selection
    from sfumato.session import Query

__all__ = ["crosstab", "histogram"]

TableOption = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="Which table; may be left out if there is one."),
]


@reported
@spread
def histogram(
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="The number whose values are binned.")],
    bins: Annotated[
        str,
        typer.Option("--bins", metavar="N|EDGES", help="How many bins, or their edges: 0,18,65,120."),
    ] = "10",
    table: TableOption = None,
    *,
    pricing: PricingOptions,
    writing: WritingOptions,
    asker: AskerOptions,
    json_: JsonOption = False,
) -> None:
    """How many rows are in each bin of a number, with error bars.

    Values count as held within the declared bounds; what then lies in no bin counts nowhere.
    """
    edges = _bins(bins)
    terms, catalog = pricing.terms(), asker.catalog()
    table, column = _apart(table, column, catalog)
    _answer(lambda rows: rows.histogram(column, edges), table, catalog, terms, writing, json_=json_)


@reported
@spread
def crosstab(
    first: Annotated[str, typer.Argument(metavar="COLUMN", help="What the rows are grouped by.")],
    second: Annotated[str, typer.Argument(metavar="COLUMN", help="And what else.")],
    table: TableOption = None,
    *,
    pricing: PricingOptions,
    writing: WritingOptions,
    asker: AskerOptions,
    json_: JsonOption = False,
) -> None:
    """How many rows have each pair of values of two columns, with error bars."""
    terms, catalog = pricing.terms(), asker.catalog()
    table, first = _apart(table, first, catalog)
    table, second = _apart(table, second, catalog)
    _answer(lambda rows: rows.crosstab(first, second), table, catalog, terms, writing, json_=json_)


def _answer(
    make: Callable[[Selection[Query]], Query],
    table: str | None,
    catalog: Catalog,
    terms: dict[str, Any],
    writing: WritingOptions,
    *,
    json_: bool,
) -> None:
    name, dataset = _table(table, catalog)
    check_priced(terms)
    answer_question(
        lambda session: make(session.table(name)), lambda: dataset, catalog, terms, writing, json_=json_
    )


def _apart(table: str | None, column: str, catalog: Catalog) -> tuple[str | None, str]:
    """A column that was written with its table, `people.city`, as both.

    Raises:
        InvalidParameter: if another table was named before.
    """
    tables = {known.name.lower(): known for known in catalog.tables}
    named, dot, rest = column.partition(".")
    if not dot or named.lower() not in tables or any(column in known.schema for known in tables.values()):
        return table, column
    if table is not None and table.lower() != named.lower():
        raise InvalidParameter(f"{column[:60]!r} is of another table than {table[:60]!r}: name one table.")
    return tables[named.lower()].name, rest


def _table(name: str | None, catalog: Catalog) -> tuple[str, str]:
    """The name of a table of the catalog and its dataset."""
    known = {table.name.lower(): (table.name, table.dataset) for table in catalog.tables}
    listed = ", ".join(table.name for table in catalog.tables)
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name is None:
        raise InvalidParameter(f"Say which table: --table NAME, one of {listed}.")
    if name.lower() not in known:
        raise InvalidParameter(f"There is no table {name[:60]!r}. Tables: {listed}.")
    return known[name.lower()]


def _bins(text: str) -> int | list[float]:
    """A number of bins, or edges with commas between."""
    try:
        if "," not in text:
            return int(text)
        return [int(edge) if edge.strip().lstrip("+-").isdigit() else float(edge) for edge in text.split(",")]
    except ValueError:
        raise InvalidParameter("--bins takes a whole number, or edges such as 0,18,65,120.") from None
