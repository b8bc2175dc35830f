"""`sfumato prepare`: a table written once so that holding units within their limits is a plain filter."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.failures import reported
from sfumato.cli.opening import read_catalog
from sfumato.cli.options import ConfigOption, JsonOption
from sfumato.cli.output import emit_json, paragraph, progress_bar, say
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.schema import PrivateTable

__all__ = ["prepare"]


_ENGINES = ("duckdb", "postgres", "spark")


class _WhichTable(InvalidParameter):
    """No table was named where there are several."""

    headline = "Which table?"


@reported
def prepare(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Which table; may be left out if there is one.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PLACE",
            help="Where to; else TABLE.prepared.duckdb. Of a table in PostgreSQL the address of a new one, "
            "of what Spark reads a folder.",
        ),
    ] = None,
    group_by: Annotated[
        list[str] | None,
        typer.Option(
            "--group-by",
            metavar="COLUMN,…",
            help="Columns: questions that group by just these become a plain filter too.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over what was prepared before.")] = False,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Write a table once, ranked within units, for quick reads."""
    from sfumato.engines.base import engine_of
    from sfumato.engines.prepare import prepare as write

    catalog = read_catalog(config)
    chosen = _chosen(catalog, table)
    folder = catalog.path.parent
    limits, by_address = catalog.engine, engine_of([chosen.source])
    reads = limits.name or by_address
    if reads not in _ENGINES or by_address not in ("duckdb", reads):
        raise InvalidParameter(
            f"Tables are prepared for the engines {_listed(_ENGINES)}, and {chosen.name} of "
            f"{catalog.path.name} is read by {reads}."
        )
    target = output or _place(chosen, folder, reads)
    with progress_bar("preparing", quiet=json_) as progress, ExitStack() as opened:
        engine = limits.open([chosen.source]) if reads == "spark" else None
        opened.callback(engine.close if engine is not None else lambda: None)
        prepared = write(
            chosen,
            target,
            group_by=_columns(group_by or []),
            force=force,
            threads=limits.threads,
            memory=limits.memory,
            timeout=limits.timeout,
            progress=lambda done: progress(done, "preparing"),
            engine=engine,
        )
    source = _source(chosen, prepared.path, folder)
    if json_:
        emit_json(
            {
                "path": str(prepared.path),
                "table": prepared.table,
                "unit": prepared.unit,
                "columns": list(prepared.columns),
                "groups": list(prepared.groups),
                "bytes": prepared.bytes,
                "source": source,
            }
        )
        return
    say(f"Wrote {prepared.path}.", style="good")
    say()
    paragraph(
        f"It has the rows of the table, readable by {_readers(reads)}, and is for the steward's eyes like "
        f"its source. To ask it, write this into [tables.{chosen.name}] of {catalog.path.name}:"
    )
    say()
    say(f"  source = {json.dumps(source, ensure_ascii=False)}")
    say()
    paragraph(
        f"Prepare it again when the data or the declared columns change. A unit counts with {_few(chosen)} "
        "chosen as if at random before any WHERE: a selective question finds fewer rows than it could."
    )
    if prepared.groups:
        say()
        paragraph(
            f"Questions that group by {_listed(prepared.groups)} and nothing else take {_groups(chosen)}, "
            "chosen likewise; all others are answered as if it had not been prepared for any grouping."
        )


def _place(table: PrivateTable, folder: Path, engine: str) -> str:
    """Where a prepared table goes that nobody says a place for."""
    if engine == "postgres":
        raise InvalidParameter(
            f"{table.name} is in PostgreSQL, and so is its prepared table; say where: "
            "--output postgresql://writer@host/database::schema.table."
        )
    return str(folder / f"{table.name}.prepared{'' if engine == 'spark' else '.duckdb'}")


def _source(table: PrivateTable, written: Path | str, folder: Path) -> str:
    """The source of the prepared table: a path from the catalog, or an address as the role that reads."""
    if isinstance(written, Path):
        return os.path.relpath(written, folder.absolute())
    return f"{str(table.source).rpartition('::')[0]}::{written.rpartition('::')[2]}"


def _readers(engine: str) -> str:
    return "its owner and the role that reads the source" if engine == "postgres" else "you alone"


def _columns(written: list[str]) -> list[str]:
    """The names in what was given, repeated or with commas."""
    return [name.strip() for text in written for name in text.split(",") if name.strip()]


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _groups(table: PrivateTable) -> str:
    """What of a unit counts in the grouping that the file is for."""
    from sfumato.plan.questions.sensitivity import rows_in_group

    few = min(table.unit.max_groups, table.unit.max_rows)
    groups = "1 group of each unit" if few == 1 else f"{few} groups of each unit"
    rows = rows_in_group(table.unit)
    return f"{groups} and {'1 row' if rows == 1 else f'{rows} rows'} of it in each"


def _few(table: PrivateTable) -> str:
    most = table.unit.max_rows
    return f"the same {most} rows" if most > 1 else "the same row"


def _chosen(catalog: Catalog, name: str | None) -> PrivateTable:
    if name is not None:
        return catalog.table(name)
    if len(catalog.tables) == 1:
        return catalog.tables[0]
    raise _WhichTable(f"Say which table: one of {', '.join(sorted(table.name for table in catalog.tables))}.")
