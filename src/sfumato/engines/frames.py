"""Frames in memory as Arrow, column by column, without copies where they have its layout already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines._arrow import exact_as_id, is_zoned, readable, scannable, valid_text
from sfumato.engines._cells import ids_of, texts_of
from sfumato.errors import SourceUnusable

__all__ = ["Frame", "Picked", "frame_of", "is_text_valid", "read_arrow_files", "read_parquet_files"]

_SHOWN = "The source in memory"


@dataclass(frozen=True, slots=True)
class Picked:
    """Columns of a frame, ready for Arrow to scan.

    Attributes:
        scannable: What Arrow scans.
        values: Where in it the columns are that are read as values.
        ids: Where those are that are compared as they are.
        objects: Which columns hold Python objects: as ids each is written with its type.
        vague: Which columns Arrow or DuckDB would change so that two values could become one.
        zoned: Which columns are times that had a zone in the source and have none here.
        checked: Whether all text in it is UTF-8; text of files is not looked at.
    """

    scannable: Any
    values: tuple[int, ...]
    ids: tuple[int, ...]
    objects: frozenset[int] = frozenset()
    vague: frozenset[int] = frozenset()
    zoned: frozenset[int] = frozenset()
    checked: bool = True


@dataclass(frozen=True, slots=True)
class Frame:
    """Named columns in memory, or an Arrow dataset; nothing is converted until a column is asked for.

    Attributes:
        names: The columns by position; they need not be distinct.
        pick: Gives something that Arrow can scan, and where in it the columns at the asked positions are, in
            the types that Arrow gives them.
        read: Gives columns by their positions, some as values and some as ids, each cell by itself: no cell
            decides how others are read.
        shown: What to call it in messages.
        files: The files that scanning it opens.
        remembers: Whether it keeps what it learned about their insides, as a dataset of Parquet files does.
        pieces: The frames that it is made of, if its files have columns of different types.
    """

    names: tuple[str, ...]
    pick: Callable[[list[int]], tuple[Any, list[int]]]
    read: Callable[[list[int], list[int]], Picked]
    shown: str = _SHOWN
    files: tuple[str, ...] = ()
    remembers: bool = False
    pieces: tuple[Frame, ...] = ()


def frame_of(source: object) -> Frame:
    """A frame as named Arrow columns.

    Raises:
        SourceUnusable: if it is not a frame that can be read more than once.
    """
    family = type(source).__module__.partition(".")[0]
    reader = _READERS.get(family)
    frame = None if reader is None else reader(source)
    if frame is None:
        raise SourceUnusable(
            "A source is a path, a pyarrow Table or Dataset, or a pandas or Polars frame "
            f"that is already read, not {type(source).__name__[:40]}."
        )
    return frame


def _of_pyarrow(source: Any) -> Frame | None:
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return _in_memory(tuple(source.column_names), source.num_rows, source.column)
    if isinstance(source, ds.Dataset):
        from sfumato.engines._datasets import of_dataset

        return of_dataset(source, _SHOWN)
    return None


def _of_polars(source: Any) -> Frame | None:
    if type(source).__name__ != "DataFrame":
        return None

    def cells(position: int) -> list[Any] | None:
        series = source.to_series(position)
        return series.to_list() if str(series.dtype) == "Object" else None

    return _in_memory(tuple(source.columns), len(source), lambda i: source.to_series(i).to_arrow(), cells)


def _of_pandas(source: Any) -> Frame | None:
    if type(source).__name__ != "DataFrame":
        return None
    import pyarrow as pa

    def cells(position: int) -> list[Any] | None:
        column = source.iloc[:, position]
        is_odd = column.dtype == object or (
            str(column.dtype) == "category" and column.cat.categories.dtype == object
        )
        return list(column.array) if is_odd else None

    names = tuple(str(name) for name in source.columns)
    return _in_memory(names, len(source), lambda i: pa.array(source.iloc[:, i], from_pandas=True), cells)


_READERS: dict[str, Callable[[Any], Frame | None]] = {
    "pyarrow": _of_pyarrow,
    "polars": _of_polars,
    "pandas": _of_pandas,
}


def _in_memory(
    names: tuple[str, ...],
    rows: int,
    column: Callable[[int], Any],
    cells: Callable[[int], list[Any] | None] = lambda _: None,
) -> Frame:
    """A frame of Arrow columns; `cells` gives those of a column of Python objects, None for all others."""
    import pyarrow as pa

    def read(values: list[int], ids: list[int]) -> Picked:
        arrays: list[Any] = []
        natives: dict[int, Any] = {}
        for place, position in enumerate((*values, *ids)):
            odd = cells(position)
            if odd is None:
                native = column(position)
                natives[place] = native.type
                arrays.append(valid_text(scannable(native)))
            elif place < len(values):
                arrays.append(pa.array(texts_of(odd), pa.string()))
            else:
                arrays.append(pa.array(ids_of(odd), pa.binary()))
        at = tuple(range(len(arrays)))
        arrays = arrays or [pa.nulls(rows, pa.bool_())]  # a table without columns would have no rows
        table = pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])
        return Picked(
            table,
            at[: len(values)],
            at[len(values) :],
            objects=frozenset(at) - natives.keys(),
            vague=frozenset(place for place, kind in natives.items() if not exact_as_id(kind)),
            zoned=frozenset(place for place, kind in natives.items() if is_zoned(kind)),
        )

    return Frame(names, lambda wanted: _table([readable(column(i)) for i in wanted]), read)


def read_arrow_files(paths: tuple[str, ...], partitions: tuple[str, ...], shown: str) -> Frame:
    """Arrow IPC or Feather files as a dataset; a file in the streaming format is read into memory.

    Raises:
        SourceUnusable: if they cannot be opened or differ in their columns.
    """
    import pyarrow as pa

    from sfumato.engines._datasets import files_of, of_dataset

    frame = None
    try:
        if len(paths) == 1 and _is_stream(paths[0]):
            with pa.OSFile(paths[0]) as file:
                frame = _of_pyarrow(pa.ipc.open_stream(file).read_all())
        else:
            dataset = files_of(paths, partitions, "ipc")
            schemas = [fragment.physical_schema for fragment in dataset.get_fragments()]
            alike = all(schema.equals(schemas[0]) for schema in schemas)
            frame = of_dataset(dataset, shown, remembers=False) if alike else None
    except Exception:  # its text may hold data; what to do is the same whatever the reason
        frame = None
    if frame is None:
        raise SourceUnusable(f"{shown} cannot be read as Arrow files with the same columns; check them.")
    return frame


def read_parquet_files(paths: tuple[str, ...], partitions: tuple[str, ...], shown: str) -> Frame:
    """Parquet files as an Arrow dataset, which keeps times as they are, whatever they are.

    Raises:
        SourceUnusable: if Arrow cannot open them.
    """
    from sfumato.engines._datasets import files_of, of_dataset

    frame = None
    try:
        frame = of_dataset(files_of(paths, partitions, "parquet"), shown)
    except Exception:  # its text may hold data
        frame = None
    if frame is None:
        raise SourceUnusable(f"{shown} cannot be opened; check that it is whole and readable.")
    return frame


def _is_stream(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(6) != b"ARROW1"


def _table(columns: list[Any]) -> tuple[Any, list[int]]:
    import pyarrow as pa

    names = [f"c{i}" for i in range(len(columns))]
    return pa.Table.from_arrays(columns, names=names), list(range(len(columns)))


def is_text_valid(scannable: Any, position: int) -> bool:
    """Whether a column in memory is not text, or text in UTF-8: functions of text fail on anything else."""
    import pyarrow as pa

    if not isinstance(scannable, pa.Table):
        return True
    column = scannable.column(position)
    return valid_text(column) is column
