"""Cards and dossiers for reviewers, and releases as pages: who sees what, and what a page may hold."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from playwright.sync_api import expect

from chromium import violations
from served import house, started
from sfumato.server.access import Account, Accounts, Role
from sfumato.server.doors import http_front
from sfumato.server.page.common import Common
from sfumato.server.page.looks import Looks
from sfumato.server.page.show import section as show
from sfumato.server.page.show.released import told
from sfumato.server.ways import Ways
from sfumato.session import shown

EVIL = '<script>alert("x")</script>'
NAME = EVIL.replace('"', "")  # of a column
PLACES = (
    "/show",
    "/show/datasets/visits/card",
    "/show/datasets/visits/dossier",
    "/show/releases/{number}",
    "/public/{number}",
)

WATCHED = ("/watch/ledger", "/watch/spent?dataset=visits", "/watch/acts", "/watch/accounts")


def form_of(client):
    return re.search(r'data-form="([0-9a-f]{64})"', client.get("/show").text)[1]


@pytest.fixture(scope="module")
def number(site):
    """A release of ada's, with an alias that is a script."""
    asked = {
        "sql": f'SELECT ward, COUNT(*) AS "{NAME}" FROM visits WHERE age > 33 GROUP BY ward',
        "epsilon": "0.05",
    }
    with site.api("ada") as client:
        return client.post("/api/release", json=asked).raise_for_status().json()["receipt"]


@pytest.fixture
def published(site, number):
    with site.entered("sofia") as client:
        sent = {"form": form_of(client), "title": f"Wards {EVIL}", "reason": "a test"}
        assert client.post(f"/show/releases/{number}/publish", data=sent).status_code == 303
        yield number
        client.post(f"/show/releases/{number}/withdraw", data=sent)


BEYOND = """() => [...document.querySelectorAll(".scroll caption:not(.sr)")].filter((caption) => {
  const [inner, outer] = [caption, caption.closest(".scroll")].map((part) => part.getBoundingClientRect());
  return inner.right > outer.right + 1;
}).length + Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)"""


def test_no_name_of_an_analyst_makes_a_page_wider_than_a_phone(site, visit):
    """What stewards and everybody see stays readable, whatever an analyst has called a column."""
    name = "y" * 500
    asked = {"sql": f'SELECT ward, COUNT(*) AS "{name}" FROM visits WHERE age > 34 GROUP BY ward'}
    with site.api("ada") as api:
        number = api.post("/api/release", json=asked | {"epsilon": "0.05"}).json()["receipt"]
    with site.entered("sofia") as client:
        sent = {"form": form_of(client), "title": name[:200], "reason": "a test"}
        client.post(f"/show/releases/{number}/publish", data=sent)
        page = visit("sofia", "/show", viewport={"width": 375, "height": 700})
        places = [place.format(number=number) for place in PLACES]
        for path in (*places, f"/feel?{httpx.QueryParams(asked)}"):
            page.goto(path)
            assert (path[:40], page.evaluate(BEYOND)) == (path[:40], 0)
        client.post(f"/show/releases/{number}/withdraw", data=sent)


def test_every_page_is_accessible(visit, published):
    page = visit("sofia", "/show")
    for place in PLACES:
        page.goto(place.format(number=published))
        assert violations(page) == [], place


def test_a_reviewer_opens_the_card_and_prints_it(visit):
    page = visit("omar", "/show")
    page.get_by_role("link", name="Privacy card").click()
    expect(page.get_by_role("heading", name="Privacy card: visits")).to_be_visible()
    expect(page.locator("article")).to_contain_text("epsilon 20")
    expect(page.locator("article")).to_contain_text("Suppose that an attacker")
    page.emulate_media(media="print")
    assert not page.locator("header.top").is_visible()
    page.emulate_media(media="screen")
    page.get_by_role("link", name="The whole dossier").click()
    expect(page.locator("ol.steps li")).to_have_count(12)


