"""`Released`: all that a fit leaves on record, as arrays by name and back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.synth._model.domain import Clique, Domain, Marginal
from sfumato.synth._model.model import Model
from sfumato.synth.columns.coarse import Coarse
from sfumato.synth.columns.fine import Fine
from sfumato.synth.columns.scales import Scales
from sfumato.synth.methods.base import Learned

__all__ = ["Released", "knowing"]


def knowing(columns: Sequence[Fine], found: Mapping[int, Sequence[str]]) -> tuple[Fine, ...]:
    """Columns, with the texts that were found by the place of their column."""
    return tuple(
        column.holding(found[place]) if place in found else column for place, column in enumerate(columns)
    )


class Released(NamedTuple):
    """What a fit measured and made of it; public.

    Attributes:
        domain: The columns in coarse cells.
        cuts: Which fine cells are in each of them.
        learned: The noisy counts and the model.
        sizes: About how many units have 1 row, 2 rows, …
        fine: The noisy counts of fine cells and of stretches of them, of columns that are held in coarse
            ones, by their place.
        found: The common texts of columns whose values nobody listed, by the place of the column.
    """

    domain: Domain
    cuts: tuple[Coarse, ...]
    learned: Learned
    sizes: NDArray[np.float64]
    fine: Mapping[int, Scales]
    found: Mapping[int, tuple[str, ...]] = {}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that `from_arrays` reads back, to the last bit."""
        marginals = self.learned.marginals
        found: dict[str, NDArray[Any]] = {
            "sizes": self.sizes,
            "sigmas": np.array([marginal.sigma for marginal in marginals], np.float64),
            "converged": np.array([self.learned.converged]),
            "measured": np.array([len(marginals)]),
            "parts": _padded(list(self.learned.parts)),
            "part sigmas": np.array(list(self.learned.parts.values()), np.float64),
            "fine": np.array(list(self.fine), np.int64),
            "fine sigmas": np.array([told.sigma for told in self.fine.values()], np.float64),
        }
        for at, told in self.fine.items():
            found[f"fine {at}"] = np.concatenate(told.counts)
            found[f"scales {at}"] = np.array([told.known, *map(len, told.counts)], np.int64)
        for at, texts in self.found.items():
            written = [text.encode() for text in texts]
            found[f"texts {at}"] = np.frombuffer(b"".join(written), np.uint8)
            found[f"ends {at}"] = np.cumsum([len(text) for text in written], dtype=np.int64)
        for at, cut in enumerate(self.cuts):
            found |= {f"{name} {at}": array for name, array in cut.to_arrays().items()}
        for at, marginal in enumerate(marginals):
            found |= {f"clique {at}": np.array(marginal.clique, np.int64), f"counts {at}": marginal.values}
        return found | {f"model {name}": array for name, array in self.learned.model.to_arrays().items()}

    @property
    def digest(self) -> str:
        """A fingerprint of all of it, to the last bit."""
        found, arrays = hashlib.sha256(), self.to_arrays()
        for name in sorted(arrays):
            array = np.ascontiguousarray(arrays[name])
            found.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            found.update(array.tobytes())
        return found.hexdigest()

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
        cliques = [tuple(int(place) for place in line if place >= 0) for line in arrays["parts"]]
        parts = dict(zip(cliques, map(float, arrays["part sigmas"]), strict=True))
        learned = Learned(marginals, model, bool(arrays["converged"][0]), parts)
        found = {at: _texts(arrays, at) for at in range(len(names)) if f"texts {at}" in arrays}
        fine = {
            int(at): _scales(arrays, int(at), float(sigma))
            for at, sigma in zip(arrays["fine"], arrays["fine sigmas"], strict=True)
        }
        return cls(domain, cuts, learned, np.asarray(arrays["sizes"]), fine, found)


def _scales(arrays: Mapping[str, NDArray[Any]], at: int, sigma: float) -> Scales:
    counts = np.asarray(arrays[f"fine {at}"])
    # Earlier versions counted cells alone.
    known, *sizes = np.asarray(arrays.get(f"scales {at}", [len(counts), len(counts)])).tolist()
    return Scales(known, tuple(np.split(counts, np.cumsum(sizes)[:-1])), sigma)


def _texts(arrays: Mapping[str, NDArray[Any]], at: int) -> tuple[str, ...]:
    written = np.asarray(arrays[f"texts {at}"]).astype(np.uint8).tobytes()
    ends = [0, *np.asarray(arrays[f"ends {at}"]).tolist()]
    return tuple(written[start:end].decode() for start, end in pairwise(ends))


def _padded(cliques: Sequence[Clique]) -> NDArray[np.int64]:
    """Cliques as lines of one array, with -1 after the last place of each."""
    most = max((len(clique) for clique in cliques), default=0)
    found = np.full((len(cliques), most), -1, np.int64)
    for line, clique in zip(found, cliques, strict=True):
        line[: len(clique)] = clique
    return found
