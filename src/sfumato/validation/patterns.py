"""What cells that do not fit look like, as SQL conditions that no cell can make fail."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.engines._paths import literal
from sfumato.schema import ColumnType, Enum
from sfumato.validation import days, numbers

__all__ = [
    "BRACKETS",
    "DECIMAL_COMMAS",
    "DECIMAL_POINTS",
    "EITHER",
    "MISSING",
    "PADDED",
    "THOUSANDS",
    "TRUTHS",
    "WITH_UNIT",
    "WRITTEN",
    "nothing",
    "outside",
    "unread",
    "with_unit",
]

DECIMAL_COMMAS = "decimal commas, as in 3,5"
DECIMAL_POINTS = "decimal points, as in 3.5"
EITHER = "decimal commas or thousands, as in 1,234"
BRACKETS = "negative numbers in brackets, as in (63)"
MISSING = "words for nothing, such as NA"
WRITTEN = "days written "
THOUSANDS = "with separators of thousands, as in 1 000 or 1.000,5"
WITH_UNIT = "numbers with a unit, as in 5 kg or € 3"
TRUTHS = "other words for yes and no; read are true, false, yes, no, 1, 0"
# As people write them, and as Excel does where it speaks another language.
_TRUTHS = (
    *("ja", "nein", "j", "oui", "non", "o", "si", "sí", "s", "sim", "não", "nao", "x", "on", "off"),
    *("wahr", "falsch", "vrai", "faux", "verdadero", "falso", "vero", "verdadeiro", "waar", "onwaar"),
    *("sant", "falskt", "sand", "falsk", "tosi", "epätosi", "prawda", "fałsz", "pravda", "nepravda"),
)
PADDED = "fit without the blanks around them"
# A unit may be in front if it is a currency's sign or three capitals: p12 and bed 3 are no numbers.
_BEFORE = rf"([A-Z]{{0,3}}\p{{Sc}}{numbers.GAP}?|[A-Z]{{3}}{numbers.GAP})"
_BRACKETS = rf"\({numbers.PLAIN}\)|{numbers.PLAIN}-"
_WITH_UNIT = (
    rf"{_BRACKETS}|[-+]?{_BEFORE}[-+]?{numbers.PLAIN}|[-+]?{numbers.PLAIN}{numbers.GAP}?[^\d\s]{{1,4}}"
)
_NOTHING = ("", "na", "n/a", "nan", "null", "none", "nil", "-", "--", "?", ".", "#n/a", "unknown", "missing")


def nothing(cell: str) -> str:
    """Whether a cell is a word for nothing."""
    return f"lower(trim({cell})) IN ({', '.join(map(literal, _NOTHING))})"


def with_unit(cell: str) -> str:
    """Whether a cell is a number with a unit, whatever parts its thousands."""
    return f"regexp_full_match(trim({cell}), {literal(_WITH_UNIT)})"


def unread(raw: str, kind: str, forms: Iterable[str] = ()) -> dict[str, str]:
    """Conditions on cells that cannot be read as the kind, by what they mean.

    Args:
        raw: The cell.
        kind: The kind.
        forms: How days are written in the column.
    """
    patterns = {MISSING: nothing(raw)}
    if kind in ("integer", "float"):
        written = {form: numbers.is_written(raw, form) for form in numbers.FORMS}
        # What is not read shows which sign is declared: a point is no fraction's where commas are.
        patterns[DECIMAL_COMMAS] = f"{written['commas']} AND NOT {written['apart']}"
        patterns[DECIMAL_POINTS] = f"{written['points']} AND NOT {written['apart']}"
        patterns[EITHER] = written["either_commas"]
        patterns[THOUSANDS] = f"({written['apart']} OR {written['either_points']})"
        patterns[BRACKETS] = f"regexp_full_match(trim({raw}), {literal(_BRACKETS)})"
        patterns[WITH_UNIT] = f"{with_unit(raw)} AND NOT {patterns[BRACKETS]}"
    if kind in ("date", "timestamp"):
        for form in forms:
            if kind == "date" or days.has_hours(form):
                patterns[WRITTEN + form] = days.is_day(raw, form)
    if kind == "boolean":
        patterns[TRUTHS] = f"lower(trim({raw})) IN ({', '.join(map(literal, _TRUTHS))})"
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
