"""Functions of text, by characters (code points). None can make a row much longer than it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.plan.functions.base import Array, Function, Vector, need
from sfumato.plan.ranges import Facts, number, truth

__all__ = ["TEXT"]

# What TRIM takes off without a list: the space separators of Unicode, as DuckDB does. Tabs stay.
_SPACES = "".join(map(chr, (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
_WILDCARDS = 8  # matching takes time that grows with every further one


def _text(name: str) -> Callable[..., Facts]:
    def rule(*arguments: Facts) -> Facts:
        need(name, ("text",), *arguments)
        return Facts("text", any(each.nullable for each in arguments))

    return rule


def _test(name: str) -> Callable[..., Facts]:
    def rule(*arguments: Facts) -> Facts:
        need(name, ("text",), *arguments)
        return truth(nullable=any(each.nullable for each in arguments))

    return rule


def _count(name: str) -> Callable[..., Facts]:
    def rule(*arguments: Facts) -> Facts:
        need(name, ("text",), *arguments)
        nullable = any(each.nullable for each in arguments)
        return number("integer", Fraction(0), float("inf"), nullable=nullable)

    return rule


def _part(name: str, least: tuple[int, ...]) -> Callable[..., Facts]:
    def rule(facts: Facts, *places: Facts) -> Facts:
        need(name, ("text",), facts)
        for place, bound in zip(places, least, strict=False):
            if place.kind != "integer" or not bound <= place.single <= 2**31 - 1:
                raise QueryRefused(f"{name} takes constant whole numbers from {bound} on.", _PART_FIX)
        return Facts("text", facts.nullable)

    return rule


_PART_FIX = "RIGHT(x, 2) gives the last two characters."


def _concat(*arguments: Facts) -> Facts:
    need("CONCAT", ("text",), *arguments)
    return Facts("text", False)


def _replaced(facts: Facts, search: Facts, replacement: Facts) -> Facts:
    need("REPLACE", ("text",), facts, search, replacement)
    old, new = search.single, replacement.single
    if old is None or new is None or len(new.encode()) > len(old.encode()):
        # Else nested calls could make one row fill the memory.
        raise QueryRefused(
            "REPLACE takes constants, the new text no longer than the old.", "Replace by something shorter."
        )
    return Facts("text", facts.nullable)


def _like(name: str) -> Callable[..., Facts]:
    def rule(facts: Facts, pattern: Facts, escape: Facts | None = None) -> Facts:
        need(name, ("text",), facts, pattern)
        text, mark = pattern.single, None if escape is None else escape.single
        if text is None:
            raise QueryRefused(f"{name} takes a constant pattern.", "Write x LIKE 'A%'.")
        if text.count("%") > _WILDCARDS:
            raise QueryRefused(f"{name} takes at most {_WILDCARDS} times %.", "Shorten the pattern.")
        if escape is not None and (mark is None or len(mark) != 1 or not mark.isascii()):
            raise QueryRefused("ESCAPE takes one character.", "Write ESCAPE '!'.")
        if mark and re.search(f"(?<!{re.escape(mark)})({re.escape(mark) * 2})*{re.escape(mark)}$", text):
            raise QueryRefused(f"The pattern of {name} ends with its escape character.", "Double it.")
        return truth(nullable=facts.nullable)

    return rule


def each(operation: Callable[..., Any], dtype: Any = object) -> Callable[..., Vector]:
    """What computes value by value, where no argument is NULL."""

    def compute(*vectors: Vector) -> Vector:
        valid = np.logical_and.reduce([vector.valid for vector in vectors])
        values: Array = np.full(len(valid), "" if dtype is object else 0, dtype=dtype)
        for i in np.flatnonzero(valid):
            values[i] = operation(*(vector.values[i] for vector in vectors))
        return Vector(values, valid)

    return compute


def _compute_concat(*vectors: Vector) -> Vector:
    parts = [np.where(vector.valid, vector.values, "") for vector in vectors]
    values = np.array(["".join(row) for row in zip(*parts, strict=True)], dtype=object)
    return Vector(values, np.ones(len(values), dtype=bool))


def _one_by_one(change: Callable[[str], str]) -> Callable[[str], str]:
    # Engines map characters one by one, so that a letter never becomes two.
    return lambda text: "".join(new if len(new := change(old)) == 1 else old for old in text)


def _matcher(flags: int) -> Callable[..., bool]:
    def matches(text: str, pattern: str, escape: str | None = None) -> bool:
        parts, literally = [], False
        for character in pattern:
            if character == escape and not literally:
                literally = True
                continue
            special = None if literally else {"%": ".*", "_": "."}.get(character)
            parts.append(special or re.escape(character))
            literally = False
        return re.fullmatch("".join(parts), text, re.DOTALL | flags) is not None

    return matches


def _stripped(side: Callable[[str, str], str]) -> Callable[..., str]:
    return lambda text, characters=_SPACES: side(text, characters)


def _substring(text: str, start: float, length: float | None = None) -> str:
    first = int(start) - 1
    return text[first:] if length is None else text[first : first + int(length)]


def _trim(name: str, side: Callable[[str, str], str]) -> Function:
    return Function(
        name,
        (1, 2),
        _text(name),
        lambda n: f"{name.upper()}({{0}})" if n == 1 else f"{name.upper()}({{0}}, {{1}})",
        each(_stripped(side)),
        literals=(1,),
        ascii=True,
        doc="Without spaces at the ends, or without the given characters.",
    )


_ONE, _TWO = ("this",), ("this", "expression")

TEXT: tuple[Function, ...] = (
    Function(
        "lower", (1, 1), _text("LOWER"), "LOWER({0})", each(_one_by_one(str.lower)), {"Lower": _ONE},
        ascii=True,
        doc="In small letters.",
    ),
    Function(
        "upper", (1, 1), _text("UPPER"), "UPPER({0})", each(_one_by_one(str.upper)), {"Upper": _ONE},
        ascii=True,
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
        lambda n: "SUBSTRING({0}, {1})" if n == 2 else "SUBSTRING({0}, {1}, {2})",
        each(_substring), {"Substring": ("this", "start", "length")}, literals=(1, 2),
        doc="The characters from a place on, counted from 1, at most so many.",
    ),
    Function(
        "left", (2, 2), _part("LEFT", (0,)), "LEFT({0}, {1})", each(lambda text, n: text[: int(n)]),
        {"Left": _TWO}, literals=(1,), doc="The first characters.",
    ),
    Function(
        "right", (2, 2), _part("RIGHT", (0,)), "RIGHT({0}, {1})",
        each(lambda text, n: text[max(len(text) - int(n), 0) :]), {"Right": _TWO}, literals=(1,),
        doc="The last characters.",
    ),
    Function(
        "append", (2, 2), _text("||"), "{0} || {1}", each(str.__add__), {"DPipe": _TWO},
        doc="One after the other; NULL if either is.",
    ),
    Function(
        "concat", (1, None), _concat, lambda n: f"CONCAT({', '.join(f'{{{i}}}' for i in range(n))})",
        _compute_concat, {"Concat": ("*expressions",)}, doc="All one after the other, without the NULLs.",
    ),
    Function(
        "replace", (3, 3), _replaced, "REPLACE({0}, {1}, {2})",
        each(lambda text, old, new: text.replace(old, new) if old else text),
        {"Replace": ("this", "expression", "replacement")}, literals=(1, 2),
        doc="With one text in place of every other, which must not be shorter.",
    ),
    Function(
        "like", (2, 3), _like("LIKE"), lambda n: "{0} LIKE {1}" if n == 2 else "{0} LIKE {1} ESCAPE '{2}'",
        each(_matcher(0), bool), literals=(1, 2),
        doc="Whether it fits the pattern: % is any text, _ any character.",
    ),
    Function(
        "ilike", (2, 3), _like("ILIKE"),
        lambda n: "{0} ILIKE {1}" if n == 2 else "{0} ILIKE {1} ESCAPE '{2}'",
        each(_matcher(re.IGNORECASE), bool), literals=(1, 2), ascii=True,
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
        each(lambda text, part: part in text, bool),
        {"Contains": _TWO}, doc="Whether the other occurs in it.",
    ),
    Function(
        "position", (2, 2), _count("POSITION"), "STRPOS({0}, {1})",
        each(lambda text, part: text.find(part) + 1, np.float64), {"StrPosition": ("this", "substr")},
        names=("strpos", "instr"), doc="Where the other first occurs in it, counted from 1; 0 if nowhere.",
    ),
)  # fmt: skip
