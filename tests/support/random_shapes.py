"""Random SQL over the tables of `random_shop`, form by form: where rows come from, and what is asked of them.

A relation is what stands in FROM, with the names of its columns and what they are good for; each form puts
relations together in its own way, and the inside of one is any other. What is refused is refused: the test
asserts how much of each form is accepted.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from random_queries import Asked
from random_shop import GROUPINGS

__all__ = ["FORMS", "make_shape"]


@dataclass(frozen=True, slots=True)
class Relation:
    """What stands in FROM.

    Attributes:
        text: Without the word itself.
        columns: By name what they hold: `n` numbers with bounds, `f` without, `k` keys with public values,
            `t` texts, `d` dates, `b` truth values.
        unit: What the privacy unit is called in it, if it has a name.
    """

    text: str
    columns: Mapping[str, str]
    unit: str | None

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.columns.items() if kind in kinds]


_TABLES: dict[str, tuple[dict[str, str], str | None]] = {
    "customers": ({"region": "k", "age": "n", "income": "n", "since": "d"}, "user"),
    "orders": (
        {"status": "k", "amount": "n", "qty": "n", "day": "d", "place": "n", "memo": "t", "loose": "f",
         "paid": "b", "order_id": "f"},
        "user",
    ),
    "items": ({"sort": "k", "price": "n", "count": "n", "item_id": "f", "order_id": "f"}, None),
    "notes": ({"topic": "k", "stars": "n", "item_id": "f"}, None),
    "visits": ({"purpose": "k", "grade": "n", "place": "n"}, None),
}  # fmt: skip
_TABLES |= dict.fromkeys(("ranked", *GROUPINGS), _TABLES["orders"])
_PLACES = {"zone": "k", "rate": "n", "level": "n"}
_NUMBERS = ("{0}", "{0}", "{0}", "{0} * 2", "{0} - {1}", "ABS({0})", "COALESCE({0}, 1)", "{0} + {1}")
_HELD = ("LEAST(GREATEST({0}, {1}), {2})", "GREATEST(LEAST({0}, {2}), {1})")
_ENDS = ((0, 50), (-5, 5), (-100, 0), (0.5, 2.25), (1, 8))
_RESULTS = ("{0}", "{0}", "{0}", "{0} / {1}", "ROUND({0}, 2)", "{0} - {1}", "COALESCE({0}, 0)")


class _Maker:
    """Writes relations and questions, with every choice drawn anew."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self._names = draw, 0
        self.parameters: dict[str, Any] = {}

    def name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    # ── relations ──

    def table(self, *names: str) -> Relation:
        """One of the tables, under a name of its own."""
        chosen = self.draw.choice(names or ("orders", "orders", "customers", "items", "notes"))
        columns, unit = _TABLES[chosen]
        alias = self.name("r")
        return Relation(
            f"{chosen} AS {alias}",
            {f"{alias}.{each}": kind for each, kind in columns.items()},
            None if unit is None else f"{alias}.{unit}",
        )

    def named(self) -> Relation:
        """Rows whose unit has a name."""
        return self.table("orders", "customers")

    def inner(self, *, named: bool = False) -> Relation:
        """Rows of any kind."""
        if self.draw.random() < 0.6:
            return self.named() if named else self.table()
        makers: list[Callable[[], Relation]] = [
            self.per_unit, self.union, lambda: self.window(self.named()), lambda: self.subquery(self.units()),
        ]  # fmt: skip
        if not named:
            makers += [lambda: self.subquery(self.public()), self.via]
        made = self.draw.choice(makers)()
        return made if made.unit is not None or not named else self.named()

    def public(self, *, outer: bool | None = None, row: bool = False) -> Relation:
        """Rows looked up in the public table."""
        left = self.table("visits") if row else self.table("orders")
        alias = self.name("p")
        (place,) = [each for each in left.columns if each.endswith(".place")]
        word = "LEFT JOIN" if (self.draw.random() < 0.5 if outer is None else outer) else "JOIN"
        more = self.draw.choice(("", "", f" AND {alias}.level >= 0", f" AND {alias}.zone <> 'x'"))
        other = f"places AS {alias}"
        if self.draw.random() < 0.2:
            other = f"(SELECT place, zone, rate + 1 AS rate, level FROM places WHERE rate < 4) AS {alias}"
        columns = {**left.columns, **{f"{alias}.{each}": kind for each, kind in _PLACES.items()}}
        return Relation(f"{left.text} {word} {other} ON {place} = {alias}.place{more}", columns, left.unit)

    def units(self, *, outer: bool | None = None) -> Relation:
        """Two relations side by side on their units."""
        left, right = self.named(), self.named()
        roll = self.draw.random()
        if roll < 0.3:
            right = self.per_unit()
        elif roll < 0.4:
            left = self.per_unit()
        elif roll < 0.5:
            made = self.subquery(self.named())
            right = right if made.unit is None else made
        word = "LEFT JOIN" if (self.draw.random() < 0.4 if outer is None else outer) else "JOIN"
        assert left.unit is not None
        assert right.unit is not None
        on = [f"{left.unit} = {right.unit}"]
        if self.draw.random() < 0.3 and left.of("n") and right.of("n"):
            pair = self.draw.choice(left.of("n")), self.draw.choice(right.of("n"))
            on.append(self.draw.choice(("{} <= {}", "{} = {}", "{} > {}")).format(*pair))
        self.draw.shuffle(on)
        text = f"{left.text} {word} {right.text} ON {' AND '.join(on)}"
        return Relation(text, {**left.columns, **right.columns}, left.unit)

    def via(self) -> Relation:
        """Rows whose owner is somebody in another table."""
        roll = self.draw.random()
        if roll < 0.45:
            return self.table("items", "notes")
        lower, upper = self.draw.choice((("items", "orders"), ("items", "orders"), ("notes", "items")))
        left, right = self.table(lower), self.table(upper)
        if roll < 0.6:
            left, right = right, left
        pointer = {"items": "order_id", "notes": "item_id"}[lower]
        ends = [next(name for name in side.columns if name.endswith(f".{pointer}")) for side in (left, right)]
        text = f"{left.text} JOIN {right.text} ON {ends[0]} = {ends[1]}"
        return Relation(text, {**left.columns, **right.columns}, left.unit or right.unit)

    def subquery(self, inner: Relation, *, keep: int = 5) -> Relation:
        """Some columns of a relation under other names, of some of its rows."""
        alias = self.name("s")
        names = self.draw.sample(list(inner.columns), min(len(inner.columns), keep))
        shown = {each: self.name("c") for each in names}
        listed = [f"{each} AS {new}" for each, new in shown.items()]
        unit = None
        if inner.unit is not None and self.draw.random() < 0.9:
            unit = self.name("u")
            listed.insert(0, f"{inner.unit} AS {unit}")
        text = f"(SELECT {', '.join(listed)} FROM {inner.text}{self.where(inner)}) AS {alias}"
        columns = {f"{alias}.{new}": inner.columns[each] for each, new in shown.items()}
        return Relation(text, columns, None if unit is None else f"{alias}.{unit}")

    def redefined(self) -> Relation:
        """Columns that have the names of others, or their own with other contents."""
        inner, alias = self.table("orders", "customers", "items"), self.name("s")
        numbers = [each for each in inner.of("n") if not each.endswith(".place")]
        names = [each.split(".")[1] for each in numbers]
        listed: list[str] = [] if inner.unit is None else [inner.unit]
        columns: dict[str, str] = {}
        for number, name in zip(self.draw.sample(numbers, len(numbers)), names, strict=True):
            new = self.draw.choice(
                ("{0}", "{0} * 3", "{0} * 1000 + 7", "-{0}", "COALESCE({0}, 99)", "0 - {0}")
            )
            listed.append(f"{new.format(number)} AS {name}")
            columns[f"{alias}.{name}"] = "n"
        for key in inner.of("k"):
            listed.append(key)
            columns[f"{alias}.{key.split('.')[1]}"] = "k"
        text = f"(SELECT {', '.join(listed)} FROM {inner.text}{self.where(inner)}) AS {alias}"
        return Relation(text, columns, None if inner.unit is None else f"{alias}.{inner.unit.split('.')[1]}")

    def per_unit(self, *, keyed: bool | None = None) -> Relation:
        """One row for each unit, or each unit and key."""
        draw = self.draw
        inner = self.named() if draw.random() < 0.6 else draw.choice((self.units, self.public, self.union))()
        if inner.unit is None:
            inner = self.named()
        alias, unit = self.name("t"), self.name("u")
        listed, groups, columns = [f"{inner.unit} AS {unit}"], [inner.unit], {}
        if inner.of("k") and (draw.random() < 0.3 if keyed is None else keyed):
            key, name = draw.choice(inner.of("k")), self.name("g")
            listed.append(f"{key} AS {name}")
            groups.append(key)
            columns[f"{alias}.{name}"] = "k"
            if draw.random() < 0.15:
                text = (
                    f"(SELECT DISTINCT {', '.join(listed)} FROM {inner.text}{self.where(inner)}) AS {alias}"
                )
                return Relation(text, columns, f"{alias}.{unit}")
        having = draw.choice(("", "", "", " HAVING COUNT(*) > 1", " HAVING COUNT(*) < 40"))
        for _ in range(draw.randint(1, 3)):
            made, kind = self.own(inner)
            name = self.name("a")
            listed.append(f"{made} AS {name}")
            columns[f"{alias}.{name}"] = kind
        by = ", ".join(each for each in groups if each is not None)
        text = f"(SELECT {', '.join(listed)} FROM {inner.text}{self.where(inner)} GROUP BY {by}{having})"
        return Relation(f"{text} AS {alias}", columns, f"{alias}.{unit}")

    def own(self, inner: Relation) -> tuple[str, str]:
        """An aggregate of one unit's rows, and what it holds."""
        number = self.number(inner)
        some = self.draw.choice(list(inner.columns))
        return self.draw.choice(
            (
                ("COUNT(*)", "f"), (f"COUNT({some})", "f"), (f"SUM({number})", "f"), (f"SUM({number})", "f"),
                (f"AVG({number})", "n"), (f"MAX({number})", "n"), (f"MIN({number})", "n"),
                (f"COUNT(DISTINCT {some})", "f"), (f"LEAST(SUM({number}), 30)", "f"),
                (f"MAX({number}) - MIN({number})", "n"),
                (f"COUNT(*) FILTER (WHERE {self.truth(inner)})", "f"),
            )
        )  # fmt: skip

    def window(self, inner: Relation) -> Relation:
        """Columns that look at the unit's other rows."""
        draw, alias = self.draw, self.name("w")
        unit = self.name("u")
        listed, columns = [f"{inner.unit} AS {unit}"], {}
        for each in draw.sample(list(inner.columns), min(4, len(inner.columns))):
            name = self.name("c")
            listed.append(f"{each} AS {name}")
            columns[f"{alias}.{name}"] = inner.columns[each]
        keys = inner.of("k", "b")
        for _ in range(draw.randint(1, 2)):
            more = f", {draw.choice(keys)}" if keys and draw.random() < 0.3 else ""
            by = f"PARTITION BY {inner.unit}{more}"
            order = f"{by} ORDER BY {draw.choice(list(inner.columns))}{draw.choice(('', ' DESC'))}"
            number, name = self.number(inner), self.name("o")
            made, kind = draw.choice(
                (
                    (f"ROW_NUMBER() OVER ({order})", "f"), (f"RANK() OVER ({order})", "f"),
                    (f"DENSE_RANK() OVER ({order})", "f"), (f"LAG({number}) OVER ({order})", "n"),
                    (f"LEAD({number}, 2) OVER ({order})", "n"), (f"SUM({number}) OVER ({by})", "f"),
                    (f"MAX({number}) OVER ({by})", "n"), (f"AVG({number}) OVER ({by})", "n"),
                    (f"COUNT(*) OVER ({by})", "f"), (f"MIN({number}) OVER ({by})", "n"),
                )
            )  # fmt: skip
            listed.append(f"{made} AS {name}")
            columns[f"{alias}.{name}"] = kind
        kept = ""
        if draw.random() < 0.25:
            order = f"PARTITION BY {inner.unit} ORDER BY {draw.choice(list(inner.columns))}"
            kept = f" QUALIFY ROW_NUMBER() OVER ({order}) <= {draw.choice((1, 3, 9))}"
        text = f"(SELECT {', '.join(listed)} FROM {inner.text}{self.where(inner)}{kept}) AS {alias}"
        return Relation(text, columns, f"{alias}.{unit}")

    def union(self) -> Relation:
        """Rows of two or three relations, one after the other."""
        parts = [self.named() for _ in range(self.draw.choice((2, 2, 3)))]
        if self.draw.random() < 0.3:
            parts[0] = self.per_unit()
        if self.draw.random() < 0.2:
            parts[-1] = self.subquery(self.named(), keep=9)
        parts = [each if each.unit is not None and each.of("n") else self.named() for each in parts]
        alias, unit = self.name("a"), self.name("u")
        kinds = [kind for kind in ("n", "n", "k") if all(part.of(kind) for part in parts)]
        names = [self.name("v") for _ in kinds]
        texts = []
        for place, part in enumerate(parts):
            chosen = [self.draw.choice(part.of(kind)) for kind in kinds]
            shown = [
                f"{part.unit} AS {unit}",
                *(f"{each} AS {new}" for each, new in zip(chosen, names, strict=True)),
            ]
            listed = shown if place == 0 else [part.unit, *chosen]
            texts.append(f"SELECT {', '.join(map(str, listed))} FROM {part.text}{self.where(part)}")
        columns = {f"{alias}.{name}": kind for name, kind in zip(names, kinds, strict=True)}
        return Relation(f"({' UNION ALL '.join(texts)}) AS {alias}", columns, f"{alias}.{unit}")

    # ── expressions ──

    def number(self, relation: Relation, *, free: bool = False) -> str:
        """A number with bounds, or with `free` without."""
        numbers, others = relation.of("n"), relation.of("f")
        if free and others:
            return self.draw.choice(others)
        if numbers and (not others or self.draw.random() < 0.7):
            shape = self.draw.choice(_NUMBERS)
            return shape.format(self.draw.choice(numbers), self.draw.choice(numbers))
        low, high = self.draw.choice(_ENDS)
        if not others:
            return "1"
        return self.draw.choice(_HELD).format(self.draw.choice(others), low, high)

    def truth(self, relation: Relation) -> str:
        """A condition that many rows satisfy."""
        draw = self.draw
        options = [f"{each} IS NOT NULL" for each in list(relation.columns)[:3]]
        options += [
            f"{each} {draw.choice(('>', '<=', '<>'))} {self.constant(1)}" for each in relation.of("n")
        ]
        options += [f"({each} >= {self.constant(2)} OR {each} < 100)" for each in relation.of("f")]
        options += [f"{each} <> {self.constant('m2')}" for each in relation.of("t")]
        options += [f"{each} > DATE '2019-12-31'" for each in relation.of("d")]
        return draw.choice(options)

    def constant(self, value: Any) -> str:
        if not self.parameters:
            return f"'{value}'" if isinstance(value, str) else str(value)
        name = self.name("x")
        self.parameters[name] = value
        return f"${name}"

    def where(self, relation: Relation) -> str:
        return f" WHERE {self.truth(relation)}" if self.draw.random() < 0.25 else ""

    # ── questions ──

    def aggregate(self, relation: Relation, *, free: bool = False) -> str:
        draw = self.draw
        number, some = self.number(relation, free=free), draw.choice(list(relation.columns))
        roll = draw.random()
        if roll < 0.04:
            return self.quantile(relation)
        if roll < 0.08:
            return f"COUNT(DISTINCT {some})"
        if relation.unit is not None and roll < 0.2:
            return f"COUNT(DISTINCT {relation.unit})"
        truth = self.truth(relation)
        return draw.choice(
            ("COUNT(*)", "COUNT(*)", f"COUNT({some})", f"SUM({number})", f"SUM({number})", f"AVG({number})",
             f"VAR_POP({number})", f"STDDEV({number})", f"SUM({number}) FILTER (WHERE {truth})",
             f"COUNT_IF({truth})")
            if not free
            else (f"SUM({number})", f"AVG({number})", f"VAR_POP({number})", f"STDDEV({number})",
                  f"MEDIAN({number})", f"MIN({number})")
        )  # fmt: skip

    def quantile(self, relation: Relation) -> str:
        number = self.number(relation)
        shapes = ("MIN({})", "MAX({})", "MEDIAN({})", "QUANTILE_CONT({}, 0.25)", "PERCENTILE_CONT({}, 0.9)")
        return self.draw.choice(shapes).format(number)

    def pair(self, relation: Relation) -> str:
        shape = self.draw.choice(("CORR({}, {})", "COVAR_POP({}, {})", "COVAR_SAMP({}, {})"))
        return shape.format(self.number(relation), self.number(relation))

    def contributed(self, relation: Relation) -> str:
        """An aggregate with bounds for what a unit adds to a group."""
        draw = self.draw
        low, high = draw.choice(((0, 50), (-5, 5), (-100, -1), (0, 1), (-2.5, 8)))
        number = draw.choice(relation.of("n", "f"))
        group = f"contribution_bounds_per_group => ({low}, {high})"
        row = f"contribution_bounds_per_row => ({low}, {high})"
        return draw.choice(
            (f"SUM({number}, {group})", f"AVG({number}, {group})", f"SUM({number}, {group})",
             f"COUNT(*, contribution_bounds_per_group => (0, {draw.choice((1, 3, 40))}))",
             f"AVG({number}, {group})",
             f"COUNT({number}, contribution_bounds_per_group => (0, 7))", f"VAR_POP({number}, {row})",
             f"PERCENTILE_CONT({number}, 0.5, {row})", "COUNT(*)", f"SUM({number}, {group})")
        )  # fmt: skip

    def keys(self, relation: Relation, *, least: int = 0, open_: bool = False) -> list[str]:
        draw = self.draw
        public = relation.of("k", "b")
        if open_:
            shapes = {"t": ("{}", "UPPER({})"), "d": ("{}",), "f": ("CAST({} AS INTEGER)",)}
            names = [each for each in relation.of(*shapes) if not each.endswith("_id")]
            name = draw.choice(names) if names else draw.choice(list(relation.columns))
            found = [draw.choice(shapes.get(relation.columns[name], ("{}",))).format(name)]
            if public and draw.random() < 0.3:
                found.append(draw.choice(public))
            return list(dict.fromkeys(found))
        count = max(least, draw.choice((0, 1, 1, 1, 2)))
        public += [f"EXTRACT(month FROM {each})" for each in relation.of("d")][:1]
        return draw.sample(public, min(count, len(public)))

    def select(
        self, relation: Relation, aggregates: list[str], keys: list[str], *, head: str = "", by: str = "{}"
    ) -> str:
        draw = self.draw
        shown = [f"{key} AS k{i}" for i, key in enumerate(keys)]
        outputs = []
        for i, each in enumerate(aggregates):
            other = draw.choice(aggregates)
            outputs.append(f"{draw.choice(_RESULTS).format(each, other)} AS x{i}")
        text = f"SELECT {head}{', '.join([*shown, *outputs])} FROM {relation.text}{self.where(relation)}"
        if keys:
            text += " GROUP BY " + by.format(", ".join(keys))
        if draw.random() < 0.1:
            text += " HAVING x0 > 1"
        return text + draw.choice(("", "", "", " ORDER BY x0 DESC", " LIMIT 3"))

    def question(self, relation: Relation, **options: Any) -> str:
        """A usual question about a relation."""
        free = options.pop("free", False)
        some = [self.aggregate(relation, free=free) for _ in range(self.draw.choice((1, 1, 2)))]
        return self.select(relation, some, self.keys(relation, **options))


