"""`sfumato quote` and `sfumato query`: the price first, then the answer."""

from __future__ import annotations

import csv
import io
import os
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.failures import reported
from sfumato.cli.opening import open_session, read_catalog
from sfumato.cli.options import AnalystOption, ConfigOption, JsonOption, LedgerOption
from sfumato.cli.output import (
    emit_json,
    note,
    paragraph,
    plain_json,
    say,
    spelled,
    spinner,
    table,
    width,
)
from sfumato.errors import InvalidParameter
from sfumato.render import key, shown, with_bar

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.ledger import Balance
    from sfumato.session import Release

__all__ = ["Format", "query", "quote"]


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


SqlArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="SQL", help="The question: SQL, the path of a .sql file, or - for standard input."
    ),
]
EpsilonOption = Annotated[str | None, typer.Option("--epsilon", metavar="NUMBER", help="What to pay.")]
DeltaOption = Annotated[
    str | None,
    typer.Option(
        "--delta", metavar="NUMBER", help="How much delta it may use; else a hundredth of the budget's."
    ),
]
ErrorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--error", metavar="COLUMN=WIDTH", help="The error bar wanted, instead of --epsilon; may be repeated."
    ),
]
ConfidenceOption = Annotated[
    str, typer.Option("--confidence", metavar="NUMBER", help="At which the error bars hold.")
]


@reported
def quote(
    sql: SqlArgument = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    error: ErrorOption = None,
    confidence: ConfidenceOption = "0.95",
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    analyst: AnalystOption = None,
    json_: JsonOption = False,
) -> None:
    """What an answer would cost; free, no row is read."""
    _check_price(epsilon, error)
    catalog, text = read_catalog(config, ledger, analyst), _question(sql)
    with spinner("quoting", quiet=json_), open_session(catalog, _dataset(catalog, text)) as session:
        made = session.sql(text).quote(epsilon, delta=delta, error=_wanted(error), confidence=confidence)
        balance = session.balance(session.dataset_of(made.report).name)
    if json_:
        emit_json({"quote": made.to_dict(), "left": _left(balance)})
        return
    say(made.text(width(), spelled))
    say()
    paragraph(f"A quote is free. Left in the budget of {balance.dataset}: {_remainder(balance)}.")


@reported
def query(
    sql: SqlArgument = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    error: ErrorOption = None,
    confidence: ConfidenceOption = "0.95",
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="How to write the answer; else as the name of --output says."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the answer to a file.")
    ] = None,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    analyst: AnalystOption = None,
    json_: JsonOption = False,
) -> None:
    """The private answer with error bars, paid from the budget."""
    _check_price(epsilon, error)
    wanted = _format(format_, output, json_)
    if wanted is Format.PARQUET and output is None:
        raise InvalidParameter("Parquet goes to a file: add --output answer.parquet.")
    if output is not None:
        _check_writable(output)  # before anything is paid
    catalog, text = read_catalog(config, ledger, analyst), _question(sql)
    with spinner("asking", quiet=json_), open_session(catalog, _dataset(catalog, text)) as session:
        release = session.sql(text).release(epsilon, delta=delta, error=_wanted(error), confidence=confidence)
        balance = session.balance(session.dataset_of(release.quote.report).name)
        answer = _Answer(release, balance, confidence)
    _WRITERS[wanted](answer, output)
    if wanted in (Format.CSV, Format.PARQUET) or (output is not None and not json_):
        note(answer.footer())


def _check_price(epsilon: str | None, error: list[str] | None) -> None:
    if (epsilon is None) == (not error):
        both = "" if epsilon is None else "; not both"
        raise InvalidParameter(f"Give a price, --epsilon 0.5, or the error you want, --error n=50{both}.")


def _format(asked: Format | None, output: Path | None, json_: bool) -> Format:
    """How to write the answer: as the flags say, else as the name of the file does."""
    if json_:
        if asked not in (None, Format.JSON):
            raise InvalidParameter(f"--json and --format {asked} contradict each other: leave one out.")
        return Format.JSON
    if asked is not None:
        return asked
    suffix = "" if output is None else output.suffix.lower().lstrip(".")
    return Format(suffix) if suffix in set(Format) else Format.TABLE


