"""The statements of a validation: few passes over a table, each cell read so that none can fail."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines._paths import literal
from sfumato.engines._tables import raw_column
from sfumato.engines.base import UNIT_COLUMN, pointer_column
from sfumato.engines.dialect import DUCKDB
from sfumato.engines.running import run
from sfumato.engines.scans import quoted
from sfumato.errors import EngineFailed, SourceUnusable
from sfumato.numeric.moments import seconds_of
from sfumato.plan.questions.sources import Scan
from sfumato.schema import ColumnType, Date, Enum, Float, Int, PrivateTable, Text, Time, Timestamp
from sfumato.sql.write.sources import lower_source
from sfumato.validation import days, numbers, patterns

__all__ = [
    "Cells",
    "Reader",
    "look_like",
    "read_columns",
    "read_groups",
    "read_ids",
    "read_units",
]

_WHOLE = r"-?(0|[1-9]\d{0,17})"


@dataclass(frozen=True, slots=True)
class Cells:
    """Exact counts of one column's cells; those of text are 0 where the source has another type.

    Attributes:
        present: Cells that are not empty.
        read: Those that are read as declared.
        outside: Those of them that are outside the bounds or the list of values.
        padded: Text between blanks.
        rounded: Numbers with a fraction, read as whole ones.
        points: Numbers whose points can be nothing but decimal points, as in 12.5.
        commas: Numbers whose commas can be nothing but decimal commas, as in 12,5.
        many_points: Numbers with several points, which part thousands.
        many_commas: Numbers with several commas, which part thousands.
        either_points: Numbers whose point may be a decimal one or part thousands, as in 1.234.
        either_commas: The same with a comma, as in 1,234.
        apart: Numbers with thousands apart by any sign, but for those of `either_…`.
        numeric: Numbers in any form.
        zeros: Text of digits that begins with a zero.
        whole: Text that looks like a whole number.
        with_points: Text that is a number where points are decimal points.
        with_commas: Text that is a number where commas are decimal commas.
        days: Text that looks like a day written 2024-12-31.
        written: Text that looks like a day in some other form.
        truths: Text that looks like a truth value.
        nothing: Words for nothing, such as NA.
        units: Text that looks like a number with a unit.
    """

    present: int
    read: int
    outside: int
    padded: int
    rounded: int
    points: int
    commas: int
    many_points: int
    many_commas: int
    either_points: int
    either_commas: int
    apart: int
    numeric: int
    zeros: int
    whole: int
    with_points: int
    with_commas: int
    days: int
    written: int
    truths: int
    nothing: int
    units: int


class Reader:
    """Runs statements over the tables of one instance of DuckDB; no failure tells anything of a row."""

    def __init__(self, connection: Any, timeout: float | None) -> None:
        self._connection = connection
        self._timeout = timeout

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        found: list[tuple[Any, ...]] = self._run(lambda: self._connection.execute(sql).fetchall())
        return found

    def do(self, work: Callable[[Any], object]) -> None:
        """Change something in the instance."""
        self._run(lambda: (work(self._connection), True)[1])

    def _run(self, work: Callable[[], Any]) -> Any:
        failed = False
        try:
            return run(work, self._connection.interrupt, timeout=self._timeout)
        except EngineFailed as error:
            if type(error) is not EngineFailed:  # stopped, or out of time
                raise
            failed = True
        if failed:
            raise SourceUnusable("The table cannot be read to its end; check that its source is whole.")
        return None


def read_columns(
    reader: Reader,
    table: str,
    schema: Mapping[str, ColumnType],
    texts: Iterable[str],
    *,
    decimal: str = ".",
) -> tuple[int, dict[str, Cells]]:
    """The number of rows, and the counts of each column, in one pass.

    Args:
        reader: What runs it.
        table: The name of a table that was planned with `raw`.
        schema: The columns to look at.
        texts: Those of them that the source has as text.
        decimal: How fractions are declared to be written.
    """
    as_text = set(texts)
    terms = ["count(*)"]
    for name, column in schema.items():
        terms += _terms(name, column, is_text=name in as_text, decimal=decimal)
    (row,) = reader.rows(f"SELECT {', '.join(terms)} FROM {quoted(table)}")
    size = len(Cells.__slots__)
    counts = {
        name: Cells(*map(int, row[1 + size * place : 1 + size * (place + 1)]))
        for place, name in enumerate(schema)
    }
    return int(row[0]), counts


def _terms(name: str, column: ColumnType, *, is_text: bool, decimal: str) -> list[str]:
    raw, value = quoted(raw_column(name)), quoted(name)
    beyond = _outside(value, column)
    # NaN is missing here, as it is to every question.
    no_number = _count(f"isnan({value})") if isinstance(column, Float) else "0"
    terms = [f"count({raw}) - {no_number}", f"count({value}) - {no_number}"]
    terms.append(_count(beyond) if beyond else "0")
    if not is_text:
        return [*terms, *["0"] * (len(Cells.__slots__) - 3)]
    with_points, with_commas = _number(raw, "."), _number(raw, ",")
    apart = numbers.is_written(raw, "apart")
    is_number, is_open = column.kind in ("integer", "float"), isinstance(column, Text)
    like = {
        f"{raw} <> trim({raw})": column.kind == "text",
        f"{_number(raw, decimal)} <> {value}": column.kind == "integer",
        **{numbers.is_written(raw, form): is_number or is_open for form in numbers.FORMS},
        f"({with_points} IS NOT NULL OR {with_commas} IS NOT NULL OR {apart}) "
        f"AND regexp_matches({raw}, '[0-9]')": is_number or is_open,
        rf"regexp_full_match(trim({raw}), '0\d+')": is_open,
        f"regexp_full_match(trim({raw}), '{_WHOLE}')": is_open,
        f"{with_points} IS NOT NULL AND regexp_matches({raw}, '[0-9]')": is_open,
        f"{with_commas} IS NOT NULL AND regexp_matches({raw}, '[0-9]')": is_open,
        f"TRY_CAST({raw} AS DATE) IS NOT NULL AND regexp_matches({raw}, '[0-9]')": is_open,
        f"regexp_full_match(trim({raw}), {literal(days.LIKE_DAYS)})": is_open,
        f"lower(trim({raw})) IN ('true', 'false', 'yes', 'no', 't', 'f', 'y', 'n')": is_open,
        patterns.nothing(raw): is_open,
        patterns.with_unit(raw): is_open,
    }
    return [*terms, *(_count(condition) if asked else "0" for condition, asked in like.items())]


def _number(raw: str, decimal: str) -> str:
    """A cell as a number, as a CSV file with that sign before fractions reads it."""
    cell = f"translate({raw}, ',.', '.,')" if decimal == "," else raw
    return f"TRY_CAST({cell} AS DOUBLE)"


def _count(condition: str) -> str:
    return f"count(*) FILTER (WHERE {condition})"


def _outside(value: str, column: ColumnType) -> str | None:
    """A condition on values that are read and are not as declared."""
    if isinstance(column, Enum):
        listed = [literal(v) if isinstance(v, str) else str(v) for v in column.values]
        return f"{value} NOT IN ({', '.join(listed)})"
    if isinstance(column, Int | Float) and column.lower is not None:
        low, high = (f"CAST({literal(str(float(b)))} AS DOUBLE)" for b in (column.lower, column.upper or 0))
        real = f"NOT isnan({value}) AND " if isinstance(column, Float) else ""
        return f"{real}({value} < {low} OR {value} > {high})"
    if isinstance(column, Date) and column.start is not None and column.end is not None:
        return f"{value} < DATE '{column.start}' OR {value} > DATE '{column.end}'"
    if isinstance(column, Timestamp | Time) and column.start is not None and column.end is not None:
        return f"{value} < {seconds_of(column.start)} OR {value} > {seconds_of(column.end)}"
    return None


def look_like(
    reader: Reader,
    table: str,
    name: str,
    column: ColumnType,
    *,
    unread: bool,
    outside: bool,
    forms: Iterable[str] = (),
) -> dict[str, int]:
    """What the cells of a column that do not fit look like: by a phrase how many."""
    raw, value = quoted(raw_column(name)), quoted(name)
    found: dict[str, int] = {}
    beyond = patterns.outside("cell", column)
    for asked, shown, where, listed in (
        (unread, raw, f"{raw} IS NOT NULL AND {value} IS NULL", patterns.unread("cell", column.kind, forms)),
        (outside and bool(beyond), value, _outside(value, column) or "false", beyond),
    ):
        if asked:
            terms = ", ".join(
                f"coalesce(sum(n) FILTER (WHERE {condition}), 0)" for condition in listed.values()
            )
            each = f"SELECT {shown} AS cell, count(*) AS n FROM {quoted(table)} WHERE {where} GROUP BY cell"
            (row,) = reader.rows(f"SELECT {terms} FROM ({each})")
            found |= {phrase: int(n) for phrase, n in zip(listed, row, strict=True) if n}
    return found


def _owned(chain: Sequence[PrivateTable], column: str | None = None) -> str:
    """Each row of the first table with the id of its owner; NULL where it reaches none."""
    shown = "" if column is None else f", a0.{quoted(column)} AS v"
    if chain[0].unit.window is not None:
        rows = lower_source(Scan(chain[0].name), {chain[0].name: chain[0]}, DUCKDB)
        return f"SELECT a0.{quoted(UNIT_COLUMN)} AS u{shown} FROM (SELECT * FROM {DUCKDB.text(rows)}) AS a0"
    text = f"FROM {quoted(chain[0].name)} AS a0"
    for place, (here, there) in enumerate(itertools.pairwise(chain)):
        pairs = " AND ".join(
            f"a{place}.{quoted(pointer_column(a))} = a{place + 1}.{quoted(pointer_column(b))}"
            for a, b in here.unit.on
        )
        text += f" LEFT JOIN {quoted(there.name)} AS a{place + 1} ON {pairs}"
    return f"SELECT a{len(chain) - 1}.{quoted(UNIT_COLUMN)} AS u{shown} {text}"


def read_units(reader: Reader, chain: Sequence[PrivateTable]) -> tuple[dict[int, int], int]:
    """By a number of rows how many units have so many, and the rows that belong to no unit."""
    each = f"SELECT u, count(*) AS n FROM ({_owned(chain)}) GROUP BY u"
    found = reader.rows(f"SELECT u IS NULL, n, count(*) FROM ({each}) GROUP BY ALL ORDER BY n")
    held = {int(n): int(units) for is_none, n, units in found if not is_none}
    return held, sum(int(n) for is_none, n, _ in found if is_none)


def read_groups(reader: Reader, chain: Sequence[PrivateTable], column: str) -> dict[int, int]:
    """By a number of values of a column how many units have so many."""
    each = f"SELECT u, count(DISTINCT v) AS n FROM ({_owned(chain, column)}) WHERE u IS NOT NULL GROUP BY u"
    found = reader.rows(f"SELECT n, count(*) FROM ({each}) WHERE n > 0 GROUP BY n ORDER BY n")
    return {int(n): int(units) for n, units in found}


def read_ids(reader: Reader, table: str) -> dict[str, int]:
    """How many ids of text are the same as another one but for blanks, case or leading zeros."""
    unit = quoted(UNIT_COLUMN)
    (row,) = reader.rows(f"SELECT typeof(any_value({unit})) FROM {quoted(table)}")
    if row[0] != "VARCHAR":
        return {}
    forms = {
        "blanks around them": "trim(u)",
        "upper and lower case": "lower(u)",
        "leading zeros": "CASE WHEN ltrim(u, '0') = '' THEN '0' ELSE ltrim(u, '0') END",
    }
    terms = ", ".join(f"count(*) - count(DISTINCT {form})" for form in forms.values())
    (row,) = reader.rows(
        f"SELECT {terms} FROM (SELECT DISTINCT {unit} AS u FROM {quoted(table)} WHERE {unit} IS NOT NULL)"
    )
    return {name: int(n) for name, n in zip(forms, row, strict=True) if n}
