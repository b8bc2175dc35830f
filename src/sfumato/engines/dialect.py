"""What a statement needs that engines say differently: one value an engine, and statements written over it.

Everything is a piece of the engine's own SQL with holes `{0}`, `{1}`, …, so that an engine brings its dialect
as data. What they must mean is said below, and `sfumato.testing.check_engine` tries it. sqlglot spells names,
constants, clauses and types; it does not translate meanings (a cast that gives NULL becomes one that raises),
so that nothing here is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.engines.templates import bound, filled, with_doubles
from sfumato.errors import QueryRefused
from sfumato.schema import Kind

__all__ = ["DUCKDB", "EARLIER", "PORTABLE", "Dialect", "Digest", "Template", "portable"]

Template: TypeAlias = str | Callable[[int], str]
"""SQL with a hole for each argument; or what gives it for a number of arguments."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A function of any number of values of any types that looks like chance, for random choices.

    Attributes:
        name: What it is called on record: another function has another name.
        sql: What an engine orders by. The first argument is a BIGINT, the key.
    """

    name: str
    sql: Callable[[int], str]


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """How an engine says what statements are made of.

    Attributes:
        name: What the engine is called in messages.
        writer: The sqlglot dialect that spells its names, constants, clauses and types.
        sum: The sum of integers, NULL over none: exact while it stays below 2**126, of any integer type.
        wide: An integer in a type in which products and sums below 2**126 are exact.
        casts: By kind, and `"wide"` for the type above, a cast that gives NULL where a value does not fit,
            whatever type it has. A whole number in a double becomes that number; text is read as it is.
            Timestamps and times are whole numbers of seconds.
        casts_from: The same where it is known to be a number (`"number"`) or of a kind, as a pair with the
            kind that it becomes: a quicker form. What is not here has the one of `casts`.
        is_nan: Whether a double is NaN; NULL for NULL.
        nan: The double NaN.
        ordered: A double as comparisons must see it: zeros of both signs equal, NaN equal to itself and
            above all numbers. `{0}` where comparisons do so anyway.
        truncate: A double rounded toward zero.
        whole: A double between −2**53 and 2**53 as a BIGINT, rounded toward zero; of others it is not asked.
            Empty where `truncate` and the cast are as quick.
        times: The product of two doubles: infinite if it is too large, 0 if it is too small.
        divide: The quotient of two BIGINT rounded toward zero, the second of them positive.
        wide_divide: The same where the first is `wide`.
        greatest: The greater of two BIGINT.
        type_of: The name of the type of a column, as text, over all of its rows, also if there are none.
        extremes: By kind, the least and the greatest value of a column, where MIN and MAX do not give them.
        shown: A value as text, as the portable digest reads it: see `PORTABLE`.
        digest: What decides whose rows and groups count where there are too many.
        materialised: Whether a WITH can be told to be computed once.
        windowed: Whether rows find the size of their unit by a window over them, and not by a join: one scan
            and one exchange where rows are on many machines.
        lists: By kind, a SELECT of the values that one text lists: numbers and days as `[1, 2]`, texts with
            `{1}` between them. A long list of a kind that is not here is written out.
        forms: Templates of scalar functions that are written differently here, by name.
        beside_constants: Shorter templates of those where one argument is a constant below 1e290 in size.
        binds: Whether an argument that a template names twice is computed first, by a subquery of its own.
        doubles: Whether a constant with an exponent is a double, and not a decimal.
        common: The scalar functions whose common form (`Function.sql`) was found to mean the same here; None:
            all of them. What is neither here nor in `forms` is refused before it is paid.
        refused: The scalar functions that are refused, by the reason, which the refusal says.
        different: Those that are not the same as on DuckDB to the last bit, by how they differ; total and
            within their facts like all others.
    """

    name: str
    writer: str
    sum: str
    wide: str
    casts: Mapping[str, str]
    is_nan: str
    nan: str
    ordered: str
    truncate: str
    divide: str
    wide_divide: str
    greatest: str
    type_of: str
    digest: Digest
    materialised: bool
    times: str = "{0} * {1}"
    whole: str = ""
    windowed: bool = False
    extremes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    shown: str = "TRY_CAST({0} AS VARCHAR)"
    casts_from: Mapping[tuple[str, str], str] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, Template] = field(default_factory=dict)
    beside_constants: Mapping[str, str] = field(default_factory=dict)
    binds: bool = False
    doubles: bool = True
    common: frozenset[str] | None = frozenset()
    refused: Mapping[str, frozenset[str]] = field(default_factory=dict)
    different: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def fill(self, template: str, *arguments: exp.Expr) -> exp.Expr:
        """A fresh tree of a piece of this dialect; an argument that is named twice is copied."""
        return filled(template, self.writer, arguments)

    def nan_test(self, value: exp.Expr) -> exp.Expr:
        """Whether a double is NaN."""
        return filled(self.is_nan, self.writer, (value,))

    def comparable(self, value: exp.Expr) -> exp.Expr:
        """A double as comparisons must see it."""
        return value if self.compares_alike else filled(self.ordered, self.writer, (value,))

    @property
    def compares_alike(self) -> bool:
        """Whether comparisons, lists and groups see doubles as `ordered` says without it."""
        return self.ordered == "{0}"

    def total(self, value: exp.Expr) -> exp.Expr:
        """The exact sum of integers."""
        return filled(self.sum, self.writer, (value,))

    def widened(self, value: exp.Expr) -> exp.Expr:
        """An integer that has room to be multiplied."""
        return filled(self.wide, self.writer, (value,))

    def attempt(self, value: exp.Expr, kind: Kind | str, of: Kind | None = None) -> exp.Expr:
        """The value cast to the type of a kind, or to `"wide"`; NULL where it does not fit.

        Args:
            value: Of any type.
            kind: What it becomes.
            of: The kind that it is of, if that is known; whole numbers may be doubles.
        """
        group = "number" if of in ("integer", "float") else str(of)
        own = self.casts_from.get((str(of), kind)) or self.casts_from.get((group, kind))
        return self.called(own or self.casts[kind], (value,))

    def called(self, template: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
        """A template that is filled; where the dialect says so, no argument is computed twice."""
        return (bound if self.binds else filled)(template, self.writer, arguments)

    def product(self, first: exp.Expr, second: exp.Expr) -> exp.Expr:
        """The product of two doubles."""
        return self.called(self.times, (first, second))

    def least(self, value: exp.Expr, kind: Kind | None) -> exp.Expr:
        """The least value of a column."""
        own = self.extremes.get(str(kind))
        return exp.Min(this=value) if own is None else self.fill(own[0], value)

    def most(self, value: exp.Expr, kind: Kind | None) -> exp.Expr:
        """The greatest value of a column."""
        own = self.extremes.get(str(kind))
        return exp.Max(this=value) if own is None else self.fill(own[1], value)

    def type_name(self, value: exp.Expr) -> exp.Expr:
        """The name of the type of a column, over all of its rows."""
        return filled(self.type_of, self.writer, (value,))

    def truncated(self, value: exp.Expr) -> exp.Expr:
        """A double rounded toward zero."""
        return filled(self.truncate, self.writer, (value,))

    def scaled(self, value: exp.Expr, power: exp.Expr, *, grows: bool) -> exp.Expr:
        """A double times a power of two as a BIGINT, rounded toward zero.

        Args:
            value: The double.
            power: The power of two, as a constant.
            grows: Whether it is at least 1.

        Privacy:
            Only for a branch of CASE that is computed where the product lies between −2**53 and 2**53. There
            a product that grows is neither too large nor too small for a double, so that the plain one, which
            some engines raise on otherwise, is defined.
        """
        if not self.whole or not grows:
            return self.attempt(self.truncated(self.product(value, power)), "integer", "float")
        return filled(self.whole, self.writer, (filled("{0} * {1}", self.writer, (value, power)),))

    def chosen_by(self, *values: exp.Expr) -> exp.Expr:
        """What rows are ordered by where some of them are chosen as if at random."""
        return filled(self.digest.sql(len(values)), self.writer, values)

    def choosing_by(self, name: str) -> Dialect:
        """The same dialect, in which the digest of that name chooses: the one that a dataset has on record.

        A version of an engine, or another engine, that does not have it refuses all that is chosen by it;
        every engine has the portable one. So whose rows and groups count is the same in all answers about a
        dataset, and in all steps of a fit that is gone on with in another process.
        """
        if name == self.digest.name:
            return self
        if name == PORTABLE.name:
            return replace(self, digest=portable(self.shown))

        def missing(count: int) -> str:
            del count
            raise QueryRefused(
                f"By the ledger, {name[:40]} decides which rows or groups of a unit count, and this version "
                f"of {self.name} does not have it.",
                "Use the engine and the version that the dataset was opened with.",
            )

        return replace(self, digest=Digest(name, missing))

    def form(self, function: str, common: Template) -> Template | None:
        """The template of a scalar function, given its common one; None: there is none that is sure."""
        if function in self.forms:
            return self.forms[function]
        return common if self.common is None or function in self.common else None

    def why_refused(self, function: str) -> str | None:
        """Why a scalar function has no form here; None if it has one, or nobody said why."""
        return next((reason for reason, names in self.refused.items() if function in names), None)

    def how_different(self, function: str) -> str | None:
        """How a scalar function differs from DuckDB's; None if it does not."""
        return next((how for how, names in self.different.items() if function in names), None)

    def text(self, statement: exp.Expr) -> str:
        """A statement as the engine reads it; the tree may be rewritten on the way, to the same meaning."""
        if not self.doubles:
            statement = with_doubles(statement)
        return statement.sql(dialect=self.writer, comments=False, copy=False)


