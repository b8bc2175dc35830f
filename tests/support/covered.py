"""A table with heavy units, questions about it, and their answers over all rows."""

import random

import duckdb
import pyarrow as pa

import sfumato as sf

SCHEMA = {
    "g": sf.Enum("A", "B", "C"),
    "city": sf.Text(),
    "x": sf.Int(0, 10),
    "y": sf.Int(-6, 6, nullable=False),
    "z": sf.Float(-9, -1),
}
UNIT = sf.PrivacyUnit("who", max_groups=2, max_rows=4)
SURE = 1 - 1e-9  # so that no test fails by chance

ROWS = {
    "COUNT(*)": "one-sided",
    "COUNT(x)": "one-sided",
    "COUNT(*) + 2 * COUNT(x) + 7": "one-sided",
    "-COUNT(*) / 4": "one-sided",
    "COUNT(*) - COUNT(x)": "open",
    "SUM(x)": "one-sided",
    "SUM(x) + COUNT(*)": "one-sided",
    "SUM(y)": "open",
    "SUM(-z)": "one-sided",
    "SUM(z)": "one-sided",
    "SUM(z) - SUM(x)": "one-sided",
    "SUM(x) + SUM(z)": "open",
    "AVG(x)": "range",
    "AVG(y)": "range",
    "SUM(x) / COUNT(*)": "range",
    "100.0 * COUNT(x) / NULLIF(COUNT(*), 0)": "range",
    "SUM(CASE WHEN y > 0 THEN 1 ELSE 0 END) / COUNT(*)": "range",
    "AVG(x) - AVG(y)": "range",
    "SQRT(SUM(x))": "one-sided",
    "ABS(SUM(y))": "open",
    "GREATEST(COUNT(*), 3)": "one-sided",
    "VAR_POP(x)": "range",
}
UNITS = {"COUNT(DISTINCT who)": "one-sided", "COUNT(*) / COUNT(DISTINCT who)": "one-sided"}
BESIDE = {"MEDIAN(x)": "range", "MAX(y)": "range", "MIN(x)": "range", "COUNT(DISTINCT y)": "one-sided"}


def rows(seed=5):
    """Heavy units with rows of one sign each, light ones, rows without a unit or with another key."""
    draw = random.Random(seed)

    def row(who, g, y):
        x = draw.choice([None, 0, 3, 10, 40])
        return {
            "who": who,
            "g": g,
            "city": draw.choice("pqr"),
            "x": x,
            "y": y,
            "z": -1.5 * draw.randint(1, 5),
        }

    heavy = [row(0, "A", -6) for _ in range(60)] + [row(1, "B", 6) for _ in range(60)]
    spread = [row(2, g, 1) for g in "ABC" for _ in range(9)] + [row(3, g, 0) for g in "ABC"]
    light = [row(10 + at, draw.choice("ABX"), draw.randint(-9, 9)) for at in range(60)]
    nobody = [row(None, "A", 6) for _ in range(5)]
    return heavy + spread + light + nobody


DATA = rows()
SOURCE = pa.Table.from_pylist(DATA)


def truth(columns, key, where, *, source=SOURCE, anyone=False):
    """The same aggregates over all rows that belong to a unit, numbers held within their bounds."""
    # Values are counted as they are; all other aggregates hold them.
    columns = [column.replace("DISTINCT y", "DISTINCT raw") for column in columns]
    held = """SELECT who, g, city, y AS raw, CASE WHEN x >= 0 THEN least(x, 10) END AS x,
              least(greatest(y, -6), 6) AS y, least(greatest(z, -9), -1) AS z
              FROM source WHERE who IS NOT NULL AND g IN ('A', 'B', 'C')"""
    if anyone:  # each row is a unit
        held = held.replace("who IS NOT NULL", "true")
    if key != "g":
        held = held.replace(" AND g IN ('A', 'B', 'C')", "")
    shown = ", ".join(f"({column})::DOUBLE AS c{at}" for at, column in enumerate(columns))
    with duckdb.connect() as connection:
        connection.register("source", source)
        grouped = f"SELECT {key or 'NULL'} AS k, {shown} FROM ({held}) WHERE {where} GROUP BY 1"
        return {row[0]: row[1:] for row in connection.sql(grouped).fetchall()}


def asked(session, columns, key, where, bounding):
    """The columns of a question, and its release with almost no noise."""
    if session.tables["t"].unit.column is None:
        columns = [column for column in columns if "who" not in column]
    shown = ", ".join(f"{column} AS c{at}" for at, column in enumerate(columns))
    sql = f"SELECT {key + ' AS k, ' if key else ''}{shown} FROM t WHERE {where}"
    query = session.sql(sql + (" GROUP BY 1" if key else ""))
    return columns, query.release(epsilon=400 if key == "city" else 10**5, delta="1e-6", bounding=bounding)


def held(release, columns, key, where, source=SOURCE):
    """For each cell the covering interval and the truth; rows of groups that hold nothing have none."""
    table, ends = release.table, release.interval(SURE)
    anyone = release.quote.measured.unit.column is None
    known = truth(columns, key, where, source=source, anyone=anyone)
    for row in range(table.num_rows):
        true = known.get(table["k"][row].as_py() if key else None)
        for at, column in enumerate(columns):
            low, high = (ends[f"c{at}_{end}"][row].as_py() for end in ("low", "high"))
            if true is not None and true[at] is not None and low is not None:
                yield column, low, high, true[at]
