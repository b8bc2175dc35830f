"""A text of statements cut into single ones, and what kind each is.

Only cutting and sorting happens here. What a SELECT means is decided by whoever answers it: the catalog, or
the session, which reads the text anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.server.wire.copying import COPY
from sfumato.server.wire.rewriting import about_catalog, tree_of
from sfumato.server.wire.sqlstates import WireError
from sfumato.sql.refusals import statement
from sfumato.sql.text.listed import without_lists
from sfumato.sql.text.size import check_words

__all__ = ["CHAIN", "Kind", "Statement", "statements"]

Kind: TypeAlias = Literal[
    "empty", "set", "show", "reset", "begin", "commit", "rollback", "keep", "forget", "explain", "select",
    "declare", "fetch", "move", "close", "prepare", "execute", "copy", "savepoint", "release", "back",
]  # fmt: skip

_MOST, _LONGEST = 100, 100_000
CHAIN = "CHAIN"
"""The value of a COMMIT or ROLLBACK after which the next transaction begins at once."""

# What a semicolon may be inside of: texts, names, comments, and PostgreSQL's texts between $ signs.
_OPAQUE = re.compile(
    r"""
    [eE]'(?:[^'\\]|\\.|'')*(?:'|$) | '(?:[^']|'')*(?:'|$) | "(?:[^"]|"")*(?:"|$) | --[^\n]*
    | /\*.*?(?:\*/|$) | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|$) | ;
    """,
    re.VERBOSE | re.DOTALL,
)
_LEAD = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]+")
_VALUE = r"(?P<value>.*)"
_NAME = r"(?P<name>\"[^\"]+\"|[\w.]+)"
_SET = re.compile(
    rf"SET\s+(?:(?P<scope>SESSION|LOCAL)\s+)?(?:{_NAME}(?:\s*=|\s+TO\s+)|(?P<words>TIME\s+ZONE|NAMES)\s+)"
    rf"\s*{_VALUE}$",
    re.IGNORECASE | re.DOTALL,
)
_TRANSACTION = re.compile(r"SET\s+(?:SESSION\s+CHARACTERISTICS|TRANSACTION|CONSTRAINTS)\b", re.IGNORECASE)
_SHOW = re.compile(
    rf"(?:SHOW|RESET)\s+(?:(?P<words>TIME\s+ZONE|TRANSACTION\s+ISOLATION\s+LEVEL)|{_NAME})\s*$", re.IGNORECASE
)
_FORGET = re.compile(r"DEALLOCATE\s+(?:PREPARE\s+)?(?P<name>\"[^\"]+\"|\w+)\s*$", re.IGNORECASE)
_BACK_TO = re.compile(r"(?:ROLLBACK|ABORT)\s+(?:WORK\s+|TRANSACTION\s+)?TO\b", re.IGNORECASE)
_POINT = re.compile(
    r"(?:SAVEPOINT|RELEASE(?:\s+SAVEPOINT)?|(?:ROLLBACK|ABORT)\s+(?:WORK\s+|TRANSACTION\s+)?TO(?:\s+SAVEPOINT)?)"
    r"\s+(?P<name>\"[^\"]+\"|\w+)\s*$",
    re.IGNORECASE,
)

_MODE = (
    r"(?:ISOLATION LEVEL (?:SERIALIZABLE|REPEATABLE READ|READ (?:UN)?COMMITTED)|READ (?:ONLY|WRITE)"
    r"|(?:NOT )?DEFERRABLE)"
)
_MODES = rf"(?: {_MODE}(?:(?: ?, ?| ){_MODE})*)?"
_END = r"(?: WORK| TRANSACTION)?(?: AND (?P<not>NO )?(?P<chain>CHAIN))?"
_WHOLE: dict[str, re.Pattern[str]] = {
    word: re.compile(f"{word}{rest}$", re.IGNORECASE)
    for word, rest in (
        ("begin", rf"(?: WORK| TRANSACTION)?{_MODES}"),
        ("start", rf" TRANSACTION{_MODES}"),
        *((word, _END) for word in ("commit", "end", "rollback", "abort")),
        ("discard", r" (?:ALL|PLANS|SEQUENCES|TEMP|TEMPORARY)"),
        ("unlisten", r" (?:\*|\w+|\"[^\"]+\")"),
    )
}
"""How statements go on that are known by their first word: another one may mean something else."""
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)

_KINDS: dict[str, Kind] = {
    "begin": "begin",
    "start": "begin",
    "commit": "commit",
    "end": "commit",
    "rollback": "rollback",
    "abort": "rollback",
    "savepoint": "savepoint",
    "release": "release",
    "unlisten": "keep",
    "discard": "forget",
    "explain": "explain",
    "select": "select",
    "with": "select",
    "values": "select",
    "table": "select",
    "from": "select",
}

_WAY = r"(?P<value>(?:\s+[-+\w]+){0,2}?)"
_CURSOR = r"(?P<name>\"[^\"]+\"|\w+)"
_NAMED: dict[str, tuple[re.Pattern[str], str]] = {
    word: (re.compile(pattern, re.IGNORECASE | re.DOTALL), form)
    for word, pattern, form in (
        (
            "declare",
            rf"DECLARE\s+{_CURSOR}\s+(?:(?:BINARY|INSENSITIVE|ASENSITIVE|NO\s+SCROLL|SCROLL)\s+)*CURSOR\s+"
            r"(?:(?P<value>WITH(?:OUT)?)\s+HOLD\s+)?FOR\s+(?P<text>.+)$",
            "DECLARE name CURSOR FOR SELECT …",
        ),
        ("fetch", rf"FETCH\b{_WAY}(?:\s+(?:FROM|IN))?\s+{_CURSOR}$", "FETCH 100 FROM name"),
        ("move", rf"MOVE\b{_WAY}(?:\s+(?:FROM|IN))?\s+{_CURSOR}$", "MOVE 100 FROM name"),
        ("close", rf"CLOSE\s+{_CURSOR}\s*$", "CLOSE name"),
        (
            "prepare",
            rf"PREPARE\s+{_CURSOR}(?:\s*\((?P<value>[^()]*)\))?\s*AS\s+(?P<text>.+)$",
            "PREPARE name AS SELECT …",
        ),
        ("execute", rf"EXECUTE\s+{_CURSOR}(?:\s*\((?P<value>.*)\))?$", "EXECUTE name (1, 'FR')"),
    )
}
_DONE = {"declare": "DECLARE CURSOR", "close": "CLOSE CURSOR"}


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    Attributes:
        kind: What it does.
        text: It, without the semicolon.
        name: Of the setting, the cursor or the prepared statement that is meant; empty: of all.
        value: What the setting is set to; None: what it was in the beginning. Of others: how they are to be
            done.
        local: Whether that is for the transaction alone.
        tag: What the client is told when it is done.
        catalog: Whether the catalog answers it; where that is not so, the session does, if anybody.
    """

    kind: Kind
    text: str
    name: str = ""
    value: str | None = None
    local: bool = False
    tag: str = ""
    catalog: bool = False


