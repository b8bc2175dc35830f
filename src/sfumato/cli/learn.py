"""`sfumato learn`: a model fitted on a table of the catalog, paid from its budget and written to a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato._dataclasses import dataclass
from sfumato.cli.ask import check_writable, remainder
from sfumato.cli.failures import reported
from sfumato.cli.fitted import columns_shown
from sfumato.cli.opening import open_session
from sfumato.cli.options import AskerOptions, JsonOption, spread
from sfumato.cli.output import emit_json, paragraph, say, spinner, table, width
from sfumato.cli.question import (
    DeltaOption,
    ParameterOption,
    dataset_of_rows,
    parameters_of,
    text_of,
    value_of,
)
from sfumato.errors import InvalidParameter
from sfumato.render import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.learn import Report
    from sfumato.learn.base import PrivateEstimator
    from sfumato.ledger import Balance

__all__ = ["KINDS", "learn"]

KINDS = {
    "logistic": "LogisticRegression",
    "linear": "LinearRegression",
    "ridge": "Ridge",
    "poisson": "PoissonRegression",
    "cox": "CoxRegression",
    "boosting": "GradientBoostingClassifier",
    "boosting-numbers": "GradientBoostingRegressor",
    "kmeans": "KMeans",
    "moments": "Moments",
    "pca": "PCA",
}
"""What a model is called here, and in `sfumato.learn`, whose names are taken, too."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What is learned, what for, and what of it is kept."""

    target: Annotated[
        list[str] | None,
        typer.Option("--target", metavar="COLUMN", help="The column to be learned; repeatable, if several."),
    ] = None
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="NUMBER", help="What the whole fit may cost.")
    ] = None
    delta: DeltaOption = None
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of the model, such as n_clusters=4; repeatable."
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the model here; sfumato.learn.load reads it back."),
    ] = None
    quote: Annotated[
        bool, typer.Option("--quote", help="Only say what the fit would cost; free, nothing is read.")
    ] = False
    test: Annotated[
        Path | None,
        typer.Option(
            "--test", metavar="FILE.csv", help="Public rows to measure the model on, truth included."
        ),
    ] = None
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COLUMN", help="Measure by groups of this test column; repeatable."),
    ] = None


@reported
@spread
def learn(
    kind: Annotated[
        str, typer.Argument(metavar="MODEL", help="Such as logistic, linear, boosting or moments.")
    ],
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL", help="The rows: a SELECT of columns, a table, a .sql file, or - for input."
        ),
    ] = None,
    *,
    options: ModelOptions,
    param: ParameterOption = None,
    asker: AskerOptions,
    json_: JsonOption = False,
) -> None:
    """Fit a private model on a table, paid once from the budget; print it, or write it to a file.

    Bounds and classes are those that the catalog declares. Nothing is said of the model's quality, which
    would cost again, unless --test gives public rows.
    """
    if sql is None:
        raise InvalidParameter(f'Say which rows: sfumato learn {kind[:40]} "SELECT … FROM …" --epsilon 1.')
    text, parameters = text_of(sql), parameters_of(param)
    if options.epsilon is None:
        raise InvalidParameter("Say what the fit may cost: --epsilon 1.")
    if options.by and options.test is None:
        raise InvalidParameter("--by is for public test rows: add --test FILE.csv.")
    if options.out is not None:
        check_writable(options.out)  # before anything is paid
    catalog = asker.catalog()
    dataset = dataset_of_rows(text, catalog)
    with spinner("learning", quiet=json_):
        rows = None if options.test is None else _test_rows(options.test)
        make = _maker(kind)
        with open_session(catalog, dataset) as session:
            before = session.balance(dataset)
            model = make(options, before)
            given: dict[str, Any] = {"target": _target(options.target), "parameters": parameters}
            priced = model.quote(session, text, **given)
            left_out = 0
            if rows is not None:
                _check_test(model, rows, options, priced.columns)
                every, rows = rows.num_rows, _complete(rows, [*priced.numbers, *(options.target or ())])
                left_out = every - rows.num_rows
            if not options.quote:
                model.fit(session, text, **given)
            balance = session.balance(dataset)
    if options.quote:
        _say_quote(priced, balance, json_=json_)
        return
    if options.out is not None:
        _save(model, options.out)
    measured = None if rows is None else _measured(model, rows, options)
    fitted = _Fitted(model, str(priced.table), before, balance, options.out, measured, left_out)
    if json_:
        emit_json(fitted.document())
    else:
        fitted.say()


