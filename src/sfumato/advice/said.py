"""What a person says of a task, checked: what is published, who holds the data, and in which numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_fraction, as_integer, delta_of, positive, probability

__all__ = [
    "DETAILS",
    "PRESUMED",
    "WANTS",
    "Detail",
    "Said",
    "check",
    "details_of",
    "needs_delta",
    "read",
    "spelled",
]

WANTS = {
    "count": "a count",
    "sum": "a sum",
    "mean": "a mean",
    "median": "a median",
    "most common": "the most common value",
    "histogram": "a histogram",
    "groups": "a table of groups",
    "stream": "a stream of daily numbers",
    "model": "a model",
    "synthetic": "a synthetic table",
    "devices": "answers from devices",
    "questions": "many ad-hoc questions",
}
"""What can be published: what it is called here, and in words."""

_MOST = 10**12  # people, rows, questions
_LISTED = 10_000  # values that a declaration lists
_STEPS = 10_000
_COLUMNS = 100
_NUMBERS = ("lower", "upper")


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing to say.

    Attributes:
        name: The argument's name.
        question: How a person is asked for it.
        example: A value that could be said.
        most: The greatest whole number that makes sense; None for other things.
    """

    name: str
    question: str
    example: str
    most: int | None = None


DETAILS = {
    detail.name: detail
    for detail in (
        Detail("people", "About how many people are in the data?", "10000", _MOST),
        Detail("rows", "How many rows has one person, at most?", "1", 10**6),
        Detail("lower", "The least a value can be, without looking at the data?", "0"),
        Detail("upper", "The greatest a value can be?", "100"),
        Detail("groups", "About how many groups or different values are there?", "10", _LISTED),
        Detail("known", "Does everybody know which groups there are?", "yes"),
        Detail("steps", "How many days will be published?", "365", _STEPS),
        Detail("columns", "How many columns?", "5", _COLUMNS),
        Detail("questions", "About how many questions will be asked?", "100", 10**6),
    )
}

_YOURS = {
    "count": "rows",
    "sum": "rows lower upper",
    "mean": "rows lower upper",
    "median": "rows lower upper",
    "most common": "rows groups known",
    "histogram": "rows groups known",
    "groups": "rows lower upper groups known",
    "stream": "rows steps",
    "model": "rows columns",
    "synthetic": "rows columns groups",
    "questions": "rows questions",
}
_THEIRS = {
    "count": "",
    "sum": "lower upper",
    "mean": "lower upper",
    "median": "lower upper",
    "most common": "groups known",
    "histogram": "groups known",
    "devices": "groups known",
    "stream": "groups",
    "model": "columns",
}
_ONLY_YOURS = {
    "groups": "a histogram of the groups can be collected",
    "synthetic": "a histogram of each column can be collected",
    "questions": "each question has to be collected by itself",
}
_YES, _NO = {"yes", "y", "true"}, {"no", "n", "false"}
PRESUMED = {"rows": 1, "known": True}


@dataclass(frozen=True, slots=True)
class Said:
    """What was said, exact and checked. What a task does not need is None.

    Attributes:
        want: What is published, a key of `WANTS`.
        epsilon: The price there is.
        delta: Its other half; 0: pure.
        people: About how many there are.
        holder: "you", or "people" where each keeps the own data.
        rows: The most rows of one person; for a stream, days.
        lower: The least that a value can be.
        upper: The greatest.
        groups: About how many groups or values there are.
        known: Whether it is public which ones.
        steps: How many days are published.
        columns: How many columns there are.
        questions: How many will be asked.
        confidence: How often the error must hold.
    """

    want: str
    epsilon: Fraction
    delta: Fraction
    people: int
    holder: str
    rows: int
    lower: Fraction
    upper: Fraction
    groups: int
    known: bool
    steps: int
    columns: int
    questions: int
    confidence: Fraction


def check_want(want: str) -> None:
    """Refuse what there is no advice for.

    Raises:
        InvalidParameter: with all that there is.
    """
    if want not in WANTS:
        listed = ", ".join(f'"{name}"' for name in WANTS)
        raise InvalidParameter(f"Nothing is known of {_brief(want)}: publish one of {listed}.").in_shell(
            f"Nothing is known of {_brief(want)}: take one of {', '.join(map(spelled, WANTS))}."
        )


def details_of(want: str, holder: str) -> list[str]:
    """What has to be said for a task, beside the price.

    Raises:
        InvalidParameter: for a task that there is no way to do, with what there is.
    """
    check_want(want)
    if holder not in ("you", "people"):
        raise InvalidParameter(
            f'holder is who has the data, "you" or "people", not {_brief(holder)}.'
        ).in_shell(f"--holder is who has the data, you or people, not {_brief(holder)}.")
    if holder == "people" and want in _ONLY_YOURS:
        reason = f"For {WANTS[want]} somebody must hold all rows; {_ONLY_YOURS[want]}"
        other = "histogram" if want != "questions" else "devices"
        raise InvalidParameter(f'{reason}: ask for "{other}".').in_shell(f"{reason}: ask for {other}.")
    needed = (_THEIRS if holder == "people" else _YOURS)[want].split()
    return ["people", *needed]


