"""mbi's engine with MST and AIM on top, by the interpreter of an environment of its own: see `synth.py`.

mbi is the reference implementation of graphical models from noisy marginals. Its wheel has the engine alone;
the two mechanisms are written here after their papers (McKenna, Miklau, Sheldon 2021; McKenna, Mullins,
Sheldon, Miklau 2022) with the parameters of its authors: thirds of rho and 3 sigma for MST; 16 rounds a
column, nine tenths for measuring and 80 MB for AIM; 1,000 steps of mirror descent each time. What is
spared the engine: counts of pairs outside its cliques come from NumPy (`_pairs`), since it compiles a program
for each pair and each model, which takes minutes; and counts of a pair that is measured again are averaged.

`python synth_peers.py METHOD EPSILON DELTA SEED ROWS.npz OUT.npy` prints one line of JSON.
This file imports nothing of the others.
"""

from __future__ import annotations

import itertools
import json
import math
import resource
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

STEPS = 1_000
ROUNDS, MEASURING, MEGABYTES = 16, 0.9, 80.0


def rho_of(epsilon: float, delta: float) -> float:
    """The most rho whose zCDP gives (epsilon, delta): Canonne, Kamath, Steinke 2020."""
    orders = np.geomspace(1e-3, 1e5, 100_000) + 1

    def spent(rho: float) -> float:
        logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return float(np.exp(np.min(logs)))

    low, high = 0.0, epsilon + 1.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= delta else (low, middle)
    return low


