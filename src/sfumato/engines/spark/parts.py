"""Parts of a result in Spark: each is worked on by a task where it is, and taken once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engines.parts import Part, Work, write_part
from sfumato.errors import EngineFailed

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["written"]

_DONE = "number INT, name STRING, rows BIGINT, digest STRING"
_FAILED = "A part could not be written."


def written(
    frame: Any, work: Work, schema: pa.Schema, folder: Path, order: Sequence[str], many: int
) -> tuple[Part, ...]:
    """Work on so many parts of a frame, and keep one file of each.

    Spark may try a task again, or run it twice at once, and takes the answer of one: the name of that one's
    file is in it. Files that no answer names are removed.

    Privacy:
        Claim: how many files there are, and which of them has a group, says nothing of other groups. Proof:
        there are `many`, and a group's place is a hash of its keys. Where the plan has them otherwise, such
        as by ranges that Spark takes from samples, they are divided anew.
    """
    if not _is_hashed(frame, many):
        frame = frame.repartition(many, *order)
    task = _task(work, schema, str(folder))
    found = frame.sortWithinPartitions(*order).mapInArrow(task, _DONE).collect()
    parts = {row["number"]: Part(row["number"], row["name"], row["rows"], row["digest"]) for row in found}
    if len(parts) != len(found) or not parts.keys() <= set(range(many)):
        raise EngineFailed(_FAILED)
    for number in set(range(many)) - parts.keys():  # without lines, for which no task ran
        parts[number] = write_part(work, schema, folder, number, iter(()))
    kept = {part.name for part in parts.values()}
    for path in folder.iterdir():
        if path.name not in kept:
            path.unlink()
    return tuple(parts[number] for number in range(many))


def _is_hashed(frame: Any, many: int) -> bool:
    """Whether the plan of a frame has so many parts by a hash; not by Connect, which does not say."""
    with contextlib.suppress(Exception):
        found = frame._jdf.queryExecution().executedPlan().outputPartitioning()
        is_hash = found.getClass().getSimpleName() == "HashPartitioning"
        return bool(is_hash and found.numPartitions() == many)
    return False


def _task(
    work: Work, schema: pa.Schema, folder: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        part = None
        with contextlib.suppress(Exception):
            part = write_part(work, schema, Path(folder), context.partitionId(), batches)
        if part is None:  # raised here: what an error says may be a value
            raise RuntimeError(_FAILED)
        line = {"number": part.number, "name": part.name, "rows": part.rows, "digest": part.digest}
        types = pa.schema({"number": pa.int32(), "name": pa.string(), "rows": pa.int64()})
        yield pa.RecordBatch.from_pylist([line], types.append(pa.field("digest", pa.string())))

    return task
