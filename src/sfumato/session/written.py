"""An answer of many groups as files: what was written, where, and how it is known again."""

from __future__ import annotations

import json
import shutil
import stat
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato._files import write_whole
from sfumato.engines.parts import Part, digest_of
from sfumato.errors import InvalidParameter, LedgerUnusable
from sfumato.numeric.exact import read_fraction
from sfumato.render import shown, text_table

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.ledger import Receipt
    from sfumato.plan.prices.quoting import Quote

__all__ = ["MANIFEST", "Manifest", "Written"]

MANIFEST = "sfumato.json"
_FORMAT = "written/1"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the ledger keeps of an answer that was written.

    Attributes:
        folder: Where it is.
        draft: Where it was written before it was on record.
        parts: Its files.
        epsilon: The price.
        delta: The price.
        mechanism: Which noise.
    """

    folder: str
    draft: str
    parts: tuple[Part, ...]
    epsilon: Fraction
    delta: Fraction
    mechanism: str

    def to_bytes(self) -> bytes:
        """What `from_bytes` reads back."""
        files = [{"name": part.name, "rows": part.rows, "sha256": part.digest} for part in self.parts]
        facts = {
            "format": _FORMAT,
            "folder": self.folder,
            "draft": self.draft,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "mechanism": self.mechanism,
            "files": files,
        }
        return json.dumps(facts, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """The manifest that `to_bytes` wrote.

        Raises:
            LedgerUnusable: for a format of another version.
        """
        try:
            facts = json.loads(data)
            if facts["format"] != _FORMAT:
                raise ValueError("another format")
            return cls(
                facts["folder"],
                facts["draft"],
                tuple(
                    Part(number, each["name"], each["rows"], each["sha256"])
                    for number, each in enumerate(facts["files"])
                ),
                read_fraction(facts["epsilon"]),
                read_fraction(facts["delta"]),
                facts["mechanism"],
            )
        except (ValueError, KeyError, TypeError):
            raise LedgerUnusable(
                "A stored answer was written by another version of Sfumato; upgrade to read it."
            ) from None

    def is_in(self, folder: Path) -> bool:
        """Whether all files are there as they were written."""
        paths = [folder / part.name for part in self.parts]
        return all(path.is_file() for path in paths) and all(
            digest_of(path) == part.digest for path, part in zip(paths, self.parts, strict=True)
        )

    def place(self) -> Path | None:
        """Where the files are now; None where they are gone or changed."""
        return next((place for place in map(Path, (self.folder, self.draft)) if self.is_in(place)), None)

    def put(self, folder: Path) -> None:
        """Have the files in a folder, all at once and from wherever they are: a draft is moved, else copied.

        Raises:
            InvalidParameter: if something else is there, or nothing can be written; the files stay where they
                are.
        """
        if self.is_in(folder):
            return
        place = self.place()
        try:
            draft = Path(self.draft)
            if place != draft:
                assert place is not None
                draft = folder.with_name(f".{folder.name}.{random.token()}")
                shutil.copytree(place, draft)
            write_whole(draft / MANIFEST, self.to_bytes())
            draft.chmod(_as_others(folder.parent))
            draft.replace(folder)
        except OSError:
            if place != Path(self.draft):
                shutil.rmtree(draft, ignore_errors=True)
            raise InvalidParameter(
                f'The answer is on record, but "{folder.name}" has files by now, or cannot be written; name '
                "another folder, which is free."
            ) from None


def _as_others(folder: Path) -> int:
    """The permissions that a new folder has there."""
    with tempfile.TemporaryDirectory(dir=folder) as trial:
        made = Path(trial) / "new"
        made.mkdir()
        return stat.S_IMODE(made.stat().st_mode)


class Written:
    """An answer that was written to files: one for each part of the data, of released rows alone.

    Attributes:
        folder: Where they are.
        quote: What was asked, and at which price.
        receipt: What paid for it.
        free: Whether it was on record, and cost nothing.
        rows: How many groups are shown.
    """

    def __init__(
        self, folder: Path, manifest: Manifest, quote: Quote, receipt: Receipt, *, free: bool
    ) -> None:
        """Hold them."""
        self.folder, self.quote, self.receipt, self.free = folder, quote, receipt, free
        self._manifest = manifest
        self.rows = sum(part.rows for part in manifest.parts)

    @property
    def files(self) -> tuple[Path, ...]:
        """The Parquet files."""
        return tuple(self.folder / part.name for part in self._manifest.parts)

    def check(self) -> None:
        """Compare the files with what the ledger has of them.

        Raises:
            InvalidParameter: if one is missing or was changed.
        """
        if not self._manifest.is_in(self.folder):
            raise InvalidParameter(
                "A file of this answer is missing or was changed; write it again, which is free while the "
                "first copy is there."
            )

    def table(self) -> pa.Table:
        """All rows, in memory.

        Raises:
            InvalidParameter: if a file is missing or was changed.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.check()
        return pa.concat_tables([pq.read_table(path) for path in self.files])

    @property
    def estimands(self) -> dict[str, str]:
        """What each column estimates, in one phrase; keys estimate nothing."""
        return self.quote.estimands

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        widths = self.quote.error()
        columns: dict[str, list[Any]] = {"column": [], "estimates": [], "± noise": []}
        for name, phrase in self.estimands.items():
            width = widths.get(name)
            columns["column"].append(name)
            columns["estimates"].append(phrase)
            columns["± noise"].append("depends on the data" if width is None else shown(width))
        delta = f", delta {shown(float(self._manifest.delta))}" if self._manifest.delta else ""
        price = f"Paid epsilon {shown(float(self._manifest.epsilon))}{delta}"
        paid = f"{'On record, free' if self.free else price} (receipt {self.receipt.number})."
        said = f"{self.rows:,} groups in {len(self.files)} files of {self.folder}."
        return "\n".join((text_table(columns), said, paid))
