"""Spark as an engine: sources as temporary views of a session of its own, results as Arrow."""

from __future__ import annotations

import itertools
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.engines.base import Source, SourceKind
from sfumato.engines.dialect import Dialect
from sfumato.engines.limits import check_limits
from sfumato.engines.parts import Part, Work
from sfumato.engines.public import ShowsPublic
from sfumato.engines.running import run
from sfumato.engines.sources import Stamp, are_settled, stamps_of
from sfumato.engines.spark.conditions import with_typed_conditions
from sfumato.engines.spark.dialect import SPARK
from sfumato.engines.spark.door import behind_the_door
from sfumato.engines.spark.parts import written
from sfumato.engines.spark.rows import STORES, Rows, rows_of, tried
from sfumato.engines.spark.settings import is_remote, local_session, muted, own_session, remote_session
from sfumato.engines.spark.views import kind_of
from sfumato.errors import EngineFailed, InvalidParameter, SourceUnusable
from sfumato.schema import Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Spark"]

_T = TypeVar("_T")
_CLOSED = "The engine is closed; open a new session."
_STRANGE = "The engine runs one SELECT over attached tables and nothing else."
_ALTERED = "A prepared table is not as it was written; prepare its table again. The price stays paid."
_CHANGED = "A file of the source changed since it was attached, or while it was read; the price stays paid."
_SIZE = re.compile(r"[1-9][0-9]{0,8}\s?([KMGT])i?B")


@dataclass(frozen=True, slots=True)
class _View:
    name: str
    has_unit: bool
    paths: tuple[str, ...]
    stamps: tuple[Stamp, ...]
    is_prepared: bool = False
    grouping: tuple[str, ...] = ()


