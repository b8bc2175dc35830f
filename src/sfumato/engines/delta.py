"""Delta tables: which Parquet files a snapshot has, by the log beside them, and nothing else of them."""

from __future__ import annotations

import os
from typing import Any

from sfumato.engines.base import masked
from sfumato.errors import MissingExtra, SourceUnusable

__all__ = ["files_of", "is_delta", "newest"]

_LOG = "_delta_log"
_PLAIN = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""Features of readers that leave the rows of a table to be those of its files."""


def is_delta(folder: str) -> bool:
    """Whether a folder is a Delta table, whose log says which of the files in it count."""
    return os.path.isdir(os.path.join(folder, _LOG))


def newest(folder: str) -> int:
    """The number of the snapshot that a table is at by now.

    Raises:
        SourceUnusable: if the log cannot be read.
        MissingExtra: if the reader of logs is not installed.
    """
    return int(_opened(folder, None).version())


def files_of(folder: str, snapshot: int | None = None) -> list[str]:
    """The paths of the files that a snapshot has; by default of the newest one.

    Privacy:
        By the log alone: no file of data is opened. Tables whose log takes rows of a file away, or gives its
        columns other names, are refused, since their rows are not those of their files.

    Raises:
        SourceUnusable: if there is no such snapshot, or its rows are not those of its files.
        MissingExtra: if the reader of logs is not installed.
    """
    table = _opened(folder, snapshot)
    protocol = table.protocol()
    needed = {*(protocol.reader_features or ())}
    if protocol.min_reader_version == 2 or not needed <= _PLAIN:
        raise SourceUnusable(
            f'The Delta table "{masked(folder)}" has deletion vectors, other names of columns, or something '
            "newer that is not read here: write it without."
        )
    return [str(path).removeprefix("file://") for path in table.file_uris()]


def _opened(folder: str, snapshot: int | None) -> Any:
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise MissingExtra(
            f'The source "{masked(folder)}" is a Delta table, whose log says which files count: '
            "pip install 'sfumato[delta]'."
        ) from None
    try:
        return DeltaTable(folder, version=snapshot)
    except Exception:
        which = "" if snapshot is None else f" at snapshot {snapshot}"
        told = f'The Delta table "{masked(folder)}"{which} cannot be opened; check that its log is whole.'
    raise SourceUnusable(told)
