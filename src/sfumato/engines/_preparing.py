"""What every engine needs to prepare a table: what is wanted, what comes of it, how the work is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TypeVar

from sfumato._dataclasses import dataclass
from sfumato.engines.dialect import Digest
from sfumato.engines.prepared import written_note
from sfumato.engines.running import run
from sfumato.errors import Cancelled, EngineFailed
from sfumato.schema import Kind, PrivateTable

__all__ = ["FAILED", "Prepared", "Wanted", "ran"]

_T = TypeVar("_T")
FAILED = "could not be prepared; check that its source is whole and that there is room on the disk."
"""What is said of a source when the work failed, whatever the reason: the engine's own words hold data."""


class _Interrupted(Cancelled):
    """Ctrl-C while a table was prepared."""

    headline = "Interrupted; nothing was written."


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared table.

    Attributes:
        path: Where it is: a file, or an address.
        table: Whose rows it has.
        unit: The column whose values are the units.
        columns: The declared columns.
        bytes: How large it is.
        groups: The columns of the grouping that it was prepared for; empty: none.
    """

    path: Path | str
    table: str
    unit: str
    columns: tuple[str, ...]
    bytes: int
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be prepared.

    Attributes:
        table: Whose rows.
        unit: The column whose values are the units.
        groups: The columns of a grouping, as they are declared; empty: none.
        salt: The key of the hash that ranks.
    """

    table: PrivateTable
    unit: str
    groups: tuple[str, ...]
    salt: bytes = field(repr=False)

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The declared columns."""
        return {name: column.kind for name, column in self.table.schema.items()}

    def note(self, exact: Sequence[str], digest: Digest) -> str:
        """What the prepared table says about itself."""
        return written_note(self.table, self.salt, self.groups, exact, digest)

    def made(self, path: Path | str, size: int) -> Prepared:
        """What came of it."""
        return Prepared(path, self.table.name, self.unit, tuple(self.kinds), size, self.groups)


def ran(
    work: Callable[[], _T],
    interrupt: Callable[[], object],
    timeout: float | None,
    watch: Callable[[], object] | None = None,
) -> _T | None:
    """What the work gives; None if it failed: the exception ends in the thread that it arose in.

    Raises:
        Cancelled: on Ctrl-C.
    """
    stopped = False
    try:
        return run(work, interrupt, timeout=timeout, watch=watch)
    except Cancelled:
        stopped = True
    except EngineFailed:
        pass
    if stopped:
        raise _Interrupted("Preparing was interrupted; what was written so far is removed.")
    return None
