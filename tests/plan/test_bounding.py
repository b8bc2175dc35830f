"""Ways of bounding: one file each, found by looking, and compared by name nowhere else."""

import ast
import itertools
import pkgutil
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.question import Bounding as Offered
from sfumato.engines.dialect import DUCKDB
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.tree import Column
from sfumato.plan.prices.price import Instrument, whole_price
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.prices.words import measurement_in_words
from sfumato.plan.questions import bounding as room
from sfumato.plan.questions.bounding import Shape, asked_for, boundings
from sfumato.plan.questions.bounding._lemmas import Sensitivity, Vector, anywhere, in_few_groups
from sfumato.plan.questions.bounding.choose import Choose
from sfumato.plan.questions.bounding.prepared import Prepared
from sfumato.plan.questions.measurement import Measurement
from sfumato.plan.questions.sensitivity import sensitivity
from sfumato.schema import PrivacyUnit
from sfumato.sql.asking import ask
from sfumato.sql.write.lower import lower

A = Column("a")
SOURCE = Path(sf.__file__).parent
MEASUREMENTS = {
    "rows": Measurement("rows"),
    "present": Measurement("present", A),
    "sum": Measurement("sum", A, -2, 3),
    "units": Measurement("units"),
    "cells": Measurement("cells", A, 0, 7),
    "total": Measurement("sum", A, -2, 3, per="total"),
    "average": Measurement("sum", A, -2, 3, per="average"),
}
HELD = {
    "reweight": {"rows", "present", "sum", "units", "cells"},
    "choose": {"rows", "present", "sum", "units", "total", "average"},
    "prepared": {"rows", "present", "sum", "cells"},
    "grouped": {"rows", "present", "sum", "units"},
}


def test_each_way_is_a_file_of_its_name():
    files = {each.name for each in pkgutil.iter_modules(room.__path__)} - {"base"}
    assert {name for name in files if name[0] != "_"} == set(boundings()) == set(HELD)
    assert len({way.order for way in boundings().values()}) == len(boundings())
    assert {way.shape for way in boundings().values()} == set(Shape)


def test_their_names_on_record_stay():
    wires = {name: way.to_wire() for name, way in boundings().items()}
    assert wires.pop("reweight") == {}
    assert wires == {name: {"bounding": name} for name in ("choose", "prepared", "grouped")}


