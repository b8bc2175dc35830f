"""A session of Spark that is ours alone: its settings are fixed, its temporary views nobody else sees.

| what | why |
| --- | --- |
| ANSI mode on | a number that leaves 64 bits fails instead of wrapping; our forms give NULL by themselves |
| time zone UTC, case counts, binary collation | one meaning on every cluster |
| no push-down into files, no pruning, no costs, no bloom filters | they trust statistics of columns |
| no bucketing | a table whose buckets are not as its metadata say would split groups |
| no adaptive plans, no evaluation while planning | what runs follows from the statement alone |
| no variables in text | `${env:…}` in a constant stays what it is |
| no rebasing, no inferred types of folders | no value decides how others are read, or that a read fails |
| a parser that forgets | what it learns of each question would fill the memory in the end |

Statistics of columns belong to all rows together, and can be wrong: Parquet leaves NaN out of them. Whether
one row passes a filter must not depend on the values of others.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import re
import shutil
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidParameter

__all__ = ["is_remote", "local_session", "muted", "own_session", "remote_session"]

_FIXED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.cbo.enabled": "false",
    "spark.sql.cbo.joinReorder.enabled": "false",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.recordLevelFilter.enabled": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.runtimeFilter.semiJoinReduction.enabled": "false",
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in ("ConvertToLocalRelation", "FoldablePropagation")  # the second fails on TYPEOF(MAX(x))
    ),
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    "spark.sql.sources.bucketing.enabled": "false",
    "spark.sql.sources.v2.bucketing.enabled": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushThreshold": "20000",  # about 200 MB, of 40 shapes
    "spark.databricks.delta.stats.skipping": "false",
}
_KEPT = ("spark.sql.catalog.", "spark.sql.extensions", "spark.sql.warehouse.", "spark.sql.shuffle.partitions")
_LOGGING = """
appender.none.type = Null
appender.none.name = none
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
"""
_LOGGERS = ("", "py4j", "py4j.java_gateway", "py4j.clientserver", "pyspark.sql.connect.client.logging")
_QUERIES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_PYSPARK = re.compile("pyspark")
_OURS = threading.local()
_MODE = "SPARK_CONNECT_MODE_ENABLED"
_TRIES = 3  # of a task, before what it is for fails


class _Mute(logging.Filter):
    """Drops what PySpark logs of our calls: its errors quote values of rows."""

    def filter(self, record: logging.LogRecord) -> bool:
        del record
        return not getattr(_OURS, "now", False)


_MUTE = _Mute()


@contextmanager
def muted() -> Iterator[None]:
    """Calls of PySpark in this thread log nothing and do not warn of versions of pandas."""
    _quiet()
    for logger in _loggers():
        logger.addFilter(_MUTE)  # once, however often
    before, _OURS.now = getattr(_OURS, "now", False), True
    try:
        yield
    finally:
        _OURS.now = before


def _loggers() -> list[logging.Logger]:
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    with contextlib.suppress(ImportError):
        from pyspark.logger import PySparkLogger

        loggers += [PySparkLogger.getLogger(name) for name in _QUERIES]  # they are of a class of its own
    return loggers


def _quiet() -> None:
    if ("ignore", None, FutureWarning, _PYSPARK, 0) not in warnings.filters:
        warnings.filterwarnings("ignore", category=FutureWarning, module=_PYSPARK.pattern)


def _builder() -> Any:
    found: Any = None
    with muted(), contextlib.suppress(ImportError):
        from pyspark.sql import SparkSession

        found = SparkSession.builder
    if found is None:
        raise InvalidParameter("The engine spark needs PySpark; install it: pip install 'sfumato[spark]'.")
    return found


@functools.cache
def _folder(process: int) -> Path:
    """Where Spark of this process keeps its files; removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-spark-"))
    (folder / "log4j2.properties").write_text(_LOGGING)

    def removed() -> None:
        if process == os.getpid():  # a forked child ends, too
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(removed)
    return folder


def local_session(threads: int | None, memory: str | None) -> Any:
    """Spark inside this machine: the one that runs in this process, or a new one without logs and pages.

    Raises:
        InvalidParameter: if PySpark or Java is missing.
    """
    builder, cores = _builder(), threads or os.cpu_count() or 1
    folder = _folder(os.getpid())
    settings = {
        "spark.app.name": "sfumato",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties "
        f"-Djava.io.tmpdir={folder}",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        **({} if memory is None else {"spark.driver.memory": memory}),
    }
    builder = builder.master(f"local[{cores},{_TRIES}]").config(map=settings)
    session: Any = None
    with muted(), contextlib.suppress(Exception):
        session = builder.getOrCreate()
    if session is None:
        raise InvalidParameter("Spark cannot be started; it needs Java 17 or newer: set JAVA_HOME.")
    return session


def remote_session(address: str) -> Any:
    """A session of Spark Connect.

    Raises:
        InvalidParameter: if PySpark is missing, or nothing answers at the address.
    """
    builder, session, mode = _builder(), None, os.environ.get(_MODE)
    with muted(), contextlib.suppress(Exception):
        session = builder.remote(address).create()
    if mode is None:
        os.environ.pop(_MODE, None)  # PySpark sets it, and would start no Spark in this process any more
    if session is None:
        raise InvalidParameter(
            "Spark Connect cannot be reached; check the address sc://host:port and its extra."
        )
    return session


def is_remote(session: Any) -> bool:
    """Whether a session is one of Spark Connect, which ends by itself; others end with all of Spark."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def own_session(session: Any) -> Any:
    """A new session beside this one, over the same cluster and catalogs, with our settings.

    Whatever else is set there for SQL goes back to Spark's defaults, but for catalogs and the number of
    partitions. Functions and views that a user registered are in their own session.

    Raises:
        InvalidParameter: if it is no session of Spark, or one that has ended.
    """
    own: Any = None
    with muted(), contextlib.suppress(Exception):
        own = session.newSession()
        for key in [
            key for key, _ in _all(own) if key.startswith("spark.sql.") and not key.startswith(_KEPT)
        ]:
            with contextlib.suppress(Exception):  # those that no session can change
                own.conf.unset(key)
        for key, value in _all(session):
            if key.startswith(_KEPT):
                with contextlib.suppress(Exception):
                    own.conf.set(key, value)
        for key, value in _FIXED.items():
            own.conf.set(key, value)
    if own is None:
        raise InvalidParameter("session must be a SparkSession that is open.")
    return own


def _all(session: Any) -> list[tuple[str, str]]:
    return list(dict(session.conf.getAll).items())
