"""The steward's acts over HTTP: who may, what is on record, and what cannot be done from afar."""

import threading
import time

import pytest

from served import SQL, Client, house
from sfumato.engines import duckdb as engine
from sfumato.server.access import Accounts, Role
from sfumato.server.doors import http_front

ASKING = ("/api/quote", "/api/release", "/api/session", "/api/jobs")
WHY = {"reason": "the term begins"}
PEOPLE = {
    "ada": Role.ANALYST,
    "bob": Role.ANALYST,
    "eve": Role.AUDITOR,
    "sam": Role.STEWARD,
    "sue": Role.STEWARD,
}


class Place:
    """A house with accounts, and a request in somebody's name."""

    def __init__(self, made, accounts):
        self.house, self.accounts = made, accounts
        self.client = Client(http_front(made, accounts))
        self.tokens = {}
        for name, role in PEOPLE.items():
            accounts.add(name, role)
            self.tokens[name] = accounts.issue(name)[0]

    def __call__(self, who, method, path, **body):
        more = {"json": body} if method in ("POST", "PUT") else {}
        return self.client(method, path, self.tokens.get(who, who), **more)

    @property
    def receipts(self):
        return list(self.house.ledger.entries())


@pytest.fixture
def fresh(tmp_path):
    ledger = str(tmp_path / "visits.ledger")
    with house(ledger=ledger) as made, Accounts.open(ledger) as accounts:
        yield Place(made, accounts)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    ledger = tmp_path_factory.mktemp("acts") / "visits.ledger"
    with house(ledger=str(ledger)) as made, Accounts.open(str(ledger)) as accounts:
        place = Place(made, accounts)
        assert place("ada", "POST", "/api/release", sql=SQL, epsilon="0.5").status_code == 200
        yield place


ACTS = [
    ("PUT", "/api/datasets/visits/budget", {"epsilon": 11, **WHY}),
    ("POST", "/api/datasets/visits/close", WHY),
    ("PUT", "/api/datasets/visits/analysts/ada/limit", {"epsilon": 3, **WHY}),
    ("POST", "/api/datasets/visits/analysts/bob/revoke", WHY),
    ("POST", "/api/datasets/visits/allot", {"limits": {"ada": {"epsilon": 1}}, **WHY}),
    ("POST", "/api/datasets/visits/take-back", WHY),
    ("POST", "/api/datasets/visits/give", {"receipts": [3], **WHY}),
    ("GET", "/api/accounts", {}),
    ("POST", "/api/accounts", {"name": "mia"}),
    ("DELETE", "/api/accounts/bob", {}),
    ("POST", "/api/accounts/ada/tokens", {}),
    ("DELETE", "/api/tokens/aaaa", {}),
]


def state(place):
    """All that an act could change."""
    return [receipt.number for receipt in place.receipts], place.accounts.list()


@pytest.mark.parametrize("who", ["ada", "eve"])
@pytest.mark.parametrize(("method", "path", "body"), ACTS)
def test_nobody_but_a_steward_acts(place, who, method, path, body):
    before = state(place)
    refused = place(who, method, path, **body)
    assert refused.status_code == 403
    assert "log in as steward" in refused.json()["error"]["message"]
    if method != "GET":
        assert place(who, method, path, nonsense=1).status_code == 403  # before a body is looked at
    assert state(place) == before


def test_nobody_acts_without_a_token(place):
    before = state(place)
    for method, path, body in ACTS:
        assert place("nonsense", method, path, **body).status_code in (401, 429)
    assert state(place) == before


def test_a_limit_is_set_and_on_record_by_name(place):
    done = place("sam", "PUT", "/api/datasets/visits/analysts/ada/limit", epsilon="0.75", **WHY).json()
    assert done["balance"]["budget"]["epsilon"] == 0.75
    assert done["balance"]["left"]["epsilon"] == 0.25
    (number,) = done["receipts"]
    receipt = place.receipts[number - 1]
    assert (receipt.kind, receipt.analyst) == ("limit", "ada")
    assert receipt.memo["by"] == "sam"
    assert receipt.memo["reason"] == WHY["reason"]
    assert place("ada", "POST", "/api/release", sql=SQL, epsilon=3).status_code == 402
    for who in ("sam", "eve"):
        (ada, *_) = place(who, "GET", "/api/datasets/visits/analysts").json()
        assert (ada["analyst"], ada["limited"], ada["spent"]["epsilon"]) == ("ada", True, 0.5)
    assert place("ada", "GET", "/api/datasets/visits/analysts").status_code == 403


