"""What holds at every address of the page, taken from the application itself."""

import asyncio
import re
from contextlib import contextmanager

import httpx
import pytest
from starlette.datastructures import URL
from starlette.requests import Request

from served import house, started
from sfumato.server.access import Accounts, Role
from sfumato.server.doors import http_front
from sfumato.server.grounds import Grounds
from sfumato.server.http.asking import Threads
from sfumato.server.page.app import make_page
from sfumato.server.page.common import Common
from sfumato.server.page.looks import Looks
from sfumato.server.ways import Ways

FILLED = {"name": "visits", "act": "limit", "kind": "csv"}  # what a path has places for
FOR_ALL = ("/static/", "/public/")


class Door:
    """A house of this process with all that the page can have, and a login for each role."""

    def __init__(self, made, accounts, folder, number):
        ways = Ways(shelf=folder / "shelf")
        grounds = Grounds(made, folder / "sfumato.toml")
        self.front = http_front(made, accounts, ways, grounds)
        page = make_page(Common(made, accounts, None, None, Looks(), ways, grounds), accounts.check)
        filled = FILLED | {"number": str(number)}
        self.number = number
        self.routes = sorted(
            (method, re.sub(r"{(\w+)(:path)?}", lambda found: filled[found[1]], route.path))
            for route in page._app._app.routes  # behind the hall and the badges
            for method in route.methods
        )
        self.tokens = {}
        for name, role in (("sofia", Role.STEWARD), ("omar", Role.AUDITOR), ("ada", Role.ANALYST)):
            accounts.add(name, role)
            self.tokens[name] = accounts.issue(name)[0]


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    folder = tmp_path_factory.mktemp("routes")
    (folder / "people.csv").write_text("person_id,age\n1,30\n2,40\n")
    with house() as made, Accounts.open(None) as accounts:
        answer = made.session("ada").sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1)
        opened = Door(made, accounts, folder, answer.receipt.number)
        with started(opened.front) as opened.address:
            yield opened


@contextmanager
def entered(door, name):
    with httpx.Client(base_url=door.address, timeout=60) as client:
        if name:
            assert client.post("/login", data={"token": door.tokens[name]}).status_code == 303
        yield client


def form_of(client):
    return re.search(r'data-form="([0-9a-f]{64})"', client.get("/watch").text)[1]


def test_all_addresses_are_looked_at(door):
    paths = {path for _, path in door.routes}
    assert {"/", "/ask", "/feel", "/watch", "/show", "/start", "/login", "/logout"} <= paths
    assert {"/start/answer", f"/show/releases/{door.number}/publish", "/watch/acts/limit"} <= paths
    assert len(door.routes) > 40


@pytest.mark.parametrize("who", ["sofia", "omar", "ada", ""])
def test_nothing_that_depends_on_a_login_is_stored(door, who):
    """Pages, parts, files, redirects and refusals: whoever uses the browser next finds none of them."""
    statuses = set()
    with entered(door, who) as client:
        forms = ("", "0" * 64, form_of(client)) if who else ("", "0" * 64)
        for method, path in door.routes:
            if path.startswith(FOR_ALL) or (path == "/logout" and who):
                continue
            for form in forms:
                answer = client.request(method, path, headers={"X-Form": form} if form else {})
                statuses.add(answer.status_code)
                told = answer.headers.get_list("cache-control")
                assert told == ["no-store"], (method, path, form, answer.status_code)
    assert {303, 403 if who else 401} <= statuses
    assert not any(status >= 500 for status in statuses)


def test_who_may_pass_is_decided_by_the_address_that_is_routed(door, monkeypatch):
    """`request.url` is made of the header Host, too: with some versions of Starlette, so is its path."""
    monkeypatch.setattr(Request, "url", property(lambda _: URL("https://stranger.example/static/page.css")))
    with entered(door, "") as client:
        for method, path in door.routes:
            if not path.startswith((*FOR_ALL, "/login")):
                answer = client.request(method, path, headers={"Host": "stranger.example/static/?"})
                assert (answer.status_code, answer.headers.get("location", "")[:6]) in (
                    (303, "/login"),
                    (403, ""),
                ), (method, path)
    with entered(door, "ada") as client:
        assert client.get("/feel").status_code == 200


def test_a_logout_is_not_stored(door):
    with entered(door, "ada") as client:
        left = client.post("/logout", data={"form": form_of(client)})
    assert (left.status_code, left.headers.get_list("cache-control")) == (303, ["no-store"])


@pytest.mark.parametrize("who", ["sofia", "omar", "ada"])
def test_no_page_of_a_section_is_filled_in_where_all_requests_wait(door, who, monkeypatch):
    """Whatever grows with a catalog, an answer or a ledger; refusals, logins and tokens are a few lines."""
    made, page = {}, Looks.page

    def watched(self, request, name, *rest, **values):
        try:
            made[name] = bool(asyncio.get_running_loop())
        except RuntimeError:
            made[name] = False
        return page(self, request, name, *rest, **values)

    monkeypatch.setattr(Looks, "page", watched)
    asked = {"sql": "SELECT COUNT(*) AS n FROM visits", "where0": "0", "reason": "why", "dataset": "visits"}
    with entered(door, who) as client:
        form = form_of(client)
        for method, path in door.routes:
            if path not in ("/logout", "/login") and "/start" not in path:
                sent = {"params": asked} if method == "GET" else {"data": asked | {"form": form}}
                client.request(method, path, **sent)
        client.post("/ask/quote", data=asked, headers={"X-Form": form})
    waited = {name for name, waits in made.items() if waits}
    assert waited <= {"failed.html", "failed_part.html", "watch_confirm.html", "watch_token.html"}
    assert {"feel.html", "build.html", "watch.html"} <= made.keys()
    assert who == "omar" or {"ask.html", "ask_quote.html", "ask_history.html"} <= made.keys()
    assert who != "ada" or "ask_answer.html" in made


@pytest.mark.parametrize("who", ["sofia", "omar"])
def test_what_stewards_and_auditors_look_at_waits_behind_no_question(door, who, monkeypatch):
    """Of Watch, Show and Start, all but a paid answer is done aside of the threads that questions take."""
    asked, run = [], Threads.__call__

    async def seen(self, work):
        asked.append(self)
        return await run(self, work)

    with entered(door, who) as client:
        form = form_of(client)
        if who == "sofia":  # somebody on the way to a table, so that its screens are there
            begun = client.post("/start/source", data={"form": form, "source": "people.csv"})
            assert begun.headers["location"] == "/start/whose"
        monkeypatch.setattr(Threads, "__call__", seen)
        client.get("/watch")
        (aside,) = set(asked)
        for method, path in door.routes:
            if not path.startswith(("/watch", "/show", "/start")) or path == "/start/drop":
                continue
            sent = {"unit": "row"} if method == "POST" else None
            client.request(method, path, headers={"X-Form": form}, data=sent)
        client.post("/start/drop", headers={"X-Form": form})
    assert {each._most for each in asked} <= {1, 4}  # one alone reads a whole ledger for a dossier
    assert {each for each in asked if each._most == 4} == {aside}
    assert len(asked) > 10
