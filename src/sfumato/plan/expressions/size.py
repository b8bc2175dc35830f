"""How large an expression becomes in an engine, and what is refused for it before anything is paid.

An engine repeats an argument wherever a template names it, so nested calls grow by multiplication; and text
that is put together takes memory that only some rows need. Both must be bounded by the question alone: a
failure that depends on the rows would tell about them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions import FUNCTIONS, guard_of
from sfumato.plan.expressions.functions.text import CUT
from sfumato.plan.expressions.tree import Call, Expression, Literal
from sfumato.render import is_text

__all__ = ["Size", "check_size", "check_sizes", "check_text", "size_of"]

_LENGTH = 10_000  # characters of a text constant
_NODES, _TEXTS, _DEPTH = 4000, 64, 100
_LISTED = 128  # constants of a list that count as one part: as many as a result has groups are allowed
_FIX = "Ask for less in one question, or compute the column before."


@dataclass(frozen=True, slots=True)
class Size:
    """What an expression needs in an engine.

    Attributes:
        nodes: The parts of the statement, every repetition counted.
        texts: How many texts of up to 10,000 characters are made for a row.
        depth: The levels of nesting.
    """

    nodes: int = 1
    texts: int = 0
    depth: int = 0


_CONSTANT, _COLUMN = Size(nodes=0), Size()


def check_size(expression: Expression) -> None:
    """Refuse an expression that would take an engine long to read, or much memory for a row.

    Privacy:
        Claim: how much memory a row needs beyond its own size is bounded by the question alone. Every
        function that makes a text reads the first 10,000 characters of its arguments only, and at most 64
        of these are read for one expression.

    Raises:
        QueryRefused: if it is too large.
    """
    if not isinstance(expression, Call):
        return
    size = size_of(expression)
    if size.depth > _DEPTH:
        raise QueryRefused("The expression is nested too deeply.", f"At most {_DEPTH} levels are supported.")
    if size.nodes > _NODES:
        raise QueryRefused("The expression is too large.", _FIX)
    if size.texts > _TEXTS:
        raise QueryRefused(f"The expression makes more than {_TEXTS} texts for each row.", _FIX)


def check_sizes(expressions: Iterable[Expression]) -> None:
    """The same for all expressions of a question together, which may need twice as much.

    Raises:
        QueryRefused: if they are too large.
    """
    sizes = [size_of(expression) for expression in expressions]
    if sum(size.nodes for size in sizes) > 2 * _NODES or sum(size.texts for size in sizes) > 2 * _TEXTS:
        raise QueryRefused("The question is too large.", _FIX)


def size_of(expression: Expression) -> Size:
    """Its size; parts that occur several times are looked at once, however often they occur."""
    if isinstance(expression, Call) and "size" not in expression.notes:
        for call in _bottom_up(expression):
            call.notes["size"] = _called(call, list(map(_known, _parts(call))))
    return _known(expression)


def _known(expression: Expression) -> Size:
    if isinstance(expression, Call):
        size: Size = expression.notes["size"]
        return size
    return _CONSTANT if isinstance(expression, Literal) else _COLUMN


def _parts(call: Call) -> tuple[Expression, ...]:
    """Its arguments; of IN the value alone."""
    return call.arguments[:1] if call.function == "in" else call.arguments


def _bottom_up(expression: Call) -> Iterator[Call]:
    """The calls in it whose sizes are not known yet, each once and after its own parts."""
    seen: set[int] = set()
    waiting: list[tuple[Call, bool]] = [(expression, False)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            waiting.append((node, True))
            waiting += [
                (part, False) for part in _parts(node) if isinstance(part, Call) and "size" not in part.notes
            ]


def _called(expression: Call, parts: list[Size]) -> Size:
    if expression.function == "in" and parts:  # constants in a list take little
        value = parts[0]
        return Size(2 + value.nodes + len(expression.arguments) // _LISTED, value.texts, value.depth + 1)
    function = FUNCTIONS.get(expression.function)
    chain = expression.function in ("and", "or")
    depth = max(
        (part.depth + _deeper(chain, argument, expression) for part, argument in _pairs(parts, expression)),
        default=0,
    )
    if function is None:
        return Size(1 + sum(part.nodes for part in parts), sum(part.texts for part in parts), depth)
    own, uses = _template(function.common(len(parts)))
    nodes, texts = own, 1 if function.guarded and not function.guard else 0
    for position, (part, argument) in enumerate(_pairs(parts, expression)):
        times = uses.get(position, 0)
        if guard := guard_of(function, position, argument):
            more, inner = _template(guard)
            part = Size(more + inner[0] * part.nodes, inner[0] * part.texts)
        nodes += times * part.nodes
        texts += times * part.texts + (position in function.guards and function.guard == CUT)
    return Size(nodes, texts, depth)


def _pairs(parts: list[Size], expression: Call) -> Iterator[tuple[Size, Expression]]:
    return zip(parts, expression.arguments, strict=True)


def _deeper(chain: bool, part: Expression, whole: Call) -> int:
    # A chain of ANDs is flat in the end.
    return 0 if chain and isinstance(part, Call) and part.function == whole.function else 1


@functools.lru_cache(maxsize=1024)
def _template(text: str) -> tuple[int, dict[int, int]]:
    """How many parts a template has of its own, and how often it names each argument."""
    uses: dict[int, int] = {}
    for place in re.findall(r"\{(\d+)\}", text):
        uses[int(place)] = uses.get(int(place), 0) + 1
    return len(re.findall(r"\w+\(|[<>=|+*/%-]+|CASE|BETWEEN|IN|AND|OR|NOT|'[^']*'", text)) or 1, uses


def check_text(text: str) -> None:
    """Refuse text that no engine can hold, or that is very long."""
    if len(text) > _LENGTH:
        raise QueryRefused(f"A text constant is longer than {_LENGTH} characters.", "Shorten it.")
    if "\x00" in text or not is_text(text):
        raise QueryRefused("A text constant holds a character that no text can hold.", "Leave it out.")
