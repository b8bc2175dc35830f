"""`sfumato init` and `sfumato schema`: from a file to a catalog, and what the catalog says."""

from __future__ import annotations

import os
import shlex
import textwrap
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.failures import in_shell, reported
from sfumato.cli.headers import named
from sfumato.cli.opening import config_flag, read_catalog
from sfumato.cli.options import ConfigOption, JsonOption
from sfumato.cli.output import emit_json, paragraph, say, spinner, table
from sfumato.render import key

if TYPE_CHECKING:
    from sfumato.catalog import DraftTable
    from sfumato.schema import ColumnType, PrivateTable

__all__ = ["init", "schema"]

_PRICE = "0.1"  # of a first question

_SEMICOLONS = (
    "Its fields are separated by semicolons. Such files often write 3,5 for a number and 31.12.2024 for a "
    "day; if this one does, uncomment decimal and dates in the section [tables.{name}.csv] of {file}."
)


@reported
def init(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Files, globs, folders, file.duckdb::table, or postgresql://…::schema.table."
        ),
    ],
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="COLUMN", help='Whose privacy is protected, or "row".')
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="NUMBER", help="What all answers together may spend.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", metavar="NUMBER", help="What they may spend of delta.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")] = Path(
        "sfumato.toml"
    ),
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line of a CSV file holds names."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    json_: JsonOption = False,
) -> None:
    """Write a commented sfumato.toml for your files, from names and types alone."""
    from sfumato.catalog import draft, write_new
    from sfumato.catalog.looking import drafted
    from sfumato.catalog.write import toml_key
    from sfumato.numeric.exact import delta_of, positive

    if epsilon is not None:
        positive(epsilon, "epsilon")
    if delta is not None:
        delta_of(delta)
    namings = [named(file, header, quiet=json_) for file in files]
    tables: list[DraftTable] = []
    with spinner("looking at the columns", quiet=json_):
        for file, naming in zip(files, namings, strict=True):
            taken = [each.name for each in tables]
            tables.append(drafted(file, naming, source=_relative(file, output), unit=unit, taken=taken))
    text = draft(tables, unit=unit, epsilon=epsilon, delta=delta)
    write_new(output, text, force=force)
    marks = text.count("DECIDE") - 1  # one is the explanation at the top
    if json_:
        emit_json(
            {
                "path": str(output),
                "tables": [made.name for made in tables],
                "decisions": marks,
                "roles": {made.name: _roles(made) for made in tables},
                "header": {made.name: made.header for made in tables if made.untyped},
            }
        )
        return
    say(f"Wrote {output}.", style="good")
    for made, naming in zip(tables, namings, strict=True):
        say()
        roles = _roles(made)
        table(
            {
                f"columns of {made.name}": list(made.columns),
                "type": [made.type(name) or "cannot be asked" for name in made.columns],
                "looks like": [roles[name] for name in made.columns],
            }
        )
        if naming.reason:
            say()
            paragraph(naming.reason)
        if made.delimiter == ";":
            say()
            paragraph(_SEMICOLONS.format(name=toml_key(made.name), file=output.name))
        if name := _in_quotes(made):
            say()
            paragraph(f"{name} is written in double quotes, and the whole question in single ones:")
            say()
            say(f"  {in_shell(name, made.name)}{config_flag(output)}")
    say()
    source = "names" if all(made.untyped for made in tables) else "names and types"
    is_decided = unit is not None and epsilon is not None
    left = _to_decide(marks, output.name, is_decided=is_decided)
    paragraph(f"From {source} alone; no value of a row was used. {left}")
    if unit == "row":
        say()
        paragraph(_each_row(tables))
    say()
    _say_next(tables[0].name, output, epsilon if is_decided else None)


def _in_quotes(made: DraftTable) -> str:
    """The first column that can be asked for and whose name needs quotes, as SQL writes it; else empty."""
    from sfumato.plan.expressions.names import in_sql

    asked = [
        name
        for name in made.columns
        if made.type(name) is not None and not made.of(name).is_left_out(made.role(name))
    ]
    return next((in_sql(name) for name in asked if in_sql(name) != name), "")


def _to_decide(marks: int, file: str, *, is_decided: bool) -> str:
    """How much is left to decide, and what for."""
    places = f"1 place in {file} is" if marks == 1 else f"{marks} places in {file} are"
    needed = (
        "bounds are needed before sums and means"
        if is_decided
        else "a unit and a budget are needed before the first query, bounds before sums and means"
    )
    return f"{places} marked DECIDE: {needed}."


def _each_row(tables: list[DraftTable]) -> str:
    """What it means that rows are protected, and which column may name people instead."""
    from sfumato.schema.classify import units_of

    likely = [column for made in tables for column in units_of(made.columns)]
    column = shlex.quote(likely[0]) if likely else "COLUMN"
    return (
        "Each row is protected by itself. If one person may have several rows, protect people: run init with "
        f"--force and --unit {column}{', or another column that tells them apart' if likely else ''}."
    )


