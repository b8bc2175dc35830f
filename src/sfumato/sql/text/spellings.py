"""Spellings of other dialects that mean what they say, as DuckDB writes them: read from the tokens.

BigQuery names the part of a date last and without quotes, `DATE_TRUNC(day, MONTH)`; and it and MySQL put
names into backticks.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from sfumato.sql.refusals import refuse
from sfumato.sql.text.tokens import is_kind, retyped, word_at

__all__ = ["named", "part_last"]

_TRUNCATED = {"date_trunc", "datetime_trunc", "timestamp_trunc"}
_COMPARED = {"date_diff", "datetime_diff"}
_PARTS = {"day", "week", "isoweek", "month", "quarter", "year", "hour", "minute"}


def named(tokens: Sequence[Token], text: str) -> list[Token]:
    """The tokens with names for what is between backticks.

    Args:
        tokens: As DuckDB's tokenizer gives them, to which a backtick is nothing.
        text: Their text.
    """
    marks = [
        at for at, token in enumerate(tokens) if token.token_type == TokenType.UNKNOWN and token.text == "`"
    ]
    if not marks:
        return list(tokens)
    if len(marks) % 2:
        raise refuse("A name in backticks is not closed.", 'Write `name`, or name, or "name".')
    renamed: list[Token] = []
    end = 0
    for first, last in zip(marks[::2], marks[1::2], strict=True):
        inner = text[tokens[first].end + 1 : tokens[last].start]
        if not inner.strip():
            raise refuse("There is no name between two backticks.", "Write `name`, or name.")
        renamed += [*tokens[end:first], retyped(tokens[first], TokenType.IDENTIFIER, inner)]
        end = last + 1
    return renamed + list(tokens[end:])


def part_last(tokens: Sequence[Token], *, google: bool) -> list[Token]:
    """The tokens with the part of a date first, where a call names it last.

    Args:
        tokens: Those of one statement.
        google: Whether the text is GoogleSQL, so that `DATE_TRUNC(day, MONTH)` is about a column `day`;
            elsewhere `day` would be the part.
    """
    moved = list(tokens)
    for at in range(len(moved) - 1, -1, -1):  # inner calls first: what is around them moves them whole
        name = word_at(moved, at)
        if name not in _TRUNCATED | _COMPARED or not is_kind(moved, at + 1, TokenType.L_PAREN):
            continue
        split = _arguments(moved, at + 2)
        if split is None:
            continue
        arguments, end = split
        part = _part(arguments[-1])
        if not part or len(arguments) != (2 if name in _TRUNCATED else 3):
            continue
        if arguments[0][0].token_type == TokenType.STRING or (not google and _part(arguments[0])):
            continue
        if part == "week":
            raise refuse(
                "In BigQuery, WEEK begins on Sunday; here weeks begin on Monday.",
                f"Write {name.upper()}(…, ISOWEEK) for weeks that begin on Monday.",
            )
        word = "week" if part == "isoweek" else part
        first = [retyped(arguments[-1][0], TokenType.STRING, word)]
        listed = [first, *reversed(arguments[:-1])]
        comma = retyped(arguments[-1][0], TokenType.COMMA, ",")
        inside = [token for argument in listed for token in (*argument, comma)][:-1]
        short = retyped(
            moved[at], moved[at].token_type, name.replace("datetime", "date").replace("timestamp", "date")
        )
        moved[at:end] = [short, moved[at + 1], *inside]
    return moved


def _arguments(tokens: Sequence[Token], at: int) -> tuple[list[list[Token]], int] | None:
    """The arguments of a call from its first on, and the place of its closing parenthesis."""
    arguments: list[list[Token]] = [[]]
    depth = 0
    for place in range(at, len(tokens)):
        kind = tokens[place].token_type
        if kind == TokenType.R_PAREN and not depth:
            return (arguments, place) if all(arguments) else None
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if kind == TokenType.COMMA and not depth:
            arguments.append([])
        else:
            arguments[-1].append(tokens[place])
    return None


def _part(argument: Sequence[Token]) -> str:
    """The part of a date that an argument names; '' if it names none."""
    words = [token.text.lower() for token in argument]
    if words == ["week", "(", "monday", ")"]:
        return "isoweek"
    return words[0] if len(words) == 1 and word_at(argument, 0) in _PARTS else ""
