"""Arrow datasets as frames, one for each set of files whose columns have the same types."""

from __future__ import annotations

import functools
import operator
from typing import Any

from sfumato.engines._arrow import exact_as_id, has_runs, is_zoned, scannable_type
from sfumato.engines._paths import key_values
from sfumato.engines.frames import Frame, Picked, frame_of
from sfumato.errors import SourceUnusable

__all__ = ["files_of", "of_dataset"]

_ROWS_DECIDE = ("csv", "json")


def files_of(paths: tuple[str, ...], partitions: tuple[str, ...], form: str) -> Any:
    """Files as a dataset, with the keys of their folders as text."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    read: Any = form
    if form == "parquet":  # UUIDs as what they are, not as bytes; old times of 96 bits beyond the year 2262
        options = ds.ParquetFragmentScanOptions(arrow_extensions_enabled=True)
        read = ds.ParquetFileFormat(
            read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"),
            default_fragment_scan_options=options,
        )
    dataset = ds.dataset(list(paths), format=read)
    if not partitions:
        return dataset
    keys = pa.schema([(key, pa.string()) for key in partitions])
    return ds.FileSystemDataset.from_paths(
        dataset.files,
        schema=pa.unify_schemas([dataset.schema, keys]),
        format=dataset.format,
        filesystem=dataset.filesystem,
        partitions=[_guarantee(partitions, key_values(path, len(partitions))) for path in dataset.files],
    )


def _guarantee(keys: tuple[str, ...], values: tuple[str | None, ...]) -> Any:
    """What Arrow is told of a file: the values of its keys."""
    import pyarrow.dataset as ds

    told = [
        ds.field(key).is_null() if value is None else ds.field(key) == value
        for key, value in zip(keys, values, strict=True)
    ]
    return functools.reduce(operator.and_, told)


def of_dataset(dataset: Any, shown: str, *, remembers: bool = True) -> Frame:
    """An Arrow dataset, read again by each statement.

    Arrow casts files of other types to those of the dataset while it scans, which can fail on a row, and can
    make one id of two. So each set of files is read in the types that it has, which their metadata tell.

    Raises:
        SourceUnusable: if types are taken from rows, as of CSV files, or files differ and the dataset has a
            filter.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(dataset, ds.UnionDataset) and not dataset._scan_options:
        pieces = tuple(of_dataset(child, shown, remembers=remembers) for child in dataset.children)
        return _together(pieces, dataset, shown, remembers=remembers)
    if isinstance(dataset, ds.InMemoryDataset):
        return frame_of(dataset.to_table())
    if not isinstance(dataset, ds.FileSystemDataset):
        raise SourceUnusable(f"{shown} is an unknown kind of dataset; give the paths of its files.")
    form = dataset.format.default_extname
    if form in _ROWS_DECIDE:
        raise SourceUnusable(f"{shown} takes its types from rows of {form} files; give the paths instead.")
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for fragment in dataset.get_fragments():
        groups.setdefault(_types(dataset.schema, fragment.physical_schema), []).append(fragment)
    if not groups or list(groups) == [tuple(dataset.schema.types)]:
        return _one(dataset, shown, remembers=remembers)
    if dataset._scan_options:
        raise SourceUnusable(f"{shown} has a filter and files of different types; give it without a filter.")
    parts = [
        ds.FileSystemDataset(
            files,
            pa.schema(list(zip(dataset.schema.names, types, strict=True))),
            dataset.format,
            dataset.filesystem,
        )
        for types, files in groups.items()
    ]
    pieces = tuple(_one(part, shown, remembers=remembers) for part in parts)
    return _together(pieces, dataset, shown, remembers=remembers)


def _types(wanted: Any, physical: Any) -> tuple[Any, ...]:
    """The types that a file has for the fields of a dataset; those that it lacks come from its folders."""
    places = [physical.get_field_index(field.name) for field in wanted]
    return tuple(
        field.type if place < 0 else physical.field(place).type
        for field, place in zip(wanted, places, strict=True)
    )


def _one(dataset: Any, shown: str, *, remembers: bool) -> Frame:
    import pyarrow as pa
    import pyarrow.dataset as ds

    names, types = tuple(dataset.schema.names), dataset.schema.types

    def read(values: list[int], ids: list[int]) -> Picked:
        """Only what is wanted: DuckDB refuses a dataset with a type that it does not know in any column."""
        natives = [types[place] for place in (*values, *ids)]
        as_it_is = bool(dataset._scan_options) or len(set(names)) < len(names)
        if any(has_runs(native) or (as_it_is and is_zoned(native)) for native in natives):
            raise SourceUnusable(f"{shown} has a column that a dataset cannot give; read it into memory.")
        wanted = list(dict.fromkeys([*values, *ids]))
        at = {place: i for i, place in enumerate(wanted)}
        scannable = dataset
        if as_it_is:
            at = {place: place for place in wanted}
        else:
            schema = pa.schema([(names[place], _scanned(types[place])) for place in wanted])
            files = list(dataset.get_fragments())
            scannable = ds.FileSystemDataset(files, schema, dataset.format, dataset.filesystem)
        vague = frozenset(at[place] for place in wanted if not exact_as_id(types[place]))
        zoned = frozenset(at[place] for place in wanted if is_zoned(types[place]))
        shown_at, ids_at = (tuple(at[place] for place in places) for places in (values, ids))
        return Picked(scannable, shown_at, ids_at, vague=vague, zoned=zoned, checked=False)

    return Frame(
        names,
        lambda wanted: (dataset, list(wanted)),
        read,
        shown,
        files=tuple(dataset.files),
        remembers=remembers,
    )


def _scanned(native: Any) -> Any:
    """The type to scan a column in; runs stay, since DuckDB decodes plain ones and a dataset cannot."""
    import pyarrow as pa

    return native if pa.types.is_run_end_encoded(native) else scannable_type(native)


def _together(pieces: tuple[Frame, ...], dataset: Any, shown: str, *, remembers: bool) -> Frame:
    """Frames that are read one by one; as a whole the dataset is for the steward alone."""
    if len(pieces) == 1:
        return pieces[0]
    files = tuple(path for piece in pieces for path in piece.files)
    names = tuple(dataset.schema.names)
    return Frame(
        names, lambda wanted: (dataset, list(wanted)), pieces[0].read, shown, files, remembers, pieces
    )
