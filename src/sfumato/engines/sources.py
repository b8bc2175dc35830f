"""Where the rows are: paths, globs, folders, DuckDB files and frames, told apart by public facts alone.

| source | example |
| --- | --- |
| Parquet | `"visits.parquet"`, `"visits/*.parquet"`, a list of paths |
| a folder, also partitioned as `country=FR/part-0.parquet` | `"visits/"` |
| CSV with a header in UTF-8 | `"visits.csv"`, `"visits.csv.gz"`, `"visits.tsv"` |
| CSV in another form | `Csv("visits.csv", header=False, names=["id", "day"], dates="%d.%m.%Y")` |
| Arrow IPC, Feather | `"visits.arrow"`, `"visits.feather"` |
| a Delta table, with `sfumato[delta]`: the files of its newest snapshot | `"visits/"` |
| a table of a DuckDB file | `"shop.duckdb::visits"`, or `"shop.duckdb"` if it has one table |
| in memory | a pyarrow Table, RecordBatch or Dataset, a pandas or Polars frame |

Files are listed when the source is attached; what a folder gains later is seen by the next session.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.engines._paths import WILD, can_be_named
from sfumato.engines.base import Source, check_address, masked, shown_source
from sfumato.engines.csv_format import Csv
from sfumato.engines.delta import files_of, is_delta
from sfumato.engines.frames import Frame, frame_of
from sfumato.errors import SourceUnusable
from sfumato.schema.states import Snapshot, StateFiles

__all__ = [
    "Database",
    "Files",
    "Format",
    "Located",
    "Stamp",
    "are_settled",
    "is_database",
    "locate",
    "reads",
    "stamps_of",
]

Format: TypeAlias = Literal["parquet", "csv", "arrow"]
Stamp: TypeAlias = tuple[int, ...] | None
"""Which file is behind a path and when it was written to last; None if it cannot be told."""

_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_DATABASES = (".duckdb", ".ddb")
_SETTLED = 2 * 10**9
"""Nanoseconds after which a file's time of change tells a later write from the last one."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files of one format, listed.

    Attributes:
        format: How they are written.
        paths: Absolute paths, sorted.
        partitions: The keys of `key=value` folders, which are columns too.
        shown: The source as the steward wrote it, for messages.
        above: The keys of `key=value` folders above a partitioned source, which are not columns of it though
            readers take them for such.
        csv: How CSV files are written, where that is declared.
    """

    format: Format
    paths: tuple[str, ...]
    partitions: tuple[str, ...]
    shown: str
    above: tuple[str, ...] = ()
    csv: Csv | None = None


@dataclass(frozen=True, slots=True)
class Database:
    """A table of a DuckDB file; without a name the only one."""

    path: str
    table: str | None
    shown: str


Located: TypeAlias = Files | Database | Frame


def locate(source: Source) -> Located:
    """What a source is, from its type, its name and the list of its files.

    Raises:
        SourceUnusable: if it is nothing that can be read, or no file is there.
    """
    if isinstance(source, Csv):
        located = locate(source.path)
        if not isinstance(located, Files) or located.format != "csv":
            raise SourceUnusable("A Csv is made of CSV files; name a .csv or .tsv file in it.")
        return replace(located, csv=source)
    if isinstance(source, str | Path):
        return _from_text(os.fspath(source))
    if isinstance(source, Snapshot):
        check_address(source.folder, ())  # whoever reads the log would look for it on the network
        shown = f"{shown_source(source.folder)} at snapshot {source.number}"
        return _files(_there(files_of(source.folder, source.number), shown), shown, root=source.folder)
    if isinstance(source, StateFiles):
        return _from_list([*source.paths], source.folder)
    if isinstance(source, list | tuple) and source and all(isinstance(path, str | Path) for path in source):
        return _from_list([os.fspath(path) for path in source])
    return frame_of(source)


def reads(source: Source, path: str | Path) -> bool:
    """Whether a file at this path is one of a source, or would be once it is there: by names alone."""
    if isinstance(source, Csv):
        return reads(source.path, path)
    if isinstance(source, list | tuple):
        return any(reads(each, path) for each in source)
    if not isinstance(source, str | Path):
        return False
    text, file = os.fspath(source).partition("::")[0], os.path.realpath(path)
    if os.path.isdir(text):
        inside = Path(os.path.relpath(file, os.path.realpath(text))).parts
        return all(part[0] not in "_." for part in inside) and _format(file) is not None
    if os.path.exists(text) or not any(character in text for character in WILD):
        return os.path.realpath(text) == file
    fixed = _fixed_part(text)
    return _fits(
        Path(os.path.relpath(file, os.path.realpath(fixed))).parts, Path(text).parts[len(Path(fixed).parts) :]
    )


def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a path fits a pattern, folder by folder, as `glob` takes them."""
    if not pattern or not parts:
        return not parts and all(each == "**" for each in pattern)
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or _fits(parts[1:], pattern)
    return fnmatch.fnmatch(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def is_database(source: Source) -> bool:
    """Whether it is a file that keeps tables, by its name alone: one that is gone is such a file too."""
    named = isinstance(source, str | Path)
    return named and os.fspath(source).partition("::")[0].lower().endswith(_DATABASES)


def stamps_of(paths: Iterable[str]) -> tuple[Stamp, ...]:
    """The stamps of files, which differ once one is replaced or written to."""
    return tuple(_stamp(path) for path in paths)


def are_settled(stamps: Iterable[Stamp]) -> bool:
    """Whether a later write to any of the files would give it another stamp: the clock has gone on since."""
    return all(stamp is None or stamp[-1] < time.time_ns() - _SETTLED for stamp in stamps)


def _stamp(path: str) -> Stamp:
    try:
        now = os.stat(path)
    except OSError:
        return None
    return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)


