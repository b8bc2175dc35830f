"""The folder of a publication: checked before anything is paid, and written whole in the end."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato._dataclasses import dataclass
from sfumato._files import write_whole
from sfumato.engines.sources import reads
from sfumato.errors import InvalidParameter
from sfumato.publishing.entries import Published
from sfumato.publishing.page import CONFIDENCE, page
from sfumato.publishing.wanted import FileUnusable, ReleaseFile, Wanted
from sfumato.schema import PrivateTable, PublicTable

__all__ = ["Folder"]

_FORMAT = 1
_MANIFEST, _PAGE = "manifest.json", "index.html"
_ENDINGS = ("csv", "parquet")


@dataclass(frozen=True, slots=True)
class Folder:
    """Where the files of a publication are.

    Attributes:
        path: The folder.
        published: By release, how many windows its files have by now.
        names: Of all files that may be written.
    """

    path: Path
    published: Mapping[str, int]
    names: tuple[str, ...]

    @classmethod
    def of(cls, file: ReleaseFile) -> Folder:
        """The folder of a release file, if it can be written and holds nothing else under these names.

        Raises:
            FileUnusable: if it cannot, or a release is published there on other terms; nothing was spent.
        """
        path = file.folder
        place = path
        while not os.path.lexists(place) and place != place.parent:
            place = place.parent
        if "\0" in str(path) or not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            raise FileUnusable(
                f"The folder {path} cannot be written: name one that can be, or a new one in such a folder."
            )
        names = (_MANIFEST, _PAGE, *(f"{each.name}.{end}" for each in file.wanted for end in _ENDINGS))
        taken = next((name for name in names if (path / name).is_dir()), None)
        if taken is not None:
            raise FileUnusable(f"{path / taken} cannot be written: there is a folder of that name.")
        return cls(path, _published(path / _MANIFEST, file.wanted), names)

    def refuse_sources(self, tables: Iterable[PrivateTable | PublicTable]) -> None:
        """Refuse to write where a table is read from: over its rows, or as more of them.

        Raises:
            FileUnusable: if a file of the publication is one of a table, or would be; nothing was spent.
        """
        for table in tables:
            taken = next((name for name in self.names if reads(table.source, self.path / name)), None)
            if taken is not None:
                raise FileUnusable(
                    f"{self.path / taken} is, or would be, a file that {table.name} is read from: choose "
                    "another folder."
                )

    def write(self, title: str, releases: Sequence[Published]) -> list[Path]:
        """Write all files, each whole or not at all, and last the manifest, which has their digests.

        Raises:
            InvalidParameter: if one cannot be written; what was published is on record, and free.
        """
        files = dict[str, bytes]()
        for release in releases:
            if release.table is not None:
                files[f"{release.wanted.name}.csv"] = csv_of(release.table)
                files[f"{release.wanted.name}.parquet"] = parquet_of(release.table)
        files[_PAGE] = page(title, releases).encode()
        files[_MANIFEST] = manifest(title, releases, files)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                write_whole(self.path / name, content)
        except OSError:
            raise InvalidParameter(
                f"The files in {self.path} could not be written. What was published is on record: the next "
                "run writes them, free."
            ) from None
        return [self.path / name for name in files]


def _published(path: Path, wanted: Iterable[Wanted]) -> dict[str, int]:
    """How many windows of each release a manifest has, if these are the releases that it speaks of."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        found = None
    foreign = FileUnusable(
        f"{path} was not written by this command, or by another version of it: choose another folder."
    )
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise foreign
    many = dict[str, int]()
    try:
        terms = {entry["name"]: (entry["terms"], entry["windows"]) for entry in found["releases"]}
    except (KeyError, TypeError):
        raise foreign from None
    if not all(isinstance(said, dict) and type(windows) is int for said, windows in terms.values()):
        raise foreign
    for each in wanted:
        before, many[each.name] = terms.get(each.name, (None, 0))
        now = each.to_dict()
        if before is None or before == now or not many[each.name]:
            continue
        changed = next((key for key in now if before.get(key) != now[key]), "kind")
        raise FileUnusable(
            f"{each.where} is published, and {changed} was something else then: all of its windows would be "
            "paid for again. Give it another name, or put back what the manifest has."
        )
    return many


def csv_of(table: pa.Table) -> bytes:
    """The rows as CSV: an empty field is no value, inf an end of an interval that nothing is known of."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    columns = [[_cell(value) for value in column.to_pylist()] for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def parquet_of(table: pa.Table) -> bytes:
    """The rows as Parquet."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def manifest(title: str, releases: Sequence[Published], files: Mapping[str, bytes]) -> bytes:
    """What was published, on which terms and by which receipts, with the digest of every file.

    Nothing in it changes from run to run: no time, no name of a machine.
    """
    document = {
        "format": _FORMAT,
        "made_by": {"name": "sfumato", "version": version("sfumato")},
        "title": title,
        "confidence": CONFIDENCE,
        "releases": [_entry(release, files) for release in releases],
        "files": {_PAGE: _digest(files[_PAGE])},
    }
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _entry(release: Published, files: Mapping[str, bytes]) -> dict[str, Any]:
    names = [f"{release.wanted.name}.{end}" for end in _ENDINGS]
    return {
        "name": release.wanted.name,
        "terms": release.wanted.to_dict(),
        "dataset": release.dataset,
        "protects": release.protects,
        "every": release.every,
        "windows": release.windows,
        "first": release.first or None,
        "last": release.last or None,
        "epsilon": float(release.epsilon),
        "delta": float(release.delta),
        "receipts": list(release.receipts),
        **({"states": list(release.states)} if release.states else {}),
        "files": {name: _digest(files[name]) for name in names if name in files},
    }


def _digest(content: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
