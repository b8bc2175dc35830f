"""TOML as plain data: whatever cannot be read is one kind of error, with a sentence that says why."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

__all__ = ["NotToml", "parsed", "text_of_file"]


class NotToml(ValueError):
    """A text is no TOML, or more than can be read; its message says which."""


def parsed(text: str) -> dict[str, Any]:
    """What a text holds, with decimal numbers as they are written.

    Raises:
        NotToml: if it is not TOML, or a whole number or the depth of its lists is beyond what Python reads.
    """
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"is not valid TOML: {error}{_fix(text, str(error))}") from None
    except ValueError:
        raise NotToml("has a number with too many digits") from None
    except RecursionError:
        raise NotToml("has lists or tables that lie too deep in one another") from None


_VALUE = r"[=\[,]\s*"  # what is before a value
_SLIPS = (  # what people write, in the order in which it is looked for, and what to write instead
    (re.compile(r"[“”„‟«»‘’‚`´]"), 'text is in straight quotes, as in unit = "row"'),
    (
        re.compile(r"=\s*[-+]?\d+(\.\d{3})*,\d+\s*(?=[#},]|$)"),
        "write fractions with a point: 0.5, not 0,5",
    ),
    (re.compile(rf"{_VALUE}[-+]?\.\d"), "write a digit before the point: 0.5, not .5"),
    (re.compile(rf"{_VALUE}[-+]?\d+\.\s*(?=#|\}}|,|$)"), "write a digit after the point: 5.0, not 5."),
    (re.compile(rf"{_VALUE}\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}"), "write days as 2024-01-31"),
    (
        re.compile(rf"{_VALUE}(True|TRUE|False|FALSE|Yes|yes|No|no)\b"),
        "write true or false, in small letters",
    ),
    (re.compile(r'"[^"]*\\[^"]*"'), "write paths with / or in single quotes, as in 'C:\\data\\visits.csv'"),
    (re.compile(rf"{_VALUE}[A-Za-z_][\w./-]*"), 'text is in straight quotes, as in unit = "row"'),
    (re.compile(r"^\s*[\w.\"-]+\s*:"), "write = between a name and its value, as in epsilon = 0.5"),
    (re.compile(r"^\s*[\w.\"-]+\s+[^=\s]"), "write = between a name and its value, as in epsilon = 0.5"),
)
_TRUTH = re.compile(rf"{_VALUE}(true|false|inf|nan)\b")
_PLACE = re.compile(r"at line (\d+)")


def _fix(text: str, error: str) -> str:
    """What to write instead, for what people mean who do not know TOML; empty where that cannot be told."""
    place = _PLACE.search(error)
    if place is None:
        return ""
    line = text.splitlines()[int(place[1]) - 1 : int(place[1])]
    written = _TRUTH.sub("= 1", line[0]) if line else ""
    # A comment and straight quotes may hold anything; only what is outside them is a slip.
    bare = re.sub(r"#.*", "", re.sub(r'"[^"\\]*"', '""', written))
    return next((f"; {fix}" for slip, fix in _SLIPS if slip.search(bare)), "")


def text_of_file(path: Path) -> str:
    """The text of a file, without the mark that some editors put before it.

    Raises:
        FileNotFoundError: if there is none.
        OSError: if it cannot be read, is not UTF-8, or has a path that no file can have; its text says why.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise OSError("it is not in UTF-8: save it as UTF-8") from None
    except PermissionError:
        raise PermissionError("permission denied") from None
    except FileNotFoundError:
        raise
    except (OSError, ValueError):  # a folder, or a path with a NUL
        raise OSError("it is no file that can be read") from None