def statements(text: str) -> list[Statement]:
    """The statements of a text, in order; one empty one if there is nothing in it.

    Raises:
        QueryRefused: if one is of a kind that is not supported, or has too many words.
        WireError: if one cannot be read, or there are too many.
    """
    parts = [part for part in _parts(text) if _lead(part) < len(part)]
    if len(parts) > _MOST:
        raise WireError("54001", f"There are more than {_MOST} statements.", hint="Send them one by one.")
    if any(len(part) > _LONGEST for part in parts):
        raise WireError("54000", f"A statement may have {_LONGEST:,} characters.", hint="Shorten its lists.")
    for part in parts:
        check_words(without_lists(part))
    return [_sorted(part) for part in parts] or [Statement("empty", "")]


def _lead(text: str) -> int:
    """How many characters of blanks and comments a text begins with.

    Never by `fullmatch`, which tries every way to part a run of blanks: twice as many for each blank.
    """
    found = _LEAD.match(text)
    return found.end() if found else 0


def _parts(text: str) -> Iterator[str]:
    begin = 0
    for match in _OPAQUE.finditer(text):
        if match.group() == ";":
            yield text[begin : match.start()]
            begin = match.end()
    yield text[begin:]


def _sorted(text: str) -> Statement:
    bare = text[_lead(text) :].strip()
    found = _WORD.match(bare)
    word = found.group().lower() if found else ""
    if bare.startswith("("):
        return Statement("select", text, catalog=_is_of_catalog(text))
    if word == "set":
        return _set(bare)
    if word in ("show", "reset"):
        match = _SHOW.match(bare)
        if match is None:
            raise WireError("42601", f"{word.upper()} takes the name of one setting, or ALL.")
        name = _plain(match["words"] or match["name"])
        tag = word.upper()
        return Statement("show" if word == "show" else "reset", bare, name=name, tag=tag)
    if word == "deallocate":
        match = _FORGET.match(bare)
        if match is None:
            raise WireError("42601", "DEALLOCATE takes the name of one prepared statement, or ALL.")
        name = _plain(match["name"])
        every = name.lower() == "all"
        return Statement("forget", bare, name="" if every else name, tag=f"DEALLOCATE{' ALL' * every}")
    if word in _NAMED:
        return _named(word, bare)
    if word == "copy" and (copied := COPY.match(bare)) is not None:
        how, query = copied["options"] or copied["words"], copied["query"]
        return Statement("copy", query, value=how, tag="COPY", catalog=_is_of_catalog(query))
    if word not in _KINDS:
        raise statement(word or bare[:20])
    kind: Kind = "back" if _BACK_TO.match(bare) else _KINDS[word]
    if kind in ("savepoint", "release", "back"):
        return _point(kind, word, bare)
    if word in _WHOLE:
        return _whole(kind, word, bare)
    if kind == "explain":
        return Statement(kind, bare, tag=_tag(word, bare))
    return Statement(kind, text, tag=_tag(word, bare), catalog=_is_of_catalog(text))


