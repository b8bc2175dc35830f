"""The line of a column in a first sfumato.toml, with the notes on what is still to decide; words of TOML."""

from __future__ import annotations

import json
import re

from sfumato._dataclasses import dataclass
from sfumato.catalog.keys import UNDECIDED
from sfumato.schema.classify import Role, words_of

__all__ = ["Decided", "column_lines", "known_bounds", "quoted", "toml_key", "toml_number"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOML_NUMBER = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_AGE = frozenset({"age", "alter", "edad", "eta", "idade", "年龄", "年齢"})
_YEAR = frozenset({"year", "jahr", "annee", "ano", "anno", "jaar", "rok", "год", "年"})
_OF_ALL = {  # what numbers of such a name are everywhere, whoever's they are
    "int": {"hour": ("0", "23"), "minute": ("0", "59"), "month": ("1", "12")},
    "float": {},
}
_SHARES = frozenset({"percent", "percentage", "prozent", "pct"})


@dataclass(frozen=True, slots=True)
class Decided:
    """What a steward decided about a column; None means what its name and type suggest.

    Attributes:
        type: Its type, as sfumato.toml names it.
        role: What it is.
        left_out: Whether no question may name it.
        bounds: The least and the greatest value, or the first and the last day, as TOML writes them.
        values: All that it may hold, where it is a category.
    """

    type: str | None = None
    role: Role | None = None
    left_out: bool | None = None
    bounds: tuple[str, str] | None = None
    values: tuple[str, ...] = ()

    def is_left_out(self, role: Role) -> bool:
        """Whether no question may name a column of that role."""
        return role == "identifier" if self.left_out is None else self.left_out


def column_lines(column: str, word: str | None, role: Role, decided: Decided, *, guessed: bool) -> list[str]:
    """What sfumato.toml has of a column.

    Args:
        column: Its name.
        word: Its type; None for one that cannot be asked for.
        role: What it is.
        decided: What was said of it.
        guessed: Whether the type, if it is not text, is a guess by the name.
    """
    if word is None:
        return [f"# {toml_key(column)}: of a type that cannot be asked for"]
    setting = f'{toml_key(column)} = {{ type = "{word}", role = "{role}"{_ends(word, decided)} }}'
    if decided.values:
        listed = ", ".join(map(quoted, decided.values))
        setting = f'{toml_key(column)} = {{ type = "enum", values = [{listed}], role = "{role}" }}'
    if decided.is_left_out(role):
        return [f"# {setting}"]
    notes = ["DECIDE: type guessed from the name"] if guessed and word != "text" else []
    if role != "identifier" and decided.bounds is None and not decided.values:
        notes += _GUESSED_TEXT if guessed and word == "text" else _open(column, word)
    return [*(f"# {note}" for note in notes), setting]


_GUESSED_TEXT = [
    'DECIDE: type = "int" or "float" if it holds numbers; "enum" with values = ["…"]',
    "if its values are public; else it is text, and rare groups are hidden",
]


def _open(column: str, word: str) -> list[str]:
    """What is still to decide."""
    if word in ("int", "float"):
        return [f"DECIDE: bounds to sum it, such as {_bounds(column, word)}"]
    return {
        "date": ["DECIDE: start and end to group by it"],
        "timestamp": [
            'DECIDE: start and end to group by its days or hours; type = "date" if days are enough'
        ],
        "text": ['DECIDE: type = "enum", values = ["…"] if public; else rare groups are hidden'],
    }.get(word, [])


def _ends(word: str, decided: Decided) -> str:
    if decided.bounds is None:
        return ""
    names = ("lower", "upper") if word in ("int", "float") else ("start", "end")
    return "".join(f", {name} = {end}" for name, end in zip(names, decided.bounds, strict=True))


def _bounds(column: str, word: str) -> str:
    if set(words_of(column)) & _AGE:
        return "lower = 0, upper = 120"
    if set(words_of(column)[-1:]) & _YEAR:
        return "lower = 2000, upper = 2030"
    return "lower = 0, upper = 1000" if word == "int" else "lower = 0.0, upper = 1000.0"


def known_bounds(column: str, word: str | None) -> tuple[str, str] | None:
    """Bounds that everybody knows of what has such a name; None: there are none."""
    words = words_of(column)
    if word not in ("int", "float") or not words:
        return None
    if set(words) & _AGE:
        return "0", "120"
    if words[-1] in _SHARES:
        return "0", "100"
    return _OF_ALL[word].get(words[-1])


def toml_number(text: str | None) -> str:
    """A number as TOML writes it; other ways to write one, such as 1/2, as text."""
    if text is None:
        return quoted(UNDECIDED)
    return text if _TOML_NUMBER.fullmatch(text) else quoted(text)


def toml_key(name: str) -> str:
    """A name as a TOML key: bare where it can be, else quoted."""
    return name if _BARE.fullmatch(name) else quoted(name)


def quoted(text: str) -> str:
    """A text of TOML."""
    # JSON's escapes are TOML's, but for the one control character that JSON lets through.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
