"""`sfumato synth`: a synthetic table of the catalog, or two that join, paid once and written to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.ask import check_writable, to_file
from sfumato.cli.failures import reported
from sfumato.cli.opening import open_session
from sfumato.cli.options import AskerOptions, JsonOption, spread
from sfumato.cli.output import progress_bar, spinner
from sfumato.cli.question import ParameterOption, dataset_of_rows, parameters_of, text_of
from sfumato.cli.synth_options import FitOptions, KeepOptions, of_one, of_two
from sfumato.cli.synth_said import Made, say_made, say_quote
from sfumato.errors import InvalidParameter, InvalidValue

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.catalog import Catalog
    from sfumato.synth import Synthesizer, SyntheticTables

__all__ = ["synth"]

_ENDINGS = (".parquet", ".csv", ".arrow")


@reported
@spread
def synth(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE...",
            help="A table, a SELECT of columns, a .sql file, or -; or two tables that join.",
        ),
    ] = None,
    *,
    fitting: FitOptions,
    keeping: KeepOptions,
    param: ParameterOption = None,
    asker: AskerOptions,
    json_: JsonOption = False,
) -> None:
    """Write a synthetic table that anyone may have, paid once from the budget.

    Rows that look like the table's own are drawn from a model of noisy counts; of two tables, rows that join.
    Columns have the bounds and values that the catalog declares. To draw again, with the same price or less,
    is free.
    """
    named = tables or []
    if keeping.from_ is not None:
        made = _read(keeping.from_, named, fitting)
        _check_files(keeping, two=_is_two(made))
        _check_kept(keeping, two=_is_two(made))
        _finish(Made(made), keeping, json_=json_)
        return
    if not named:
        raise InvalidParameter("Say which table: sfumato synth people --epsilon 1 -o people.parquet.")
    if len(named) > 2:
        raise InvalidParameter("Two tables can be made together, and no more: name one or two.")
    two = len(named) == 2
    fitting.check_priced()
    _check_files(keeping, two=two)
    _check_kept(keeping, two=two)
    catalog = asker.catalog()
    found = (
        _two(catalog, named, fitting, json_=json_)
        if two
        else _one(catalog, text_of(named[0]), parameters_of(param), fitting, keeping, json_=json_)
    )
    if found is not None:
        _finish(found, keeping, json_=json_)


def _one(
    catalog: Catalog, text: str, parameters: Any, fitting: FitOptions, keeping: KeepOptions, *, json_: bool
) -> Made | None:
    """A model of one table; None: its price alone was asked for, and is told."""
    from sfumato import synth as models
    from sfumato.synth.beforehand import refuse_beforehand

    dataset = dataset_of_rows(text, catalog)
    own, said = of_one(fitting, catalog, text)
    own["parameters"] = parameters
    with progress_bar("opening", done=None, quiet=json_) as tell, open_session(catalog, dataset) as session:
        before = session.balance(dataset)
        priced = models.quote(session, text, **own)
        refuse_beforehand(
            session,
            text,
            check=None if fitting.quote else fitting.check,
            questions=keeping.ask or (),
            **own,
        )
        checking = None
        if fitting.quote and fitting.check is not None and priced.on_record:
            made = models.fit(session, text, **own)
            checking = models.quote_check(session, made, **_check(fitting, own, priced.delta))
        if fitting.quote:
            say_quote(priced, session.balance(dataset), fitting.check, checking, said, json_=json_)
            return None
        tell(None, "reading what is on record" if priced.on_record else "reading the rows")
        made = models.fit(session, text, **own, told=lambda part: tell(part, "measuring"))
        paid = session.balance(dataset)
        checked = None
        if fitting.check is not None:
            tell(None, "checking")
            checked = models.check(session, made, **_check(fitting, own, priced.delta))
        return Made(made, before, paid, session.balance(dataset), checked, said)


def _check(fitting: FitOptions, own: dict[str, Any], delta: Any) -> dict[str, Any]:
    """What a check takes: it is over what matters, and uses as much delta as the fit."""
    return {"epsilon": fitting.check, "delta": delta, "workload": own["workload"]}


def _two(catalog: Catalog, named: Sequence[str], fitting: FitOptions, *, json_: bool) -> Made | None:
    """A model of two tables; None: its price alone was asked for, and is told."""
    from sfumato import synth as models

    names = [catalog.table(name).name for name in named]
    datasets = [catalog.table(name).dataset for name in names]
    if datasets[0] != datasets[1]:
        raise InvalidParameter(
            f"{names[0]} and {names[1]} draw on different budgets, and tables of the same people share one: "
            f'write dataset = "{datasets[0]}" into [tables.{names[1]}] of {catalog.path.name}.'
        )
    own, said = of_two(fitting, catalog, names)
    with (
        progress_bar("opening", done=None, quiet=json_) as tell,
        open_session(catalog, datasets[0]) as session,
    ):
        before = session.balance(datasets[0])
        priced = models.quote_tables(session, names, **own)
        if fitting.quote:
            say_quote(priced, before, None, None, said, json_=json_)
            return None
        tell(None, "reading what is on record" if priced.on_record else "reading the rows")
        made = models.tables(session, names, **own, told=lambda part: tell(part, "measuring"))
        after = session.balance(datasets[0])
    return Made(made, before, after, after, None, said)


def _read(path: Path, named: Sequence[str], fitting: FitOptions) -> Synthesizer | SyntheticTables:
    """The model of a file, for which nothing is paid any more."""
    from sfumato.synth.files import load_any

    extra = [named[0][:40]] if named else list(fitting.given)
    if extra:
        raise InvalidParameter(f"--from takes a model that is made and paid for: leave out {extra[0]}.")
    with spinner("reading the model"):
        try:
            return load_any(path)
        except InvalidValue as refused:
            raise InvalidParameter(str(refused)) from None


def _is_two(made: Any) -> bool:
    from sfumato.synth import SyntheticTables

    return isinstance(made, SyntheticTables)


def _check_kept(keeping: KeepOptions, *, two: bool) -> None:
    """Refuse what cannot be drawn or asked, before anything is paid."""
    if keeping.rows is not None and not 0 <= keeping.rows <= 10**9:
        raise InvalidParameter("--rows is a number of rows, at most a billion.")
    if two and keeping.ask:
        raise InvalidParameter("--ask is for a model of one table: of two, ask the rows that are written.")


def _check_files(keeping: KeepOptions, *, two: bool) -> None:
    """Refuse files that cannot be written, before anything is paid."""
    output = keeping.output
    if output is not None and two:
        if output.suffix.lower() in _ENDINGS or output.is_file():
            raise InvalidParameter(f"Two tables go into a folder, not into {output}: -o {output.stem}/.")
        check_writable(output / "table" if output.is_dir() else output)
    elif output is not None:
        if output.suffix.lower() not in _ENDINGS:
            raise InvalidParameter(f"{output} must end in {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}.")
        check_writable(output)
    for path in (keeping.model, keeping.picture):
        if path is not None:
            check_writable(path)
    if keeping.picture is not None:
        from sfumato.plots import column_counts

        column_counts({"x": ([""], [0.0])})  # without matplotlib nothing is paid


def _finish(found: Made, keeping: KeepOptions, *, json_: bool) -> None:
    """Draw, write and tell."""
    with spinner("drawing rows", quiet=json_):
        drawn = found.model.sample(keeping.rows, seed=keeping.seed)
        rows: dict[str, pa.Table] = drawn if isinstance(drawn, dict) else {found.model.table: drawn}
        answers = [found.estimate(text) for text in keeping.ask or ()]
        files = _write(found, rows, keeping)
    say_made(found, rows, answers, files, keeping, json_=json_)


def _write(found: Made, rows: dict[str, pa.Table], keeping: KeepOptions) -> dict[str, Path]:
    from sfumato.synth import save

    files = dict[str, Path]()
    if keeping.output is not None:
        if found.is_two:
            keeping.output.mkdir(exist_ok=True)
            files = {name: keeping.output / f"{name}.parquet" for name in rows}
        else:
            files = dict.fromkeys(rows, keeping.output)
        for name, path in files.items():
            to_file(path, _written(rows[name], path.suffix.lower()))
    if keeping.model is not None:
        save(found.model, keeping.model)
    if keeping.picture is not None:
        found.model.picture(keeping.picture)
    return files


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
