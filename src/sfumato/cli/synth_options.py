"""What `sfumato synth` is told by flags and by the steward's file, as `sfumato.synth` takes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato._dataclasses import dataclass
from sfumato.catalog._synth import SynthSettings
from sfumato.cli.commas import listed
from sfumato.cli.question import DeltaOption
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.catalog import Catalog

__all__ = ["FitOptions", "KeepOptions", "of_one", "of_two"]


@dataclass(frozen=True, slots=True)
class FitOptions:
    """What is modelled, how, and for how much."""

    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="NUMBER", help="What the whole fit may cost.")
    ] = None
    delta: DeltaOption = None
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="EPSILON",
            help="Also buy how far the model is from the rows, for so much more.",
        ),
    ] = None
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="auto, independent, mst, adaptive, fixed or wide.")
    ] = "auto"
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="NAME", help="A column to model; repeatable. Else all of them."),
    ] = None
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="NAME", help="A column to leave out; repeatable."),
    ] = None
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="NAME", help="A column that only names rows: made anew; repeatable."),
    ] = None
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            "--constraint", metavar="SQL", help='What holds in every row, such as "age >= 18"; repeatable.'
        ),
    ] = None
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="COLUMNS",
            help="Columns whose counts together matter, age,sex; or a condition; repeatable.",
        ),
    ] = None
    memory: Annotated[
        int, typer.Option("--memory", metavar="MEGABYTES", help="How much the model may take.")
    ] = 64
    quote: Annotated[
        bool, typer.Option("--quote", help="Only say what the fit would cost; free, nothing is read.")
    ] = False

    def check_priced(self) -> None:
        """Refuse a fit without a price."""
        if self.epsilon is None:
            raise InvalidParameter("Say what the fit may cost: --epsilon 1.")

    @property
    def priced(self) -> dict[str, Any]:
        """The price, the method and the memory."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.method,
            "memory": self.memory,
        }

    @property
    def given(self) -> dict[str, object]:
        """The flags that were given, by their names."""
        flags: dict[str, object] = {
            "--epsilon": self.epsilon,
            "--delta": self.delta,
            "--check": self.check,
            "--column": self.column,
            "--without": self.without,
            "--id": self.ids,
            "--constraint": self.constraint,
            "--workload": self.workload,
            "--quote": self.quote,
            "--method": None if self.method == "auto" else self.method,
        }
        return {flag: value for flag, value in flags.items() if value}


@dataclass(frozen=True, slots=True)
class KeepOptions:
    """What of the model is drawn, asked and kept."""

    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write rows: .parquet, .csv, .arrow; or a folder."
        ),
    ] = None
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="NUMBER", help="How many rows; else about as many as there are."),
    ] = None
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="NUMBER", help="Draw the same rows again.")
    ] = None
    ask: Annotated[
        list[str] | None,
        typer.Option(
            "--ask", metavar="SQL", help="Estimate COUNT, SUM or AVG by the model, free; repeatable."
        ),
    ] = None
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE.png", help="Draw the columns of the synthetic table."),
    ] = None
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="FILE", help="Write the model, too; --from reads it."),
    ] = None
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Take a model that --model wrote; free, without a ledger."
        ),
    ] = None


def of_one(options: FitOptions, catalog: Catalog, text: str) -> tuple[dict[str, Any], str]:
    """What `synth.fit` takes beside the rows and their parameters, and what is to be said of the file's part.

    What the file declares is about a table as a whole: it is not for a SELECT. What it says of columns that
    are left out is left out.
    """
    from sfumato.synth import Determines, Never, Totals

    table = next((one for one in catalog.tables if one.name.lower() == text.strip().lower()), None)
    declared = None if table is None else catalog.synth.get(table.name)
    columns = options.column
    if options.without:
        every = _every(options, catalog, text)
        columns = [name for name in options.column or every if name not in options.without]
    kept = declared or SynthSettings()
    has = _Named(columns if table is not None else None)
    constraints: list[Any] = [one for one in kept.constraints if has.condition(one)]
    constraints += [Never(one) for one in kept.never if has(one)]
    constraints += [Determines(*one) for one in kept.determines if has(one[:2])]
    constraints += [Totals(column, counts) for column, counts in kept.totals.items() if has([column])]
    constraints += options.constraint or ()
    workload: list[Any] = [_set(one) for one in options.workload or ()]
    if not workload:
        workload = [
            one for one in kept.workload if (has.condition(one) if isinstance(one, str) else has(one))
        ]
    ids = [*dict.fromkeys([*(options.ids or ()), *(name for name in kept.ids if has([name]))])]
    given = options.priced | {
        "columns": columns,
        "ids": ids,
        "constraints": constraints or None,
        "workload": workload or None,
    }
    said = ""
    if table is None and any(_is_in(text, name) for name in catalog.synth):
        said = (
            f"What {catalog.path.name} declares in [tables.….synth] is for whole tables, and not used here."
        )
    return given, said


