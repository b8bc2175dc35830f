"""Which factorisation is best for what is wanted, by expected error, from public numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.continual.banded import Banded
from sfumato.continual.buffered import Buffered
from sfumato.continual.factorisation import Factorisation
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer

__all__ = ["Choice", "Want", "candidates", "choose"]

Want: TypeAlias = Literal["running", "window", "steps"]

_FINALISTS = 2
_WHOLE = "square root, buffered"
_BANDS = 6  # of 2 to 2**6 coefficients; wider ones are served by buffers
_WIDEST = 2**12
_TIE = 1 + 1e-4


@dataclass(frozen=True, slots=True)
class Choice:
    """A factorisation with what it is worth.

    Attributes:
        name: What it is, in words.
        plan: The factorisation.
        error: The mean squared error of what is wanted, over that of one number that is released once at the
            same price.
    """

    name: str
    plan: Factorisation
    error: float

    def __str__(self) -> str:
        return f"{self.name}: {self.error:.4g} times the squared error of one release"


def choose(
    horizon: int,
    *,
    touches: int = 1,
    apart: int = 1,
    want: Want = "running",
    window: int | None = None,
    words: int = 1024,
) -> Factorisation:
    """The factorisation with the least mean squared error for what is wanted.

    Args:
        horizon: How many steps will be published at most.
        touches: The most steps that one unit's data can change.
        apart: The fewest steps from one that a unit touches to the next.
        want: "running" (totals so far), "window" (totals of the last `window` steps) or "steps" (each by
            itself).
        window: For "window".
        words: The most words of memory that a group may take.

    Privacy:
        Claim: it reads no data: the choice is a function of the arguments.

    Raises:
        InvalidParameter: for unusable numbers.
    """
    return candidates(horizon, touches=touches, apart=apart, want=want, window=window, words=words)[0].plan


def candidates(
    horizon: int,
    *,
    touches: int = 1,
    apart: int = 1,
    want: Want = "running",
    window: int | None = None,
    words: int = 1024,
) -> tuple[Choice, ...]:
    """What `choose` chooses among, the best first; fewer words a group where errors are alike.

    Raises:
        InvalidParameter: for unusable numbers.
    """
    steps, most = as_integer(horizon, "horizon"), as_integer(words, "words", least=0)
    # Columns that are as long as the steps that a unit touches are apart do not overlap; or hardly.
    own = [times * as_integer(apart, "apart") for times in (1, 2) if touches > 1]
    length = _length(steps, want, window)
    plain = [
        _choice(name, Factorisation(steps, factor, False, touches, apart), length)
        for name, factor in _factors(steps, own)
        if factor.words <= most
    ]
    plain.sort(key=_order)
    scaled = []
    if touches == 1:
        for choice in [
            *plain[:_FINALISTS],
            *(choice for choice in plain[_FINALISTS:] if choice.name == _WHOLE),
        ]:
            plan = Factorisation(steps, choice.plan.factor, True)
            scaled.append(_choice(f"{choice.name}, columns scaled", plan, length))
    ranked = sorted([*scaled, *plain], key=_order)
    near = [choice for choice in ranked if choice.error <= ranked[0].error * _TIE]
    best = min(near, key=lambda choice: (choice.plan.factor.words, choice.plan.scaled, choice.error))
    return best, *(choice for choice in ranked if choice is not best)


def _choice(name: str, plan: Factorisation, length: int) -> Choice:
    """What a factorisation is worth, without the columns that it took to find out: one each for a step."""
    return Choice(name, replace(plan), plan.mean_square(length))


def _order(choice: Choice) -> tuple[float, int, str]:
    return choice.error, choice.plan.factor.words, choice.name


def _length(steps: int, want: Want, window: int | None) -> int:
    if want not in ("running", "window", "steps"):
        raise InvalidParameter('want must be "running", "window" or "steps".')
    if (want == "window") != (window is not None):
        raise InvalidParameter('Give window for want="window", and only then.')
    if want == "running":
        return steps
    return 1 if window is None else min(steps, as_integer(window, "window"))


def _factors(steps: int, own: Sequence[int]) -> list[tuple[str, Banded | Buffered]]:
    """Independent noise, square-root coefficients in a band or in buffers, and damped ones."""
    found: list[tuple[str, Banded | Buffered]] = [("independent noise", Banded())]
    bands = {min(2**power, steps) for power in range(1, _BANDS + 1)} | {
        min(band, steps, _WIDEST) for band in own
    }
    found += [(f"square root, band of {band}", Banded.square_root(band)) for band in sorted(bands - {1})]
    if steps > 2:
        found.append((_WHOLE, Buffered.square_root(steps)))
    for power in range(2, steps.bit_length() + 1):
        memory = 2**power
        found.append(
            (f"square root, buffered, memory of {memory}", Buffered.square_root(memory, 1 - 1 / memory))
        )
    return found
