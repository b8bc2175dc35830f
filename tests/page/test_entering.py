"""Logging in: a token becomes a cookie that scripts, other sites and other fronts cannot use."""

import re

import httpx
import pytest

from sfumato.server.page import cookies, looks
from sfumato.server.page.cookies import LASTS, Cookies

TOKEN = "sfu_abcdefgh_" + "a" * 52


def form_of(client):
    return re.search(r'data-form="([0-9a-f]{64})"', client.get("/watch").text)[1]


def test_a_cookie_is_opened_by_its_key_alone_and_for_a_day():
    now = 1_000_000.0
    own = Cookies(b"k" * 32, clock=lambda: now)
    header = own.made(TOKEN, secure=True)
    assert header.startswith("__Host-sfumato=")
    assert "HttpOnly; SameSite=Strict; Secure" in header
    value = own.found(header.split(";")[0], secure=True)
    assert TOKEN not in header
    assert own.token(value) == TOKEN
    assert Cookies(b"l" * 32, clock=lambda: now).token(value) is None
    for place in range(len(value)):
        other = "A" if value[place] != "A" else "B"
        changed = own.token(value[:place] + other + value[place + 1 :])
        assert changed in (None, TOKEN)  # the last letter has bits that mean nothing
    now += LASTS
    assert own.token(value) is None


@pytest.mark.parametrize("value", ["", "x", "é", "=" * 10, "A" * 5_000, "AAAA" * 10])
def test_what_is_no_cookie_of_ours_opens_nothing(value):
    assert Cookies(b"k" * 32).token(value) is None


def test_a_wrong_token_is_told_in_one_sentence(site):
    with httpx.Client(base_url=site.address) as client:
        answer = client.post("/login", data={"token": TOKEN})
    assert answer.status_code == 401
    assert "This token is not valid" in answer.text
    assert "set-cookie" not in answer.headers


def test_nothing_is_shown_without_a_login(site):
    with httpx.Client(base_url=site.address) as client:
        for path in ("/", "/ask", "/watch", "/show", "/start", "/feel", "/ask/nowhere"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/login")


@pytest.mark.parametrize(
    "after",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil",
        "//[",
        "http://[",
        "javascript:alert(1)",
        "watch",
        "",
    ],
)
def test_a_login_leads_to_this_page_and_nowhere_else(site, after):
    with httpx.Client(base_url=site.address) as client:
        answer = client.post("/login", data={"token": site.tokens["ada"], "next": after})
    assert answer.headers["location"] == "/"


def test_a_cookie_opens_no_api_and_ends_at_logout(site):
    with site.entered("ada") as client:
        assert client.get("/api/me").status_code == 401
        kept = dict(client.cookies)
        answer = client.post("/logout", data={"form": form_of(client)})
        assert answer.status_code == 303
        assert answer.headers["clear-site-data"] == '"cache"'
        client.cookies.update(kept)  # whoever has copied it
        away = client.get("/watch")
        assert away.headers["location"].startswith("/login")
        assert away.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Form": "0" * 64},
        {"X-Form": "é"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_site_or_login_does_nothing(site, headers):
    with site.entered("ada") as client:
        sent = {name: value.encode() for name, value in headers.items()}
        if "X-Form" not in headers and headers:
            sent["X-Form"] = form_of(client).encode()
        assert client.post("/logout", headers=sent).status_code == 403
        assert client.get("/watch").status_code in (200, 404)


def test_another_login_s_form_does_nothing(site):
    with site.entered("ada") as one, site.entered("ben") as other:
        assert one.post("/logout", data={"form": form_of(other)}).status_code == 403


@pytest.mark.parametrize(
    "name", ["../app.py", "..%2fapp.py", ".hidden", "", "no.css", "/etc/passwd", "a" * 500]
)
def test_static_files_are_those_of_the_page_alone(site, name):
    with httpx.Client(base_url=site.address) as client:
        assert client.get(f"/static/{name}").status_code == 404


def test_names_that_strangers_make_up_fill_nothing():
    assert looks.static_file("page.css") is not None
    before = dict(looks._FILES)
    for number in range(20):
        assert looks.static_file(f"none{number}.css") is None
    assert before == looks._FILES


def test_cookies_that_were_ended_are_remembered_as_long_as_they_would_open_something(monkeypatch):
    now = 1_000_000.0
    made = Cookies(b"k" * 32, clock=lambda: now)
    values = [made.found(made.made(TOKEN, secure=True).split(";")[0], secure=True) for _ in range(4)]
    made.end("no cookie")
    made.end(values[0])
    assert [made.token(value) for value in values] == [None, TOKEN, TOKEN, TOKEN]
    monkeypatch.setattr(cookies, "_MOST_ENDED", 2)
    made.end(values[1])
    made.end(values[2])
    assert len(made._ended) == 2
    now += LASTS - 1
    made.end(values[3])
    now += LASTS
    late = made.found(made.made(TOKEN, secure=True).split(";")[0], secure=True)
    made.end(late)
    assert len(made._ended) == 1


def test_somebody_logs_in_with_a_browser(visit):
    page = visit(None, "/watch")
    assert "/login?next=" in page.url
    assert page.title() == "Log in · Sfumato"
