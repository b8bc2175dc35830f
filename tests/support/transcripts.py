"""The transcripts of docs/engines.md, typed again on a real engine: all that they say but noisy figures."""

from __future__ import annotations

import contextlib
import io
import random
import re
from pathlib import Path

import pyarrow as pa

__all__ = ["SOURCES", "visits", "wrong_lines"]

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
SOURCES = {
    "PostgreSQL": "postgresql://sfumato_reader@db.example.org/clinic::public.visits",
    "Apache Spark": "/lake/visits.parquet",
}
"""By the heading of a transcript, what it reads."""


def visits() -> pa.Table:
    """The table that the transcripts ask about."""
    draw = random.Random(7)
    rows = [
        {"patient_id": patient, "ward": draw.choice("AB"), "cost": round(draw.lognormvariate(4, 0.6), 2)}
        for patient in range(900)
        for _ in range(draw.randint(1, 3))
    ]
    return pa.Table.from_pylist(rows)


def wrong_lines(heading: str, source: str) -> list[str]:
    """What a transcript says otherwise than the engine, line by line; figures are not looked at.

    Args:
        heading: Of the part of the page that it is in.
        source: What is read in the place of the source that it names.
    """
    part = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    names: dict[str, object] = {}
    wrong, typed = [], 0
    for text, then in _examples(part):
        said = io.StringIO()
        here = text.replace(SOURCES[heading], source)
        typed += text != here
        with contextlib.redirect_stdout(said):
            exec(compile(here, "<transcript>", "single"), names)
        if _lines(said.getvalue()) != _lines(then):
            wrong.append(f"{text}says {_lines(said.getvalue())}, and not {_lines(then)}")
    assert typed == 1, "the transcript must name its source"
    return wrong


def _examples(part: str) -> list[tuple[str, str]]:
    """What is typed in the transcripts of a part of the page, and what is said then."""
    blocks = re.split(r"^```.*\n", part, flags=re.M)[1::2]
    found: list[tuple[str, str]] = []
    for line in "".join(block for block in blocks if block.startswith(">>> ")).splitlines(keepends=True):
        text, said = found.pop() if found and not line.startswith(">>> ") else ("", "")
        is_typed = line.startswith((">>> ", "... "))
        found.append((text + line[4:], said) if is_typed else (text, said + line))
    return found


def _lines(text: str) -> list[str]:
    """Lines without figures, and without the widths that follow from them."""
    return [" ".join(re.sub(r"[-\d.,]*\d", "#", line).replace("─", "").split()) for line in text.splitlines()]