def test_somebody_is_revoked_and_let_in_again(place):
    at = "/api/datasets/visits/analysts/bob"
    assert place("sam", "PUT", f"{at}/limit", epsilon=2, **WHY).status_code == 200
    assert place("sam", "POST", f"{at}/revoke", **WHY).status_code == 200
    assert place("bob", "POST", "/api/release", sql=SQL, epsilon=1).status_code == 403
    slip = place("sam", "POST", "/api/datasets/visits/analysts/bobb/revoke", **WHY)
    assert slip.status_code == 422
    assert "bob" in slip.json()["error"]["message"]
    assert place("sam", "PUT", f"{at}/limit", epsilon=2, **WHY).status_code == 200
    assert place("bob", "POST", "/api/release", sql=SQL, epsilon="0.5").status_code == 200


def test_a_budget_is_raised_never_lowered_and_the_file_is_named(place):
    at = "/api/datasets/visits/budget"
    done = place("sam", "PUT", at, epsilon="12.5", **WHY).json()
    assert done["balance"]["budget"] == {"epsilon": 12.5, "delta": 1e-06}
    assert "sfumato.toml" in done["note"]
    assert place.receipts[-1].memo["by"] == "sam"
    assert place("sam", "PUT", at, epsilon=1, **WHY).status_code == 409
    assert place("sam", "PUT", "/api/datasets/other/budget", epsilon=1, **WHY).status_code == 404


def test_limits_of_several_are_set_and_taken_back(place):
    at = "/api/datasets/visits"
    limits = {"mia": {"epsilon": "0.5", "delta": 0}, "zoe": None}
    done = place("sam", "POST", f"{at}/allot", limits=limits, **WHY)
    assert len(done.json()["receipts"]) == 2
    assert place("sam", "POST", f"{at}/allot", limits={"mia": {"epsilon": 100}}, **WHY).status_code == 409
    assert place("sam", "POST", f"{at}/take-back", **WHY).status_code == 200
    assert all(receipt.memo["by"] == "sam" for receipt in place.receipts[-2:])


def test_an_answer_is_given_to_all(place):
    (debit, *_) = [receipt.number for receipt in place.receipts if receipt.kind == "debit"]
    assert place("sam", "POST", "/api/datasets/visits/give", receipts=[debit], **WHY).status_code == 200
    assert place("sam", "POST", "/api/datasets/visits/give", receipts=[1], **WHY).status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {"epsilon": 1}, {"epsilon": 1, "reason": ""}, {"epsilon": 1, "reason": " "}, {"reason": "why"},
        {"epsilon": -1, **WHY}, {"epsilon": "nan", **WHY}, {"epsilon": True, **WHY},
        {"epsilon": 1, "more": 1}, {"epsilon": 1, "delta": 2, **WHY}, {"epsilon": 1, "reason": "x" * 3000},
    ],
)  # fmt: skip
def test_what_is_no_limit_is_refused_in_a_sentence(place, body):
    before = state(place)
    refused = place("sam", "PUT", "/api/datasets/visits/analysts/ada/limit", **body)
    assert refused.status_code == 422
    assert len(refused.json()["error"]["message"]) > 10
    assert state(place) == before


def test_somebody_is_added_gets_a_token_once_and_is_removed(place):
    assert place("sam", "POST", "/api/accounts", name="liv").json() == {"name": "liv", "role": "analyst"}
    issued = place("sam", "POST", "/api/accounts/liv/tokens", days=2)
    assert issued.status_code == 201
    token, name = issued.json()["token"], issued.json()["id"]
    assert place(token, "GET", "/api/me").json() == {"name": "liv", "role": "analyst"}
    listed = place("sam", "GET", "/api/accounts")
    assert {each["name"]: each["tokens"] for each in listed.json()}["liv"][0]["id"] == name
    assert token not in listed.text
    assert place("sam", "DELETE", f"/api/tokens/{name}").json()["status"] == "revoked"
    assert place(token, "GET", "/api/me").status_code == 401
    assert place("sam", "DELETE", "/api/accounts/liv").json() == {"removed": "liv"}
    acts = [receipt for receipt in place.receipts if receipt.kind == "access" and receipt.analyst == "liv"]
    assert [act.memo["act"] for act in acts] == [
        "account added as analyst", "token issued for 2 days", "token revoked", "account removed",
    ]  # fmt: skip
    assert {act.memo["by"] for act in acts} == {"sam"}
    assert token not in str([receipt.to_dict() for receipt in place.receipts])
    assert place.house.ledger.verify().ok


