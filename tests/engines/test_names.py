"""What statements compute on the way is never taken for a column, whatever is called so."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import sfumato as sf
from datafusion_dialect import DATAFUSION
from postgres_engine import FilledPostgres, given, shared
from sfumato.engines.base import is_kept
from sfumato.engines.dialect import DUCKDB, Dialect
from sfumato.engines.postgres.dialect import POSTGRES, arithmetic
from sfumato.engines.spark import SPARK
from sfumato.engines.templates import bound
from sfumato.errors import SourceUnusable
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.testing import exact

DIALECTS = {each.name: each for each in (DUCKDB, POSTGRES, SPARK, DATAFUSION)}
_HOLE = re.compile(r"\{(\d+)\}")
_CONSTANT = {"round": {1}}
"""Arguments that are constants: no column stands there."""


def templates(dialect: Dialect) -> Iterator[tuple[str, str]]:
    """All pieces of a dialect's SQL that have holes, by what they are of."""
    for name in dialect.__dataclass_fields__:
        value = getattr(dialect, name)
        if isinstance(value, str) and "{0}" in value:
            yield name, value
    for part in ("casts", "casts_from", "lists", "beside_constants"):
        yield from ((f"{part} {key}", text) for key, text in getattr(dialect, part).items())
    yield from ((f"extremes {key}", text) for key, pair in dialect.extremes.items() for text in pair)
    for name, function in FUNCTIONS.items():
        form = dialect.form(name, function.sql)
        if isinstance(form, str):
            yield name, form
        elif form is not None:
            for count in (1, 2, 3, 4):
                with contextlib.suppress(KeyError, IndexError, sqlglot.ParseError):  # it takes other numbers
                    tree(form(count), dialect)
                    yield name, form(count)


def tree(text: str, dialect: Dialect) -> exp.Expr:
    return sqlglot.parse_one(_HOLE.sub(r"hole_\1", text), dialect=dialect.writer)


def own_names(text: str, dialect: Dialect) -> set[str]:
    """The names that a template gives to what it computes."""
    found = tree(text, dialect).find_all(exp.Alias, exp.TableAlias)
    return {node.alias if isinstance(node, exp.Alias) else node.name for node in found} - {""}


def variables(text: str, dialect: Dialect) -> dict[str, set[int]]:
    """The variables of a template's lambdas, with the arguments that are named where they are known."""
    found: dict[str, set[int]] = {}
    for node in tree(text, dialect).find_all(exp.Lambda):
        named = [column.name for column in node.this.find_all(exp.Column)]
        holes = {int(name.removeprefix("hole_")) for name in named if name.startswith("hole_")}
        for variable in node.expressions:
            found.setdefault(variable.name, set()).update(holes)
    return found


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_what_a_template_computes_has_a_name_that_no_column_may_have(name):
    dialect = DIALECTS[name]
    taken = {
        of: sorted(bad)
        for of, text in templates(dialect)
        if (bad := {each for each in own_names(text, dialect) if not is_kept(each)})
    }
    assert taken == {}
    for of, text in templates(dialect):
        assert all(holes <= _CONSTANT.get(of, set()) for holes in variables(text, dialect).values()), of


def test_so_has_an_argument_that_is_computed_once():
    text = bound("{0} * {0}", "postgres", [sqlglot.parse_one("x + 1")]).sql("postgres")
    names = own_names(text, POSTGRES)
    assert len(names) == 2
    assert all(map(is_kept, names))


def test_no_column_may_be_declared_under_such_a_name():
    shared()
    for name in ("sfumato 0", "Sfumato near", "sfumato unit", "SFUMATO RANK", "sfumato bound"):
        rows, kinds = pa.table({name: [1.0]}), {name: sf.Float()}
        for engine in (None, FilledPostgres()):
            table = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit.row(), schema=kinds)
            with pytest.raises(SourceUnusable, match="is kept"):
                sf.Session(table, budget=sf.Budget(1), engine=engine)