def _plain(build: Callable[[_Maker], Relation]) -> Callable[[_Maker], Asked]:
    return lambda maker: Asked(maker.question(build(maker)))


def _with(maker: _Maker) -> Asked:
    """The same as a subquery, named beforehand; its name is used once or twice."""
    made = maker.subquery(maker.inner())
    body, alias = made.text.rsplit(" AS ", 1)
    text = maker.question(replace(made, text=f"named AS {alias}"))
    return Asked(f"WITH named AS {body} {text}")


def _parameters(maker: _Maker) -> Asked:
    maker.parameters["first"] = 3
    relation = maker.draw.choice((maker.table, maker.per_unit, lambda: maker.subquery(maker.inner())))()
    number = maker.number(relation)
    key = maker.keys(relation)
    text = maker.select(relation, [f"SUM(LEAST(GREATEST({number}, -$first), $first))", "COUNT(*)"], key)
    used = set(re.findall(r"\$(\w+)", text))
    return Asked(text, parameters={name: value for name, value in maker.parameters.items() if name in used})


def _choose(maker: _Maker) -> Asked:
    return Asked(maker.question(maker.inner(), least=1), bounding="choose")


def _open(maker: _Maker) -> Asked:
    relation = maker.table("orders") if maker.draw.random() < 0.5 else maker.inner()
    return Asked(maker.question(relation, open_=True))


