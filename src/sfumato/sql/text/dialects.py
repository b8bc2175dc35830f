"""The SQL that people know, as one tree and its options: DuckDB's, GoogleSQL's clause, EXPLAIN, parameters.

sqlglot parses GoogleSQL's differential privacy in no dialect, so it is read from the tokens before: quoted
names, texts and comments are tokens of their own and are never touched.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace

from sqlglot import Token, TokenType, exp

from sfumato._dataclasses import dataclass
from sfumato.sql.refusals import FORM, refuse
from sfumato.sql.text.contributions import Calls, attach, take_calls
from sfumato.sql.text.google import Options, check_shape, is_google, take_clause
from sfumato.sql.text.parameters import Parameters, Values
from sfumato.sql.text.spellings import part_last
from sfumato.sql.text.statement import finished, grown, single, tokenized
from sfumato.sql.text.tokens import is_kind, word_at

__all__ = ["Asked", "understand"]

# Without these there is nothing to read before the parser does; most texts have none.
_PARAMETER = re.compile(r"[?$:@]")
_MARKED = re.compile(rf"{_PARAMETER.pattern}|=>|WITH|ANON_|CLAMPED", re.IGNORECASE)

_PARTED = re.compile(r"DATE(TIME)?_(TRUNC|DIFF)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Options):
    """One query as it was written: its SELECT in DuckDB's dialect, and what else the text says.

    Privacy:
        Nothing here is a guarantee. Epsilon, the unit and the limits are wishes of the analyst; a session
        holds them to its budget and to what the steward declared.

    Attributes:
        select: The tree. Bounds of an aggregate are with its node: `node.meta["bounds"]` is
            `("group" or "row", lower, upper)`.
        google: Whether the text has GoogleSQL's clause, with its meaning of the aggregates.
        explain: Whether only the price is asked for.
    """

    select: exp.Select
    google: bool = False
    explain: bool = False


def understand(text: str, parameters: Values = None) -> Asked:
    """What one text asks for.

    Args:
        text: One SELECT, also with GoogleSQL's `WITH DIFFERENTIAL_PRIVACY` or behind `EXPLAIN [PRIVACY]`.
        parameters: Values for `?` and `$1` in order, or for `$name`, `:name` and `@name` by name.

    Raises:
        QueryRefused: if the text is anything else, with the reason and what would work.
        InvalidParameter: if the values are not those that the text has parameters for.
    """
    values = Parameters(parameters)
    explain, tokens, text = _unexplained(tokenized(text), text)
    tokens = single(tokens)
    google, options, calls = False, None, Calls()
    if _MARKED.search(text):
        google = is_google(tokens)
        tokens = values.prepared(tokens, google=google)
        options, tokens = take_clause(tokens, values.constant)
        calls, tokens = take_calls(tokens, values.constant, google=google)
    if _PARTED.search(text):
        tokens = part_last(tokens, google=google)
    select = grown(tokens, text)
    if _PARAMETER.search(text):
        values.fill(select)
    values.check_used()
    attach(select, calls.bounds)
    if google:
        check_shape(select)
    stated = replace(options or Options(), notes=(*(options.notes if options else ()), *calls.notes))
    said = {field.name: getattr(stated, field.name) for field in fields(stated)}
    return Asked(**said, select=finished(select, text), google=google, explain=explain)


def _unexplained(tokens: list[Token], text: str) -> tuple[bool, list[Token], str]:
    """Whether the text begins with EXPLAIN; and its tokens and text without that.

    The tokenizer leaves what follows EXPLAIN as it is, so that it is read again with blanks in its place: all
    places in the text stay the same.
    """
    if not is_kind(tokens, 0, TokenType.COMMAND) or tokens[0].text.upper() != "EXPLAIN":
        return False, tokens, text
    end = tokens[0].end + 1
    rest = "".join(character if character == "\n" else " " for character in text[:end]) + text[end:]
    if not rest.strip():
        raise refuse("EXPLAIN needs a SELECT after it.", FORM)
    tokens = tokenized(rest)
    word = word_at(tokens, 0)
    options = is_kind(tokens, 0, TokenType.L_PAREN) and word_at(tokens, 1) in (
        "analyze", "costs", "format", "timing", "verbose",
    )  # fmt: skip
    if word == "analyze" or options:
        raise refuse(
            "EXPLAIN ANALYZE and options of EXPLAIN are not supported: explaining reads no data.",
            "EXPLAIN SELECT … gives the price and the expected error.",
        )
    if word == "privacy":
        tokens = tokens[1:]
    if not is_kind(tokens, 0, TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN):
        raise refuse("EXPLAIN needs a SELECT after it.", FORM)
    return True, tokens, rest
