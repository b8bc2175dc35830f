"""What is wrong at the server itself is the steward's: everybody else gets one sentence with an id.

Each exception that Sfumato raises on purpose, and foreign ones, comes out of a paid question over all fronts,
as each role and as a job; and before a login.
"""

from __future__ import annotations

import asyncio
import html
import io
import json
import logging
import re
import time

import duckdb
import psycopg
import pytest
from fastapi import FastAPI

from served import SQL, Client, house, known
from sfumato import errors
from sfumato.server import troubles
from sfumato.server.access import Account, Role
from sfumato.server.http.app import make_app
from sfumato.server.log import Log
from sfumato.server.page.app import _Failures
from sfumato.server.page.ask.quoting import Asked, quoted
from sfumato.server.page.ask.section import Ask
from sfumato.server.page.common import Common
from sfumato.server.page.feel.section import Feel
from sfumato.server.page.looks import Looks
from sfumato.server.wire import Front
from sfumato.server.wire.sqlstates import STATES
from sfumato.session import Query, Session
from wire_bytes import Anyone, answers, executed, message, parsed, started, talk, text

WHERE = "/srv/vault/visits.parquet of db7.internal"
TROUBLE = re.compile(r"trouble ([0-9a-f]{12} of [-0-9]{10} [0-9:]{5} UTC)")
TOKENS = {Role.ANALYST: "token-of-ada", Role.AUDITOR: "token-of-eve", Role.STEWARD: "token-of-sam"}
OURS = [getattr(errors, name) for name in errors.__all__]
FOREIGN = [
    ValueError, RuntimeError, KeyError, FileNotFoundError, MemoryError, ConnectionRefusedError,
    RecursionError, TimeoutError, AssertionError, duckdb.IOException, psycopg.OperationalError,
]  # fmt: skip
FEW = [errors.QueryRefused, errors.SourceUnusable, errors.ServerUnreachable, ConnectionRefusedError]


LOOKS = Looks()


def made(kind: type[Exception]) -> Exception:
    if kind is errors.TooManyTries:
        return kind(3)
    if issubclass(kind, OSError) and kind not in OURS:
        return kind(2, "No such file", WHERE)
    return kind(WHERE)


def says(kind: type[Exception]) -> str:
    """What an error says for itself."""
    return "Too many wrong logins" if kind is errors.TooManyTries else WHERE


def is_for(kind: type[Exception], role: Role) -> bool:
    """Whether this role may read it: decided here once more, by what the classes are about."""
    own = (
        errors.SourceUnusable, errors.CatalogUnusable, errors.ServerUnreachable, errors.MissingExtra,
    )  # fmt: skip
    servers = issubclass(kind, own) or kind in (
        errors.SfumatoError, errors.LedgerUnusable, errors.LedgerTampered, errors.EngineFailed,
    )  # fmt: skip
    return kind in OURS and (role is Role.STEWARD or not servers)


@pytest.fixture(scope="module")
def place():
    with house() as made:
        yield made


@pytest.fixture(scope="module")
def ask(place):
    return Client(make_app(place, known))


@pytest.fixture
def logged():
    """What the log says meanwhile."""
    said, logger = io.StringIO(), logging.getLogger("sfumato.server")
    handler = Log(said)
    logger.addHandler(handler)
    yield said
    logger.removeHandler(handler)


@pytest.fixture
def broken(monkeypatch):
    """Has each paid question end in an error."""

    def breaking(kind):
        def release(self, **_):
            raise made(kind) from RuntimeError(WHERE)

        monkeypatch.setattr(Query, "release", release)

    return breaking


def assert_told(kind, role, said, logged):
    """That an answer says as much of an error as the role may know."""
    if is_for(kind, role):
        assert says(kind) in said
        return
    assert WHERE not in said
    assert "/srv" not in said
    assert kind.__name__ not in said
    assert "steward" in said
    id = TROUBLE.search(said)[1]
    lines = [json.loads(line)["trouble"] for line in logged.getvalue().splitlines()]
    assert [line for line in lines if id in line] == [line for line in lines if kind.__name__ in line]
    assert len([line for line in lines if id in line]) == 1
    assert WHERE not in logged.getvalue()


