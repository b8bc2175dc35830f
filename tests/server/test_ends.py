"""Every field of a request that holds a number, at the ends of what is admitted and beyond: never a fault."""

import pytest

from served import SQL, Client, client_of, house

# As near to nothing, to one and to everything as a parameter goes, and one step further. A ratio in 64
# characters comes nearest to one.
SMALL = ["1e-299", "1e-300", "1e-301", "1e-400", "1e-50", "1e-17", 5e-324]
ONE = ["0." + "9" * 16, "0." + "9" * 62, f"{10**31 - 1}/{10**31}", f"{10**31 + 1}/{10**31}", 1 - 2**-53, 1]
LARGE = ["1e16", "1e300", "1e301", "1e400", 2**63, 1.7e308]
ENDS = [*SMALL, *ONE, *LARGE, 0, "0", "-0", -1, "", "nan"]
QUESTIONS = [
    SQL,
    "SELECT MEDIAN(amount) AS n FROM visits",
    "SELECT COUNT(DISTINCT user_id) AS n, STDDEV(amount) AS spread FROM visits",
]
TERMS = [
    lambda end: {"epsilon": end},
    lambda end: {"epsilon": "0.5", "delta": end},
    lambda end: {"epsilon": "0.5", "delta": "1e-9", "confidence": end},
    lambda end: {"error": 50, "confidence": end},
    lambda end: {"error": end},
    lambda end: {"error": {"n": end}},
    lambda end: {"error": {"n": end, "spend": end}, "delta": "1e-9"},
]


@pytest.fixture(scope="module")
def ask():
    with house(epsilon=1000) as made:
        yield client_of(made)


def answered(found) -> None:
    """An answer, or a refusal in words."""
    assert found.status_code < 500, found.text
    if found.status_code != 200:
        assert found.json()["error"]["message"]
    assert "nan%" not in found.text


@pytest.mark.parametrize("sql", QUESTIONS, ids=range(len(QUESTIONS)))
@pytest.mark.parametrize("terms", TERMS, ids=range(len(TERMS)))
def test_no_quote_is_a_fault(ask: Client, terms, sql):
    for end in ENDS:
        answered(ask("POST", "/api/quote", json={"sql": sql, **terms(end)}))


def test_the_noise_is_compared_at_every_confidence(ask: Client):
    def why(confidence: str) -> str:
        body = {"sql": SQL, "epsilon": "0.5", "delta": "1e-9", "confidence": confidence}
        return ask("POST", "/api/quote", json=body).json()["quote"]["why"]

    assert {why(tiny) for tiny in ("1e-16", "1e-17", "1e-50", "1e-300")} == {why("1e-5")}


@pytest.mark.parametrize("sql", QUESTIONS, ids=range(len(QUESTIONS)))
def test_no_quote_of_the_python_client_is_a_fault(ask: Client, sql):
    for places in (17, 300, 301, 400):  # its numbers may be longer
        near = f"{10**places - 1}/{10**places}"
        for terms in ({"epsilon": "0.5", "delta": "1e-9"}, {"error": "50"}):
            answered(ask("POST", "/api/session/quote", json={"sql": sql, "confidence": near, **terms}))


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.apache.arrow.stream"])
def test_no_answer_or_rereading_is_a_fault(ask: Client, accept):
    body, headers = {"sql": SQL, "epsilon": "0.5"}, {"Accept": accept}
    assert ask("POST", "/api/release", json=body).status_code == 200
    number = ask("GET", "/api/receipts").json()[-1]["number"]
    for end in ENDS:
        found = ask("POST", "/api/release", json={**body, "confidence": end}, headers=headers)
        assert found.status_code < 500, found.text
        at = f"/api/receipts/{number}/answer"
        found = ask("GET", at, params={"confidence": str(end)}, headers=headers)
        assert found.status_code < 500, found.text


@pytest.mark.parametrize("figure", ["epsilon", "delta"])
def test_no_act_of_a_steward_is_a_fault(ask: Client, figure):
    for end in ENDS:
        figures = {"epsilon": 1, figure: end}
        for method, path, body in (
            ("PUT", "/api/datasets/visits/analysts/bob/limit", {**figures, "reason": "r"}),
            ("POST", "/api/datasets/visits/allot", {"limits": {"bob": figures}, "reason": "r"}),
        ):
            answered(ask(method, path, "token-of-sam", json=body))
