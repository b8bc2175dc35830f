"""What a client does when the server, the way to it or the address is not as it should be."""

import contextlib
import datetime
import gzip
import ipaddress
import json
import re
import socket
import sys
import threading
from contextlib import contextmanager
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import sfumato as sf
from served import SQL, house, known, started
from sfumato.client import connection
from sfumato.client.query import made_of
from sfumato.errors import (
    AccessDenied,
    InvalidParameter,
    LoginFailed,
    MissingExtra,
    ServerUnreachable,
    TooManyTries,
    UnknownName,
)
from sfumato.render import is_visible
from sfumato.server.http.app import make_app
from sfumato.session.carried.values import unpack

TOKEN = "token-of-ada"


@pytest.fixture(scope="module")
def place():
    with house() as made:
        yield made


@pytest.fixture(scope="module")
def url(place):
    with started(make_app(place, known)) as address:
        yield address


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(connection, "_PAUSE", 0.001)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://x.example/?token=sfu_secret", "holds no token"),
        ("https://sfu_secret@x.example", "holds no token"),
        ("https://ada:sfu_secret@x.example", "holds no token"),
        ("https://x.example/sfu_secret", "holds no token"),
        ("https://ada:secret@x.example", "holds no token"),
        ("https://x.example/?key=secret", "holds no token"),
        ("http://x.example", "https://"),
        ("http://192.0.2.1:8430", "https://"),
        ("ftp://x.example", "written like"),
        ("x.example", "written like"),
        ("https://", "written like"),
        ("https://x.example:port", "written like"),
        ("https://[::1", "written like"),
        ("", "written like"),
        (None, "written like"),
        (8430, "written like"),
    ],
)
def test_an_address_that_would_show_the_token_or_is_none_is_refused(address, said):
    with pytest.raises(InvalidParameter, match=said) as caught:
        sf.connect(address, token="sfu_mine")
    assert "secret" not in str(caught.value)
    assert "mine" not in str(caught.value)


@pytest.mark.parametrize("token", ["", " ", "two words", "caf\u00e9", "line\nfeed", None, 3])
def test_what_is_no_token_is_refused(url, token):
    with pytest.raises(InvalidParameter, match="token is"):
        sf.connect(url, token=token)


@pytest.mark.parametrize("timeout", [0, -1, True, "x", float("nan")])
def test_what_is_no_time_is_refused(url, timeout):
    with pytest.raises(InvalidParameter, match="timeout"):
        sf.connect(url, token=TOKEN, timeout=timeout)


def test_a_wrong_token_is_said_and_not_repeated(url):
    with pytest.raises(LoginFailed) as caught:
        sf.connect(url, token="sfu_wrong")
    assert "sfu_wrong" not in str(caught.value)
    assert isinstance(caught.value, AccessDenied)


def test_a_server_that_does_not_run_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ServerUnreachable, match="see whether the server runs") as caught:
        sf.connect(f"http://127.0.0.1:{port}", token=TOKEN)
    assert isinstance(caught.value, ConnectionError)


