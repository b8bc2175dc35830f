"""`sfumato state`: what a table that grows held at some times, named once and for all."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato._files import write_whole
from sfumato.cli.failures import reported
from sfumato.cli.opening import read_catalog
from sfumato.cli.options import ConfigOption, JsonOption
from sfumato.cli.output import emit_json, paragraph, say
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.schema import PrivateTable

__all__ = ["app"]

_WHOLE = re.compile(r"-?[0-9]{1,18}")

app = typer.Typer(help="Name what a table that grows holds by now.", no_args_is_help=True)

TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="Which table of sfumato.toml.")]


@app.command("add")
@reported
def add(
    table: TableArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Your word for it, such as 2026-03.")],
    column: Annotated[
        str | None,
        typer.Option(
            "--column", metavar="COLUMN", help="A column that grows as rows arrive; else files are listed."
        ),
    ] = None,
    last: Annotated[
        str | None, typer.Option("--last", metavar="VALUE", help="Its last value that belongs to the state.")
    ] = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Write a new state into sfumato.toml: the files that are there now, or rows up to a value.

    Of a Delta table it is the newest snapshot. No file is opened. What arrives later is in no state that was
    declared before.
    """
    catalog = read_catalog(config)
    chosen = _chosen(catalog, table)
    if name in chosen.states:
        raise InvalidParameter(f"{chosen.name} has a state {name[:60]!r} already: give a new one a new name.")
    lines = _of_files(chosen) if column is None and last is None else _of_column(chosen, column, last)
    head = f"[tables.{_key(chosen.name)}.states.{_key(name)}]"
    text = catalog.path.read_text(encoding="utf-8")
    added = f"{text.rstrip()}\n\n{head}\n" + "\n".join(lines) + "\n"
    _write(catalog, text, added)
    known = _chosen(read_catalog(config), table)
    if json_:
        emit_json({"table": known.name, "state": name, "files": list(known.states[name].files)})
        return
    say(f"{known.name} is read as of {name} from now on; {head} was added to {catalog.path.name}.")
    if len(known.states) == 1:
        paragraph("Answers about what was there before are found under the version that it had.")


@app.command("list")
@reported
def list_states(table: TableArgument, config: ConfigOption = None, json_: JsonOption = False) -> None:
    """List the states of a table, oldest first."""
    chosen = _chosen(read_catalog(config), table)
    if json_:
        emit_json(
            {
                name: {
                    "files": list(state.files),
                    "column": state.column,
                    "last": _spoken(state.last),
                    "snapshot": state.snapshot,
                }
                for name, state in chosen.states.items()
            }
        )
        return
    for name, state in chosen.states.items():
        held = f"{len(state.files)} files" if state.files else f"{state.column} up to {state.last}"
        held = held if state.snapshot is None else f"snapshot {state.snapshot}"
        say(f"{name}  {held}")
    if not chosen.states:
        say(f"{chosen.name} has no states: sfumato state add {chosen.name} NAME.")


def _chosen(catalog: Catalog, name: str) -> PrivateTable:
    for table in catalog.tables:
        if table.name == name:
            return table
    listed = ", ".join(table.name for table in catalog.tables)
    raise InvalidParameter(f"There is no private table {name[:60]!r}: {listed}.")


def _of_files(table: PrivateTable) -> list[str]:
    """The files that are there now, with their sizes."""
    from sfumato.engines.delta import is_delta, newest
    from sfumato.engines.sources import Files, locate
    from sfumato.schema.states import folder_of

    folder = folder_of(table.source)
    if is_delta(folder):
        return [f"snapshot = {newest(folder)}"]
    located = locate(table.source)
    if not isinstance(located, Files) or os.path.isfile(folder):
        raise InvalidParameter(
            "Files of states need a folder or a pattern of paths as source; or give --column and --last."
        )
    files = [os.path.relpath(path, os.path.abspath(folder)) for path in located.paths]
    sizes = [os.stat(path).st_size for path in located.paths]
    return [f"files = {_listed(files)}", f"sizes = {json.dumps(sizes)}"]


def _of_column(table: PrivateTable, column: str | None, last: str | None) -> list[str]:
    known = next((state.column for state in table.states.values() if state.column), None)
    named = known if column is None else column
    if named is None or last is None:
        raise InvalidParameter("A state by a column needs both: --column arrived --last 2026-03-31.")
    whole = _WHOLE.fullmatch(last) is not None
    return [f"column = {_text(named)}", f"last = {int(last) if whole else _text(last)}"]


def _write(catalog: Catalog, before: str, after: str) -> None:
    """Put the file in place if it can be read; else leave the one that is there."""
    path = Path(catalog.path)
    write_whole(path, after.encode())
    try:
        read_catalog(path)
    except BaseException:
        write_whole(path, before.encode())
        raise


def _listed(texts: list[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    from sfumato.catalog.write import quoted

    return quoted(text)


def _key(name: str) -> str:
    from sfumato.catalog.write import toml_key

    return toml_key(name)


def _spoken(value: object) -> object:
    return value if value is None or isinstance(value, int) else str(value)
