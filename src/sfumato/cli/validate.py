"""`sfumato validate`: whether the declarations fit the data, for the steward alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.failures import reported
from sfumato.cli.opening import acting, read_catalog
from sfumato.cli.options import ConfigOption, JsonOption
from sfumato.cli.output import emit_json, progress_bar, say

if TYPE_CHECKING:
    from sfumato.schema import PrivateTable, PublicTable

__all__ = ["validate"]


@reported
def validate(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLE", help="Which tables; all of the catalog unless given."),
    ] = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Steward only: do the declarations fit the data? What would limits cut?"""
    from sfumato.schema import owners
    from sfumato.validation import Validation
    from sfumato.validation import validate as read

    acting()
    catalog = read_catalog(config)
    declared: list[PrivateTable | PublicTable] = [*catalog.tables, *catalog.public]
    public = {table.name.lower(): table.name for table in catalog.public}
    asked = {public.get(name.lower()) or catalog.table(name).name for name in tables or []}
    names = asked or {table.name for table in declared}
    # A unit that is named in another table needs that one's rows, too.
    links = [
        link for table in catalog.tables if table.name in names for link in owners(table, catalog.tables)
    ]
    needed = {*names, *(link.name for link in links)}
    limits = catalog.engine
    with progress_bar("reading", quiet=json_) as progress:
        whole = read(
            *(table for table in declared if table.name in needed),
            progress=progress,
            threads=limits.threads,
            memory=limits.memory,
            timeout=limits.timeout,
            roles=catalog.roles,
        )
    report = Validation(tuple(table for table in whole.tables if table.name in names))
    if json_:
        emit_json(report.to_dict())
        return
    head, *rest = str(report).split("\n\n")
    for line in head.split("\n"):
        say(line, style="bad")
    for line in "\n\n".join(["", *rest]).split("\n")[1:]:
        say(line, style={"-": "bad", "+": "good"}.get(line[:1] if line[1:2] == " " else ""))