def test_every_code_is_told_or_withheld():
    codes = {kind.code for kind in OURS}
    assert codes == troubles.TOLD | troubles.WITHHELD
    assert not troubles.TOLD & troubles.WITHHELD
    assert {kind for kind in OURS if is_for(kind, Role.ANALYST)} == {
        kind for kind in OURS if kind.code in troubles.TOLD
    }


class _Later(errors.SfumatoError):
    """One that nobody has decided about yet."""

    code = "later"


@pytest.mark.parametrize("role", [Role.ANALYST, Role.STEWARD])
@pytest.mark.parametrize(
    ("path", "kind"),
    [("/api/release", kind) for kind in OURS + FOREIGN] + [("/api/session/release", kind) for kind in FEW],
)
def test_over_http(ask, broken, logged, kind, role, path):
    broken(kind)
    found = ask("POST", path, TOKENS[role], json={"sql": SQL, "epsilon": "0.5"})
    assert found.status_code >= 400
    assert found.json()["error"]["code"] == (kind.code if kind in OURS else "error")
    assert_told(kind, role, found.text, logged)


@pytest.mark.parametrize("kind", [*OURS, *FOREIGN, _Later])
def test_an_auditor_and_who_is_not_known_are_told_as_much_as_an_analyst(place, monkeypatch, logged, kind):
    def fails(*_, **__):
        raise made(kind)

    monkeypatch.setattr(place.ledger, "analysts", fails)
    seen = Client(make_app(place, known))("GET", "/api/datasets/visits/analysts", TOKENS[Role.AUDITOR])
    assert_told(kind, Role.AUDITOR, seen.text, logged)
    nobody = Client(make_app(place, fails))("GET", "/api/me")
    assert nobody.status_code in (401, 429, 503)
    assert (WHERE in nobody.text) == (issubclass(kind, errors.AccessDenied) and says(kind) == WHERE)


@pytest.mark.parametrize("role", [Role.ANALYST, Role.STEWARD])
@pytest.mark.parametrize("kind", OURS + FOREIGN)
def test_as_a_job(ask, broken, logged, kind, role):
    broken(kind)
    job = ask("POST", "/api/jobs", TOKENS[role], json={"sql": SQL, "epsilon": "0.5"}).json()
    end = time.monotonic() + 60
    while ask("GET", job["address"], TOKENS[role]).json()["state"] != "failed":
        assert time.monotonic() < end
    first, again = (ask("GET", job["result"], TOKENS[role]) for _ in range(2))
    assert first.text == again.text
    assert_told(kind, role, first.text, logged)
    ask("DELETE", job["address"], TOKENS[role])


@pytest.mark.parametrize("role", [None, *Role])
@pytest.mark.parametrize("kind", OURS + FOREIGN)
def test_on_the_page(logged, kind, role):
    app = FastAPI()
    _Failures(Looks()).add_to(app)

    @app.get("/")
    def fails():
        raise made(kind)

    async def entered(scope, receive, send):
        scope["state"] = {} if role is None else {"asker": Account("somebody", role)}
        await app(scope, receive, send)

    found = Client(entered)("GET", "/", None)
    assert found.status_code >= 400
    assert_told(kind, role or Role.ANALYST, html.unescape(found.text), logged)


async def _at_once(work):
    return work()


