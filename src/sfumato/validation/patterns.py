"""What cells that do not fit look like, as SQL conditions that no cell can make fail."""

from __future__ import annotations

from sfumato.engines._paths import literal
from sfumato.schema import ColumnType, Enum

__all__ = [
    "DATES",
    "DECIMAL_COMMAS",
    "ISO",
    "LIKE_DAYS",
    "MISSING",
    "PADDED",
    "THOUSANDS",
    "WITH_UNIT",
    "WRITTEN",
    "is_day",
    "nothing",
    "outside",
    "unread",
    "with_unit",
]

ISO = "%Y-%m-%d"
LIKE_DAYS = r"\d{1,4}[-./ ](\d{1,2}|[A-Za-z]{3})[-./ ]\d{2,4}( \d{1,2}:\d\d(:\d\d)?)?"
DATES = (
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%d.%m.%y",
    "%Y/%m/%d",
    "%Y%m%d",
    "%d %b %Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
)
DECIMAL_COMMAS = "decimal commas, as in 3,5"
MISSING = "words for nothing, such as NA"
WRITTEN = "days written "
THOUSANDS = "thousands apart, as in 1 000 or 1.000,5"
WITH_UNIT = "numbers with a unit, as in 5 kg or € 3"
PADDED = "fit without the blanks around them"
_GAP = r"[ \x{A0}\x{202F}]"  # also those that do not break
_THOUSANDS = (
    rf"[-+]?\d{{1,3}}(({_GAP}|[.'’_])\d{{3}})+(,\d+)?|[-+]?\d{{1,3}}(({_GAP}|[,'’_])\d{{3}})+(\.\d+)?"
)
_PLAIN = rf"(\d{{1,3}}(({_GAP}|[.,'’_])\d{{3}})+|\d+)([.,]\d+)?"
# A unit may be in front if it is a currency's sign or three capitals: p12 and bed 3 are no numbers.
_BEFORE = rf"([A-Z]{{0,3}}\p{{Sc}}{_GAP}?|[A-Z]{{3}}{_GAP})"
_WITH_UNIT = rf"[-+]?{_BEFORE}[-+]?{_PLAIN}|[-+]?{_PLAIN}{_GAP}?[^\d\s]{{1,4}}"
_NOTHING = ("", "na", "n/a", "nan", "null", "none", "nil", "-", "--", "?", ".", "#n/a", "unknown", "missing")


def nothing(cell: str) -> str:
    """Whether a cell is a word for nothing."""
    return f"lower(trim({cell})) IN ({', '.join(map(literal, _NOTHING))})"


def is_day(cell: str, form: str) -> str:
    """Whether a cell is a day written so."""
    year = f"year(try_strptime({cell}, {literal(form)}))"
    return f"{year} BETWEEN 1000 AND 9999 AND regexp_matches({cell}, '[0-9]')"


def with_unit(cell: str) -> str:
    """Whether a cell is a number with a unit, whatever parts its thousands."""
    return f"regexp_full_match(trim({cell}), {literal(_WITH_UNIT)})"


def unread(raw: str, kind: str) -> dict[str, str]:
    """Conditions on cells that cannot be read as the kind, by what they mean."""
    patterns = {MISSING: nothing(raw)}
    if kind in ("integer", "float"):
        patterns[DECIMAL_COMMAS] = rf"regexp_full_match(trim({raw}), '[-+]?\d+,\d+')"
        patterns[THOUSANDS] = (
            f"regexp_full_match(trim({raw}), {literal(_THOUSANDS)}) "
            rf"AND NOT regexp_full_match(trim({raw}), '[-+]?\d+,\d+')"
        )
        patterns[WITH_UNIT] = with_unit(raw)
    if kind in ("date", "timestamp"):
        for form in DATES:
            if kind == "date" or "%H" in form:
                patterns[WRITTEN + form] = is_day(raw, form)
    if kind == "boolean":
        patterns["other words for yes and no"] = (
            f"lower(trim({raw})) IN ('ja', 'nein', 'oui', 'non', 'si', 'sí', 'x', 'on', 'off', 'j')"
        )
    return patterns


def outside(value: str, column: ColumnType) -> dict[str, str]:
    """Conditions on values that are read and are not among the declared ones."""
    if not isinstance(column, Enum) or column.kind != "text":
        return {}
    words = [str(word) for word in column.values]
    listed = ", ".join(map(literal, words))
    folded = ", ".join(map(literal, sorted({word.lower() for word in words})))
    return {
        PADDED: f"trim({value}) IN ({listed})",
        "fit in another case": f"trim({value}) NOT IN ({listed}) AND lower(trim({value})) IN ({folded})",
        MISSING: nothing(value),
    }
