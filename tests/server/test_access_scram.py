"""SCRAM-SHA-256: the published exchange, every single change to a message, binding to a certificate."""

from __future__ import annotations

import base64
import datetime
import hashlib
import pickle
import string

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from scram_client import ScramClient
from sfumato.errors import InvalidParameter, LoginFailed
from sfumato.server.access import Exchange, ScramKeys, ScramVerifier, end_point, mechanisms
from sfumato.server.access import scram as module

SALT = bytes(range(16))
PENCIL = ScramVerifier.of("pencil", salt=SALT)
CERTIFICATE = hashlib.sha256(b"certificate").digest()
BOUND = "p=tls-server-end-point"


def log_in(verifier, client, **more):
    exchange = Exchange(verifier, **more)
    final = exchange.final(client.final(exchange.first(client.first())))
    assert final == client.expects
    return exchange.label


def test_the_exchange_of_rfc_7677():
    verifier = ScramVerifier.of("pencil", salt=base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    exchange = Exchange(verifier, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    both = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert exchange.first("n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == f"r={both},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert exchange.final(f"c=biws,r={both},p={proof}") == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_each_of_several_passwords_opens_and_is_named():
    words = ["one", "two", "three"]
    several = ScramVerifier(SALT, 4096, tuple(ScramKeys.of(word, SALT, label=f"is {word}") for word in words))
    assert [log_in(several, ScramClient(word)) for word in words] == ["is one", "is two", "is three"]
    with pytest.raises(LoginFailed):
        log_in(several, ScramClient("four"))


def test_all_passwords_are_tried_whichever_fits(monkeypatch):
    several = ScramVerifier(SALT, 4096, tuple(ScramKeys.of(word, SALT, label=word) for word in "abcd"))
    calls, real = [], module._hmac
    monkeypatch.setattr(module, "_hmac", lambda key, text: calls.append(key) or real(key, text))
    for word, answered in (("a", 1), ("d", 1), ("none", 0)):
        calls.clear()
        exchange, client = Exchange(several), ScramClient(word)
        try:
            exchange.final(client.final(exchange.first(client.first())))
        except LoginFailed:
            assert word == "none"
        assert len(calls) == 4 + answered


@pytest.mark.parametrize("user", ["", "*", "ada", "Zoë", "a=2Cb=3Dc", "𝒜"])
def test_the_name_in_the_message_decides_nothing(user):
    assert log_in(PENCIL, ScramClient("pencil", user=user)) == "password"


def test_nonces_differ():
    firsts = {Exchange(PENCIL).first("n,,n=,r=abc").split(",")[0] for _ in range(20)}
    assert len(firsts) == 20
    assert all(first.startswith("r=abc") and len(first) == len("r=abc") + 24 for first in firsts)


def test_binding_to_the_certificate():
    assert mechanisms(None) == ("SCRAM-SHA-256",)
    assert mechanisms(CERTIFICATE) == ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256")
    bound = ScramClient("pencil", flag=BOUND, bound=CERTIFICATE)
    assert log_in(PENCIL, bound, binding=CERTIFICATE) == "password"
    assert log_in(PENCIL, ScramClient("pencil"), binding=CERTIFICATE) == "password"
    assert log_in(PENCIL, ScramClient("pencil", flag="y")) == "password"


@pytest.mark.parametrize(
    ("flag", "bound", "binding"),
    [
        (BOUND, CERTIFICATE, None),  # nothing to bind to
        (BOUND, hashlib.sha256(b"another").digest(), CERTIFICATE),  # somebody in between
        (BOUND, b"", CERTIFICATE),
        ("y", b"", CERTIFICATE),  # somebody took the better mechanism off the list
        ("p=tls-unique", CERTIFICATE, CERTIFICATE),
        ("n", CERTIFICATE, CERTIFICATE),
        ("n", b"x", None),
    ],
)
def test_other_bindings_are_refused(flag, bound, binding):
    with pytest.raises(LoginFailed):
        log_in(PENCIL, ScramClient("pencil", flag=flag, bound=bound), binding=binding)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_changed_final_message_passes(data):
    exchange, client = Exchange(PENCIL), ScramClient("pencil")
    right = client.final(exchange.first(client.first()))
    place = data.draw(st.integers(0, len(right)))
    end = data.draw(st.integers(place, len(right)))
    put = data.draw(st.text(string.ascii_letters + string.digits + "+/=,", max_size=4) | st.text(max_size=3))
    changed = right[:place] + put + right[end:]
    if changed == right:
        return
    with pytest.raises(LoginFailed) as told:
        exchange.final(changed)
    assert str(told.value) == str(module.refused())
    with pytest.raises(InvalidParameter, match="new exchange"):
        exchange.final(right)  # a second try needs a new nonce


@pytest.mark.parametrize(
    "first",
    [
        "", "n", "n,,", "n,,n=,r=", "n,,r=abc", "n,,r=abc,n=", "x,,n=,r=abc", "n,a=root,n=,r=abc",
        "n,,m=ext,n=,r=abc", "n,,n=a=b,r=abc", "n,,n=,r=a b", "n,,n=,r=a,c", "n,,n=,r=ab\x00c",
        "N,,n=,r=abc", "n,,n=,r=abc,", "n,,n=,r=abc\n", "n,,n=,r=äbc", "p=,,n=,r=abc",
        "n,,n=,r=" + "a" * 5000,
    ],
)  # fmt: skip
def test_malformed_first_messages_are_refused(first):
    exchange = Exchange(PENCIL)
    with pytest.raises(LoginFailed) as told:
        exchange.first(first)
    assert str(told.value) == str(module.refused())
    with pytest.raises(InvalidParameter):
        exchange.first("n,,n=,r=abc")


def test_a_proof_has_one_spelling():
    exchange, client = Exchange(PENCIL), ScramClient("pencil")
    right = client.final(exchange.first(client.first()))
    letters = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
    other = right[:-2] + letters[letters.index(right[-2]) + 1] + "="  # the same bytes, with a spare bit set
    assert base64.b64decode(other.split(",p=")[1]) == base64.b64decode(right.split(",p=")[1])
    with pytest.raises(LoginFailed):
        exchange.final(other)


def test_messages_come_in_turn_and_nothing_is_proved_before_the_end():
    with pytest.raises(InvalidParameter):
        Exchange(PENCIL).final("c=biws,r=a,p=AA==")
    exchange = Exchange(PENCIL)
    exchange.first("n,,n=,r=abc")
    with pytest.raises(LoginFailed):
        _ = exchange.label
    with pytest.raises(InvalidParameter):
        exchange.first("n,,n=,r=abc")


@pytest.mark.parametrize("nonce", ["abc", "another", "abc" + "a" * 24])
def test_a_nonce_that_is_not_the_servers_is_refused_even_where_it_is_signed(nonce):
    exchange, client = Exchange(PENCIL), ScramClient("pencil")
    with pytest.raises(LoginFailed):
        exchange.final(client.final(exchange.first(client.first()), nonce))


def test_an_exchange_cannot_be_replayed():
    exchange, client = Exchange(PENCIL), ScramClient("pencil")
    seen = client.final(exchange.first(client.first()))
    exchange.final(seen)
    again = Exchange(PENCIL)
    again.first(client.first())
    with pytest.raises(LoginFailed):
        again.final(seen)


def test_keys_are_not_shown_and_not_pickled():
    (keys,) = PENCIL.keys
    for thing in (keys, PENCIL, Exchange(PENCIL)):
        with pytest.raises(TypeError):
            pickle.dumps(thing)
        for secret in (keys.stored, keys.server):
            assert repr(secret) not in repr(thing)
            assert secret.hex() not in repr(thing)
    assert b"pencil" not in keys.stored + keys.server
    with pytest.raises(InvalidParameter, match="ASCII"):
        ScramVerifier.of("Zoë")


@pytest.mark.parametrize(
    ("key", "algorithm", "name"),
    [
        (ec.generate_private_key(ec.SECP256R1()), hashes.SHA256(), "sha256"),
        (ec.generate_private_key(ec.SECP256R1()), hashes.SHA384(), "sha384"),
        (ed25519.Ed25519PrivateKey.generate(), None, None),
    ],
)
def test_a_certificate_is_hashed_as_it_is_signed(key, algorithm, name):
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime(2026, 1, 1)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), 7, now, now + datetime.timedelta(days=9))
        .sign(key, algorithm)
        .public_bytes(Encoding.DER)
    )
    assert end_point(certificate) == (None if name is None else hashlib.new(name, certificate).digest())