class _Fitted:
    """A fitted model, what it cost and what was measured of it."""

    def __init__(
        self,
        model: PrivateEstimator,
        source: str,
        before: Balance,
        after: Balance,
        file: Path | None,
        measured: Report | None,
        left_out: int,
    ) -> None:
        self.model, self.source, self.balance, self.file = model, source, after, file
        self.measured, self.left_out = measured, left_out
        self.free = (before.spent, before.spent_delta) == (after.spent, after.spent_delta)

    @property
    def receipt(self) -> int | None:
        """The number of the debit that paid for it."""
        return None if self.model.receipt is None else self.model.receipt.number

    def say(self) -> None:
        """All of it, for people."""
        for title, columns in columns_shown(self.model).items():
            table(columns, title=title)
            say()
        epsilon, delta = self.model.loss.approximate or (0, 0)
        price = f"epsilon {shown(epsilon)}, delta {shown(delta)}"
        cost = (
            f"On record (receipt {self.receipt}): free"
            if self.free
            else f"Paid {price} (receipt {self.receipt})"
        )
        paragraph(f"{cost}, for everything that the model holds. Left: {remainder(self.balance)}.")
        if self.file is not None:
            paragraph(f'The model is in {self.file}: sfumato.learn.load("{self.file}") reads it.')
        if self.measured is not None:
            say()
            say(self.measured.text(width()))
        if self.left_out:
            many = f"{self.left_out} test row{'s' * (self.left_out > 1)}"
            paragraph(f"Left out: {many} without a number, or without the truth.")

    def document(self) -> dict[str, Any]:
        """All of it, for programs. The keys are a contract."""
        epsilon, delta = self.model.loss.approximate or (0, 0)
        return {
            "model": type(self.model).__name__,
            "table": self.source,
            "columns": [column.name for column in self.model.design_.columns],
            "epsilon": epsilon,
            "delta": delta,
            "free": self.free,
            "receipt": self.receipt,
            "left": self.balance.left(),
            "file": None if self.file is None else str(self.file),
            "learned": {
                title: {name: list(cells) for name, cells in columns.items()}
                for title, columns in columns_shown(self.model).items()
            },
            "report": None if self.measured is None else self.measured.to_dict(),
            "left_out": self.left_out,
        }


def _say_quote(priced: Any, balance: Balance, *, json_: bool) -> None:
    if json_:
        quote = {
            "model": priced.model,
            "table": priced.table,
            "columns": list(priced.columns),
            "epsilon": priced.epsilon,
            "delta": priced.delta,
            "note": priced.note,
        }
        emit_json({"quote": quote, "left": balance.left()})
        return
    paragraph(str(priced))
    paragraph(f"A quote is free. Left in the budget of {balance.dataset}: {remainder(balance)}.")


def _maker(kind: str) -> Any:
    """What makes the model that is asked for, from the flags and from what is left of delta."""
    from sfumato import learn as models
    from sfumato.learn.base import PrivateEstimator

    known = {name.lower(): name for name in models.__all__} | KINDS
    named = getattr(models, known.get(kind.lower(), ""), None)
    is_model = isinstance(named, type) and issubclass(named, PrivateEstimator)
    if named is None or not is_model or named is models.Pipeline:  # whose parts are made in Python
        raise InvalidParameter(f"There is no model {kind[:40]!r}: say one of {', '.join(KINDS)}.")

    def make(options: ModelOptions, balance: Balance) -> PrivateEstimator:
        taken: list[str] = named._get_param_names()
        given = {"epsilon": options.epsilon, "delta": _delta(options, balance)}
        for pair in options.set_ or ():
            name, sign, value = pair.partition("=")
            if not sign or name not in taken or name in given:
                free = ", ".join(one for one in taken if one not in ("epsilon", "delta"))
                raise InvalidParameter(f"--set takes NAME=VALUE, and {named.__name__} has: {free}.")
            given[name] = _parameter(value)
        made: PrivateEstimator = named(**given)
        return made

    return make


