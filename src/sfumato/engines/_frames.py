"""Frames in memory as Arrow, column by column, without copies where they have its layout already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sfumato.errors import MissingExtra, SourceUnusable

__all__ = ["Frame", "frame_of", "is_text_valid", "read_arrow_files"]

_SHOWN = "The source in memory"


@dataclass(frozen=True, slots=True)
class Frame:
    """Named columns in memory, or an Arrow dataset; nothing is converted until a column is asked for.

    Attributes:
        names: The columns by position; they need not be distinct.
        pick: Gives something that Arrow can scan, and where in it the columns at the asked positions are.
        shown: What to call it in messages.
        files: The files that scanning it opens.
        remembers: Whether it keeps what it learned about their insides, as a dataset of Parquet files does.
    """

    names: tuple[str, ...]
    pick: Callable[[list[int]], tuple[Any, list[int]]]
    shown: str = _SHOWN
    files: tuple[str, ...] = ()
    remembers: bool = False


def frame_of(source: object) -> Frame:
    """A frame as named Arrow columns.

    Raises:
        SourceUnusable: if it is no frame that can be read more than once.
    """
    family = type(source).__module__.partition(".")[0]
    reader = _READERS.get(family)
    made = None if reader is None else reader(source)
    if made is None:
        raise SourceUnusable(
            "A source is a path, a pyarrow Table or Dataset, or a pandas or Polars frame "
            f"that is already read, not {type(source).__name__[:40]}."
        )
    return made


def _of_pyarrow(source: Any) -> Frame | None:
    pa = _pyarrow()
    import pyarrow.dataset as ds

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return Frame(
            tuple(source.column_names), lambda wanted: _table([_plain(source.column(i)) for i in wanted])
        )
    if isinstance(source, ds.Dataset):
        return of_dataset(source, remembers=True)
    return None


def _of_polars(source: Any) -> Frame | None:
    if type(source).__name__ != "DataFrame":
        return None
    _pyarrow()
    return Frame(
        tuple(source.columns),
        lambda wanted: _table([_plain(source.to_series(i).to_arrow()) for i in wanted]),
    )


def _of_pandas(source: Any) -> Frame | None:
    if type(source).__name__ != "DataFrame":
        return None
    pa = _pyarrow()
    return Frame(
        tuple(str(name) for name in source.columns),
        lambda wanted: _table([_plain(pa.array(source.iloc[:, i], from_pandas=True)) for i in wanted]),
    )


_READERS: dict[str, Callable[[Any], Frame | None]] = {
    "pyarrow": _of_pyarrow,
    "polars": _of_polars,
    "pandas": _of_pandas,
}


def of_dataset(dataset: Any, shown: str = _SHOWN, *, remembers: bool = False) -> Frame:
    """An Arrow dataset, read anew by each statement."""
    files = tuple(getattr(dataset, "files", ()))
    names = tuple(dataset.schema.names)
    return Frame(names, lambda wanted: (dataset, list(wanted)), shown, files=files, remembers=remembers)


def read_arrow_files(paths: tuple[str, ...], partitions: tuple[str, ...], shown: str) -> Frame:
    """Arrow IPC or Feather files as a dataset; a file in the streaming format is read into memory.

    Raises:
        SourceUnusable: if they cannot be opened or differ in their columns.
    """
    pa = _pyarrow()
    import pyarrow.dataset as ds

    frame = None
    try:
        if len(paths) == 1 and _is_stream(paths[0]):
            with pa.OSFile(paths[0]) as file:
                frame = _of_pyarrow(pa.ipc.open_stream(file).read_all())
        else:
            keys = ds.partitioning(pa.schema([(key, pa.string()) for key in partitions]), flavor="hive")
            dataset = ds.dataset(list(paths), format="ipc", partitioning=keys if partitions else None)
            schemas = [fragment.physical_schema for fragment in dataset.get_fragments()]
            frame = of_dataset(dataset, shown) if all(each.equals(schemas[0]) for each in schemas) else None
    except Exception:  # its text may hold data; what to do is the same whatever the reason
        frame = None
    if frame is None:
        raise SourceUnusable(f"{shown} cannot be read as Arrow files with the same columns; check them.")
    return frame


def _is_stream(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(6) != b"ARROW1"


def _table(columns: list[Any]) -> tuple[Any, list[int]]:
    names = [f"c{i}" for i in range(len(columns))]
    return _pyarrow().Table.from_arrays(columns, names=names), list(range(len(columns)))


def _plain(column: Any) -> Any:
    """The column in a type that DuckDB reads: two rare ones are converted, others left as they are."""
    pa = _pyarrow()
    if pa.types.is_float16(column.type):
        return column.cast(pa.float32())
    if pa.types.is_decimal256(column.type):
        return column.cast(pa.float64())
    return column


def is_text_valid(scannable: Any, position: int) -> bool:
    """Whether a column in memory is no text, or text in UTF-8: functions of text fail on anything else.

    Files are not looked at: reading them whole when they are attached would cost as much as a question.
    """
    pa = _pyarrow()
    if not isinstance(scannable, pa.Table):
        return True
    column = scannable.column(position)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return True
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("pyarrow is missing; install it with: pip install 'sfumato[duckdb]'.") from None
    return pyarrow
