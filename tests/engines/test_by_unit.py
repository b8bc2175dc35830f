"""A question read unit by unit, on every engine: what some units add is what a table of them alone has."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from sfumato.engines.dialect import PORTABLE
from sfumato.errors import QueryRefused, SourceUnusable
from sfumato.plan.questions.bounding import boundings
from sfumato.schema import Date, Enum, Int, PrivacyUnit, PrivateTable, Text
from sfumato.session.reading import reading_of_some
from sfumato.session.vault import Vault
from sfumato.sql.asking import ask
from windows_of_time import is_id, world

SCHEMA = {"day": Date(), "g": Int(0, 1), "shop": Enum(["a", "b"]), "place": Text(), "v": Int(0, 9)}
FORMS = {
    "weights": ("SELECT g, COUNT(*) AS n, SUM(v) AS t FROM t GROUP BY g", "reweight"),
    "weights, two keys": ("SELECT g, shop, AVG(v) AS m FROM t WHERE v > 1 GROUP BY g, shop", "reweight"),
    "units": ("SELECT g, COUNT(DISTINCT who) AS u, SUM(v) AS t FROM t GROUP BY g", "reweight"),
    "a choice": ("SELECT g, shop, COUNT(*) AS n, SUM(v) AS t FROM t GROUP BY g, shop", "choose"),
    "found": ("SELECT place, COUNT(*) AS n, SUM(v) AS t FROM t GROUP BY place", "choose"),
    "found, two keys": ("SELECT g, place, COUNT(*) AS n FROM t GROUP BY g, place", "choose"),
}


def rows_of(kind):
    """Rows of the world of windows, with some more columns."""
    rows, ids, _ = world(kind, 0)
    draw = random.Random(1)
    more = {
        "shop": pa.array([draw.choice(["a", "b", "c"]) for _ in ids]),
        "place": pa.array([draw.choice(["x", "y", "z", None]) for _ in ids]),
        "v": pa.array([draw.choice([0, 3, 9, 12, None]) for _ in ids], pa.int64()),
    }
    for name, values in more.items():
        rows = rows.append_column(name, values)
    return rows.drop_columns(["at"]), ids


def opened(engine, name, rows, form, window):
    """The question about a table, with a vault that reads it."""
    text, way = FORMS[form]
    unit = PrivacyUnit("who", max_groups=2, max_rows=3, window=window, time=None if window is None else "day")
    tables = {name: PrivateTable(name, source=None, unit=unit, schema=SCHEMA)}
    plan = ask(text.replace(" t ", f" {name} "), tables).plan.asking(bounding=boundings()[way])
    (measured,) = plan.recipe.questions[:1]
    return measured, Vault(engine, tables, {name: 5}, {name: PORTABLE.name})


def read_by_unit(vault, measured, admit):
    answer = vault._engine.fetch(vault._units_statement(measured, None))
    return reading_of_some(answer, measured, vault.kinds(measured), admit)


def same(one, other):
    """Whether two readings are one; a group without anybody may be there or not."""
    kept = [
        {
            tuple(group): (*(int(column[row]) for column in reading.columns),)
            + (() if reading.units is None else (int(reading.units[row]),))
            for row, group in enumerate(reading.groups)
        }
        for reading in (one, other)
    ]
    return kept[0] == kept[1]


@pytest.mark.parametrize(("kind", "window"), [("text", "week"), ("float", None)])
def test_what_some_units_add_is_what_they_have_alone(make_shared, kind, window):
    engine = make_shared()
    rows, ids = rows_of(kind)
    chosen = {one for place, one in enumerate(sorted({one for one in ids if is_id(one)})) if place % 3}
    some = rows.filter(pa.array([one in chosen for one in ids]))
    names = [f"{each}_{kind.replace(' ', '_')}_{window}" for each in ("whole", "some")]
    kinds = {name: column.kind for name, column in SCHEMA.items()}
    try:
        for name, source in zip(names, (rows, some), strict=True):
            engine.attach(name, source, kinds, unit="who")
    except SourceUnusable:
        pytest.skip("the engine does not take these ids")
    for form in FORMS:
        measured, vault = opened(engine, names[0], rows, form, window)
        _, alone = opened(engine, names[1], some, form, window)
        theirs, _ = opened(engine, names[1], some, form, window)
        try:
            vault.check([measured])
        except QueryRefused:
            assert engine.dialect.name == "datafusion"
            continue
        everybody, they = Watched(), Watched()
        assert same(read_by_unit(vault, measured, everybody), vault._read(measured, 0)), form
        assert len(set(everybody.units)) == len(everybody.units) > 5
        read_by_unit(alone, theirs, they)
        assert set(they.units) < set(everybody.units)
        few = read_by_unit(vault, measured, lambda units, those=they.units: np.isin(units, those))
        assert same(few, alone._read(theirs, 0)), form


class Watched:
    """Admits everybody, and keeps who was asked for."""

    def __call__(self, units):
        self.units = units
        return np.ones(len(units), bool)


def test_rows_of_nobody_count_nowhere():
    answer = pa.table({"u": [None, "1", "1"], "k0": ["x", "x", "y"], "m0": [5, 1, 2], "s": [1, 1, 1]})
    unit = PrivacyUnit("who", max_groups=2)
    tables = {"t": PrivateTable("t", source=None, unit=unit, schema=SCHEMA)}
    plan = ask("SELECT place, COUNT(*) AS n FROM t GROUP BY place", tables).plan.asking(counted=True)
    (measured,) = plan.recipe.questions
    found = reading_of_some(answer, measured, ["text"], Watched())
    assert [*map(tuple, found.groups)] == [("x",), ("y",)]
    assert found.columns[0].tolist() == [1, 2]
