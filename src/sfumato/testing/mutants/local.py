"""Clients of local privacy with planted bugs, each beside its honest twin: what an auditor must catch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.local import _bits
from sfumato.local.coins import Coins, Odds
from sfumato.local.examples import Example, unpacked
from sfumato.local.rappor import Rappor
from sfumato.local.response import KaryResponse
from sfumato.local.subset import SubsetSelection
from sfumato.local.unary import UnaryEncoding, drawn

__all__ = ["LOCAL_MUTANTS", "LocalMutant"]


@dataclass(frozen=True, slots=True)
class LocalMutant:
    """A client that claims more than it keeps, and the same client without the bug."""

    name: str
    planted: Example
    honest: Example


def _planted(honest: Example, encode: Any) -> Example:
    return replace(honest, encode=encode, pmf=None)


def _never_flips(randomizer: Rappor) -> Any:
    """A published library set the true bit after randomising the others."""

    def encode(values: list[int]) -> NDArray[np.uint8]:
        kept = randomizer.permanent(values)
        _bits.put(kept, randomizer.domain.indices(values), np.ones(len(values), np.bool_))
        return randomizer.report(kept)

    return encode


def _forgets(randomizer: Rappor, reports: int) -> Any:
    """A new permanent response at each report."""
    bits = unpacked(randomizer.domain.size)
    return lambda values: np.sum([bits(randomizer.encode(values)) for _ in range(reports)], axis=0)


def _remembers(randomizer: Rappor, reports: int) -> Any:
    bits = unpacked(randomizer.domain.size)

    def encode(values: list[int]) -> NDArray[np.int64]:
        kept = randomizer.permanent(values)
        return np.asarray(np.sum([bits(randomizer.report(kept)) for _ in range(reports)], axis=0))

    return encode


def _whole_epsilon(randomizer: UnaryEncoding) -> Any:
    """Every bit at the whole epsilon, although two bits change."""
    own, others = Coins(Odds(randomizer.epsilon)), Coins(Odds(-randomizer.epsilon))
    return lambda values: drawn(randomizer.domain.indices(values), randomizer.domain.size, own, others)


def _binary_coin(randomizer: KaryResponse) -> Any:
    """The coin of two values for any number of them."""
    coins = Coins(Odds(randomizer.epsilon))

    def encode(values: list[int]) -> NDArray[np.int64]:
        places, lies = randomizer.domain.indices(values), randomizer.encode(values)
        others = np.where(lies == places, (places + 1) % randomizer.domain.size, lies)
        return np.where(coins.toss(places.size), places, others)

    return encode


def _always_own(randomizer: SubsetSelection) -> Any:
    """The own value is always among the chosen."""
    sure = Coins(Fraction(1))

    def encode(values: list[int]) -> NDArray[np.uint8]:
        rows = randomizer.encode(values)
        _bits.put(rows, randomizer.domain.indices(values), sure.toss(len(rows)))
        return rows

    return encode


def _mutants() -> dict[str, LocalMutant]:
    once, twice = Rappor(1, 6), Rappor(2, 6, one="3/4", zero="1/4")
    unary, kary, subset = UnaryEncoding(1, 6, optimised=False), KaryResponse(1, 6), SubsetSelection(1, 6)
    bits = unpacked(6)
    honest = Example("honest RAPPOR", once, 0, 5, read=bits)
    single = Example("honest single report", twice, 0, 5, read=bits, claim=twice.loss_of(1))
    many = Example("honest repeated reports", twice, 0, 5, encode=_remembers(twice, 8))
    flat = Example("honest unary encoding", unary, 0, 5, read=bits)
    direct = Example("honest k-ary response", kary, 0, 5)
    chosen = Example("honest subset selection", subset, 0, 5, read=bits)
    pairs = {
        "RAPPOR that never flips a true bit": (_planted(honest, _never_flips(once)), honest),
        "RAPPOR with reports that never flips a true bit": (_planted(single, _never_flips(twice)), single),
        "RAPPOR that keeps no permanent response": (_planted(many, _forgets(twice, 8)), many),
        "unary encoding with the whole epsilon on each bit": (_planted(flat, _whole_epsilon(unary)), flat),
        "k-ary response with the coin of two values": (_planted(direct, _binary_coin(kary)), direct),
        "subset selection that always names the own value": (_planted(chosen, _always_own(subset)), chosen),
    }
    return {name: LocalMutant(name, *pair) for name, pair in pairs.items()}


LOCAL_MUTANTS: Mapping[str, LocalMutant] = MappingProxyType(_mutants())
"""Clients with planted bugs, by name."""
