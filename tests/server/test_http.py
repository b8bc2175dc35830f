"""The HTTP front: who gets in, what is answered, what is charged."""

import json

import pyarrow as pa
import pytest

from served import SECRET, SQL, Client, client_of, house
from sfumato.errors import LedgerUnusable
from sfumato.ledger import Receipt
from sfumato.server.access import Account, Role
from sfumato.server.http.app import make_app
from sfumato.server.page.ask.past import last_of, leaf_of
from sfumato.server.page.watch.history import Histories
from sfumato.server.page.watch.searching import Wanted, search

PATHS = ["/api", "/api/", "/api/me", "/api/datasets", "/api/nothing", "/api/openapi.json", "/api//datasets"]


@pytest.fixture(scope="module")
def place():
    with house() as made:
        yield made


@pytest.fixture(scope="module")
def ask(place):
    return client_of(place)


def spent(place, name="ada"):
    return place.session(name).balance().spent


def test_health_needs_no_token(ask):
    assert ask("GET", "/health", None).json() == {"status": "ok"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", [None, "", "token-of-nobody", "token-of-ada ", "Bearer token-of-ada", "é"])
def test_nothing_below_api_is_told_without_a_token(ask, path, token):
    headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
    found = ask("GET", path, None, headers=headers)
    assert found.status_code == 401
    assert found.headers["www-authenticate"] == "Bearer"
    assert "datasets" not in found.text


@pytest.mark.parametrize(
    "query", ["token=token-of-ada", "access_token=x", "TOKEN=x", "a=sfu_x", "sfu_x", "a=%73fu_x"]
)
@pytest.mark.parametrize("path", ["/api/datasets", "/health"])
def test_a_token_in_the_address_is_refused(ask, path, query):
    found = ask("GET", f"{path}?{query}")
    assert found.status_code == 400
    assert "header" in found.json()["error"]["message"]


def test_datasets_are_names_and_what_is_declared_of_one(ask):
    assert ask("GET", "/api/datasets").json() == ["visits"]
    (table,) = ask("GET", "/api/datasets/visits").json()["tables"]
    assert table["schema"]["country"]["values"] == ["FR", "DE"]
    assert "source" not in json.dumps(table)
    assert ask("GET", "/api/datasets/others").status_code == 404
    assert ask("GET", "/api/me").json() == {"name": "ada", "role": "analyst"}


def test_a_quote_is_free_and_says_what_is_left(ask, place):
    before = spent(place)
    found = ask("POST", "/api/quote", json={"sql": SQL, "epsilon": "0.3"})
    assert found.status_code == 200
    assert found.json()["quote"]["epsilon"] == 0.3
    assert spent(place) == before


def test_a_release_is_paid_once_and_read_again_free():
    with house() as place:
        ask = client_of(place)
        first = ask("POST", "/api/release", json={"sql": SQL, "epsilon": "0.5"}).json()
        again = ask("POST", "/api/release", json={"sql": SQL, "epsilon": "0.5"}).json()
        assert {row["country"] for row in first["rows"]} == {"FR", "DE"}
        assert first["paid"]["epsilon"] == 0.5
        assert again["free"]
        assert again["rows"] == first["rows"]
        assert again["receipt"] == first["receipt"]
        assert float(spent(place)) == 0.5
        assert ask("GET", "/api/datasets/visits/balance").json()["left"]["epsilon"] == 9.5


def test_an_answer_as_an_arrow_stream_has_its_intervals(ask):
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    found = ask("POST", "/api/release", json={"sql": SQL, "epsilon": 1}, headers=accept)
    table = pa.ipc.open_stream(found.content).read_all()
    assert table.num_rows == 2
    assert {"n", "n_low", "n_high"} <= set(table.column_names)
    assert int(found.headers["sfumato-receipt"]) >= 1


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.apache.arrow.stream"])
@pytest.mark.parametrize("number", ["19/20", " 0.95 ", "9.5e-1", "0.95000000000000000000001", 0.5])
def test_every_way_to_write_a_number_gets_the_answer_that_was_paid(ask, number, accept):
    body = {"sql": SQL, "epsilon": "1/3", "confidence": number}
    assert ask("POST", "/api/release", json=body, headers={"Accept": accept}).status_code == 200


def test_a_key_for_another_question_is_refused(ask, place):
    named = {"Idempotency-Key": "once"}
    body = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"}
    first = ask("POST", "/api/release", json=body, headers=named).json()
    again = ask("POST", "/api/release", json=body, headers=named).json()
    before = spent(place)
    other = ask("POST", "/api/release", json={**body, "epsilon": "0.2"}, headers=named)
    theirs = ask("POST", "/api/release", "token-of-bob", json={**body, "epsilon": "0.2"}, headers=named)
    assert first["rows"] == again["rows"]
    assert other.status_code == 422
    assert theirs.status_code == 200
    assert spent(place) == before


REFUSED = [
    "SELECT * FROM visits",
    "DROP TABLE visits",
    "SELECT city FROM visits",
    "SELECT COUNT(*) FROM visits; SELECT 1",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT COUNT(*) FROM pg_catalog.pg_class",
    "COPY visits TO '/tmp/x'",
    "SELECT MAX(nothing) FROM visits",
    "",
    "\x00",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
]


@pytest.mark.parametrize("sql", REFUSED, ids=range(len(REFUSED)))
@pytest.mark.parametrize("path", ["/api/quote", "/api/release"])
def test_what_is_refused_costs_nothing_and_says_why(ask, place, path, sql):
    before = spent(place)
    found = ask("POST", path, json={"sql": sql, "epsilon": 1})
    assert found.status_code == 422
    assert len(found.json()["error"]["message"]) > 10
    assert spent(place) == before


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": -1}, {"epsilon": True}, {"epsilon": "nan"}, {"epsilon": [1]}, {"epsilon": None},
        {"epsilon": 1e400}, {"delta": 2}, {"confidence": 0}, {"confidence": "1e9"}, {"error": {"n": -1}},
        {"parameters": [[1]]}, {"parameters": "x"}, {"bounds": "all"}, {"epsilon": "9" * 65},
        {"epsilon": "1/0"}, {"sql": 3}, {"more": 1},
    ],
)  # fmt: skip
def test_what_a_body_may_not_hold_is_refused(ask, place, change):
    before = spent(place)
    text = json.dumps({"sql": SQL, "epsilon": 1, **change}).replace("Infinity", "1e400")
    found = ask("POST", "/api/release", content=text, headers={"Content-Type": "application/json"})
    assert found.status_code == 422, found.text
    assert spent(place) == before


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"sql": "' + b"\xed\xa0\x80" + b'"}', b"[" * 100_000, b"1" * 5000],
)
def test_what_is_no_json_is_refused(ask, body):
    found = ask("POST", "/api/quote", content=body, headers={"Content-Type": "application/json"})
    assert found.status_code in (400, 422)
    assert found.json()["error"]["message"]


