"""The conformance kit of engines: what their dialect means, what they show of a source, what they refuse."""

from __future__ import annotations

import datetime
import decimal
import functools
import hashlib
import itertools
import math
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from sfumato.engines import Engine
from sfumato.engines.base import UNIT_COLUMN, Source, missing_members, pointer_column
from sfumato.engines.dialect import PORTABLE
from sfumato.errors import EngineFailed, SourceUnusable
from sfumato.plan.expressions.tree import Column
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.questions.nodes import Measurement
from sfumato.schema import Enum, Float, Int, Kind, PrivacyUnit, PrivateTable
from sfumato.sql.read.parse import parse
from sfumato.sql.write.fixed_point import fixed_point
from sfumato.sql.write.lists import is_in
from sfumato.sql.write.lower import lower
from sfumato.sql.write.pieces import column, number, select, table
from sfumato.sql.write.typed import Typed
from sfumato.testing.engine_functions import declaration_faults, function_faults
from sfumato.testing.statistics import discrete_finding

__all__ = ["check_engine", "engine_faults"]

Make: TypeAlias = Callable[[], Engine]
Given: TypeAlias = Callable[[pa.Table], Source]

_ALPHA = 1e-9
_FLOATS = (0.0, -0.0, 1.5, -2.5, 99.7, -0.3, 2.0**53, -1e300, 5e-324, math.inf, -math.inf, math.nan, None)
_WHOLE = (0, 1, -1, 7, -7, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), None)
_TEXTS = ("", "a", "A", " a", "12", "Zürich", "日本語", 'it\'s "quoted"', None)
_DAYS = (datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), None)
_LOTS = [2**63 - 1] * 5 + [-(2**63)] * 2 + [None, 3]
_PAIRS = [(a, b) for a in _WHOLE for b in (1, 2, 3, 7, 2**40, 2**62) if a is not None]
_OTHERS: dict[str, dict[str, list[Any]]] = {
    "l": {"i": _LOTS},
    "j": {"i": [a for a, _ in _PAIRS], "j": [b for _, b in _PAIRS]},
    "w": {"i": ["a"]},
    "c": {
        "t": ["x", "", "1e", None],
        "b": [2**63 - 1, -(2**63), 0, None],
        "z": [1e300, -1e19, math.nan, None],
    },
}
"""Tables of the checks of a dialect: large numbers, pairs of them, a text, what casts must not fail on."""
_OTHER_KINDS: dict[type, Kind] = {int: "integer", str: "text", float: "float"}
_SECRET = "canary-71"
_KINDS: dict[str, Kind] = {"i": "integer", "x": "float", "t": "text", "p": "boolean", "d": "date"}


def check_engine(make: Make, given: Given = lambda rows: rows) -> None:
    """Assert what must hold of every engine.

    * protocol: all members are there;
    * functions: each scalar function has a form or a reason why it is refused, no name is unknown, and what
      is not declared to differ gives what DuckDB gives, to the last bit, over odd and ordinary rows;
    * shown: columns have their canonical types and values, the unit and pointers those of the source, which
      is whole, and no table has ranks that it was not prepared with;
    * dialect: each piece means what `Dialect` says, on values at the ends of their types;
    * lists: a value is found among many constants if it is one of them, and NULL is not looked for;
    * digest: a function of its arguments, by which every choice is met as often as any other, whatever the
      ids are like;
    * answers: whole questions, against Python, for every order of the rows;
    * public: values and keys of public tables, and of no other;
    * refusal: what is not a SELECT over attached tables, a missing column, a name that is kept, a closed
      engine: an error of its class, with an empty chain and no value of the data.

    Args:
        make: gives a fresh engine.
        given: gives a source from an Arrow table; by default the table itself.

    Raises:
        AssertionError: listing all that fails.
    """
    faults = engine_faults(make, given)
    if faults:
        raise AssertionError("engine:\n" + "\n".join(f"  {fault}" for fault in faults))