def _delta(options: ModelOptions, balance: Balance) -> Any:
    if options.delta is not None:
        return options.delta
    if not balance.next_delta:
        raise InvalidParameter(
            f"A fit needs some delta, and the budget of {balance.dataset} has none: ask the steward for one "
            "with delta, such as 1e-6."
        )
    return balance.next_delta


def _parameter(text: str) -> Any:
    """A number, a truth value or text; several with commas between, in brackets, are a list or a pair."""
    words = {"none": None}
    if text.lower() in words:
        return words[text.lower()]
    inner = re.fullmatch(r"([\[(])(.*)[\])]", text.strip())
    if inner is None:
        return value_of(text)
    parts = [value_of(part.strip()) for part in inner[2].split(",") if part.strip()]
    return parts if inner[1] == "[" else tuple(parts)


def _target(given: list[str] | None) -> Any:
    if not given:
        return None
    return given[0] if len(given) == 1 else tuple(given)


def _save(model: PrivateEstimator, path: Path) -> None:
    from sfumato.learn import save

    try:
        save(model, path)
    except InvalidParameter as refused:
        raise InvalidParameter(f"{refused} The fit is kept: asking again is free.") from None


def _test_rows(path: Path) -> pa.Table:
    """The public rows of a CSV file."""
    import pyarrow as pa
    from pyarrow import csv

    try:
        return csv.read_csv(path)
    except (OSError, pa.ArrowException):
        raise InvalidParameter(f"{path} cannot be read as a CSV file with a line of names.") from None


def _check_test(model: Any, rows: pa.Table, options: ModelOptions, columns: Sequence[str]) -> None:
    """Refuse test rows that the model cannot be measured on, before anything is paid."""
    if not hasattr(model, "predict") or options.target is None or len(options.target) != 1:
        raise InvalidParameter("Only a model that predicts one column can be measured: leave --test out.")
    wanted = [*columns, *options.target, *(options.by or ())]
    missing = [name for name in wanted if name not in rows.column_names]
    if missing:
        raise InvalidParameter(f"The test file has no column {missing[0][:60]!r}; nothing was spent.")
    if not rows.num_rows:
        raise InvalidParameter("The test file has no row; nothing was spent.")


def _complete(rows: pa.Table, needed: Sequence[str]) -> pa.Table:
    """The rows that have all these numbers and the truth; what is no number is refused, before it is paid."""
    import pyarrow as pa
    import pyarrow.compute as pc

    *numbers, truth = needed
    whole = pc.is_valid(rows[truth])
    for name in numbers:
        try:
            whole = pc.and_(whole, pc.fill_null(pc.is_finite(rows[name].cast(pa.float64())), False))
        except pa.ArrowException:
            raise InvalidParameter(
                f"Column {name[:60]!r} of the test file is not of numbers; nothing was spent."
            ) from None
    found = rows.filter(whole)
    if not found.num_rows:
        raise InvalidParameter("No row of the test file has all numbers and the truth; nothing was spent.")
    return found


def _measured(model: Any, rows: pa.Table, options: ModelOptions) -> Report:
    """The report of the model on public rows."""
    from sfumato.learn import report

    assert options.target is not None
    truth = rows[options.target[0]].to_pylist()
    if hasattr(model, "classes_"):
        spelled = {str(label): label for label in model.classes_.tolist()}
        truth = [spelled.get(str(label), label) for label in truth]
    groups = {name: rows[name] for name in options.by or ()} or None
    return report(model, rows.select([column.name for column in model.design_.columns]), truth, groups=groups)