def test_a_release_is_saved_as_one_file_that_needs_nothing_else(visit, number, browser, tmp_path):
    page = visit("ada", "/show")
    page.get_by_role("link", name=f"Page of release {number}").click()
    page.wait_for_url(f"**/show/releases/{number}")
    assert NAME in page.inner_text("main")
    with page.expect_download() as saving:
        page.get_by_role("link", name="Save the page").click()
    saving.value.save_as(tmp_path / "release.html")
    asked = []
    with browser.new_context(offline=True) as context:
        alone = context.new_page()
        alone.on("request", lambda request: asked.append(request.url))
        alone.on("dialog", lambda dialog: asked.append(dialog.message))
        alone.goto((tmp_path / "release.html").as_uri())
        text = alone.inner_text("body")
    assert len(asked) == 1
    for said in ("epsilon 0.05", "patient_id", "Laplace", NAME, "GROUP BY ward", "±"):
        assert said in text


def test_what_a_steward_publishes_anybody_may_see_until_it_is_withdrawn(site, number, visit):
    page = visit("sofia", f"/show/releases/{number}")
    page.fill("#title", f"Wards {EVIL}")
    page.get_by_label("Reason").fill("the report is out")
    page.get_by_role("button", name="Publish").click()
    page.get_by_role("link", name="the public page").wait_for()
    stranger = visit(None, f"/public/{number}")
    assert stranger.inner_text("h1") == f"Wards {EVIL}"
    assert stranger.locator("h1").evaluate("it => getComputedStyle(it).borderBottomStyle") == "solid"
    assert "Wards" in visit("ada", "/show").inner_text("main")
    page.get_by_label("Reason").fill("a figure was wrong")
    page.get_by_role("button", name="Withdraw it").click()
    page.get_by_role("button", name="Publish").wait_for()
    with httpx.Client(base_url=site.address, timeout=60) as client:
        assert client.get(f"/public/{number}").status_code == 404


@pytest.mark.parametrize(
    ("who", "path", "status"),
    [
        ("ada", "/show/datasets/visits/card", 403),
        ("ada", "/show/datasets/visits/dossier", 403),
        ("ada", "/show/datasets/visits/registry.yaml", 403),
        ("ben", "/show/releases/{number}", 404),
        ("ben", "/show/releases/{number}/file", 404),
        ("omar", "/show/releases/{number}", 403),
        ("omar", "/show/datasets/nothing/card", 404),
        ("sofia", "/show/releases/999999", 422),
        ("sofia", "/show/datasets/visits/registry.yaml", 200),
        ("sofia", "/public/999999", 404),
        ("sofia", "/public/x", 404),
    ],
)
def test_who_may_see_what(site, number, who, path, status):
    with site.entered(who) as client:
        assert client.get(path.format(number=number)).status_code == status


@pytest.mark.parametrize("who", ["ada", "omar"])
@pytest.mark.parametrize("act", ["publish", "withdraw"])
def test_only_stewards_publish(site, number, who, act):
    with site.entered(who) as client:
        sent = {"form": form_of(client)}
        assert client.post(f"/show/releases/{number}/{act}", data=sent).status_code == 403
        assert client.get(f"/public/{number}").status_code == 404


def test_publishing_needs_a_reason_and_replaces_nothing_in_silence(site, published):
    with site.entered("sofia") as client:
        sent = {"form": form_of(client), "title": f"Wards {EVIL}", "reason": "a test"}
        where = f"/show/releases/{published}"
        before = client.get(f"/public/{published}").text
        for act, wrong in (
            ("publish", {"reason": " "}),
            ("withdraw", {"reason": ""}),
            ("publish", {"title": "x"}),
        ):
            assert client.post(f"{where}/{act}", data=sent | wrong).status_code == 422
        assert client.post(f"{where}/publish", data=sent).status_code == 303  # the same: a second click
        assert client.get(f"/public/{published}").text == before