def test_bodies_beyond_the_cap_are_refused(ask):
    found = ask("POST", "/api/quote", content=b"x" * (1 << 20 | 1))
    assert found.status_code == 413

    def parts():
        async def several():
            for _ in range(40):
                yield b" " * 50_000

        return several()

    assert ask("POST", "/api/quote", content=parts()).status_code == 413
    assert ask("POST", "/api/quote", headers={"Content-Length": "-1"}).status_code == 413


def test_a_budget_that_is_not_enough_is_said(place, ask):
    found = ask("POST", "/api/release", json={"sql": SQL, "epsilon": 1000})
    assert found.status_code == 402
    assert found.json()["error"]["code"] == "budget_exceeded"


def test_an_auditor_reads_and_pays_nothing(ask, place):
    before = spent(place, "eve")
    assert ask("POST", "/api/release", "token-of-eve", json={"sql": SQL, "epsilon": 1}).status_code == 403
    assert spent(place, "eve") == before
    assert ask("GET", "/api/receipts", "token-of-eve").status_code == 200


def test_receipts_are_those_of_whoever_asks():
    with house() as place:
        ask = client_of(place)
        mine = ask("POST", "/api/release", json={"sql": SQL, "epsilon": "0.5"}).json()["receipt"]
        sql = "SELECT COUNT(*) AS n FROM visits"
        theirs = ask("POST", "/api/release", "token-of-bob", json={"sql": sql, "epsilon": "0.5"}).json()[
            "receipt"
        ]
        assert [each["number"] for each in ask("GET", "/api/receipts").json() if each["kind"] == "debit"] == [
            mine
        ]
        assert ask("GET", f"/api/receipts/{mine}").json()["number"] == mine
        assert ask("GET", f"/api/receipts/{theirs}").status_code == 404
        assert ask("GET", f"/api/receipts/{theirs + 100}").status_code == 404
        everyone = {each["number"] for each in ask("GET", "/api/receipts", "token-of-sam").json()}
        assert {mine, theirs} <= everyone
        assert len(ask("GET", "/api/receipts?most=1", "token-of-sam").json()) == 1


