"""A certificate that a server makes for itself, for trials: clients know it by its fingerprint."""

from __future__ import annotations

import socket
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sfumato._files import write_whole
from sfumato.errors import InvalidParameter
from sfumato.ledger.files import locked, replace_file
from sfumato.random import salt

__all__ = ["fingerprint", "self_signed"]

_VALID, _LEFT = timedelta(days=365), timedelta(days=7)


def self_signed(folder: Path, host: str) -> tuple[Path, Path]:
    """A certificate for this machine and its key: those of the folder while they last, or new ones.

    One process at a time looks and writes, so that those that begin together have the same. For a name that
    is not in the certificate it is made anew with the same key, for all names so far: whoever reads the two
    files meanwhile has two that belong together.

    Args:
        folder: Where they are kept, the key for this account's eyes alone.
        host: Where the server listens.

    Raises:
        InvalidParameter: if they cannot be written.
    """
    paths = folder / "self-signed.pem", folder / "self-signed.key"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "self-signed"):
            _made_to_serve(*paths, _names(host))
    except OSError:
        raise InvalidParameter(f"A certificate cannot be written to {folder}.") from None
    return paths


def _made_to_serve(certificate: Path, key: Path, names: list[x509.GeneralName]) -> None:
    """Writes what is missing for these names, if anything is."""
    secret, known = _kept(certificate, key)
    if secret is not None and {*names} <= {*known}:
        return
    if secret is None:
        secret = ec.generate_private_key(ec.SECP256R1())
        replace_file(key, _pem(secret))
    both = list(dict.fromkeys([*known, *names]))
    write_whole(certificate, _made(secret, both).public_bytes(serialization.Encoding.PEM))


def fingerprint(certificate: Path) -> str:
    """The SHA-256 of a certificate, as browsers and `openssl x509 -fingerprint -sha256` show it."""
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    return found.fingerprint(hashes.SHA256()).hex(":").upper()


def _names(host: str) -> list[x509.GeneralName]:
    """By which clients may come: this machine's own names, and the address."""
    texts = dict.fromkeys(["localhost", socket.gethostname(), "127.0.0.1", "::1", host])
    found: list[x509.GeneralName] = []
    for text in texts:
        with suppress(ValueError):  # a name that cannot stand in a certificate
            try:
                address = ip_address(text)
            except ValueError:
                found.append(x509.DNSName(text))
            else:
                found += [] if address.is_unspecified else [x509.IPAddress(address)]
    return found


def _kept(certificate: Path, key: Path) -> tuple[ec.EllipticCurvePrivateKey | None, list[x509.GeneralName]]:
    """The key, and the names of its certificate, if there are both, for a while yet; else None and none."""
    with suppress(OSError, ValueError, TypeError, x509.ExtensionNotFound):
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        secret = serialization.load_pem_private_key(key.read_bytes(), None)
        own = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        lasts = found.not_valid_after_utc - _LEFT > datetime.now(UTC)
        if isinstance(secret, ec.EllipticCurvePrivateKey) and lasts:
            return (secret, list(own)) if secret.public_key() == found.public_key() else (None, [])
    return None, []


def _made(key: ec.EllipticCurvePrivateKey, names: list[x509.GeneralName]) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sfumato, self-signed")])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(salt(16), "big") >> 1 | 1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
