"""Sources as frames of Spark: tables of catalogs, Parquet files and Arrow tables."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar

from sfumato._dataclasses import dataclass
from sfumato.engines.base import Source, check_address, shown_source
from sfumato.engines.prepared import Note
from sfumato.engines.sources import Files, locate
from sfumato.engines.spark.arrow import inexact, openable
from sfumato.engines.spark.catalogs import check_format, details_of, is_table
from sfumato.engines.spark.folders import note_beside
from sfumato.engines.spark.footers import Footers, footers_of, lacking, orc_footers, why_not_as
from sfumato.engines.spark.millis import local_files, without_millis
from sfumato.engines.spark.settings import muted
from sfumato.engines.spark.views import native_types, prepared_list, quoted, select_list
from sfumato.errors import SourceUnusable
from sfumato.schema import Kind

__all__ = ["STORES", "Rows", "rows_of", "tried"]

_T = TypeVar("_T")
STORES = frozenset({"abfss", "file", "gs", "hdfs", "s3a"})
"""Where files are kept that Spark reads."""

_WILD = re.compile(r"([{}\[\]*?\\])")
_MIXED = "its files have it in milliseconds and otherwise; write all of them in microseconds"
_MILLIS = "its files have it in milliseconds, and a row could make a read fail; write it in microseconds"
_ORC = "ORC has moments that Spark fails on, and a row could make a read fail; write it as Parquet"


@dataclass(frozen=True, slots=True)
class Rows:
    """A source as a frame of Spark.

    Attributes:
        frame: What Spark reads.
        shown: What it is called in messages.
        untyped: Columns that are text whatever they mean.
        paths: Files of this machine that it is made of.
        note: What a prepared folder says about itself.
        inexact: Columns in which two values of the source may have become one.
        unreadable: Columns in which a value could make a read fail, or that are not what they seem, and why.

    Privacy:
        Claim: a column that is not in `inexact` has as many values here as the source has. Reason: of the
        types that are ids, Spark cuts off parts of timestamps alone; those of Arrow are told by their type
        (`arrow.inexact`), those of files by their footers (`footers.Footers.exact`), and where these are
        not seen, or say nothing of a column, it is `inexact`.
    """

    frame: Any
    shown: str
    untyped: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    note: Note | None = None
    inexact: frozenset[str] = frozenset()
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def natives(self) -> dict[str, str]:
        """The types of the columns; of those that cannot be read, none that anything is declared of."""
        return {**native_types(self.frame.schema), **dict.fromkeys(self.unreadable, "unreadable")}

    def selected(
        self, columns: Mapping[str, Kind], unit: str | None, pointers: Sequence[str] = ()
    ) -> list[str]:
        """What a view of them selects."""
        for name in dict.fromkeys([*columns, *([] if unit is None else [unit]), *pointers]):
            if name in self.unreadable:
                what = columns.get(name, "an id")
                raise SourceUnusable(
                    f'{self.shown}: column "{name[:100]}" cannot be read as {what}: {self.unreadable[name]}.'
                )
        natives = self.natives
        if self.note is None or unit is None:
            return select_list(
                natives,
                columns,
                unit,
                pointers,
                untyped=self.untyped,
                shown=self.shown,
                inexact=self.inexact,
            )
        self.note.check(columns, unit, self.shown)
        return prepared_list(self.note, natives, columns, pointers, shown=self.shown)


def rows_of(session: Any, source: Source, schemes: Collection[str]) -> Rows:
    """A source as a frame, by its public metadata.

    Args:
        session: A session of Spark.
        source: Where the rows are.
        schemes: The addresses that the engine takes.

    Raises:
        SourceUnusable: if it cannot be opened.
    """
    import pyarrow as pa

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        table = source
        rows = _opened(lambda: session.createDataFrame(openable(table)), "The Arrow table")
        return replace(rows, inexact=inexact(table))
    check_address(source, schemes)
    if isinstance(source, str) and "://" in source:
        shown = shown_source(source)
        scheme, _, rest = source.partition("://")
        if scheme.lower() == "spark":
            return _of_catalog(session, rest, shown)
        local = local_files([source]) if scheme.lower() == "file" else []
        rows = _opened(lambda: _parquet(session, [source], None), shown, local)
        return _with_footers(session, rows, [source], None)
    if not isinstance(source, str | Path | list | tuple):
        raise SourceUnusable(
            "The engine spark reads tables of a catalog, Parquet files and pyarrow Tables, not "
            f"{type(source).__name__[:40]}; convert it to a pyarrow Table."
        )
    located = locate(source)
    if not isinstance(located, Files) or located.format != "parquet":
        raise SourceUnusable(f"{located.shown} is not of Parquet files, which the engine spark reads.")
    _check_seen(located)
    root = _root(located) if located.partitions else None
    escaped = [_WILD.sub(r"\\\1", path) for path in located.paths]
    rows = _opened(lambda: _parquet(session, escaped, root), located.shown, located.paths)
    rows = _with_footers(session, rows, escaped, root, located.paths)
    note = note_beside(located)
    return replace(rows, untyped=located.partitions, paths=located.paths, note=note)


def _parquet(session: Any, paths: Sequence[str], root: str | None, schema: Any = None) -> Any:
    reader = session.read.option("mergeSchema", "true")
    reader = reader if root is None else reader.option("basePath", root)
    return (reader if schema is None else reader.schema(schema)).parquet(*paths)


def _with_footers(
    session: Any, rows: Rows, paths: Sequence[str], root: str | None, files: Sequence[str] | None = None
) -> Rows:
    """The same rows, whose timestamps in milliseconds are read as numbers first."""
    moments = _moments(rows)
    if not moments:
        return rows
    footers = _seen(rows.frame) if files is None else footers_of(files)
    rows = replace(rows, inexact=moments - footers.exact)
    whole, mixed = footers.millis - footers.others, footers.millis & footers.others
    if not footers.millis:
        return rows
    made = _opened(
        lambda: without_millis(rows.frame, whole, lambda schema: _parquet(session, paths, root, schema)),
        rows.shown,
    )
    return replace(rows, frame=made.frame, unreadable=dict.fromkeys(mixed, _MIXED))


def _of_catalog(session: Any, name: str, shown: str) -> Rows:
    """A table of a catalog."""
    path = ".".join(map(quoted, name.split(".")))
    rows = _opened(lambda: _table(session, path), shown)
    kept = check_format(tried(lambda: details_of(session, path)), shown)
    moments, natives = _moments(rows), native_types(rows.frame.schema)
    if kept == "orc":
        unlike = why_not_as(natives, orc_footers(_local(rows.frame)[0]))
        return replace(rows, inexact=moments, unreadable={**dict.fromkeys(moments, _ORC), **unlike})
    if kept != "parquet" and not moments:
        return rows
    footers = _seen(rows.frame)
    unlike = why_not_as(natives, footers) if kept == "parquet" else {}
    slow = dict.fromkeys(moments & footers.millis, _MILLIS)
    return replace(rows, inexact=moments - footers.exact, unreadable={**slow, **unlike})


def _moments(rows: Rows) -> frozenset[str]:
    """The timestamps among the columns."""
    natives = native_types(rows.frame.schema)
    return frozenset(name for name, native in natives.items() if native.startswith("timestamp"))


def _table(session: Any, path: str) -> Any:
    is_one = is_table(session.catalog.getTable(path).tableType)
    return session.table(path) if is_one else None


def _opened(work: Callable[[], Any], shown: str, files: Iterable[str] = ()) -> Rows:
    """What Spark opens; if it does not, the footers of files may say why."""
    frame = tried(work)
    if frame is None or tried(lambda: native_types(frame.schema)) is None:
        strange = lacking(footers_of(files))
        if strange is not None:
            raise SourceUnusable(
                f'{shown} cannot be opened: column "{strange[0][:100]}" is a {strange[1]}, which Spark does '
                "not have, declared or not; write the files without it, or in another type."
            )
        raise SourceUnusable(f"{shown} cannot be opened; check its name, its types and that it may be read.")
    return Rows(frame, shown)


def _local(frame: Any) -> tuple[list[str], bool]:
    """The files of this machine that a frame is made of, and whether these are all."""
    named = tried(frame.inputFiles)
    local = local_files(named or ())
    return local, named is not None and len(local) == len(named)


def _seen(frame: Any) -> Footers:
    """The footers of the files that a frame is made of."""
    files, are_all = _local(frame)
    footers = footers_of(files)
    return footers if are_all else replace(footers, is_whole=False)


def _check_seen(files: Files) -> None:
    """Refuse files that Spark would leave out without a word."""
    for path in files.paths:
        name = Path(path).name
        if name.startswith(".") or (name.startswith("_") and "=" not in name):
            raise SourceUnusable(
                f'{files.shown}: Spark leaves out files such as "{name[:100]}", whose names begin with _ or '
                "a dot; rename it."
            )


def _root(located: Files) -> str:
    """The folder above the first key of a partitioned source."""
    parts = Path(located.paths[0]).parts[:-1]
    held = [place for place, part in enumerate(parts) if "=" in part]
    return str(Path(*parts[: held[-len(located.partitions)]]))


def tried(work: Callable[[], _T]) -> _T | None:
    """What it gives; None if it fails: the exception ends here, so that none of its text can travel on."""
    with muted(), contextlib.suppress(Exception):
        return work()
    return None