class Spark(ShowsPublic):
    """Runs reads in Spark: inside this machine, over a given session, or by Spark Connect.

    Sources are tables of a catalog (`spark://catalog.schema.table`), Parquet files and folders, here or where
    the cluster keeps them (`hdfs://…`, `s3a://…`, `abfss://…`, `gs://…`, `file://…`), and Arrow tables.

    Attributes:
        dialect: How statements are written for it.
        schemes: The addresses that it takes.
        timeout: How many seconds one read may take; by default any number.

    Privacy:
        A read gives the result of one SELECT over attached tables or raises `EngineFailed`, `TimedOut` or
        `Cancelled` with a fixed sentence and an empty chain. No row makes it fail: every column is read by an
        expression that is defined everywhere. What a row contributes is decided by that row: all that reads
        statistics of columns is off (`settings`). What Spark itself writes to logs is out of reach of a given
        session; one that is started here has no logs.
    """

    schemes: frozenset[str] = frozenset({"spark", *STORES})

    def __init__(
        self,
        *,
        session: Any = None,
        remote: str | None = None,
        url: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Open a session beside the given one; without one, in this machine.

        Args:
            session: A `SparkSession`; ours is a new one over the same cluster and catalogs.
            remote: The address of Spark Connect, `sc://host:port`.
            url: The same, as `sfumato.toml` writes it.
            threads: How many threads Spark may use inside this machine; by default one a core. Taken by the
                first engine of a process, as `memory` is: there is one Spark in it.
            memory: How much memory it may use there, like `"4GB"`.
            timeout: The limit of one read in seconds.

        Raises:
            InvalidParameter: if an option is invalid, or Spark cannot be started or reached.
        """
        if sum(option is not None for option in (session, remote, url)) > 1:
            raise InvalidParameter("Give a session or a remote address, not both.")
        remote = url if remote is None else remote
        check_limits(threads, memory, timeout, size=_SIZE, such="4GB")
        if remote is not None and not (isinstance(remote, str) and remote.startswith("sc://")):
            raise InvalidParameter("remote must be an address of Spark Connect, such as sc://host:15002.")
        self.timeout = timeout
        if remote is not None:
            session = remote_session(remote)
        elif session is None:
            digits = None if memory is None else re.sub(r"\s?([KMGT])i?B", r"\1", memory).lower()
            session = local_session(threads, digits)
        self._spark = own_session(session)
        # Sessions of Spark Connect are kept by its server, and by threads here, until they are stopped.
        opened: list[Any] = [self._spark] if remote is None else [self._spark, session]
        self._stopped_last = [each for each in opened if is_remote(each)]
        self._lock, self._process = threading.RLock(), os.getpid()
        self._views: dict[str, _View] = {}
        self._held: dict[str, tuple[Stamp, ...]] = {}  # guards, by the state in which they were found to hold
        self._prefix, self._numbers = f"sfumato_{random.token()}", itertools.count()
        self._closed = False

    @property
    def dialect(self) -> Dialect:
        """How statements are written for it."""
        return SPARK

    def attach(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, Kind],
        *,
        unit: str | None = None,
        pointers: Sequence[str] = (),
    ) -> None:
        """Make `name` a view of the source whose columns have canonical types.

        Raises:
            SourceUnusable: if the source cannot be opened, or a column is missing or cannot have that kind.
        """
        self._check_open()
        rows = self._rows(source)
        selected = rows.selected(columns, unit, pointers)
        note = None if unit is None else rows.note
        grouping = () if note is None else note.grouping(columns)
        stamps = stamps_of(rows.paths)
        with self._lock:
            self._check_open()
            view = f"{self._prefix}_{next(self._numbers)}"
            made = tried(lambda: rows.frame.selectExpr(*selected).createTempView(view) or True)
            if made is None:
                raise SourceUnusable(f"{rows.shown} cannot be opened; check that it is whole and readable.")
            old = self._views.get(name.lower())
            self._views[name.lower()] = _View(
                view, unit is not None, rows.paths, stamps, note is not None, grouping
            )
            if old is not None:
                tried(lambda: self._spark.catalog.dropTempView(old.name))

    def schema(self, source: Source) -> dict[str, SourceKind]:
        """The columns of a source with their kinds, from its public metadata.

        Raises:
            SourceUnusable: if the source cannot be opened.
        """
        self._check_open()
        return {name: kind_of(native) for name, native in self._rows(source).natives.items()}

    def fetch(self, statement: exp.Expression, *, guard: exp.Expression | None = None) -> pa.Table:
        """The result of one SELECT over attached tables; threads may call at once.

        Args:
            statement: The SELECT.
            guard: A SELECT of one number over the same tables that must be 0, or there is no result.

        Privacy:
            The guard is run before the statement, on the same files: those of the tables have the stamps
            after both that they had when they were attached, or there is no result. It is not run again
            while they have them, once they are settled (`sources.are_settled`).

        Raises:
            EngineFailed: if the statement is anything else, cannot be finished, or the guard is not 0.
            TimedOut: after `timeout` seconds.
            Cancelled: on Ctrl-C; the engine stays usable.
        """
        return self._run(statement, lambda frame: frame.toArrow(), guard)

    def in_parts(
        self,
        statement: exp.Expression,
        work: Work,
        schema: pa.Schema,
        folder: Path,
        *,
        order: Sequence[str],
        guard: exp.Expression | None = None,
    ) -> tuple[Part, ...]:
        """Run one SELECT over attached tables, and work on each part of its result where it is.

        See `engines.parts.InParts`. Sfumato must be installed where Spark's tasks run, and the folder must be
        seen there.

        Raises:
            EngineFailed: if the statement is anything else, cannot be finished, or the guard is not 0.
            TimedOut: after `timeout` seconds.
            Cancelled: on Ctrl-C; the engine stays usable.
        """
        many = tried(lambda: int(self._spark.conf.get("spark.sql.shuffle.partitions")))
        if many is None:
            raise EngineFailed(_CLOSED)
        return self._run(statement, lambda frame: written(frame, work, schema, folder, order, many), guard)

    def _run(
        self, statement: exp.Expression, work: Callable[[Any], _T], guard: exp.Expression | None = None
    ) -> _T:
        """What is made of the frame of one SELECT."""
        self._check_open()
        with self._lock:
            self._check_open()
            views, held = dict(self._views), self._held
        if not views:
            raise EngineFailed("No table is attached; attach one before reading.")
        names = {name: view.name for name, view in views.items()}
        trees = [_behind(tree, names) for tree in (statement, guard) if tree is not None]
        used = {node.name for tree in trees for node in tree.find_all(exp.Table)}
        watched = [view for view in views.values() if view.name in used and view.paths]
        stamps = tuple(itertools.chain(*(view.stamps for view in watched)))
        texts = [SPARK.text(with_typed_conditions(tree)) for tree in trees]
        tag = f"sfumato-{random.token()}"

        def read() -> tuple[str, _T | None]:
            is_settled = are_settled(stamps) and any(stamps)
            with muted():
                self._mark(tag)
                for text in texts[1:]:
                    if held.get(text) != stamps and not _is_zero(self._spark.sql(text)):
                        return _ALTERED, None
                result = work(self._spark.sql(texts[0]))
            if not all(view.stamps == stamps_of(view.paths) for view in watched):
                return _CHANGED, None
            held.update(dict.fromkeys(texts[1:], stamps) if is_settled else {})
            return "", result

        why, result = run(read, lambda: self._stop(tag), timeout=self.timeout)
        if result is None:
            raise EngineFailed(why or _CHANGED)
        return result

    def check_whole(self, source: Source) -> None:
        """Nothing: Parquet and tables of a catalog lose no rows."""

    def is_prepared(self, name: str) -> bool:
        """Whether an attached table shows the ranks of its rows as `RANK_COLUMN`: see `engines.prepare`."""
        with self._lock:
            view = self._views.get(name.lower())
        return view is not None and view.is_prepared

    def grouping(self, name: str) -> tuple[str, ...]:
        """The columns whose groups an attached table shows the ranks of; empty where there are none."""
        with self._lock:
            view = self._views.get(name.lower())
        return () if view is None else view.grouping

    def unread(self, name: str) -> frozenset[str]:
        """Empty: it is not told."""
        del name
        return frozenset()

    def close(self) -> None:
        """Drop the views, and stop what was opened by Spark Connect; a second call does nothing.

        Spark goes on for other engines of this process, and so does a session that was given.
        """
        with self._lock:
            views, self._views, self._closed = self._views, {}, True
        if self._process == os.getpid():
            for view in views.values():
                tried(lambda view=view: self._spark.catalog.dropTempView(view.name))  # type: ignore[misc]
            while self._stopped_last:
                tried(self._stopped_last.pop(0).stop)

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._process != os.getpid():
            raise EngineFailed("The engine belongs to another process; open a session in this one.")
        if self._closed:
            raise EngineFailed(_CLOSED)

    def _has_unit(self, name: str) -> bool:
        with self._lock:
            view = self._views.get(name.lower())
        return view is not None and view.has_unit

    def _mark(self, tag: str) -> None:
        """Name what this thread runs from now on; tags of sessions name no jobs of Arrow, but by Connect."""
        if tried(lambda: self._spark.sparkContext.addJobTag(tag) or True) is None:
            self._spark.addTag(tag)

    def _stop(self, tag: str) -> None:
        if tried(lambda: self._spark.sparkContext.cancelJobsWithTag(tag) or True) is None:
            tried(lambda: self._spark.interruptTag(tag))

    def _rows(self, source: Source) -> Rows:
        return rows_of(self._spark, source, self.schemes)


def _behind(tree: exp.Expression, views: Mapping[str, str]) -> exp.Expression:
    select = isinstance(tree, exp.Select | exp.SetOperation)
    behind = behind_the_door(tree, views) if select else None
    if behind is None:
        raise EngineFailed(_STRANGE)
    return behind


def _is_zero(frame: Any) -> bool:
    return bool([tuple(row) for row in frame.collect()] == [(0,)])
