"""Groups found in the data, as columns: an array for each key, and tuples only where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from sfumato.numeric.columns import sorted_rows, taken, to_list

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["Found"]


class Found(Sequence[tuple[Any, ...]]):
    """The keys of groups: to be read like a tuple of tuples, and held as an Arrow array for each key.

    Attributes:
        columns: One array for each key: texts, whole numbers of 64 bits, days or truth values.
    """

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        """Hold the keys of at least one column."""
        self.columns = tuple(columns)

    @cached_property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """A tuple for each group."""
        return tuple(zip(*(self.values(key) for key in range(len(self.columns))), strict=True))

    def values(self, key: int) -> list[Any]:
        """The values of one key."""
        import pyarrow as pa

        return to_list(pa.chunked_array([self.columns[key]]))

    def first(self, key: int) -> Any:
        """The first value of a key that is not NULL; None if there is none."""
        column = self.columns[key]
        return next(
            (value for place in range(len(column)) if (value := column[place].as_py()) is not None), None
        )

    def taken(self, rows: NDArray[np.int64]) -> Found:
        """Some of the groups, in this order."""
        return Found([taken(column, rows) for column in self.columns])

    @property
    def order(self) -> NDArray[np.int64]:
        """The groups by their first key, then their second, …; NULL comes last."""
        return sorted_rows(self.columns)

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    @overload
    def __getitem__(self, place: int) -> tuple[Any, ...]: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[tuple[Any, ...], ...]: ...

    def __getitem__(self, place: int | slice) -> tuple[Any, ...]:
        return self.rows[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | Found) and self.rows == tuple(other)

    def __hash__(self) -> int:
        return hash(self.rows)
