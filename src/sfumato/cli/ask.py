"""`sfumato quote` and `sfumato query`: the price first, then the answer."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato._dataclasses import dataclass
from sfumato._files import write_whole
from sfumato.cli.failures import reported
from sfumato.cli.opening import open_session
from sfumato.cli.options import AskerOptions, JsonOption, spread
from sfumato.cli.output import (
    emit_json,
    note,
    paragraph,
    say,
    spelled,
    spinner,
    table,
    width,
)
from sfumato.cli.question import (
    ParameterOption,
    PricingOptions,
    SqlArgument,
    StateOption,
    question_of,
)
from sfumato.errors import InvalidParameter
from sfumato.render import definitions, plain_json, shown

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.ledger import Balance
    from sfumato.plan.prices.quoting import Quote
    from sfumato.session import Query, Release, Session
    from sfumato.session.shown import Shown

__all__ = [
    "Format",
    "WritingOptions",
    "answer_question",
    "check_writable",
    "query",
    "quote",
    "remainder",
    "to_file",
]


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """How an answer is to be written."""

    format_: Annotated[
        Format | None,
        typer.Option("--format", help="How to write the answer; else as the name of --output says."),
    ] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the answer to a file.")
    ] = None


@reported
@spread
def quote(
    sql: SqlArgument = None,
    *,
    pricing: PricingOptions,
    param: ParameterOption = None,
    at: StateOption = None,
    asker: AskerOptions,
    json_: JsonOption = False,
) -> None:
    """What an answer would cost; free, no row is read."""
    asked = question_of(sql, param, pricing)
    catalog = asker.catalog()
    with spinner("quoting", quiet=json_), open_session(catalog, asked.dataset(catalog)) as session:
        about = session if at is None else session.at(at)
        priced = about.sql(asked.text, asked.parameters).quote(**asked.pricing)
        paying = session.dataset_of(priced.report).name
        balance = session.balance(paying, window=session.windows_of(priced.report))
    _say_quote(priced, balance, json_=json_)


def _say_quote(priced: Quote, balance: Balance, *, json_: bool) -> None:
    if json_:
        emit_json({"quote": priced.to_dict(), "left": balance.left()})
        return
    say(priced.text(width(), spelled))
    say()
    paragraph(f"A quote is free. Left in the budget of {balance.dataset}: {remainder(balance)}.")


@reported
@spread
def query(
    sql: SqlArgument = None,
    *,
    pricing: PricingOptions,
    param: ParameterOption = None,
    at: StateOption = None,
    writing: WritingOptions,
    asker: AskerOptions,
    json_: JsonOption = False,
) -> None:
    """The private answer with error bars, paid from the budget."""
    asked = question_of(sql, param, pricing)
    catalog = asker.catalog()
    answer_question(
        lambda session: (session if at is None else session.at(at)).sql(asked.text, asked.parameters),
        lambda: asked.dataset(catalog),
        catalog,
        asked.pricing,
        writing,
        json_=json_,
    )


def answer_question(
    make: Callable[[Session], Query],
    dataset: Callable[[], str],
    catalog: Catalog,
    pricing: Mapping[str, Any],
    writing: WritingOptions,
    opened: Callable[[Catalog, str], AbstractContextManager[Session]] = open_session,
    *,
    json_: bool = False,
) -> None:
    """Pay for a question, release it and write the answer.

    Args:
        make: Makes the question.
        dataset: Says whose budget it draws on, or refuses.
        catalog: The steward's file.
        pricing: What `release` takes.
        writing: How to write it.
        opened: Opens the session that is asked.
        json_: Whether to write one JSON document.
    """
    output = writing.output
    wanted = _format(writing.format_, output, json_)
    if wanted is Format.PARQUET and output is None:
        raise InvalidParameter("Parquet goes to a file: add --output answer.parquet.")
    if output is not None:
        check_writable(output)  # before anything is paid
    with spinner("asking", quiet=json_), opened(catalog, dataset()) as session:
        query = make(session)
        paying, windows = session.dataset_of(query.report).name, query.windows
        balance = session.balance(paying, window=windows)
        if query.explain:
            priced = query.quote(**pricing)
        else:
            release = query.release(**pricing)
            balance = session.balance(paying, window=windows)
            answer = _Answer(release, balance, pricing["confidence"])
    if query.explain:
        _say_quote(priced, balance, json_=json_)
        return
    _WRITERS[wanted](answer, output)
    if wanted in (Format.CSV, Format.PARQUET) or (output is not None and not json_):
        note(answer.footer())


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
        from sfumato.session.documents import cells_of

        self.cells = cells_of(release, confidence)

    def shown(self) -> Shown:
        """The columns with error bars, as people read them."""
        return self.release.shown(self.confidence)

    def flat(self) -> dict[str, list[Any]]:
        """The columns with `name_error` after each value."""
        columns: dict[str, list[Any]] = {}
        for name, values in self.cells.values.items():
            columns[name] = values
            if name in self.cells.errors:
                bar = f"{name}_error"
                while bar in self.cells.values or bar in columns:
                    bar += "_"
                columns[bar] = self.cells.errors[name]
        return columns

    def footer(self) -> str:
        """What it cost and what is left."""
        release = self.release
        often = release.nothing or f"{self.shown().holds}."
        return f"{often} {release.paid} Left: {remainder(self.balance)}.{_cut(release)}"


def _write_table(answer: _Answer, output: Path | None) -> None:
    seen = answer.shown()
    if output is None:
        for line in definitions(seen.definitions, width(), spelled):
            say(line)
        say()
        for columns in seen.tables:
            table(columns, keys=seen.keys)
            say()
        paragraph(answer.footer())
        return
    from sfumato.render import text_table

    tables = [text_table(columns, width=1000) for columns in seen.tables]
    lines = [*definitions(seen.definitions, 1000), "", "\n\n".join(tables), ""]
    to_file(output, "\n".join(lines).encode())


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
        to_file(output, text.getvalue().encode())


def _write_json(answer: _Answer, output: Path | None) -> None:
    from sfumato.session.documents import document_of

    document = document_of(answer.release, answer.balance, answer.confidence)
    if output is None:
        emit_json(document)
        return
    text = io.StringIO()
    emit_json(document, stream=text)
    to_file(output, text.getvalue().encode())


def _write_parquet(answer: _Answer, output: Path | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert output is not None
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(answer.flat()), sink)
    to_file(output, sink.getvalue().to_pybytes())


_WRITERS = {
    Format.TABLE: _write_table,
    Format.CSV: _write_csv,
    Format.JSON: _write_json,
    Format.PARQUET: _write_parquet,
}


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is paid."""
    folder = path.resolve().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidParameter(f"{path} cannot be written: it must be a file in an existing folder.")


def to_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    try:
        write_whole(path, content)
    except OSError:
        raise InvalidParameter(
            f"{path} could not be written. The answer is kept: asking again is free."
        ) from None


def _cut(release: Release) -> str:
    share = release.touched()
    cut = [] if share is None else [f"Of the units, {share} were clamped or cut."]
    return "".join(f" {sentence}" for sentence in (*cut, *release.bounds))


def remainder(balance: Balance) -> str:
    """What is left of a budget, in words."""
    left = f"epsilon {shown(balance.remaining)} of {shown(balance.epsilon)}"
    left += f", delta {shown(balance.remaining_delta)}" if balance.delta else ""
    left += f" in {balance.window}" if balance.window else ""
    return left + (f"; {balance.dataset} has no more" if balance.shared else "")
