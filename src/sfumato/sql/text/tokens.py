"""Small readings of tokens: is this a name, does an operand end here, which constant is here."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from sqlglot import Token, TokenType
from sqlglot.parser import Parser

from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_fraction

__all__ = [
    "Constant",
    "adjacent",
    "constant_at",
    "ends_operand",
    "is_kind",
    "is_word",
    "number_of",
    "retyped",
    "word_at",
]

Constant: TypeAlias = Fraction | str | bool | datetime.date | datetime.time | None
"""What may be a constant in an option or a bound; the number is exact."""

_SMALLEST, _LARGEST = Fraction(1, 10**300), Fraction(10**400)
_WORDS = {TokenType.NULL: None, TokenType.TRUE: True, TokenType.FALSE: False}
_MARKS = {TokenType.PARAMETER, TokenType.COLON}
# Words after which an expression begins, though the parser would take them for names too.
_LEADING = {
    TokenType.ALL,
    TokenType.ANY,
    TokenType.CASE,
    TokenType.ESCAPE,
    TokenType.IN,
    TokenType.INTERVAL,
    TokenType.IS,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.SOME,
}
_OPERANDS = frozenset(
    {
        *Parser.ID_VAR_TOKENS,
        TokenType.IDENTIFIER,
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.R_PAREN,
        TokenType.R_BRACKET,
        TokenType.R_BRACE,
    }
    - _LEADING
)


def is_kind(tokens: Sequence[Token], at: int, *kinds: TokenType) -> bool:
    """Whether the token at this place is of one of these kinds."""
    return 0 <= at < len(tokens) and tokens[at].token_type in kinds


def is_word(token: Token) -> bool:
    """Whether this is an unquoted name or keyword."""
    return token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING) and token.text.isidentifier()


def word_at(tokens: Sequence[Token], at: int) -> str:
    """The unquoted word at this place in lower case, or nothing."""
    return tokens[at].text.lower() if 0 <= at < len(tokens) and is_word(tokens[at]) else ""


def adjacent(left: Token, right: Token) -> bool:
    """Whether there is nothing between the two."""
    return left.end + 1 == right.start


def ends_operand(token: Token) -> bool:
    """Whether a value may end with this token, so that no other can begin after it."""
    return token.token_type in _OPERANDS


def retyped(token: Token, kind: TokenType, text: str | None = None) -> Token:
    """The same token as another kind, with another text if one is given."""
    shown = token.text if text is None else text
    return Token(kind, shown, token.line, token.col, token.start, token.end, token.comments)


def number_of(text: str) -> Fraction | None:
    """The exact number that is written so, if it is one of sane size."""
    try:
        value = as_fraction(text, "number")
    except InvalidParameter:
        return None
    return value if value == 0 or _SMALLEST <= abs(value) <= _LARGEST else None


def constant_at(
    tokens: Sequence[Token], at: int, parameter: Callable[[str], Constant]
) -> tuple[Constant, int] | None:
    """The constant at this place and where it ends, or nothing.

    Args:
        tokens: The tokens of a statement.
        at: Where it begins; a number may have one sign.
        parameter: Gives the value of a parameter of this name.
    """
    sign = 1
    if is_kind(tokens, at, TokenType.DASH, TokenType.PLUS):
        sign = -1 if tokens[at].token_type == TokenType.DASH else 1
        constant = _unsigned(tokens, at + 1, parameter)
        if constant is None or not isinstance(constant[0], Fraction):
            return None
        return sign * constant[0], constant[1]
    return _unsigned(tokens, at, parameter)


def _unsigned(
    tokens: Sequence[Token], at: int, parameter: Callable[[str], Constant]
) -> tuple[Constant, int] | None:
    if at >= len(tokens):
        return None
    kind = tokens[at].token_type
    if kind == TokenType.STRING:
        return tokens[at].text, at + 1
    if kind in _WORDS:
        return _WORDS[kind], at + 1
    if kind in _MARKS and at + 1 < len(tokens) and (is_word(tokens[at + 1]) or tokens[at + 1].text.isdigit()):
        return parameter(tokens[at + 1].text), at + 2
    point = kind == TokenType.DOT and is_kind(tokens, at + 1, TokenType.NUMBER)
    if point and adjacent(tokens[at], tokens[at + 1]):  # the tokenizer divides .01
        number = number_of("." + tokens[at + 1].text)
        return None if number is None else (number, at + 2)
    if kind == TokenType.NUMBER:
        number = number_of(tokens[at].text)
        return None if number is None else (number, at + 1)
    return None