def test_to_look_for_one_receipt_others_are_not_read(monkeypatch):
    read, real = [], Receipt.of

    def counted(row):
        read.append(row.number)
        return real(row)

    with house() as place:
        ask = client_of(place)
        for number in range(4):
            sql = f"SELECT COUNT(*) AS n FROM visits WHERE amount > {number}"
            theirs = ask("POST", "/api/release", "token-of-bob", json={"sql": sql, "epsilon": "0.1"}).json()
        mine = ask("POST", "/api/release", json={"sql": SQL, "epsilon": "0.1"}).json()["receipt"]
        first = next(place.session("ada").ledger.entries("visits", kind="debit")).number
        monkeypatch.setattr(Receipt, "of", counted)
        for number, status in ((first, 404), (theirs["receipt"], 404), (mine, 200), (mine + 99, 404)):
            read.clear()
            assert ask("GET", f"/api/receipts/{number}").status_code == status
            assert set(read) <= {number}


def test_what_lists_own_receipts_reads_no_others(monkeypatch):
    read, real = [], Receipt.of

    def counted(row):
        read.append(row.number)
        return real(row)

    with house() as place:
        ask, mine = client_of(place), []
        for number in range(5):
            for who in ("ada", "bob"):
                sql = f"SELECT COUNT(*) AS n FROM visits WHERE amount > {number}"
                json = {"sql": sql, "epsilon": "0.1"}
                paid = ask("POST", "/api/release", f"token-of-{who}", json=json).json()["receipt"]
                mine += [paid] if who == "ada" else []
        session, ada = place.session("ada"), Account("ada", Role.ANALYST)
        own = [each.number for each in place.ledger.entries() if each.analyst == "ada"]
        monkeypatch.setattr(Receipt, "of", counted)
        assert [each["number"] for each in ask("GET", "/api/receipts").json()] == own
        page = ask("GET", f"/api/receipts?after={own[1]}&most=2").json()
        assert [each["number"] for each in page] == own[2:4]
        first = leaf_of(session, most=3)
        assert ([each.number for each in first.receipts], first.older) == (mine[:1:-1], mine[2])
        second = leaf_of(session, first.older, most=2)
        assert ([each.number for each in second.receipts], second.older) == (mine[1::-1], None)
        assert last_of(session, "visits").number == mine[-1]
        assert last_of(session, "other") is None
        found = search(place, ada, Wanted())
        assert [each.receipt.number for each in found.receipts] == own[::-1]
        assert (found.older, found.cut) == (0, False)
        Histories(place).of(ada)
        assert set(read) == set(own)


def test_an_error_that_nobody_foresaw_is_told_without_its_text(monkeypatch, caplog):
    with house() as place:
        ask = client_of(place)

        def broken(_):
            raise RuntimeError(SECRET)

        monkeypatch.setattr(place, "session", broken)
        found = ask("POST", "/api/quote", json={"sql": SQL, "epsilon": 1})
        assert found.status_code == 500
        assert found.json()["error"]["code"] == "error"
        assert SECRET not in found.text + caplog.text
        assert "RuntimeError" in caplog.text


def test_no_answer_is_kept_by_browsers_or_framed(ask):
    for path, token in (
        ("/health", None),
        ("/api/me", None),
        ("/api/me", "token-of-ada"),
        ("/nothing", None),
    ):
        headers = ask("GET", path, token).headers
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "set-cookie" not in headers


def test_the_document_of_the_api_lists_every_address(ask):
    found = ask("GET", "/api/openapi.json").json()
    assert {"/health", "/api/release", "/api/receipts/{number}"} <= set(found["paths"])
    assert "epsilon" in found["components"]["schemas"]["Question"]["properties"]


def test_accounts_that_cannot_be_read_are_one_document():
    def known(token, address):
        raise LedgerUnusable("The ledger /srv/secret.ledger cannot be used.")

    with house() as made:
        found = Client(make_app(made, known))("GET", "/api/datasets")
    assert (found.status_code, found.json()["error"]["code"]) == (503, "unready")
    assert "secret" not in found.text
    assert found.headers["x-content-type-options"] == "nosniff"