def test_no_other_module_compares_their_names():
    names, found = set(boundings()), []
    packages = (SOURCE / each for each in ("plan", "sql", "session"))
    for path in (path for each in packages for path in each.rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if any(f'"{name}"' in text for name in names) else ():
            if isinstance(node, ast.Compare | ast.MatchValue):
                words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                found += [path.name] if words & names else []
    assert found == []


def test_the_command_offers_what_may_be_asked_for():
    asked = [name for name, way in boundings().items() if way.asked]
    assert [each.value for each in Offered] == asked
    assert [asked_for(name).name for name in asked] == asked


@pytest.mark.parametrize("name", ["prepared", "grouped", "weights", "", None, 1, ["choose"]])
def test_others_may_not_be_asked_for(name):
    with pytest.raises(InvalidParameter, match='bounding is "reweight" or "choose", not'):
        asked_for(name)


@pytest.mark.parametrize("name", HELD)
def test_nothing_is_claimed_for_what_a_way_does_not_hold(name):
    way, unit = boundings()[name], PrivacyUnit("u", max_groups=2, max_rows=6)
    for kind, measurement in MEASUREMENTS.items():
        if kind in HELD[name]:
            assert sensitivity(measurement, unit, groups=3, bounding=way).l1 > 0
        else:
            with pytest.raises(InvalidParameter, match="nothing else"):
                sensitivity(measurement, unit, groups=3, bounding=way)


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
@pytest.mark.parametrize("name", HELD)
def test_sums_of_groups_on_lines_move_by_what_is_claimed_and_no_more(name, adjacency):
    """All that a unit can add at the ends of its claim, over three groups that are on lines in all ways."""
    way = boundings()[name]
    for many, kind in itertools.product((1, 2, 3), HELD[name] - {"cells"}):
        vector = Vector(
            MEASUREMENTS[kind], PrivacyUnit("u", max_groups=many, max_rows=6, adjacency=adjacency), None
        )
        few = many if way.few_groups or kind == "units" else 1
        up, down = way.ends(vector)
        added = {each for each in itertools.product({0, up, -down}, repeat=3) if sum(map(bool, each)) <= few}
        moves = added
        if adjacency == "exchange":
            pairs = itertools.product(added, added)
            moves = {tuple(x - y for x, y in zip(*pair, strict=True)) for pair in pairs}
        l1 = l2_squared = 0
        for lines in itertools.product(range(3), repeat=3):
            for move in moves:
                sums = [
                    sum(x for x, line in zip(move, lines, strict=True) if line == own) for own in range(3)
                ]
                l1 = max(l1, sum(map(abs, sums)))
                l2_squared = max(l2_squared, sum(x * x for x in sums))
        claim = way.on_lines(vector)
        assert l1 <= claim.l1
        assert l2_squared <= claim.l2_squared
        if many == 1 or adjacency == "add-remove":  # else six groups would be needed to reach it
            assert Sensitivity(l1, l2_squared) == claim


NEW = """
from dataclasses import dataclass
from typing import ClassVar

from sfumato.plan.questions.bounding.choose import Choose

__all__ = ["Twice"]


@dataclass(frozen=True, slots=True)
class Twice(Choose):
    name: ClassVar[str] = "twice"
    order: ClassVar[int] = 9

    def notes(self, unit, *, keyed, rows, units):
        return [f"Each {unit.column} counts as in the test."]
"""


def test_one_file_adds_a_way(tmp_path, monkeypatch):
    (tmp_path / "twice.py").write_text(NEW)
    monkeypatch.setattr(room, "__path__", [*room.__path__, str(tmp_path)])
    boundings.cache_clear()
    try:
        rows = pa.table({"u": [1, 1, 2], "k": ["a", "b", "a"]})
        table = sf.PrivateTable(
            "t", source=rows, unit=sf.PrivacyUnit("u", max_groups=1), schema={"k": sf.Enum("a", "b")}
        )
        with sf.Session(table, budget=sf.Budget(10**6)) as session:
            query = session.sql("SELECT k, COUNT(DISTINCT u) AS n FROM t GROUP BY k")
            release = query.release(epsilon=1000, bounding="twice")
            assert release.quote.measured.to_wire()["bounding"] == "twice"
            assert sum(release.table["n"].to_pylist()) == 2
            assert "Each u counts as in the test." in release.quote.notes
            assert not query.release(epsilon=1000, bounding="choose").free  # another question on record
    finally:
        boundings.cache_clear()
        sys.modules.pop(f"{room.__name__}.twice", None)


# ── kinds that nobody knows are an error, and not taken for the last one that is known ──


def _unknown_unit():
    unit = PrivacyUnit("u", max_groups=2, max_rows=6)
    object.__setattr__(unit, "adjacency", "other")
    return unit


def _lowered(**changes):
    table = sf.PrivateTable(
        "t", source=None, unit=PrivacyUnit("u"), schema={"k": sf.Enum("a", "b"), "a": sf.Int(0, 3)}
    )
    report = ask("SELECT k, SUM(a) AS s FROM t GROUP BY k", {"t": table}).report
    return lower(replace(measured_of(report, table), **changes), {"t": table}, DUCKDB)


class Elsewhere(Choose):
    shape = "elsewhere"


UNKNOWN = {
    "adjacency of rows": lambda: anywhere((1, 0), Vector(MEASUREMENTS["rows"], _unknown_unit(), 2)),
    "adjacency of groups": lambda: in_few_groups((1, 0), Vector(MEASUREMENTS["rows"], _unknown_unit(), 2)),
    "adjacency of values": lambda: sensitivity(Measurement("values", A), _unknown_unit(), groups=2),
    "shape": lambda: _lowered(bounding=Elsewhere()),
    "kind of weighted rows": lambda: _lowered(measurements=(Measurement("median", A),)),
    "kind of chosen rows": lambda: _lowered(bounding=Choose(), measurements=(Measurement("median", A),)),
    "kind of ranked rows": lambda: _lowered(bounding=Prepared(), measurements=(Measurement("median", A),)),
    "bounds for each": lambda: _lowered(bounding=Choose(), measurements=(Measurement("sum", A, per="year"),)),
    "words": lambda: measurement_in_words(Measurement("median", A), PrivacyUnit("u")),
    "price": lambda: whole_price("cauchy", Fraction(1), Fraction(0)),
    "noise": lambda: Instrument(MEASUREMENTS["rows"], Sensitivity(1, 1), Fraction(1)).mechanism(
        "cauchy", Fraction(1)
    ),
    "size": lambda: Instrument(MEASUREMENTS["rows"], Sensitivity(1, 1), Fraction(1)).size("cauchy"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_unknown_is_an_error(name):
    with pytest.raises(AssertionError, match="Expected code to be unreachable"):
        UNKNOWN[name]()
