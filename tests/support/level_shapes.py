"""Random questions on several levels, and what their answers must be, worked out slowly row by row.

```
keys       plan (listed) · region, city, size (columns of one public table) · tag, day (found in the data)
levels     1 to 4 keys in ROLLUP, CUBE, GROUPING SETS, and plain keys beside them
```
"""

from __future__ import annotations

import datetime
import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

import sfumato as sf

__all__ = ["KINDS", "Shape", "make_shape_of_levels", "parts_add_up"]

Kind = Literal["known", "unknown", "mixed", "public columns", "public columns and others"]
KINDS: dict[Kind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "known": ((), ("plan", "region", "sex")),
    "unknown": (("tag",), ("tag", "day", "age")),
    "mixed": (("tag", "plan"), ("tag", "plan", "day", "region")),
    "public columns": (("region", "city"), ("region", "city", "size", "plan")),
    "public columns and others": (
        ("region", "city", "tag"),
        ("region", "city", "size", "tag", "day", "plan"),
    ),
}
"""Which keys are always there, and from which all are drawn."""

PLANS, SEXES = ("x", "y", "z"), ("F", "M")
OF_STORES = ("region", "city", "size")
FOUND = ("tag", "day", "age")
SOURCE = "visits JOIN stores ON visits.store = stores.store"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """A question with its tables.

    Attributes:
        keys: In the order of GROUP BY.
        levels: Which of them each level has, in the same order.
        grouping: The clause.
        unit: Whose privacy is protected.
        visits: The private rows.
        stores: The public rows.
    """

    keys: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    grouping: str
    unit: sf.PrivacyUnit
    visits: tuple[Row, ...]
    stores: tuple[Row, ...] = field(repr=False)

    @property
    def text(self) -> str:
        """The question."""
        shown = ", ".join(self.keys)
        return f"SELECT {shown}, COUNT(*) AS n FROM {SOURCE} GROUP BY {self.grouping}"

    @property
    def is_open(self) -> bool:
        """Whether some key is found in the data."""
        return any(key in FOUND for key in self.keys)

    def tables(self, visits: Iterable[Row] | None = None) -> tuple[sf.PrivateTable, sf.PublicTable]:
        """The tables, with other private rows if they are given."""
        public = {name: [row[name] for row in self.stores] for name in ("store", *OF_STORES)}
        names = ("u", "store", "plan", "sex", "tag", "day", "age")
        rows = list(self.visits if visits is None else visits)
        kinds = [pa.int64(), pa.int64(), *[pa.string()] * 3, pa.date32(), pa.int64()]
        private = {
            name: pa.array([row[name] for row in rows], kind) for name, kind in zip(names, kinds, strict=True)
        }
        text = {name: sf.Text() for name in OF_STORES}
        return (
            sf.PrivateTable(
                "visits",
                source=pa.table(private),
                unit=self.unit,
                schema={
                    "store": sf.Int(0, 20),
                    "plan": sf.Enum(*PLANS),
                    "sex": sf.Enum(*SEXES),
                    "tag": sf.Text(),
                    "day": sf.Date(),
                    "age": sf.Int(),
                },
            ),
            sf.PublicTable("stores", source=pa.table(public), schema={"store": sf.Int()} | text, key="store"),
        )

    def session(self, *more: Iterable[Row]) -> sf.Session:
        """A session over the tables, and with other private rows in visits_1, visits_2, …"""
        others = [
            replace(self.tables(visits)[0], name=f"visits_{number}") for number, visits in enumerate(more, 1)
        ]
        return sf.Session(*self.tables(), *others, budget=sf.Budget(10**9, "1e-6"))

    # What must come out, where nobody is cut and noise is far below one half.

    def cells(self) -> list[Row]:
        """The combinations of public keys that there are."""
        wanted = [name for name in OF_STORES if name in self.keys]
        rows: list[Row] = [{name: row[name] for name in wanted} for row in self.stores]
        lists: list[list[Row]] = [
            [each for each in rows if None not in each.values()] if wanted else [{}],
            [{"plan": value} for value in PLANS] if "plan" in self.keys else [{}],
            [{"sex": value} for value in SEXES] if "sex" in self.keys else [{}],
        ]
        return [{**a, **b, **c} for a, b, c in itertools.product(*lists)]

    def counted(self) -> list[Row]:
        """The rows that count, each with all its keys."""
        stores = {row["store"]: row for row in self.stores}
        joined = [{**row, **stores[row["store"]]} for row in self.visits if row["store"] in stores]
        listed = [name for name in self.keys if name not in FOUND]
        return [row for row in joined if not any(row[name] is None for name in listed)]

    def found(self) -> dict[tuple[str, ...], set[tuple[Any, ...]]]:
        """The groups of two units or more, on each level with a key that is found."""
        units: dict[Any, set[Any]] = defaultdict(set)
        for place, row in enumerate(self.counted()):
            for level in self.levels:
                if set(level) & set(FOUND):
                    owner = place if self.unit.column is None else row["u"]
                    units[level, tuple(row[key] for key in level)].add(owner)
        kept: dict[tuple[str, ...], set[tuple[Any, ...]]] = defaultdict(set)
        for (level, values), owners in units.items():
            if len(owners) > 1:
                kept[level].add(values)
        return kept

    def beginnings(self, level: tuple[str, ...]) -> set[tuple[Any, ...]]:
        """The rows of a level by the values that they begin with."""
        found, rows = self.found(), set()
        for length in range(len(level) + 1):
            start, on = level[:length], level[: length + 1]
            if length < len(level) and not set(on) & set(FOUND):
                continue  # all go on by a public key: no others are left
            if not set(start) & set(FOUND):
                rows |= {tuple(cell[key] for key in start) for cell in self.cells()}
                continue
            for other, groups in found.items():
                if set(start) <= set(other):
                    rows |= {tuple(group[other.index(key)] for key in start) for group in groups}
        return rows

    def answer(self) -> list[tuple[Any, ...]]:
        """All rows: the level in words where keys are found, keys and the count; in no order."""
        made = []
        for level in self.levels:
            counts = dict.fromkeys(self.beginnings(level), 0)
            for row in self.counted():
                values = tuple(row[key] for key in level)
                while values not in counts:
                    values = values[:-1]
                counts[values] += 1
            for values, count in counts.items():
                shown = dict(zip(level, values, strict=False))
                words = [key if i < len(values) else f"other {key}" for i, key in enumerate(level)]
                told = (", ".join(words) or "all rows",) if self.is_open else (level,)
                made.append((*told, *(shown.get(key) for key in self.keys), count))
        return made


