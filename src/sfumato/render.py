"""Numbers, error bars and tables as people and programs read them: plain text, HTML for notebooks, JSON."""

from __future__ import annotations

import datetime
import html
import math
import re
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any
from urllib.parse import unquote_plus

from sfumato.errors import InvalidParameter

__all__ = [
    "Column",
    "between",
    "cells_of",
    "definitions",
    "encodable",
    "html_table",
    "is_text",
    "is_visible",
    "key",
    "plain_json",
    "shown",
    "text_table",
    "visible",
    "with_bar",
    "without_password",
]

_GAP = "  "
_BAR = re.compile(r"\S+ ± \S+|[≥≤] \S+|-?[\d,.]+ to -?[\d,.]+")  # as `with_bar` and `between` write them
_LONGEST_NAME = 24  # of what is defined beside it
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_NARROWEST = 8  # a column of text is not cut below this
_SPELLED = {
    "±": "+/-",
    "…": "...",
    "–": "-",
    "—": "-",
    "─": "-",
    "━": "-",
    "│": "|",
    "·": "-",
    "•": "*",
    "×": "x",
    "ε": "epsilon",
    "δ": "delta",
    "ρ": "rho",
    "μ": "mu",
    "σ": "sigma",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "→": "->",
    "◂": "<",
    "∞": "infinity",
    "’": "'",
    "“": '"',
    "”": '"',
    "█": "#",
    "▏": "|",
    "✓": "ok",
    "✗": "x",
    "\N{NO-BREAK SPACE}": " ",
    "\N{NARROW NO-BREAK SPACE}": " ",
}


def is_text(value: str) -> bool:
    """Whether a text can be written down at all: half of a pair of surrogates is not a character."""
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def is_visible(value: str) -> bool:
    """Whether a text has no control or format characters and no line breaks: what looks alike is alike."""
    return not any(unicodedata.category(letter) in _INVISIBLE for letter in value)


def visible(value: str) -> str:
    """A text of somebody else's as one line, with a space for what moves a cursor or hides letters."""
    return "".join(" " if unicodedata.category(letter) in _INVISIBLE else letter for letter in value)


def shown(value: object, half_width: object = None) -> str:
    """A cell as text, with as many decimals as its error bar justifies: two digits of the half-width.

    Digits before the point are never dropped: they are what was released. None is empty, a truth value is a
    word, a day is written 2024-05-31.
    """
    value, half_width = _plain(value), _plain(half_width)
    if not isinstance(value, int | float | Fraction | Decimal) or isinstance(value, bool):
        return _word(value)
    decimals = _justified(value, half_width)
    return _number(value) if decimals is None else _fixed(_rounded(_exact(value), decimals), decimals)


def key(value: object) -> str:
    """The value of a key as text: as `shown`, but a year is 2024, not 2,024."""
    plain = _plain(value)
    if not _is_number(plain) or not math.isfinite(plain):  # type: ignore[arg-type]
        return shown(plain)
    return _number(plain).replace(",", "")  # type: ignore[arg-type]


def with_bar(value: object, half_width: object) -> str:
    """A value and its error bar as text: `12,345 ± 30`.

    The half-width is rounded up, with room for what rounding moved the value, so that the interval that is
    read off the text covers the exact one.
    """
    value, half_width = _plain(value), _plain(half_width)
    decimals = _justified(value, half_width)
    if decimals is None:
        endless = isinstance(half_width, float) and math.isinf(half_width) and shown(value)
        return f"{shown(value)} ± ∞" if endless else shown(value)
    exact, scale = _exact(value), 10**decimals
    nearest = _rounded(exact, decimals)
    widened = math.ceil((abs(_exact(half_width)) + abs(exact - nearest)) * scale)
    return f"{_fixed(nearest, decimals)} ± {_fixed(Fraction(widened, scale), decimals)}"