def _listed(count: int) -> list[str]:
    return [f"{{{i}}}" for i in range(count)]


def portable(shown: str) -> Digest:
    """The portable digest, where values become text in this way."""

    def md5(count: int) -> str:
        parts = [f"COALESCE({shown.replace('{0}', argument)}, '!')" for argument in _listed(count)]
        return f"MD5({' || CHR(31) || '.join(parts)})"

    return Digest("md5/1", md5)


_SHOWN = (
    "CASE WHEN TYPEOF({0}) IN ('DOUBLE', 'FLOAT') AND TRY_CAST({0} AS VARCHAR) = '-0.0' THEN '0.0' "
    "ELSE TRY_CAST({0} AS VARCHAR) END"
)
PORTABLE = portable("TRY_CAST({0} AS VARCHAR)")
"""MD5 of the values as text: every engine has it, and no version changes it. A day without a text (in some
engines one beyond the calendar) counts like a missing one, so that no row makes a read fail.

The text is that of DuckDB, where `TRY_CAST` gives it: `true`; days as `2024-02-29`; doubles in the fewest
digits that mean them, with `.0` if they are whole,
as `1e+16` from there on and below 0.0001, `inf`, `nan`; zero best without a sign, since of equal values
any may be read (`Dialect.shown`)."""

