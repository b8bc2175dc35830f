"""`SyntheticTables`: a model of two linked private tables that anyone may have, and rows out of it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer, show
from sfumato.random import Simulation, simulation
from sfumato.synth._model.siblings import siblings
from sfumato.synth.answers import clique_of, labels
from sfumato.synth.linking import Link
from sfumato.synth.released import Released

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.ledger import Receipt
    from sfumato.synth.columns.coarse import Coarse
    from sfumato.synth.columns.fine import Fine

__all__ = ["LinkedReleased", "SyntheticTables"]

_MOST_ROWS = 10**9
_MOST_CELLS = 10**6
_WIDTH = 80
_PANELS = 24


class LinkedReleased(NamedTuple):
    """What a fit of two tables measured and made of it; public.

    Attributes:
        joined: Of parents with children: their columns, the number of children, and the columns of a child.
            Its sizes are about how many parents have no child, 1, 2, …
        childless: Of parents without children.
    """

    joined: Released
    childless: Released

    @property
    def without(self) -> float:
        """About how many parents have no children."""
        return max(float(self.joined.sizes[0]), 0.0)

    @property
    def with_some(self) -> float:
        """About how many have some."""
        return self.joined.learned.model.total

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that `from_arrays` reads back, to the last bit."""
        found = {f"joined {name}": array for name, array in self.joined.to_arrays().items()}
        return found | {f"childless {name}": array for name, array in self.childless.to_arrays().items()}

    @classmethod
    def from_arrays(cls, link: Link, arrays: Mapping[str, NDArray[Any]]) -> LinkedReleased:
        """What `to_arrays` wrote, for these tables."""
        names = tuple(column.name for column in link.columns)
        return cls(
            Released.from_arrays(names, _within(arrays, "joined ")),
            Released.from_arrays(names[: len(link.parents)], _within(arrays, "childless ")),
        )