def between(low: object, high: object, value: object, half_width: object) -> str:
    """An interval as text: `≥ 2,455`, `≤ 9.5`, `2,455 to 3,010`; empty where it has no end.

    Ends are rounded outwards, to the decimals that `value ± half_width` is shown with.
    """
    low, high = _plain(low), _plain(high)
    decimals = _justified(_plain(value), _plain(half_width)) or 0
    lowest = _end(low, decimals, math.floor)
    highest = _end(high, decimals, math.ceil)
    if lowest and highest:
        return f"{lowest} to {highest}"
    return f"≥ {lowest}" if lowest else f"≤ {highest}" if highest else ""


def _end(end: object, decimals: int, rounded: Callable[[Fraction], int]) -> str:
    if not _is_number(end) or not math.isfinite(end):  # type: ignore[arg-type]
        return ""
    return _fixed(Fraction(rounded(_exact(end) * 10**decimals), 10**decimals), decimals)


def _justified(value: object, half_width: object) -> int | None:
    """How many decimals the error bar justifies, or None without a finite value and bar."""
    for number in (value, half_width):
        if not _is_number(number) or not math.isfinite(number):  # type: ignore[arg-type]
            return None
    if isinstance(value, int):
        return 0
    width = abs(_exact(half_width))
    return _decimals(width) if width else _own_decimals(value)


def _rounded(exact: Fraction, decimals: int) -> Fraction:
    return Fraction(round(exact * 10**decimals), 10**decimals)


def text_table(
    columns: Mapping[str, Sequence[object]],
    *,
    width: int = 80,
    spell: Callable[[str], str] = str,
    keys: Collection[str] | None = None,
) -> str:
    """The columns as aligned plain text, at most `width` wide: text to the left, numbers to the right.

    Text that does not fit is cut with an ellipsis; a number never is. Columns that do not fit beside the
    others continue in a second block, after the keys again, so that each line can be told from the others;
    of too many keys the first ones are repeated.

    Args:
        columns: By their heads.
        width: Of the lines, at most.
        spell: Writes symbols out beforehand, for a stream that cannot carry them.
        keys: The heads that tell a line from the others; None: the first one, if it has no error bars.
    """
    prepared = [
        Column(
            spell(column.name), [spell(cell) for cell in column.cells], right=column.right, more=spell("…")
        )
        for column in cells_of(columns)
    ]
    if keys is None:
        barred = any(" ± " in str(value) for value in next(iter(columns.values()), ()))
        keys = [] if barred else [*columns][:1]
    shrunk = _shrink(prepared, width)
    if _total(shrunk) <= width:
        return spell(_block(shrunk))
    places = [place for place, name in enumerate(columns) if name in keys]
    while _total([shrunk[place] for place in places]) > width:
        places.pop()
    heads = [shrunk[place] for place in places]
    blocks = [list(heads)]
    for place, column in enumerate(shrunk):
        if place in places:
            continue
        if blocks[-1] and _total([*blocks[-1], column]) > width:
            blocks.append(_beside(heads, column, width))
        blocks[-1].append(column)
    return "\n\n".join(spell(_block(block)) for block in blocks)


def _beside(heads: Sequence[Column], column: Column, width: int) -> list[Column]:
    """As many of the first heads as fit beside a column."""
    count = len(heads)
    while count and _total([*heads[:count], column]) > width:
        count -= 1
    return list(heads[:count])


def definitions(phrases: Mapping[str, str], width: int = 80, spell: Callable[[str], str] = str) -> list[str]:
    """Names with what they mean, as lines of at most `width`: the phrases below each other."""
    names = {name: spell(_clip(_word(name), _LONGEST_NAME, "…")) for name in phrases}
    longest = max(map(_wide, names.values()), default=0)
    rest = " " * (longest + len(_GAP))
    lines: list[str] = []
    for name, phrase in phrases.items():
        parts = textwrap.wrap(
            spell(_word(phrase)), max(width - len(rest), _LONGEST_NAME), break_on_hyphens=False
        )
        starts = [_pad(names[name], longest, right=False) + _GAP, *[rest] * len(parts)]
        lines += [start + part for start, part in zip(starts, parts, strict=False)]
    return lines