def _from_text(text: str) -> Located:
    shown = shown_source(text)
    check_address(text, ())
    path, _, table = text.partition("::")
    if path.lower().endswith(_DATABASES):
        if not os.path.isfile(path):
            raise SourceUnusable(f"{shown} does not exist; check the path.")
        return Database(os.path.abspath(path), table or None, shown)
    if os.path.isdir(text):
        inside = files_of(text) if is_delta(text) else list(_inside(text))
        return _files(inside, shown, root=text)
    if os.path.isfile(text):
        return _files([text], shown, root=os.path.dirname(text))
    if any(character in text for character in WILD):
        files = [file for file in glob.glob(text, recursive=True) if os.path.isfile(file)]
        return _files(files, shown, root=_fixed_part(text))
    raise SourceUnusable(f"{shown} does not exist; check the path.")


def _there(paths: list[str], shown: str) -> list[str]:
    """The files, if none of them is gone."""
    if not all(os.path.isfile(path) for path in paths):
        raise SourceUnusable(
            f"{shown} has files that are gone, as a vacuum leaves it; ask about a later one."
        )
    return paths


def _from_list(texts: list[str], folder: str | None = None) -> Files:
    shown = f'The list of {len(texts)} paths from "{masked(texts[0])}" on'
    if not all(os.path.isfile(path) for path in texts):
        raise SourceUnusable(f"{shown} names something that is not a file; list files only.")
    common = os.path.commonpath([os.path.dirname(os.path.abspath(each)) for each in texts])
    return _files(texts, shown, root=common if folder is None else folder)


def _inside(folder: str) -> Iterable[str]:
    """The data files of a folder and the folders in it; names that start with `_` or `.` are bookkeeping."""
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "_.")
        yield from (os.path.join(root, name) for name in files if name[0] not in "_." and _format(name))


def _fixed_part(pattern: str) -> str:
    parts = Path(pattern).parts
    wild = next(i for i, part in enumerate(parts) if any(character in part for character in WILD))
    return os.path.join(*parts[:wild]) if wild else ""


def _format(path: str) -> Format | None:
    name = os.path.basename(path).lower()
    return next((form for suffix, form in _FORMATS.items() if name.endswith(suffix)), None)


def _files(paths: list[str], shown: str, *, root: str) -> Files:
    if not paths:
        raise SourceUnusable(f"{shown} has no data files; {_known()}.")
    formats = {_format(path) for path in paths}
    if len(formats) > 1:
        raise SourceUnusable(f"{shown} mixes file formats; name one kind, as in folder/*.parquet.")
    (only,) = formats
    if only is None:
        raise SourceUnusable(f"{shown} has an unknown format; {_known()}.")
    absolute = _each_once(paths)
    keys = {_partition_keys(os.path.relpath(path, os.path.abspath(root))) for path in absolute}
    if len(keys) > 1:
        raise SourceUnusable(f"{shown} is partitioned unevenly; all files must lie under the same keys.")
    (partitions,) = keys
    above = _partition_keys(os.path.join(os.path.abspath(root), "file")) if partitions else ()
    if {key.casefold() for key in above} & {key.casefold() for key in partitions}:
        raise SourceUnusable(
            f"{shown} has a key=value folder above it with one of its keys; move the source."
        )
    named = tuple(path for path in absolute if can_be_named(path))
    if len(named) < len(absolute):
        _check_names(absolute, len(partitions), shown)
    return Files(only, named, partitions, shown, above)


def _each_once(paths: list[str]) -> tuple[str, ...]:
    """Absolute paths, sorted; of several symbolic links to one file the first."""
    absolute = sorted({os.path.abspath(path) for path in paths}, reverse=True)
    return tuple(sorted({os.path.realpath(path): path for path in absolute}.values()))


def _check_names(paths: tuple[str, ...], keys: int, shown: str) -> None:
    """Names of files are public and must be such that DuckDB can write them.

    The values of keys are not: files in folders that it cannot write are left out, each with the rows that
    have this value, so that no row decides what is said or whether others count.
    """
    for path in paths:
        *folders, name = Path(path).parts
        held = [i for i, part in enumerate(folders) if "=" in part][-keys:] if keys else []
        public = [part for i, part in enumerate(folders) if i not in held]
        if not can_be_named(os.path.join(*public, name)):
            raise SourceUnusable(
                f"{shown} has a name with a backslash and one of * ? [, or one that is not UTF-8; rename it."
            )
    if not any(map(can_be_named, paths)):
        raise SourceUnusable(f"{shown} has no data files; {_known()}.")


def _partition_keys(relative: str) -> tuple[str, ...]:
    folders = Path(relative).parts[:-1]
    return tuple(part.partition("=")[0] for part in folders if "=" in part)


def _known() -> str:
    return f"known names end in {', '.join([*_FORMATS, *_DATABASES])}"
