"""Whose secret is certain, and when that is more than a guess: shared by attacks on classes of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sfumato._dataclasses import dataclass
from sfumato.attacks.matching import Flags, named, one_name
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.errors import InvalidParameter

__all__ = ["STRANGERS", "Certain", "judged", "known_and_secret"]

STRANGERS = "the same attack on people who are not in the data"
_NEARLY = 0.9  # have the most frequent value: who the others are is what there is to learn


@dataclass(frozen=True, slots=True, eq=False)
class Certain:
    """Whose secret is certain, of the people who count.

    Attributes:
        hits: Whether it is, for each of them.
        is_rarer: Who has a value other than the most frequent one.
        frequent: The share of the most frequent one.
        by_value: For each value that is certain of somebody, of how many, and how many have it.
    """

    hits: Flags
    is_rarer: Flags
    frequent: float
    by_value: Mapping[str, list[int]]

    def tally(self, *, rarer: bool = False) -> Tally:
        """How many of all people, or of those with a rarer value."""
        tally = self.counted(rarer=rarer)
        if tally is None:
            raise InvalidParameter("Nobody has one of the values; name values that people have.")
        return tally

    def counted(self, *, rarer: bool) -> Tally | None:
        """The same; None of nobody."""
        hits = self.hits[self.is_rarer] if rarer else self.hits
        return Tally(int(hits.sum()), len(hits)) if len(hits) else None


def judged(outcome: Outcome, own: Certain, others: Certain, *, rarer: str) -> Outcome:
    """The outcome over all people, or over those with a rarer value, where only those can show anything.

    Args:
        outcome: The outcome over all.
        own: The people.
        others: The people of the control.
        rarer: What is a hit among people with a rarer value, in words.
    """
    are_there = own.is_rarer.any() and others.is_rarer.any()
    may_be_luck = outcome.baseline_interval[1] >= 1 and own.tally(rarer=bool(are_there)).hits > 0
    if not are_there or (own.frequent <= _NEARLY and not may_be_luck):
        return outcome
    return replace(outcome, success=rarer, reached=own.tally(rarer=True), guess=others.tally(rarer=True))


def known_and_secret(quasi: str | Sequence[str], sensitive: str) -> list[str]:
    """The names of the columns that are known, the sensitive one not among them.

    Raises:
        InvalidParameter: if it is, or a name is not a column.
    """
    names = named(quasi, "quasi")
    if one_name(sensitive, "sensitive").casefold() in {name.casefold() for name in names}:
        raise InvalidParameter(
            f'The column "{sensitive[:100]}" is both quasi and sensitive: what is known cannot be hidden.'
        )
    return names