def engine_faults(
    make: Make, given: Given = lambda rows: rows, *, checks: Collection[str] | None = None
) -> list[str]:
    """What `check_engine` finds, as a list of sentences that begin with the name of the check.

    Args:
        make: as there.
        given: as there.
        checks: the names of those to make; None: all.
    """
    engine = make()
    if not isinstance(engine, Engine):
        return [f"protocol: it lacks {', '.join(missing_members(engine))}"]
    faults: list[str] = []
    for check in (_functions, _shown, _dialect, _lists, _digest, _answers, _public, _refusal):
        name = check.__name__[1:]
        if checks is not None and name not in checks:
            continue
        one = make()
        try:
            faults += [f"{name}: {fault}" for fault in check(one, given)]
        except Exception as error:
            faults.append(f"{name}: {type(error).__name__}: {error}")
        finally:
            one.close()
    engine.close()
    engine.close()
    return faults + _closed(engine)


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return first == second or (first != first and second != second)
    return type(first) is type(second) and bool(first == second)


def _fetched(engine: Engine, of: str, columns: Sequence[tuple[str, exp.Expr]]) -> list[tuple[Any, ...]]:
    try:
        rows = engine.fetch(select(columns, table(of)))
    except EngineFailed as error:
        failing = [name for name, value in columns if not _reads(engine, of, value)]
        said = [engine.dialect.text(value.copy())[:300] for name, value in columns if name in failing]
        raise EngineFailed(f"{error} What fails: {'; '.join(said) or 'all of it together'}") from None
    return list(zip(*(rows.column(name).to_pylist() for name, _ in columns), strict=True))


def _reads(engine: Engine, of: str, value: exp.Expr) -> bool:
    """Whether one column can be read by itself."""
    try:
        engine.fetch(select([("v", value.copy())], table(of)))
    except EngineFailed:
        return False
    return True


def _functions(engine: Engine, given: Given) -> Iterator[str]:
    faults = list(declaration_faults(engine.dialect))
    yield from faults or function_faults(engine, given)


def _shown(engine: Engine, given: Given) -> Iterator[str]:
    count = max(len(_FLOATS), len(_WHOLE), len(_TEXTS))
    lists = (_WHOLE, _FLOATS, _TEXTS, (True, False, None), _DAYS)
    cells = {
        name: list(itertools.islice(itertools.cycle(values), count))
        for name, values in zip(_KINDS, lists, strict=True)
    }
    types = (pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32())
    columns = {name: pa.array(cells[name], kind) for name, kind in zip(_KINDS, types, strict=True)}
    rows = pa.table({**columns, "n": list(range(count)), "small": pa.array([1] * count, pa.int16())})
    source = given(rows)
    if list(engine.schema(source)) != rows.column_names:
        yield "schema does not list the columns of the source"
    engine.attach("t", source, {**_KINDS, "n": "integer"}, unit="t", pointers=["i"])
    wanted = [("n", column("n")), *((name, column(name)) for name in _KINDS)]
    wanted += [("u", column(UNIT_COLUMN)), ("q", column(pointer_column("i")))]
    for row in _fetched(engine, "t", wanted):
        expected = [cells[name][row[0]] for name in (*_KINDS, "t", "i")]
        for name, mine, its in zip((*_KINDS, "the unit", "a pointer"), expected, row[1:], strict=True):
            if not _same(mine, its):
                yield f"{name} is {its!r} where the source has {mine!r}"
    if engine.is_prepared("t") or engine.grouping("t") != ():
        yield "a table without ranks is said to have some"
    if not all(isinstance(scheme, str) and scheme and "://" not in scheme for scheme in engine.schemes):
        yield "schemes are not names of addresses"
    engine.check_whole(source)
    engine.attach("s", source, {"small": "float", "x": "float"})
    if {row[0] for row in _fetched(engine, "s", [("small", column("small"))])} != {1.0}:
        yield "a whole number that is declared as float is not one"
    engine.attach("t", source, {"n": "integer"})
    if len(_fetched(engine, "t", [("n", column("n"))])) != count:
        yield "a table that is attached again is not the new one"