def _google(maker: _Maker) -> Asked:
    draw = maker.draw
    relation = maker.table("orders", "customers", "items") if draw.random() < 0.6 else maker.inner()
    if not relation.of("n", "f"):
        relation = maker.named()
    options = ["epsilon = 1", "delta = 1e-6"]
    if draw.random() < 0.5:
        options.append("max_groups_contributed = 1")
    some = [maker.contributed(relation) for _ in range(draw.choice((1, 1, 2)))]
    keys = maker.keys(relation, open_=draw.random() < 0.2)
    head = f"WITH DIFFERENTIAL_PRIVACY OPTIONS({', '.join(options)}) "
    return Asked(maker.select(relation, some, keys, head=head))


def _quantiles(maker: _Maker) -> Asked:
    relation = maker.inner()
    some = [maker.quantile(relation) for _ in range(maker.draw.choice((1, 2)))]
    return Asked(maker.select(relation, some, maker.keys(relation, open_=maker.draw.random() < 0.2)))


def _distinct(maker: _Maker) -> Asked:
    relation = maker.inner()
    some = [f"COUNT(DISTINCT {maker.draw.choice(list(relation.columns))})"]
    if maker.draw.random() < 0.3:
        some.append(maker.aggregate(relation))
    return Asked(maker.select(relation, some, maker.keys(relation, open_=maker.draw.random() < 0.2)))


