"""An answer as a file that carries its receipt: CSV, Parquet, JSON and PNG."""

from __future__ import annotations

import csv
import io
import json
import struct
import zlib
from importlib.util import find_spec
from unicodedata import category

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato._dataclasses import dataclass
from sfumato.ledger import Balance
from sfumato.render import plain_json
from sfumato.session import Release
from sfumato.session.documents import document_of

__all__ = ["File", "file_of", "kinds"]

_FORMULAS = tuple("=+-@＝＋－＠")  # the wide ones are what is meant
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
    release: Release, kind: str, *, own: bool, balance: Balance, confidence: str, column: str | None = None
) -> File:
    """An answer as a file.

    Args:
        release: The answer.
        kind: One of `kinds`.
        own: Whether it is for whoever paid.
        balance: What is left, which the JSON document tells.
        confidence: Of error bars.
        column: Which column a picture shows; None: all.
    """
    number = release.receipt.number
    name = f"sfumato-receipt-{number}.{kind}"
    if kind == "csv":
        return File(_csv(release, confidence).encode(), "text/csv; charset=utf-8", name)
    if kind == "parquet":
        return File(_parquet(release, confidence, own), "application/vnd.apache.parquet", name)
    if kind == "json":
        document = {
            **plain_json(document_of(release, balance, confidence)),
            "paid_by": _receipt(release, own),
        }
        return File(json.dumps(document, ensure_ascii=False, indent=1).encode(), "application/json", name)
    return File(_png(release, confidence, column, own), "image/png", name)


def _receipt(release: Release, own: bool) -> dict[str, object]:
    """The receipt as whoever paid may pass it on: without who that is, and what others have spent.

    Others learn its number, dataset and price: words and times of a question are whoever asked it's.
    """
    told: dict[str, object] = plain_json(release.receipt.to_dict())
    kept = told.keys() - {"analyst", "totals"} if own else {"number", "dataset", "price"}
    return {name: value for name, value in told.items() if name in kept}


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
    writer = csv.writer(text, lineterminator="\r\n", quoting=csv.QUOTE_NONNUMERIC)  # none ends at a ;
    writer.writerow([harmless(name) for name in names])
    cells = [column.to_pylist() for column in columns.columns]
    for row in range(columns.num_rows):
        writer.writerow(
            [harmless(listed[row]) for listed in cells] + [harmless(fact) for fact in facts.values()]
        )
    return text.getvalue()


def harmless(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula: text that begins like one has a quote before it.

    What does not show, blanks of all kinds and control characters, is no beginning.
    """
    if not isinstance(cell, str) or not cell:
        return cell
    seen = next((letter for letter in cell if category(letter)[0] not in "ZC"), "")
    unseen = cell[0] in "\t\r\n"
    return f"'{cell}" if unseen or seen.startswith(_FORMULAS) else cell


def _parquet(release: Release, confidence: str, own: bool) -> bytes:
    columns = release.to_arrow(errors=True, confidence=confidence)
    facts = {
        "sfumato.receipt": json.dumps(_receipt(release, own), ensure_ascii=False),
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


def _png(release: Release, confidence: str, column: str | None, own: bool) -> bytes:
    figure = release.plot(column=column, confidence=float(confidence))
    sink = io.BytesIO()
    figure.savefig(sink, format="png", dpi=150)
    return with_text(sink.getvalue(), json.dumps(_receipt(release, own)).encode())


def with_text(picture: bytes, text: bytes) -> bytes:
    """A PNG with a chunk `tEXt` after its head; the text is ASCII."""
    body = b"tEXt" + _KEYWORD + b"\0" + text
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    head = len(_SIGNATURE) + 4 + 4 + 13 + 4  # the chunk IHDR comes first
    return picture[:head] + chunk + picture[head:]
