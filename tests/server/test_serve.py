"""`sfumato serve`: a real process, its lines, its end; and what keeps it from beginning."""

import datetime
import json
import re
import signal
import socket
import subprocess
import sys
import time
from fractions import Fraction

import httpx
import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import server_transcripts
import sfumato as sf
import wire
from commands import invoke
from sfumato.cli import app
from sfumato.errors import InvalidParameter
from sfumato.server.running import bound, tls_context

SQL = "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward"


def begun(*arguments):
    """A server in a process of its own, and the lines that it says until it serves."""
    command = [sys.executable, "-m", "sfumato", "serve", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith("serving http"):
            break
    return process, lines


@pytest.fixture(scope="module")
def demo():
    process, lines = begun("--demo", "--no-browser", "--port", "0", "--pg-port", "0")
    yield lines
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    with process.stdout:
        assert process.stdout.read() == ""


@pytest.fixture
def where(demo):
    return demo[-1].removeprefix("serving ")


def token(demo, name):
    return next(line.split()[3] for line in demo if line.startswith(f"token {name} "))


def asked(where, who, path, **more):
    return httpx.request(
        "POST" if "json" in more else "GET", where + path, headers={"Authorization": f"Bearer {who}"}, **more
    )


@pytest.mark.slow
def test_the_demonstration_has_a_token_for_each_role(demo):
    told = [re.fullmatch(r"token (\w+) (analyst|steward|auditor) (sfu_\S+)", line) for line in demo[:-2]]
    assert all(told)
    assert [each[2] for each in told].count("analyst") == 3
    assert {each[2] for each in told} == {"analyst", "steward", "auditor"}


@pytest.mark.slow
def test_analysts_ask_in_their_own_names_within_one_budget(demo, where):
    ada, chloe = token(demo, "ada"), token(demo, "chloe")
    assert httpx.get(f"{where}/health").json() == {"status": "ok"}
    assert httpx.get(f"{where}/api/datasets").status_code == 401
    assert asked(where, ada, "/api/datasets").json() == ["visits"]
    before = asked(where, chloe, "/api/datasets/visits/balance").json()
    first = asked(where, chloe, "/api/release", json={"sql": SQL, "epsilon": "0.5"}).json()
    after = asked(where, chloe, "/api/datasets/visits/balance").json()
    assert first["paid"]["epsilon"] == 0.5
    assert before["left"]["epsilon"] - after["left"]["epsilon"] == pytest.approx(0.5)
    assert asked(where, chloe, "/api/release", json={"sql": SQL, "epsilon": 10}).status_code == 402
    assert (
        asked(where, token(demo, "omar"), "/api/release", json={"sql": SQL, "epsilon": 1}).status_code == 403
    )
    debits = [
        each for each in asked(where, token(demo, "omar"), "/api/receipts").json() if each["kind"] == "debit"
    ]
    assert {"ada", "ben", "chloe"} <= {each["analyst"] for each in debits}


@pytest.mark.slow
def test_a_client_of_postgresql_asks_by_the_same_token_from_the_same_budget(demo, where):
    address = demo[-2].removeprefix("serving ")
    assert address.endswith("/demo")
    before = asked(where, token(demo, "ben"), "/api/datasets/visits/balance").json()["left"]["epsilon"]
    with psycopg.connect(address, user="ben", password=token(demo, "ben"), autocommit=True) as connection:
        with pytest.raises(psycopg.Error, match="epsilon"):
            connection.execute("SELECT COUNT(*) AS n FROM visits")  # no price, no answer
        connection.execute("SET sfumato.epsilon = 0.25")
        (count,) = connection.execute("SELECT COUNT(*) AS n FROM visits").fetchone()
    after = asked(where, token(demo, "ben"), "/api/datasets/visits/balance").json()["left"]["epsilon"]
    assert 10_000 < count < 30_000
    assert before - after == pytest.approx(0.25)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(address, user="ada", password=token(demo, "ben"))
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(address.replace("/demo", "/other"), user="ben", password=token(demo, "ben"))
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(address, user="omar", password=token(demo, "omar"))


@pytest.mark.slow
def test_a_steward_acts_an_auditor_reads_and_long_reads_are_jobs(demo, where):
    sofia, omar, ben = (token(demo, name) for name in ("sofia", "omar", "ben"))
    limit = {"epsilon": 7, "reason": "a second project"}
    path = f"{where}/api/datasets/visits/analysts/ben/limit"
    for who, status in ((ben, 403), (omar, 403), (sofia, 200)):
        headers = {"Authorization": f"Bearer {who}"}
        assert httpx.put(path, headers=headers, json=limit).status_code == status
    asked(where, sofia, "/api/accounts", json={"name": "dora", "role": "auditor"})
    dora = asked(where, sofia, "/api/accounts/dora/tokens", json={"days": 1}).json()["token"]
    lines = [json.loads(line) for line in asked(where, dora, "/api/ledger/export").text.splitlines()]
    acts = [(each["kind"], each["analyst"], each["memo"]["by"]) for each in lines if "by" in each["memo"]]
    assert acts == [("limit", "ben", "sofia"), ("access", "dora", "sofia"), ("access", "dora", "sofia")]
    assert asked(where, omar, "/api/ledger/verify").json()["ok"]
    job = asked(where, ben, "/api/jobs", json={"sql": SQL, "epsilon": "0.125"}).json()
    while asked(where, ben, job["address"]).json()["state"] in ("waiting", "running"):
        time.sleep(0.02)
    assert len(asked(where, ben, job["result"]).json()["rows"]) > 1
    assert asked(where, sofia, job["result"]).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["$ curl", "$ PGPASSWORD", ">>> "])
