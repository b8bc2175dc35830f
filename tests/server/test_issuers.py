"""Logins by tokens that an OIDC provider signed: who gets in, and every way that nobody does."""

import base64
import hmac
import json
import threading
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from provider import AUDIENCE, provider
from served import Client, house
from sfumato.errors import InvalidParameter, LoginFailed
from sfumato.server.access import Accounts, issuers
from sfumato.server.access.issuers import Issuer, lists_keys_at
from sfumato.server.doors import http_front
from sfumato.server.ways import Ways


@pytest.fixture(scope="module")
def issuing():
    with provider() as made:
        yield made


@pytest.fixture(scope="module")
def strangers():
    """A provider that is somebody else's."""
    with provider() as made:
        yield made


@pytest.fixture
def issuer(issuing):
    return Issuer(issuing.issuer, AUDIENCE)


@pytest.mark.parametrize("key", ["rsa", "ec"])
def test_a_token_of_the_issuer_is_its_names(issuing, issuer, key):
    assert issuer.name_of(issuing.token(key=key)) == "ada"
    assert issuer.name_of(issuing.token(key=key, aud=["others", AUDIENCE], sub="bob")) == "bob"


def test_the_name_may_be_another_claim(issuing):
    issuer = Issuer(issuing.issuer, AUDIENCE, claim="email")
    with pytest.raises(LoginFailed):
        issuer.name_of(issuing.token(email="ada@example.org"))
    assert issuer.name_of(issuing.token(email="ada@example.org", email_verified=True)) == "ada@example.org"


