"""Refusals as buttons: what the advice of a refusal says, done to the text of the question.

The advice is a sentence. Where it names what to write, the question is written so and offered; a repair is
shown only if the mended question is no longer refused for the same reason.

Questions are strangers' text: no pattern here begins with a run of any length, or it would look for its end
from each place of that run; and long questions are not mended.
"""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Callable, Iterator
from itertools import islice

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused

__all__ = ["Repair", "repairs_of"]

_MOST, _LABEL, _TRIES = 3, 60, 12
_LONGEST = 2_000
_QUOTED = re.compile(r"('(?:[^']|'')*')")
_NAME = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_SIGNS = {"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"'}
_AFTER_GROUPS = r"(?i)(?<!\s)\s+(?=HAVING\b|QUALIFY\b|ORDER\s+BY\b|LIMIT\b)"


@dataclass(frozen=True, slots=True)
class Repair:
    """A mended question.

    Attributes:
        label: What the button says.
        sql: The question.
    """

    label: str
    sql: str


def repairs_of(error: QueryRefused, sql: str, helps: Callable[[str], bool]) -> tuple[Repair, ...]:
    """What the advice of a refusal says, done to the question; nothing where that is long.

    Args:
        error: The refusal.
        sql: The question.
        helps: Whether a mended question is better off.
    """
    found: dict[str, Repair] = {}
    if len(sql) > _LONGEST:
        return ()
    for label, text in islice(_candidates(error, sql), _TRIES):
        if text.strip() != sql.strip() and text not in found and helps(text):
            found[text] = Repair(label, text)
        if len(found) == _MOST:
            break
    return tuple(found.values())


def _candidates(error: QueryRefused, sql: str) -> Iterator[tuple[str, str]]:
    reason, fix = error.reason, error.fix
    for rule in (_whole, _meant, _value, _text, _grouped, _stars, _written, _signs, _small):
        yield from rule(reason, fix, sql)


def _whole(_: str, fix: str, sql: str) -> Iterator[tuple[str, str]]:
    """Write SELECT …: the advice is the question itself."""
    if (found := re.fullmatch(r"Write (SELECT .+)\.", fix)) and "…" not in found[1]:
        yield f"Write {_cut_short(found[1])}", found[1]
    if found := re.fullmatch(r"Group by steps, such as (FLOOR\((.+?) / 10\) \* 10), or .+", fix):
        head, rest = _select(sql)
        bins = _renamed(rest, found[2], found[1]) if re.search(r"(?i)GROUP\s+BY", rest) else rest
        yield "Group by steps of 10", _renamed(head, found[2], f"{found[1]} AS {found[2]}") + bins
    if (found := re.match(r"Put them together: (COUNT\(.+\))\.$", fix)) and (call := _call(sql, "COUNT")):
        yield f"Write {found[1]}", sql[: call[0]] + found[1] + sql[call[1] :]


def _meant(reason: str, fix: str, sql: str) -> Iterator[tuple[str, str]]:
    """Did you mean X?"""
    for near, there in re.findall(r"Did you mean (.+?)(?: where it says ('[^']*'))?\?", fix):
        wrong = _name_in(there or reason)
        if wrong:
            yield f"Write {near}", _renamed(sql, wrong, near)


def _value(reason: str, fix: str, sql: str) -> Iterator[tuple[str, str]]:
    """A value that is not declared, where one that is looks alike."""
    found = re.search(r"declared without the value '(.+?)', so", reason)
    if found:
        listed = [value.replace("''", "'") for value in re.findall(r"'((?:[^']|'')+)'", fix)]
        for near in difflib.get_close_matches(found[1], listed, 2):
            new = "'" + near.replace("'", "''") + "'"
            yield f"Write {new}", sql.replace("'" + found[1].replace("'", "''") + "'", new)


def _text(_: str, fix: str, sql: str) -> Iterator[tuple[str, str]]:
    """Text is written in single quotes: 'Lyon'."""
    found = re.search(r"single quotes: ('(?:[^']|'')*')", fix)
    if found:
        inner = found[1][1:-1].replace("''", "'")
        mended = sql.replace(f'"{inner}"', found[1])
        yield f"Write {found[1]}", mended if mended != sql else _renamed(sql, inner, found[1])


def _grouped(reason: str, fix: str, sql: str) -> Iterator[tuple[str, str]]:
    """Add x to GROUP BY, or aggregate it, as in AVG(x)."""
    if "neither aggregated nor in GROUP BY" not in reason:
        return
    if found := re.match(r"Add (.+?) to GROUP BY", fix):
        name = found[1]
        clause = re.sub(r"(?i)\bGROUP\s+BY\s+", lambda by: f"{by[0]}{name}, ", sql, count=1)
        yield f"Add {name} to GROUP BY", clause
    if found := re.match(r"Add GROUP BY (.+?),", fix):
        head, tail = _cut(sql)
        yield f"Add GROUP BY {found[1]}", f"{head}\nGROUP BY {found[1]}{tail}"
    if found := re.search(r"(?:as in|Aggregate it, as in) (\w+\((.+?)\))[.;]", fix):
        head, rest = _select(sql)
        yield f"Write {found[1]}", _renamed(head, found[2], found[1]) + rest


def _stars(reason: str, fix: str, sql: str) -> Iterator[tuple[str, str]]:
    """SELECT * would show the rows."""
    if reason.startswith("SELECT *"):
        yield "Count the rows", re.sub(r"(?is)\bSELECT\s+(?:\w+\.)?\*", "SELECT COUNT(*) AS n", sql, count=1)
    if reason.startswith("The query reads no table"):
        head, tail = _cut(sql)
        for table in re.findall(r"one of: (.+?)[,.]", fix):
            yield f"Add FROM {table}", f"{head}\nFROM {table}{tail}"


def _written(reason: str, fix: str, sql: str) -> Iterator[tuple[str, str]]:
    """Write AVG(x), where a function is called that is not there."""
    called = re.match(r"(?:SQL has no function )?([A-Z_][A-Z0-9_]*)\b", reason)
    named = re.search(r"SQL has no function ([A-Z_0-9]+)", reason) or called
    new = re.match(r"Write (.+?)\.(?:\s|$)", fix)
    if named is None or new is None or new[1][0].islower():
        return
    for way in re.split(r", or | or (?=[A-Z_]+$)", new[1]):
        if call := _call(sql, named[1]):
            start, end = call
            arguments = sql[sql.index("(", start) : end]
            yield f"Write {way}", sql[:start] + (way if "(" in way else way + arguments) + sql[end:]
    if limit := re.match(r"Write (LIMIT \d+) at the end", fix):
        text = re.sub(r"(?i)\bSELECT\s+TOP\s+\(?\d+\)?\s+", "SELECT ", sql, count=1)
        yield limit[1], f"{text.rstrip().rstrip(';')}\n{limit[1]}"


def _signs(reason: str, fix: str, sql: str) -> Iterator[tuple[str, str]]:
    """Signs that a word processor makes, and a few slips of the pen."""
    straight = "".join(_SIGNS.get(letter, letter) for letter in sql)
    if "Write straight ones" in fix:
        yield "Write straight quotes", straight
    found = re.search(r"SQL has no (\S) operator", reason)
    plain = re.match(r"Write (\S+?)(?: for at least)?\.$", fix)
    if found and plain:
        yield f"Write {plain[1]}", _outside(sql, lambda part: part.replace(found[1], plain[1]))
    if plain and plain[1] in (">=", "<="):
        yield (
            f"Write {plain[1]}",
            _outside(sql, lambda part: re.sub(rf"=\s*{plain[1][0]}", plain[1], part)),
        )
    if "IS NULL" in fix:
        text = re.sub(r"(?i)(?<!\s)\s*(?:<>|!=)\s*NULL\b", " IS NOT NULL", sql)
        yield "Write IS NULL", re.sub(r"(?i)(?<!\s)\s*=\s*NULL\b", " IS NULL", text)


def _small(reason: str, fix: str, sql: str) -> Iterator[tuple[str, str]]:
    """Advice that is followed to the letter."""
    if found := re.match(r"Write (GROUP|ORDER) BY\.", fix):
        yield (
            f"Write {found[1]} BY",
            re.sub(rf"(?i)\b{found[1]}\s+(?!\s|BY\b)", f"{found[1]} BY ", sql, count=1),
        )
    if fix == "Write SELECT.":
        yield "Write SELECT", re.sub(r"^\s*\S+", "SELECT", sql, count=1)
    if found := re.match(r"Write (IN \(.+\))\.", fix):
        value = r"(?:'(?:[^']|'')*'|[\d.]+)"
        yield f"Write {found[1]}", re.sub(rf"(?i)\bIN\s+{value}(?:\s*,\s*{value})*", found[1], sql, count=1)
    if "have no schema" in reason and (found := re.match(r"Write (.+)\.$", fix)):
        yield (
            f"Write {found[1]}",
            re.sub(rf'(?<![\w".])(?:[\w"]+\.)+"?{re.escape(found[1])}"?', found[1], sql),
        )
    if found := re.match(r"'(.+)' could be ", reason):
        new = re.match(r"Write (.+)\.$", fix)
        if new:
            yield f"Write {new[1]}", _renamed(sql, found[1], new[1])
    if fix.startswith("Write the day itself"):
        today = f"DATE '{datetime.date.today().isoformat()}'"
        name = reason.split()[0]
        yield f"Write {today}", re.sub(rf"(?i)\b{re.escape(name)}\b(\s*\(\s*\))?", today, sql)
    if fix.startswith(("Leave it out", "Leave INTO out")):
        yield "Leave it out", re.sub(r"(?is)(?<!\s)\s+(?:FOR\s+UPDATE|INTO\s+\w+)\b", "", sql)
    if fix == "A parenthesis is not closed.":
        head, rest = _select(sql)
        if rest:
            yield "Close the parenthesis", f"{head.rstrip()}) {rest}"
        yield "Close the parenthesis", sql.rstrip().rstrip(";") + ")"


def _cut_short(text: str) -> str:
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


def _name_in(sentence: str) -> str:
    """What a sentence speaks of: the last name in quotes, or the function at its beginning."""
    names: list[str] = [one or other for one, other in _NAME.findall(sentence)]
    if names:
        return names[-1]
    found = re.match(r"[A-Z_][A-Z0-9_]*(?= is not)", sentence)
    return found[0] if found else ""


def _renamed(sql: str, wrong: str, right: str) -> str:
    """The question with another word, wherever the wrong one stands outside of text."""
    word = re.compile(rf'(?i)(?<![\w"])"?{re.escape(wrong)}"?(?![\w"])')
    return _outside(sql, lambda part: word.sub(lambda _: right, part))


def _outside(sql: str, change: Callable[[str], str]) -> str:
    """The question with what is not text in quotes changed."""
    parts: list[str] = _QUOTED.split(sql)
    return "".join(part if place % 2 else change(part) for place, part in enumerate(parts))


def _call(sql: str, name: str) -> tuple[int, int] | None:
    """Where a function is called, from its name to the parenthesis that ends it."""
    found = re.search(rf"(?i)(?<!\w){re.escape(name)}\s*\(", sql)
    if found is None:
        return None
    depth = 0
    for place in range(found.end() - 1, len(sql)):
        depth += {"(": 1, ")": -1}.get(sql[place], 0)
        if depth == 0:
            return found.start(), place + 1
    return None


def _cut(sql: str) -> tuple[str, str]:
    """The question up to where GROUP BY goes, and what comes after."""
    text = sql.rstrip().rstrip(";")
    found = re.search(_AFTER_GROUPS, text)
    return (text, "") if found is None else (text[: found.start()], text[found.start() :])


def _select(sql: str) -> tuple[str, str]:
    """What is selected, and the rest."""
    found = re.search(r"(?i)\bFROM\b", sql)
    return (sql, "") if found is None else (sql[: found.start()], sql[found.start() :])
