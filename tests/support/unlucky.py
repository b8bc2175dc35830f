"""Work on parts of a result that goes wrong, as tasks of a cluster do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

__all__ = ["AsTheyAre", "Broken", "Unlucky"]


class Unlucky:
    """Work that ends when it has drawn something, the first time that it is tried, for every second part."""

    def __init__(self, work: Any, folder: Path) -> None:
        self.work, self.folder, self.schema = work, str(folder), work.schema
        by_value()

    def __call__(self, part: int, batches: Any) -> Any:
        made = list(self.work(part, batches))
        yield from made[:1]
        mark = Path(self.folder, f"{part}")
        if part % 2 == 0 and not mark.exists():
            mark.touch()
            raise RuntimeError("a task was lost")
        yield from made[1:]


class Broken:
    """Work that fails each time, with words that nobody may see."""

    def __init__(self, work: Any, words: str) -> None:
        self.schema, self.words = work.schema, words
        by_value()

    def __call__(self, part: int, batches: Any) -> Any:
        raise ValueError(self.words)
        yield


class AsTheyAre:
    """Work that shows all lines."""

    def __init__(self) -> None:
        by_value()

    def __call__(self, part: int, batches: Any) -> Any:
        import pyarrow as pa

        yield from (pa.Table.from_batches([batch]) for batch in batches)


def by_value() -> None:
    """Let Spark's tasks have what is here, which is not installed where they run."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