def test_the_transcripts_of_the_page_say_what_the_server_says(demo, where, kind):
    if kind == "$ PGPASSWORD" and wire.psql_path() is None:
        pytest.skip("there is no psql")
    places = server_transcripts.Places(where, demo[-2], token(demo, "ada"))
    (block,) = server_transcripts.blocks(kind)
    assert server_transcripts.wrong_parts(block, places) == []


@pytest.mark.slow
def test_the_python_client_asks_by_the_same_token(demo, where):
    with sf.connect(where, token=token(demo, "ada")) as session:
        before = session.balance()
        asked = session.table("visits").filter(sf.col("age") >= 30).group_by("ward").agg(n=sf.count())
        release = asked.release(epsilon="0.2")
        text = "SELECT ward, COUNT(*) AS n FROM visits WHERE age >= 30 GROUP BY ward"
        assert session.sql(text).release(epsilon="0.2").table == release.table
        assert before.remaining - session.balance().remaining == Fraction(1, 5)
        assert {each.analyst for each in session.releases()} == {"ada"}
    with pytest.raises(sf.errors.LoginFailed):
        sf.connect(where, token=token(demo, "ada")[:-4] + "aaaa")


@pytest.mark.slow
def test_wrong_tokens_are_slowed_down_and_the_right_one_is_not(demo, where):
    ada = token(demo, "ada")
    wrong = ada[:-4] + "aaaa"
    statuses = {asked(where, wrong, "/api/me").status_code for _ in range(40)}
    assert statuses <= {401, 429}
    assert 401 in statuses
    assert asked(where, token(demo, "ben"), "/api/me").json() == {"name": "ben", "role": "analyst"}


def test_a_port_that_is_in_use_is_said(cli_run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = cli_run("--demo", "--port", str(taken.getsockname()[1]))
    assert done.exit_code == 2
    assert "is in use" in done.stderr


def test_what_keeps_a_server_from_beginning_is_said(cli_run):
    for arguments, said in (
        (["--demo", "--host", "0.0.0.0"], "plain text"),
        (["--demo", "--certificate", "x.pem"], "both"),
        (["--demo", "--certificate", "x.pem", "--key", "y.pem"], "PEM"),
        (["--config", "nothing.toml"], "nothing.toml"),
    ):
        done = cli_run(*arguments, "--port", "0")
        assert done.exit_code == 2, arguments
        assert said in done.stderr
    assert cli_run("--demo", "--port", "0", SFUMATO_ANALYST="ada").exit_code == 2


@pytest.fixture
def cli_run(tmp_path, monkeypatch):
    """Run the command in this process, up to where it would serve."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, **environment):
        return invoke(app, ["serve", *arguments], env=environment)

    return run


def certificate(folder, days):
    """A certificate and its key that end in so many days."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=30))
        .not_valid_after(now + datetime.timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return paths


def test_a_certificate_that_expired_is_said(tmp_path):
    with pytest.raises(InvalidParameter, match="expired on"):
        tls_context(*certificate(tmp_path, -1))
    assert tls_context(*certificate(tmp_path, 1))


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid", "\u2603" * 80])
def test_an_address_of_another_machine_is_said(host):
    with pytest.raises(InvalidParameter, match="no address of this machine"):
        bound(host, 0)