class Fit:
    """One fit of a table by mbi."""

    def __init__(self, rows: Any, names: list[str], sizes: list[int], rho: float, seed: int) -> None:
        import mbi

        self.mbi, self.rho, self.draw = mbi, rho, np.random.default_rng(seed)
        self.domain = mbi.Domain(names, sizes)
        self.data = mbi.Dataset({name: rows[:, at] for at, name in enumerate(names)}, self.domain)
        self.engine = mbi.estimation.MirrorDescent()
        self.found: list[Any] = []

    def counts(self, clique: tuple[str, ...]) -> Any:
        """The true counts."""
        return np.asarray(self.data.project(clique).datavector())

    def measure(self, clique: tuple[str, ...], sigma: float) -> None:
        """Keep noisy counts; those of the same columns become one, so that nothing is compiled again."""
        true = self.counts(clique)
        noisy = true + self.draw.normal(0, sigma, true.shape)
        for at, each in enumerate(self.found):
            if each.clique == clique:
                ours, theirs = 1 / sigma**2, 1 / each.stddev**2
                noisy = (ours * noisy + theirs * np.asarray(each.noisy_measurement)) / (ours + theirs)
                self.found[at] = self.mbi.LinearMeasurement(noisy, clique, (ours + theirs) ** -0.5)
                return
        self.found.append(self.mbi.LinearMeasurement(noisy, clique, sigma))

    def choose(self, scores: list[float], epsilon: float, sensitivity: float) -> int:
        """The exponential mechanism, by Gumbel noise."""
        logs = np.array(scores) * epsilon / (2 * sensitivity)
        return int(np.argmax(logs + self.draw.gumbel(size=len(logs))))

    def estimate(self, start: Any = None) -> Any:
        """The model of what was measured."""
        return self.engine.estimate(self.domain, self.found, iters=STEPS, warm_start=start)

    def mst(self) -> Any:
        """A tree of pairs: each column, then the pairs of the tree, each third with a third of rho."""
        names, sigma = list(self.domain.attributes), math.sqrt(3 / (2 * self.rho))
        for name in names:
            self.measure((name,), sigma * math.sqrt(len(names)))
        merged = {}
        for each in self.found:  # rare values become one
            rare = np.asarray(each.noisy_measurement) < 3 * each.stddev
            if rare.any():
                place = np.cumsum(~rare) - 1
                merged[each.clique[0]] = np.where(rare, int((~rare).sum()), place)
        self.found = [each.compress(merged, self.domain) for each in self.found]
        self.data = self.data.compress(merged)
        self.domain = self.data.domain
        model, single = self.estimate(), {}
        for name in names:
            single[name] = np.asarray(model.project((name,)).datavector())
        total, scores = float(model.total), {}
        for one, other in itertools.combinations(names, 2):
            expected = np.outer(single[one], single[other]).ravel() / total
            scores[one, other] = float(np.abs(self.counts((one, other)) - expected).sum())
        group = {name: name for name in names}
        epsilon = math.sqrt(8 * self.rho / 3 / (len(names) - 1))
        for _ in range(len(names) - 1):
            open_ = [pair for pair in scores if group[pair[0]] != group[pair[1]]]
            pair = open_[self.choose([scores[pair] for pair in open_], epsilon, 1.0)]
            gone, kept = group[pair[0]], group[pair[1]]
            group = {name: kept if held == gone else held for name, held in group.items()}
            self.measure(pair, sigma * math.sqrt(len(names) - 1))
        return self.estimate(model).synthetic_data().decompress(merged)

    def aim(self) -> Any:
        """Round by round the pair that the model fits worst; all pairs matter alike."""
        names = list(self.domain.attributes)
        rounds, used = ROUNDS * len(names), 0.0
        sigma = math.sqrt(rounds / (2 * MEASURING * self.rho))
        epsilon = math.sqrt(8 * (1 - MEASURING) * self.rho / rounds)
        every = [(name,) for name in names] + list(itertools.combinations(names, 2))
        weights = {clique: len(clique) * (len(names) - 1) for clique in every}
        true = {clique: self.counts(clique) for clique in every}
        for name in names:
            self.measure((name,), sigma)
            used += 0.5 / sigma**2
        model, last = self.estimate(), False
        while not last:
            last = self.rho - used < 2 * (0.5 / sigma**2 + epsilon**2 / 8)
            if last:
                sigma = math.sqrt(1 / (2 * MEASURING * (self.rho - used)))
                epsilon = math.sqrt(8 * (1 - MEASURING) * (self.rho - used))
            used += 0.5 / sigma**2 + epsilon**2 / 8
            held = {each.clique for each in self.found}
            room = MEGABYTES * used / self.rho
            open_ = [clique for clique in every if clique in held or self._size([*held, clique]) <= room]
            expected = self._pairs(model)
            noise = math.sqrt(2 / math.pi) * sigma
            scores = [
                weights[clique] * (np.abs(true[clique] - expected[clique]).sum() - noise * true[clique].size)
                for clique in open_
            ]
            clique = open_[self.choose(scores, epsilon, max(weights.values()))]
            self.measure(clique, sigma)
            model = self.estimate(model)
            moved = np.abs(np.asarray(model.project(clique).datavector()) - expected[clique]).sum()
            if moved <= noise * true[clique].size:
                sigma, epsilon = sigma / 2, epsilon * 2
        return model.synthetic_data()

    def _size(self, cliques: list[tuple[str, ...]]) -> float:
        return float(self.mbi.junction_tree.hypothetical_model_size(self.domain, cliques))

    def _pairs(self, model: Any) -> dict[tuple[str, ...], Any]:
        """A model's counts of all columns and pairs, passed along its junction tree with NumPy."""
        tree, _ = self.mbi.junction_tree.make_junction_tree(self.domain, [tuple(c) for c in model.cliques])
        nodes, total = [tuple(node) for node in tree.nodes], float(model.total)
        tables = self._beliefs(tree, nodes, model)
        axis = {name: at for at, name in enumerate(self.domain.attributes)}
        here = len(axis)  # the axis of the column that is carried along
        found: dict[tuple[str, ...], Any] = {}
        for name in axis:
            start = next(node for node in nodes if name in node)
            reached, last = {start: None}, [(start, tables[start], None)]
            while last:
                node, table, carried = last.pop()
                # P(carried, node): in the first one it is a column of the node itself.
                axes = [axis[each] for each in node]
                for each in node:
                    if each == name:
                        found[(name,)] = total * np.einsum(table, axes, [axis[name]])
                    elif carried is None:
                        found.setdefault(
                            (name, each), total * np.einsum(table, axes, [axis[name], axis[each]])
                        )
                    else:
                        pair = np.einsum(table, [here, *axes], [here, axis[each]])
                        found.setdefault((name, each), total * pair)
                for other in map(tuple, tree.neighbors(node)):
                    if other in reached:
                        continue
                    reached[other] = None
                    last.append((other, *self._carried(tables, node, other, table, carried, name, axis)))
            for other in map(tuple, nodes):  # parts of the tree that nothing joins are independent
                if other not in reached:
                    for each in other:
                        alone = np.einsum(tables[other], [axis[one] for one in other], [axis[each]])
                        found.setdefault((name, each), np.outer(found[(name,)], alone))
        return {
            clique: found[clique].ravel()
            for clique in [(name,) for name in axis] + list(itertools.combinations(axis, 2))
        }

    def _beliefs(self, tree: Any, nodes: list[Any], model: Any) -> dict[Any, Any]:
        """A model's shares by node of its junction tree: sums of potentials, passed along it."""
        logs = {node: np.zeros([self.domain[name] for name in node]) for node in nodes}
        for clique, factor in model.potentials.tables.items():
            node = next(node for node in nodes if set(clique) <= set(node))
            logs[node] += _spread(np.asarray(factor.values, np.float64), factor.domain.attributes, node)
        said: dict[Any, Any] = {}

        def message(one: Any, other: Any) -> Any:
            if (one, other) not in said:
                logged = logs[one] + sum(
                    _spread(*message(near, one), one)
                    for near in map(tuple, tree.neighbors(one))
                    if near != other
                )
                kept = [name for name in one if name in other]
                gone = tuple(at for at, name in enumerate(one) if name not in other)
                said[one, other] = logsumexp(logged, axis=gone), kept
            return said[one, other]

        tables = {}
        for node in nodes:
            logged = logs[node] + sum(
                _spread(*message(near, node), node) for near in map(tuple, tree.neighbors(node))
            )
            tables[node] = np.exp(logged - logsumexp(logged))
        return tables

    @staticmethod
    def _carried(
        tables: dict[Any, Any],
        node: Any,
        other: Any,
        table: Any,
        carried: Any,
        name: str,
        axis: dict[str, int],
    ) -> tuple[Any, Any]:
        """P(name, other) from P(name, node) over what both have, or P(other) itself where it has the name."""
        if name in other:
            return tables[other], None
        here, shared = len(axis), [each for each in node if each in other]
        axes, kept = [axis[each] for each in node], [axis[each] for each in shared]
        beside = [axis[each] for each in other]
        if carried is None:
            joint = np.einsum(table, axes, [axis[name], *kept])
        else:
            joint = np.einsum(table, [here, *axes], [here, *kept])
        parent = np.einsum(tables[other], beside, kept)
        ratio = np.divide(joint, parent, out=np.zeros_like(joint), where=parent > 0)
        return np.einsum(ratio, [here, *kept], tables[other], beside, [here, *beside]), name


