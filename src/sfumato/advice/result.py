"""`Advice`: what to use, why, at which price, with which error, and what came next."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.advice.said import WANTS, Said
from sfumato.advice.spelling import literal, rounded
from sfumato.errors import InvalidParameter
from sfumato.render import definitions

__all__ = ["OUTSIDE", "Advice", "Option", "best_of"]

_WIDTH = 80
_SHOWN = 2  # others that are told, beside the one to use
_CLEARLY = 0.95  # of the error of the one to use
_ALIKE = 0.005
OUTSIDE = "outside a session, where nobody but you counts what is spent"


@dataclass(frozen=True, slots=True)
class Option:
    """One way to do it.

    Attributes:
        name: What it is.
        error: How far off it is at most, at the confidence; None where only the data can tell.
        but: What speaks against it, whatever its error is; empty: nothing.
        told: The error in words, where it is not a half-width.
    """

    name: str
    error: float | None
    but: str = ""
    told: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Advice:
    """What to use for a task.

    Attributes:
        said: What was said.
        use: The function or statement to use.
        code: Lines that run, with the numbers that were said in them.
        reads: The file that the lines read, and what is in it.
        why: The reason.
        price: What it costs, in words.
        error: How far off the answer is at most, at the confidence; None where only the data can tell.
        meaning: What the error is of.
        unit: What it is counted in, such as rows.
        exact: Whether the error is proven beforehand; else it is about that much.
        options: All ways that were compared, the one to use first, then by error.
        trap: The mistake to avoid.
        docs: Where it is described.
    """

    said: Said
    use: str
    code: str
    reads: str
    why: str
    price: str
    error: float | None
    meaning: str
    unit: str
    exact: bool
    options: tuple[Option, ...]
    trap: str
    docs: str

    @property
    def next_best(self) -> Option | None:
        """The second-best option."""
        return self.options[1] if len(self.options) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "publish": self.said.want,
            "use": self.use,
            "code": self.code,
            "reads": self.reads,
            "why": self.why,
            "epsilon": str(self.said.epsilon),
            "delta": str(self.said.delta),
            "price": self.price,
            "error": self.error,
            "confidence": float(self.said.confidence),
            "meaning": self.meaning,
            "unit": self.unit,
            "exact": self.exact,
            "options": [
                {"name": option.name, "error": option.error, "but": option.but} for option in self.options
            ],
            "trap": self.trap,
            "docs": self.docs,
        }

    def __str__(self) -> str:
        lines = textwrap.wrap(f"For {WANTS[self.said.want]}, use {self.use}.", _WIDTH)
        lines += ["", *(f"    {line}".rstrip() for line in self.code.splitlines()), ""]
        lines += definitions(
            {
                "reads": self.reads,
                "why": self.why,
                "price": self.price,
                "error": self._error(),
                "next best": self._next(),
                "trap": self.trap,
                "read on": self.docs,
            },
            _WIDTH,
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _error(self) -> str:
        if self.error is None:
            return self.meaning
        about = "" if self.exact else "about "
        often = f"with {literal(100 * self.said.confidence)} % confidence"
        return f"{about}± {rounded(self.error)}{self.unit and ' '}{self.unit}, {often}: {self.meaning}"

    def _next(self) -> str:
        plain = [option for option in self.options[1:] if not option.but][:_SHOWN]
        # What has a drawback is worth a word where it errs less, or where there is nothing else.
        others = [
            option
            for option in self.options[1:]
            if option.but and (not plain or self._times(option) < _CLEARLY)
        ]
        told = [self._against(option) for option in [*plain, *others[:1]]]
        return "; ".join(told) or "nothing else does this at this price"

    def _times(self, option: Option) -> float:
        best = self.options[0].error
        return 1.0 if option.error is None or not best else option.error / best

    def _against(self, option: Option) -> str:
        but = f" ({option.but})" if option.but and option.but != self.options[0].but else ""
        if option.error is None or not self.options[0].error:
            return f"{option.name}{but}"
        times = self._times(option)
        worse = "about as much" if abs(times - 1) < _ALIKE else f"{times:.3g} times as much"
        return f"{option.name}: {option.told or f'± {rounded(option.error)}'}, {worse}{but}"


def best_of(options: Sequence[Option]) -> tuple[Option, ...]:
    """The options, the one with the least error first: one that nothing speaks against, where there is any.

    Raises:
        InvalidParameter: if there is none.
    """
    if not options:
        raise InvalidParameter("No mechanism does this at this price: give a larger epsilon.")

    def order(option: Option) -> float:
        return float("inf") if option.error is None else option.error

    plain = [option for option in options if not option.but]
    best = min(plain or options, key=order)
    return best, *sorted((option for option in options if option is not best), key=order)
