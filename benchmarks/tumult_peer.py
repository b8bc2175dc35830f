"""Tumult Analytics by the interpreter of an environment of its own: see `engines.py`.

`python tumult_peer.py SOURCE THREADS MEMORY` starts Spark, says which versions there are in a line of JSON,
and then, for each line that it reads, asks for the sums and the means by country and says so in another. It
is watched from outside, as its work is in several processes. This file imports nothing of the others.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata
from pathlib import Path

COUNTRIES = [f"C{i:02d}" for i in range(30)]
GROUPS, ROWS = 3, 5  # of a user: countries, and rows in each
DISTRIBUTIONS = ("tmlt.analytics", "tmlt.core", "pyspark", "pandas", "numpy", "pyarrow")
_LOGGING = """
appender.none.type = Null
appender.none.name = none
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
"""


def main(source: str, threads: str, memory: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddRowsWithID,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    quiet = Path(source).with_name("tumult.log4j2.properties")
    quiet.write_text(_LOGGING)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": threads,
        "spark.sql.warehouse.dir": str(Path(source).with_name("tumult.warehouse")),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{quiet}",
    }
    builder = SparkSession.builder.master(f"local[{threads}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    rows = spark.read.parquet(source).select("user_id", "country", "amount")
    session = Session.from_dataframe(PureDPBudget(float("inf")), "visits", rows, AddRowsWithID("user_id"))
    limited = (
        QueryBuilder("visits")
        .enforce(MaxGroupsPerID("country", GROUPS))
        .enforce(MaxRowsPerGroupPerID("country", ROWS))
        .groupby(KeySet.from_dict({"country": COUNTRIES}))
    )
    questions = [limited.sum("amount", 0, 200), limited.average("amount", 0, 200)]
    found = {name: metadata.version(name) for name in DISTRIBUTIONS}
    java = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")
    print(json.dumps({**found, "Java": java}), flush=True)
    for _ in sys.stdin:
        answers = [session.evaluate(question, PureDPBudget(0.5)).toPandas() for question in questions]
        print(json.dumps([len(answer) for answer in answers]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
