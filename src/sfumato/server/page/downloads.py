"""An answer as a file that carries its receipt: CSV, Parquet, JSON and PNG."""

from __future__ import annotations

import csv
import io
import json
import struct
import zlib
from importlib.util import find_spec

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato._dataclasses import dataclass
from sfumato.ledger import Balance
from sfumato.render import plain_json
from sfumato.session import Release
from sfumato.session.documents import document_of

__all__ = ["File", "file_of", "kinds"]

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEYWORD = b"sfumato"


@dataclass(frozen=True, slots=True)
class File:
    """What is downloaded.

    Attributes:
        data: The bytes.
        kind: Their media type.
        name: Of the file, made of the receipt's number alone.
    """

    data: bytes
    kind: str
    name: str


def kinds() -> list[str]:
    """What an answer can be downloaded as here: a picture needs matplotlib."""
    return ["csv", "parquet", "json", *(["png"] if find_spec("matplotlib") else [])]


def file_of(
    release: Release, kind: str, *, balance: Balance, confidence: str, column: str | None = None
) -> File:
    """An answer as a file.

    Args:
        release: The answer.
        kind: One of `kinds`.
        balance: What is left, which the JSON document tells.
        confidence: Of error bars.
        column: Which column a picture shows; None: all.
    """
    number = release.receipt.number
    name = f"sfumato-receipt-{number}.{kind}"
    if kind == "csv":
        return File(_csv(release, confidence).encode(), "text/csv; charset=utf-8", name)
    if kind == "parquet":
        return File(_parquet(release, confidence), "application/vnd.apache.parquet", name)
    if kind == "json":
        document = {**plain_json(document_of(release, balance, confidence)), "paid_by": _receipt(release)}
        return File(json.dumps(document, ensure_ascii=False, indent=1).encode(), "application/json", name)
    return File(_png(release, confidence, column), "image/png", name)


def _receipt(release: Release) -> dict[str, object]:
    """The receipt as it is on the ledger, without who paid: that is nobody else's to know."""
    told: dict[str, object] = plain_json(release.receipt.to_dict())
    told.pop("analyst", None)
    return told


def _csv(release: Release, confidence: str) -> str:
    """The columns with errors and intervals, and in each row what it was paid with.

    The receipt is in columns of its own: lines of comments would have to be skipped by whoever reads it.
    """
    columns = release.to_arrow(errors=True, confidence=confidence)
    names = list(columns.column_names)
    facts = {
        "receipt": release.receipt.number,
        "dataset": release.receipt.dataset,
        "paid_epsilon": float(release.epsilon),
        "paid_delta": float(release.quote.delta),
        "confidence": float(confidence),
    }
    for fact in facts:
        name = fact
        while name in names:
            name += "_"
        names.append(name)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([harmless(name) for name in names])
    cells = [column.to_pylist() for column in columns.columns]
    for row in range(columns.num_rows):
        writer.writerow(
            [harmless(listed[row]) for listed in cells] + [harmless(fact) for fact in facts.values()]
        )
    return text.getvalue()


def harmless(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula: text that begins like one has a quote before it."""
    if isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULAS):
        return f"'{cell}"
    return cell


def _parquet(release: Release, confidence: str) -> bytes:
    columns = release.to_arrow(errors=True, confidence=confidence)
    facts = {
        "sfumato.receipt": json.dumps(_receipt(release), ensure_ascii=False),
        "sfumato.estimands": json.dumps(dict(release.estimands), ensure_ascii=False),
        "sfumato.confidence": confidence,
    }
    held = {
        **(columns.schema.metadata or {}),
        **{name.encode(): text.encode() for name, text in facts.items()},
    }
    sink = pa.BufferOutputStream()
    pq.write_table(columns.replace_schema_metadata(held), sink)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _png(release: Release, confidence: str, column: str | None) -> bytes:
    figure = release.plot(column=column, confidence=float(confidence))
    sink = io.BytesIO()
    figure.savefig(sink, format="png", dpi=150)
    return with_text(sink.getvalue(), json.dumps(_receipt(release)).encode())


def with_text(picture: bytes, text: bytes) -> bytes:
    """A PNG with a chunk `tEXt` after its head; the text is ASCII."""
    body = b"tEXt" + _KEYWORD + b"\0" + text
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    head = len(_SIGNATURE) + 4 + 4 + 13 + 4  # the chunk IHDR comes first
    return picture[:head] + chunk + picture[head:]