def _dialect(engine: Engine, given: Given) -> Iterator[str]:
    dialect = engine.dialect
    pairs = [*itertools.product(_FLOATS, repeat=2)]
    rows = pa.table({"x": pa.array([a for a, _ in pairs], pa.float64()),
                     "y": pa.array([b for _, b in pairs], pa.float64())})  # fmt: skip
    engine.attach("f", given(rows), {"x": "float", "y": "float"})
    for name, cells in _OTHERS.items():  # before the first read: some engines open anew after it
        kinds: dict[str, Kind] = {each: _OTHER_KINDS[type(values[0])] for each, values in cells.items()}
        engine.attach(
            name, given(pa.table({each: pa.array(values) for each, values in cells.items()})), kinds
        )
    x, y = (column(name) for name in "xy")
    seen = [dialect.comparable(side.copy()) for side in (x, y)]
    fetched = _fetched(engine, "f", [
        ("x", x.copy()), ("y", y.copy()),
        ("nan", dialect.nan_test(x.copy())),
        ("less", exp.LT(this=seen[0].copy(), expression=seen[1].copy())),
        ("same", exp.EQ(this=seen[0].copy(), expression=seen[1].copy())),
        ("cut", dialect.truncated(x.copy())),
        ("whole", dialect.attempt(dialect.truncated(x.copy()), "integer")),
        ("wide", dialect.attempt(dialect.truncated(x.copy()), "wide")),
        ("none", dialect.fill(dialect.nan)),
    ])  # fmt: skip
    for a, b, nan, less, same, cut, whole, wide, none in fetched:
        expected = _of_floats(a, b)
        told = (nan, less, same, cut, whole, None if wide is None else int(wide))
        for name, mine, its in zip(("is_nan", "<", "=", "truncate", "a cast", "a wide cast"), expected, told,
                                   strict=True):  # fmt: skip
            if name == "a wide cast" and a is not None and not abs(a) < 2.0**125:
                continue  # beyond what is asked for
            if not _same(mine, its):
                yield f"{name} of {a!r} and {b!r} is {its!r} instead of {mine!r}"
        if none == none:
            yield f"nan is {none!r}"
    yield from _clamps(engine)
    yield from _whole_numbers(engine)
    yield from _casts(engine)


def _clamps(engine: Engine) -> Iterator[str]:
    """Doubles as integers of a fixed unit within bounds, for units below 1, of 1 and above."""
    ends = {bits: (math.trunc(-100 * 2.0**bits), math.trunc(100 * 2.0**bits)) for bits in (23, 0, -2)}
    x = column("x")
    units = [
        fixed_point(
            Typed(x.copy(), "float"), Measurement("sum", Column("x"), *ends[bits], bits), engine.dialect
        )
        for bits in ends
    ]
    wanted = [("x", x.copy()), *((f"c{place}", unit) for place, unit in enumerate(units))]
    for value, *found in _fetched(engine, "f", wanted):
        for (bits, (least, most)), its in zip(ends.items(), found, strict=True):
            mine: int | None = None
            if value is not None and not math.isnan(value):
                scaled = Fraction(min(max(value, -1e9), 1e9)) * Fraction(2) ** bits
                mine = min(max(math.trunc(scaled), least), most)
            if mine != its:
                yield f"the clamp of {value!r} in units of 2**-({bits}) is {its!r} instead of {mine!r}"


def _of_floats(a: float | None, b: float | None) -> tuple[Any, ...]:
    """What the pieces must give; NaN equals itself and is above all numbers."""
    nan = None if a is None else math.isnan(a)
    less = same = None
    if a is not None and b is not None:
        first, second = ((math.isnan(side), 0.0 if math.isnan(side) else side) for side in (a, b))
        less, same = first < second, first == second
    finite = a is not None and math.isfinite(a)
    cut = float(math.trunc(a)) if a is not None and finite else a
    whole = math.trunc(a) if a is not None and finite else None
    fits = whole is not None and -(2**63) <= whole < 2**63
    return nan, less, same, cut, whole if fits else None, whole


def _whole_numbers(engine: Engine) -> Iterator[str]:
    dialect = engine.dialect
    i, j = column("i"), column("j")
    ((total,),) = _fetched(engine, "l", [("s", dialect.total(i.copy()))])
    if int(total) != sum(lot for lot in _LOTS if lot is not None):
        yield f"the sum of {len(_LOTS)} large numbers is {total}"
    product = exp.Mul(this=dialect.widened(i.copy()), expression=j.copy())
    ((total,),) = _fetched(engine, "j", [("s", dialect.total(product))])
    if abs(int(total)) >= 2**126 or int(total) != sum(a * b for a, b in _PAIRS):
        yield f"the sum of wide products is {total}"
    fetched = _fetched(engine, "j", [
        ("i", i.copy()), ("j", j.copy()),
        ("q", dialect.fill(dialect.divide, i.copy(), j.copy())),
        ("w", dialect.fill(dialect.wide_divide, dialect.widened(i.copy()), j.copy())),
        ("g", dialect.fill(dialect.greatest, i.copy(), j.copy())),
    ])  # fmt: skip
    for a, b, quotient, wide, most in fetched:
        expected = math.trunc(Fraction(a, b))
        if int(quotient) != expected or int(wide) != expected:
            yield f"{a} divided by {b} is {quotient} or {wide} instead of {expected}"
        if most != max(a, b):
            yield f"the greater of {a} and {b} is {most}"
    types = [("i", dialect.type_name(i.copy()))]
    kinds = {_fetched(engine, name, types)[0][0] for name in ("l", "j")}
    if len(kinds) != 1 or not isinstance(next(iter(kinds)), str):
        yield f"columns of one type have the types {kinds}"
    if _fetched(engine, "w", types)[0][0] in kinds:
        yield "text and whole numbers have one type"


