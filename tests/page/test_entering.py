"""Logging in: a token becomes a cookie that scripts, other sites and other fronts cannot use."""

import contextlib
import re
import sqlite3

import httpx
import pytest

from served import house, started
from sfumato.server.access import FRESH, Accounts, Role
from sfumato.server.doors import http_front
from sfumato.server.page import looks
from sfumato.server.page.hall.cookies import LASTS, Cookies

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
    opened = own.opened(value)
    assert (opened.token, opened.until) == (TOKEN, now + LASTS)
    assert TOKEN not in repr(opened)
    assert opened.login != own.opened(own.made(TOKEN, secure=True)[15:].split(";")[0]).login
    assert Cookies(b"l" * 32, clock=lambda: now).opened(value) is None
    for place in range(len(value)):
        other = "A" if value[place] != "A" else "B"
        changed = own.opened(value[:place] + other + value[place + 1 :])
        assert changed in (None, opened)  # the last letter has bits that mean nothing
    now += LASTS
    assert own.opened(value) is None


@pytest.mark.parametrize("value", ["", "x", "é", "=" * 10, "A" * 5_000, "AAAA" * 10])
def test_what_is_no_cookie_of_ours_opens_nothing(value):
    assert Cookies(b"k" * 32).opened(value) is None


def test_a_wrong_token_is_told_in_one_sentence(site):
    with httpx.Client(base_url=site.address, timeout=60) as client:
        answer = client.post("/login", data={"token": TOKEN})
    assert answer.status_code == 401
    assert "This token is not valid" in answer.text
    assert "set-cookie" not in answer.headers


def test_nothing_is_shown_without_a_login(site):
    with httpx.Client(base_url=site.address, timeout=60) as client:
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
    with httpx.Client(base_url=site.address, timeout=60) as client:
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
    with httpx.Client(base_url=site.address, timeout=60) as client:
        assert client.get(f"/static/{name}").status_code == 404


def test_names_that_strangers_make_up_fill_nothing():
    assert looks.static_file("page.css") is not None
    before = dict(looks._FILES)
    for number in range(20):
        assert looks.static_file(f"none{number}.css") is None
    assert before == looks._FILES


def left(address, token):
    """Logs in and out again; the cookie that somebody has copied meanwhile."""
    with httpx.Client(base_url=address, timeout=60) as client:
        client.post("/login", data={"token": token})
        kept = dict(client.cookies)
        assert client.post("/logout", data={"form": form_of(client)}).status_code == 303
    return kept


def is_in(address, cookies):
    with httpx.Client(base_url=address, cookies=cookies, timeout=60) as client:
        return client.get("/watch").status_code == 200


def test_a_login_that_was_ended_stays_ended_after_a_restart_and_in_other_processes(tmp_path):
    """The same login in two servers with the same accounts, and in one that begins after both."""
    ticks = [100.0]
    place = tmp_path / "ledger"
    with contextlib.ExitStack() as stack, house() as made:

        def served():
            accounts = stack.enter_context(Accounts.open(place, ticks=lambda: ticks[0]))
            return accounts, stack.enter_context(started(http_front(made, accounts)))

        accounts, first = served()
        accounts.add("ada", Role.ANALYST)
        token = accounts.issue("ada")[0]
        _, second = served()
        with httpx.Client(base_url=first, timeout=60) as client:
            client.post("/login", data={"token": token})
            kept = dict(client.cookies)
            assert is_in(first, kept)
            assert is_in(second, kept)
            assert client.post("/logout", data={"form": form_of(client)}).status_code == 303
        assert not is_in(first, kept)  # at once
        ticks[0] += FRESH
        assert not is_in(second, kept)
        _, third = served()
        assert not is_in(third, kept)
        assert not is_in(third, left(first, token))
        with httpx.Client(base_url=third, timeout=60) as client:  # the token itself holds
            assert client.post("/login", data={"token": token}).status_code == 303
            assert client.get("/watch").status_code == 200


def test_logins_are_forgotten_when_they_would_be_over_and_older_accounts_learn_of_them(tmp_path):
    now, place = [1_000_000.0], tmp_path / "ledger"
    with Accounts.open(place, clock=lambda: now[0]):
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.accounts")) as file:
        file.execute("DROP TABLE sfumato_ended")  # as an older version has made them
    with Accounts.open(place, clock=lambda: now[0]) as accounts:
        logins = accounts.logins
        ends = {bytes([number]) * 32: 1_000_010 + number for number in range(5)}
        for login, until in ends.items():
            assert logins.holds(login)
            assert logins.recent(login)
            for _ in range(2):  # a second click
                logins.end(login, until)
            assert not logins.recent(login)
            assert not logins.holds(login)
        now[0] = 1_000_012.0
        logins.end(b"x" * 32, 1_000_100)
        kept = accounts._tables._read("SELECT until FROM sfumato_ended ORDER BY until")
        assert [until for (until,) in kept] == [1_000_013, 1_000_014, 1_000_100]


def test_a_login_that_is_ended_while_it_is_looked_up_is_not_believed():
    with Accounts.open(None) as accounts:
        logins, login, read = accounts.logins, b"l" * 32, accounts._tables.login_ended

        def ended_meanwhile(asked):
            found = read(asked)
            logins.end(login, 2**40)
            return found

        accounts._tables.login_ended = ended_meanwhile
        logins.holds(login)
        assert not logins.recent(login)


def test_somebody_logs_in_with_a_browser(site, visit):
    page = visit(None, "/watch")
    assert "/login?next=" in page.url
    assert page.title() == "Log in · Sfumato"
    page.fill("#token", site.tokens["omar"])
    page.click("main button")
    page.wait_for_url("**/watch")