def _spread(values: Any, names: Any, node: Any) -> Any:
    """Values by some columns of a node, shaped so that they add to a table by all of them."""
    order = [name for name in node if name in names]
    turned = np.transpose(values, [list(names).index(name) for name in order])
    sizes = iter(turned.shape)
    return turned.reshape([next(sizes) if name in names else 1 for name in node])


def logsumexp(logs: Any, axis: Any = None) -> Any:
    """The logarithm of a sum of exponentials along some axes."""
    most = np.max(logs, axis=axis, keepdims=True)
    summed = np.log(np.sum(np.exp(logs - most), axis=axis, keepdims=True)) + most
    return np.squeeze(summed, axis=axis)


def peak() -> float:
    """The most memory of this process, in megabytes."""
    status = Path("/proc/self/status")
    if status.exists():  # what the parent took before is not in it
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(method: str, epsilon: str, delta: str, seed: str, source: str, out: str) -> None:
    """One fit: its rows in a file, and what it took on the output."""
    kept = np.load(source)
    names, sizes = [str(name) for name in kept["names"]], [int(size) for size in kept["sizes"]]
    import jax

    jax.config.update("jax_enable_compilation_cache", False)
    np.random.seed(int(seed))  # mbi draws rows from the global stream
    start = time.process_time()
    fit = Fit(kept["rows"], names, sizes, rho_of(float(epsilon), float(delta)), int(seed))
    made = {"mst": fit.mst, "aim": fit.aim}[method]()
    taken = time.process_time() - start
    columns = made.to_dict()
    np.save(out, np.column_stack([np.asarray(columns[name], np.int64) for name in names]))
    versions = {name: metadata.version(name) for name in ("mbi", "jax", "jaxlib", "numpy")}
    print(json.dumps({"cpu": taken, "megabytes": peak(), "measured": len(fit.found), "versions": versions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