def _moments(maker: _Maker) -> Asked:
    relation = maker.inner()
    return Asked(maker.select(relation, [maker.pair(relation)], maker.keys(relation)))


def _auto(maker: _Maker) -> Asked:
    relation = maker.draw.choice((maker.per_unit, lambda: maker.table("orders"), maker.inner))()
    if not relation.of("f"):
        relation = maker.table("orders")
    ends = maker.draw.choice(((0, 1), (-8, 128), (0, 1024), (-1, 0)))
    return Asked(maker.question(relation, free=True), auto=(Fraction(ends[0]), Fraction(ends[1])))


def _prepared(maker: _Maker) -> Asked:
    relation = maker.table("ranked")
    if maker.draw.random() < 0.8:
        relation = replace(relation, unit=None)  # units are not counted by ranks of rows
    return Asked(maker.question(relation, open_=maker.draw.random() < 0.15), bounding="prepared")


def _grouped(maker: _Maker) -> Asked:
    draw = maker.draw
    name = draw.choice(tuple(GROUPINGS))
    relation = maker.table(name)
    keys = [each for each in relation.columns if each.split(".")[1] in GROUPINGS[name]]
    draw.shuffle(keys)
    head = ""
    if draw.random() < 0.25:
        limit = draw.choice(("", ", max_groups_contributed = 1"))
        head = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-6{limit}) "
    some = [maker.aggregate(relation) for _ in range(draw.choice((1, 1, 2)))]
    return Asked(maker.select(relation, some, keys, head=head), bounding="grouped")


