"""The ids of units and the pointers to owners: which types tell people apart, and how several types compare.

| native type | as an id |
| --- | --- |
| whole numbers, DECIMAL, text, UUID, JSON, ENUM, BLOB, BIT, BOOLEAN, DATE | as it is |
| timestamps | as it is; one with a zone never equals one without |
| FLOAT, DOUBLE | as it is, but NaN is not an id; 0.0 and -0.0 are one number and one id |
| BIGNUM | as it is; 0 and -0 are one number and one id |
| INTERVAL | refused: a month equals 30 days, two ids would be one |
| TIME, TIME_NS, TIME WITH TIME ZONE | refused: a time of day tells nobody apart |
| nested types, VARIANT, GEOMETRY | refused |

`tests/engines/test_ids.py` searches values of every type for pairs that DuckDB takes for one though they
print differently, and holds the result to this table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sfumato.engines.kinds import ALL_NULL, CANONICAL, kind_of
from sfumato.schema import Kind

__all__ = ["OBJECT", "ZONED", "as_id", "common_type", "identifies", "keeps_apart", "pointer_type"]

OBJECT = "PYTHON OBJECT"
"""The type of ids from a column of Python objects, each written as bytes that tell its own type."""

ZONED = "ZONED "
"""Before TIMESTAMP_S or TIMESTAMP_MS: times that have a zone in the source, which DuckDB is not given."""

_FIELDS = {
    OBJECT: ("python object", "BLOB"),
    **{ZONED + unit: ("with a zone", unit) for unit in ("TIMESTAMP_S", "TIMESTAMP_MS")},
}
_APART = {native: f'STRUCT("{field}" {inner})' for native, (field, inner) in _FIELDS.items()}
"""Types of their own in SQL, so that their values are never compared with those of another source."""

_ALSO = {"BLOB", "BIT", *_APART, *_APART.values()}
_EXACT = {"FLOAT": 2**24, "DOUBLE": 2**53}
"""Below these a whole number is itself in the type; from there on it may also mean a neighbour."""
_SIGNED = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_WIDE = {"UBIGINT", "HUGEINT"}
_DECIMAL = re.compile(r"DECIMAL\((\d+),0\)")


def identifies(native: str) -> bool:
    """Whether values of this type can be the ids of units: see the table above."""
    return kind_of(native) not in ("time", "other") or native in _ALSO | ALL_NULL


def common_type(natives: Iterable[str]) -> str | None:
    """The type in which ids compare that come from columns of these types; None: from these they cannot.

    Columns of one type are left as they are. Whole numbers of several widths get one that holds all of them.
    Floats beside them, which is how a column of whole numbers is written where one is missing, count where
    they are whole and small enough to be exact. All else has no form that neither merges nor parts people.
    """
    known = {_APART.get(native, native) for native in natives} - ALL_NULL
    if not all(map(identifies, known)):
        return None
    if len(known) < 2:
        return known.pop() if known else '"NULL"'
    return _whole(known) or ("VARCHAR" if all(map(_is_text, known)) else None)


def pointer_type(natives: Iterable[str]) -> str | None:
    """The type in which a pointer is shown: one for whole numbers of any width, so that two ends meet.

    A pointer is declared on both ends and is never a float there; one of floats is taken for whole numbers.
    """
    known = set(natives) - ALL_NULL
    form = common_type(known | {"BIGINT"} if known & _EXACT.keys() else known)
    if form is None or form in ALL_NULL:
        return form
    return _whole({form}) or ("VARCHAR" if _is_text(form) else form)


def keeps_apart(natives: set[str], kind: Kind) -> bool:
    """Whether a column, read as its kind, is the same as if it were shown as a pointer.

    Args:
        natives: The types that it has as an id: those of the source itself, not those it is read in.
        kind: What it is declared to hold.
    """
    if kind in ("timestamp", "time"):  # numbers that are no time are one NULL
        return False
    return pointer_type(natives) == CANONICAL[kind] and not natives & _EXACT.keys()


def as_id(column: str, native: str, form: str) -> str:
    """SQL for an id or a pointer in the common type of its columns, NULL where there is none.

    Privacy:
        Claim: two values of the source give the same result only if they are the same number or the same
        text, whatever types the columns have; and a row's result is a function of its own value. Reason:
        each cast here is exact where it is made. A float that could mean two whole numbers gives NULL,
        and the row belongs to nobody.
    """
    if native in ALL_NULL:
        return column if form in ALL_NULL else f"CAST(NULL AS {form})"
    if native in _EXACT and form != native:
        exact = f"{column} = trunc({column}) AND abs({column}) < {_EXACT[native]}"
        return f"CASE WHEN {exact} THEN TRY_CAST({column} AS {form}) END"
    if native in _EXACT:
        # Zero without a sign: the portable digest reads the text of an id, and one unit has one.
        return f"CASE WHEN NOT isnan({column}) THEN {column} + CAST(0 AS {native}) END"
    if native in _FIELDS:
        return f'CASE WHEN {column} IS NOT NULL THEN struct_pack("{_FIELDS[native][0]}" := {column}) END'
    return column if native == form else f"TRY_CAST({column} AS {form})"


def _whole(natives: set[str]) -> str | None:
    """The type that holds all whole numbers of these; floats may be among them, but not alone."""
    widths = {_width(native) for native in natives if native not in _EXACT}
    if not widths or None in widths:
        return None
    return "HUGEINT" if "HUGEINT" in widths else "BIGINT"


def _width(native: str) -> str | None:
    digits = _DECIMAL.fullmatch(native)
    if native in _SIGNED or (digits is not None and int(digits[1]) <= 18):
        return "BIGINT"
    return "HUGEINT" if native in _WIDE or digits is not None else None


def _is_text(native: str) -> bool:
    return native == "VARCHAR" or native.startswith("ENUM(")
