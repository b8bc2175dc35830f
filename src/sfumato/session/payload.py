"""How a released answer is kept in the ledger: the noisy measurements and the law of their noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import LedgerUnusable
from sfumato.numeric.exact import read_fraction
from sfumato.plan.intervals.noise import Noise
from sfumato.session.columnar import Stored, Writing

if TYPE_CHECKING:
    from sfumato.plan.prices.quoting import Quote

__all__ = ["Answer"]

# What could be answered before a format came is written in the one before it, unless it is long.
_COLUMNS, _GAUSSIAN, _FORMAT, _PLAIN = 4, 3, 2, 1
_SMALL = 2**16  # bytes: answers up to this are kept as they were read
_MANY = 1000  # numbers that are written as text


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Noisy measurements, one array each over the public keys, with what they cost and how noisy they are.

    Attributes:
        noisy: In natural units; whole numbers as int64.
        noises: The public law of each one's noise.
        epsilon: The price.
        delta: The price.
        mechanism: Which noise.
        groups: The keys of the groups that were selected, where they are not public; None otherwise. On
            several levels, each begins with the number of the level that it was selected on
            (`plan.questions.others`).
        units: Their noisy numbers of units; None where they were found by weight.
        extras: What was released for each extra question, and its part of the price.
        selection: Epsilon and delta of what selected the groups.
        gaussian: Whether that had Gaussian noise (`mechanisms.gaussian_selection`).
    """

    noisy: tuple[NDArray[Any], ...]
    noises: tuple[Noise, ...]
    epsilon: Fraction
    delta: Fraction
    mechanism: str
    groups: Sequence[tuple[Any, ...]] | None = None
    units: NDArray[Any] | None = None
    extras: tuple[tuple[Fraction, tuple[NDArray[Any], ...]], ...] = ()
    selection: tuple[Fraction, Fraction] | None = None
    gaussian: bool = False

    def has_all(self, quote: Quote) -> bool:
        """Whether it holds all that a quote would show: groups found by weight have no numbers of units."""
        return self.units is not None or not quote.recipe.counts_found

    def as_good_as(self, quote: Quote) -> bool:
        """Whether no measurement is noisier, and no part had a lower price, than this quote would have."""
        pairs = zip(self.noises, quote.noises, strict=True)
        level = quote.confidence
        if not all(mine.quantile(level) <= other.quantile(level) for mine, other in pairs):
            return False
        asked = quote.selection_price
        if asked is not None and (
            self.selection is None or self.selection[0] < asked[0] or self.selection[1] < asked[1]
        ):
            return False
        extras = zip(self.extras, quote.extras, strict=True)
        return all(mine[0] >= other.epsilon for mine, other in extras)

    def to_bytes(self) -> bytes:
        """What `from_bytes` reads back to the last bit: text, and behind it the bytes of many numbers."""
        kept = Writing(self._size > _MANY)
        more: dict[str, Any] = {}
        if self.groups is not None or self.extras or kept.many:
            more = {
                "groups": None if self.groups is None else kept.keys(self.groups),
                "units": None if self.units is None else kept.units(self.units),
                "selection": None if self.selection is None else list(map(str, self.selection)),
                "extras": [
                    [str(price), [kept.table(array) for array in arrays]] for price, arrays in self.extras
                ],
            }
        form = _GAUSSIAN if self.gaussian else _FORMAT if more else _PLAIN
        if kept.many:
            form, more["gaussian"] = _COLUMNS, self.gaussian
        facts = {
            "format": form,
            **more,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "mechanism": self.mechanism,
            "noises": [_law(noise) for noise in self.noises],
            "noisy": [kept.array(array) for array in self.noisy],
        }
        return kept.to_bytes(facts)

    @property
    def _size(self) -> int:
        """How many numbers it has of its longest array."""
        extras = (array for _, arrays in self.extras for array in arrays)
        return max((array.size for array in (*self.noisy, *extras)), default=len(self.groups or ()))

    @classmethod
    def from_bytes(cls, data: bytes) -> Answer:
        """The answer that `to_bytes` wrote, in any version; of bytes that were read lately the same object.

        Raises:
            LedgerUnusable: for a format of another version.
        """
        return _read_lately(data) if len(data) <= _SMALL else cls._from_bytes(data)

    @classmethod
    def _from_bytes(cls, data: bytes) -> Answer:
        try:
            stored = Stored(data)
            facts = stored.facts
            if facts["format"] not in (_COLUMNS, _GAUSSIAN, _FORMAT, _PLAIN):
                raise ValueError("another format")
            groups, units, selection = (facts.get(name) for name in ("groups", "units", "selection"))
            return cls(
                tuple(stored.array(array) for array in facts["noisy"]),
                tuple(
                    Noise(law, float.fromhex(scale), float.fromhex(slack), whole, float.fromhex(rounding))
                    for law, scale, slack, whole, rounding in facts["noises"]
                ),
                read_fraction(facts["epsilon"]),
                read_fraction(facts["delta"]),
                facts["mechanism"],
                None if groups is None else stored.keys(groups),
                None if units is None else stored.units(units),
                tuple(
                    (read_fraction(price), tuple(stored.table(array) for array in arrays))
                    for price, arrays in facts.get("extras", ())
                ),
                None if selection is None else (read_fraction(selection[0]), read_fraction(selection[1])),
                facts.get("gaussian", facts["format"] == _GAUSSIAN),
            )
        except (ValueError, KeyError, TypeError, IndexError):
            raise LedgerUnusable(
                "A stored answer was written by another version of Sfumato; upgrade to read it."
            ) from None


@lru_cache(maxsize=256)
def _read_lately(data: bytes) -> Answer:
    answer = Answer._from_bytes(data)
    arrays = [*answer.noisy, *(array for _, each in answer.extras for array in each)]
    for array in (*arrays, *(() if answer.units is None else (answer.units,))):
        array.flags.writeable = False  # whoever reads it next is given the same
    return answer


def _law(noise: Noise) -> list[Any]:
    return [noise.law, noise.scale.hex(), noise.slack.hex(), noise.whole, noise.rounding.hex()]
