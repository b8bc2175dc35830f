"""Trees of tokens in a bounded time: what the parser would read again and again is refused.

sqlglot tries one reading after the other, and all of them again within each: `CHAR(CHAR(1))` is read as a
type and then as a call, at each level, and joins wait for their ON in the same way, so that 30 levels would
take 2^30 steps. What is known to be read twice is counted before anything is parsed. For what is not known,
the parser itself is watched: whatever it reads again, it first goes back over.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import FunctionType, new_class
from typing import Any

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.parser import Parser

from sfumato.errors import QueryRefused
from sfumato.sql.refusals import refuse
from sfumato.sql.text.listed import Listed
from sfumato.sql.text.size import MOST_WORDS

__all__ = ["check_nesting", "too_deep", "trees_of"]

_DEEPEST = 32
_MOST_TWICE = 8  # so that nothing is read more than 2^8 times
_AGAIN, _AGAIN_EACH = 10_000, 10  # tokens that may be read again: in any text, and for each of its tokens

_OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_JOINS = {TokenType.JOIN, TokenType.STRAIGHT_JOIN}
_LONE = {TokenType.CROSS, TokenType.NATURAL}  # with these before it a JOIN waits for no ON
_CONDITIONS = {TokenType.ON, TokenType.USING}
_TEXTS = {kind for kind in TokenType if kind.name.endswith("STRING")}

_CONSTANTS = _TEXTS | {TokenType.NUMBER}

_BRACKET = re.compile(r"[(\[]")
_RUN = re.compile(r"[0-9]{100}|\s{100}")
_STEP = re.compile(r"[\w\s.:+-]{0,60}")


def trees_of(tokens: list[Token], text: str, language: str) -> list[exp.Expr | None]:
    """The trees of the statements that these tokens are.

    Args:
        tokens: Of the text.
        text: What was tokenized.
        language: What sqlglot calls its SQL.

    Raises:
        QueryRefused: if it is nested too deeply, or parts of it would be read too often.
        ParseError: if it cannot be read.
    """
    dialect = Dialect.get_or_raise(language)
    check_nesting(tokens)
    _check_twice(tokens, dialect.parser_class.TYPE_TOKENS)
    _check_texts(tokens)
    if _CAN_WATCH:
        dialect.parser_class = _watched(dialect.parser_class)  # of this object, which nested parsers share
    with _limited(_AGAIN + _AGAIN_EACH * min(len(tokens), MOST_WORDS)):
        return dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)


def check_nesting(tokens: Sequence[Token]) -> None:
    """Refuse what is nested too deeply.

    Raises:
        QueryRefused: if it is.
    """
    depth = deepest = run = 0
    for token in tokens:
        kind = token.token_type
        signed = isinstance(token.text, Listed) and token.text.signs > 0
        run = run + 1 if kind in _PREFIX or signed else 0
        depth += (kind in _OPEN) - (kind in _CLOSE)
        deepest = max(deepest, depth + run)
    if deepest > _DEEPEST:
        raise too_deep()


def too_deep() -> QueryRefused:
    """The refusal of what is nested too deeply."""
    return refuse(
        "The query is nested too deeply to be checked.", "Take out parentheses, or split it in two."
    )


def _too_often() -> QueryRefused:
    return refuse(
        "The query nests too much that can be read in two ways: calls such as DATE(…), whose names are types"
        " too, or joins without ON.",
        "Write CAST(… AS DATE) instead of DATE(…), give each join its ON, or split the query in two.",
    )


def _check_twice(tokens: Sequence[Token], types: Collection[TokenType]) -> None:
    """Refuse brackets of types in brackets of types, and joins that wait for their ON, beyond a few."""
    # For each open bracket: whether it is read twice, and how many joins wait in it. All of these but the
    # last one read again what follows them, brackets included.
    levels = [[0, 0]]
    before = None
    for token in tokens:
        kind = token.token_type
        if kind in (TokenType.L_PAREN, TokenType.L_BRACKET):
            twice = kind == TokenType.L_BRACKET or before in types or before == TokenType.LATERAL
            levels.append([int(twice), 0])
        elif kind in (TokenType.R_PAREN, TokenType.R_BRACKET) and len(levels) > 1:
            levels.pop()
        elif kind in _JOINS and before not in _LONE:
            levels[-1][1] += 1
        elif kind in _CONDITIONS and levels[-1][1]:
            levels[-1][1] -= 1
        elif kind == TokenType.IDENTIFIER and len(_BRACKET.findall(token.text)) > _MOST_TWICE:
            raise _too_often()  # a quoted name may be a type, which is then parsed by itself
        if sum(twice + max(0, joins - 1) for twice, joins in levels) > _MOST_TWICE:
            raise _too_often()
        before = kind


def _check_texts(tokens: Sequence[Token]) -> None:
    """Refuse texts that are read as intervals and are none, which takes the square of their length."""
    kinds = {token.token_type for token in tokens}
    stepped: list[bool] = []  # of each open bracket, whether it is one of GENERATE_SERIES
    for at, token in enumerate(tokens):
        kind = token.token_type
        if kind in (TokenType.L_PAREN, TokenType.L_BRACKET):
            stepped.append(at > 0 and tokens[at - 1].text.lower() == "generate_series")
        elif kind in (TokenType.R_PAREN, TokenType.R_BRACKET):
            stepped[-1:] = []
        elif kind == TokenType.IDENTIFIER:
            continue
        run = TokenType.INTERVAL in kinds and _RUN.search(token.text) is not None
        step = bool(stepped) and stepped[-1] and kind in _TEXTS and _STEP.fullmatch(token.text) is None
        if run or step:
            raise refuse("A text in the query is too long to be an interval.", "Write INTERVAL '1 day'.")


_CAN_WATCH = isinstance(Parser._retreat, FunctionType)
"""Not where sqlglot is compiled: nothing can be overridden there."""


class _TooOften(Exception):
    """More was read again than may be; no error of the parser's own, which it would go on after."""


class _Left:
    """How many tokens may still be read again."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens


_left: ContextVar[_Left | None] = ContextVar("left", default=None)


@contextmanager
def _limited(tokens: int) -> Iterator[None]:
    before = _left.set(_Left(tokens))
    try:
        yield
    except _TooOften:
        raise _too_often() from None
    finally:
        _left.reset(before)


@cache
def _watched(parser: type[Any]) -> type[Any]:
    """The same parser, which stops where it has read too much again."""

    def _retreat(self: Any, index: int) -> None:
        left = _left.get()
        if left is not None and index < self._index:
            left.tokens -= sum(map(_weight, self._tokens[index : self._index]))
            if left.tokens < 0:
                raise _TooOften
        parser._retreat(self, index)

    return new_class(
        f"Watched{parser.__name__}", (parser,), exec_body=lambda names: names.update(_retreat=_retreat)
    )


def _weight(token: Token) -> int:
    """How many tokens this one counts for: a name may be tokenized again."""
    return 1 if token.token_type in _CONSTANTS else 1 + len(token.text) // 8
