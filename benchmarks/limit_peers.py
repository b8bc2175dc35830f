"""Qrlew and SmartNoise, by the interpreter of an environment of their own: see `limits.py`.

A JSON object on the input names a file with the rows and what is asked; one on the output has the answers,
with the wall and CPU seconds of each where the whole question is asked again each time.
This file imports nothing of the others, and each peer only where it is used.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any

DISTRIBUTIONS = ("pyqrlew", "smartnoise-sql", "opendp", "numpy", "pandas", "duckdb")
QUERIES = {
    "count": "SELECT COUNT(*) AS x FROM {}",
    "sum": "SELECT SUM(amount) AS x FROM {}",
    "mean": "SELECT AVG(amount) AS x FROM {}",
    "groups": "SELECT shop AS shop, COUNT(*) AS x FROM {} GROUP BY shop",
    "sums": "SELECT shop AS shop, SUM(amount) AS s, AVG(amount) AS m FROM {} GROUP BY shop",
}

Draw = Callable[[], Any]


def qrlew(rows: Any, ask: dict[str, Any]) -> Draw:
    """The rewritten query, run by DuckDB: limits are in the Euclidean norm of a unit's contributions."""
    import duckdb
    import pyqrlew

    public = _public(rows).with_range(None, "t", "amount", 0.0, ask["top"])
    public = public.with_possible_values(None, "t", "shop", sorted(set(rows["shop"])))
    made = public.relation(QUERIES[ask["query"]].format("t")).rewrite_with_differential_privacy(
        public,
        [("t", [], "user_id")],
        {"epsilon": ask["epsilon"], "delta": ask["delta"]},
        max_multiplicity=float(ask["rows"]),
        max_multiplicity_share=1.0,
    )
    text = made.relation().to_query(pyqrlew.Dialect.PostgreSql)
    connection = duckdb.connect()
    connection.register("t", rows)

    def draw() -> Any:
        return _shown(connection.sql(text).fetchall(), ask)

    return draw


def smartnoise(rows: Any, ask: dict[str, Any]) -> Draw:
    """SmartNoise's own engine over a data frame, which samples so many rows of each unit."""
    import snsql

    table = {
        "row_privacy": False,
        "max_ids": ask["rows"],
        "sample_max_ids": True,
        "censor_dims": False,
        "clamp_counts": False,
        "user_id": {"type": "int", "private_id": True},
        "amount": {"type": "float", "lower": 0.0, "upper": ask["top"]},
        "shop": {"type": "string"},
    }
    text = QUERIES[ask["query"]].format("db.t")

    def reader(epsilon: float) -> Any:
        privacy = snsql.Privacy(epsilon=epsilon, delta=ask["delta"])
        return snsql.from_df(rows, privacy=privacy, metadata={"": {"db": {"t": table}}})

    # Each column of its own plan costs epsilon: an average is paid twice.
    cost = reader(ask["epsilon"]).get_privacy_cost(text)[0]
    one = reader(ask["epsilon"] ** 2 / cost)

    def draw() -> Any:
        return _shown(one.execute(text)[1:], ask)

    return draw


def _shown(found: Any, ask: dict[str, Any]) -> Any:
    """The rows of a result as one number, or by the first of them."""
    if ask["query"] in ("groups", "sums"):
        return {row[0]: row[1] if len(row) == 2 else list(row[1:]) for row in found}
    return found[0][0]


_known: list[Any] = []


def _public(rows: Any) -> Any:
    """What Qrlew takes for public: the schema and the exact number of rows; found out once."""
    import pyqrlew
    import sqlalchemy

    if not _known:
        engine = sqlalchemy.create_engine("sqlite://")
        rows.to_sql("t", engine, index=False)
        _known.append(pyqrlew.Dataset.from_database("d", engine))
    return _known[0]


PEERS = {"Qrlew": qrlew, "SmartNoise": smartnoise}


def _answers(rows: Any, ask: dict[str, Any]) -> dict[str, Any]:
    try:
        draw = PEERS[ask["who"]](rows, ask)
    except ImportError as missing:
        return {"missing": str(missing)}
    if not ask.get("timed"):
        return {"answers": [draw() for _ in range(ask["times"])]}
    walls, cpus = [], []
    for _ in range(ask["times"]):
        cpu, wall = time.process_time(), time.perf_counter()
        PEERS[ask["who"]](rows, ask)()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return {"walls": walls, "cpus": cpus}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def main() -> None:
    """Answer one request."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever peers print goes to the other stream
    warnings.simplefilter("ignore")
    import pandas

    request = json.load(sys.stdin)
    rows = pandas.read_csv(request["rows"])
    made = [_answers(rows, ask) for ask in request["asks"]]
    json.dump({"made": made, "versions": {name: _version(name) for name in DISTRIBUTIONS}}, answers)
    answers.close()


if __name__ == "__main__":
    main()
