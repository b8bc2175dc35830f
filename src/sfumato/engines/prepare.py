"""Tables prepared once, so that holding units within their limits later is a plain filter.

Each is prepared where its rows are: files and frames to a file of DuckDB, tables of PostgreSQL to a table
beside them (`engines.postgres.prepare`), what Spark reads to a folder (`engines.spark.prepare`).

A prepared file is a DuckDB file with two tables: the rows that belong to a unit, those of one unit side by
side and numbered, and a line that says what they are. Whoever attaches it sees the declared columns, the ids
of units unchanged, and the rank of each row under the name `RANK_COLUMN`: the rows of rank 1 to k are k rows
of each unit, chosen as if at random. One that was prepared for a grouping has two more ranks: that of a row's
group among the groups of its unit (`GROUP_COLUMN`), and that of the row within both (`PLACE_COLUMN`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sfumato.engines._preparing import FAILED, Prepared, Wanted, ran
from sfumato.engines._scratch import Scratch
from sfumato.engines._tables import Table, plan_table
from sfumato.engines.base import Engine, Source, engine_of
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.prepared import METADATA
from sfumato.engines.ranking import OUT_OF_ORDER, by_windows, statement
from sfumato.engines.scans import quoted
from sfumato.engines.sources import Database, Files, Located, locate
from sfumato.engines.whole import check_whole
from sfumato.errors import InvalidParameter, SourceUnusable
from sfumato.random import salt as new_salt
from sfumato.render import is_text
from sfumato.schema import PrivateTable

__all__ = ["Prepared", "prepare"]

_SUFFIXES = (".duckdb", ".ddb")


def prepare(
    table: PrivateTable,
    path: str | Path,
    *,
    group_by: str | Sequence[str] = (),
    salt: bytes | None = None,
    force: bool = False,
    threads: int | None = None,
    memory: str | None = None,
    timeout: float | None = None,
    progress: Callable[[float], object] | None = None,
    engine: Engine | None = None,
) -> Prepared:
    """Write a table's rows where they are read, clustered by unit and ranked within it.

    What is written takes the table's place as `source`. It is complete or not there: a file is written under
    another name, in a folder that only its owner may enter, and renamed once it is on the disk; a table is
    written in one transaction.

    Args:
        table: What to prepare; its unit must be a column of its own.
        path: Where to, ending in `.duckdb`; of a table in PostgreSQL an address in the same database, as a
            role that may create tables there: `postgresql://writer@host/database::schema.table`; of a table
            that Spark reads a folder.
        group_by: Declared columns: questions that group by just these are a plain filter too.
        salt: The key of the hash that ranks; by default a new one. With the same salt and the same rows the
            ranks are the same.
        force: Whether to write over an existing file, which is never one that the table is read from; in
            PostgreSQL over one that was prepared.
        threads: How many threads to use; by default one a core.
        memory: How much memory, like `"4GB"`; the rest goes to the disk.
        timeout: How many seconds it may take.
        progress: Is told how much is done, from 0 to 1, where the engine says it: for the steward's eyes,
            like the file.
        engine: The engine Spark that reads the table, as in `engine("spark", session=spark)`; others are
            chosen by the source.

    Privacy:
        Claim: the rank of a row is a function of the salt and the rows of its own unit. So a filter
        `rank <= k` leaves each unit the same rows of its own, at most k, whatever rows others have: adding or
        removing a unit adds or removes at most k rows. Reason: a row's place among those of its unit follows
        from a hash of the salt, the id as the source has it and all its columns, ties broken by the columns
        themselves; rows that tie even there are the same row. Neither position, arrival, threads nor a number
        given to the unit enter. Floats are stored in one form (zero without a sign, one NaN), since an order
        cannot tell the forms apart.
        Prepared for a grouping, a filter `group <= k AND place <= r` leaves each unit the same rows of its
        own in at most k of its groups and at most r in each. Reason: groups of a unit have different ranks,
        which follow from a hash of another key, the id and the group, ties broken by the group itself; the
        place of a row is its place among those of its unit and group in the order of the ranks above. What
        is one group is what an open GROUP BY makes one: NaN is NULL, and so is a day without four digits.
        Conditions: the digest is a function of its arguments; and the file is as it was written, which
        no reader believes (`sql.write.ranks.guard`). Not needed for the claim: that the ranks are uniform,
        for which see `engines.dialect`.

    Raises:
        InvalidParameter: for a path of another kind or in use, a table whose units are rows or are named in
            another table, or a grouping by what is not a declared column of it.
        SourceUnusable: if the rows cannot be read, or the file cannot be written.
        Cancelled: on Ctrl-C; nothing is written.
    """
    unit = _unit_of(table)
    key = new_salt(32) if salt is None else _checked(salt)
    wanted = Wanted(table, unit, _grouping(table, unit, group_by), key)
    if engine is not None or engine_of([table.source]) == "spark":
        return _in_spark(wanted, path, engine, force=force, limits=(threads, memory, timeout))
    if "postgres" in (engine_of([table.source]), engine_of([path])):
        from sfumato.engines.postgres.prepare import write

        limits = {"threads": threads, "memory": memory, "timeout": timeout}
        return write(wanted, path, force=force, limits=limits)
    located = locate(table.source)
    check_whole(table.source)
    target = _target(path, located, force=force)
    with DuckDB(threads=threads, memory=memory, timeout=timeout) as engine, _private_folder(target) as folder:
        draft = folder / "draft"
        connection = engine._connect()
        try:
            planned = plan_table(connection, table.name, located, wanted.kinds, unit=unit)
            what = (table.name, wanted.kinds, key, engine.dialect, wanted.groups)
            note = wanted.note(planned.exact, engine.dialect.digest)
            work = _writer(connection, planned, draft, (statement(*what), by_windows(*what)), note)
            whole = ran(work, connection.interrupt, timeout, _watcher(connection, progress))
        finally:
            connection.close()
        if not whole:
            raise SourceUnusable(f"{located.shown} {FAILED}")
        _move(draft, target, force=force)
    return wanted.made(target, target.stat().st_size)


def _in_spark(
    wanted: Wanted, path: Source, given: Engine | None, *, force: bool, limits: tuple[Any, Any, Any]
) -> Prepared:
    from sfumato.engines.spark import Spark
    from sfumato.engines.spark.prepare import write

    if given is not None and not isinstance(given, Spark):
        raise InvalidParameter("engine must be the engine Spark; others are chosen by the source.")
    with contextlib.ExitStack() as own:
        threads, memory, timeout = limits
        engine = given or own.enter_context(Spark(threads=threads, memory=memory, timeout=timeout))
        return write(wanted, path, engine, force=force)


def _writer(
    connection: Any, table: Table, draft: Path, selects: tuple[str, str], note: str
) -> Callable[[], bool]:
    """What reads the rows and writes the file; true if it is whole.

    Of the two statements for its rows the second is run where the first finds that it cannot rank them.
    """

    def work() -> bool:
        before = table.stamps()
        table.create(connection)
        connection.execute("SET preserve_insertion_order = true")  # it is the order that is written
        place = str(draft).replace("'", "''")
        connection.execute(f"ATTACH '{place}' AS prepared")
        rows = f"CREATE TABLE prepared.main.{quoted(table.name)} AS"
        try:
            connection.execute(f"{rows} {selects[0]}")
        except Exception as error:  # a statement that failed left nothing
            if OUT_OF_ORDER not in str(error):
                raise
            connection.execute(f"{rows} {selects[1]}")
        connection.execute(f"CREATE TABLE prepared.main.{quoted(METADATA)} (note VARCHAR)")
        connection.execute(f"INSERT INTO prepared.main.{quoted(METADATA)} VALUES (?)", [note])
        connection.execute("CHECKPOINT prepared")
        connection.execute("DETACH prepared")
        return before == table.stamps() and not table.is_stale()

    return work


def _watcher(connection: Any, progress: Callable[[float], object] | None) -> Callable[[], object] | None:
    """What asks the engine how far the statement has come, which it only knows if it is told beforehand."""
    if progress is None:
        return None
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")

    def watch() -> None:
        done = float(connection.query_progress())
        if done >= 0:  # it is below 0 between statements
            progress(min(done / 100, 1.0))

    return watch


def _unit_of(table: PrivateTable) -> str:
    if not isinstance(table, PrivateTable):
        raise InvalidParameter("prepare takes a PrivateTable.")
    if table.unit.is_via:
        raise InvalidParameter(
            f"The units of {table.name} are named in another table; write them to a column of its own first."
        )
    if table.unit.window is not None:
        raise InvalidParameter(
            f"The units of {table.name} are windows of time, which cannot be prepared yet."
        )
    if table.states:
        raise InvalidParameter(f"{table.name} has states, each of other rows, which cannot be prepared yet.")
    if table.unit.column is None:
        raise InvalidParameter(f"Each row of {table.name} is a unit: there is nothing to prepare.")
    return table.unit.column


def _grouping(table: PrivateTable, unit: str, group_by: str | Sequence[str]) -> tuple[str, ...]:
    """The columns to group by as they are declared, each once."""
    declared = {column.casefold(): column for column in table.schema}
    grouping: dict[str, None] = {}
    for given in (group_by,) if isinstance(group_by, str) else tuple(group_by):
        name = str(given)
        if name.casefold() == unit.casefold():
            raise InvalidParameter(f"{unit} is the privacy unit, not a group; group by other columns.")
        if name.casefold() not in declared:
            others = [known for known in declared.values() if known.casefold() != unit.casefold()]
            raise InvalidParameter(
                f"{table.name} has no declared column {name[:60]!r} to group by; it has {', '.join(others)}."
            )
        grouping[declared[name.casefold()]] = None
    return tuple(grouping)


def _checked(salt: bytes) -> bytes:
    if not isinstance(salt, bytes) or not salt:
        raise InvalidParameter("salt must be bytes, or None.")
    return salt


def _target(path: str | Path, located: Located, *, force: bool) -> Path:
    if "\x00" in os.fspath(path) or not is_text(os.fspath(path)):
        raise InvalidParameter("The path of a prepared file holds a character that no path can hold.")
    target = Path(os.path.abspath(os.fspath(path)))
    if target.suffix.lower() not in _SUFFIXES:
        raise InvalidParameter(f"A prepared file's name ends in {' or '.join(_SUFFIXES)}.")
    if not target.parent.is_dir():
        raise InvalidParameter(f"There is no folder for {target.name[:100]}; make it first.")
    if any(os.path.realpath(read_path) == os.path.realpath(target) for read_path in _read_from(located)):
        raise InvalidParameter("The table is read from that file; name another one.")
    _check_free(target, force=force)
    return target


def _check_free(target: Path, *, force: bool) -> None:
    if os.path.lexists(target) and not (force and target.is_file()):
        raise InvalidParameter(f"{target.name[:100]} is there already; --force (force=True) writes over it.")


def _read_from(located: Located) -> tuple[str, ...]:
    if isinstance(located, Database):
        return (located.path,)
    return located.paths if isinstance(located, Files) else located.files


@contextlib.contextmanager
def _private_folder(target: Path) -> Iterator[Path]:
    """A folder beside the target that its owner alone may enter; gone afterwards with all that is in it."""
    folder: Scratch | None = None
    with contextlib.suppress(OSError):
        folder = Scratch(target.parent, prefix=".sfumato-")
    if folder is None:
        raise SourceUnusable(f"{target.name[:100]} cannot be written there; check the folder's permissions.")
    try:
        yield folder.path
    finally:
        folder.remove()


def _move(draft: Path, target: Path, *, force: bool) -> None:
    """Give a whole file its name, on the disk before anybody can find it."""
    _check_free(target, force=force)
    moved = False
    with contextlib.suppress(OSError):
        os.chmod(draft, 0o600)
        _sync(draft)
        os.replace(draft, target)
        moved = True
        _sync(target.parent)
    if not moved:
        raise SourceUnusable(f"{target.name[:100]} cannot be written there; check the folder's permissions.")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
