"""TLS with a certificate of the server's own, and how it is run as a service."""

import configparser
import datetime
import json
import multiprocessing
import shlex
import ssl
import stat
import subprocess
import threading
from pathlib import Path

import httpx
import psycopg
import pytest
import typer
from cryptography import x509

import lives
from sfumato.cli import app
from sfumato.errors import InvalidParameter
from sfumato.server import certificates
from sfumato.server.running import tls_context

ROOT = Path(__file__).parents[2]
UNIT, IMAGE = ROOT / "deploy" / "sfumato.service", ROOT / "deploy" / "Containerfile"


def test_a_certificate_is_made_once_and_anew_where_it_does_not_serve(tmp_path, monkeypatch):
    first = certificates.self_signed(tmp_path / "state", "127.0.0.1")
    shown = certificates.fingerprint(first[0])
    assert tls_context(*first)
    assert stat.S_IMODE(first[1].stat().st_mode) == 0o600
    assert certificates.fingerprint(certificates.self_signed(tmp_path / "state", "localhost")[0]) == shown
    other = certificates.fingerprint(certificates.self_signed(tmp_path / "state", "192.0.2.7")[0])
    assert other != shown
    monkeypatch.setattr(certificates, "_LEFT", datetime.timedelta(days=366))  # as if it were about to end
    assert certificates.fingerprint(certificates.self_signed(tmp_path / "state", "192.0.2.7")[0]) != other
    monkeypatch.undo()
    (tmp_path / "state" / "self-signed.key").write_text("no key")
    assert tls_context(*certificates.self_signed(tmp_path / "state", "0.0.0.0"))


def start(folder, hosts, barrier, told):
    """In a process of its own: as many starts as there are hosts, each at once with those of the others."""
    for number, host in enumerate(hosts):
        barrier.wait(60)
        files = certificates.self_signed(folder / str(number), host)
        try:
            tls_context(*files)
        except InvalidParameter as wrong:
            told.put(str(wrong))
        else:
            told.put(host)


def test_starts_at_once_share_a_pair_that_belongs_together(tmp_path):
    """Also those at different addresses, whose certificate is made anew while the other one reads it."""
    spawn, rounds = multiprocessing.get_context("spawn"), 20
    barrier, told = spawn.Barrier(2), spawn.Queue()
    ways = [["192.0.2.6"] * rounds, ["192.0.2.6", "192.0.2.7"] * (rounds // 2)]
    both = [spawn.Process(target=start, args=(tmp_path, hosts, barrier, told)) for hosts in ways]
    for process in both:
        process.start()
    found = [told.get(timeout=120) for _ in range(2 * rounds)]
    for process in both:
        process.join(60)
    assert sorted(found) == sorted(ways[0] + ways[1])
    for number, host in enumerate(ways[1]):
        made = x509.load_pem_x509_certificate((tmp_path / str(number) / "self-signed.pem").read_bytes())
        names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert {"192.0.2.6", host} <= {str(each) for each in names.get_values_for_type(x509.IPAddress)}
        left = sorted(path.name for path in (tmp_path / str(number)).iterdir())
        assert left == ["self-signed.key", "self-signed.lock", "self-signed.pem"]


def test_starts_at_one_address_at_once_show_one_fingerprint(tmp_path):
    shown, barrier = [], threading.Barrier(4)

    def begin():
        barrier.wait(60)
        shown.append(certificates.fingerprint(certificates.self_signed(tmp_path, "127.0.0.1")[0]))

    for _ in range(10):
        for path in tmp_path.iterdir():
            path.unlink()
        threads = [threading.Thread(target=begin) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({*shown}) == 1
        shown.clear()


def test_where_no_certificate_can_be_written_that_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameter, match="cannot be written"):
        certificates.self_signed(tmp_path / "file", "127.0.0.1")


@pytest.mark.slow
def test_clients_of_both_fronts_know_the_server_by_its_certificate(nursery, tmp_path):
    config = lives.catalog(tmp_path)
    token = lives.tokens_of(config, {"ada": "analyst"})["ada"]
    life = nursery.life(config, arguments=["--self-signed"])
    file = next(tmp_path.rglob("self-signed.pem"))
    (shown,) = (line.split()[2] for line in life.said.splitlines() if line.startswith("certificate SHA-256 "))
    der = x509.load_pem_x509_certificate(file.read_bytes())
    assert shown == certificates.fingerprint(file)
    assert der.not_valid_after_utc > datetime.datetime.now(datetime.UTC)
    trusted = ssl.create_default_context(cafile=file)
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{life.http}/api/me", headers=headers, verify=trusted).json()["name"] == "ada"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{life.http}/health")
    address = f"{life.postgresql}?sslmode=verify-full&sslrootcert={file}"
    with psycopg.connect(address, user="ada", password=token, autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert life.end() == 0


def options_of_serve():
    group = typer.main.get_command(app)
    group.loaded("serve")
    return {name for parameter in group.commands["serve"].params for name in parameter.opts}


def check_command(words):
    assert [Path(words[0]).name, words[1]] == ["sfumato", "serve"]
    assert {word for word in words if word.startswith("--")} <= options_of_serve()


def test_the_unit_runs_a_command_that_exists():
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str
    read.read_string(UNIT.read_text())
    assert set(read) == {"DEFAULT", "Unit", "Service", "Install"}
    check_command(shlex.split(read["Service"]["ExecStart"]))
    assert read["Service"]["KillSignal"] == "SIGTERM"
    try:
        found = subprocess.run(["systemd-analyze", "--version"], capture_output=True)
    except FileNotFoundError:
        return
    if found.returncode == 0:
        said = subprocess.run(["systemd-analyze", "verify", UNIT], capture_output=True, text=True).stderr
        assert "Unknown" not in said


def test_the_image_runs_a_command_that_exists():
    lines = [line for line in IMAGE.read_text().splitlines() if line and not line.startswith("#")]
    words = dict(line.split(" ", 1) for line in lines)
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert {*copied} == {"pyproject.toml", "README.md", "LICENSE", "src"}, "no data that lies beside them"
    known = "FROM RUN COPY USER WORKDIR VOLUME EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD"
    assert set(words) <= set(known.split())
    assert words["USER"] == "sfumato"
    check_command([*json.loads(words["ENTRYPOINT"]), *json.loads(words["CMD"])])
    compile(json.loads(words["HEALTHCHECK"].removeprefix("CMD "))[2], "healthcheck", "exec")
