"""What reaches the server is one SELECT of known words over attached tables, whatever made it.

The plan layer writes every statement afresh. This check does not rely on that, nor on sqlglot and PostgreSQL
reading a text alike: it cuts the text that will be run into words by PostgreSQL's own rules (with
`standard_conforming_strings`), and a word that is not on the list is refused. Which tables the server took
the names for is asked of the server itself, once it has read the text and before it runs it: see `engine`.
"""

from __future__ import annotations

import re

__all__ = ["is_plain"]

_TOKENS = re.compile(
    r"""(?P<space>[ \n]+)
    |(?P<name>"(?:[^"\x00]|"")+")(?P<call>\s*\()?
    |(?P<text>'(?:[^'\x00]|'')*')
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[A-Za-z_][A-Za-z_0-9]*)
    |(?P<sign><>|<=|>=|\|\||!~|~\*|[-+*/%<>=~(),.\[\]])""",
    re.VERBOSE,
)
_LISTED = (
    "EPOCH TIME ABS ALL AND ANY ANY_VALUE AS ASC AVG BETWEEN BIGINT BIT BOOLEAN BOOL_AND BOOL_OR BOTH "
    "BTRIM BY CASE CAST CEIL CHAR_LENGTH CHR COALESCE COLLATE CONCAT COUNT CROSS CURRENT DATE DATE_PART "
    "DATE_TRUNC DAY DECIMAL DENSE_RANK DESC DISTINCT DIV DOUBLE DOW DOY ELSE ENCODE END ESCAPE EXISTS EXP "
    "EXTRACT FALSE FILTER FIRST FLOAT8SEND FLOOR FOLLOWING FOR FROM GREATEST GROUP HAVING ILIKE IN INNER "
    "INT INTEGER INTERVAL IS ISFINITE ISODOW JSONB_PATH_QUERY_FIRST JOIN LAG LAST LEAD LEADING LEAST LEFT "
    "LENGTH LIKE LIMIT LN LOG LOWER LPAD LTRIM MATERIALIZED MAX MD5 MIN MOD MONTH NOT NULL NULLIF NULLS "
    "NUMERIC OCTET_LENGTH OFFSET ON OR ORDER OUTER OVER PARTITION PG_COLUMN_SIZE PG_INPUT_IS_VALID "
    "PG_TYPEOF POSITION POWER PRECEDING PRECISION QUARTER RANGE RANK REGTYPE REPLACE RIGHT ROUND ROW ROWS "
    "ROW_NUMBER RTRIM SELECT SIGN SMALLINT SPLIT_PART SQRT STARTS_WITH STRING_TO_ARRAY STRPOS SUBSTRING "
    "SUM TEXT THEN TIMESTAMP TIMESTAMPTZ TRAILING TRANSLATE TRIM TRIM_SCALE TRUE TRUNC UNBOUNDED UNION "
    "UNNEST UPPER USING VALUES VARCHAR WEEK WHEN WHERE WITH YEAR"
)
_WORDS = frozenset(_LISTED.split())
_QUOTED, _TOUCHED = ("text", "name"), ("word", "number", "text", "name")


def is_plain(text: str) -> bool:
    """Whether a text is one SELECT of words that are known here: no clock, coin, setting, file or catalog.

    A name in quotes never calls a function, and a word never touches a quote: `E'…'` and `U&"…"` are others.
    """
    place, last, first = 0, "", ""
    for found in _TOKENS.finditer(text):
        if found.start() != place:
            return False
        place, kind = found.end(), str(found.lastgroup)
        if kind == "word":
            word = found[0].upper()
            first = first or word
            if word not in _WORDS:
                return False
        elif kind == "call" or (kind in _QUOTED and last in _TOUCHED):
            return False
        last = kind
    return place == len(text) and first in ("SELECT", "WITH")
