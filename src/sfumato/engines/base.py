"""The seam between private questions and whatever runs them, and how engines outside this package join it.

A package adds an engine with an entry point in its own `pyproject.toml`:

```toml
[project.entry-points."sfumato.engines"]
mine = "my_package.engine:MyEngine"
```

The name then works in `engine("mine")`; the object is called with the keyword arguments given there and must
return an `Engine`. `sfumato.testing.check_engine` tries whether it keeps what is asked of it here.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from sfumato.errors import InvalidParameter, SourceUnusable
from sfumato.render import without_password
from sfumato.schema import Kind

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from sfumato.engines.dialect import Dialect

__all__ = [
    "GROUP_COLUMN",
    "PLACE_COLUMN",
    "POINTER_PREFIX",
    "RANK_COLUMN",
    "UNIT_COLUMN",
    "UNREAD_PREFIX",
    "Engine",
    "Source",
    "SourceKind",
    "check_address",
    "engine",
    "engine_of",
    "is_kept",
    "masked",
    "missing_members",
    "pointer_column",
    "shown_source",
    "unread_column",
]

Source: TypeAlias = Any
"""Where rows are: a path, a glob, a folder, a list of paths, `file.duckdb::table`, or a frame in memory."""

SourceKind: TypeAlias = Literal["integer", "float", "boolean", "text", "date", "timestamp", "time", "other"]
"""What a column of a source holds, as its public metadata says."""

UNIT_COLUMN = "sfumato unit"
"""The name under which an attached table shows the ids of its units, as the source has them."""

RANK_COLUMN = "sfumato rank"
"""The name under which a prepared table shows the rank of each row among those of its unit, from 1 on."""

GROUP_COLUMN = "sfumato group"
"""The name under which a table that was prepared for a grouping shows the rank of each row's group among the
groups of its unit, from 1 on."""

PLACE_COLUMN = "sfumato place"
"""The name under which such a table shows the rank of each row among those of its unit and group."""

POINTER_PREFIX = "sfumato pointer "
"""How the names of columns begin under which an attached table shows its pointers: see `pointer_column`."""

UNREAD_PREFIX = "sfumato unread "
"""How the names of columns begin under which an attached table says which cells could not be read: see
`unread_column`."""

_OURS = "sfumato "
_LOGIN = re.compile(r":[^/@]*@")
_COLLAPSED = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])")
_GROUP = "sfumato.engines"
_BUILT_IN = {
    "duckdb": EntryPoint("duckdb", "sfumato.engines.duckdb:DuckDB", _GROUP),
    "postgres": EntryPoint("postgres", "sfumato.engines.postgres:Postgres", _GROUP),
    "spark": EntryPoint("spark", "sfumato.engines.spark:Spark", _GROUP),
}
_BY_SCHEME = {"postgresql": "postgres", "postgres": "postgres", "spark": "spark"}


@runtime_checkable
class Engine(Protocol):
    """Runs one SELECT over attached tables.

    Privacy:
        Nothing that an engine raises, logs or prints may hold a value from the data: it raises
        `SourceUnusable` while attaching and `EngineFailed` (`TimedOut`, `Cancelled`) while reading, with
        fixed sentences and an empty chain. No row may make a read fail: values that do not fit the declared
        kind are NULL.
        What a row gives to a result is decided by that row and the statement alone: never by statistics of
        columns, which belong to all rows and can be wrong.
    """

    @property
    def dialect(self) -> Dialect:
        """How statements are written for it."""

    @property
    def schemes(self) -> frozenset[str]:
        """Which addresses it takes as sources: `{"postgresql"}` for `postgresql://…`; files need none."""

    def attach(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, Kind],
        *,
        unit: str | None = None,
        pointers: Sequence[str] = (),
    ) -> None:
        """Make `name` a table with these columns in their canonical types.

        Integer columns are BIGINT, float ones DOUBLE, text VARCHAR, boolean BOOLEAN, date DATE. Timestamps
        are BIGINT too: whole seconds since 1970-01-01, in UTC where the source says a zone and as they are
        elsewhere, in the years 1 to 9999; times of day are the seconds since midnight. Parts of a second are
        cut off. A value that does not fit is NULL. The column `unit` is shown as `UNIT_COLUMN` too, or only
        there if it is not among `columns`, with the type and values it has in the source: a cast could make
        one id of several, and so one unit of several people. A table without `unit` has no such column: a
        public one, or a private one whose units are rows or are named in another table.

        `pointers` are those of `columns` that lead from a row to its owner, on either end. They are shown as
        `pointer_column(name)` too, as the source has them, for the same reason; whole numbers of any width in
        one type, so that both ends meet. Where files of one source have different types for an id or a
        pointer, values that one type holds exactly are shown in it, and what it cannot hold is NULL: no id.
        Types alone decide whether there is such a type.

        Which cells do not fit may be shown, too: see `unread`.

        Raises:
            SourceUnusable: if the source cannot be opened, a column is missing or cannot have that kind, ids
                or pointers are of types that cannot be told apart, or `columns` uses a name that is kept.
        """

    def schema(self, source: Source) -> dict[str, SourceKind]:
        """The columns of a source with their kinds, from its public metadata.

        Raises:
            SourceUnusable: if the source cannot be opened.
        """

    def fetch(self, statement: exp.Expression, *, guard: exp.Expression | None = None) -> pa.Table:
        """The result of one SELECT over attached tables.

        Args:
            statement: The SELECT.
            guard: A SELECT of one number that must be 0 on the same rows, or there is no result. Only tables
                with ranks have one; the engine may skip it while the rows are sure to be those it was run on.

        Raises:
            EngineFailed: if it cannot be finished, or the guard is not 0; `TimedOut` and `Cancelled` say
                which way.
        """

    def values(self, name: str, column: str, limit: int) -> list[Any] | None:
        """The values of a column of an attached public table, each once, in order; None above `limit`.

        NULL is not among them. What came to be NULL since it does not fit its kind is not either.

        Privacy:
            For public tables only: values are shown as they are, and nothing pays for them. A table that was
            attached with a unit is refused; of all others the caller knows.

        Raises:
            EngineFailed: if the table has a unit, or the read cannot be finished.
        """

    def is_unique(self, name: str, columns: Sequence[str]) -> bool:
        """Whether no two rows of an attached public table have the same values in all these columns.

        Rows with a NULL among them are passed over, since no join finds them.

        Privacy:
            For public tables only, as `values` is.

        Raises:
            EngineFailed: if the table has a unit, or the read cannot be finished.
        """

    def check_whole(self, source: Source) -> None:
        """Look through a source for what would lose rows; an engine that loses none does nothing.

        Privacy:
            For the steward: that the check fails is a fact about the rows. A session in an analyst's name
            does not make it.

        Raises:
            SourceUnusable: if there is any; of the content nothing is said.
        """

    def is_prepared(self, name: str) -> bool:
        """Whether an attached table shows the ranks of its rows as `RANK_COLUMN`: see `engines.prepare`."""

    def grouping(self, name: str) -> tuple[str, ...]:
        """The columns whose groups an attached table shows the ranks of; empty where there are none."""

    def unread(self, name: str) -> frozenset[str]:
        """The columns of which an attached table says which cells could not be read, as `unread_column`.

        Such a cell is neither NULL nor blank in the source, and NULL in the declared kind. Types alone decide
        which columns these are; none where every value of the source's type fits, or where it is not told.
        """

    def close(self) -> None:
        """Give everything back; a second call does nothing."""


def missing_members(engine: object) -> list[str]:
    """The members of `Engine` that an object does not have, in their order."""
    return [name for name in vars(Engine) if not name.startswith("_") and not hasattr(engine, name)]


_STORES = {**dict.fromkeys(("abfss", "gs", "hdfs", "s3a"), ""), "s3": " as s3a://…"}
"""Where files are kept that Spark reads, and how it writes the address."""


def shown_source(source: Source) -> str:
    """A source in a message, without passwords, tokens and what could be one.

    Every message of an engine that names a source is made with this.
    """
    if not isinstance(source, str | Path):
        return f'The source "<{type(source).__name__[:40]}>"'
    return f'The source "{masked(source)}"'


def masked(source: str | Path) -> str:
    """What of a path or an address a message may have; a `Path` has taken one slash from an address."""
    return _LOGIN.sub(":…@", without_password(_COLLAPSED.sub(r"\1://", os.fspath(source))))[:200]


def check_address(source: Source, schemes: Collection[str]) -> None:
    """Refuse a source that is an address of any other kind.

    Raises:
        SourceUnusable: if it is one.
    """
    scheme = source.partition("://")[0].lower() if isinstance(source, str) and "://" in source else None
    if scheme is not None and scheme not in schemes:
        other = f', or read it where it is with engine="spark"{_STORES[scheme]}' if scheme in _STORES else ""
        raise SourceUnusable(
            f"{shown_source(source)} is remote; copy it to this machine and give its path{other}."
        )


def is_kept(name: str) -> bool:
    """Whether no column may be declared under a name.

    Statements give such names to what they compute; a column of that name would be taken for it.
    """
    return name.casefold().startswith(_OURS)


def pointer_column(name: str) -> str:
    """The name under which an attached table shows a pointer to owners as the source has it."""
    return f"{POINTER_PREFIX}{name}"


def unread_column(name: str) -> str:
    """The name under which an attached table says of each row whether its cell could not be read."""
    return f"{UNREAD_PREFIX}{name}"


def engine_of(sources: Iterable[Source]) -> str:
    """The name of the built-in engine that reads these sources: by their addresses; files need DuckDB."""
    schemes = {
        source.partition("://")[0].lower()
        for source in sources
        if isinstance(source, str) and "://" in source
    }
    return next((_BY_SCHEME[scheme] for scheme in sorted(schemes) if scheme in _BY_SCHEME), "duckdb")


def engine(name: str = "duckdb", /, **options: Any) -> Engine:
    """The engine that is registered under a name, made with these options: `engine("duckdb", threads=2)`.

    Options that are None are left out: the engine has its own defaults, and need not know them all.

    Raises:
        InvalidParameter: if no engine of that name is built in or installed, or it does not take an option.
    """
    options = {key: value for key, value in options.items() if value is not None}
    points = [] if name in _BUILT_IN else entry_points(group=_GROUP)
    known = {point.name: point for point in (*_BUILT_IN.values(), *points)}
    if name not in known:
        names = ", ".join(sorted(known))
        raise InvalidParameter(f"There is no engine {str(name)[:40]!r}; engines: {names}.")
    make: Callable[..., Engine] = known[name].load()
    taken = inspect.signature(make).parameters.values()
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken):
        for option in options.keys() - {parameter.name for parameter in taken}:
            raise InvalidParameter(f"The engine {name} does not take {option}; leave it out.")
    return make(**options)
