"""Named planted bugs, each beside its honest twin: what the conformance kits must catch, and must not.

A kit that passes everything is worth nothing. `MUTANTS` lists mistakes that were made in print or in
released code; `Mutant.caught` runs the kit on the planted one, `Mutant.cleared` on the twin.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sfumato._dataclasses import dataclass
from sfumato.mechanisms.base import Example
from sfumato.testing.accountants import AccountantLike, faults
from sfumato.testing.mechanisms import Examination, examine
from sfumato.testing.mutants import accountants, mechanisms
from sfumato.testing.mutants.sparse import VARIANTS, Variant, run

__all__ = ["ACCOUNTANT_MUTANTS", "MUTANTS", "VARIANTS", "AccountantMutant", "Mutant", "Variant", "run"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mechanism with a planted bug and the same without it.

    Attributes:
        name: what is wrong, in words.
        planted: claims more than it keeps.
        honest: keeps the same claim.
        by: the checks that must catch it (others may as well).
        tight: the part of the claim that the honest twin's example shows.
        exact_error: whether the claimed widths are quantiles.
    """

    name: str
    planted: Example
    honest: Example
    by: frozenset[str]
    tight: float = 0.55
    exact_error: bool = True

    def caught(self, *, samples: int = 100_000, seed: int | str = 0) -> Examination:
        """What the kit says about the planted bug."""
        return examine(
            self.planted, samples=samples, seed=seed, tight=self.tight, exact_error=self.exact_error
        )

    def cleared(self, *, samples: int = 100_000, seed: int | str = 0) -> Examination:
        """What the kit says about the honest twin."""
        return examine(
            self.honest, samples=samples, seed=seed, tight=self.tight, exact_error=self.exact_error
        )


@dataclass(frozen=True, slots=True)
class AccountantMutant:
    """An accountant with a planted bug and the same without it."""

    name: str
    planted: AccountantLike
    honest: AccountantLike
    by: str

    def caught(self) -> list[str]:
        """What the kit says about the planted bug."""
        return faults(self.planted)

    def cleared(self) -> list[str]:
        """What the kit says about the honest twin."""
        return faults(self.honest)


# Which checks must see which bug; all others must be seen by the auditor ("loss").
_BY: Mapping[str, tuple[str, ...]] = {
    "half the noise": ("loss", "coverage", "variance"),
    "twice the noise": ("tightness", "coverage", "variance"),
    "half the integer noise": ("loss", "coverage", "variance"),
    "half the Gaussian noise": ("loss", "coverage", "variance"),
    "float noise": ("support",),
    "biased survey estimator": ("bias",),
}
# Pairs that break a bug need not come close to the claim of the twin; sparse vectors are loose by nature.
_TIGHT: Mapping[str, float] = {"biased survey estimator": 0.0, "L2 sensitivity for Laplace noise": 0.1}


def _mutants() -> dict[str, Mutant]:
    by_name = {}
    for name, (planted, honest) in mechanisms.pairs().items():
        tight = 0.0 if name.startswith("sparse vector") else _TIGHT.get(name, 0.55)
        by = frozenset(_BY.get(name, ("loss",)))
        by_name[name] = Mutant(name, planted, honest, by, tight, name != "biased survey estimator")
    return by_name


MUTANTS: Mapping[str, Mutant] = MappingProxyType(_mutants())
"""Mechanisms with planted bugs, by name."""

ACCOUNTANT_MUTANTS: Mapping[str, AccountantMutant] = MappingProxyType(
    {
        mutant.name: mutant
        for mutant in (
            AccountantMutant(
                "basic composition that forgets delta",
                accountants.Basic(True),
                accountants.Basic(False),
                "truth",
            ),
            AccountantMutant(
                "advanced composition without its second term",
                accountants.Advanced(True),
                accountants.Advanced(False),
                "truth",
            ),
            AccountantMutant(
                "privacy-loss distribution rounded to nearest",
                accountants.Discretised("nearest"),
                accountants.Discretised("up"),
                "truth",
            ),
        )
    }
)
"""Accountants with planted bugs, by name."""
