"""A name that `in_sql` leaves bare is read as that name, wherever a query has one."""

import re

from sqlglot import TokenType
from sqlglot.dialects.duckdb import DuckDB

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.names import in_sql
from sfumato.plan.expressions.tree import Column, columns_of
from sfumato.sql.asking import ask


def is_read_as_itself(name):
    """As a key, in an aggregate, in WHERE and in ORDER BY."""
    table = sf.PrivateTable("t", source=None, unit=sf.PrivacyUnit.row(), schema={name: sf.Int(0, 9)})
    text = f"SELECT {name}, AVG({name}) AS z FROM t WHERE {name} >= 3 GROUP BY {name} ORDER BY {name} DESC"
    try:
        report = ask(text, {"t": table}).report
    except QueryRefused:
        return False
    (key,), (call,), (order,) = report.child.keys, report.child.aggregates, report.order
    read = key.expression == call.argument == Column(name) and order.expression == Column("k0")
    return read and list(columns_of(report.child.child.predicate)) == [name]


def test_every_word_that_sql_knows_can_be_a_column():
    words = {*DuckDB.Tokenizer.KEYWORDS, *(kind.name for kind in TokenType)}
    words |= {*DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS, *DuckDB.Parser.FUNCTION_PARSERS}
    names = {word.lower() for word in words if re.fullmatch("[A-Za-z_]+", word)}
    bare = sorted(name for name in names if in_sql(name) == name)
    assert len(bare) > 300
    assert [name for name in bare if not is_read_as_itself(name)] == []
