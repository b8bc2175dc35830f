"""Two servers over one ledger in PostgreSQL: the same accounts, budgets and answers, whichever is asked."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

from lives import accounts, catalog, tokens_of
from sfumato.ledger import Ledger

CLIENT = httpx.Client(verify=False)
SQL = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"


@pytest.fixture(scope="module")
def shared(nursery, postgres_server, tmp_path_factory):
    """The catalog, two servers and their accounts' tokens."""
    folder = tmp_path_factory.mktemp("shared")
    with postgres_server.database() as url:
        config = catalog(folder, url=url, epsilon=5, limits={"ada": 2, "bob": 3})
        tokens = tokens_of(config, {"ada": "analyst", "bob": "analyst", "eve": "auditor"})
        both = [nursery.life(config) for _ in range(2)]
        yield config, both, tokens
        CLIENT.close()
        assert [life.end() for life in both] == [0, 0]
        assert not any("Traceback" in life.said for life in both)
        with Ledger.open(url, state=folder / "state") as ledger:
            assert ledger.verify().ok


def asked(life, token, path, **more):
    headers = {"Authorization": f"Bearer {token}"}
    return CLIENT.request("POST" if "json" in more else "GET", life.http + path, headers=headers, **more)


def paid(life, token, sql=SQL, epsilon="0.1"):
    return asked(life, token, "/api/release", json={"sql": sql, "epsilon": epsilon})


def left(life, token):
    return asked(life, token, "/api/datasets/visits/balance").json()["left"]["epsilon"]


def test_an_answer_of_one_is_free_from_the_other(shared):
    _, (one, other), tokens = shared
    first, again = (paid(life, tokens["ada"]).json() for life in (one, other))
    assert (first["free"], again["free"]) == (False, True)
    assert (again["rows"], again["receipt"]) == (first["rows"], first["receipt"])
    assert left(one, tokens["ada"]) == left(other, tokens["ada"]) == pytest.approx(1.9)
    with psycopg.connect(other.postgresql, user="ada", password=tokens["ada"], autocommit=True) as wire:
        wire.execute("SET sfumato.epsilon = 0.1")
        assert wire.execute(SQL).fetchall() == [(row["country"], row["n"]) for row in first["rows"]]
    assert left(one, tokens["ada"]) == pytest.approx(1.9)


def test_both_together_spend_no_more_than_one_limit(shared):
    _, both, tokens = shared
    jobs = [
        (life, f"SELECT COUNT(*) AS n FROM visits WHERE amount < {at}") for at in range(10) for life in both
    ]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda job: paid(job[0], tokens["bob"], job[1], "0.5"), jobs))
    assert {each.status_code for each in found} == {200, 402}
    answers = [each.json() for each in found if each.status_code == 200]
    bought = {each["receipt"] for each in answers if not each["free"]}
    assert len(bought) == 6  # of three epsilon, half of one each
    debits = [
        each for each in asked(both[0], tokens["eve"], "/api/receipts").json() if each["kind"] == "debit"
    ]
    assert {each["number"] for each in debits if each["analyst"] == "bob"} == bought
    assert left(both[1], tokens["bob"]) == 0


def test_who_is_added_or_revoked_is_so_in_both(shared, until):
    config, both, _ = shared
    with accounts(config) as steward:
        steward.add("zoe")
        token, info = steward.issue("zoe")
        assert {asked(life, token, "/api/me").status_code for life in both} == {200}
        steward.revoke(info.id)
    until(lambda: all(asked(life, token, "/api/me").status_code == 401 for life in both), seconds=20)
    for life in both:
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(life.postgresql, user="zoe", password=token)
