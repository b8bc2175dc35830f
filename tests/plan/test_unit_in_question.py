"""The unit of a question is carried as it is, and written as it always was."""

from __future__ import annotations

import json

import pytest

import sfumato as sf
from sfumato.plan.prices.recipe import recipe
from sfumato.plan.questions.nodes import Measured
from sfumato.plan.questions.relations import rows_of
from sfumato.plan.questions.sensitivity import sensitivities
from sfumato.plan.questions.unbounded import groups_of, sizes_of
from sfumato.sql.read.parse import parse

UNITS = {
    "column": sf.PrivacyUnit("u", max_groups=2, max_rows=6),
    "exchange": sf.PrivacyUnit("u", max_rows=3, adjacency="exchange"),
    "row": sf.PrivacyUnit.row(),
    "exchanged row": sf.PrivacyUnit.row(adjacency="exchange"),
    "owner": sf.PrivacyUnit.via("orders", on={"line": "id", "year": "y"}, max_groups=3),
}
WRITTEN = {
    "column": '[["column","u"],["max_groups",2],["max_rows",6],["adjacency","add-remove"]]',
    "exchange": '[["column","u"],["max_groups",1],["max_rows",3],["adjacency","exchange"]]',
    "row": '[["column",null],["max_groups",1],["max_rows",1],["adjacency","add-remove"]]',
    "exchanged row": '[["column",null],["max_groups",1],["max_rows",1],["adjacency","exchange"]]',
    "owner": '[["column","owner in orders"],["max_groups",3],["max_rows",3],["adjacency","add-remove"],'
    '["table","orders"],["on",[["line","id"],["year","y"]]]]',
}
FINGERPRINTS = {
    "column": (
        *("5064164b66dcaf7c", "6a6a9acef52b2d71", "07ab354d63f93bbd"),
        *("396d42facf24a493", "db82f8fbfe52fa61"),
    ),
    "exchange": (
        *("3577815797fc339a", "9cabce7abb96e51e", "165ad934f78269fd"),
        *("af1fc64888ea8362", "5df626c9f1fcd0b3"),
    ),
    "row": (
        *("cbfc63d815ca93be", "3d152c6d3987ba24", "29dabad2cb76a2f3"),
        *("0d58fb3fca0d67ff",),
    ),
    "exchanged row": (
        *("e4fbba0a0c466a3a", "51b9f93bee3a57df", "b22da231035f6587"),
        *("131a92c424e1dd1e",),
    ),
    "owner": (
        *("e65a8e972bd09e58", "2b51f878ec28e5a3", "b2947c85b93af43a"),
        *("a9a1b466dc425543", "42355647803c1ec1"),
    ),
}


def questions(unit: sf.PrivacyUnit) -> tuple[Measured, ...]:
    """Every kind of question that has a unit: main, beside, about limits, about sizes, about groups."""
    schema = {"c": sf.Enum("a", "b"), "x": sf.Float(0, 8), "line": sf.Int(), "year": sf.Int()}
    orders = sf.PrivateTable(
        "orders", source=None, unit=sf.PrivacyUnit("u"), schema={"id": sf.Int(), "y": sf.Int()}
    )
    tables = {"t": sf.PrivateTable("t", source=None, unit=unit, schema=schema), "orders": orders}
    report = parse("SELECT c, COUNT(*), AVG(x), MEDIAN(x) FROM t WHERE x > 1 GROUP BY c", tables)
    rows = rows_of(report.child.source, tables)
    made = [*recipe(report, rows).questions, sizes_of(report.child.aggregates[1].argument, rows)]
    chosen = parse("SELECT line, COUNT(*) FROM t GROUP BY line", tables)
    made += [*recipe(chosen, rows).questions, groups_of(chosen, rows)]
    return tuple(each for each in made if each is not None)


@pytest.mark.parametrize("name", UNITS)
def test_a_question_is_written_as_it_always_was(name: str) -> None:
    made = questions(UNITS[name])
    assert json.dumps(made[0].to_wire()["unit"], separators=(",", ":")) == WRITTEN[name]
    assert tuple(each.fingerprint[:16] for each in made) == FINGERPRINTS[name]


@pytest.mark.parametrize("name", UNITS)
def test_no_question_makes_its_unit_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(data: object) -> sf.PrivacyUnit:
        raise AssertionError(data)

    monkeypatch.setattr(sf.PrivacyUnit, "from_dict", never)
    made = questions(UNITS[name])
    assert made[0].unit is UNITS[name]
    for each in made:
        if each.measurements:
            sensitivities(each)
    assert len({hash(each) for each in made}) == len(made)
