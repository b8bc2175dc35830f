"""From text to the tree of one SELECT, within limits: any text gives a tree or a refusal."""

from __future__ import annotations

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError

from sfumato.engines.trees import nodes_of
from sfumato.errors import QueryRefused
from sfumato.render import is_text
from sfumato.sql.refusals import FORM, refuse, statement
from sfumato.sql.text.bounded import check_nesting, too_deep, trees_of
from sfumato.sql.text.habits import is_foreign, native
from sfumato.sql.text.listed import listed_in, tokens_of
from sfumato.sql.text.slips import check_filled, unreadable
from sfumato.sql.text.spellings import named

__all__ = ["LANGUAGE", "LARGEST", "check_size", "finished", "grown", "read", "single", "tokenized"]

LANGUAGE = "duckdb"
"""What sqlglot calls the SQL that questions are written in; whatever engine reads has no part in it."""
_LONGEST = 200_000
LARGEST = 50_000
"""The most nodes that the tree of a query may have."""
_TALLEST = 100

_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN}


def read(text: str) -> exp.Select:
    """The tree of the one SELECT that the text is.

    Raises:
        QueryRefused: if it is anything else, or too long or too deeply nested to be looked at.
    """
    return finished(grown(single(tokenized(text)), text), text)


def tokenized(text: str) -> list[Token]:
    """The tokens of the text.

    Raises:
        QueryRefused: if there are none, or the text is too long or not SQL.
    """
    if not isinstance(text, str) or not text.strip():
        raise refuse("There is no query in this text.", FORM).about("text")
    if len(text) > _LONGEST:
        raise refuse(
            f"The query is longer than {_LONGEST:,} characters.",
            "Declare long lists of values as an Enum column instead of writing them out.",
        )
    if not is_text(text):
        raise refuse("The query holds half a character, which no text can hold.", "Leave it out.")
    tokens = _tokens(text)
    return named(tokens, text) if "`" in text else tokens


def single(tokens: list[Token]) -> list[Token]:
    """The tokens of the only statement among them.

    Raises:
        QueryRefused: if there is none or several, or it is nested too deeply.
    """
    only = _one(tokens)
    check_nesting(only)
    check_filled(only)
    return only


def grown(tokens: list[Token], text: str) -> exp.Select:
    """The tree of these tokens as the parser gives it.

    Raises:
        QueryRefused: if they are not one SELECT.
    """
    if not tokens:
        raise refuse("There is no query in this text.", FORM).about("text")
    if tokens[0].token_type not in _STARTS:
        raise statement(tokens[0].text)
    tree = _tree(tokens, text)
    while isinstance(tree, exp.Subquery | exp.Paren) and set(_present(tree)) == {"this"}:
        tree = tree.this
    if isinstance(tree, exp.SetOperation):
        raise refuse(
            "UNION, INTERSECT and EXCEPT of results are not supported.",
            "Ask one SELECT at a time, or aggregate over both: SELECT COUNT(*) FROM (SELECT user_id FROM a "
            "UNION ALL SELECT user_id FROM b).",
        )
    if not isinstance(tree, exp.Select):
        raise statement(tokens[0].text)
    return tree


def finished(tree: exp.Select, text: str) -> exp.Select:
    """The same tree within limits, its functions with the names that were typed, its long chains balanced.

    Raises:
        QueryRefused: if it is too large or too tall.
    """
    check_size(tree)
    _name(tree, text)
    if is_foreign(text):
        tree = native(tree)
        check_size(tree)
    return _balanced(tree)


def _name(tree: exp.Select, text: str) -> None:
    """Keep with each function the name that was typed, which refusals speak of."""
    for node in nodes_of(tree):
        if not isinstance(node, exp.Func):
            continue
        start, end = node.meta.get("start"), node.meta.get("end")
        if isinstance(start, int) and isinstance(end, int) and text[start : end + 1].isidentifier():
            node.meta["typed"] = text[start : end + 1]


def _present(node: exp.Expr) -> list[str]:
    return [name for name, value in node.args.items() if value]


def _tokens(text: str) -> list[Token]:
    try:
        return tokens_of(text, Dialect.get_or_raise(LANGUAGE).tokenize)
    except QueryRefused:
        raise
    except (
        Exception
    ):  # whatever the tokenizer stumbles over is the text's fault, and its message may be anything
        raise refuse(
            "The text cannot be read as SQL: a quote or a comment is not closed.",
            "Text goes in single quotes, with two of them for one inside, as in 'it''s'.",
        ).about("text") from None


def _one(tokens: list[Token]) -> list[Token]:
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    filled = [part for part in statements if part]
    if not filled:
        raise refuse("There is no query in this text.", FORM).about("text")
    if len(filled) > 1:
        raise refuse("There are several statements.", "Ask one SELECT at a time.").about("text")
    return filled[0]


def _tree(tokens: list[Token], text: str) -> exp.Expr | None:
    try:
        trees = trees_of(tokens, text, LANGUAGE)
    except QueryRefused:
        raise
    except ParseError as error:
        raise _unreadable(error, tokens) from None
    except RecursionError:
        raise too_deep() from None
    except Exception:  # the parser's own failures, of any kind
        raise refuse("The text cannot be read as SQL.", FORM).about("text") from None
    return trees[0] if len(trees) == 1 else None


def _unreadable(error: ParseError, tokens: list[Token]) -> QueryRefused:
    place = error.errors[0] if error.errors else {}
    line, column, near = place.get("line"), place.get("col"), str(place.get("highlight") or "")[:20]
    return unreadable(tokens, None if line is None or column is None else (line, column), near)


def check_size(tree: exp.Expr) -> None:
    """Refuse a tree that is too large or too tall for the steps that follow.

    Raises:
        QueryRefused: if it is.
    """
    count = 0
    stack: list[tuple[exp.Expr, int]] = [(tree, 0)]
    while stack:
        node, height = stack.pop()
        constants = listed_in(node)
        count += 1 if constants is None else constants.nodes
        if height > _TALLEST or count > LARGEST:
            raise (
                too_deep()
                if height > _TALLEST
                else refuse(
                    f"The query has more than {LARGEST:,} parts.",
                    "Declare long lists of values as an Enum column instead of writing them out.",
                )
            )
        chained = isinstance(node, exp.Connector)
        stack += [
            (child, height if chained and type(child) is type(node) else height + 1)
            for child in node.iter_expressions()
        ]


def _balanced(tree: exp.Select) -> exp.Select:
    """The same with long chains of AND and OR as trees of little height."""
    chains = [
        node
        for node in nodes_of(tree)
        if isinstance(node, exp.And | exp.Or)
        and type(node.parent) is not type(node)
        and isinstance(node.this, type(node))
    ]
    for top in chains:
        terms: list[exp.Expr] = []
        stack: list[exp.Expr] = [top]
        while stack:
            node = stack.pop()
            if type(node) is type(top):
                stack += [node.expression, node.this]
            else:
                terms.append(node)
        top.replace(_halves(type(top), terms))
    return tree


def _halves(connector: type[exp.Expr], terms: list[exp.Expr]) -> exp.Expr:
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return connector(this=_halves(connector, terms[:middle]), expression=_halves(connector, terms[middle:]))
