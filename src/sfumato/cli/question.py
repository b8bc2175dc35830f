"""What is asked on the command line: the text, its parameters, its price and how units are bounded."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

    from sfumato.catalog import Catalog

__all__ = [
    "DeltaOption",
    "ParameterOption",
    "PricingOptions",
    "Question",
    "SqlArgument",
    "StateOption",
    "check_priced",
    "dataset_asked",
    "dataset_of_rows",
    "parameters_of",
    "question_of",
    "text_of",
    "value_of",
]


class Bounding(StrEnum):
    """How units with too many groups are held within their limits."""

    REWEIGHT = "reweight"
    CHOOSE = "choose"


class Bounds(StrEnum):
    """Where bounds come from that nobody declared."""

    AUTO = "auto"


SqlArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="SQL", help="The question: SQL, the path of a .sql file, or - for standard input."
    ),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="[NAME=]VALUE", help="A value for a parameter of the text; may be repeated."
    ),
]
StateOption = Annotated[
    str | None,
    typer.Option("--at", metavar="STATE", help="About an earlier state of a table that grows."),
]

DeltaOption = Annotated[
    str | None,
    typer.Option(
        "--delta", metavar="NUMBER", help="How much delta it may use; else a small part of what is left."
    ),
]


@dataclass(frozen=True, slots=True)
class PricingOptions:
    """What is paid for an answer, or how close it is to be, and how units are bounded."""

    epsilon: Annotated[
        str | None,
        typer.Option("--epsilon", metavar="NUMBER", help="What to pay; GoogleSQL's text may say it instead."),
    ] = None
    delta: DeltaOption = None
    error: Annotated[
        list[str] | None,
        typer.Option(
            "--error",
            metavar="COLUMN=WIDTH",
            help="The error bar wanted, instead of --epsilon; may be repeated.",
        ),
    ] = None
    confidence: Annotated[
        str, typer.Option("--confidence", metavar="NUMBER", help="At which the error bars hold.")
    ] = "0.95"
    bounds: Annotated[
        Bounds | None,
        typer.Option(
            "--bounds", help="auto: buy bounds for numbers that have none, with a fifth of the price."
        ),
    ] = None
    bounding: Annotated[
        Bounding | None,
        typer.Option(
            "--bounding", help="Whether to weigh a unit's rows down or to choose some of its groups."
        ),
    ] = None
    touched: Annotated[
        bool,
        typer.Option(
            "--touched", help="Also report which share of the units was clamped or cut, for a twentieth."
        ),
    ] = False
    profile: Annotated[
        bool | None,
        typer.Option(
            "--profile/--no-profile",
            help="Whether to buy a profile of how many rows units have, with a fifth of the price, once; "
            'else where max_rows is "auto".',
        ),
    ] = None

    def terms(self) -> dict[str, Any]:
        """What `quote` and `release` take, as the flags say."""
        if self.epsilon is not None and self.error:
            raise InvalidParameter(
                "Give a price, --epsilon 0.5, or the error you want, --error n=50; not both."
            )
        _check_slips(self.epsilon, self.error or [], self.confidence)
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "error": _wanted(self.error),
            "confidence": self.confidence,
            "bounds": None if self.bounds is None else self.bounds.value,
            "bounding": None if self.bounding is None else self.bounding.value,
            "touched": self.touched,
            "profile": self.profile,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """A text with its parameters, and how it is to be priced.

    Attributes:
        text: The SQL.
        parameters: Values for its parameters: a list, or by name.
        pricing: What `quote` and `release` take.
    """

    text: str
    parameters: list[Any] | dict[str, Any] | None
    pricing: dict[str, Any]

    def dataset(self, catalog: Catalog) -> str:
        """Whose budget it draws on: that of the private tables that it names.

        What public tables hold is not known before a session reads them, so nothing else is judged here.
        """
        from sfumato.sql.asking import ask
        from sfumato.sql.text.dialects import understand

        asked = understand(self.text, self.parameters)
        check_priced(self.pricing, asked.epsilon)
        if (named := dataset_asked(asked.select, catalog)) is not None:
            return named
        tables: dict[str, Any] = {table.name: table for table in catalog.tables}
        tables |= {table.name: table for table in catalog.public}
        ask(self.text, tables, self.parameters)  # refuses, with the nearest table
        raise InvalidParameter("The query reads no private table.")


def dataset_asked(select: Expression, catalog: Catalog) -> str | None:
    """Whose budget a SELECT draws on: that of the first private table that it names; None: it names none."""
    from sqlglot import exp

    known = {table.name.lower(): table.dataset for table in catalog.tables}
    names = (source.name.lower() for source in select.find_all(exp.Table))
    return next((known[name] for name in names if name in known), None)


def dataset_of_rows(text: str, catalog: Catalog) -> str:
    """Whose budget pays: that of the private table that is named."""
    from sfumato.sql.asking_rows import check_names_a_table
    from sfumato.sql.text.dialects import understand

    known = {one.name.lower(): one.dataset for one in catalog.tables}
    if text.strip().lower() in known:
        return known[text.strip().lower()]
    check_names_a_table(text, [one.name for one in catalog.tables])
    if (named := dataset_asked(understand(text, None).select, catalog)) is not None:
        return named
    listed = ", ".join(one.name for one in catalog.tables)
    raise InvalidParameter(f"Say which table to learn from: a SELECT from one of {listed}.")


def question_of(sql: str | None, params: list[str] | None, pricing: PricingOptions) -> Question:
    """What the flags of `quote` and `query` say together."""
    terms = pricing.terms()
    return Question(text_of(sql), parameters_of(params), terms)


def check_priced(pricing: dict[str, Any], named: object = None) -> None:
    """Refuse a question without a price, unless its text names one."""
    if pricing["epsilon"] is None and pricing["error"] is None and named is None:
        raise InvalidParameter("Give a price, --epsilon 0.5, or the error you want, --error n=50.")


def text_of(sql: str | None) -> str:
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
        raise InvalidParameter('The question is empty: sfumato query "SELECT COUNT(*) FROM …" --epsilon 0.1')
    return text


def _check_slips(epsilon: str | None, errors: list[str], confidence: str) -> None:
    """Refuse percents where numbers are meant, with what to write instead.

    Raises:
        InvalidParameter: if there are any.
    """
    if epsilon is not None and epsilon.strip().endswith("%"):
        raise InvalidParameter("epsilon is a number, and no share of the budget: write --epsilon 0.1.")
    if share := next((pair for pair in errors if pair.strip().endswith("%")), None):
        name = share.rpartition("=")[0] or "n"
        raise InvalidParameter(
            f"An error is a number in the units of its column, and no share: write --error {name[:40]}=50."
        )
    number = confidence.strip().removesuffix("%").strip()
    if re.fullmatch(r"[0-9]{1,2}(\.[0-9]+)?", number) and (float(number) > 1 or number != confidence.strip()):
        raise InvalidParameter(
            f"confidence is between 0 and 1: write --confidence {float(number) / 100:.6g}."
        )


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


def parameters_of(pairs: list[str] | None) -> list[Any] | dict[str, Any] | None:
    """`--param 18` for `?`, `--param age=18` for `$age`: all with names, or none."""
    if not pairs:
        return None
    split = [pair.partition("=") for pair in pairs]
    named = [bool(sign) and name.isidentifier() for name, sign, _ in split]
    if all(named):
        if len({name for name, _, _ in split}) != len(split):
            raise InvalidParameter("--param names a parameter twice.")
        return {name: value_of(value) for name, _, value in split}
    if any(named):
        raise InvalidParameter("--param takes names for all parameters, as in --param age=18, or for none.")
    return [value_of(pair) for pair in pairs]


def value_of(text: str) -> Any:
    """A number or truth value where it reads as one, else the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


# In the digits 0 to 9: whatever else Python reads as a number is text.
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
