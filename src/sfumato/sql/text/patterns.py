"""Regular expressions of a simple kind as LIKE and =, which engines take alike and no text can slow.

What is read: characters as they are, `.` for any character, `.*` and `.+`, `^` and `$` at the ends, `a|b`,
groups without a mark after them, a backslash before a sign, `(?i)` in front. Everything else is refused. A
dot stands for any character, also for the end of a line.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.sql.refusals import refuse

__all__ = ["matched"]

_MOST = 32  # alternatives
_LONGEST = 1000
_MARK = "!"
_ANY, _ONE = "any", "one"  # what % and _ stand for
_FUNCTIONS = {"REGEXP_LIKE", "REGEXP_MATCHES", "REGEXP_CONTAINS"}

Piece = tuple[str, bool]
"""A character and whether it means itself; or `_ANY`, `_ONE` and False."""


def matched(node: exp.RegexpLike, typed: str) -> exp.Expr:
    """The condition that a text fits a pattern, without regular expressions.

    Args:
        node: The call.
        typed: What it is called.

    Raises:
        QueryRefused: if the pattern is of another kind, or the operator means different things elsewhere.
    """
    if typed.upper() not in _FUNCTIONS:
        raise refuse(
            "~ fits a part of the text in PostgreSQL and all of it in DuckDB.",
            "Write REGEXP_MATCHES(x, 'pattern'), with ^ and $ where the ends are meant.",
        )
    pattern, flags = node.expression, node.args.get("flag")
    if not isinstance(pattern, exp.Literal) or not pattern.is_string or len(pattern.this) > _LONGEST:
        raise _unread("takes a constant pattern")
    text, folded = pattern.this, False
    if flags is not None:
        if not isinstance(flags, exp.Literal) or flags.this not in ("", "i", "c"):
            raise _unread("takes the flag i or none")
        folded = flags.this == "i"
    if text.startswith("(?i)"):
        text, folded = text[4:], True
    alternatives = _Reader(text).read()
    tests = [_test(node.this, pieces, folded=folded) for pieces in alternatives]
    whole = tests[0]
    for test in tests[1:]:
        whole = exp.Or(this=whole, expression=test)
    return exp.Paren(this=whole) if len(tests) > 1 else whole


def _test(value: exp.Expr, pieces: list[Piece], *, folded: bool) -> exp.Expr:
    plain = all(literal for _, literal in pieces)
    if plain and not folded:
        return exp.EQ(this=value.copy(), expression=exp.Literal.string("".join(sign for sign, _ in pieces)))
    escaped = any(literal and sign in "%_" for sign, literal in pieces)
    wild = {_ANY: "%", _ONE: "_"}
    spelt = "".join(
        wild[sign] if not literal else _MARK + sign if escaped and sign in "%_!" else sign
        for sign, literal in pieces
    )
    kind = exp.ILike if folded else exp.Like
    fits = kind(this=value.copy(), expression=exp.Literal.string(spelt))
    return exp.Escape(this=fits, expression=exp.Literal.string(_MARK)) if escaped else fits


@dataclass(slots=True)
class _Reader:
    """Reads one pattern from left to right."""

    text: str
    at: int = 0

    def read(self) -> list[list[Piece]]:
        """Its alternatives, with what may stand before and after them."""
        found: list[list[Piece]] = []
        while True:
            begins = self._take("^")
            pieces = self._sequences()
            ends = self._take("$")
            if self.at < len(self.text) and self.text[self.at] != "|":
                raise _unread(f"reads no {self.text[self.at]!r} here")
            before: list[Piece] = [] if begins else [(_ANY, False)]
            after: list[Piece] = [] if ends else [(_ANY, False)]
            found += [_joined([*before, *sequence, *after]) for sequence in pieces]
            if len(found) > _MOST:
                raise _unread(f"reads at most {_MOST} alternatives")
            if not self._take("|"):
                return found

    def _sequences(self) -> list[list[Piece]]:
        """All texts that a sequence stands for, up to the next bar, parenthesis or dollar sign."""
        sequences: list[list[Piece]] = [[]]
        while self.at < len(self.text) and self.text[self.at] not in "|)$":
            ways = self._item()
            sequences = [[*before, *way] for before in sequences for way in ways]
            if len(sequences) > _MOST:
                raise _unread(f"reads at most {_MOST} alternatives")
        return sequences

    def _item(self) -> list[list[Piece]]:
        sign = self.text[self.at]
        self.at += 1
        if sign == "(":
            return self._group()
        if sign == ".":
            if self._take("*"):
                return [[(_ANY, False)]]
            return [[(_ONE, False), (_ANY, False)]] if self._take("+") else [[(_ONE, False)]]
        if sign == "\\":
            sign = self.text[self.at] if self.at < len(self.text) else ""
            self.at += 1
            if not sign or sign.isalnum():
                raise _unread(f"reads no \\{sign}")
        elif sign in "*+?[]{}^":
            raise _unread(f"reads no {sign!r} here")
        if self.at < len(self.text) and self.text[self.at] in "*+?{":
            raise _unread(f"reads no {self.text[self.at]!r} after a character")
        return [[(sign, True)]]

    def _group(self) -> list[list[Piece]]:
        if self.text.startswith("?:", self.at):
            self.at += 2
        ways = self._sequences()
        while self._take("|"):
            ways += self._sequences()
        if not self._take(")"):
            raise _unread("reads groups of plain alternatives, such as (a|b)")
        if self.at < len(self.text) and self.text[self.at] in "*+?{":
            raise _unread(f"reads no {self.text[self.at]!r} after a group")
        return ways

    def _take(self, sign: str) -> bool:
        taken = self.text.startswith(sign, self.at)
        self.at += len(sign) if taken else 0
        return taken


def _joined(pieces: list[Piece]) -> list[Piece]:
    """The same with one % for several beside each other."""
    return [
        piece for i, piece in enumerate(pieces) if piece != (_ANY, False) or not i or pieces[i - 1] != piece
    ]


def _unread(what: str) -> QueryRefused:
    return refuse(
        f"A regular expression here {what}.",
        "It has characters, ., .*, ^, $, (a|b) and backslashes before signs; or use LIKE 'Ly%', UPPER "
        "and LENGTH.",
    )
