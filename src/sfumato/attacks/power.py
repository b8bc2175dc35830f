"""What an attack would notice: its power, measured on twins of the same shape in which a leak is planted.

An attack that fails says "no better than a guess", and that is worth as much as the attack would have seen
of a leak. So before it gives an all-clear, a leak of its own kind is planted in what it attacked (same
people, same columns, same values, same number of rows), and it must notice that. A finding needs no power:
it is more than luck as it stands.
"""

from __future__ import annotations

from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.attacks.outcome import Tally
from sfumato.attacks.percent import percent

__all__ = ["Power"]

_ENOUGH = 0.98  # of a power that is computed: what all of 20 twins vouch for


@dataclass(frozen=True, slots=True)
class Power:
    """How surely an attack notices a leak of its own kind.

    Attributes:
        leak: What was planted, in words: "one person in ten copied into the table".
        noticed: In how many of the twins it was noticed; a probability where that follows by arithmetic.
        why: Why it follows, as a clause; empty where it was measured.
    """

    leak: str
    noticed: Tally | float
    why: str = ""

    @property
    def enough(self) -> bool:
        """Whether it is enough for an all-clear: every twin noticed, or 98 % where it is computed.

        Where the real leak is like the planted ones, the probability that N of N twins are noticed and the
        real one is missed is p^N·(1 − p) at power p, at most (N/(N + 1))^N/(N + 1): below 2 % for 20 twins,
        and 7 % for 5, whatever the power is.
        """
        if isinstance(self.noticed, Tally):
            return self.noticed.hits == self.noticed.trials
        return self.noticed >= _ENOUGH

    @property
    def words(self) -> str:
        """How surely the leak is noticed, as a clause."""
        if isinstance(self.noticed, Tally):
            return f"in {self.noticed.hits:,} of {self.noticed.trials:,} twins planted with it"
        return "always" if self.noticed == 1 else f"with a probability of {percent(self.noticed)}"

    def to_dict(self) -> dict[str, Any]:
        """The power as plain values."""
        if isinstance(self.noticed, Tally):
            counts: Any = {"hits": self.noticed.hits, "twins": self.noticed.trials}
        else:
            counts = {"probability": self.noticed}
        return {"leak": self.leak, **counts, "enough": self.enough} | ({"why": self.why} if self.why else {})