def test_what_is_published_and_withdrawn_is_on_record_once_each(tmp_path):
    with house() as made, Accounts.open(None) as accounts:
        number = made.session("ada").sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1).receipt.number
        accounts.add("sofia", Role.STEWARD)
        with (
            started(http_front(made, accounts, Ways(shelf=tmp_path / "shelf"))) as address,
            httpx.Client(base_url=address, timeout=60) as client,
        ):
            client.post("/login", data={"token": accounts.issue("sofia")[0]})
            form = form_of(client)

            def sent(act):
                words = {"form": form, "title": "Wards", "reason": f"to {act} it"}
                return client.post(f"/show/releases/{number}/{act}", data=words).status_code

            for act, there in (("withdraw", 404), ("publish", 200), ("withdraw", 404), ("publish", 200)):
                with ThreadPoolExecutor(3) as pool:
                    assert set(pool.map(sent, [act] * 3)) == {303}  # a second click, and a second tab
                assert client.get(f"/public/{number}").status_code == there
            other = {"form": form, "title": "Other", "reason": "x"}
            assert client.post(f"/show/releases/{number}/publish", data=other).status_code == 422
            receipts = [each for each in made.record(None) if each.kind == "access"]
            seen = client.get(f"/watch/ledger/{receipts[1].number}").text
        made.ledger.verify()
    assert [(each.memo["act"], each.memo["by"], each.memo["reason"]) for each in receipts] == [
        (f"release {number} published", "sofia", "to publish it"),
        (f"release {number} withdrawn", "sofia", "to withdraw it"),
        (f"release {number} published", "sofia", "to publish it"),
    ]
    assert f"sofia: release {number} withdrawn." in seen


def test_rows_that_are_not_shown_are_not_written(session, monkeypatch):
    release = session.sql(
        "SELECT FLOOR(cost) AS part, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY 1"
    ).release(epsilon=1)
    written = {"bars": 0, "keys": 0}

    def counted(what, text):
        def write(*_):
            written[what] += 1
            return text

        return write

    monkeypatch.setattr(shown, "with_bar", counted("bars", "1 ± 1"))
    monkeypatch.setattr(shown, "_key", counted("keys", "1"))
    facts = told(release, 3)
    assert facts["rows"] == release.table.num_rows > 1_000
    assert {len(cells) for table in facts["tables"] for cells in table.values()} == {3}
    assert written == {"bars": 6, "keys": 3}
    assert {len(cells) for table in told(release)["tables"] for cells in table.values()} == {facts["rows"]}


def test_long_pages_are_made_in_threads(monkeypatch):
    """What grows with an answer, a ledger or a catalog is never filled in where all requests wait."""
    seen, page = {}, Looks.page

    def watched(self, request, name, *rest, **values):
        try:
            asyncio.get_running_loop()
            seen[name] = True
        except RuntimeError:
            seen[name] = False
        return page(self, request, name, *rest, **values)

    monkeypatch.setattr(Looks, "page", watched)
    with house() as made, Accounts.open(None) as accounts:
        sql = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
        number = made.session("ada").sql(sql).release(epsilon=1).receipt.number
        accounts.add("sofia", Role.STEWARD)
        with (
            started(http_front(made, accounts)) as address,
            httpx.Client(base_url=address, timeout=60) as client,
        ):
            client.post("/login", data={"token": accounts.issue("sofia")[0]})
            monkeypatch.setattr(show, "_ROWS", 1)
            for place in (f"/show/releases/{number}", "/show", "/watch?all=1", *WATCHED):
                answer = client.get(place)
                assert answer.status_code == 200, place
                assert ("The first 1 of " in answer.text) == (place == f"/show/releases/{number}")
            assert "The first 1 of " not in client.get(f"/show/releases/{number}/file").text
    assert len(seen) == 7
    assert not any(seen.values()), seen


def test_what_is_listed_is_the_newest_and_read_in_steps(monkeypatch):
    with house() as made:
        for price in ("0.1", "0.2", "0.3"):
            made.session("ada").sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=price)
        made.session("bob").sql("SELECT COUNT(*) AS n FROM visits").release(epsilon="0.4")
        common = Common(made, None, None, None, Looks(), Ways())
        monkeypatch.setattr(show, "_STEP", 2)
        ada, sofia = Account("Ada", Role.ANALYST), Account("sofia", Role.STEWARD)
        debits = [each.number for each in made.record(None) if each.kind == "debit"][::-1]
        section = show.Show(common)
        assert [each.number for each in section._listed(sofia)] == debits
        assert [each.number for each in section._listed(ada)] == debits[1:]
        monkeypatch.setattr(show, "_MOST", 2)
        assert [each.number for each in section._listed(sofia)] == debits[:2]
        monkeypatch.setattr(show, "_STEPS", 1)
        assert len(section._listed(sofia)) <= 2
        assert [each.number for each in section._listed(ada)] in ([], debits[1:2])
