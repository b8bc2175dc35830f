"""The last audit, kept in a file: what `sfumato audit --keep` writes and the server's page shows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from sfumato._dataclasses import dataclass
from sfumato._files import write_whole
from sfumato.audit.findings import Audit, Finding
from sfumato.errors import InvalidParameter

__all__ = ["FILE", "Kept", "keep", "kept"]

FILE = "audit.json"
"""Its name, beside the ledger's key."""
_LARGEST = 2**24


@dataclass(frozen=True, slots=True)
class Kept:
    """An audit that was kept.

    Attributes:
        when: It ended.
        version: Of this package, as it was audited.
        audit: What was found.
    """

    when: datetime
    version: str
    audit: Audit


def keep(path: Path, audit: Audit, *, version: str) -> None:
    """Writes an audit of a version of this package down, in the place of the last one.

    Raises:
        InvalidParameter: if it cannot be written there.
    """
    document = {"when": datetime.now(UTC).isoformat(), "version": version, **audit.to_dict()}
    try:
        write_whole(path, json.dumps(document, indent=1).encode())
    except OSError:
        raise InvalidParameter(
            f"The audit cannot be kept as {path.name}: make the folder of the ledger's key writable."
        ) from None


def kept(path: Path) -> Kept | None:
    """The audit that was kept; None: there is none.

    Raises:
        InvalidParameter: if what is there cannot be read.
    """
    try:
        if not path.exists():
            return None
        if path.stat().st_size > _LARGEST:
            raise ValueError
        document = json.loads(path.read_bytes())
        findings = [_finding(facts) for facts in document["findings"]]
        audit = Audit(tuple(findings), float(document["confidence"]))
        return Kept(datetime.fromisoformat(document["when"]), str(document["version"]), audit)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise InvalidParameter(
            f"The last audit, {path.name}, cannot be read: run sfumato audit --keep again."
        ) from None


def _finding(facts: dict[str, object]) -> Finding:
    own = {name: facts[name] for name in Finding.__slots__}
    finding = Finding(**own)  # type: ignore[arg-type]  # checked below: JSON has no classes
    numbers = (finding.claimed, finding.delta, finding.proven, finding.confidence)
    texts = (finding.name, finding.kind, finding.event)
    if not all(isinstance(number, int | float) for number in numbers) or not all(
        isinstance(text, str) for text in texts
    ):
        raise TypeError
    return finding