def _levels(maker: _Maker) -> Asked:
    relation = maker.draw.choice((maker.table, maker.units, maker.public))()
    keys = maker.keys(relation, least=2)
    by = maker.draw.choice(("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"))
    number, truth = maker.number(relation), maker.truth(relation)
    some = [maker.draw.choice((f"SUM({number})", "COUNT(*)", f"AVG({number})", f"COUNT_IF({truth})"))]
    if maker.draw.random() < 0.3:
        some.append(maker.aggregate(relation))
    return Asked(maker.select(relation, some, keys, by=by))


def _open_levels(maker: _Maker) -> Asked:
    draw = maker.draw
    relation = maker.table("orders") if draw.random() < 0.6 else draw.choice((maker.units, maker.public))()
    if not relation.of("t", "d"):
        relation = maker.table("orders")
    keys = maker.keys(relation, open_=True)
    keys += [each for each in (draw.choice(relation.of("t", "d", "k", "b")),) if each not in keys]
    draw.shuffle(keys)
    shapes = ("ROLLUP ({})", "CUBE ({})", "GROUPING SETS ({})", "GROUPING SETS (({}), ())", "ROLLUP (({}))")
    by = draw.choice(shapes)
    number, truth = maker.number(relation), maker.truth(relation)
    some = [draw.choice((f"SUM({number})", "COUNT(*)", "COUNT(*)", f"AVG({number})", f"COUNT_IF({truth})"))]
    return Asked(maker.select(relation, some, keys, by=by))