def _casts(engine: Engine) -> Iterator[str]:
    """Text that is not a number, and numbers that do not fit, give NULL and never an error."""
    for kind in ("integer", "float", "date", "boolean", "wide"):
        for value in [
            row[0] for row in _fetched(engine, "c", [("t", engine.dialect.attempt(column("t"), kind))])
        ]:
            if value is not None:
                yield f"text that is not one is {value!r} as {kind}"
    for value in [
        row[0] for row in _fetched(engine, "c", [("z", engine.dialect.attempt(column("z"), "integer"))])
    ]:
        if value is not None:
            yield f"a number beyond 64 bits is {value!r} as integer"
    for value, wide in _fetched(
        engine, "c", [("b", column("b")), ("w", engine.dialect.attempt(column("b"), "wide"))]
    ):
        if value is not None and int(wide) != value:
            yield f"{value} is {wide} in a wide type"


def _lists(engine: Engine, given: Given) -> Iterator[str]:
    """Every other value is looked for, among so many others that a list is no longer written out."""
    day = datetime.date(2030, 1, 1)
    fillers: dict[str, list[Any]] = {
        "i": [*range(100, 200)],
        "x": [number + 0.1 for number in range(100)],
        "t": [f"x{number},\n" for number in range(100)],
        "d": [day + datetime.timedelta(number) for number in range(100)],
    }
    values = dict(zip("ixtd", (_WHOLE, _FLOATS, (*_TEXTS, "x7,\n", "\x1f"), _DAYS), strict=True))
    for name, column_values in values.items():  # before the first read
        rows = pa.table({name: pa.array(column_values, pa.date32() if name == "d" else None)})
        engine.attach(f"of_{name}", given(rows), {name: _KINDS[name]})
    for name, column_values in values.items():
        finite = [
            value for value in column_values if value is not None and value not in (math.inf, -math.inf)
        ]
        wanted = [*fillers[name], *(value for value in finite[1::2] if value == value)]
        seen = engine.dialect.comparable(column(name)) if name == "x" else column(name)
        found = is_in(seen, wanted, engine.dialect)
        for value, inside in _fetched(engine, f"of_{name}", [("v", column(name)), ("is", found)]):
            expected = None if value is None else value in wanted
            if inside is not expected:
                yield f"{value!r} is in a list: {inside} instead of {expected}"