def test_stewards_are_made_at_the_machine_alone(place):
    before = state(place)
    assert place("sam", "POST", "/api/accounts", name="max", role="steward").status_code == 422
    for method, path in (("POST", "/api/accounts/sam/tokens"), ("DELETE", "/api/accounts/SUE")):
        refused = place("sam", method, path)
        assert refused.status_code == 403
        assert "sfumato account" in refused.json()["error"]["message"]
    assert state(place) == before
    stolen = place.accounts.issue("sue")[1].id
    assert place("sam", "DELETE", f"/api/tokens/{stolen}").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/accounts", {"name": "Ada"}),
        ("POST", "/api/accounts", {"name": ""}),
        ("POST", "/api/accounts", {"name": "аda"}),
        ("POST", "/api/accounts/nobody/tokens", {}),
        ("POST", "/api/accounts/ada/tokens", {"days": 0}),
        ("POST", "/api/accounts/ada/tokens", {"days": 10**9}),
        ("DELETE", "/api/accounts/nobody", {}),
        ("DELETE", "/api/tokens/nothing", {}),
        ("DELETE", "/api/tokens/'; DROP TABLE sfumato_tokens", {}),
    ],
)
def test_what_is_no_account_is_refused_in_a_sentence(place, method, path, body):
    before = state(place)
    refused = place("sam", method, path, **body)
    assert refused.status_code == 422
    assert len(refused.json()["error"]["message"]) > 10
    assert state(place) == before


def test_an_account_is_not_made_where_the_ledger_cannot_be_written(place, monkeypatch):
    before = state(place)
    anchor = place.house.ledger._journal.anchor.path
    kept = anchor.read_bytes()
    anchor.unlink()
    try:
        assert place("sam", "POST", "/api/accounts", name="ida").status_code == 500
    finally:
        anchor.write_bytes(kept)
    assert state(place) == before


def test_the_addresses_that_change_something_are_these(place):
    """Others would have to be thought about: what they let somebody do who has stolen a steward's token."""
    paths = place("sam", "GET", "/api/openapi.json").json()["paths"]
    writing = {
        (method.upper(), path.format(name="visits", analyst="ada"))
        for path, methods in paths.items()
        for method in methods
        if method != "get" and not path.startswith(ASKING)
    }
    acts = {
        (method, path.replace("bob", "ada").replace("/accounts/ada", "/accounts/visits"))
        for method, path, _ in ACTS
        if method != "GET"
    }
    assert writing == {(method, path.replace("aaaa", "visits")) for method, path in acts}


def test_a_closed_budget_stays_closed(tmp_path):
    ledger = str(tmp_path / "visits.ledger")
    with house(ledger=ledger) as made, Accounts.open(ledger) as accounts:
        place = Place(made, accounts)
        assert place("sam", "POST", "/api/datasets/visits/close", **WHY).json()["balance"]["open"] is False
        assert place("sam", "PUT", "/api/datasets/visits/budget", epsilon=20, **WHY).status_code == 403
        assert place("ada", "POST", "/api/release", sql=SQL, epsilon=1).status_code == 403


def test_jobs_that_wait_when_their_account_is_removed_cost_nothing(fresh):
    fresh.accounts.add("noa")
    fresh.tokens["noa"] = fresh.accounts.issue("noa")[0]
    reading, go, real = threading.Event(), threading.Event(), engine._fetched

    def waiting(*arguments):
        reading.set()
        assert go.wait(60)
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_fetched", waiting)
        for at in range(4):  # two run, and two wait
            text = f"SELECT COUNT(*) AS n FROM visits WHERE amount > {at}"
            asked = {"sql": text, "epsilon": "0.01"}
            assert fresh("noa", "POST", "/api/jobs", **asked).status_code == 202
        assert reading.wait(60)
        assert fresh("sam", "DELETE", "/api/accounts/noa").status_code == 200
        fresh.accounts.add("noa", Role.AUDITOR)  # who may see the jobs, and not pay
        fresh.tokens["noa"] = fresh.accounts.issue("noa")[0]
        go.set()
        while any(job["state"] in ("waiting", "running") for job in fresh("noa", "GET", "/api/jobs").json()):
            time.sleep(0.01)
    states = [job["state"] for job in fresh("noa", "GET", "/api/jobs").json()]
    assert (states.count("done"), states.count("failed")) == (2, 2)
    paid = [each for each in fresh.receipts if each.analyst == "noa" and each.kind == "debit"]
    assert len(paid) == 2


def test_stewards_and_auditors_see_receipts_of_accounts(place):
    place("sam", "POST", "/api/accounts", name="seen")
    kinds = [
        {each["kind"] for each in place(who, "GET", "/api/receipts?most=1000").json()}
        for who in ("sam", "eve", "ada")
    ]
    assert [("access" in each) for each in kinds] == [True, True, False]