NAMES = sorted(
    {each.removeprefix("sfumato ") for _, text in templates(POSTGRES) for each in own_names(text, POSTGRES)}
)
ODD = (1e300, 1e-300, -1e200, 3.5, -7.0, 1e-160, 2.5e10, 1e308, 5e-324)
FORMS = ("{0} * {1} > 1", "{0} / {1} > 2", "MOD({0}, {1}) > 1", "({0} + 1) * {1} > 1")
TEXTS = ("2020-01-02", "44-03-15 (BC)", "0044/03/15", "no day")


def answers(engine: object, source: object, names: list[str]) -> dict[str, object]:
    """What is read of columns of these names, beside one that is called otherwise."""
    kinds = {"other": sf.Float(), **{name: sf.Float() for name in names}}
    table = sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit.row(), schema=kinds)
    found: dict[str, object] = {}
    with sf.Session(table, budget=sf.Budget(10), engine=engine) as session:
        for name in names:
            pairs = [(f'"{name}"', "other"), ("other", f'"{name}"')]
            asked = [f"COUNT_IF({form.format(*pair)})" for form in FORMS for pair in pairs]
            listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(asked))
            found[name] = exact(session.sql(f"SELECT {listed} FROM t")).table.to_pydict()
    return found


def pairs_of(names: list[str]) -> pa.Table:
    cells = list(itertools.product(ODD, ODD))
    first, second = zip(*cells, strict=True)
    return pa.table({"other": second, **dict.fromkeys(names, first)})


def test_columns_called_as_what_templates_compute_are_read_as_on_duckdb():
    shared()
    rows = pairs_of(NAMES)
    assert {"near", "moved", "mx", "ey"} <= set(NAMES)
    assert answers(None, given(rows), NAMES) == answers("duckdb", rows, NAMES)


def test_a_template_whose_names_columns_may_have_is_found(monkeypatch):
    shared()
    planted = arithmetic("multiply").replace('"sfumato near"', '"near"')
    monkeypatch.setitem(POSTGRES.forms, "multiply", planted)
    assert own_names(planted, POSTGRES) == {"near", "sfumato moved", "sfumato scaled"}
    rows = pairs_of(["near"])
    with pytest.raises(sf.errors.EngineFailed):  # one row is enough
        answers(None, given(rows), ["near"])


def test_days_are_read_of_columns_that_are_called_as_their_parts():
    shared()
    names = ["year", "rest", "day", "days", "parts"]
    rows, kinds = (
        pa.table(dict.fromkeys(names, TEXTS)),
        {name: sf.Date("0001-01-01", "2024-12-31") for name in names},
    )
    table = sf.PrivateTable("t", source=given(rows), unit=sf.PrivacyUnit.row(), schema=kinds)
    listed = ", ".join(f'COUNT("{name}") AS c{i}' for i, name in enumerate(names))
    with sf.Session(table, budget=sf.Budget(10)) as session:
        read = exact(session.sql(f"SELECT {listed} FROM t")).table
    assert read.to_pydict() == {f"c{i}": [3] for i in range(len(names))}


@pytest.mark.parametrize("alias", ["sfumato", '"sfumato bound"', '"sfumato scaled"'])
def test_tables_may_be_called_as_what_templates_read(alias):
    shared()
    rows = pa.table({"k": [1, 2, 3], "x": [1.0, 2.0, 1e300], "y": [3.0, 4.0, 1e-300]})
    keys = pa.table({"k": [1, 2, 3], "w": [1.0, 2.0, 4.0]})
    found = []
    for engine, place in ((None, given), ("duckdb", lambda each: each)):
        schema = {"k": sf.Int(0, 9), "x": sf.Float(), "y": sf.Float()}
        table = sf.PrivateTable("sfumato", source=place(rows), unit=sf.PrivacyUnit.row(), schema=schema)
        public = sf.PublicTable("p", source=place(keys), schema={"k": sf.Int(0, 9), "w": sf.Float()}, key="k")
        joined = f"FROM sfumato AS {alias} JOIN p ON {alias}.k = p.k"
        with sf.Session(table, public, budget=sf.Budget(10), engine=engine) as session:
            query = f"SELECT COUNT_IF(({alias}.x + w) * {alias}.y * w > 4.5) AS c {joined}"
            found.append(exact(session.sql(query)).table.to_pydict())
    assert found[0] == found[1]
