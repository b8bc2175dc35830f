"""Slips of the pen: text that is not SQL, with a guess at what was meant.

Some are told from the tokens before anything is parsed; the rest are looked for where the parser gave up.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from sqlglot import Token, TokenType

from sfumato.errors import QueryRefused
from sfumato.sql.refusals import FORM, refuse, shown
from sfumato.sql.text.tokens import adjacent, ends_operand, is_kind, is_word, word_at

__all__ = ["check_filled", "unreadable"]

_BLANK = re.compile(r"\{[A-Za-z_]\w*\}")
_CLAUSES = ["SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "DISTINCT", "BETWEEN"]
_COMPARING = (TokenType.LT, TokenType.GT, TokenType.LTE, TokenType.GTE, TokenType.EQ, TokenType.NEQ)
_JOINING = (TokenType.AND, TokenType.OR)
_SIGNS = {"≥": ">=", "≤": "<=", "≠": "<>", "×": "*", "÷": "/", "−": "-", "–": "-"}
_VALUES = (TokenType.STRING, TokenType.NUMBER)
_MARKS = (TokenType.STRING, TokenType.L_BRACE, TokenType.MOD)  # with which a place to fill in may begin


def check_filled(tokens: Sequence[Token]) -> None:
    """Refuse places that a program should have filled in, and lists without parentheses.

    Raises:
        QueryRefused: with what to write instead.
    """
    for at, token in enumerate(tokens):
        kind = token.token_type
        name = _left_open(tokens, at) if kind in _MARKS else ""
        if name:
            table = is_kind(tokens, at - 1, TokenType.FROM, TokenType.JOIN)
            raise refuse(
                f"{name[:40]} is still in the text: nothing was put in its place.",
                "Write the table's name."
                if table
                else "Write ? there and give the value as a parameter, or put f before the quote in Python.",
            )
        if kind == TokenType.IN and is_kind(tokens, at + 1, *_VALUES):
            raise refuse("IN takes its list in parentheses.", f"Write IN ({_listed(tokens, at + 1)}).")
        if said := _typeset(token):
            raise refuse(*said)
        top = kind == TokenType.SELECT and word_at(tokens, at + 1) == "top"
        if top and is_kind(tokens, at + 2, TokenType.NUMBER):
            number = tokens[at + 2].text[:10]
            raise refuse(f"TOP {number} is not supported.", f"Write LIMIT {number} at the end of the query.")


def _typeset(token: Token) -> tuple[str, str] | None:
    """What a word processor makes of quotes and signs, with the plain form."""
    if token.text.isascii() or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return None
    if any(mark in token.text for mark in "‘’“”„"):
        return "SQL does not use curly quotes.", "Write straight ones: 'text', and \"name\" where needed."
    plain = _SIGNS.get(token.text)
    return None if plain is None else (f"SQL has no {token.text} operator.", f"Write {plain}.")


def _left_open(tokens: Sequence[Token], at: int) -> str:
    """The mark of an f-string, of format or of a driver, if one is here."""
    token = tokens[at]
    if token.token_type == TokenType.STRING and _BLANK.fullmatch(token.text):
        return token.text
    if token.token_type == TokenType.L_BRACE and word_at(tokens, at + 1):
        return f"{{{tokens[at + 1].text}}}" if is_kind(tokens, at + 2, TokenType.R_BRACE) else ""
    mark = token.token_type == TokenType.MOD and word_at(tokens, at + 1) == "s"
    if mark and adjacent(token, tokens[at + 1]) and not (at and ends_operand(tokens[at - 1])):
        return "%s"
    return ""


def _listed(tokens: Sequence[Token], at: int) -> str:
    parts: list[str] = []
    while is_kind(tokens, at, *_VALUES) and len(parts) < 5:
        text = tokens[at].text[:20]
        parts.append(
            text if tokens[at].token_type == TokenType.NUMBER else "'" + text.replace("'", "''") + "'"
        )
        if not is_kind(tokens, at + 1, TokenType.COMMA):
            break
        at += 2
    return ", ".join(parts)


def unreadable(tokens: Sequence[Token], place: tuple[int, int] | None, near: str) -> QueryRefused:
    """The refusal of text that the parser gave up on.

    Args:
        tokens: Those of the statement.
        place: The line and the column, from 1, where it gave up.
        near: What is there.
    """
    if place is None:
        return refuse("The text cannot be read as SQL.", FORM).about("text")
    there = f", near {near!r}" if near.strip() else ""
    line, column = place
    at = next((i for i, token in enumerate(tokens) if (token.line, token.col) >= (line, column)), len(tokens))
    reason = f"The text cannot be read as SQL at line {line}, column {max(1, column - len(near) + 1)}{there}."
    return refuse(reason, _guess(tokens, min(at, len(tokens) - 1)) or FORM).about("text")


def _guess(tokens: Sequence[Token], at: int) -> str:
    """What may be wrong around this token."""
    kinds = [token.token_type for token in tokens]
    opened, closed = kinds.count(TokenType.L_PAREN), kinds.count(TokenType.R_PAREN)
    if opened != closed:
        return (
            "A parenthesis is not closed."
            if opened > closed
            else "A parenthesis is closed that was not opened."
        )
    if kinds.count(TokenType.CASE) > kinds.count(TokenType.END):
        return "Close CASE with END."
    for place in range(max(0, at - 3), min(len(tokens), at + 1)):
        if is_kind(tokens, place, TokenType.FARROW):
            return "Write >= for at least."
        if is_kind(tokens, place, TokenType.EQ) and is_kind(tokens, place + 1, TokenType.LT, TokenType.GT):
            return f"Write {tokens[place + 1].text}=."
        if is_kind(tokens, place, TokenType.BETWEEN):
            return "Write BETWEEN 1 AND 9."
        if is_kind(tokens, place, *_JOINING) and is_kind(tokens, place + 1, *_COMPARING):
            word = tokens[place].text.upper()
            return f"Name the column again after {word}, as in age > 30 {word} age < 40."
        if word_at(tokens, place) in ("group", "order"):
            return f"Write {tokens[place].text.upper()} BY."  # with BY, both would be one token
        if near := _keyword(tokens[place]):
            return f"Did you mean {near} where it says {shown(tokens[place].text)}?"
        if is_kind(tokens, place, TokenType.LIKE, TokenType.ILIKE):
            return "Patterns are written in single quotes, as in LIKE 'Ly%'."
        if is_kind(tokens, place, TokenType.ALIAS) and place < at - 1:
            return 'A name of several words goes in double quotes, as in AS "all visits".'
    if name := _called(tokens, at):
        return f"Perhaps {name} has too few arguments, or too many."
    if at == len(tokens) - 1 and not ends_operand(tokens[at]):
        return f"Something is missing after {tokens[at].text[:20]}, at the end."
    listing = not any(is_kind(tokens, before, TokenType.FROM) for before in range(at))
    for place in (at, at - 1):
        if listing and place > 1 and is_word(tokens[place]) and ends_operand(tokens[place - 1]):
            word = tokens[place].text[:20]
            return f"Perhaps a comma is missing before {word}, or double quotes around a name with blanks."
    return ""


def _called(tokens: Sequence[Token], at: int) -> str:
    """The function whose call ends with this token; '' if none does."""
    depth = 0
    for place in range(at, 0, -1) if is_kind(tokens, at, TokenType.R_PAREN) else ():
        depth += is_kind(tokens, place, TokenType.R_PAREN) - is_kind(tokens, place, TokenType.L_PAREN)
        if not depth:
            return tokens[place - 1].text[:40].upper() if is_word(tokens[place - 1]) else ""
    return ""


def _keyword(token: Token) -> str:
    """The word of SQL that a name may be meant as; '' if none."""
    if token.token_type != TokenType.VAR or not is_word(token):
        return ""
    near = difflib.get_close_matches(token.text.upper(), _CLAUSES, 1, cutoff=0.74)
    return near[0] if near and near[0] != token.text.upper() else ""