def _say_next(name: str, output: Path, epsilon: str | None) -> None:
    """Which commands come next; with a budget, and so a unit, a count may be asked at once."""
    from sfumato.numeric.exact import positive

    flag = config_flag(output)
    count = f'"SELECT COUNT(*) AS n FROM {name}"'
    looks = [f"sfumato validate{flag}", f"sfumato schema{flag}"]
    if epsilon is None:
        say(f"Edit {output}, then:")
        commands = [*looks, f"sfumato quote {count} --epsilon {_PRICE}{flag}"]
    else:
        price = _PRICE if positive(epsilon, "epsilon") >= Fraction(_PRICE) else epsilon
        say(f"Ask now, or edit {output} first:")
        commands = [f"sfumato query {count} --epsilon {price}{flag}", *looks]
    say()
    for command in commands:
        say(f"  {command}")


def _roles(draft: DraftTable) -> dict[str, str]:
    return {name: draft.role(name) for name in draft.columns}


def _relative(file: str, output: Path) -> str:
    """The source as seen from the catalog's folder."""
    if "://" in file or os.path.isabs(file):
        return file
    return os.path.relpath(file, output.resolve().parent)


@reported
def schema(config: ConfigOption = None, json_: JsonOption = False) -> None:
    """Which tables may be asked: columns, bounds, unit, budget."""
    catalog = read_catalog(config)
    if json_:
        emit_json(
            {
                "path": str(catalog.path),
                "tables": [
                    {
                        **declared.declaration(),
                        "dataset": declared.dataset,
                        "size": declared.size,
                        "rows": declared.rows,
                        "roles": catalog.roles[declared.name],
                    }
                    for declared in catalog.tables
                ],
                "public": [declared.declaration() for declared in catalog.public],
                "budgets": {name: budget.to_dict() for name, budget in catalog.budgets.items()},
                "analysts": {name: sorted(limits) for name, limits in catalog.limits.items()},
            }
        )
        return
    for number, declared in enumerate(catalog.tables):
        if number:
            say()
        say(declared.name, style="bold")
        paragraph(_promise(declared))
        say()
        rows = [
            row
            for name, kind in declared.schema.items()
            for row in _lines(name, kind, catalog.roles[declared.name][name])
        ]
        heads = ("column", "type", "role", "values")
        table(dict(zip(heads, zip(*rows, strict=True), strict=True)))
    for public in catalog.public:
        say()
        say(public.name, style="bold")
        unique = f"; one row for each {', '.join(public.key)}" if public.key else ""
        paragraph(f"Public: about no one, and free to join{unique}. Columns: {', '.join(public.schema)}.")
    say()
    for name, budget in catalog.budgets.items():
        analysts = catalog.limits[name]
        who = f"; analysts: {', '.join(sorted(analysts))}" if analysts else ""
        paragraph(f"Budget of {name}: {budget}{who}.")


def _promise(declared: PrivateTable) -> str:
    unit = declared.unit
    what = "one row" if unit.is_row else f"all rows with one {unit.column}"
    if unit.is_via:
        what = f"all rows that lead to one owner in {unit.table}"
    count = ""
    if unit.column is not None:
        most = (
            "with as many rows as a noisy profile chooses for each question"
            if unit.auto
            else f"as at most {unit.max_rows} row{'s' * (unit.max_rows > 1)}"
        )
        count = f", counted in at most {unit.max_groups} group{'s' * (unit.max_groups > 1)} and {most}"
    neighbours = "" if unit.adjacency == "add-remove" else ", exchanged for another"
    exactly = "" if declared.rows is None else f" It has exactly {declared.rows:,} rows, which is public."
    budget = f"Draws on the budget of {declared.dataset}; version {declared.version}."
    return f"Protects {what}{count}{neighbours}.{exactly} {budget}"


def _lines(name: str, kind: ColumnType, role: str) -> list[tuple[str, str, str, str]]:
    """A column of the table, its values on as many lines as they need."""
    first, *more = textwrap.wrap(_values(kind), 36, break_on_hyphens=False) or [""]
    return [(name, kind.to_dict()["type"], role, first), *(("", "", "", line) for line in more)]


def _values(kind: ColumnType) -> str:
    """What a column may hold, in a few words."""
    data = kind.to_dict()
    if "values" in data:
        return ", ".join(str(value) for value in data["values"])
    low, high = data.get("lower", data.get("start")), data.get("upper", data.get("end"))
    if low is not None:
        return f"{_bound(low)} to {_bound(high)}"
    return {
        "int": "no bounds: not summable",
        "float": "no bounds: not summable",
        "date": "no bounds",
        "timestamp": "no bounds",
        "text": "any text",
    }.get(data["type"], "")


def _bound(value: object) -> str:
    return value if isinstance(value, str) else key(value)