def check(
    want: str, holder: str | None, epsilon: Rational, delta: Rational, confidence: Rational, **given: Any
) -> Said:
    """What was said, or a refusal.

    Args:
        want: What is published.
        holder: Who has the data; None: you, or people where answers come from devices.
        epsilon: The price.
        delta: The price.
        confidence: How often the error must hold.
        given: The details, None where they were not said.

    Raises:
        InvalidParameter: in one sentence, with what would work.
    """
    who = holder if holder is not None else "people" if want == "devices" else "you"
    if want == "devices" and who == "you":
        who_says = "Answers from devices are held by people"
        raise InvalidParameter(f'{who_says}: leave holder out, or ask for "histogram".').in_shell(
            f"{who_says}: leave --holder out, or ask for histogram."
        )
    needed = details_of(want, who)
    for name, value in given.items():
        if value is not None and name not in needed and not (want == "model" and name in _NUMBERS):
            reason = f"{_capital(WANTS[want])} has no use for"
            raise InvalidParameter(f"{reason} {name}: leave it out.").in_shell(
                f"{reason} --{name}: leave it out."
            )
    values = {name: _detail(name, given.get(name)) for name in needed}
    for name in _NUMBERS:
        values.setdefault(name, None if given.get(name) is None else as_fraction(given[name], name))
    _check_range(values["lower"], values["upper"])
    slack = delta_of(delta)
    if slack >= 1:
        raise InvalidParameter("delta must be below 1: 1e-6 is usual.")
    details: dict[str, Any] = {name: values.get(name, PRESUMED.get(name)) for name in DETAILS}
    said = Said(
        want=want,
        epsilon=positive(epsilon, "epsilon"),
        delta=slack,
        holder=who,
        confidence=probability(confidence, "confidence"),
        **details,
    )
    _check_price(said)
    return said


def _check_range(lower: Fraction | None, upper: Fraction | None) -> None:
    if (lower is None) != (upper is None):
        raise InvalidParameter("Give both lower and upper, or neither of them.").in_shell(
            "Give both --lower and --upper, or neither of them."
        )
    if lower is not None and upper is not None and lower >= upper:
        raise InvalidParameter("lower must be below upper: exchange them, or take a wider range.")


def needs_delta(want: str, holder: str, *, known: bool) -> str:
    """Why a task cannot have a pure price, as the beginning of a sentence; empty: it can."""
    if want in ("model", "synthetic"):
        return f"{_capital(WANTS[want])} is fitted with Gaussian noise, which needs a delta"
    if holder == "you" and not known:
        return "Groups that are found in the data need a delta"
    return ""


def _check_price(said: Said) -> None:
    """Refuse a price that a task cannot have."""
    reason = needs_delta(said.want, said.holder, known=said.known)
    if reason and not said.delta:
        listed, in_shell = "", ""
        if not said.known:
            listed, in_shell = (
                f", or list the groups and {way}" for way in ("say known=True", "say --known yes")
            )
        raise InvalidParameter(f"{reason}: give delta=1e-6{listed}.").in_shell(
            f"{reason}: give --delta 1e-6{in_shell}."
        )
    if said.epsilon > 50:
        raise InvalidParameter("An epsilon above 50 protects nobody: take one of at most 10 or so.")


def _detail(name: str, value: Any) -> Any:
    """One detail in its type."""
    detail = DETAILS[name]
    if value is None:
        if name in PRESUMED:
            return PRESUMED[name]
        raise InvalidParameter(
            f"{name} is missing ({detail.question.rstrip('?').lower()}): give {name}={detail.example}."
        ).in_shell(
            f"--{name} is missing ({detail.question.rstrip('?').lower()}): give --{name} {detail.example}."
        )
    if name in _NUMBERS:
        return as_fraction(value, name)
    if name == "known":
        if not isinstance(value, bool):
            raise InvalidParameter("known is True or False: whether it is public which groups there are.")
        return value
    number = as_integer(value, name, least=2 if name == "groups" else 1)
    if detail.most is not None and number > detail.most:
        raise InvalidParameter(f"{name} must be at most {detail.most:,} here.")
    return number


def read(name: str, text: str) -> Any:
    """A detail from what somebody typed.

    Raises:
        InvalidParameter: in one sentence, with what would work.
    """
    word = text.strip().replace("_", "")
    if name == "known":
        if word.lower() not in _YES | _NO:
            raise InvalidParameter("Say yes if everybody knows which groups there are, and no if not.")
        return word.lower() in _YES
    if name in _NUMBERS:
        return _detail(name, word)
    whole = word.replace(",", "")
    try:
        number = int(whole) if whole.lstrip("+-").isdigit() else int(Decimal(whole).to_integral_exact())
    except (ArithmeticError, ValueError):
        number = None
    if number is None or (not whole.lstrip("+-").isdigit() and Decimal(whole) != number):
        raise InvalidParameter(
            f"{name} must be a whole number such as {DETAILS[name].example}, not {_brief(text)}."
        )
    return _detail(name, number)


def spelled(want: str) -> str:
    """What is published, as the command line spells it."""
    return want.replace(" ", "-")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
