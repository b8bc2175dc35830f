"""Who may be which row: people whose values are known, beside the rows of a released table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.anonymity import Hierarchy
from sfumato.anonymity.codes import Coded, Codes, classes_of, encode, text_of
from sfumato.anonymity.given import whole
from sfumato.anonymity.tables import checked, columns_of, names_given, opened
from sfumato.attacks.labels import known, meaning, steps_of
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Flags",
    "Grouped",
    "Matches",
    "Side",
    "beside",
    "blocks",
    "check_hierarchies",
    "grouped",
    "matched",
    "named",
    "one_name",
    "person_table",
    "read",
    "read_with_records",
    "selected",
    "together_coded",
    "together_typed",
]

Flags = npt.NDArray[np.bool_]
_BLOCK = 4_000_000  # cells of people by classes that are looked at together
_NOBODY = np.iinfo(np.int64).max


def named(given: str | Sequence[str], what: str) -> list[str]:
    """The names of some columns, at least one.

    Raises:
        InvalidParameter: if there is none, or one is given twice.
    """
    names = names_given(given, what)
    if not names:
        raise InvalidParameter(f"{what} must name at least one column.")
    return names


def one_name(given: object, what: str) -> str:
    """The name of one column.

    Raises:
        InvalidParameter: if it is not one.
    """
    if not isinstance(given, str) or not given:
        raise InvalidParameter(f"{what} must be the name of one column.")
    return given


def person_table(person: Mapping[str, Any], names: Sequence[str]) -> pa.Table:
    """One person as a table of one row.

    Raises:
        InvalidParameter: if nothing is known of a column, or what is known is not a single value.
    """
    import pyarrow as pa

    missing = [name for name in names if name not in person]
    if missing:
        raise InvalidParameter(
            f'Nothing is said of the person in "{missing[0][:100]}"; add it, or leave it out.'
        )
    try:
        return pa.table({name: [person[name]] for name in names})
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise InvalidParameter(
            "Each value known of a person must be text, a number, a day or None."
        ) from None


def read(table: Source, names: Sequence[str]) -> pa.Table:
    """These columns of all rows in their order, under these names.

    Raises:
        InvalidParameter: for a column that the table does not have, or a table without rows.
        SourceUnusable: if it cannot be read.
    """
    if not names:
        return selected(table, names)[0]
    # Only what is asked for: to find the types of all columns of a wide file takes long.
    with opened(table, names) as rows:
        rows._cursor.execute("SET preserve_insertion_order = true")
        chosen = rows.all()
        checked(chosen.num_rows, rows.shown)
    return chosen.rename_columns(list(names))


def read_with_records(table: Source, names: Sequence[str]) -> tuple[pa.Table, Codes, bool]:
    """These columns, for each row the number of its record, and whether the table has more columns.

    Raises:
        InvalidParameter: for a column that the table does not have, or a table without rows.
        SourceUnusable: if it cannot be read.
    """
    chosen, everything = selected(table, names)
    return chosen, _records(everything), everything.num_columns > chosen.num_columns


def _records(table: pa.Table) -> Codes:
    """For each row the number of its record: copies of a row, alike in every column, are one.

    Rows are copies where they are in the table as often as most are. Where most rows are there once, two that
    are alike are two people; where most stand twice, somebody wrote each of them twice.
    """
    alike = grouped([_codes(table, name) for name in table.column_names])
    is_copied = alike.sizes <= int(np.median(alike.sizes))
    records: Codes = np.where(is_copied[alike.of_row], alike.first[alike.of_row], np.arange(table.num_rows))
    return records


def _codes(table: pa.Table, name: str) -> Codes:
    try:
        return encode(table, name).codes
    except InvalidParameter:  # lists and the like have no order, but are alike or not
        texts = [str(value) for value in table.column(name).to_pylist()]
        codes: Codes = np.unique(np.array(texts, dtype=object), return_inverse=True)[1].astype(np.int64)
        return codes


def selected(table: Source, names: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """These columns of all rows in their order, under these names, and all columns.

    Raises:
        InvalidParameter: for a column that the table does not have, or a table without rows.
        SourceUnusable: if it cannot be read.
    """
    everything, shown, _ = whole(table)
    checked(everything.num_rows, shown)
    places = columns_of(everything.column_names, names, shown)
    return everything.select(places).rename_columns(list(names)), everything


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One column of two tables as codes of the same values."""

    coded: Coded
    first: Codes
    second: Codes


