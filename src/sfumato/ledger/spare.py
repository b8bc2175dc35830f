"""What a question takes of delta where it names none: less when less is left, so that it never runs out."""

from __future__ import annotations

from fractions import Fraction

from sfumato._dataclasses import dataclass

__all__ = ["Spare", "spared"]

_LEAST = Fraction(1, 10**300)  # no smaller delta is accepted anywhere
_SPELLED = 4  # halvings whose fractions are still easy to read


@dataclass(frozen=True, slots=True, repr=False)
class Spare:
    """The delta of a question that names none, and where it comes from, in a phrase."""

    delta: Fraction
    told: str

    def __str__(self) -> str:
        return f"delta {float(self.delta):.12g}, {self.told}"

    def __repr__(self) -> str:
        return str(self)


def spared(total: Fraction, left: Fraction, whose: str) -> Spare:
    """A hundredth of a delta while more than half is left, a quarter of that each time what is left halves.

    Args:
        total: The delta in all.
        left: What of it is left.
        whose: Whose delta it is, such as "the budget's".

    It is at most a fiftieth of what is left. So it takes 50 questions to half of delta, 100 to a quarter, 200
    to an eighth, and after n questions the next takes about 25/n² of all: the noise that it buys grows as
    the root of the logarithm of n. A fixed part of what is left would shrink as a power of a number below 1.

    Privacy:
        Nothing rests on it: it is a public function of public sums, and the gate decides on the debit.
    """
    if left <= 0:
        return Spare(Fraction(0), f"nothing is left of {whose}")
    halvings = (total // left).bit_length() - 1
    delta = total / (100 * 4**halvings)
    if delta < _LEAST:
        return Spare(Fraction(0), f"next to nothing is left of {whose}")
    if not halvings:
        return Spare(delta, f"a hundredth of {whose}")
    if halvings > _SPELLED:
        return Spare(delta, f"a small part of {whose}, of which little is left")
    half = "half" if halvings == 1 else f"1/{2**halvings}"
    return Spare(delta, f"1/{100 * 4**halvings:,} of {whose}, as no more than {half} of it is left")
