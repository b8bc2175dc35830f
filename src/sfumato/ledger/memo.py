"""`Memo`: what a debit was for, in a few words that anybody may read."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import read_fraction

__all__ = ["Memo"]

_SPENDER, _WORDS = "spender", "words"


@dataclass(frozen=True, slots=True)
class Memo:
    """What kind of spender paid, in which words it was asked, and the price as it was asked for.

    Attributes:
        spender: The kind: "sql", "table" (a question built in Python), "bounds", "profile", "reserve
            price", "most common", "first above", …; empty where nobody said.
        words: What was asked, for people: for "sql" the text itself, which can be parsed.
        epsilon: As asked for; None where the price is not stated so.
        delta: As asked for.
        mechanism: Which noise or choice.
        table: What is read.
        asked: The price that the analyst named, where a part of it went into something else first.
        unnamed: What the analyst left open: "delta", "mechanism".
        given: What was declared public and put in as it is, so that the guarantee is conditional on it.
        state: Of a table that grows, the state that was read.
    """

    spender: str = ""
    words: str = ""
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    mechanism: str = ""
    table: str = ""
    asked: Fraction | None = None
    unnamed: tuple[str, ...] = ()
    given: str = ""
    state: str = ""

    @property
    def sql(self) -> str | None:
        """The text of the question, where it was asked in SQL."""
        return self.words if self.spender == "sql" and self.words else None

    def __str__(self) -> str:
        """Such as `SELECT COUNT(*) FROM visits`, or `most common: city of visits`."""
        plain = self.spender in ("", "sql", "table")
        return self.words if plain else f"{self.spender}: {self.words}".removesuffix(": ")

    def to_dict(self) -> dict[str, str]:
        """Plain data that `of` reads back, without what was not said."""
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "asked": self.asked}
        texts = {_SPENDER: self.spender, _WORDS: self.words, "mechanism": self.mechanism, "table": self.table}
        texts |= {"unnamed": " ".join(self.unnamed), "given": self.given, "state": self.state}
        return {name: text for name, text in texts.items() if text} | {
            name: str(number) for name, number in numbers.items() if number is not None
        }

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Memo:
        """The memo in a receipt; also those that earlier versions wrote, and whatever a caller wrote."""
        spender, words = (str(facts.get(name) or "") for name in (_SPENDER, _WORDS))
        if not spender:
            spender, words = _earlier(facts)
        return cls(
            spender,
            words,
            _number(facts.get("epsilon")),
            _number(facts.get("delta")),
            str(facts.get("mechanism") or ""),
            str(facts.get("table") or ""),
            _number(facts.get("asked")),
            tuple(str(facts.get("unnamed") or "").split()),
            str(facts.get("given") or ""),
            str(facts.get("state") or ""),
        )


def _earlier(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Spender and words of a memo that has neither: texts stood under "sql", days under "day"."""
    text = str(facts.get("sql") or "")
    if "bounds" in facts:
        return "bounds", text.removeprefix("bounds for ")
    if "game" in facts:
        return str(facts["game"]), str(facts.get("day") or "")
    if text:
        return "sql", text
    return ("table" if "table" in facts and "epsilon" in facts else ""), ""


def _number(value: Any) -> Fraction | None:
    try:
        return None if value is None else read_fraction(str(value).strip())
    except ValueError:
        return None