def _digest(engine: Engine, given: Given) -> Iterator[str]:
    draw = random.Random(7)
    yield from _portable(engine, given)
    days = pa.array([0, -(2**31) + 2, 2**31 - 2, None], pa.int32()).cast(pa.date32())
    odd = pa.table({"d": days, "x": pa.array([math.nan, -0.0, 1e308, None], pa.float64())})
    engine.attach("o", given(odd), {"d": "date", "x": "float"})
    lot = engine.dialect.chosen_by(number(1), column("d"), column("x"))
    if len(_fetched(engine, "o", [("l", lot)])) != len(odd):
        yield "rows with odd values are lost"
    ids: dict[str, list[Any]] = {
        "sequential": list(range(400)),
        "multiples of a power of two": [i << 40 for i in range(400)],
        "negative": [-i for i in range(1, 401)],
        "huge": [2**63 - 1 - i for i in range(400)],
        "random": [draw.randrange(-(2**63), 2**63) for _ in range(400)],
        "text": [f"user{i:06}" for i in range(400)],
    }
    groups: dict[str, list[Any]] = {"text": list("abcdef"), "whole numbers": list(range(6))}
    subsets = dict.fromkeys(itertools.combinations(range(6), 3), 1 / 20)
    tables = [*itertools.product(ids.items(), groups.items())]
    for place, ((kind, units), (sort, keys)) in enumerate(tables):  # before the first read: some open anew
        pairs = [*itertools.product(units, range(6))]
        rows = pa.table(
            {"u": [u for u, _ in pairs], "k": [keys[k] for _, k in pairs], "n": [k for _, k in pairs]}
        )
        id_kind: Kind = "text" if kind == "text" else "integer"
        key_kind: Kind = "text" if sort == "text" else "integer"
        engine.attach(f"d{place}", given(rows), {"u": id_kind, "k": key_kind, "n": "integer"})
    for place, ((kind, units), (sort, _)) in enumerate(tables):
        chosen: list[tuple[int, ...]] = []
        of: dict[int, dict[Any, tuple[int, ...]]] = {}
        for salt in (draw.getrandbits(63) for _ in range(5)):
            lot = engine.dialect.chosen_by(exp.cast(number(salt), "BIGINT"), column("u"), column("k"))
            window = exp.Window(this=exp.RowNumber(), partition_by=[column("u")],
                                order=exp.Order(expressions=[exp.Ordered(this=lot)]))  # fmt: skip
            by_unit: dict[Any, list[int]] = {}
            for unit, key, rank in _fetched(
                engine, f"d{place}", [("u", column("u")), ("n", column("n")), ("r", window)]
            ):
                if rank <= 3:
                    by_unit.setdefault(unit, []).append(key)
            of[salt] = {unit: tuple(sorted(own)) for unit, own in by_unit.items()}
            chosen += of[salt].values()
        if discrete_finding(chosen, subsets).p < _ALPHA:
            yield f"choices of groups that are {sort} are not even for {kind} ids"
        first, second = list(of.values())[:2]
        agree = [len({*first[unit]} & {*second[unit]}) for unit in units]
        if discrete_finding(agree, {0: 1 / 20, 1: 9 / 20, 2: 9 / 20, 3: 1 / 20}).p < _ALPHA:
            yield f"choices by two keys are not independent for {kind} ids"
        near = [len({*first[a]} & {*first[b]}) for a, b in itertools.pairwise(units)]
        if discrete_finding(near[::2], {0: 1 / 20, 1: 9 / 20, 2: 9 / 20, 3: 1 / 20}).p < _ALPHA:
            yield f"choices of neighbouring ids are not independent for {kind} ids"


def _portable(engine: Engine, given: Given) -> Iterator[str]:
    """The digest that every engine has is the same function in each of them."""
    rows = {"i": [0, -7, 2**63 - 1, None], "t": ["", "a", "Zürich\x1f日本語", None],
            "p": [True, False, None, None], "d": [*_DAYS]}  # fmt: skip
    engine.attach("p", given(pa.table(rows)), {name: _KINDS[name] for name in rows})
    portable = engine.dialect.choosing_by(PORTABLE.name)
    lot = portable.chosen_by(exp.cast(number(5), "BIGINT"), *map(column, rows))
    for *values, told in _fetched(engine, "p", [*((name, column(name)) for name in rows), ("l", lot)]):
        texts = ["!" if value is None else str(value).lower() if value in (True, False) else str(value)
                 for value in (5, *values)]  # fmt: skip
        if told != hashlib.md5("\x1f".join(texts).encode(), usedforsecurity=False).hexdigest():
            yield f"the portable digest of {values} is {told!r}"


def _answers(engine: Engine, given: Given) -> Iterator[str]:
    draw = random.Random(11)
    lists: tuple[list[Any], ...] = ([None, *range(40)], ["p", "q", "r", None], [*_FLOATS], [*range(-9, 10)])
    cells = [tuple(map(draw.choice, lists)) for _ in range(600)]
    schema = {"g": Enum("p", "q"), "x": Float(-2, 8), "i": Int(-5, 5)}
    kinds: dict[str, Kind] = {"g": "text", "x": "float", "i": "integer"}
    declared: list[PrivateTable] = []
    for _ in range(3):
        rows = pa.table([pa.array(values, kind) for values, kind in zip(
            zip(*cells, strict=True), (pa.int64(), pa.string(), pa.float64(), pa.int64()), strict=True)],
            names=["u", "g", "x", "i"])  # fmt: skip
        for unit in (PrivacyUnit.row(), PrivacyUnit("u", max_groups=1, max_rows=5)):
            declared.append(PrivateTable(f"t{len(declared)}", source=rows, unit=unit, schema=schema))
            engine.attach(declared[-1].name, given(rows), kinds, unit=unit.column)
        draw.shuffle(cells)
    answers: dict[tuple[str, str], list[Any]] = {}
    for private, text in itertools.product(declared, _QUESTIONS):
        asked = parse(text.format(table=private.name), {private.name: private})
        plain = _plain(engine.fetch(lower(measured_of(asked, private), private, engine.dialect, salt=5)))
        if answers.setdefault((str(private.unit.column), text), plain) != plain:
            yield f"the order of rows decides the answer to: {text.format(table='t')}"
    for group in ("p", "q"):
        of = [(x, i) for _, g, x, i in cells if g == group]
        units = [min(max(x, -2.0), 8.0) for x, _ in of if x is not None and not math.isnan(x)]
        expected = [len(of), sum(min(max(i, -5), 5) for _, i in of), len(units)]
        (told,) = [row[1:] for row in answers["None", _QUESTIONS[0]] if row[0] == group]
        if not all(word in told for word in expected):
            yield f"the answer for {group} is {told} without {expected}"


