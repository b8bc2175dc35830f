"""Whatever name an account or a dataset may have, each address that names it finds it."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest

import sfumato as sf
from served import Client, client_of, house, known, started
from sfumato.server.access import Accounts, Role
from sfumato.server.doors import http_front
from sfumato.server.house import House
from sfumato.server.http.app import make_app

# Subjects of identity providers, parts of addresses, and signs that mean something in one.
NAMES = [
    "a/b", "/", "//", "a/", "https://idp.example/users/7", "auth0|5f7", "mia/tokens", "x/revoke",
    "visits/analysts/mia", "../mia", ".", "..", "a+b", "a%2Fb", "a?b=c", "a#b", "mia@example.org", "日本/語",
    "a\\b", "{name}", "/" * 200,
]  # fmt: skip
WHY = {"reason": "the term begins"}


def in_path(name: str) -> str:
    """A name as a part of an address; dots too, since `..` means the part above."""
    return quote(name, safe="").replace(".", "%2E")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    ledger = str(tmp_path_factory.mktemp("names") / "visits.ledger")
    with house(ledger=ledger) as made, Accounts.open(ledger) as accounts:
        accounts.add("sam", Role.STEWARD)
        client, token = Client(http_front(made, accounts)), accounts.issue("sam")[0]
        yield lambda method, path, **more: client(method, path, token, **more)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_every_name_of_an_account_is_found_by_every_address(place, name: str) -> None:
    at = in_path(name)
    made = place("POST", "/api/accounts", json={"name": name})
    assert made.status_code == 201, made.text
    written = made.json()["name"]
    token = place("POST", f"/api/accounts/{at}/tokens", json={})
    assert token.status_code == 201, token.text
    assert token.json()["name"] == written
    one = f"/api/datasets/visits/analysts/{at}"
    limit = place("PUT", f"{one}/limit", json={"epsilon": "0.25", **WHY})
    assert limit.status_code == 200, limit.text
    (balance,) = [
        each for each in place("GET", "/api/datasets/visits/analysts").json() if each["analyst"] == written
    ]
    assert balance["budget"]["epsilon"] == 0.25
    assert place("POST", f"{one}/revoke", json=WHY).status_code == 200
    assert place("DELETE", f"/api/tokens/{token.json()['id']}").status_code == 200
    removed = place("DELETE", f"/api/accounts/{at}")
    assert removed.json() == {"removed": written}
    assert place("DELETE", f"/api/accounts/{at}").status_code >= 400


@pytest.mark.parametrize(
    "path", ["/api/accounts/a/b", "/api/accounts/a/b/tokens", "/api%2Faccounts/a", "/api/accounts%2Fa"]
)
def test_a_slash_of_the_address_is_none_of_a_name(place, path: str) -> None:
    assert place("POST" if path.endswith("tokens") else "DELETE", path).status_code == 404


@pytest.mark.parametrize(
    "name", ["a/b", "visits/balance", "https://example.org/visits", "a/analysts", "Zoë 7%"]
)
def test_every_name_of_a_dataset_is_found_by_every_address(name: str) -> None:
    table = sf.PrivateTable(
        "visits",
        source=pa.table({"age": [30, 40]}),
        unit=sf.PrivacyUnit.row(),
        schema={"age": sf.Int(0, 100)},
        dataset=name,
    )
    with sf.Session(table, budget=sf.Budget(epsilon=3)) as session:
        ask, at = client_of(House(session)), in_path(name)
        assert ask("GET", f"/api/datasets/{at}").json()["name"] == name
        assert ask("GET", f"/api/datasets/{at}/balance").json()["left"]["epsilon"] == 3
        assert ask("GET", f"/api/session/balance/{at}").status_code == 200
        assert ask("GET", f"/api/datasets/{at}/balance").json() != ask("GET", f"/api/datasets/{at}").json()
        limit = {"epsilon": 1, **WHY}
        path = f"/api/datasets/{at}/analysts/mia%2Flimit/limit"
        assert ask("PUT", path, "token-of-sam", json=limit).status_code == 200
        found = ask("GET", f"/api/datasets/{at}/analysts", "token-of-sam").json()
        assert "mia/limit" in [each["analyst"] for each in found]


def test_a_real_server_hands_names_over_as_they_were_sent() -> None:
    with house() as made, started(make_app(made, known)) as address:
        path = f"{address}/api/datasets/visits/analysts/a%2Fb%2Flimit/limit"
        told = httpx.put(
            path, json={"epsilon": 1, **WHY}, headers={"Authorization": "Bearer token-of-sam"}, timeout=60
        )
        assert told.status_code == 200, told.text
        assert "a/b/limit" in made.ledger.analysts("visits")