class SyntheticTables:
    """A model of two linked private tables: parents with children can be drawn from it at will.

    Attributes:
        link: The two tables, their keys and columns; public.
        method: How it was chosen what was measured.
        epsilon: What the fit cost.
        delta: Its other half.
        receipt: Of the debit that paid for it; None: it was read from a file.
        released: All noisy counts, and the models that follow from them.
    """

    def __init__(
        self,
        *,
        link: Link,
        method: str,
        epsilon: Fraction,
        delta: Fraction,
        released: LinkedReleased,
        receipt: Receipt | None,
    ) -> None:
        """Made by `tables` and `load_tables`."""
        self.link, self.method, self.epsilon, self.delta = link, method, epsilon, delta
        self.released, self.receipt = released, receipt

    @property
    def tables(self) -> tuple[str, str]:
        """The names of the two tables, that of the parents first."""
        return self.link.parent, self.link.child

    @property
    def parents(self) -> float:
        """About how many rows the table of parents has."""
        return self.released.without + self.released.with_some

    @property
    def children(self) -> float:
        """About how many rows the table of children has."""
        at = len(self.link.parents)
        return float(self.released.joined.learned.model.marginal((at,)) @ self._numbers())

    @property
    def converged(self) -> bool:
        """Whether the models are as close to the noisy counts as they can be."""
        return self.released.joined.learned.converged and self.released.childless.learned.converged

    def sample(self, n: int | None = None, *, seed: int | None = None) -> dict[str, pa.Table]:
        """Parents and their children, drawn from the model: free, as often as one likes.

        Args:
            n: How many parents; None: about as many as the table has, by a noisy count.
            seed: The same rows for the same seed; None: other ones each time.

        Returns:
            Both tables by name, with new keys that join them.

        Raises:
            InvalidParameter: if n is below 0 or beyond a billion.
        """
        many = round(self.parents) if n is None else as_integer(n, "n", least=0)
        if many > _MOST_ROWS:
            raise InvalidParameter("n is a number of parents, at most a billion.")
        rng, link, found = simulation(seed), self.link, self.released
        own = len(link.parents)
        share = found.without / self.parents
        without = int(many * share + rng.random())
        alone = found.childless.learned.model.rows(without, rng)
        rows = found.joined.learned.model.rows(many - without, rng)
        cuts = found.joined.cuts
        numbers = cuts[own].finer(rows[:, own], rng) + 1
        ids = np.asarray(rng.permutation(many) + 1, np.int64)  # childless ones among the others
        order = np.argsort(ids)
        parents = _drawn(link, link.parents, cuts, np.concatenate([alone, rows[:, :own]])[order], rng)
        keys = {name: pa.array(np.arange(1, many + 1), pa.int64()) for name in link.key}
        every = siblings(found.joined.learned.model, rows, numbers, own + 1, rng)[:, own + 1 :]
        pointers = np.repeat(ids[without:], numbers)
        order = np.argsort(pointers, kind="stable")
        children = _drawn(link, link.children, cuts[own + 1 :], every[order], rng)
        points = {name: pa.array(pointers[order], pa.int64()) for name in link.pointer}
        return {link.parent: pa.table(keys | parents), link.child: pa.table(points | children)}

    def marginal(self, columns: Sequence[str]) -> pa.Table:
        """How many rows have each combination of values of some columns, by the model: no row is drawn.

        Args:
            columns: Their names with that of their table: `["patients.age", "visits.cost"]`, or
                `"number of visits"`. Where one is of the children, children beside their parents are counted,
                else parents.

        Returns:
            The columns and `count`. Numbers that are held in bins come as texts such as "17 to 24".

        Raises:
            InvalidParameter: if there is no such column, or they have too many cells together.
        """
        listed = [columns] if isinstance(columns, str) else list(columns)
        if not listed or len(set(listed)) < len(listed):
            raise InvalidParameter('Name columns, each of them once: marginal(["patients.age"]).')
        joined, childless = self.released
        clique = clique_of(joined, listed)
        own = len(self.link.parents)
        shape = joined.domain.shape(clique)
        if joined.domain.cells(clique) > _MOST_CELLS:
            raise InvalidParameter("These columns have too many cells together: name fewer of them.")
        held = [labels(self.link.columns[place], joined.cuts[place]) for place in clique]
        if clique[-1] > own:
            wide = tuple(sorted({*clique, own}))
            counts = joined.learned.model.marginal(wide)
            axis = wide.index(own)
            counts = np.moveaxis(np.moveaxis(counts, axis, -1) * self._numbers(), -1, axis)
            counts = counts if own in clique else counts.sum(axis=axis)
        else:
            counts = joined.learned.model.marginal(clique)
            rest = tuple(place for place in clique if place < own)
            model = childless.learned.model
            alone = model.marginal(rest).reshape(joined.domain.shape(rest))
            alone = alone * (self.released.without / model.total)
            if own in clique:  # a parent without children has a number of its own
                counts = np.concatenate([alone[..., np.newaxis], counts], axis=-1)
                held[-1] = pa.concat_arrays(
                    [pa.array([0 if len(held[-1]) == self.link.most else "0"]), held[-1]]
                )
                shape = counts.shape
            else:
                counts = counts + alone
        places = np.unravel_index(np.arange(counts.size), shape)
        found = {
            self.link.columns[place].name: values.take(pa.array(codes))
            for place, values, codes in zip(clique, held, places, strict=True)
        }
        return pa.table({name: found[name] for name in listed} | {"count": counts.ravel()})

    def picture(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """How many rows the model gives each value or bin of each column, the first 24 of them.

        Args:
            path: Where to write it, .png or .svg; None: nowhere.
        """
        from sfumato.plots import column_counts

        found = dict[str, tuple[list[object], list[float]]]()
        spans = dict[str, list[tuple[float, float] | None]]()
        columns = self.link.columns[:_PANELS]
        for column, cut in zip(columns, self.released.joined.cuts, strict=False):
            told = self.marginal([column.name])
            found[column.name] = told[column.name].to_pylist(), told["count"].to_pylist()
            if column.is_ordered and column != self.link.number:  # whose 0 is no cell of its own
                spans[column.name] = cut.spans(column)
        return column_counts(
            found,
            spans=spans,
            dates=[column.name for column in columns if column.kind in ("date", "timestamp")],
            title=f"Synthetic {self.link.parent} with their {self.link.child}: rows by column",
            note=f"By the model, epsilon {show(self.epsilon)}, delta {float(self.delta):.4g}. "
            "Of numbers and dates, areas are rows.",
            path=path,
        )

    def _numbers(self) -> NDArray[np.float64]:
        """How many children a parent has on average in each cell of the number."""
        cut = self.released.joined.cuts[len(self.link.parents)]
        sums = np.bincount(cut.place, cut.weight * np.arange(1, len(cut.place) + 1), cut.size)
        return np.asarray(sums / np.bincount(cut.place, cut.weight, cut.size))

    def __repr__(self) -> str:
        many = sum(len(part.learned.marginals) for part in self.released)
        columns = len(self.link.parents) + len(self.link.children)
        said = (
            f"Synthetic {self.link.parent} with their {self.link.child}: {columns} columns, about "
            f"{self.parents:,.0f} and {self.children:,.0f} rows; {many} sets of noisy counts "
            f"({self.method}), epsilon {show(self.epsilon)}, delta {float(self.delta):.4g}."
        )
        if not self.converged:
            said += " The model did not come as close to the counts as it could: give it more memory."
        return textwrap.fill(said, _WIDTH)


def _drawn(
    link: Link, columns: Sequence[Fine], cuts: Sequence[Coarse], codes: NDArray[Any], rng: Simulation
) -> dict[str, pa.Array]:
    """Values in coarse cells."""
    return {
        link.bare(column): column.restored(cut.finer(codes[:, at], rng), rng)
        for at, (column, cut) in enumerate(zip(columns, cuts, strict=False))
    }


def _within(arrays: Mapping[str, NDArray[Any]], start: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
