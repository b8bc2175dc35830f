"""Names as SQL takes them, for messages that can be followed to the letter."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from sfumato.errors import InvalidParameter, UnknownName

__all__ = ["NotAList", "in_sql", "nearest", "no_column", "no_method", "unused"]

_NEAR = 0.75  # `name` is no slip of `income`
_SHORT = 3
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that mean something else where a column is meant.
_RESERVED = """
    all alter analyse analyze and any array as asc asymmetric between both case cast check collate column
    connect_by_root constraint create cross cube current_catalog current_date current_time
    current_timestamp current_user default deferrable desc describe distinct do drop else end except false
    fetch for force foreign from glob grant group having if ilike in initially inner insert install
    intersect interval into is join lambda lateral leading like limit localtime localtimestamp lock map
    not notnull null offset on only or order outer partitioned_by pivot pivot_longer pivot_wider placing
    positional primary qualify references regexp returning revoke rlike rollback rollup select
    session_user show some summarize symmetric table tablesample then to trailing true uncache union
    unique unpivot using variadic when where window with xor
"""


def in_sql(name: str) -> str:
    """A column's name as a query must write it: in double quotes where it needs them."""
    if _BARE.fullmatch(name) and name.lower() not in _RESERVED.split():
        return name
    return '"' + name.replace('"', '""') + '"'


def unused(name: str, taken: dict[str, int]) -> str:
    """The name, with a number where it is taken already; it is taken from then on.

    Args:
        name: As it is wanted.
        taken: In lower case, each with the last number that was tried for it, so that none is tried twice.
    """
    wanted = candidate = name or "column"
    number = taken.get(wanted.lower(), 1)
    while candidate.lower() in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken[wanted.lower()] = number
    taken.setdefault(candidate.lower(), 1)
    return candidate


def nearest(name: str, known: Collection[str], kind: str, *, listed: Collection[str] | None = None) -> str:
    """The known name that the analyst may have meant, or the list of them, as in `Columns: country, city`.

    Args:
        name: As the analyst wrote it.
        known: The names that may be meant.
        kind: What they are: "Columns", "Tables".
        listed: Those of them that the list shows; all by default.
    """
    spelt = {other.lower(): other for other in known}
    near = difflib.get_close_matches(name.lower(), list(spelt), n=1, cutoff=_NEAR)
    near = near or [other for other in spelt if _is_slip(name.lower(), other)][:1]
    if near:
        return f"Did you mean {spelt[near[0]]}?"
    every = known if listed is None else listed
    first = list(every)[:12]
    if not first:
        return ""
    more = len(every) - len(first)
    return f"{kind}: {', '.join(first)}{f' and {more:,} more' if more else ''}."


def _is_slip(name: str, other: str) -> bool:
    """Whether a word is another one's beginning, or that one but for a letter or its schema."""
    if len(name) < _SHORT:  # any letter is near any other
        return False
    one = len(name) == len(other) and sum(a != b for a, b in zip(name, other, strict=True)) == 1
    begun = other.startswith(name)
    return one or begun or sorted(name) == sorted(other) or name.rpartition(".")[2] == other


def no_method(owner: object, called: str, name: str, habits: Mapping[str, str]) -> AttributeError:
    """The error of a method or attribute that an object of ours does not have, with the nearest one.

    Args:
        owner: The object.
        called: What the analyst calls it.
        name: What was asked for.
        habits: What to write instead of names that other libraries have.
    """
    if name.startswith("_"):  # what tools look for; nobody wrote it
        return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}")
    known = [attribute for attribute in dir(type(owner)) if not attribute.startswith("_")]
    fix = habits.get(name) or nearest(name, known, "There are", listed=sorted(known))
    return UnknownName(f"{called} has no {name[:60]}. {fix}".strip())


def no_column(owner: object, name: str, columns: Collection[str]) -> AttributeError:
    """The error of a column that was written as a part of a table, `t.age` or `t["age"]`.

    Args:
        owner: The table.
        name: What was asked for.
        columns: The columns that it has: one that is near goes before a method that is.
    """
    spelt = {column.lower(): column for column in columns}
    near = difflib.get_close_matches(name.lower(), list(spelt), n=1, cutoff=0.7)
    if not near:
        return no_method(owner, "A table", name, {})
    column = f'sf.col("{spelt[near[0]]}")'
    what = f"{name} is a column" if spelt[near[0]] == name else f"A table has no {name[:60]}"
    return UnknownName(
        f"{what}: write {column}, as in .filter({column}.is_not_null()) or .agg(x={column}.count())."
    )


class NotAList:
    """What is no list in Python: one of our errors for an index, a loop or a length, with what to write."""

    __slots__ = ()
    _not_a_list: ClassVar[str]

    def __getitem__(self, name: object) -> Any:
        raise InvalidParameter(self._not_a_list)

    def __iter__(self) -> Any:
        raise InvalidParameter(self._not_a_list)

    def __len__(self) -> int:
        raise InvalidParameter(self._not_a_list)

    def __bool__(self) -> bool:
        return True
