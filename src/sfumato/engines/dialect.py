"""What a statement needs that engines say differently: one value an engine, and statements written over it.

Everything is a piece of the engine's own SQL with holes `{0}`, `{1}`, …, so that an engine brings its dialect
as data. What they must mean is said below, and `sfumato.testing.check_engine` tries it. sqlglot spells names,
constants, clauses and types; it does not translate meanings (a cast that gives NULL becomes one that raises),
so that nothing here is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.engines.templates import filled
from sfumato.errors import QueryRefused
from sfumato.schema import Kind

__all__ = ["DUCKDB", "EARLIER", "PORTABLE", "Dialect", "Digest", "Template"]

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
        casts: By kind, and `"wide"` for the type above, a cast that gives NULL where a value does not fit. A
            whole number in a double becomes that number; text is read as it is.
        is_nan: Whether a double is NaN; NULL for NULL.
        nan: The double NaN.
        ordered: A double as comparisons must see it: zeros of both signs equal, NaN equal to itself and
            above all numbers. `{0}` where comparisons do so anyway.
        truncate: A double rounded toward zero.
        divide: The quotient of two BIGINT rounded toward zero, the second of them positive.
        wide_divide: The same where the first is `wide`.
        greatest: The greater of two BIGINT.
        type_of: The name of the type of a value, as text, also if it is NULL.
        digest: What decides whose rows and groups count where there are too many.
        materialised: Whether a WITH can be told to be computed once.
        lists: By kind, a SELECT of the values that one text lists: numbers and days as `[1, 2]`, texts with
            `{1}` between them. A long list of a kind that is not here is written out.
        forms: Templates of scalar functions that are written differently here, by name.
        common: The scalar functions whose common form (`Function.sql`) was found to mean the same here; None:
            all of them. What is neither here nor in `forms` is refused before it is paid.
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
    lists: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, Template] = field(default_factory=dict)
    common: frozenset[str] | None = frozenset()

    def fill(self, template: str, *arguments: exp.Expr) -> exp.Expr:
        """A fresh tree of a piece of this dialect; an argument that is named twice is copied."""
        return filled(template, self.writer, arguments)

    def nan_test(self, value: exp.Expr) -> exp.Expr:
        """Whether a double is NaN."""
        return filled(self.is_nan, self.writer, (value,))

    def comparable(self, value: exp.Expr) -> exp.Expr:
        """A double as comparisons must see it."""
        return value if self.ordered == "{0}" else filled(self.ordered, self.writer, (value,))

    def total(self, value: exp.Expr) -> exp.Expr:
        """The exact sum of integers."""
        return filled(self.sum, self.writer, (value,))

    def widened(self, value: exp.Expr) -> exp.Expr:
        """An integer that has room to be multiplied."""
        return filled(self.wide, self.writer, (value,))

    def attempt(self, value: exp.Expr, kind: Kind | str) -> exp.Expr:
        """The value cast to the type of a kind, or to `"wide"`; NULL where it does not fit."""
        return filled(self.casts[kind], self.writer, (value,))

    def truncated(self, value: exp.Expr) -> exp.Expr:
        """A double rounded toward zero."""
        return filled(self.truncate, self.writer, (value,))

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
            return replace(self, digest=PORTABLE)

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

    def text(self, statement: exp.Expr) -> str:
        """A statement as the engine reads it; the tree may be rewritten on the way, to the same meaning."""
        return statement.sql(dialect=self.writer, comments=False, copy=False)


def _listed(count: int) -> list[str]:
    return [f"{{{i}}}" for i in range(count)]


def _md5(count: int) -> str:
    parts = [f"COALESCE(TRY_CAST({argument} AS VARCHAR), '!')" for argument in _listed(count)]
    return f"MD5({' || CHR(31) || '.join(parts)})"


PORTABLE = Digest("md5/1", _md5)
"""MD5 of the values as text: every engine has it, and no version changes it. A day without a text (in some
engines one beyond the calendar) counts like a missing one, so that no row makes a read fail."""

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
    type_of="TYPEOF({0})",
    # Once alone it is nearly linear in its arguments, and not all choices would be met.
    digest=Digest("duckdb-hash/1", lambda count: f"hash(hash({', '.join(_listed(count))}))"),
    materialised=True,
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