DUCKDB = Dialect(
    name="duckdb",
    writer="duckdb",
    sum="SUM({0})",  # of 128 bits
    wide="CAST({0} AS HUGEINT)",
    casts={
        kind: f"TRY_CAST({{0}} AS {native})"
        for kind, native in {
            "integer": "BIGINT",
            "float": "DOUBLE",
            "boolean": "BOOLEAN",
            "text": "VARCHAR",
            "date": "DATE",
            "timestamp": "BIGINT",
            "time": "BIGINT",
            "wide": "HUGEINT",
        }.items()
    },
    is_nan="ISNAN({0})",
    nan="CAST('nan' AS DOUBLE)",
    ordered="{0}",
    truncate="TRUNC({0})",
    divide="{0} // {1}",
    wide_divide="{0} // {1}",
    greatest="GREATEST({0}, {1})",
    type_of="TYPEOF(MAX({0}))",
    # Once alone it is nearly linear in its arguments, and not all choices would be met.
    digest=Digest("duckdb-hash/1", lambda count: f"hash(hash({', '.join(_listed(count))}))"),
    materialised=True,
    shown=_SHOWN,
    lists={
        "integer": "(SELECT UNNEST(CAST({0} AS BIGINT[])))",
        "float": "(SELECT UNNEST(CAST({0} AS DOUBLE[])))",
        "date": "(SELECT UNNEST(CAST({0} AS DATE[])))",
        "text": "(SELECT UNNEST(STRING_SPLIT({0}, {1})))",
    },
    common=None,
)
"""DuckDB's dialect, which the common forms of functions are written in."""

EARLIER = DUCKDB.digest.name
"""What chose before its name was put on record."""