def encoded(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def unsigned(issuing, algorithm="none"):
    _, claims, _ = issuing.token().split(".")
    return f"{encoded({'alg': algorithm, 'kid': 'rsa', 'typ': 'JWT'})}.{claims}."


def by_the_public_key(issuing):
    """Signed with the public key as if it were a password."""
    public = issuing.keys["rsa"].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    claims = jwt.decode(issuing.token(), options={"verify_signature": False})
    head = encoded({"alg": "HS256", "kid": "rsa", "typ": "JWT"})
    signed = f"{head}.{encoded(claims)}"
    return f"{signed}.{encoded(hmac.digest(pem, signed.encode(), 'sha256'))}"


def with_its_own_key(issuing):
    """Signed with a key that the token brings along."""
    own = rsa.generate_private_key(65537, 2048)
    public = jwt.algorithms.RSAAlgorithm.to_jwk(own.public_key(), as_dict=True)
    claims = jwt.decode(issuing.token(), options={"verify_signature": False})
    heads = {"kid": "rsa", "jwk": public, "jku": "http://127.0.0.1:1/keys"}
    return jwt.encode(claims, own, algorithm="RS256", headers=heads)


def altered(issuing):
    head, _, signature = issuing.token().split(".")
    other = jwt.decode(issuing.token(), options={"verify_signature": False}) | {"sub": "sam"}
    return f"{head}.{encoded(other)}.{signature}"


def now(seconds):
    return int(time.time()) + seconds


ATTACKS = {
    "no signature": unsigned,
    "no signature, spelled otherwise": lambda issuing: unsigned(issuing, "nOnE"),
    "signed by the public key": by_the_public_key,
    "a key of its own": with_its_own_key,
    "altered": altered,
    "another issuer": lambda issuing: issuing.token(iss="https://elsewhere.example"),
    "another audience": lambda issuing: issuing.token(aud="others"),
    "no audience": lambda issuing: issuing.token(aud=None),
    "no issuer": lambda issuing: issuing.token(iss=None),
    "no subject": lambda issuing: issuing.token(sub=None),
    "no end": lambda issuing: issuing.token(exp=None),
    "expired": lambda issuing: issuing.token(exp=now(-60)),
    "not yet valid": lambda issuing: issuing.token(nbf=now(60)),
    "an end that is no time": lambda issuing: jwt.encode(
        {"iss": issuing.issuer, "aud": AUDIENCE, "sub": "ada", "exp": "never"},
        issuing.keys["rsa"],
        algorithm="RS256",
        headers={"kid": "rsa"},
    ),
    "a key of another name": lambda issuing: issuing.token(headers={"kid": "ec"}),
    "an unknown key": lambda issuing: issuing.token(headers={"kid": "unknown"}),
    "no name of a key": lambda issuing: jwt.encode({"sub": "ada"}, issuing.keys["rsa"], algorithm="RS256"),
    "another algorithm": lambda issuing: jwt.encode(
        jwt.decode(issuing.token(), options={"verify_signature": False}),
        issuing.keys["rsa"],
        algorithm="PS256",
        headers={"kid": "rsa"},
    ),
    "what must be understood": lambda issuing: issuing.token(headers={"crit": ["x"], "x": 1}),
    "too long": lambda issuing: issuing.token(more="x" * 20_000),
    "no token": lambda issuing: "a.b.c",
    "nothing": lambda issuing: "..",
    "deep": lambda issuing: f"{encoded(b'[' * 3000)}.e30.e30",
    "numbers": lambda issuing: f"{encoded({'alg': 1, 'kid': 2})}.e30.e30",
    "a name that is none": lambda issuing: issuing.token(sub=""),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nobody_gets_in_by(issuing, issuer, attack):
    with pytest.raises(LoginFailed):
        issuer.name_of(ATTACKS[attack](issuing))


def test_tokens_of_another_provider_are_nobodys(strangers, issuer):
    with pytest.raises(LoginFailed):
        issuer.name_of(strangers.token())


def test_a_provider_that_says_it_is_another_one_is_not_believed(strangers):
    strangers.claims_to_be = "https://elsewhere.example"
    try:
        with pytest.raises(LoginFailed):
            Issuer(strangers.issuer, AUDIENCE).name_of(strangers.token())
    finally:
        strangers.claims_to_be = None


def test_keys_that_are_too_weak_or_for_something_else_sign_nothing(strangers):
    weak = rsa.generate_private_key(65537, 1024)
    curve = ec.generate_private_key(ec.SECP384R1())
    of_rsa, of_ec = jwt.algorithms.RSAAlgorithm.to_jwk, jwt.algorithms.ECAlgorithm.to_jwk
    strangers.more_keys = [
        {**of_rsa(weak.public_key(), as_dict=True), "kid": "weak"},
        {**of_ec(curve.public_key(), as_dict=True), "kid": "curve"},
        {**of_rsa(strangers.keys["rsa"].public_key(), as_dict=True), "kid": "encrypts", "use": "enc"},
        {**of_rsa(strangers.keys["rsa"].public_key(), as_dict=True), "kid": "others", "alg": "RS512"},
        {"kty": "oct", "k": encoded(b"x" * 32), "kid": "shared"},
        {"kid": "nothing"},
    ]
    issuer = Issuer(strangers.issuer, AUDIENCE)
    assert issuer.name_of(strangers.token()) == "ada"
    assert set(issuer._keys) == {"rsa", "ec"}
    strangers.more_keys = []


def test_keys_are_fetched_again_for_a_new_name_but_rarely(strangers):
    ticks = [0.0]
    issuer = Issuer(strangers.issuer, AUDIENCE, ticks=lambda: ticks[0])
    assert issuer.name_of(strangers.token()) == "ada"
    fetched = len(strangers.asked)
    for number in range(50):
        with pytest.raises(LoginFailed):
            issuer.name_of(strangers.token(headers={"kid": f"unknown{number}"}))
    assert len(strangers.asked) == fetched
    strangers.keys["rsa2"] = rsa.generate_private_key(65537, 2048)
    ticks[0] = 61.0
    assert issuer.name_of(strangers.token(key="rsa2")) == "ada"
    assert len(strangers.asked) == fetched + 2
    retired = strangers.token(key="rsa2")
    del strangers.keys["rsa2"]
    ticks[0] += 3601
    with pytest.raises(LoginFailed):
        issuer.name_of(retired)


def together(*calls):
    """What each call gives or raises, all at once; an error if one does not end."""
    ended = [None] * len(calls)

    def run(number):
        try:
            ended[number] = calls[number]()
        except LoginFailed as error:
            ended[number] = type(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "held up"
    return ended


def test_a_provider_that_hangs_holds_nobody_up(strangers, monkeypatch):
    monkeypatch.setattr(issuers, "_PATIENCE", 0.3)
    ticks = [0.0]
    issuer = Issuer(strangers.issuer, AUDIENCE, ticks=lambda: ticks[0])
    good, unknown = strangers.token(), strangers.token(headers={"kid": "unknown"})
    strangers.goes_on.clear()
    assert together(*[lambda: issuer.name_of(good)] * 4) == [LoginFailed] * 4  # no key is known yet
    strangers.goes_on.set()
    issuer._renewal._over.wait(30)
    assert issuer.name_of(good) == "ada"
    strangers.goes_on.clear()
    for age in (3601.0, 80_000.0):  # each time keys are wanted, and do not come
        ticks[0] = age
        calls = [lambda: issuer.name_of(good), lambda: issuer.name_of(unknown)] * 8
        assert together(*calls) == ["ada", LoginFailed] * 8
        assert not issuer._renewal.over
    strangers.goes_on.set()
    issuer._renewal._over.wait(30)
    ticks[0] = 80_000 + 86_400.0  # as old as they may be, of what came at last
    assert issuer.name_of(good) == "ada"


def test_a_fetch_ends_however_slowly_a_provider_sends(strangers, monkeypatch):
    monkeypatch.setattr(issuers, "_LONGEST_FETCH", 0.3)
    ticks = [0.0]
    issuer = Issuer(strangers.issuer, AUDIENCE, ticks=lambda: ticks[0])
    strangers.goes_on.clear()
    with pytest.raises(LoginFailed):
        issuer.name_of(strangers.token())
    assert issuer._renewal._over.wait(30)
    strangers.goes_on.set()
    ticks[0] = 61.0
    monkeypatch.setattr(issuers, "_LONGEST_FETCH", 30.0)
    assert issuer.name_of(strangers.token()) == "ada"


def bad_keys(issuing):
    """Entries that no key can be read from, in every way."""
    whole = jwt.algorithms.RSAAlgorithm.to_jwk(issuing.keys["rsa"].public_key(), as_dict=True)
    point = jwt.algorithms.ECAlgorithm.to_jwk(issuing.keys["ec"].public_key(), as_dict=True)
    changed = [
        {**whole, "n": "?"},
        {**whole, "n": 5},
        {**whole, "n": None},
        {**whole, "n": ""},
        {**whole, "e": encoded(b"\x01")},
        {**whole, "e": encoded(b"\x00")},
        {**whole, "kty": []},
        {**whole, "use": {}},
        {**whole, "alg": 5},
        {**whole, "d": "x", "p": "x"},
        {"kty": "RSA"},
        {**point, "x": point["y"]},
        {**point, "x": encoded(b"short")},
        {**point, "y": []},
        {**point, "crv": "P-1"},
        {**point, "crv": None},
    ]
    named = [{**each, "kid": f"bad{number}"} for number, each in enumerate(changed)]
    again = [{**each, "kid": "rsa"} for each in changed]  # under the name of one that can be read
    return [None, 5, "key", [], [whole], {}, {**whole, "kid": 5}, {**whole, "kid": None}, *named, *again]


def test_a_key_that_cannot_be_read_keeps_out_no_other(strangers):
    strangers.more_keys = bad_keys(strangers)
    try:
        issuer = Issuer(strangers.issuer, AUDIENCE)
        for key in ("rsa", "ec"):
            assert issuer.name_of(strangers.token(key=key)) == "ada"
        assert set(issuer._keys) == {"rsa", "ec"}
    finally:
        strangers.more_keys = []


@pytest.mark.parametrize(
    "where",
    [
        "http://elsewhere.example/keys",
        "http://127.1:{port}/keys",  # which is this very provider, by a name that is not known to be
        "ftp://127.0.0.1/keys",
        "file:///etc/hostname",
        "data:application/json,{}",
        "//127.0.0.1/keys",
        "/keys",
        "https:///keys",
        "https://[",
        5,
        None,
        ["https://elsewhere.example/keys"],
    ],
)
def test_keys_are_fetched_from_no_other_kind_of_address(strangers, where):
    port = strangers.issuer.rpartition(":")[2]
    strangers.keys_at = where.replace("{port}", port) if isinstance(where, str) else where
    strangers.asked.clear()
    try:
        with pytest.raises(LoginFailed):
            Issuer(strangers.issuer, AUDIENCE).name_of(strangers.token())
    finally:
        strangers.keys_at = ""
    assert strangers.asked == ["/.well-known/openid-configuration"]


@pytest.mark.parametrize(
    ("issuer", "where", "may"),
    [
        ("https://a.example", "https://a.example/keys", True),
        ("https://a.example", "https://keys.example/keys", True),
        ("https://a.example", "http://a.example/keys", False),
        ("https://a.example", "http://localhost/keys", False),
        ("https://a.example", "http://127.0.0.1:80/keys", False),
        ("https://a.example", "http://[::1]/keys", False),
        ("https://localhost", "http://localhost/keys", False),
        ("http://localhost", "http://localhost/keys", True),
        ("http://localhost", "http://127.0.0.1/keys", True),
        ("http://localhost", "https://a.example/keys", True),
        ("http://localhost", "http://a.example/keys", False),
    ],
)
def test_keys_of_an_issuer_at_https_are_at_https(issuer, where, may):
    assert lists_keys_at(issuer, where) is may


def test_a_provider_that_is_gone_is_not_believed_for_ever():
    ticks = [0.0]
    with provider() as made:
        issuer = Issuer(made.issuer, AUDIENCE, ticks=lambda: ticks[0])
        token = made.token()
        assert issuer.name_of(token) == "ada"
    ticks[0] = 3601.0
    assert issuer.name_of(token) == "ada"
    ticks[0] = 86_401.0
    with pytest.raises(LoginFailed):
        issuer.name_of(token)


@pytest.mark.parametrize(
    "address", ["", "http://elsewhere.example", "ftp://x", "elsewhere.example", "https://"]
)
def test_an_issuer_has_an_address_of_https(address):
    with pytest.raises(InvalidParameter, match="https"):
        Issuer(address, AUDIENCE)


def test_over_http_a_signed_token_is_an_account_with_its_own_role_while_it_is_there(issuing, issuer):
    with house() as place, Accounts.open(None) as accounts:
        ask = Client(http_front(place, accounts, Ways(issuer=issuer)))
        token = issuing.token()
        assert ask("GET", "/api/me", token).status_code == 401  # no such account
        accounts.add("ada")
        accounts.add("eve", "auditor")
        assert ask("GET", "/api/me", token).json() == {"name": "ada", "role": "analyst"}
        assert ask("GET", "/api/me", issuing.token(role="steward")).json()["role"] == "analyst"
        assert ask("GET", "/api/me", issuing.token(sub="ADA")).status_code == 401  # another person there
        own, _ = accounts.issue("ada")
        assert ask("GET", "/api/me", own).json()["name"] == "ada"
        body = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 1}
        assert ask("POST", "/api/release", issuing.token(sub="eve"), json=body).status_code == 403
        accounts.remove("ada")
        assert ask("GET", "/api/me", token).status_code == 401
        assert ask("GET", f"/health?id_token={token}", None).status_code == 400
        statuses = [ask("GET", "/api/me", unsigned(issuing)).status_code for _ in range(15)]
        assert set(statuses) == {401, 429}
        assert token not in ask("GET", "/api/me", token).text


def test_without_an_issuer_signed_tokens_are_nobodys(issuing):
    with house() as place, Accounts.open(None) as accounts:
        accounts.add("ada")
        assert Client(http_front(place, accounts))("GET", "/api/me", issuing.token()).status_code == 401