def of_two(options: FitOptions, catalog: Catalog, names: Sequence[str]) -> tuple[dict[str, Any], str]:
    """What `synth.tables` takes beside the tables, and what is to be said of the file's part."""
    for flag in ("--check", "--id", "--constraint"):
        if flag in options.given:
            raise InvalidParameter(f"{flag} is for one table, and there are two: leave it out.")
    columns = dict[str, list[str]]()
    for flag, given in (("--column", options.column), ("--without", options.without)):
        for name in given or ():
            table, dot, own = name.partition(".")
            if not dot or table not in names:
                such = f"{flag} {names[0]}.{own or table}"
                raise InvalidParameter(f"{flag} {name[:40]}: of two tables, say of which, such as {such}.")
            if flag == "--column":
                columns.setdefault(table, []).append(own)
            else:
                keys = _keys(catalog, names)
                every = [one for one in catalog.table(table).schema if one not in keys]
                held = columns.setdefault(table, every)
                if own not in held:
                    raise InvalidParameter(f"--without {name[:40]}: there is no such column to leave out.")
                held.remove(own)
    workload = [_set(one) for one in options.workload or ()]
    told = [
        name
        for name in names
        if (one := catalog.synth.get(name)) and (one.constraints or one.never or one.determines or one.totals)
    ]
    said = ""
    if told:
        said = f"Constraints and totals of [tables.{told[0]}.synth] are for one table, and not kept here."
    return options.priced | {"columns": columns or None, "workload": workload or None}, said


def _keys(catalog: Catalog, names: Sequence[str]) -> set[str]:
    """The columns that link two tables, which are made anew."""
    found = set[str]()
    for name in names:
        unit = catalog.table(name).unit
        if unit.column is not None:
            found.add(unit.column)
        if unit.is_via:
            found |= {own for pair in unit.on for own in pair}
    return found


def _every(options: FitOptions, catalog: Catalog, text: str) -> list[str]:
    """All columns of a table."""
    table = next((one for one in catalog.tables if one.name.lower() == text.strip().lower()), None)
    if table is None:
        raise InvalidParameter("--without is for a table; of a SELECT, leave the column out of its list.")
    for name in options.without or ():
        if name not in table.schema:
            raise InvalidParameter(f"--without {name[:40]}: {table.name} has no such column.")
    return [name for name in table.schema if name != table.unit.column]


def _set(text: str) -> str | tuple[str, ...]:
    """A set of columns with commas between; anything else is a condition."""
    names = listed([text])
    bare = [name.replace(".", "", 1) for name in names]
    return tuple(names) if names and all(map(str.isidentifier, bare)) else text


def _is_in(text: str, table: str) -> bool:
    return re.search(rf"\b{re.escape(table)}\b", text, flags=re.I) is not None


class _Named:
    """Whether all columns of something are modelled; None: all of the table are."""

    def __init__(self, columns: Sequence[str] | None) -> None:
        self._columns = None if columns is None else set(columns)

    def __call__(self, names: Any) -> bool:
        return self._columns is None or set(names) <= self._columns

    def condition(self, text: str) -> bool:
        """The same for a condition in SQL."""
        if self._columns is None:
            return True
        from sqlglot import exp

        from sfumato.sql.text.dialects import understand

        tree = understand(f"SELECT COUNT(*) FROM rows WHERE (\n{text}\n)").select
        return self({column.name for column in tree.find_all(exp.Column)})
