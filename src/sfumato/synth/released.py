"""`Released`: all that a fit leaves on record, as arrays by name and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.synth._model.domain import Domain, Marginal
from sfumato.synth._model.model import Model
from sfumato.synth.columns.coarse import Coarse
from sfumato.synth.methods.base import Learned

__all__ = ["Released"]


class Released(NamedTuple):
    """What a fit measured and made of it; public.

    Attributes:
        domain: The columns in coarse cells.
        cuts: Which fine cells are in each of them.
        learned: The noisy counts and the model.
        sizes: About how many units have 1 row, 2 rows, …
    """

    domain: Domain
    cuts: tuple[Coarse, ...]
    learned: Learned
    sizes: NDArray[np.float64]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that `from_arrays` reads back, to the last bit."""
        marginals = self.learned.marginals
        found: dict[str, NDArray[Any]] = {
            "sizes": self.sizes,
            "sigmas": np.array([marginal.sigma for marginal in marginals], np.float64),
            "converged": np.array([self.learned.converged]),
            "independent": np.array([self.learned.independent]),
            "measured": np.array([len(marginals)]),
        }
        for at, cut in enumerate(self.cuts):
            found |= {f"{name} {at}": array for name, array in cut.to_arrays().items()}
        for at, marginal in enumerate(marginals):
            found |= {f"clique {at}": np.array(marginal.clique, np.int64), f"counts {at}": marginal.values}
        return found | {f"model {name}": array for name, array in self.learned.model.to_arrays().items()}

    @classmethod
    def from_arrays(cls, names: tuple[str, ...], arrays: Mapping[str, NDArray[Any]]) -> Released:
        """What `to_arrays` wrote, for columns of these names."""
        cuts = tuple(
            Coarse(np.asarray(arrays[f"place {at}"]), np.asarray(arrays[f"weight {at}"]))
            for at in range(len(names))
        )
        domain = Domain(names, tuple(cut.size for cut in cuts))
        marginals = []
        for at in range(int(arrays["measured"][0])):
            clique = tuple(int(place) for place in arrays[f"clique {at}"])
            values = np.asarray(arrays[f"counts {at}"]).reshape(domain.shape(clique))
            marginals.append(Marginal(clique, values, float(arrays["sigmas"][at])))
        model = Model.from_arrays(
            domain,
            {
                name.removeprefix("model "): array
                for name, array in arrays.items()
                if name.startswith("model ")
            },
        )
        learned = Learned(marginals, model, bool(arrays["converged"][0]), bool(arrays["independent"][0]))
        return cls(domain, cuts, learned, np.asarray(arrays["sizes"]))
