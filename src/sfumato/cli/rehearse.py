"""`sfumato rehearse`: questions tried on made-up rows, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.ask import WritingOptions, answer_question
from sfumato.cli.failures import reported
from sfumato.cli.opening import read_catalog
from sfumato.cli.options import ConfigOption, JsonOption, spread
from sfumato.cli.output import note
from sfumato.cli.question import ParameterOption, PricingOptions, SqlArgument, question_of
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.session import Session

__all__ = ["rehearse"]

WriteOption = Annotated[
    Path | None,
    typer.Option(
        "--write", metavar="FOLDER", help="Write the made-up tables there as Parquet files, to work with."
    ),
]


@reported
@spread
def rehearse(
    sql: SqlArgument = None,
    *,
    pricing: PricingOptions,
    param: ParameterOption = None,
    writing: WritingOptions,
    write: WriteOption = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """A question tried on made-up rows in the shape of the tables: none is read, nothing is spent."""
    catalog = read_catalog(config)
    if write is not None:
        _write(catalog, write)
        if sql is None:
            return
    asked = question_of(sql, param, pricing)
    answer_question(
        lambda session: session.sql(asked.text, asked.parameters),
        lambda: asked.dataset(catalog),
        catalog,
        asked.pricing,
        writing,
        _rehearsing,
        json_=json_,
    )


@contextmanager
def _rehearsing(catalog: Catalog, dataset: str) -> Iterator[Session]:
    """A session over made-up rows: neither the sources nor the ledger are opened."""
    from sfumato.session.rehearsal import rehearsal

    members = catalog.members(dataset)
    with rehearsal([*members, *catalog.public], {dataset: catalog.budgets[dataset]}) as session:
        yield session


def _write(catalog: Catalog, folder: Path) -> None:
    import pyarrow.parquet as pq

    from sfumato.session.rehearsal import made_up

    made = made_up(catalog.tables)
    places = {name: folder / f"{name}.parquet" for name in made}
    if taken := [place for place in places.values() if place.exists()]:
        raise InvalidParameter(f"{taken[0]} is there already: choose another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in made.items():
            pq.write_table(table, places[name])
    except OSError:
        raise InvalidParameter(f"Nothing can be written to {folder}; choose another folder.") from None
    listed = ", ".join(str(place) for place in places.values())
    note(f"Wrote made-up rows, which follow from the declarations alone: {listed}.")