def make_shape_of_levels(seed: int | str, kind: Kind, *, cut: bool = False) -> Shape:
    """A random question of a kind, the same for the same seed; with `cut`, limits are far too small."""
    draw = random.Random(f"levels {seed} {kind}")
    always, pool = KINDS[kind]
    size = draw.randint(max(1, len(always)), min(4, len(pool)))
    rest = draw.sample([key for key in pool if key not in always], size - len(always))
    keys = draw.sample([*always, *rest], size)
    grouping, levels = _grouping(draw, keys)
    keys = (
        list(dict.fromkeys(itertools.chain(*levels))) if set(keys) != set(itertools.chain(*levels)) else keys
    )
    adjacency = draw.choice(("add-remove", "exchange"))
    many = draw.randint(1, 3) if cut else 12
    limits = {"max_groups": many, "max_rows": many * (draw.randint(1, 2) if cut else 6)}
    unit = (
        sf.PrivacyUnit.row(adjacency=adjacency)
        if draw.random() < 0.25
        else sf.PrivacyUnit("u", adjacency=adjacency, **limits)
    )
    stores = _stores(draw)
    visits = tuple(_visit(draw, owner, stores) for owner in range(10) for _ in range(draw.randint(1, 6)))
    return Shape(tuple(keys), tuple(levels), grouping, unit, visits, stores)