@pytest.mark.parametrize("role", [Role.ANALYST, Role.STEWARD])
@pytest.mark.parametrize("act", ["quote", "release", "feel"])
@pytest.mark.parametrize(
    "kind", [errors.QueryRefused, *(kind for kind in OURS if kind.code in troubles.WITHHELD)]
)
def test_where_the_page_shows_an_error_beside_the_question(
    place, broken, monkeypatch, logged, kind, act, role
):
    app = FastAPI()
    common = Common(place, None, _at_once, _at_once, LOOKS, None)
    _Failures(common.looks).add_to(app)
    Ask(common).add_to(app)
    Feel(common).add_to(app)

    async def entered(scope, receive, send):
        scope["state"] = {"asker": Account("ada", role)}
        await app(scope, receive, send)

    sent = {"sql": SQL, "epsilon": "0.1"}
    if act == "release":
        sent["seen"] = quoted(place.session("ada"), Asked(**sent)).seen
        broken(kind)
    else:

        def fails(*_, **__):
            raise made(kind)

        monkeypatch.setattr(Session, "sql", fails)
    path = "/feel" if act == "feel" else f"/ask/{act}"
    found = Client(entered)("POST", path, None, data=sent, headers={"X-Form": "x"})
    assert found.status_code >= 400 or act == "quote"
    assert_told(kind, role, html.unescape(found.text), logged)


class _Login(Anyone):
    def __init__(self, role):
        self.account = Account("somebody", role)


def front_of(place, role, **more):
    more = {"session_of": lambda login, database: place.session("ada")} | more
    return Front(
        login_of=lambda user, address, binding: _Login(role),
        is_steward=lambda login: login.account.role is Role.STEWARD,
        plain=True,
        **more,
    )


def error_of(front, *parts):
    """The fields of the error that a front says at last, as text."""

    async def one():
        try:
            return await talk(front, started() + b"".join(parts))
        finally:
            await front.stop()

    return [body for kind, body in answers(asyncio.run(one())) if kind == ord("E")][-1].decode()


PRICED = message(b"Q", text("SET sfumato.epsilon = 0.1"))
ASKED = {
    "simple": message(b"Q", text(SQL)),
    "extended": parsed(SQL) + executed(),
    "cursor": message(b"Q", text(f"DECLARE c CURSOR WITH HOLD FOR {SQL}")),
}


@pytest.mark.parametrize("role", [Role.ANALYST, Role.STEWARD])
@pytest.mark.parametrize(
    ("asked", "kind"),
    [("simple", kind) for kind in OURS + FOREIGN]
    + [(way, kind) for way in ("extended", "cursor") for kind in FEW],
)
def test_over_the_wire(place, broken, logged, kind, role, asked):
    broken(kind)
    said = error_of(front_of(place, role), PRICED, ASKED[asked])
    ends = issubclass(kind, errors.LoginFailed)  # the connection ends with it
    assert_told(kind, Role.ANALYST if ends else role, said, logged)
    assert f"\0C{STATES.get(kind, '28P01' if ends else 'XX000')}\0" in said


@pytest.mark.parametrize("kind", OURS + FOREIGN)
def test_before_a_login_over_the_wire(place, logged, kind):
    def fails(*_):
        raise made(kind)

    said = error_of(front_of(place, Role.STEWARD, session_of=fails))
    assert_told(kind, Role.ANALYST, said, logged)


def test_a_ledger_that_is_damaged_is_not_located(tmp_path, logged):
    place = tmp_path / "somewhere" / "visits.ledger"
    place.parent.mkdir()
    with house(ledger=place) as made:
        ask = Client(make_app(made, known))
        assert ask("GET", "/api/datasets/visits/balance").status_code == 200
        for path in place.parent.glob("visits.ledger*"):
            path.write_bytes(b"no database" * 1000)
        seen = {role: ask("GET", "/api/datasets/visits/balance", TOKENS[role]) for role in TOKENS}
        assert {found.status_code for found in seen.values()} == {500}
        assert ("somewhere" in seen[Role.STEWARD].text) is True
        for role in (Role.ANALYST, Role.AUDITOR):
            assert "somewhere" not in seen[role].text
            assert TROUBLE.search(seen[role].text)[1] in logged.getvalue()
        assert "somewhere" not in logged.getvalue()
