"""A prepared table as a folder of Parquet files: divided by unit and sorted, as Spark's tasks write it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sfumato import random
from sfumato.engines._preparing import FAILED, Prepared, Wanted, ran
from sfumato.engines.base import RANK_COLUMN, UNIT_COLUMN, Source
from sfumato.engines.ranking import by_windows
from sfumato.engines.sources import stamps_of
from sfumato.engines.spark.dialect import SPARK
from sfumato.engines.spark.engine import Spark
from sfumato.engines.spark.folders import check_free, private_folder, put, size_of
from sfumato.engines.spark.settings import muted
from sfumato.engines.spark.views import is_exact, quoted
from sfumato.errors import InvalidParameter, SourceUnusable
from sfumato.render import is_text

__all__ = ["write"]


def write(wanted: Wanted, path: Source, engine: Spark, *, force: bool) -> Prepared:
    """Make a prepared folder of a table that Spark reads.

    Args:
        wanted: What is to be prepared.
        path: The folder, which is not there yet; this process and all tasks of Spark must see it.
        engine: What reads the table.
        force: Whether to put it in the place of one that was prepared before.

    Privacy:
        As of `engines.prepare.prepare`: the statement is the one of `engines.ranking`, in this dialect, and
        windows have an order that no two rows share unless they are the same row. A task that is tried again
        ranks the same rows alike.

    Raises:
        InvalidParameter: if the folder is not one of this machine, or is taken.
        SourceUnusable: if the rows cannot be read, or the folder cannot be written.
    """
    target = _target(path)
    rows = engine._rows(wanted.table.source)
    if any(Path(os.path.realpath(target)) in Path(os.path.realpath(read)).parents for read in rows.paths):
        raise InvalidParameter("The table is read from that folder; name another one.")
    check_free(target, force=force)
    natives = {name: native for name, native in rows.natives.items() if name not in rows.inexact}
    known = [name for name, kind in wanted.kinds.items() if name in natives and is_exact(natives[name], kind)]
    exact = known if rows.note is None else [name for name in known if name in rows.note.exact]
    selected = rows.selected(wanted.kinds, wanted.unit)
    before, tag = stamps_of(rows.paths), f"sfumato-{random.token()}"
    with private_folder(target) as folder:
        draft = folder / "draft"

        def work() -> bool:
            with muted():
                engine._mark(tag)
                _ranked(engine, rows.frame.selectExpr(*selected), wanted).write.parquet(f"file://{draft}")
            return before == stamps_of(rows.paths)

        if not ran(work, lambda: engine._stop(tag), engine.timeout):
            raise SourceUnusable(f"{rows.shown} {FAILED}")
        put(draft, target, wanted.note(exact, SPARK.digest), force=force)
    return wanted.made(target, size_of(target))


def _ranked(engine: Spark, frame: Any, wanted: Wanted) -> Any:
    """The rows with their ranks, those of one unit side by side."""
    name = f"sfumato_{random.token()}"
    frame.createTempView(name)
    try:
        text = by_windows(
            name, wanted.kinds, wanted.salt, SPARK, wanted.groups, narrow="BIGINT", ordered=False
        )
        return engine._spark.sql(text).sortWithinPartitions(quoted(UNIT_COLUMN), quoted(RANK_COLUMN))
    finally:
        engine._spark.catalog.dropTempView(name)


def _target(path: Source) -> Path:
    text = os.fspath(path) if isinstance(path, str | Path) else ""
    if not text or "\x00" in text or not is_text(text) or "://" in text:
        raise InvalidParameter(
            "Spark prepares a table to a folder of this machine; name one, as in visits.prepared."
        )
    target = Path(os.path.abspath(text))
    if target.suffix.lower() in (".duckdb", ".ddb", ".parquet"):
        raise InvalidParameter(
            "Spark prepares a table to a folder, not to a file; name one, as in visits.prepared."
        )
    if not target.parent.is_dir():
        raise InvalidParameter(f"There is no folder for {target.name[:100]}; make it first.")
    return target
