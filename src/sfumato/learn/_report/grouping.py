"""Groups of rows, by columns of the table or by labels of one's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.learn._core.frames import column_of, names_of
from sfumato.render import key

__all__ = ["EVERYBODY", "Group", "groups_of", "rows_in", "taken"]

EVERYBODY = "everybody"
_MOST = 100


class Group(NamedTuple):
    """Some of the rows.

    Attributes:
        name: Such as `sex=F`, or `sex=F, region=North`.
        inside: Whether each row is in it.
    """

    name: str
    inside: NDArray[np.bool_]


def groups_of(given: Any, X: Any, size: int, *, cross: bool) -> list[Group]:
    """Everybody first, then each group, those of one column together and the largest first.

    Args:
        given: Names of columns of X; or labels, one a row, alone or by the name of what they are; or None.
        X: The table, for columns by name.
        size: How many rows there are.
        cross: Whether groups are those with the same values in all columns, not in each by itself.

    Raises:
        InvalidParameter: if a column is not there, or has too many values to be groups.
    """
    columns = _columns(given, X)
    for name, labels in columns.items():
        if len(labels) != size:
            raise InvalidParameter(f"The groups by {name[:60]!r} must have one label for each row.")
    if cross and len(columns) > 1:
        texts = {name: [f"{name}={_label(label)}" for label in labels] for name, labels in columns.items()}
        joined = [", ".join(parts) for parts in zip(*texts.values(), strict=True)]
        return [_everybody(size), *_split(joined, " and ".join(columns))]
    found = [_everybody(size)]
    for name, labels in columns.items():
        prefix = f"{name}=" if name else ""
        found += _split([f"{prefix}{_label(label)}" for label in labels], name or "groups")
    return found


def _everybody(size: int) -> Group:
    return Group(EVERYBODY, np.ones(size, bool))


def _split(texts: list[str], name: str) -> list[Group]:
    values, places, counts = np.unique(np.array(texts, dtype=str), return_inverse=True, return_counts=True)
    if len(values) > _MOST:
        raise InvalidParameter(
            f"{name[:60]!r} has more than {_MOST} values: give coarser groups, such as ten years for an age."
        )
    order = sorted(range(len(values)), key=lambda at: (-counts[at], values[at]))
    return [Group(str(values[at]), places == at) for at in order]


def _columns(given: Any, X: Any) -> dict[str, list[Any]]:
    if given is None:
        return {}
    if isinstance(given, str):
        return {given: _named(X, given)}
    if isinstance(given, Mapping):
        return {str(name): _listed(labels) for name, labels in given.items()}
    names = names_of(given)
    if names is not None:
        return {name: _listed(column_of(given, name)) for name in names}
    if isinstance(given, list | tuple) and names_of(X) is not None and _is_names(given, names_of(X) or []):
        return {name: _named(X, name) for name in given}
    return {"": _listed(given)}


def _is_names(given: Sequence[Any], names: list[str]) -> bool:
    """Whether a list is of columns, not of labels: it has none twice, and one at least is a column."""
    return len(set(map(str, given))) == len(given) and any(name in names for name in given)


def _named(X: Any, name: str) -> list[Any]:
    names = names_of(X)
    if names is None:
        raise InvalidParameter(
            f"An array has no column {name[:60]!r}: give groups as labels, one for each row."
        )
    if name not in names:
        raise InvalidParameter(f"There is no column {name[:60]!r}. Columns: {', '.join(names)[:200]}.")
    return _listed(column_of(X, name))


def _listed(labels: Any) -> list[Any]:
    if isinstance(labels, pa.Array | pa.ChunkedArray):
        return list(labels.to_pylist())
    values = np.asarray(labels)
    if values.ndim != 1:
        raise InvalidParameter("Groups are labels, one for each row.")
    return list(values.tolist())


def _label(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "(none)"
    return key(value)


def taken(X: Any, places: NDArray[np.integer]) -> Any:
    """Some rows of a table, as the same kind of table."""
    if isinstance(X, pa.Table):
        return X.take(pa.array(places))
    if hasattr(X, "iloc"):
        return X.iloc[places]
    return X[places] if hasattr(X, "columns") else np.asarray(X)[places]


def rows_in(X: Any) -> int:
    """How many rows a table has."""
    return int(X.num_rows) if isinstance(X, pa.Table) else len(X)
