"""Columns of an answer that are made when somebody asks for them: most keys are shown as they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.numeric.columns import ranks, taken
from sfumato.plan.questions.found import Found

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KeyColumn", "Later", "Values"]

T = TypeVar("T")

Values: TypeAlias = "np.ma.MaskedArray[Any, Any]"
"""One column of an answer, masked where it is NULL."""

_NOTHING = np.array(None, dtype=object)


class Later(Mapping[str, T]):
    """Values by name, each made when it is first asked for."""

    def __init__(self, made: Mapping[str, Callable[[], T]]) -> None:
        """Take what makes each of them."""
        self._made, self._known = made, dict[str, T]()

    def __getitem__(self, name: str) -> T:
        if name not in self._known:
            self._known[name] = self._made[name]()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __contains__(self, name: object) -> bool:
        return name in self._made


class KeyColumn:
    """One key of some groups.

    Attributes:
        rows: Which of the groups.
        place: Among the keys of the report.
    """

    def __init__(
        self, groups: Sequence[tuple[Any, ...]], key: int, rows: NDArray[np.int64], place: int
    ) -> None:
        """Take the key of these groups, in this order."""
        self._groups, self._key, self.rows, self.place = groups, key, rows, place

    def over(self, rows: NDArray[np.int64]) -> KeyColumn:
        """The same on some of the rows."""
        return KeyColumn(self._groups, self._key, self.rows[rows], self.place)

    @cached_property
    def array(self) -> pa.Array | None:
        """The values as an array of Arrow; None where they are public, and listed otherwise."""
        return taken(self._groups.columns[self._key], self.rows) if isinstance(self._groups, Found) else None

    @property
    def listed(self) -> list[Any]:
        """The values as plain ones of Python."""
        if isinstance(self._groups, Found):
            return Found([self.array]).values(0)
        every = [*map(itemgetter(self._key), self._groups)]
        return [*map(every.__getitem__, self.rows.tolist())]

    @property
    def values(self) -> Values:
        """The values as objects."""
        values = np.empty(len(self.rows), dtype=object)
        values[:] = self.listed
        return np.ma.MaskedArray(values, mask=np.equal(values, _NOTHING))

    def ranks(self, listed: Sequence[Any] | None) -> NDArray[np.float64]:
        """Numbers that sort like the values, NULL last: by their place in a list, or by themselves."""
        if listed is not None:
            places = {value: place for place, value in enumerate(dict.fromkeys(listed))}
            return np.array([places.get(value, np.inf) for value in self.listed], dtype=np.float64)
        if self.array is not None:
            return ranks(self.array)
        return _ranks(self.values)


def _ranks(values: Values) -> NDArray[np.float64]:
    there = ~np.ma.getmaskarray(values)
    codes = np.full(len(values), np.inf)
    codes[there] = np.unique(values.data[there], return_inverse=True)[1].reshape(-1)
    return codes
