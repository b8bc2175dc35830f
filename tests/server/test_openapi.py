"""The OpenAPI document as it is, tried by a tester of APIs; and bodies that nobody foresaw, at every address.

Nothing crashes, nothing is told that is not the asker's, nothing is charged, and every answer is as it is
documented. Addresses come from the document: one that is new is tried as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
from collections import Counter
from itertools import cycle

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from served import SECRET, SQL, house
from sfumato.ledger import Ledger
from sfumato.server.access import Accounts
from sfumato.server.http.app import make_app

ROLES = {"ada": "analyst", "sam": "steward", "eve": "auditor"}
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
FEW, MANY = 150, 5_000
# What fits the schema may be no question; and what is wrong may be a header that is sent right after all, or
# a name in the query that nobody reads.
NOT_OURS = [positive_data_acceptance, negative_data_rejection]
load_all_checks()


class Tried:
    """An application over a ledger on disk, with an answer on record, and all that it says."""

    def __init__(self, place, accounts, folder, log) -> None:
        self._place, self._folder, self._log = place, folder, log
        self.tokens = {}
        for name, role in ROLES.items():
            accounts.add(name, role)
            self.tokens[name] = accounts.issue(name)[0]
        # Wrong tokens are not counted here: a tester of APIs sends many.
        self.app = make_app(place, lambda token, _: accounts.check(token), accounts=accounts)
        place.session("ada").sql(SQL).release(epsilon="0.5")
        self._debits = self._charged()
        self.statuses: Counter[int] = Counter()

    def header(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[name]}"}

    def _charged(self) -> int:
        return sum(each.kind == "debit" for each in self._place.ledger.entries())

    def heard(self, status: int, text: str) -> None:
        """One answer."""
        self.statuses[status] += 1
        assert status < 500, text
        self._hides(text)

    def _hides(self, text: str) -> None:
        assert SECRET not in text
        assert str(self._folder) not in text
        assert "Traceback" not in text

    def assert_unharmed(self) -> None:
        self._hides(self._log.text)
        assert self._charged() == self._debits
        assert self._place.ledger.verify().ok


@pytest.fixture
def tried(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    ledger = Ledger.open(tmp_path / "visits.ledger")
    with ledger, house(ledger=ledger) as place, Accounts.open(None) as accounts:
        made = Tried(place, accounts, tmp_path, caplog)
        yield made
        made.assert_unharmed()


def schema_of(tried, who):
    return schemathesis.openapi.from_asgi("/api/openapi.json", tried.app, headers=tried.header(who))


def run(tried, who, operation, mode, examples) -> None:
    @settings(
        max_examples=examples, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def each(case) -> None:
        found = case.call(headers=tried.header(who))
        tried.heard(found.status_code, found.text)
        case.validate_response(found, headers=tried.header(who), excluded_checks=NOT_OURS)

    with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with a request that has no parts
        each()


def as_documented(tried, who, examples, *, every=1, modes=lambda _: MODES) -> None:
    operations = [found.ok() for found in schema_of(tried, who).get_all_operations()]
    assert len(operations) > 20
    for operation in operations[::every]:
        for mode in modes(operation):
            run(tried, who, operation, mode, examples)
    assert 422 in tried.statuses


def test_what_a_steward_is_answered_is_as_it_is_documented(tried):
    as_documented(tried, "sam", 1, every=2, modes=lambda operation: MODES[bool(operation.body) :][:1])


@pytest.mark.stats
@pytest.mark.parametrize("who", ROLES)
def test_what_everybody_is_answered_is_as_it_is_documented(tried, who):
    as_documented(tried, who, 20)


QUESTION = {"sql": SQL, "epsilon": "0.5"}
PARTS = {"name": "visits", "number": 3}
SOUND = {
    "GET /health", "GET /ready", "GET /metrics", "GET /api/me", "GET /api/datasets", "GET /api/jobs",
    "GET /api/datasets/{name}", "GET /api/datasets/{name}/balance", "GET /api/datasets/{name}/analysts",
    "POST /api/quote", "POST /api/release", "GET /api/receipts", "GET /api/receipts/{number}",
    "GET /api/receipts/{number}/answer", "GET /api/ledger/verify", "GET /api/ledger/export",
    "GET /api/accounts", "GET /api/session",
}  # fmt: skip


def test_what_succeeds_is_as_it_is_documented(tried):
    done = set()
    for who in ("ada", "sam"):
        for operation in (found.ok() for found in schema_of(tried, who).get_all_operations()):
            if operation.label not in SOUND or (operation.label, who) == ("POST /api/release", "sam"):
                continue
            parts = {name: value for name, value in PARTS.items() if f"{{{name}}}" in operation.path}
            more = {"body": QUESTION, "media_type": "application/json"} if operation.body else {}
            case = operation.Case(path_parameters=parts, **more)
            found = case.call(headers=tried.header(who))
            tried.heard(found.status_code, found.text)
            case.validate_response(found, headers=tried.header(who))
            if found.status_code == 200:
                done.add(operation.label)
    assert done == SOUND


async def asked(tried, who, method, path, body, kind="application/json"):
    """The status and text of one answer, straight from the application."""
    sent, token = [], tried.header(who)["Authorization"]

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "client": ("10.0.0.1", 1), "server": ("house", 80), "state": {},
        "headers": [(b"authorization", token.encode()), (b"content-type", kind.encode())],
    }  # fmt: skip
    await tried.app(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent[1:]).decode("utf-8", "replace")
    return sent[0]["status"], text


# ── bodies that nobody foresaw

ODD = [
    None, True, -1, 0, 1e308, 10**400, "", "\0", "\ud800", "é" * 300, [], {}, [[]], {"a": {}}, "NaN", "1/0",
    "sam", "visits", "auto", ["x"] * 2000, {"epsilon": "1"}, "0.1", SQL, "-0", " ", "\u202e", "1e-400",
]  # fmt: skip
OTHERS = ["text/plain", "multipart/form-data; boundary=x", "application/json; charset=utf-16", ""]
KINDS = ["application/json"] * 6 + OTHERS


def malformed(chance: random.Random, fields: list[str]) -> bytes:
    """A body of which something is wrong."""
    chosen = {name: chance.choice(ODD) for name in chance.sample(fields, chance.randint(0, len(fields)))}
    if chance.random() < 0.2:
        chosen[chance.choice(["more", "__proto__", "", "SQL", "\0"])] = chance.choice(ODD)
    value = chance.choice([chosen] * 6 + [[chosen], chosen.get("sql"), [], 0])
    data = bytearray(json.dumps(value).encode())
    for _ in range(chance.choice([0, 0, 1, 3])):
        at = chance.randrange(len(data) + 1)
        data[at : at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
    return bytes(data) or b"\xff"


async def many_malformed(tried, many: int) -> None:
    chance = random.Random(24)
    _, text = await asked(tried, "sam", "GET", "/api/openapi.json", b"")
    document = json.loads(text)
    fields = sorted(
        {name for each in document["components"]["schemas"].values() for name in each.get("properties", {})}
    )
    places = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation
    ]
    assert len(places) > 8
    for (method, path, operation), _ in zip(cycle(places), range(many), strict=False):
        named = {
            "{name}": chance.choice(["visits", "x", "%00"]),
            "{analyst}": chance.choice(["ada", "bob", "\0"]),
        }
        for slot, value in named.items():
            path = path.replace(slot, value)
        body = malformed(chance, properties(document, operation) if chance.random() < 0.8 else fields)
        # Nobody's questions are answered: whoever may not spend asks them too.
        who = "eve" if is_a_release(body) else chance.choice(list(ROLES))
        status, text = await asked(tried, who, method, path, body, chance.choice(KINDS))
        tried.heard(status, text)


def properties(document, operation) -> list[str]:
    (content,) = operation["requestBody"]["content"].values()
    name = content["schema"]["$ref"].rpartition("/")[2]
    return sorted(document["components"]["schemas"][name]["properties"])


def is_a_release(body: bytes) -> bool:
    """Whether it may be a question that can be answered, and would rightly be charged."""
    return b"SELECT" in body


@pytest.mark.parametrize("many", [FEW, pytest.param(MANY, marks=pytest.mark.stats)])
def test_bodies_that_nobody_foresaw_are_refused(tried, many):
    asyncio.run(many_malformed(tried, many))
    assert tried.statuses[422] > many / 3