def beside(one: pa.Table, other: pa.Table, name: str) -> Side:
    """A column of two tables side by side."""
    coded, (first, second) = together_coded([one.column(name), other.column(name)], name)
    return Side(coded, first, second)


def together_coded(columns: Sequence[Any], name: str) -> tuple[Coded, list[Codes]]:
    """Columns as codes of the same values: numbers equal as numbers, else values as they are written.

    Raises:
        InvalidParameter: if values are nested.
    """
    import pyarrow as pa

    alike = together_typed(columns)
    joined = pa.chunked_array([chunk for column in alike for chunk in column.chunks], alike[0].type)
    coded = encode(pa.table({name: joined}), name)
    ends = np.cumsum([len(column) for column in alike])[:-1]
    return coded, np.split(coded.codes, ends)


def together_typed(columns: Sequence[Any]) -> list[Any]:
    """The columns in one type."""
    import pyarrow as pa

    def is_number(kind: Any) -> bool:
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))

    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in columns
    ]
    kinds = [column.type for column in plain]
    if all(kind == kinds[0] for kind in kinds):
        return plain
    if all(map(is_number, kinds)):
        whole_numbers = all(map(pa.types.is_integer, kinds)) and pa.uint64() not in kinds
        return [column.cast(pa.int64() if whole_numbers else pa.float64(), safe=False) for column in plain]
    texts = [[text_of(value) for value in column.to_pylist()] for column in plain]
    return [pa.chunked_array([pa.array(words, pa.large_string())]) for words in texts]


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """The rows of a table by their values in some columns.

    Attributes:
        of_row: The class of each row.
        sizes: How many rows each class has.
        first: The first row of each class.
    """

    of_row: Codes
    sizes: Codes
    first: Codes

    def extremes(self, codes: Codes) -> tuple[Codes, Codes]:
        """The least and the largest code in each class."""
        low = np.full(len(self.sizes), _NOBODY)
        high = np.full(len(self.sizes), -1)
        np.minimum.at(low, self.of_row, codes)
        np.maximum.at(high, self.of_row, codes)
        return low, high


def grouped(columns: Sequence[Codes]) -> Grouped:
    """The classes of rows with these codes."""
    rows = len(columns[0])
    of_row, count = classes_of(columns, rows)
    first = np.empty(count, dtype=np.int64)
    first[of_row[::-1]] = np.arange(rows)[::-1]
    return Grouped(of_row, np.bincount(of_row, minlength=count), first)


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """For each person the rows that may be theirs.

    Attributes:
        counts: How many there are.
        row: The first of them, -1 if there is none.
        low: The least code of the secret among them.
        high: The largest one; equal to `low` exactly where all have the same secret.
    """

    counts: Codes
    row: Codes
    low: Codes
    high: Codes

    @property
    def alone(self) -> Flags:
        """Who has a match, and one secret in all of them."""
        flags: Flags = (self.counts > 0) & (self.low == self.high)
        return flags