@contextmanager
def answering(respond):
    """A server of somebody else's."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers.get("authorization"))
            respond(self)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def saying(status, body=b"", **headers):
    def respond(handler):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return respond


def test_no_redirection_is_followed_with_the_token():
    with answering(saying(200, b"{}")) as (other, seen):
        elsewhere = answering(saying(307, Location=f"{other}/api/session"))
        with elsewhere as (first, _), pytest.raises(ServerUnreachable, match="sends elsewhere"):
            sf.connect(first, token=TOKEN)
        assert seen == []


def test_a_proxy_of_the_environment_does_not_get_a_token_in_plain_text(url, monkeypatch):
    with answering(saying(200, b"{}")) as (other, seen):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, other)
        with sf.connect(url, token=TOKEN) as session:
            assert session.analyst == "ada"
        assert seen == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"error": 3}', b'"x"', b"\xff"])
@pytest.mark.parametrize("status", [200, 404, 500])
def test_what_is_no_server_of_ours_is_said(status, body):
    with (
        answering(saying(status, body)) as (other, _),
        pytest.raises(ServerUnreachable, match="no server of Sfumato"),
    ):
        sf.connect(other, token=TOKEN)


DEEP = b"[" * 100_000 + b"]" * 100_000
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eso it is\r\n"


@pytest.mark.parametrize("body", [DEEP, b'{"error": %s}' % DEEP])
@pytest.mark.parametrize("status", [200, 422])
def test_a_document_that_is_nested_too_deeply_is_one_sentence(status, body):
    with (
        answering(saying(status, body)) as (other, _),
        pytest.raises(ServerUnreachable, match="no server of Sfumato"),
    ):
        sf.connect(other, token=TOKEN)


@pytest.mark.parametrize("depth", [400, 900, 2_000, 9_000])
def test_a_value_that_is_nested_too_deeply_is_one_sentence(depth):
    """How deep is too deep differs between parsing and reading, and between versions of Python."""
    table = {"table": "t", "public": True, "schema": {}, "key": "", "version": "1", "listed": [[], "HERE"]}
    document = {"version": sf.__version__, "analyst": "ada", "tables": [table], "windows": {}}
    body = json.dumps(document).replace('"HERE"', "[" * depth + "]" * depth).encode()
    with (
        answering(saying(200, body)) as (other, _),
        contextlib.suppress(sf.errors.SfumatoError),
        sf.connect(other, token=TOKEN) as session,
    ):
        assert list(session.tables) == ["t"]


def test_a_value_that_parses_and_is_too_deep_to_read_is_one_sentence():
    value = []
    for _ in range(9_000):
        value = [value]
    with pytest.raises(ServerUnreachable, match="cannot be read"):
        made_of(value, lambda data, _: unpack(data), {})


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "identity, gzip", "x"])
def test_a_compressed_answer_is_refused_and_not_unpacked(encoding):
    asked = []

    def respond(handler):
        asked.append(handler.headers["accept-encoding"])
        saying(200, gzip.compress(b" " * 100_000), **{"Content-Encoding": encoding})(handler)

    with answering(respond) as (other, _), pytest.raises(ServerUnreachable, match="compressed"):
        sf.connect(other, token=TOKEN)
    assert asked == ["identity"]


def test_an_answer_without_an_end_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(connection, "SHORT_BYTES_READ", 1_000_000)
    sent = []

    def respond(handler):
        handler.send_response(200)
        handler.end_headers()
        with contextlib.suppress(OSError):
            while len(sent) < 1_000:
                sent.append(handler.wfile.write(b" " * 100_000))

    with (
        answering(respond) as (other, _),
        pytest.raises(ServerUnreachable, match="more than 1,000,000 bytes"),
    ):
        sf.connect(other, token=TOKEN)
    assert len(sent) < 1_000


def test_an_answer_of_just_so_many_bytes_is_read(url, monkeypatch):
    monkeypatch.setattr(connection, "SHORT_BYTES_READ", 2)
    with (
        answering(saying(200, b"{}")) as (other, _),
        pytest.raises(ServerUnreachable, match="no server of Sfumato"),
    ):
        sf.connect(other, token=TOKEN)
    with pytest.raises(ServerUnreachable, match="more than 2 bytes"):
        sf.connect(url, token=TOKEN)


@pytest.mark.parametrize("code", ["query_refused", "access_denied", "deadline_passed", "new", ESCAPES])
def test_what_a_server_says_does_not_reach_the_terminal_as_commands(code):
    error = {"code": code, "message": ESCAPES, "reason": ESCAPES, "fix": ESCAPES}
    body = json.dumps({"error": error}).encode()
    with answering(saying(422, body)) as (other, _), pytest.raises(sf.errors.SfumatoError) as caught:
        sf.connect(other, token=TOKEN)
    assert "so it is" in str(caught.value)
    assert is_visible(str(caught.value))
    assert all(is_visible(part) for part in caught.value.args)


def test_a_sentence_of_a_server_has_an_end():
    body = json.dumps({"error": {"code": "error", "message": "x" * 1_000_000}}).encode()
    with answering(saying(500, body)) as (other, _), pytest.raises(sf.errors.SfumatoError) as caught:
        sf.connect(other, token=TOKEN)
    assert len(str(caught.value)) == 10_000


def test_the_version_of_a_server_is_shown_without_commands():
    document = {"version": ESCAPES, "analyst": "ada", "tables": [], "windows": {}}
    with (
        answering(saying(200, json.dumps(document).encode())) as (other, _),
        pytest.raises(ServerUnreachable, match="runs Sfumato") as caught,
    ):
        sf.connect(other, token=TOKEN)
    assert is_visible(str(caught.value))


@pytest.mark.parametrize("wait", ["1e999", "nan", "soon", "\xb2"])
def test_a_time_to_wait_that_is_none_is_one_sentence(wait):
    for code in ("too_many_tries", "too_many_requests"):
        body = json.dumps({"error": {"code": code, "message": "Wait."}}).encode()
        with (
            answering(saying(429, body, **{"Retry-After": wait})) as (other, _),
            pytest.raises(sf.errors.SfumatoError),
        ):
            sf.connect(other, token=TOKEN)


def test_what_is_shown_of_a_servers_words_has_no_commands(url, monkeypatch):
    with sf.connect(url, token=TOKEN) as session:
        session.sql(SQL).release(epsilon="0.25")
        honest = connection.Connection._read

        def hostile(self, response, content, missing):
            return spoilt(honest(self, response, content, missing))

        monkeypatch.setattr(connection.Connection, "_read", hostile)
        session.analyst = ESCAPES
        shown = [
            repr(session),
            *str(session.balance()).split("\n"),
            *map(repr, session.releases()),
            *str(session.sql(SQL).quote(epsilon=1)).split("\n"),
            repr(session.reread(session.releases()[0]).receipt),
        ]
    assert any("so it is" in text for text in shown)
    assert all(map(is_visible, shown))


def spoilt(document):
    """The same with commands in whatever a server writes into it in words."""
    if isinstance(document, list):
        return [spoilt(one) for one in document]
    if not isinstance(document, dict):
        return document
    named = {name: spoilt(one) for name, one in document.items()}
    if "said" in named:
        why, notes, *others, standing = named["said"]
        named["said"] = [why + ESCAPES, [*notes, ESCAPES], *others, [*standing, [ESCAPES, ESCAPES]]]
    for name in ("dataset", "window"):
        if isinstance(named.get(name), str):
            named[name] += ESCAPES
    return named


def test_receipts_that_are_none_or_never_end_are_one_sentence(url, monkeypatch):
    with sf.connect(url, token=TOKEN) as session:
        for page in ([3], {"x": 1}, [{"kind": "debit"}], [{"kind": "x", "number": None}]):
            monkeypatch.setattr(session.connection, "get", lambda *_, page=page, **__: page)
            with pytest.raises(sf.errors.SfumatoError):
                session.releases()
        numbers = list(range(1, 1_001))
        for wrong in ([7] * 1_000, [*range(2, 1_001), 1], [*numbers, 1_001], [0, *numbers[1:]], [5]):
            page = [{"kind": "limit", "number": number} for number in wrong]
            monkeypatch.setattr(session.connection, "get", lambda *_, page=page, **__: page)
            with pytest.raises(sf.errors.SfumatoError):
                session.releases(after=0 if wrong != [5] else 5)


def test_another_version_is_said():
    document = {"version": "9.9.9", "analyst": "ada", "tables": [], "windows": {}}
    with (
        answering(saying(200, json.dumps(document).encode())) as (other, _),
        pytest.raises(ServerUnreachable, match=r"runs Sfumato 9\.9\.9.*sfumato==9\.9\.9"),
    ):
        sf.connect(other, token=TOKEN)


def test_too_many_tries_say_how_long_to_wait():
    body = b'{"error": {"code": "too_many_tries", "message": "x"}}'
    with (
        answering(saying(429, body, **{"Retry-After": "17"})) as (other, _),
        pytest.raises(TooManyTries, match="17 s") as caught,
    ):
        sf.connect(other, token=TOKEN)
    assert caught.value.wait == 17


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (504, "deadline_passed", sf.errors.TimedOut),
        (503, "ending", ServerUnreachable),
        (429, "too_many_requests", ServerUnreachable),
        (408, "too_slow", ServerUnreachable),
        (402, "budget_exceeded", sf.errors.BudgetExceeded),
        (403, "access_denied", AccessDenied),
        (500, "ledger_tampered", sf.errors.LedgerTampered),
        (500, "engine_failed", sf.errors.EngineFailed),
        (500, "error", sf.errors.SfumatoError),
        (418, "something_new", sf.errors.SfumatoError),
    ],
)
def test_what_a_server_says_is_the_exception_of_its_code(status, code, kind):
    body = json.dumps({"error": {"code": code, "message": "So it is."}}).encode()
    with answering(saying(status, body)) as (other, _), pytest.raises(kind, match=r"^So it is\.$") as caught:
        sf.connect(other, token=TOKEN)
    assert type(caught.value) is kind


def test_a_server_that_asks_for_time_is_given_it():
    body = b'{"error": {"code": "too_many_requests", "message": "Wait."}}'
    with answering(saying(429, body, **{"Retry-After": "0"})) as (other, seen):
        with pytest.raises(ServerUnreachable, match="Wait"):
            sf.connect(other, token=TOKEN)
        assert len(seen) == 3
    with answering(saying(429, body, **{"Retry-After": "3600"})) as (other, seen):
        with pytest.raises(ServerUnreachable, match="Wait"):
            sf.connect(other, token=TOKEN)
        assert len(seen) == 1


def test_an_answer_that_takes_too_long_is_said():
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, pytest.raises(ServerUnreachable, match=r"within 0\.05 seconds"):
        sf.connect(f"http://127.0.0.1:{silent.getsockname()[1]}", token=TOKEN, timeout=0.05)


class Lossy:
    """A way to a server on which answers get lost: the work is done, and the connection ends."""

    def __init__(self, url, path):
        self.lose, self.keys, self._path = 0, [], path.encode()
        self._server = int(url.rpartition(":")[2])
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self._listening.accept()[0]
                threading.Thread(target=self._relay, args=(near,), daemon=True).start()

    def _relay(self, near):
        with near, socket.create_connection(("127.0.0.1", self._server)) as far, contextlib.suppress(OSError):
            while request := near.recv(1 << 20):
                head, _, body = request.partition(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head.lower())
                while length and len(body) < int(length[1]):
                    more = near.recv(1 << 20)
                    request, body = request + more, body + more
                far.sendall(request)
                answer = far.recv(1 << 20)
                if self._path in head:
                    self.keys += re.findall(rb"idempotency-key: (\w+)", head.lower())
                    self.lose -= 1
                    if self.lose >= 0:
                        return
                near.sendall(answer)
                far.settimeout(0.2)
                with contextlib.suppress(TimeoutError):
                    while rest := far.recv(1 << 20):
                        near.sendall(rest)
                far.settimeout(None)

    def close(self):
        self._listening.close()


def test_a_lost_connection_is_asked_again_under_the_same_key_and_paid_once():
    with house() as place, started(make_app(place, known)) as url:
        way = Lossy(url, "/api/session/release")
        with contextlib.closing(way), sf.connect(way.url, token=TOKEN) as session:
            way.lose = 2
            release = session.sql(SQL).release(epsilon="0.5")
            assert len(way.keys) == 3
            assert len(set(way.keys)) == 1
            assert release.free  # the third one; the first has paid
            assert session.balance().spent == place.session("ada").balance().spent == Fraction(1, 2)
            session.sql(SQL).release(epsilon="0.5")
            assert len(set(way.keys)) == 2
            way.lose = 99
            with pytest.raises(ServerUnreachable, match="is free"):
                session.sql(SQL).release(epsilon="0.75")
            assert len(way.keys) == 4 + 3
            assert place.session("ada").balance().entries == 2


def certificate(folder, name="127.0.0.1"):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "own")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return paths


def test_certificates_are_checked_and_one_may_be_given(place, tmp_path):
    own, key = certificate(tmp_path)
    other, _ = certificate(tmp_path, "192.0.2.1")
    with started(make_app(place, known), ssl_certfile=own, ssl_keyfile=key) as url:
        with sf.connect(url, token=TOKEN, certificate=own) as session:
            assert session.analyst == "ada"
        for given in (None, other):
            with pytest.raises(ServerUnreachable, match="certificate=PATH"):
                sf.connect(url, token=TOKEN, certificate=given)
    with pytest.raises(InvalidParameter, match="no PEM file"):
        sf.connect("https://127.0.0.1", token=TOKEN, certificate=key)
    with pytest.raises(InvalidParameter, match="no PEM file"):
        sf.connect("https://127.0.0.1", token=TOKEN, certificate=tmp_path / "none.pem")


class Proxy:
    """A way through another machine, which is told where to."""

    def __init__(self):
        self.asked, self._listening = [], socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(
                    target=self._tunnel, args=(self._listening.accept()[0],), daemon=True
                ).start()

    def _tunnel(self, near):
        head = near.recv(1 << 16).decode()
        self.asked.append(head)
        host, _, port = head.split()[1].rpartition(":")
        with near, socket.create_connection((host, int(port))) as far:
            near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=self._copy, args=(far, near), daemon=True)
            back.start()
            self._copy(near, far)
            back.join(5)

    def _copy(self, one, other):
        with contextlib.suppress(OSError):
            while some := one.recv(1 << 16):
                other.sendall(some)
            other.shutdown(socket.SHUT_WR)

    def close(self):
        self._listening.close()


def test_a_proxy_of_the_environment_is_used_where_it_cannot_read_the_token(place, tmp_path, monkeypatch):
    own, key = certificate(tmp_path)
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with (
        contextlib.closing(Proxy()) as proxy,
        started(make_app(place, known), ssl_certfile=own, ssl_keyfile=key) as url,
    ):
        for written, said in ((proxy.address, ""), (f"http://ada:p%40ss@{proxy.address}", "YWRhOnBAc3M=")):
            monkeypatch.setenv("HTTPS_PROXY", written)
            with sf.connect(url, token=TOKEN, certificate=own) as session:
                assert session.analyst == "ada"
            assert proxy.asked[-1].startswith(f"CONNECT {url.removeprefix('https://')} ")
            assert said in proxy.asked[-1]
            assert TOKEN not in proxy.asked[-1]
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with sf.connect(url, token=TOKEN, certificate=own):
            assert len(proxy.asked) == 2
        monkeypatch.delenv("NO_PROXY")
        monkeypatch.setenv("HTTPS_PROXY", "gopher://x:y:z")
        with pytest.raises(sf.errors.SfumatoError, match="proxy"):
            sf.connect(url, token=TOKEN, certificate=own)


def test_without_its_library_the_extra_is_named(url, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"sfumato\[client\]"):
        sf.connect(url, token=TOKEN)


def test_a_closed_session_says_so(url):
    session = sf.connect(url, token=TOKEN)
    session.close()
    with pytest.raises(ServerUnreachable, match="closed"):
        session.balance()
    assert repr(session).endswith(": closed>")


def test_what_is_only_beside_the_data_is_named(url):
    with sf.connect(url, token=TOKEN) as session:
        for name in ("stream", "as_analyst", "validate", "most_common"):
            with pytest.raises(UnknownName, match="beside the data"):
                getattr(session, name)
        with pytest.raises(UnknownName, match="There are"):
            session.nothing_like_it  # noqa: B018
        with pytest.raises(sf.errors.QueryRefused, match="over HTTP"):
            session.sql(SQL).write("folder", 1)


def test_the_token_is_in_nothing_that_is_shown(url):
    with sf.connect(url, token=TOKEN) as session:
        shown = [repr(session), repr(session.connection), str(vars(session)), repr(session.sql(SQL))]
        assert not any(TOKEN in text for text in shown)
        assert re.fullmatch(
            r"<Session of visits, as 'ada', at http://\S+: epsilon \S+ of 10 left>", repr(session)
        )


def test_a_question_that_is_too_long_is_refused_before_it_is_sent(url):
    with sf.connect(url, token=TOKEN) as session:
        values = [f"{place:04}" + "x" * 500 for place in range(3000)]
        asked = session.table("visits").filter(sf.col("city").is_in(values)).agg(n=sf.count())
        with pytest.raises(InvalidParameter, match="1,048,576 bytes"):
            asked.quote(1)


def test_several_threads_share_a_session(url):
    with sf.connect(url, token=TOKEN) as session:
        found = []
        asking = [
            threading.Thread(target=lambda: found.append(str(session.sql(SQL).quote(epsilon=1))))
            for _ in range(8)
        ]
        for one in asking:
            one.start()
        for one in asking:
            one.join()
        assert len(found) == 8
        assert len(set(found)) == 1
