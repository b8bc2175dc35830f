"""Functions of text, by characters (code points).

What makes a text reads the first 10,000 characters of others, so that no row needs much memory.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions.base import Array, Function, Vector, need
from sfumato.plan.expressions.ranges import Facts, number, truth
from sfumato.plan.expressions.tree import Expression, Literal, literal

__all__ = ["CUT", "TEXT"]

# What TRIM takes off without a list: the space separators of Unicode, as DuckDB does. Tabs stay.
_SPACES = "".join(map(chr, (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
_WILDCARDS = 8  # matching takes time that grows with every further one
_PATTERN = 1000
_MOST = 10_000  # characters that are read of a text, where another is made of it
CUT = f"LEFT({{0}}, {_MOST})"
"""The guard of texts that may be long."""
_PARTS = 16


def _text(name: str) -> Callable[..., Facts]:
    def rule(*arguments: Facts) -> Facts:
        need(name, ("text",), *arguments)
        return Facts("text", any(argument.nullable for argument in arguments))

    return rule


def _test(name: str) -> Callable[..., Facts]:
    def rule(*arguments: Facts) -> Facts:
        need(name, ("text",), *arguments)
        return truth(nullable=any(argument.nullable for argument in arguments))

    return rule


def _count(name: str) -> Callable[..., Facts]:
    def rule(*arguments: Facts) -> Facts:
        need(name, ("text",), *arguments)
        nullable = any(argument.nullable for argument in arguments)
        return number("integer", Fraction(0), float("inf"), nullable=nullable)

    return rule


def _part(name: str, least: tuple[int, ...]) -> Callable[..., Facts]:
    def rule(facts: Facts, *places: Facts) -> Facts:
        need(name, ("text",), facts)
        for place, bound in zip(places, least, strict=False):
            if place.kind != "integer" or not bound <= place.single <= 2**31 - 1:
                raise QueryRefused(f"{name} takes constant whole numbers of at least {bound}.", _PART_FIX)
        return Facts("text", facts.nullable)

    return rule


_PART_FIX = "RIGHT(x, 2) gives the last two characters."


def _concat(*arguments: Facts) -> Facts:
    need("CONCAT", ("text",), *arguments)
    if len(arguments) > _PARTS:
        raise QueryRefused(f"CONCAT takes at most {_PARTS} parts.", "Leave some out.")
    return Facts("text", False)


def _replaced(facts: Facts, search: Facts, replacement: Facts) -> Facts:
    need("REPLACE", ("text",), facts, search, replacement)
    old, new = search.single, replacement.single
    if old is None or new is None or len(new.encode()) > len(old.encode()):
        # Else nested calls could make one row fill the memory.
        raise QueryRefused(
            "REPLACE takes constants, and the new text must be no longer than the old.",
            "Use a shorter new text.",
        )
    return Facts("text", facts.nullable)


_MARK = "!"  # what an engine is told to take as escape character: no letter, so ILIKE does not change it
_WILD = ("%", "_")


def _like(name: str) -> Callable[..., Facts]:
    def rule(facts: Facts, pattern: Facts, escape: Facts | None = None) -> Facts:
        need(name, ("text",), facts, pattern)
        text, mark = pattern.single, None
        if text is None:
            raise QueryRefused(f"{name} takes a constant pattern.", "Write x LIKE 'A%'.")
        if escape is not None:
            mark = escape.single
            if escape.kind != "text" or len(mark) != 1:
                raise QueryRefused("ESCAPE takes one character.", "Write ESCAPE '!'.")
        if len(text) > _PATTERN:
            raise QueryRefused(f"{name} takes at most {_PATTERN} characters.", "Shorten the pattern.")
        read = _read(text, mark)
        if read is None:
            raise QueryRefused(f"The pattern of {name} ends with its escape character.", "Double it.")
        if sum(wild and character == "%" for character, wild in read) > _WILDCARDS:
            raise QueryRefused(f"{name} takes % at most {_WILDCARDS} times.", "Shorten the pattern.")
        return truth(nullable=facts.nullable)

    return rule


def _read(pattern: str, mark: str | None) -> list[tuple[str, bool]] | None:
    """The characters of a pattern, and which are wildcards; None if it ends with its escape character."""
    read: list[tuple[str, bool]] = []
    literally = False
    for character in pattern:
        if character == mark and not literally:
            literally = True
            continue
        read.append((character, character in _WILD and not literally))
        literally = False
    return None if literally else read


def _pattern(arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """A pattern that has an escape character only where a wildcard means itself, and then always `!`.

    Privacy:
        An engine that meets an escape character at the end of a pattern raises, but only for a row that has
        fitted so far; and ILIKE looks for it in small letters. So the analyst's own never reaches it: here
        each `!` is followed by `%`, `_` or `!`, and none of these is a letter.
    """
    if len(arguments) != 3:
        return arguments
    value, pattern, escape = arguments
    text, mark = (part.value if isinstance(part, Literal) else None for part in (pattern, escape))
    read = _read(text, mark) if isinstance(text, str) and isinstance(mark, str) else None
    if read is None:
        raise QueryRefused("A pattern and its ESCAPE must be constants.", "Write x LIKE 'A!%' ESCAPE '!'.")
    if not any(character in _WILD and not wild for character, wild in read):
        return value, literal("".join(character for character, _ in read))
    marked = ("" if wild or character not in (*_WILD, _MARK) else _MARK for character, wild in read)
    spelt = "".join(mark + character for mark, (character, _) in zip(marked, read, strict=True))
    return value, literal(spelt), literal(_MARK)


def each(operation: Callable[..., Any], dtype: Any = object) -> Callable[..., Vector]:
    """What computes value by value, where no argument is NULL."""

    def compute(*vectors: Vector) -> Vector:
        valid = np.logical_and.reduce([vector.valid for vector in vectors])
        values: Array = np.full(len(valid), "" if dtype is object else 0, dtype=dtype)
        rows = zip(*(vector.values[valid] for vector in vectors), strict=True)
        for i, row in zip(np.flatnonzero(valid), rows, strict=True):
            values[i] = operation(*row)
        return Vector(values, valid)

    return compute


def _cut(operation: Callable[..., Any], dtype: Any = object) -> Callable[..., Vector]:
    """The same, on the first characters of texts."""
    return each(
        lambda *row: operation(*(value[:_MOST] if isinstance(value, str) else value for value in row)), dtype
    )


def _compute_concat(*vectors: Vector) -> Vector:
    parts = [np.where(vector.valid, vector.values, "") for vector in vectors]
    rows = ("".join(part[:_MOST] for part in row) for row in zip(*parts, strict=True))
    values = np.array(list(rows), dtype=object)
    return Vector(values, np.ones(len(values), dtype=bool))


def _one_by_one(change: Callable[[str], str]) -> Callable[[str], str]:
    # Engines map characters one by one, so that a letter never becomes two.
    return lambda text: "".join(new if len(new := change(old)) == 1 else old for old in text)


def _matcher(flags: int) -> Callable[..., bool]:
    def matches(text: str, pattern: str, escape: str | None = None) -> bool:
        return _compiled(pattern, escape, flags).fullmatch(text) is not None

    return matches


@functools.lru_cache(maxsize=64)
def _compiled(pattern: str, escape: str | None, flags: int) -> re.Pattern[str]:
    pieces = [""]  # between one % and the next; each has one length
    for character, wild in _read(pattern, escape) or ():
        if wild and character == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if wild else re.escape(character)
    first, *inner = pieces
    if not inner:
        return re.compile(first, re.DOTALL | flags)
    # Where a piece fits first, the rest has most room: it is never looked for again ((?>…)), in linear time.
    found = "".join(f"(?>.*?{piece})" for piece in inner[:-1] if piece)
    return re.compile(f"{first}{found}.*{inner[-1]}", re.DOTALL | flags)


def _stripped(side: Callable[[str, str], str]) -> Callable[..., str]:
    return lambda text, characters=_SPACES: side(text, characters)


def _substring(text: str, start: float, length: float | None = None) -> str:
    first = int(start) - 1
    return text[first : first + (_MOST if length is None else min(int(length), _MOST))]


def _trim(name: str, side: Callable[[str, str], str]) -> Function:
    return Function(
        name,
        (1, 2),
        _text(name),
        lambda n: f"{name.upper()}({{0}})" if n == 1 else f"{name.upper()}({{0}}, {{1}})",
        _cut(_stripped(side)),
        literals=(1,),
        ascii=True,
        guard=CUT,
        guards=(0,),
        guarded=True,
        doc="Without spaces at the ends, or without the given characters.",
    )


_ONE, _TWO = ("this",), ("this", "expression")

TEXT: tuple[Function, ...] = (
    Function(
        "lower", (1, 1), _text("LOWER"), "LOWER({0})", _cut(_one_by_one(str.lower)), {"Lower": _ONE},
        ascii=True, guard=CUT, guards=(0,), guarded=True,
        doc="In small letters.",
    ),
    Function(
        "upper", (1, 1), _text("UPPER"), "UPPER({0})", _cut(_one_by_one(str.upper)), {"Upper": _ONE},
        ascii=True, guard=CUT, guards=(0,), guarded=True,
        doc="In capital letters.",
    ),
    _trim("trim", str.strip),
    _trim("ltrim", str.lstrip),
    _trim("rtrim", str.rstrip),
    Function(
        "length", (1, 1), _count("LENGTH"), "LENGTH({0})", each(len, np.float64), {"Length": _ONE},
        names=("char_length", "character_length"), doc="How many characters it has.",
    ),
    Function(
        "substring", (2, 3), _part("SUBSTRING", (1, 0)),
        lambda n: f"SUBSTRING({{0}}, {{1}}, {_MOST if n == 2 else f'LEAST({{2}}, {_MOST})'})",
        each(_substring), {"Substring": ("this", "start", "length")}, literals=(1, 2), guarded=True,
        doc="The characters from a place on, counted from 1, at most so many.",
    ),
    Function(
        "left", (2, 2), _part("LEFT", (0,)), f"LEFT({{0}}, LEAST({{1}}, {_MOST}))",
        each(lambda text, n: text[: min(int(n), _MOST)]), {"Left": _TWO}, literals=(1,), guarded=True,
        doc="The first characters.",
    ),
    Function(
        "right", (2, 2), _part("RIGHT", (0,)), f"RIGHT({{0}}, LEAST({{1}}, {_MOST}))",
        each(lambda text, n: text[max(len(text) - min(int(n), _MOST), 0) :]), {"Right": _TWO}, literals=(1,),
        guarded=True,
        doc="The last characters.",
    ),
    Function(
        "append", (2, 2), _text("||"), "{0} || {1}", _cut(str.__add__), {"DPipe": _TWO},
        guard=CUT, guards=(0, 1),
        doc="One after the other; NULL if either is.",
    ),
    Function(
        "concat", (1, None), _concat, lambda n: f"CONCAT({', '.join(f'{{{i}}}' for i in range(n))})",
        _compute_concat, {"Concat": ("*expressions",)}, guard=CUT, guards=tuple(range(_PARTS)),
        doc="All one after the other, without the NULLs.",
    ),
    Function(
        "replace", (3, 3), _replaced, "REPLACE({0}, {1}, {2})",
        _cut(lambda text, old, new: text.replace(old, new) if old else text),
        {"Replace": ("this", "expression", "replacement")}, literals=(1, 2), guard=CUT, guards=(0,),
        doc="With one text in place of every other, which must not be shorter.",
    ),
    Function(
        "like", (2, 3), _like("LIKE"),
        lambda n: "{0} LIKE {1}" if n == 2 else f"{{0}} LIKE {{1}} ESCAPE '{_MARK}'",
        each(_matcher(0), bool), literals=(1, 2), normal=_pattern,
        doc="Whether it fits the pattern: % is any text, _ any character.",
    ),
    Function(
        "ilike", (2, 3), _like("ILIKE"),
        lambda n: "{0} ILIKE {1}" if n == 2 else f"{{0}} ILIKE {{1}} ESCAPE '{_MARK}'",
        _cut(_matcher(re.IGNORECASE), bool), literals=(1, 2), ascii=True, normal=_pattern,
        guard=CUT, guards=(0,),
        doc="As LIKE, small and capital letters alike.",
    ),
    Function(
        "starts_with", (2, 2), _test("STARTS_WITH"), "STARTS_WITH({0}, {1})", each(str.startswith, bool),
        {"StartsWith": _TWO}, names=("prefix",), doc="Whether it begins with the other.",
    ),
    Function(
        "ends_with", (2, 2), _test("ENDS_WITH"), "SUFFIX({0}, {1})", each(str.endswith, bool),
        {"EndsWith": _TWO}, names=("suffix",), doc="Whether it ends with the other.",
    ),
    Function(
        "contains", (2, 2), _test("CONTAINS"), "CONTAINS(CAST({0} AS TEXT), CAST({1} AS TEXT))",
        each(lambda text, part: part[:_MOST] in text, bool),
        {"Contains": _TWO}, guard=CUT, guards=(1,), doc="Whether the other occurs in it.",
    ),
    Function(
        "position", (2, 2), _count("POSITION"), "STRPOS({0}, {1})",
        each(lambda text, part: text.find(part[:_MOST]) + 1, np.float64),
        {"StrPosition": ("this", "substr")}, guard=CUT, guards=(1,),
        names=("strpos", "instr"), doc="Where the other first occurs in it, counted from 1; 0 if nowhere.",
    ),
)  # fmt: skip
