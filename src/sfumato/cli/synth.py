"""`sfumato synth`: a synthetic table of one of the catalog, paid from its budget and written to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato._dataclasses import dataclass
from sfumato.cli.ask import check_writable, left_of, remainder, to_file
from sfumato.cli.failures import reported
from sfumato.cli.opening import open_session
from sfumato.cli.options import AskerOptions, JsonOption, spread
from sfumato.cli.output import emit_json, paragraph, progress_bar, say, table
from sfumato.cli.question import DeltaOption, ParameterOption, dataset_of_rows, parameters_of, text_of
from sfumato.errors import InvalidParameter
from sfumato.render import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.ledger import Balance
    from sfumato.synth import Synthesizer, SynthQuote

__all__ = ["synth"]

_ENDINGS = (".parquet", ".csv", ".arrow")
_PREVIEW = 5


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What is modelled, how, and what of it is kept."""

    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="NUMBER", help="What the whole fit may cost.")
    ] = None
    delta: DeltaOption = None
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write rows: .parquet, .csv or .arrow."),
    ] = None
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="NUMBER", help="How many rows; else about as many as there are."),
    ] = None
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="auto, independent, mst, adaptive or fixed.")
    ] = "auto"
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="NAME", help="A column to model; repeatable. Else all of them."),
    ] = None
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="NAME", help="A column that only names rows: made anew; repeatable."),
    ] = None
    memory: Annotated[
        int, typer.Option("--memory", metavar="MEGABYTES", help="How much the model may take.")
    ] = 64
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="NUMBER", help="Draw the same rows again.")
    ] = None
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="FILE", help="Write the model, too; sfumato.synth.load reads it."),
    ] = None
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE.png", help="Draw the columns of the synthetic table."),
    ] = None
    quote: Annotated[
        bool, typer.Option("--quote", help="Only say what the fit would cost; free, nothing is read.")
    ] = False


@reported
@spread
def synth(
    sql: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="A table, a SELECT of columns, a .sql file, or - for input."),
    ] = None,
    *,
    options: TableOptions,
    param: ParameterOption = None,
    asker: AskerOptions,
    json_: JsonOption = False,
) -> None:
    """Write a synthetic table that anyone may have, paid once from the budget.

    Rows that look like the table's own are drawn from a model of noisy counts. Columns have the bounds and
    values that the catalog declares. To draw again, with the same price or less, is free.
    """
    if sql is None:
        raise InvalidParameter("Say which table: sfumato synth people --epsilon 1 -o people.parquet.")
    text, parameters = text_of(sql), parameters_of(param)
    if options.epsilon is None:
        raise InvalidParameter("Say what the fit may cost: --epsilon 1.")
    _check_files(options)
    catalog = asker.catalog()
    dataset = dataset_of_rows(text, catalog)
    from sfumato import synth as tables

    given: dict[str, Any] = {
        "epsilon": options.epsilon,
        "delta": options.delta,
        "method": options.method,
        "columns": options.column,
        "ids": options.ids or (),
        "memory": options.memory,
        "parameters": parameters,
    }
    with progress_bar("measuring", quiet=json_) as tell, open_session(catalog, dataset) as session:
        before = session.balance(dataset)
        priced = tables.quote(session, text, **given)
        made = None
        if not options.quote:
            made = tables.fit(session, text, **given, told=lambda part: tell(part, "measuring"))
        balance = session.balance(dataset)
    if made is None:
        _say_quote(priced, balance, json_=json_)
        return
    rows = made.sample(options.rows, seed=options.seed)
    _write(made, rows, options)
    free = (before.spent, before.spent_delta) == (balance.spent, balance.spent_delta)
    if json_:
        emit_json(_document(made, rows, options, balance, free=free))
    else:
        _say(made, rows, options, balance, free=free)


def _check_files(options: TableOptions) -> None:
    """Refuse files that cannot be written, before anything is paid."""
    if options.output is not None and options.output.suffix.lower() not in _ENDINGS:
        raise InvalidParameter(f"{options.output} must end in {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}.")
    for path in (options.output, options.model, options.picture):
        if path is not None:
            check_writable(path)
    if options.picture is not None:
        from sfumato.plots import column_counts

        column_counts({"x": ([""], [0.0])})  # without matplotlib nothing is paid


def _write(made: Synthesizer, rows: pa.Table, options: TableOptions) -> None:
    from sfumato.synth import save

    if options.output is not None:
        to_file(options.output, _written(rows, options.output.suffix.lower()))
    if options.model is not None:
        save(made, options.model)
    if options.picture is not None:
        made.picture(options.picture)


def _written(rows: pa.Table, ending: str) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    if ending == ".csv":
        from pyarrow import csv

        csv.write_csv(rows, sink)
    elif ending == ".parquet":
        from pyarrow import parquet

        parquet.write_table(rows, sink)
    else:
        with pa.ipc.new_file(sink, rows.schema) as file:
            file.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


def _say(made: Synthesizer, rows: pa.Table, options: TableOptions, balance: Balance, *, free: bool) -> None:
    few = rows.slice(0, _PREVIEW)
    table({name: few[name].to_pylist() for name in few.column_names}, title="The first rows, all made up")
    say()
    paragraph(repr(made))
    number = None if made.receipt is None else made.receipt.number
    price = f"epsilon {shown(made.epsilon)}, delta {shown(made.delta)}"
    cost = f"On record (receipt {number}): free" if free else f"Paid {price} (receipt {number})"
    paragraph(f"{cost}, for the model and all rows drawn from it. Left: {remainder(balance)}.")
    for path, what in (
        (options.output, f"{rows.num_rows:,} rows are in"),
        (options.model, "The model is in"),
        (options.picture, "The picture is in"),
    ):
        if path is not None:
            paragraph(f"{what} {path}.")
    if options.output is None:
        paragraph("No rows were written: the same command with -o FILE.parquet writes them, free.")


def _document(
    made: Synthesizer, rows: pa.Table, options: TableOptions, balance: Balance, *, free: bool
) -> dict[str, Any]:
    """All of it, for programs. The keys are a contract."""
    return {
        "table": made.table,
        "columns": rows.column_names,
        "method": made.method,
        "epsilon": made.epsilon,
        "delta": made.delta,
        "free": free,
        "receipt": None if made.receipt is None else made.receipt.number,
        "rows": rows.num_rows,
        "measured": len(made.released.learned.marginals),
        "converged": made.converged,
        "left": left_of(balance),
        "file": None if options.output is None else str(options.output),
        "model": None if options.model is None else str(options.model),
        "picture": None if options.picture is None else str(options.picture),
    }


def _say_quote(priced: SynthQuote, balance: Balance, *, json_: bool) -> None:
    if json_:
        quote = {
            "table": priced.table,
            "columns": list(priced.columns),
            "method": priced.method,
            "epsilon": priced.epsilon,
            "delta": priced.delta,
            "max_rows": priced.max_rows,
            "note": priced.note,
        }
        emit_json({"quote": quote, "left": left_of(balance)})
        return
    paragraph(str(priced))
    paragraph(f"A quote is free. Left in the budget of {balance.dataset}: {remainder(balance)}.")
