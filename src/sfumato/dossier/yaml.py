"""Plain values as YAML: the few forms that a dossier has, each as any reader takes it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["written"]

_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LONGEST_KEY = 500  # a longer one is said to be one: before a bare colon YAML takes 1,024 characters
_ODD = re.compile(r"[^ !#-\[\]-~]")
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def written(values: Mapping[str, Any]) -> str:
    """The values as a YAML document."""
    return "\n".join(_mapping(values, "")) + "\n"


def _mapping(values: Mapping[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for name, value in values.items():
        key = _key(str(name))
        if len(key) > _LONGEST_KEY:
            lines += [f"{indent}? {key}", *_entry(f"{indent}:", value, indent)]
        else:
            lines += _entry(f"{indent}{key}:", value, indent)
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
    return name if _BARE.fullmatch(name) and name.lower() not in _WORDS else _text(name)


def _text(text: str) -> str:
    """A text in quotes and in ASCII, as every reader takes it.

    It is not JSON's: there a character beyond 16 bits is two, of which YAML makes none, and DEL is itself.
    """
    return f'"{_ODD.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    sign, code = found[0], ord(found[0])
    if sign in _SHORT:
        return _SHORT[sign]
    if 0xD800 <= code < 0xE000:
        return "\\ufffd"  # half of a character
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _scalar(value: Any) -> str:
    # JSON is YAML: a number, true, false or null mean the same in both.
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, float) and "e" in repr(value) and "." not in repr(value):
        return repr(value).replace("e", ".0e")  # YAML 1.1 reads 1e-06 as a text, and 1.0e-06 as a number
    return _text(value) if isinstance(value, str) else json.dumps(value)
