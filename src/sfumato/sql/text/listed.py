"""Long lists of constants after IN, read as one token: neither the parser nor a walk meets each of them.

A list is taken out of the text before it is tokenized, blanks in its place so that all places stay the same.
What the tokenizer makes of the rest says whether it was a list at all, and not a part of a text, of a quoted
name or of a comment: only where it finds `IN`, `(`, the mark that was left there and `)` is the list put
back, as the text of that one token. Up to that `(` both texts are the same, so that the list begins there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from sqlglot import Token, TokenType, exp

from sfumato.sql.text.size import check_words
from sfumato.sql.text.tokens import is_kind

__all__ = ["Listed", "listed_in", "tokens_of", "without_lists"]

_LEAST = 32  # shorter lists are read like everything else
# No possessive forms: Python before 3.11.5 mistakes those that hold others. None here can match in two ways.
_BLANK = r"[ \t\r\n]*"
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_PLAIN = r"[^'\\{\r\n\0]*"
_TEXT = rf"'{_PLAIN}(?:''{_PLAIN})*'(?!')"
_ONE = rf"(?:{_NUMBER}|{_TEXT})"
_LIST = re.compile(
    rf"(?<![\w.])IN{_BLANK}\({_BLANK}({_ONE}(?:{_BLANK},{_BLANK}{_ONE}){{{_LEAST - 1},}}){_BLANK}(?=\))",
    re.IGNORECASE,
)
_EACH = re.compile(_ONE)
_LINE = re.compile(r"[^\r\n]+")


class Listed(str):
    """Constants between parentheses as one text, written as a query writes them: `1, 2, 'a'`."""

    @classmethod
    def of(cls, constants: list[str]) -> Listed:
        """The text that lists these."""
        listed = cls(", ".join(constants))
        listed.constants = constants
        return listed

    @cached_property
    def constants(self) -> list[str]:
        """Each of them, as it is written."""
        return _EACH.findall(self)

    @cached_property
    def signs(self) -> int:
        """How many of them have a sign, which is a node of its own in a tree."""
        return sum(constant[0] == "-" for constant in self.constants) if "-" in self else 0

    @property
    def nodes(self) -> int:
        """How many nodes of a tree they stand for."""
        return len(self.constants) + self.signs


def listed_in(node: exp.Expr) -> Listed | None:
    """The list that a node of a tree stands for; None for any other node."""
    written = node.this if isinstance(node, exp.Literal) else None
    return written if isinstance(written, Listed) else None


def tokens_of(text: str, tokenize: Callable[[str], list[Token]]) -> list[Token]:
    """The tokens of a text, a long list of plain constants after IN as one of them.

    Args:
        text: A query.
        tokenize: Gives its tokens, or raises.

    Raises:
        QueryRefused: if it has too many words, of which a list that is taken out has none.
    """
    places = {found.end(1) - 1: found for found in _LIST.finditer(text)}
    rest = without_lists(text) if places else text
    check_words(rest)
    tokens = tokenize(rest)
    if not places:
        return tokens
    lists = [
        at
        for at, token in enumerate(tokens)
        if _is_mark(tokens, at) and _begins(tokens[at - 1], places.get(token.start))
    ]
    if len(lists) < len(places):
        check_words(text)
        return tokenize(text)
    for at in lists:
        token, found = tokens[at], places[tokens[at].start]
        shown = Listed.of(_EACH.findall(found[1]))
        tokens[at] = Token(
            TokenType.NUMBER, shown, token.line, token.col, found.start(1), token.end, token.comments
        )
    return tokens


def without_lists(text: str) -> str:
    """The text, each long list with a mark in its place, also where it is a part of something else."""
    return _LIST.sub(_blanked, text)


def _blanked(found: re.Match[str]) -> str:
    """Blanks of the same lines with a mark in the place of the last character."""
    before = found[0][: found.start(1) - found.start()]
    blank = _LINE.sub(lambda line: " " * len(line[0]), found[1])
    return f"{before}{blank[:-1]}0{found[0][found.end(1) - found.start() :]}"


def _begins(opening: Token, found: re.Match[str] | None) -> bool:
    """Whether this parenthesis is that of a list, which may begin in a comment that ends within it."""
    return found is not None and opening.start == found.start() + found[0].index("(")


def _is_mark(tokens: list[Token], at: int) -> bool:
    """Whether a list was taken out here: a mark alone in the parentheses of IN."""
    return (
        is_kind(tokens, at, TokenType.NUMBER)
        and tokens[at].start == tokens[at].end
        and is_kind(tokens, at - 2, TokenType.IN)
        and is_kind(tokens, at - 1, TokenType.L_PAREN)
        and is_kind(tokens, at + 1, TokenType.R_PAREN)
    )
