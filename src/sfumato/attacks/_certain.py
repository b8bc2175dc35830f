"""Whose secret is certain, and when that is more than a guess: shared by attacks on classes of people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.attacks._matching import Flags, named, one_name
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.errors import InvalidParameter

__all__ = ["MODE", "STRANGERS", "Certain", "judged", "known_and_secret"]

MODE = "the most frequent value of the column"
STRANGERS = "the same attack on people who are not in the data"
_NEARLY = 0.9  # have the most frequent value: who the others are is what there is to learn


@dataclass(frozen=True, slots=True, eq=False)
class Certain:
    """Whose secret is certain, and who has another than the most frequent one."""

    hits: Flags
    is_rarer: Flags

    def tally(self, *, rarer: bool = False) -> Tally:
        """How many of all people, or of those with a rarer value."""
        counted = self.hits[self.is_rarer] if rarer else self.hits
        return Tally(int(counted.sum()), len(counted))


def judged(
    found: Outcome,
    own: Certain,
    others: Certain | None,
    *,
    share: float,
    rarer: str,
) -> Outcome:
    """The outcome over all people, or over those with a rarer value, where only those can show anything.

    Args:
        found: The outcome over all.
        own: The people.
        others: The people of the control.
        share: How many have the most frequent value.
        rarer: What is a hit among people with a rarer value, in words.
    """
    are_there = all(each is None or each.is_rarer.any() for each in (own, others))
    may_be_luck = found.baseline_interval[1] >= 1 and own.tally(rarer=are_there).hits > 0
    if not are_there or (share <= _NEARLY and not may_be_luck):
        return found
    return replace(
        found,
        success=rarer,
        reached=own.tally(rarer=True),
        guess=0.0 if others is None else others.tally(rarer=True),
        guessing=f"{MODE}, which they do not have" if others is None else STRANGERS,
    )


def known_and_secret(quasi: str | Sequence[str], sensitive: str) -> list[str]:
    """The names of the columns that are known, the sensitive one not among them.

    Raises:
        InvalidParameter: if it is, or a name is none.
    """
    names = named(quasi, "quasi")
    if one_name(sensitive, "sensitive").casefold() in {name.casefold() for name in names}:
        raise InvalidParameter(
            f'The column "{sensitive[:100]}" is both quasi and sensitive: what is known cannot be hidden.'
        )
    return names
