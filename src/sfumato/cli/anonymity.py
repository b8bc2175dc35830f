"""`sfumato anonymity`: how anonymous a table is, and a table that is more so."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress as quietly
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.commas import listed
from sfumato.cli.failures import reported
from sfumato.cli.options import JsonOption
from sfumato.cli.output import emit_json, paragraph, say, spelled, spinner
from sfumato.errors import InvalidParameter, SourceUnusable

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.anonymity import Anonymity, Anonymized, Uniqueness

__all__ = ["anonymity"]

_WAYS = ("mondrian", "generalize")
_SUFFIXES = (".csv", ".parquet", ".arrow")
_SUPPRESS = 0.05
_STEWARD = "Exact figures, paid for by nobody: for the steward, not for analysts."
_LIMITS = (
    "They hold against somebody who knows the quasi-identifiers and nothing else. Two tables that are "
    "anonymous each may not be so together; differential privacy does not have this fault."
)


@reported
def anonymity(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file, folder, glob, or file.duckdb::table.")],
    quasi: Annotated[
        list[str], typer.Option("--quasi", metavar="COLUMNS", help="What outsiders may know: zip,age.")
    ],
    sensitive: Annotated[
        list[str] | None,
        typer.Option("--sensitive", metavar="COLUMNS", help="What they should not learn: score."),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", metavar="NUMBER", help="The least size of a class that will do."),
    ] = None,
    least: Annotated[
        int | None,
        typer.Option("--l", metavar="NUMBER", help="The least number of sensitive values in a class."),
    ] = None,
    t: Annotated[
        float | None,
        typer.Option("--t", metavar="NUMBER", help="The largest distance of a class from the table."),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option("--population", metavar="FILE", help="Everybody whom the rows were taken from."),
    ] = None,
    anonymize: Annotated[
        str | None,
        typer.Option("--anonymize", metavar="mondrian|generalize", help="Write a table that is like that."),
    ] = None,
    suppress: Annotated[
        float | None,
        typer.Option("--suppress", metavar="SHARE", help="The share of rows that generalize may leave out."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it: .csv, .parquet or .arrow."),
    ] = None,
    sets: Annotated[
        bool, typer.Option("--sets", help="Also what each set of the quasi-identifiers tells.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    json_: JsonOption = False,
) -> None:
    """Measure how anonymous a table is, or make it so.

    For the steward, and no differential privacy.
    """
    known, hidden = listed(quasi), listed(sensitive or [])
    _check_goals(k, least, t, hidden)
    target = _target(file, anonymize, output, k, force=force)
    if suppress is not None and anonymize != "generalize":
        raise InvalidParameter("--suppress is for --anonymize generalize; mondrian leaves out no row.")
    if sets and target is not None:
        raise InvalidParameter("--sets is about the table as it is; ask for it without --anonymize.")
    from sfumato.anonymity import measure, uniqueness

    with spinner("measuring", quiet=json_):
        before = measure(file, known, hidden, population=population)
        telling = uniqueness(file, known) if sets else None
    if target is None:
        missed, is_asked = _shortfalls(before, k, least, t), (k, least, t) != (None,) * 3
        _tell(before, telling, missed, is_asked=is_asked, json_=json_)
        return
    from sfumato.anonymity import deidentify, generalize, mondrian

    with spinner("anonymising", quiet=json_):
        named = deidentify(file, keep=[*known, *hidden])
        goals: dict[str, Any] = {"l": least, "t": t, "sensitive": hidden or None}
        if anonymize == "mondrian":
            result = mondrian(named.table, known, _needed(k), **goals)
        else:
            share = _SUPPRESS if suppress is None else suppress
            result = generalize(named.table, known, _needed(k), suppress=share, **goals)
        after = measure(result.table, known, hidden) if result.classes else None
        _write(result.table, target, force=force)
    _tell_made(before, after, result, named.dropped, target, json_=json_)


def _check_goals(k: int | None, least: int | None, t: float | None, hidden: list[str]) -> None:
    if k is not None and k < 1:
        raise InvalidParameter("--k must be a whole number of at least 1.")
    if least is not None and least < 1:
        raise InvalidParameter("--l must be a whole number of at least 1.")
    if t is not None and not 0 <= t <= 1:
        raise InvalidParameter("--t must be a number from 0 to 1.")
    if (least, t) != (None, None) and not hidden:
        raise InvalidParameter("--l and --t are about sensitive columns; name one with --sensitive.")


def _needed(k: int | None) -> int:
    if k is None:
        raise InvalidParameter("--anonymize needs --k, the least size of a class.")
    return k


def _target(
    file: str, anonymize: str | None, output: Path | None, k: int | None, *, force: bool
) -> Path | None:
    """Where to write, if something is to be written; checked before anything is read."""
    if anonymize is None:
        if output is not None:
            raise InvalidParameter(
                "--output is where --anonymize writes; say which way: mondrian or generalize."
            )
        return None
    if anonymize not in _WAYS:
        raise InvalidParameter(f"--anonymize knows {' and '.join(_WAYS)}.")
    _needed(k)
    if output is None:
        raise InvalidParameter("--anonymize needs --output, the file to write.")
    if output.suffix.lower() not in _SUFFIXES:
        raise InvalidParameter(
            f"The name of --output ends in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}."
        )
    target = Path(os.path.abspath(output))
    if not target.parent.is_dir():
        raise InvalidParameter(f"There is no folder for {output.name[:100]}; make it first.")
    if os.path.realpath(target) in _read_from(file):
        raise InvalidParameter("The table is read from that file; name another one.")
    if os.path.lexists(target) and not target.is_file():
        raise InvalidParameter(f"{output.name[:100]} exists and is not a file; name another one.")
    if target.is_file() and not force:
        raise InvalidParameter(f"{output.name[:100]} is there already; --force writes over it.")
    return target


def _read_from(file: str) -> set[str]:
    from sfumato.engines.sources import Database, locate

    located = locate(file)
    paths = (located.path,) if isinstance(located, Database) else getattr(located, "paths", ())
    return {os.path.realpath(path) for path in paths}


def _shortfalls(measured: Anonymity, k: int | None, least: int | None, t: float | None) -> list[str]:
    missed = []
    if k is not None and measured.k < k:
        missed.append(f"k is {measured.k:,}, not {k:,}")
    if least is not None and (measured.l or 0) < least:
        missed.append(f"l is {measured.l:,}, not {least:,}")
    if t is not None and (measured.t is None or measured.t > t):
        missed.append(f"t is {_above(measured.t, t)}, above {t:g}")
    return missed


def _above(value: float | None, limit: float) -> str:
    """The value in as many digits as it takes to see that it is above the limit, at least four."""
    shown = "unknown"
    for digits in range(4, 18) if value is not None else ():
        shown = f"{value:.{digits}g}"
        if float(shown) > float(f"{limit:g}"):
            break
    return shown


def _tell(
    measured: Anonymity, telling: Uniqueness | None, missed: list[str], *, is_asked: bool, json_: bool
) -> None:
    if json_:
        more: dict[str, object] = {} if telling is None else {"sets": telling.to_dict()}
        emit_json(measured.to_dict() | more | ({"holds": not missed} if is_asked else {}))
    else:
        say(spelled(str(measured).rpartition("\n")[0]))
        say()
        if telling is not None:
            say(spelled(str(telling).rpartition("\n")[0]))
            say()
        if missed:
            paragraph(f"It falls short: {'; '.join(missed)}.", style="bad")
        elif is_asked:
            paragraph("It is as anonymous as asked for.", style="good")
        paragraph(f"{_STEWARD} {_LIMITS}", style="dim")
    if missed:
        raise typer.Exit(4)


def _tell_made(
    before: Anonymity,
    after: Anonymity | None,
    result: Anonymized,
    dropped: tuple[str, ...],
    target: Path,
    *,
    json_: bool,
) -> None:
    if json_:
        figures = {"k": 0, "l": None, "t": None} if after is None else after.to_dict()
        cost = {
            "suppressed": result.suppressed,
            "ncp": result.ncp,
            "discernibility": result.discernibility,
        }
        written = {
            "written": str(target),
            "dropped": list(dropped),
            "overlooked": list(result.overlooked),
            "emptied": list(result.emptied),
            "before": before.to_dict(),
        }
        emit_json(figures | written | cost)
        return
    say(f"Wrote {target}.", style="good")
    if dropped:
        paragraph(f"Left out, since their names point at one person: {', '.join(dropped)}.")
    for warning in result.warnings:
        paragraph(warning, style="bad")
    say()
    say(spelled(result.figures))
    if after is not None and after.sensitive:
        say()
        paragraph(f"In every class at least {after.l:,} sensitive values; t is {after.t:.4g}.")
    say()
    paragraph(f"{_STEWARD} {_LIMITS}", style="dim")


def _write(table: pa.Table, target: Path, *, force: bool) -> None:
    """Write the table, whole or not at all: under another name first."""
    import pyarrow as pa

    refused = False
    written = False
    with quietly(OSError), tempfile.TemporaryDirectory(prefix=".sfumato-", dir=target.parent) as folder:
        draft = Path(folder) / "draft"
        try:
            _write_as(table, draft, target.suffix.lower())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):  # its text may hold data
            refused = True
        if not refused and (force or not os.path.lexists(target)):
            os.replace(draft, target)
            written = True
    if refused:
        raise InvalidParameter(
            f"A column holds lists, bytes or spans of time, for which a {target.suffix.lower()} file has no "
            "place; write an .arrow file, or leave the column out."
        )
    if not written:
        raise SourceUnusable(f"{target.name[:100]} cannot be written there; check the folder and its room.")


def _write_as(table: pa.Table, path: Path, suffix: str) -> None:
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path)
    elif suffix == ".csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(table, path)
    else:
        import pyarrow as pa

        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
            out.write_table(table)
