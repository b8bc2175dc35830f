"""Plain values as YAML: the few forms that a dossier has, each as any reader takes it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["written"]

_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def written(values: Mapping[str, Any]) -> str:
    """The values as a YAML document."""
    return "\n".join(_mapping(values, "")) + "\n"


def _mapping(values: Mapping[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for name, value in values.items():
        lines += _entry(f"{indent}{_key(str(name))}:", value, indent)
    return lines


def _entry(head: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, Mapping):
        return [head, *_mapping(value, indent + "  ")] if value else [f"{head} {{}}"]
    if isinstance(value, Sequence) and not isinstance(value, str):
        if not value:
            return [f"{head} []"]
        lines = [head]
        for item in value:
            if isinstance(item, Mapping) and item:
                first, *rest = _mapping(item, indent + "    ")
                lines += [f"{indent}  - {first.strip()}", *rest]
            else:
                lines.append(f"{indent}  - {_scalar(item)}")
        return lines
    return [f"{head} {_scalar(value)}"]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) and name.lower() not in _WORDS else json.dumps(name)


def _scalar(value: Any) -> str:
    # JSON is YAML: a double-quoted text, a number, true, false or null mean the same in both.
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, float) and "e" in repr(value) and "." not in repr(value):
        return repr(value).replace("e", ".0e")  # YAML 1.1 reads 1e-06 as a text, and 1.0e-06 as a number
    return json.dumps(value)  # in ASCII: some characters end a line in YAML and not in JSON
