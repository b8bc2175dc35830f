"""One more table in a sfumato.toml that is there: it grows at the end, and says of all else the same."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from sfumato.catalog.keys import Kept
from sfumato.catalog.toml_text import NotToml, parsed
from sfumato.catalog.write import DraftTable, section
from sfumato.errors import CatalogUnusable

__all__ = ["replace_text", "with_table"]


def with_table(
    text: str, table: DraftTable, *, unit: str, epsilon: str, delta: str, dataset: str | None = None
) -> str:
    """The text of a sfumato.toml with one more table.

    Args:
        text: As it is.
        table: What is added.
        unit: Its unit: a column's name or `row`.
        epsilon: The epsilon of its own budget.
        delta: The delta of its own budget.
        dataset: Whose budget it draws on instead of one of its own.

    Raises:
        CatalogUnusable: if the file cannot be added to without a change of what it says.
    """
    added = section(table, unit=unit, epsilon=epsilon, delta=delta, dataset=dataset)
    longer = f"{text.rstrip()}\n\n{added}"
    before, after = _read(text), _read(longer)
    if before is None:
        raise CatalogUnusable("sfumato.toml is not valid TOML; mend it first, and add the table then.")
    if after is None or not _is_more(before, after, table.name, None if dataset is not None else table.name):
        raise CatalogUnusable(
            "A table cannot be added to this sfumato.toml without changing what it says, for it is written "
            "in a way of its own: add the section by hand, and start the server anew."
        )
    return longer


def _read(text: str) -> dict[str, Any] | None:
    try:
        return parsed(text)
    except NotToml:
        return None


def _is_more(before: dict[str, Any], after: dict[str, Any], table: str, dataset: str | None) -> bool:
    """Whether one table, and perhaps one dataset, are all that came to it."""
    rest = {name: dict(part) if isinstance(part, dict) else part for name, part in after.items()}
    for kind, name in (("tables", table), ("datasets", dataset)):
        known = before.get(kind, {})
        if name is None:
            continue
        if not isinstance(known, dict):
            return False
        rest[kind].pop(name, None)
        if not rest[kind] and kind not in before:
            del rest[kind]
    return rest == before


def replace_text(path: Path, before: str, text: str) -> None:
    """Puts a text in the place of the one that a file had, whole or not at all.

    Raises:
        CatalogUnusable: if the file has another text by now, or cannot be written.
    """
    target = path.resolve()
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, target.stat().st_mode & 0o7777)
            if target.read_bytes() != before.encode():
                raise Kept(f"{path.name} has changed meanwhile and was left as it is; look at it again.")
            os.replace(temporary, target)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError:
        raise Kept(f"{path.name} cannot be written.") from None
