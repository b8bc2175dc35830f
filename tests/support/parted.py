"""DuckDB as an engine that works on parts: the result is divided here, and each part worked on by itself."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.engines.duckdb import DuckDB
from sfumato.engines.parts import Part, Work, write_part

__all__ = ["Parted"]


class Parted(DuckDB):
    """With a number of parts that follows from settings, and what was seen beside the files as they came."""

    many = 3

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.modes = list[int]()
        self.reads = 0

    def in_parts(
        self,
        statement: Any,
        work: Work,
        schema: pa.Schema,
        folder: Path,
        *,
        order: Sequence[str],
        guard: Any = None,
    ) -> tuple[Part, ...]:
        self.modes.append(folder.stat().st_mode & 0o777)
        self.reads += 1
        lines = self.fetch(statement, guard=guard).sort_by([(name, "ascending") for name in order])
        keys = zip(*(lines.column(name).to_pylist() for name in order), strict=True)
        places = [zlib.crc32(repr(key).encode()) % self.many for key in keys]
        return tuple(
            write_part(
                work,
                schema,
                folder,
                number,
                iter(lines.filter(pa.array([place == number for place in places], pa.bool_())).to_batches()),
            )
            for number in range(self.many)
        )