FORMS: dict[str, Callable[[_Maker], Asked]] = {
    "public inner": _plain(lambda maker: maker.public(outer=False)),
    "public left": _plain(lambda maker: maker.public(outer=True)),
    "public, rows as units": _plain(lambda maker: maker.public(row=True)),
    "units inner": _plain(lambda maker: maker.units(outer=False)),
    "units left": _plain(lambda maker: maker.units(outer=True)),
    "via": _plain(_Maker.via),
    "subquery": _plain(lambda maker: maker.subquery(maker.inner())),
    "with": _with,
    "redefined": _plain(_Maker.redefined),
    "per unit": _plain(lambda maker: maker.per_unit(keyed=False)),
    "per unit and key": _plain(lambda maker: maker.per_unit(keyed=True)),
    "window": _plain(lambda maker: maker.window(maker.inner(named=True))),
    "union": _plain(_Maker.union),
    "parameters": _parameters,
    "choose": _choose,
    "open keys": _open,
    "google": _google,
    "quantiles": _quantiles,
    "distinct": _distinct,
    "moments": _moments,
    "auto bounds": _auto,
    "prepared": _prepared,
    "grouped": _grouped,
    "levels": _levels,
    "open levels": _open_levels,
}
"""How each form of a question is written."""


def make_shape(draw: random.Random, form: str) -> Asked:
    """One random question of a form."""
    return FORMS[form](_Maker(draw))