def _is_of_catalog(text: str) -> bool:
    """Whether a query is for the catalog; what cannot be read is for the session, which says why."""
    tree = tree_of(text)
    return tree is not None and about_catalog(tree)


def _named(word: str, bare: str) -> Statement:
    """A statement about a cursor or a prepared statement; its text is that of the query in it."""
    pattern, form = _NAMED[word]
    match = pattern.match(bare)
    if match is None:
        raise WireError("42601", f"{word.upper()} cannot be read.", hint=f"As in {form}.")
    parts = match.groupdict()
    name = _plain(parts["name"])
    every = word == "close" and name.lower() == "all"
    kind: Kind = word  # type: ignore[assignment]
    tag = _DONE.get(word, word.upper()) + ("" if not every else " ALL")
    text, value = parts.get("text") or "", parts.get("value") or ""
    catalog = kind == "declare" and _is_of_catalog(text)
    return Statement(kind, text, name="" if every else name, value=value, tag=tag, catalog=catalog)


def _whole(kind: Kind, word: str, bare: str) -> Statement:
    """A statement of known words alone."""
    plain = " ".join(_COMMENT.sub(" ", bare).split())
    match = _WHOLE[word].match(plain)
    if match is None:
        if plain[len(word) :].upper().startswith(" PREPARED"):
            raise WireError("0A000", "Transactions are not prepared here.", hint="Use COMMIT or ROLLBACK.")
        raise WireError("42601", f"{word.upper()} does not go on like this.")
    parts = match.groupdict()
    chains = bool(parts.get("chain")) and not parts["not"]
    tag = _tag(word, plain)
    if word == "discard" and tag != "DISCARD ALL":
        kind = "keep"
    return Statement(kind, bare, value=CHAIN if chains else None, tag=tag)


def _point(kind: Kind, word: str, bare: str) -> Statement:
    match = _POINT.match(bare)
    if match is None:
        raise WireError("42601", "A savepoint has a name.", hint="As in SAVEPOINT here; ROLLBACK TO here.")
    return Statement(kind, bare, name=_plain(match["name"]), tag=_tag(word, bare))


def _tag(word: str, bare: str) -> str:
    if word == "start":
        return "START TRANSACTION"
    if word == "discard":
        return f"DISCARD {bare.split()[-1].upper()[:20]}"
    return {"end": "COMMIT", "abort": "ROLLBACK"}.get(word, word.upper())


def _set(bare: str) -> Statement:
    if _TRANSACTION.match(bare):
        return Statement("keep", bare, tag="SET")
    match = _SET.match(bare)
    if match is None:
        raise WireError(
            "42601", "SET takes a name and a value.", hint="As in SET sfumato.epsilon = 0.1; or SHOW ALL."
        )
    value = match["value"].strip()
    if not value:
        raise WireError("42601", "SET lacks a value.", hint="As in SET sfumato.epsilon = 0.1.")
    return Statement(
        "set",
        bare,
        name=_plain(match["words"] or match["name"]),
        value=None if value.upper() == "DEFAULT" else _unquoted(value),
        local=(match["scope"] or "").upper() == "LOCAL",
        tag="SET",
    )


def _plain(name: str) -> str:
    return name[1:-1] if name.startswith('"') else " ".join(name.lower().split())


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1].replace(value[0] * 2, value[0])
    return value
