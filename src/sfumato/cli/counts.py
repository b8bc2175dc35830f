"""`sfumato histogram` and `sfumato crosstab`: questions that need no SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.ask import FormatOption, OutputOption, Writing, answer_question
from sfumato.cli.failures import reported
from sfumato.cli.opening import read_catalog
from sfumato.cli.options import AnalystOption, ConfigOption, JsonOption, LedgerOption
from sfumato.cli.question import (
    BoundingOption,
    BoundsOption,
    ConfidenceOption,
    DeltaOption,
    EpsilonOption,
    ErrorOption,
    ProfileOption,
    TouchedOption,
    check_priced,
    pricing_of,
)
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
def histogram(
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="The number whose values are binned.")],
    bins: Annotated[
        str,
        typer.Option("--bins", metavar="N|EDGES", help="How many bins, or their edges: 0,18,65,120."),
    ] = "10",
    table: TableOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    error: ErrorOption = None,
    confidence: ConfidenceOption = "0.95",
    bounds: BoundsOption = None,
    bounding: BoundingOption = None,
    touched: TouchedOption = False,
    profile: ProfileOption = None,
    format_: FormatOption = None,
    output: OutputOption = None,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    analyst: AnalystOption = None,
    json_: JsonOption = False,
) -> None:
    """How many rows are in each bin of a number, with error bars."""
    edges = _bins(bins)
    pricing = pricing_of(
        epsilon=epsilon,
        delta=delta,
        error=error,
        confidence=confidence,
        bounds=bounds,
        bounding=bounding,
        touched=touched,
        profile=profile,
    )
    catalog = read_catalog(config, ledger, analyst)
    writing = Writing(format_, output, json_)
    _answer(lambda rows: rows.histogram(column, edges), table, catalog, pricing, writing)


@reported
def crosstab(
    first: Annotated[str, typer.Argument(metavar="COLUMN", help="What the rows are grouped by.")],
    second: Annotated[str, typer.Argument(metavar="COLUMN", help="And what else.")],
    table: TableOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    error: ErrorOption = None,
    confidence: ConfidenceOption = "0.95",
    bounds: BoundsOption = None,
    bounding: BoundingOption = None,
    touched: TouchedOption = False,
    profile: ProfileOption = None,
    format_: FormatOption = None,
    output: OutputOption = None,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    analyst: AnalystOption = None,
    json_: JsonOption = False,
) -> None:
    """How many rows have each pair of values of two columns, with error bars."""
    pricing = pricing_of(
        epsilon=epsilon,
        delta=delta,
        error=error,
        confidence=confidence,
        bounds=bounds,
        bounding=bounding,
        touched=touched,
        profile=profile,
    )
    catalog = read_catalog(config, ledger, analyst)
    writing = Writing(format_, output, json_)
    _answer(lambda rows: rows.crosstab(first, second), table, catalog, pricing, writing)


def _answer(
    make: Callable[[Selection[Query]], Query],
    table: str | None,
    catalog: Catalog,
    pricing: dict[str, Any],
    writing: Writing,
) -> None:
    name, dataset = _table(table, catalog)
    check_priced(pricing)
    answer_question(lambda session: make(session.table(name)), lambda: dataset, catalog, pricing, writing)


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