class _Answer:
    """A release as columns: keys, values, half-widths."""

    def __init__(self, release: Release, balance: Balance, confidence: str) -> None:
        self.release, self.balance, self.confidence = release, balance, confidence
        self.values: dict[str, list[Any]] = {
            name: release.table[name].to_pylist() for name in release.table.column_names
        }
        public = {column.name for column in release.quote.columns if column.half_width == 0}
        errors = release.error(confidence)
        self.errors: dict[str, list[Any]] = {
            name: errors[name].to_pylist() for name in self.values if name not in public
        }

    def shown(self) -> dict[str, list[str]]:
        """The columns with error bars, as people read them."""
        return {
            name: [with_bar(*pair) for pair in zip(values, self.errors[name], strict=True)]
            if name in self.errors
            else [key(value) for value in values]
            for name, values in self.values.items()
        }

    def flat(self) -> dict[str, list[Any]]:
        """The columns with `name_error` after each value."""
        columns: dict[str, list[Any]] = {}
        for name, values in self.values.items():
            columns[name] = values
            if name in self.errors:
                bar = f"{name}_error"
                while bar in self.values or bar in columns:
                    bar += "_"
                columns[bar] = self.errors[name]
        return columns

    def footer(self) -> str:
        """What it cost and what is left."""
        release = self.release
        paid = (
            "Answered again from the ledger, free"
            if release.free
            else f"Paid {_price(release.quote.epsilon, release.quote.delta)}"
        )
        level = f"{float(self.confidence) * 100:.6g}"
        return (
            f"The error bars hold {level} % of the time. {paid} (receipt {release.receipt.number}). "
            f"Left: {_remainder(self.balance)}. {release.weighting}".rstrip()
        )

    def document(self) -> dict[str, Any]:
        """Everything, for programs. The keys are a contract."""
        release, rows = self.release, range(self.release.table.num_rows)
        return {
            "columns": list(self.values),
            "rows": [{name: values[row] for name, values in self.values.items()} for row in rows],
            "errors": [{name: values[row] for name, values in self.errors.items()} for row in rows],
            "confidence": float(self.confidence),
            "paid": {
                "epsilon": 0 if release.free else release.quote.epsilon,
                "delta": 0 if release.free else release.quote.delta,
            },
            "free": release.free,
            "receipt": release.receipt.number,
            "left": _left(self.balance),
            "quote": release.quote.to_dict(),
        }


def _write_table(answer: _Answer, output: Path | None) -> None:
    if output is None:
        table(answer.shown())
        say()
        paragraph(answer.footer())
        return
    from sfumato.render import text_table

    _to_file(output, (text_table(answer.shown(), width=1000) + "\n").encode())


def _write_csv(answer: _Answer, output: Path | None) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    columns = answer.flat()
    writer.writerow(columns)
    writer.writerows(zip(*(plain_json(values) for values in columns.values()), strict=True))
    if output is None:
        sys.stdout.write(text.getvalue())
        sys.stdout.flush()
    else:
        _to_file(output, text.getvalue().encode())


def _write_json(answer: _Answer, output: Path | None) -> None:
    if output is None:
        emit_json(answer.document())
        return
    text = io.StringIO()
    emit_json(answer.document(), stream=text)
    _to_file(output, text.getvalue().encode())


def _write_parquet(answer: _Answer, output: Path | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert output is not None
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(answer.flat()), sink)
    _to_file(output, sink.getvalue().to_pybytes())


_WRITERS = {
    Format.TABLE: _write_table,
    Format.CSV: _write_csv,
    Format.JSON: _write_json,
    Format.PARQUET: _write_parquet,
}


def _check_writable(path: Path) -> None:
    folder = path.resolve().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidParameter(f"{path} cannot be written: it must be a file in an existing folder.")


def _to_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.resolve().parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError:
        raise InvalidParameter(
            f"{path} could not be written. The answer is kept: asking again is free."
        ) from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _question(sql: str | None) -> str:
    """The SQL text: as given, from a file, or from standard input."""
    if sql is None or sql == "-":
        if sql is None and sys.stdin.isatty():
            raise InvalidParameter('Give a question: sfumato query "SELECT COUNT(*) FROM …" --epsilon 0.1')
        text = sys.stdin.read()
    elif sql.lower().endswith(".sql") and (Path(sql).is_file() or not any(map(str.isspace, sql))):
        try:
            text = Path(sql).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InvalidParameter(f"The file {sql} cannot be read.") from None
    else:
        text = sql
    if not text.strip():
        raise InvalidParameter("The question is empty.")
    return text


def _dataset(catalog: Catalog, text: str) -> str:
    """Whose budget the question draws on."""
    from sfumato.sql.parse import parse

    tables = {table.name: table for table in catalog.tables}
    return tables[parse(text, tables).child.table].dataset


def _wanted(pairs: list[str] | None) -> dict[str, str] | str | None:
    """`--error n=50 --error mean=2` as a mapping; one bare number holds for all columns."""
    if not pairs:
        return None
    if len(pairs) == 1 and "=" not in pairs[0]:
        return pairs[0]
    wanted: dict[str, str] = {}
    for pair in pairs:
        name, sign, number = pair.rpartition("=")
        if not sign or not name:
            raise InvalidParameter("--error takes a column and a width, such as --error n=50.")
        if name in wanted:
            raise InvalidParameter(f"--error names {name[:40]!r} twice.")
        wanted[name] = number
    return wanted


def _price(epsilon: Any, delta: Any) -> str:
    return f"epsilon {shown(epsilon)}" + (f", delta {shown(delta)}" if delta else "")


def _remainder(balance: Balance) -> str:
    left = f"epsilon {shown(balance.remaining)} of {shown(balance.epsilon)}"
    left += f", delta {shown(balance.remaining_delta)}" if balance.delta else ""
    return left + (f"; {balance.dataset} has no more" if balance.shared else "")


def _left(balance: Balance) -> dict[str, Any]:
    return {
        "dataset": balance.dataset,
        "analyst": balance.analyst,
        "epsilon": balance.remaining,
        "delta": balance.remaining_delta,
    }