def _plain(rows: pa.Table) -> list[list[Any]]:
    """Rows in one order, whole numbers of any type as Python's."""
    whole = (int, decimal.Decimal)
    plain = [[int(v) if isinstance(v, whole) else v for v in row.values()] for row in rows.to_pylist()]
    return sorted(plain, key=repr)


_QUESTIONS = (
    "SELECT g, COUNT(*) AS n, SUM(i) AS s, COUNT(x) AS c, SUM(x) AS t FROM {table} GROUP BY g",
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM {table}",
)


def _public(engine: Engine, given: Given) -> Iterator[str]:
    rows = pa.table({"a": [3, 1, 1, None], "b": ["x", "x", "y", "y"]})
    engine.attach("k", given(rows), {"a": "integer", "b": "text"})
    engine.attach("u", given(rows), {"a": "integer", "b": "text"}, unit="b")
    if engine.values("k", "a", 5) != [1, 3] or engine.values("k", "b", 1) is not None:
        yield "values are not each once, in order, without NULL, up to the limit"
    if engine.is_unique("k", ["a"]) or not engine.is_unique("k", ["a", "b"]):
        yield "is_unique is wrong"
    for ask in (lambda: engine.values("u", "a", 5), lambda: engine.is_unique("u", ["a"])):
        yield from _refuses(ask, EngineFailed, "values of a table with a unit")


def _refusal(engine: Engine, given: Given) -> Iterator[str]:
    rows = given(pa.table({"a": [_SECRET], "b": [1]}))
    attach = engine.attach
    yield from _refuses(lambda: attach("t", rows, {"c": "text"}), SourceUnusable, "a missing column")
    yield from _refuses(lambda: attach("t", rows, {"a": "text"}, unit="c"), SourceUnusable, "a missing unit")
    kept = given(pa.table({UNIT_COLUMN: [1]}))
    yield from _refuses(lambda: attach("t", kept, {UNIT_COLUMN: "integer"}), SourceUnusable, "a kept name")
    attach("t", rows, {"a": "text", "b": "integer"})
    strange = {
        "a table that is not attached": select([("a", column("a"))], table("other")),
        "a column that is not there": select([("c", column("c"))], table("t")),
        "a statement that is not a SELECT": exp.Drop(this=table("t"), kind="TABLE"),
        "a cast that fails": select([("a", exp.cast(column("a"), "BIGINT"))], table("t")),
    }
    for what, statement in strange.items():
        yield from _refuses(functools.partial(engine.fetch, statement), EngineFailed, what)
    if _fetched(engine, "t", [("a", column("a"))]) != [(_SECRET,)]:
        yield "after a refusal it does not read any more"


def _closed(engine: Engine) -> list[str]:
    read = select([("a", column("a"))], table("t"))
    return [
        f"refusal: {fault}" for fault in _refuses(lambda: engine.fetch(read), EngineFailed, "a closed engine")
    ]


def _refuses(ask: Callable[[], object], kind: type[Exception], what: str) -> Iterator[str]:
    try:
        ask()
    except kind as error:
        if error.__cause__ is not None or error.__context__ is not None:
            yield f"the refusal of {what} has another exception in its chain"
        if _SECRET in str(error):
            yield f"the refusal of {what} quotes the data"
    except Exception as error:
        yield f"{what} raises {type(error).__name__}"
    else:
        yield f"{what} is not refused"