def html_table(
    columns: Mapping[str, Sequence[object]], *, caption: str = "", phrases: Mapping[str, str] | None = None
) -> str:
    """The columns as a small HTML table in the page's own colours, light or dark; everything is escaped.

    Args:
        columns: By their heads.
        caption: What is said below.
        phrases: What is said under a head, in small letters.
    """
    said = phrases or {}
    line = "border-bottom:1px solid rgba(128,128,128,.35);padding:.15em .7em;"
    body = []
    prepared = cells_of(columns)
    for row in range(len(prepared[0].cells) if prepared else 0):
        cells = (
            f'<td style="{line}text-align:{column.side};">{html.escape(column.cells[row])}</td>'
            for column in prepared
        )
        body.append(f"<tr>{''.join(cells)}</tr>")
    heads = (
        f'<th scope="col" style="{line}text-align:{column.side};font-weight:600;">'
        f"{html.escape(column.name)}{_small(said.get(head, ''))}</th>"
        for head, column in zip(columns, prepared, strict=True)
    )
    title = (
        f'<caption style="caption-side:bottom;text-align:left;opacity:.75;padding:.3em .7em;">'
        f"{html.escape(caption)}</caption>"
        if caption
        else ""
    )
    return (
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums;color:inherit;'
        f'background:transparent;font-size:90%;">{title}<thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def _small(phrase: str) -> str:
    style = "font-weight:400;opacity:.75;font-size:85%;max-width:22em;white-space:normal;"
    return f'<div style="{style}">{html.escape(_word(phrase))}</div>' if phrase else ""


def encodable(text: str, encoding: str | None) -> str:
    """The text as that encoding can write it: symbols are spelled out, what is left becomes a `?`."""
    name = encoding or "ascii"
    try:
        text.encode(name)
    except (UnicodeEncodeError, LookupError):
        return "".join(_spelled(character, name) for character in text)
    return text


def _spelled(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return _SPELLED.get(character, "?")
    except LookupError:
        return character if character.isascii() else _SPELLED.get(character, "?")
    return character


class Column:
    """A column of finished cells, whether they are set on the right, and how wide they are."""

    __slots__ = ("cells", "more", "name", "right", "width")

    def __init__(self, name: str, cells: list[str], *, right: bool, more: str = "…") -> None:
        self.name, self.cells, self.right, self.more = name, cells, right, more
        self.width = max([_wide(name), *(_wide(cell) for cell in cells)])

    @property
    def side(self) -> str:
        """Where the cells stand."""
        return "right" if self.right else "left"

    def cut(self, width: int) -> Column:
        """The same column, at most `width` wide."""
        name, *cells = (_clip(cell, width, self.more) for cell in (self.name, *self.cells))
        return Column(name, cells, right=self.right, more=self.more)


def cells_of(columns: Mapping[str, Sequence[object]]) -> list[Column]:
    """The columns as finished text, numbers marked to be set on the right."""
    if len({len(values) for values in columns.values()}) > 1:
        raise InvalidParameter("The columns of a table must have the same length.")
    finished = []
    for name, values in columns.items():
        plain = [_plain(value) for value in values]
        cells = [_word(value) if isinstance(value, str) else shown(value) for value in plain]
        numeric = [_is_number(value) or _has_bar(value) for value in plain]
        right = any(numeric) and all(
            number or value in (None, "") for number, value in zip(numeric, plain, strict=True)
        )
        finished.append(Column(_word(name), _aligned(cells) if right else cells, right=right))
    return finished


def _has_bar(value: object) -> bool:
    return isinstance(value, str) and _BAR.fullmatch(value) is not None


def _aligned(cells: list[str]) -> list[str]:
    """The cells with their error bars padded to one length, so that the ± signs are in one line."""
    bars = [len(cell.partition(" ± ")[2]) for cell in cells]
    longest = max(bars, default=0)
    return [
        cell if not bar else f"{cell.partition(' ± ')[0]} ± {cell.partition(' ± ')[2]:>{longest}}"
        for cell, bar in zip(cells, bars, strict=True)
    ]


def _total(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1)


def _shrink(columns: list[Column], width: int) -> list[Column]:
    columns = [column if column.right else column.cut(max(width, _NARROWEST)) for column in columns]
    whole = columns
    while (excess := _total(columns) - width) > 0:
        widest = max(
            (column for column in columns if not column.right and column.width > _NARROWEST),
            key=lambda column: column.width,
            default=None,
        )
        if widest is None:  # the table has several blocks anyway: nothing need be cut
            return whole
        # The widest gives way first, until it is no wider than the next.
        others = [column.width for column in columns if not column.right and column.width < widest.width]
        cut = widest.cut(min(max([widest.width - excess, _NARROWEST, *others]), widest.width - 1))
        columns = [cut if column is widest else column for column in columns]
    return columns


def _block(columns: Sequence[Column]) -> str:
    def line(cells: Sequence[str]) -> str:
        padded = (
            _pad(cell, column.width, right=column.right) for cell, column in zip(cells, columns, strict=True)
        )
        return _GAP.join(padded).rstrip()

    rows = [line([column.name for column in columns]), _GAP.join("─" * column.width for column in columns)]
    rows += [
        line([column.cells[row] for column in columns])
        for row in range(len(columns[0].cells) if columns else 0)
    ]
    return "\n".join(rows)


def _wide(text: str) -> int:
    """How many terminal cells the text takes: East Asian characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _pad(text: str, width: int, *, right: bool) -> str:
    space = " " * max(width - _wide(text), 0)
    return space + text if right else text + space


def _clip(text: str, width: int, more: str) -> str:
    if _wide(text) <= width:
        return text
    while text and _wide(text) > width - len(more):
        text = text[:-1]
    return f"{text}{more}"


def _plain(value: object) -> object:
    """NumPy and Arrow scalars as the Python values they hold; everything else as it is."""
    for name in ("as_py", "item"):
        convert = getattr(value, name, None)
        if callable(convert):
            return convert()
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Fraction | Decimal) and not isinstance(value, bool)


def _word(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    # A public label may hold anything: line breaks would break the table, escape codes the terminal.
    return "".join(letter if letter.isprintable() else " " for letter in str(value))


def _number(value: int | float | Fraction | Decimal) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "n/a" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    if isinstance(value, Fraction):
        return f"{value.numerator:,}" if value.denominator == 1 else _number(float(value))
    number = float(value)
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    if not 1e-4 <= abs(number) < 1e15:
        return f"{number:.6g}"
    decimals = max(0, 5 - math.floor(math.log10(abs(number))))
    text = f"{number:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _exact(value: object) -> Fraction:
    """The number that is shown: a float means the decimal that its `repr` shows."""
    return Fraction(repr(value) if isinstance(value, float) else str(value))


def _decimals(width: Fraction) -> int:
    """Decimals that give a positive half-width two significant digits, none if it is ten or more."""
    decimals = 0
    while width * 10**decimals < 10 and decimals < 18:
        decimals += 1
    return decimals


def _own_decimals(value: object) -> int:
    text = shown(value)
    return len(text.partition(".")[2]) if "e" not in text else 18


def _fixed(exact: Fraction, decimals: int) -> str:
    scaled = abs(exact) * 10**decimals
    digits = f"{scaled.numerator // scaled.denominator:0{decimals + 1}d}"
    whole, part = digits[: len(digits) - decimals], digits[len(digits) - decimals :]
    sign = "-" if exact < 0 else ""
    return f"{sign}{int(whole):,}{'.' + part if part else ''}"


def without_password(address: str) -> str:
    """An address as it may be shown: passwords, tokens and what could be one are left out.

    What is not plainly an address, so that it cannot be told where a password ends, is shown by its scheme
    alone. Paths of files are shown as they are.
    """
    if "://" not in address:
        return _without_settings(address)
    scheme = address.partition("://")[0]
    place, mark, table = address.rpartition("::")
    if scheme.lower() not in _ROLES or not mark or not _TABLE.fullmatch(table):
        place, mark, table = address, "", ""
    parts = _ADDRESS.fullmatch(place)
    if parts is None or (scheme.lower() in _ROLES and not _DATABASE.fullmatch(parts["path"])):
        return f"{scheme if _SCHEME.fullmatch(scheme) else '…'}://…"
    query = "" if parts["query"] is None else f"?{_without_secrets(parts['query'])}"
    end = "" if "…" in query else mark + table  # which may be the end of a password
    return f"{scheme}://{_without_secret(parts)}{parts['hosts']}{parts['path']}{query}{end}"


def _without_secret(parts: re.Match[str]) -> str:
    """The user before the hosts; of addresses whose user may be a token, nothing."""
    user = parts["user"]
    if user is None:
        return ""
    name, end, _ = user.partition(":")
    shown = name if _USER.fullmatch(name) and parts["scheme"].lower() in _ROLES else "…"
    return f"{shown}:…@" if end else f"{shown}@"


def _without_secrets(query: str) -> str:
    """A query with the values of known settings alone."""
    shown = []
    for part in query.split("&"):
        key, _, value = part.partition("=")
        known = unquote_plus(key).lower()
        if known in _HARMLESS and _PLAIN_VALUE.fullmatch(unquote_plus(value)):
            shown.append(part)
        else:  # the name of any other may be the end of a password
            shown.append(f"{key}=…" if known in _SECRETS else "…")
    return "&".join(shown)


def _without_settings(text: str) -> str:
    """What has no `://`: a path as it is, and of what looks like an address or settings the beginning."""
    start = _ALMOST.match(text)
    if start is not None:
        return f"{start[1]}…"
    setting = _SETTING.search(text)
    return text if setting is None else f"{text[: setting.end()]}…"


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|(?:[^,/?#@:%\[\]]|%2[Ff])*)(?::[0-9]*)?"
_ADDRESS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:(?P<user>[^/?#:%]*(?::[^/?#]*)?)@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<path>(?:/[^?#@]*)?)(?:\?(?P<query>[^#@]*))?"
)
_TABLE = re.compile(r'[^@/?&=:#]*|(?:[^@/?&=:#"]*\.)?"[^@]*"')
_ROLES = frozenset({"postgresql", "postgres"})
_USER = re.compile(r"[\w.-]*")
_DATABASE = re.compile(r"[\w./-]*")
_PLAIN_VALUE = re.compile(r"[\w.,/+~ -]*")
_HARMLESS = frozenset(
    {"host", "hostaddr", "port", "dbname", "user", "connect_timeout", "target_session_attrs"}
    | {"sslmode", "sslrootcert", "sslcert", "sslcrl", "sslnegotiation", "channel_binding", "gssencmode"}
    | {"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"}
    | {"krbsrvname", "require_auth", "min_protocol_version", "max_protocol_version", "application_name"}
)
"""Settings of a connection that say nothing secret."""
_SECRETS = frozenset({"password", "sslpassword", "passfile", "scram_client_key", "scram_server_key"})
_ALMOST = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+(?::(?!:)|//)).*@", re.DOTALL)
_SETTING = re.compile(r"(?i)\b\w*(?:passw|passfile|pwd|secret)\w*\s*=\s*(?=.)")


def plain_json(value: Any) -> Any:
    """The value in types that JSON has: exact numbers as the nearest float, days and times as text."""
    if isinstance(value, Mapping):
        return {str(key): plain_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(entry) for entry in value]
    if isinstance(value, Fraction | Decimal):
        return int(value) if Fraction(value).denominator == 1 else float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
