"""Watch: budgets and alerts, the ledger with search, checks, and what a steward decides; who sees what."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import httpx
import pytest
from playwright.sync_api import expect

from chromium import violations
from served import house, started
from sfumato.audit.findings import Audit, Finding
from sfumato.audit.kept import keep
from sfumato.errors import LedgerUnusable
from sfumato.server.access import Account, Accounts, Role
from sfumato.server.doors import http_front
from sfumato.server.http.asking import Threads
from sfumato.server.http.books import Books
from sfumato.server.page.watch import history, searching
from sfumato.server.page.watch.history import Histories, Spending, outlook
from sfumato.server.page.watch.searching import PAGE, Wanted, search
from sfumato.server.ways import Ways

EVIL = "<script>alert(1)</script>"
WHY = "the term ends; it said so in the plan"
SEEN = {
    "sofia": (
        "/watch",
        "/watch/ledger",
        "/watch/ledger/6",
        "/watch/checks",
        "/watch/acts",
        "/watch/accounts",
    ),
    "ada": ("/watch", "/watch/spent?dataset=visits"),
}
ACTS = ("limit", "raise", "allot", "take-back", "revoke", "give", "close")
PEOPLE = ("add", "issue", "revoke", "remove")


def form_of(client):
    return re.search(r'data-form="([0-9a-f]{64})"', client.get("/watch").text)[1]


def receipts(site, **wanted):
    """All receipts with these facts, as an auditor exports them."""
    with site.api("omar") as client:
        lines = client.get("/api/ledger/export").text.splitlines()
    found = [json.loads(line) for line in lines]
    return [one for one in found if wanted.items() <= (one | one["memo"]).items()]


def release(site, who, sql, epsilon):
    with site.api(who) as client:
        asked = {"sql": sql, "epsilon": epsilon}
        return client.post("/api/release", json=asked).raise_for_status().json()["receipt"]


class Person:
    """An analyst of this file alone, whom tests may limit and revoke."""

    def __init__(self, site, name, limit):
        self.site, self.name = site, name
        with site.api("sofia") as client:
            client.post("/api/accounts", json={"name": name}).raise_for_status()
            issued = client.post("/api/accounts/" + name + "/tokens", json={})
            site.tokens[name] = issued.raise_for_status().json()["token"]
            self.limited(limit)

    def limited(self, epsilon):
        where = f"/api/datasets/visits/analysts/{self.name}/limit"
        with self.site.api("sofia") as client:
            client.put(where, json={"epsilon": epsilon, "reason": "a test"}).raise_for_status()

    def gone(self):
        with self.site.api("sofia") as client:
            client.post(f"/api/datasets/visits/analysts/{self.name}/revoke", json={"reason": "a test"})
            client.delete(f"/api/accounts/{self.name}")


@pytest.fixture(scope="module")
def dora(site):
    made = Person(site, "dora", 2)
    yield made
    made.gone()


@pytest.fixture
def evil(site):
    """An account whose name is a script, and a limit of it."""
    with site.api("sofia") as client:
        client.post("/api/accounts", json={"name": EVIL}).raise_for_status()
    yield EVIL
    with site.entered("sofia") as client:
        sent = {"form": form_of(client), "name": EVIL, "reason": "a test", "sure": "yes", "once": "evil"}
        assert client.post("/watch/accounts/remove", data=sent).status_code == 303


@pytest.mark.parametrize("who", list(SEEN))
def test_every_page_is_accessible(visit, who):
    page = visit(who, "/watch")
    for place in SEEN[who]:
        page.goto(place)
        assert violations(page) == [], place


def test_a_steward_lowers_a_limit_and_the_analyst_sees_it(site, visit, dora):
    analyst = visit("dora", "/watch")
    assert "of 2 is spent" in analyst.inner_text("main")
    steward = visit("sofia", "/watch/acts")
    form = steward.locator("form[action='/watch/acts/limit']")
    form.get_by_label("Analyst").fill("dora")
    form.get_by_label("Epsilon in all").fill("0.75")
    form.get_by_label("Reason").fill(WHY)
    form.get_by_role("button").click()
    expect(steward.get_by_role("status")).to_contain_text("dora may spend epsilon 0.75")
    expect(steward.get_by_role("status")).to_contain_text(f"By sofia: {WHY}")
    analyst.reload()
    assert "of 0.75 is spent" in analyst.inner_text("main")
    (receipt,) = receipts(site, kind="limit", analyst="dora", reason=WHY)
    assert receipt["memo"]["by"] == "sofia"
    analyst.goto(f"/watch/ledger/{receipt['number']}")
    assert WHY in analyst.inner_text("main")
    dora.limited(2)


def test_an_act_that_cannot_be_undone_is_asked_about_first(site, visit):
    page = visit("sofia", "/watch/acts")
    form = page.locator("form[action='/watch/acts/raise']")
    form.get_by_label("Epsilon in all").fill("20")
    form.get_by_label("Reason").fill("more questions than planned")
    form.get_by_role("button").click()
    expect(page.locator("main")).to_contain_text("cannot be lowered")
    assert not receipts(site, kind="raise", reason="more questions than planned")
    page.get_by_role("button", name="Raise it").click()
    expect(page.get_by_role("status")).to_contain_text("The budget of visits is epsilon 20,")
    (receipt,) = receipts(site, kind="raise", reason="more questions than planned")
    assert receipt["memo"]["by"] == "sofia"


def test_several_are_allotted_taken_back_and_revoked_without_scripts(site, visit, dora):
    page = visit("sofia", "/watch/acts", java_script_enabled=False)
    form = page.locator("form[action='/watch/acts/allot']")
    form.get_by_label("Limits").fill("dora 0.5\nnobody yet: 0.25, 1e-8\nlater : -")
    form.get_by_label("Reason").fill("a new term")
    form.get_by_role("button").click()
    expect(page.get_by_role("status")).to_contain_text("dora may spend epsilon 0.5")
    limits = {one["analyst"]: one["memo"].get("budget") for one in receipts(site, reason="a new term")}
    assert limits["dora"]["delta"] == "1/40000000"  # the same share as epsilon's
    assert limits["nobody yet"]["delta"] == "1/100000000"
    assert limits["later"] is None
    form = page.locator("form[action='/watch/acts/take-back']")
    form.get_by_label("Reason").fill("the term is off")
    form.get_by_role("button").click()
    expect(page.get_by_role("status")).to_contain_text("dora may spend epsilon 2,")
    form = page.locator("form[action='/watch/acts/revoke']")
    form.get_by_label("Analyst").fill("dora")
    form.get_by_label("Reason").fill("left us")
    form.get_by_role("button").click()
    expect(page.get_by_role("status")).to_contain_text("dora may ask nothing more of visits")
    dora.limited(2)


TOO_LONG = "0.5".ljust(64, "0") + "e-3"


@pytest.mark.parametrize(
    ("act", "figures"),
    [
        ("limit", {"analyst": "dora", "epsilon": TOO_LONG}),
        ("limit", {"analyst": "dora", "epsilon": "2", "delta": TOO_LONG}),
        ("allot", {"limits": f"dora: {TOO_LONG}"}),
        ("allot", {"limits": f"dora: 2, {TOO_LONG}"}),
        ("raise", {"epsilon": TOO_LONG, "sure": "yes"}),
    ],
)
def test_a_figure_that_is_too_long_is_refused_and_never_cut(site, dora, act, figures):
    with site.entered("sofia") as client:
        sent = {"form": form_of(client), "dataset": "visits", "once": str(figures)[:90], "reason": "too long"}
        refused = client.post(f"/watch/acts/{act}", data=sent | figures)
    assert refused.status_code == 422
    assert "at most 64 characters" in refused.text
    assert not receipts(site, reason="too long")


def test_a_form_that_is_sent_twice_is_done_once(site, dora):
    with site.entered("sofia") as client:
        sent = {"form": form_of(client), "dataset": "visits", "once": "a word", "reason": "only once"}
        sent |= {"analyst": "dora", "epsilon": "2"}
        places = [client.post("/watch/acts/limit", data=sent).headers["location"] for _ in range(3)]
    assert len(set(places)) == 1
    assert len(receipts(site, reason="only once")) == 1


@pytest.mark.parametrize(
    ("first", "others"),
    [
        ("acts/limit", [("acts/limit", "epsilon"), ("acts/limit", "reason"), ("acts/revoke", "")]),
        ("accounts/issue", [("accounts/issue", "days"), ("accounts/issue", "name"), ("accounts/remove", "")]),
    ],
)
def test_a_form_that_says_something_else_is_never_taken_for_one_that_was_done(site, dora, first, others):
    with site.entered("sofia") as client:
        sent = {"form": form_of(client), "dataset": "visits", "once": "one form", "reason": "the first"}
        sent |= {"analyst": "dora", "epsilon": "2", "days": "1", "name": "dora", "sure": "yes"}
        assert client.post(f"/watch/{first}", data=sent).status_code in (200, 303)
        before = len(receipts(site))
        wrong = [(act, sent | ({field: "3"} if field else {}), 409) for act, field in others]
        wrong += [(first, sent | {"once": word}, 422) for word in ("", "w" * 101)]
        for act, values, status in wrong:
            answer = client.post(f"/watch/{act}", data=values)
            assert (answer.status_code, "Nothing was done" in answer.text) == (status, True)
        assert len(receipts(site)) == before
        words = re.findall(r'name="once" value="(\w+)"', answer.text)
    assert len(words) == len(set(words)) > 4  # each form has its own


@pytest.mark.parametrize(
    ("act", "values", "told"),
    [
        ("limit", {"analyst": "dora", "epsilon": "1"}, "needs a reason"),
        ("limit", {"analyst": "dora", "epsilon": "much", "reason": WHY}, "epsilon"),
        ("limit", {"analyst": "dora", "epsilon": "9999", "reason": WHY}, "9999"),
        ("allot", {"limits": "dora", "reason": WHY}, "a name and an epsilon on each line"),
        ("give", {"receipts": "all", "reason": WHY, "sure": "yes"}, "the numbers of the receipts"),
        ("take-back", {"reason": ""}, "needs a reason"),
    ],
)
def test_what_is_wrong_is_told_beside_its_form_and_nothing_is_done(site, dora, act, values, told):
    before = len(receipts(site))
    with site.entered("sofia") as client:
        sent = {"form": form_of(client), "dataset": "visits", "once": told, **values}
        answer = client.post(f"/watch/acts/{act}", data=sent)
    assert answer.status_code in (409, 422)
    assert told in answer.text
    assert len(receipts(site)) == before


def test_an_analyst_sees_neither_others_receipts_nor_acts(site, visit):
    page = visit("ada", "/watch/ledger")
    assert set(page.locator("table.ledger td:nth-child(4)").all_inner_texts()) == {"ada"}
    assert page.get_by_role("link", name="Decide").count() == 0
    page.goto("/watch/ledger?kind=debit&words=avg(cost)")
    assert "AVG(cost)" in page.locator("table.ledger").inner_text()
    numbers = {one["number"] for one in receipts(site) if one["analyst"] != "ada"}
    with site.entered("ada") as client:
        for number in sorted(numbers)[:8]:
            assert client.get(f"/watch/ledger/{number}").status_code == 404
        assert "dora" not in client.get("/watch/ledger?analyst=dora&words=dora").text.split("<h2>")[1]
        for place in ("spent?dataset=visits&analyst=ben", "spent?dataset=nothing"):
            assert client.get(f"/watch/{place}").status_code == 404


@pytest.mark.parametrize("who", ["ada", "omar"])
def test_nobody_but_a_steward_decides(site, who):
    before = receipts(site)
    with site.entered(who) as client:
        form = form_of(client)
        for place in ("acts", "accounts"):
            assert client.get(f"/watch/{place}").status_code == 403
        sent = {"form": form, "dataset": "visits", "analyst": "ada", "epsilon": "9", "reason": WHY}
        sent |= {"sure": "yes", "limits": "ada 9", "receipts": "6", "name": "mallory", "days": "9"}
        for act in ACTS:
            assert client.post(f"/watch/acts/{act}", data=sent).status_code == 403
        for act in PEOPLE:
            assert client.post(f"/watch/accounts/{act}", data=sent).status_code == 403
        if who == "ada":
            assert client.get("/watch/checks").status_code == 403
            assert client.get("/watch/export").status_code == 403
            assert client.post("/watch/verify", data=sent).status_code == 403
    assert receipts(site) == before


def test_search_finds_and_pages(site, visit, dora):
    with site.api("sofia") as client:
        where = "/api/datasets/visits/analysts/dora/limit"
        for place in range(PAGE + 3):
            client.put(where, json={"epsilon": 2, "reason": f"walked by {place}"}).raise_for_status()
    page = visit("omar", "/watch/ledger")
    page.get_by_label("Words or a number").fill("WALKED BY")
    page.get_by_label("Analyst").fill("Dora")
    page.get_by_label("What happened").select_option("limit")
    page.get_by_role("button", name="Search").click()
    rows = page.locator("table.ledger tbody tr")
    expect(rows.first).to_contain_text(f"walked by {PAGE + 2}")
    expect(rows).to_have_count(PAGE)
    page.get_by_role("link", name="Older").click()
    expect(rows).to_have_count(3)
    expect(rows.last).to_contain_text("walked by 0")
    assert page.get_by_role("link", name="Older").count() == 0
    page.goto("/watch/ledger?words=%236")
    rows.first.get_by_role("link").click()
    expect(page.locator("dl.facts")).to_contain_text("ada paid for an answer about visits")
    expect(page.locator("dl.facts")).to_contain_text("epsilon 0.8")
    today = datetime.now(UTC).date()
    page.goto(f"/watch/ledger?until={today - timedelta(days=2)}")
    assert "No receipt fits" in page.inner_text("main")


def test_an_auditor_verifies_and_downloads_everything(site, visit):
    page = visit("omar", "/watch/checks")
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_role("status")).to_contain_text("All in order")
    expect(page.get_by_role("status")).to_contain_text("by omar")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download all").click()
    lines = waiting.value.path().read_text("utf-8").splitlines()
    with site.api("omar") as client:
        assert lines == client.get("/api/ledger/export").text.splitlines()[: len(lines)]
    assert [json.loads(line)["number"] for line in lines] == list(range(1, len(lines) + 1))


def test_alerts_come_at_80_and_100_percent_with_what_helps(site, visit, dora):
    release(site, "dora", "SELECT COUNT(*) AS n FROM visits WHERE age > 71", "0.4")
    analyst = visit("dora", "/watch")
    assert analyst.locator(".badge").count() == 0
    dora.limited("0.5")
    analyst.reload()
    expect(analyst.get_by_role("status")).to_contain_text("80 % is spent")
    expect(analyst.get_by_role("status")).to_contain_text("Ask the steward")
    assert analyst.locator("nav .badge").inner_text().endswith("1")
    dora.limited("0.4")
    analyst.reload()
    assert "all is spent" in analyst.get_by_role("alert").inner_text()
    steward = visit("sofia", "/watch")
    alert = steward.get_by_role("alert").filter(has_text="dora on visits")
    assert "all is spent" in alert.inner_text()
    alert.get_by_role("link", name="Decide on it").click()
    form = steward.locator("form[action='/watch/acts/limit']")
    assert form.get_by_label("Analyst").input_value() == "dora"
    dora.limited(2)


def test_a_script_as_a_name_or_a_reason_shows_as_text(site, visit, evil):
    page = visit("sofia", "/watch/acts")
    form = page.locator("form[action='/watch/acts/limit']")
    form.get_by_label("Analyst").fill(evil)
    form.get_by_label("Epsilon in all").fill("0.25")
    form.get_by_label("Reason").fill(f"because {EVIL}")
    form.get_by_role("button").click()
    expect(page.get_by_role("status")).to_contain_text(f"because {EVIL}")
    for place in ("/watch", "/watch/ledger", "/watch/acts", "/watch/accounts"):
        page.goto(place)
        assert EVIL in page.content().replace("&lt;", "<").replace("&gt;", ">")
        assert page.locator("main script").count() == 0
    page.goto("/watch")
    page.get_by_role("link", name=EVIL).click()
    expect(page.locator("h1")).to_contain_text(f"{EVIL} on visits")
    with site.api("sofia") as client:
        name = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
        client.post(f"/api/datasets/visits/analysts/{name}/revoke", json={"reason": "a test"})


def test_a_steward_adds_somebody_and_hands_over_a_token_that_is_shown_once(site, visit):
    page = visit("sofia", "/watch/accounts")
    form = page.locator("form[action='/watch/accounts/add']")
    form.get_by_label("Name").fill("ester")
    form.get_by_label("Reason").fill("joins for the summer")
    form.get_by_role("button").click()
    expect(page.get_by_role("status")).to_contain_text("ester: account added as analyst.")
    person = page.locator("section", has=page.get_by_role("heading", name="ester"))
    person.get_by_text("Change").click()
    issue = person.locator("form[action='/watch/accounts/issue']")
    issue.get_by_label("Reason").fill("her first day")
    issue.get_by_role("button").click()
    token = page.get_by_label("Token").input_value()
    with site.api("ada") as client:
        found = client.get("/api/me", headers={"Authorization": f"Bearer {token}"})
        assert found.json()["name"] == "ester"
    assert violations(page) == []
    page.reload()
    assert token not in page.content()
    person = page.locator("section", has=page.get_by_role("heading", name="ester"))
    assert person.locator("tbody tr").count() == 1
    person.get_by_text("Change").click()
    end = person.locator("form[action='/watch/accounts/remove']")
    end.get_by_label("Reason").fill("left again")
    end.get_by_role("button").click()
    page.get_by_role("button", name="Remove the account").click()
    expect(page.get_by_role("status")).to_contain_text("ester: account removed.")
    acts = [one["memo"] for one in receipts(site, kind="access", analyst="ester", by="sofia")]
    assert [(memo["act"], memo["reason"]) for memo in acts] == [
        ("account added as analyst", "joins for the summer"),
        ("token issued for 90 days", "her first day"),
        ("account removed", "left again"),
    ]


@dataclass
class Balance:
    """What `outlook` asks of a balance."""

    analyst: str | None = None
    limited: bool = False
    shared: bool = False
    open: bool = True
    each: str = ""


NOW = datetime(2026, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((), ""),
        (((1, 4),), "No forecast yet"),
        (((60, 4),), "Nothing was spent in the last 30 days"),
        (((60, 1), (20, 4), (10, 7)), "last 30 days, the budget lasts until about 15 July 2026"),
        (((15, 5), (5, 10)), None),
        (((12, 5),), "last 12 days, the budget lasts until about 12 July 2026"),
        (((60, 1), (20, Fraction(10001, 10000))), "for more than ten years"),
    ],
)
def test_a_forecast_is_told_only_where_there_is_a_pace(steps, told):
    at = tuple((NOW - timedelta(days=days), Fraction(spent)) for days, spent in steps)
    spending = Spending("epsilon", Fraction(10), at, Fraction(0), True)
    said = outlook(Balance(), spending, NOW)
    assert said == "" if not told else told in said
    for own in (Balance("ada"), Balance("ada", limited=True, shared=True), Balance(open=False)):
        assert outlook(own, spending, NOW) == ""  # others spend of the same rest, or nobody
    limited = outlook(Balance("ada", limited=True), spending, NOW)
    assert limited == said.replace("the budget lasts", "the limit lasts")


@pytest.fixture(scope="module")
def small():
    """A house of this process: two analysts, three answers, one of them read by the other, too."""
    with house() as made:
        for who, limit, price in (("ada", "FR", "0.5"), ("bob", "DE", "0.25"), ("ada", "DE", "0.75")):
            made.session(who).sql(f"SELECT COUNT(*) AS n FROM visits WHERE country = '{limit}'").release(
                epsilon=price
            )
        made.session("bob").sql("SELECT COUNT(*) AS n FROM visits WHERE country = 'FR'").release(
            epsilon="0.5"
        )
        yield made


EVE, BOB = Account("eve", Role.AUDITOR), Account("bob", Role.ANALYST)


def course(made, who, analyst):
    spending = Histories(made).of(who).of(made.ledger.balance("visits", analyst), None)
    return spending.before, [float(spent) for _, spent in spending.steps], spending.whole


def test_a_chart_has_all_steps_that_count_and_ends_at_the_balance(small):
    assert course(small, EVE, None) == (0, [0.5, 0.75, 1.5], True)
    assert course(small, EVE, "ada") == (0, [0.5, 1.25], True)
    assert course(small, EVE, "bob") == (0, [0.25, 0.75], True)  # what he read of ada's counts, too
    assert course(small, BOB, "bob") == (0, [0.25, 0.75], True)
    assert course(small, BOB, "ada")[1] == []  # his own receipts are all that he is shown


def test_a_long_ledger_is_charted_and_searched_in_parts(small, monkeypatch):
    last = small.ledger.number
    number = [receipt.number for receipt in small.record(None) if receipt.kind == "debit"][1]
    monkeypatch.setattr(history, "MOST", last - number)
    assert course(small, EVE, None) == (0.75, [1.5], False)
    monkeypatch.setattr(searching, "REACH", 3)
    before, seen = 0, []
    while True:
        found = search(small, EVE, Wanted(), before)
        seen += [told.receipt.number for told in found.receipts]
        before = found.older
        if not before:
            break
        assert found.cut
    assert seen == list(range(last, 0, -1))
    monkeypatch.setattr(searching, "PAGE", 2)
    monkeypatch.setattr(searching, "REACH", last)
    first = search(small, EVE, Wanted(kind="debit"))
    rest = search(small, EVE, Wanted(kind="debit"), first.older)
    assert (len(first.receipts), len(rest.receipts), rest.older) == (2, 1, 0)


def test_the_last_audit_that_was_kept_is_shown(small, tmp_path):
    place = tmp_path / "audit.json"
    told = {}
    with Accounts.open(None) as accounts:
        accounts.add("eve", Role.AUDITOR)
        token = accounts.issue("eve")[0]
        with (
            started(http_front(small, accounts, Ways(audits=place))) as address,
            httpx.Client(base_url=address, timeout=60) as client,
        ):
            client.post("/login", data={"token": token})
            told["none"] = client.get("/watch/checks").text
            for name, proven in (("held", 0.5), ("lie", 2.0)):
                finding = Finding(f"{name} {EVIL}", "mechanism", 1.0, 0.0, proven, 0.999, "x > 1", 5000)
                keep(place, Audit((finding,), 0.999), version="1.2")
                told[name] = client.get("/watch/checks").text
            place.write_text('{"findings": 3}')
            told["torn"] = client.get("/watch/checks").text
    assert "No result is on record here" in told["none"]
    assert "None of 1 claims was refuted" in told["held"]
    assert "version 1.2" in told["held"]
    assert "1 of 1 claims are broken" in told["lie"]
    assert "cannot be read: run sfumato audit --keep again" in told["torn"]
    assert EVIL not in "".join(told.values())


def test_acts_and_audits_wait_behind_no_question(small, monkeypatch):
    """Whatever stewards and auditors open of Watch is done aside of the threads that questions take."""
    asked, run = [], Threads.__call__

    async def seen(self, work):
        asked.append(self)
        return await run(self, work)

    with Accounts.open(None) as accounts:
        accounts.add("sofia", Role.STEWARD)
        token = accounts.issue("sofia")[0]
        with (
            started(http_front(small, accounts)) as address,
            httpx.Client(base_url=address, timeout=60) as client,
        ):
            client.post("/login", data={"token": token})
            monkeypatch.setattr(Threads, "__call__", seen)
            client.get("/watch/acts")
            (aside,) = set(asked)
            for path in ("", "/ledger", "/ledger/1", "/checks", "/accounts", "/spent?dataset=visits"):
                assert client.get(f"/watch{path}").status_code == 200
            sent = {"form": form_of(client), "once": "aside", "reason": "a test", "dataset": "visits"}
            client.post("/watch/acts/take-back", data=sent)
            client.post("/watch/accounts/add", data=sent | {"name": "zoe"})
            assert set(asked) == {aside}
            assert aside._most == 4


@pytest.mark.parametrize(("role", "shown"), [(Role.AUDITOR, False), (Role.STEWARD, True)])
def test_why_a_verification_failed_is_told_to_stewards_alone(small, monkeypatch, role, shown):
    async def fails(self):
        raise LedgerUnusable("It lies in /secret/place.")

    monkeypatch.setattr(Books, "verified", fails)
    with Accounts.open(None) as accounts:
        accounts.add("eve", role)
        token = accounts.issue("eve")[0]
        with (
            started(http_front(small, accounts)) as address,
            httpx.Client(base_url=address, timeout=60) as client,
        ):
            client.post("/login", data={"token": token})
            client.post("/watch/verify", data={"form": form_of(client)})
            text = client.get("/watch/checks").text
    assert "The ledger does not hold" in text
    assert ("/secret/place" in text) == shown
    assert ("tell the steward trouble" in text) != shown