def matched(
    people: pa.Table,
    released: pa.Table,
    on: Sequence[str],
    *,
    secret: Codes | None = None,
    labels: bool = False,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> Matches:
    """The rows that each person may be.

    Args:
        people: What is known of each.
        released: The rows.
        on: The columns that both have.
        secret: A code for each row.
        labels: Whether the rows have labels that cover values, rather than values.
        hierarchies: What the labels of some columns come from.
    """
    hidden = np.zeros(released.num_rows, dtype=np.int64) if secret is None else secret
    if not labels and not hierarchies:
        return _exactly(people, released, on, hidden)
    classes = grouped([encode(released, name).codes for name in on])
    alike = grouped([encode(people, name).codes for name in on])
    low, high = classes.extremes(hidden)
    matches = Matches(*(np.full(len(alike.sizes), empty) for empty in (0, -1, _NOBODY, -1)))
    for who, may_be in blocks(people, released, on, alike, classes, hierarchies):
        matches.counts[who] = may_be @ classes.sizes
        matches.low[who] = np.where(may_be, low, _NOBODY).min(axis=1)
        matches.high[who] = np.where(may_be, high, -1).max(axis=1)
        first = np.where(may_be, classes.first, _NOBODY).min(axis=1)
        matches.row[who] = np.where(first == _NOBODY, -1, first)
    back = alike.of_row
    return Matches(matches.counts[back], matches.row[back], matches.low[back], matches.high[back])


def _exactly(people: pa.Table, released: pa.Table, on: Sequence[str], hidden: Codes) -> Matches:
    rows = people.num_rows
    sides = [beside(people, released, name) for name in on]
    both = grouped([side.coded.codes for side in sides])
    # People come first in the classes; those of the rows alone follow from the rows' part.
    mine, theirs = both.of_row[:rows], both.of_row[rows:]
    count = len(both.sizes)
    sizes = np.bincount(theirs, minlength=count)
    first = np.full(count, -1)
    first[theirs[::-1]] = np.arange(len(theirs))[::-1]
    low, high = Grouped(theirs, sizes, first).extremes(hidden)
    return Matches(sizes[mine], first[mine], low[mine], high[mine])


def blocks(
    people: pa.Table,
    released: pa.Table,
    on: Sequence[str],
    alike: Grouped,
    classes: Grouped,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> Iterator[tuple[slice, Flags]]:
    """Some kinds of people at a time, and for each of them which classes of rows may hold theirs.

    Args:
        people: What is known of each.
        released: The rows.
        on: The columns that both have.
        alike: The people by these columns.
        classes: The rows by these columns.
        hierarchies: What the labels of some columns come from.
    """
    check_hierarchies(hierarchies, on)
    mine = [encode(people, name) for name in on]
    theirs = [encode(released, name) for name in on]
    step = max(1, _BLOCK // max(1, len(classes.sizes)))
    for start in range(0, len(alike.sizes), step):
        some = alike.first[start : start + step]
        may_be = np.ones((len(some), len(classes.sizes)), dtype=bool)
        for own, told in zip(mine, theirs, strict=True):
            values, back = np.unique(own.codes[some], return_inverse=True)
            way = (hierarchies or {}).get(own.name)
            table = _covered([own.values[value] for value in values], told, way)
            may_be &= table[back][:, told.codes[classes.first]]
        yield slice(start, start + len(some)), may_be


def check_hierarchies(hierarchies: Mapping[str, Hierarchy] | None, on: Sequence[str]) -> None:
    """Refuse what is not a hierarchy, or is of a column that nobody looks at.

    Raises:
        InvalidParameter: if there is one.
    """
    for name, hierarchy in (hierarchies or {}).items():
        if name not in on or not isinstance(hierarchy, Hierarchy):
            raise InvalidParameter(
                "hierarchies must give a Hierarchy for columns that are known, by their names."
            )


def _covered(values: Sequence[object], told: Coded, hierarchy: Hierarchy | None) -> Flags:
    """For each value which of the labels cover it."""
    covers = np.zeros((len(values), len(told.values)), dtype=bool)
    texts = [text_of(label) for label in told.values]
    if hierarchy is not None:
        for i, value in enumerate(values):
            steps = steps_of(value, hierarchy)
            covers[i] = [text in steps for text in texts]
        return covers
    places: dict[str | None, list[int]] = {}
    for place, text in enumerate(texts):
        places.setdefault(text, []).append(place)
    meant = [(place, meaning(text)) for place, text in enumerate(texts) if text is not None]
    wide = [(place, stands_for) for place, stands_for in meant if stands_for is not None]
    for i, value in enumerate(values):
        exact = known(value)
        covers[i, places.get(exact.text, [])] = True
        for place, stands_for in wide:
            if stands_for(exact):
                covers[i, place] = True
    return covers
