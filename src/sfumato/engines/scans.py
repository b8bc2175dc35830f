"""What follows FROM in DuckDB: files, a table of a DuckDB file, or something that Arrow scans."""

from __future__ import annotations

from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines._paths import literal
from sfumato.engines.prepared import Note
from sfumato.engines.sources import Stamp

__all__ = ["Column", "Scan", "alias_of", "quoted"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a source.

    Attributes:
        name: Its public name.
        inner: What DuckDB calls it.
        native: Its type, as DESCRIBE writes it.
        unchecked: Whether it is text that may not be UTF-8.
        own: The type that it has as an id, which is the source's own; None: `native`.
    """

    name: str
    inner: str
    native: str
    unchecked: bool = False
    own: str | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """What can stand after FROM, with what must be set up for it: a database to attach, a frame to hold.

    Attributes:
        text: The SQL.
        names: The public names of the first columns, where DuckDB has others for them.
        paths: The files that DuckDB opens.
        database: The DuckDB file to attach.
        frame: What Arrow scans.
        files: The files that Arrow opens.
        seen: The state of those files when Arrow learned what is in them, if it remembers that.
        whole: Whether every read must use all columns.
        note: What a prepared file says about itself.
        by_arrow: Columns, in lower case, that Arrow reads: timestamps in milliseconds, which DuckDB would
            multiply while it scans, and times of day, which it holds to 24 hours; it fails for larger ones.
        vague: Columns, in lower case, of which DuckDB makes one value of several.
        generated: Columns, in lower case, that DuckDB works out in each read.
    """

    text: str
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    database: str | None = None
    frame: Any = None
    files: tuple[str, ...] = ()
    seen: tuple[Stamp, ...] | None = None
    whole: bool = False
    note: Note | None = None
    by_arrow: frozenset[str] = frozenset()
    vague: frozenset[str] = frozenset()
    generated: frozenset[str] = frozenset()

    def prepare(self, connection: Any, name: str) -> str:
        """Attach or register what is needed; the text to put after FROM."""
        if self.database is not None:
            alias = alias_of(self.database)
            known = connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()
            if (alias,) not in known:
                connection.execute(f"ATTACH {literal(self.database)} AS {quoted(alias)} (READ_ONLY)")
        if self.frame is not None:
            connection.from_arrow(self.frame).create_view(name)
            return quoted(name)
        return self.text


def quoted(name: str) -> str:
    """An identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def alias_of(path: str) -> str:
    """What an attached DuckDB file is called."""
    return f"file {path}"