def _grouping(draw: random.Random, keys: Sequence[str]) -> tuple[str, list[tuple[str, ...]]]:
    """A clause that names all keys in this order, and the sets that it stands for."""
    listed, kind = ", ".join(keys), draw.choice(("rollup", "cube", "sets", "sets and all", "beside"))
    if kind == "cube" and len(keys) <= 3:
        sizes = range(len(keys), -1, -1)
        return f"CUBE ({listed})", [each for size in sizes for each in itertools.combinations(keys, size)]
    if kind.startswith("sets"):
        some = [tuple(key for key in keys if draw.random() < 0.5) for _ in range(draw.randint(1, 3))]
        missing = tuple(key for key in keys if not any(key in each for each in some))
        sets = list(dict.fromkeys([tuple(keys)] * (kind != "sets") + ([missing] if missing else []) + some))
        order = list(dict.fromkeys(itertools.chain(*sets)))
        told = ", ".join(f"({', '.join(each)})" for each in sets)
        return f"GROUPING SETS ({told})", [tuple(sorted(each, key=order.index)) for each in sets]
    if kind == "beside" and len(keys) > 1:
        first, *others = keys
        return f"{first}, ROLLUP ({', '.join(others)})", [
            (first, *others[:size]) for size in range(len(others), -1, -1)
        ]
    return f"ROLLUP ({listed})", [tuple(keys[:size]) for size in range(len(keys), -1, -1)]


def _stores(draw: random.Random) -> tuple[Row, ...]:
    """Regions with their own cities, some values missing; each column has a value at least."""
    rows: list[Row] = [{"store": 1, "region": "n", "city": "a", "size": "big"}]
    for store in range(2, draw.randint(4, 8)):
        region = draw.choice(("n", "s", "w", None))
        city = draw.choice((f"{region} 1", f"{region} 2", "a", None))
        rows.append(
            {"store": store, "region": region, "city": city, "size": draw.choice(("big", "small", None))}
        )
    return tuple(rows)


def _visit(draw: random.Random, owner: int, stores: Sequence[Row]) -> Row:
    odd = draw.random() < 0.1
    return {
        "u": owner,
        "store": 15 if odd else draw.choice(stores)["store"],
        "plan": None if draw.random() < 0.1 else draw.choice(PLANS),
        "sex": draw.choice(SEXES),
        "tag": draw.choice(("p", "q", "r", None, f"only {owner}", f"only {owner} again")),
        "day": draw.choice((datetime.date(2024, 1, 1), datetime.date(2024, 1, 1 + owner))),
        "age": draw.choice((30, 40, 50 + owner)),
    }


def parts_add_up(shape: Shape, rows: Iterable[Row]) -> list[str]:
    """Which rows of an answer are not the sum of their parts, in words; `rows` have `n` and maybe `level`.

    Where keys are found, the rows of a level add up to those of a level that has the first of its keys. Where
    all are public and a level has all of them, they add up to every level.
    """
    listed, wrong = list(rows), []
    by_level: dict[tuple[str, ...], list[tuple[dict[str, Any], int]]] = defaultdict(list)
    for row, level, known in _placed(shape, listed):
        by_level[level].append(({key: row[key] for key in level[:known]}, row["n"]))
    for fine, coarse in itertools.permutations(by_level, 2):
        nested = (
            fine[: len(coarse)] == coarse if shape.is_open else set(coarse) < set(fine) == set(shape.keys)
        )
        if not nested:
            continue
        sums: dict[Any, int] = defaultdict(int)
        for values, n in by_level[fine]:
            sums[tuple(item for item in values.items() if item[0] in coarse)] += n
        for values, n in by_level[coarse]:
            mine = tuple(item for item in _in_order(values, fine))
            if sums.get(mine, 0) != n:
                wrong.append(f"{values} has {n}, its parts on {fine} have {sums.get(mine, 0)}")
    return wrong


def _in_order(values: Mapping[str, Any], order: Sequence[str]) -> list[tuple[str, Any]]:
    return [(key, values[key]) for key in order if key in values]


def _placed(shape: Shape, rows: Sequence[Row]) -> Iterable[tuple[Row, tuple[str, ...], int]]:
    """Each row with its level, and how many of its keys have a value."""
    for row in rows:
        if shape.is_open:
            words = [] if row["level"] == "all rows" else row["level"].split(", ")
            level = tuple(word.removeprefix("other ") for word in words)
            yield row, level, sum(not word.startswith("other ") for word in words)
        else:
            level = tuple(key for key in shape.keys if row[key] is not None)
            yield row, level, len(level)
