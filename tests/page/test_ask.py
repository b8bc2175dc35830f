"""Asking: a quote while one types, an answer that is paid once, refusals that mend themselves."""

import csv
import io
import json
import re
import struct

import pyarrow.parquet as pq
import pytest

from chromium import violations

COUNTS = "SELECT city, COUNT(*) AS n FROM visits WHERE age >= {age} GROUP BY city"


def left(site, name):
    with site.api(name) as api:
        return api.get("/api/datasets/visits/balance").json()["left"]["epsilon"]


def asked(client, path, **sent):
    """A form, sent as a browser without scripts would."""
    form = re.search(r'data-form="([0-9a-f]{64})"', client.get("/ask").text)[1]
    return client.post(path, data={"form": form, **sent})


def seen_in(page):
    return re.search(r'name="seen" value="([0-9a-f]{32})"', page)[1]


def test_an_analyst_sees_the_price_pays_it_and_takes_the_answer_away(site, visit):
    before = left(site, "ada")
    page = visit("ada", "/ask")
    page.fill("#sql", COUNTS.format(age=11))
    page.wait_for_selector("button[name=price]")
    assert "What is it worth to you?" in page.inner_text("#quote")
    page.fill("#epsilon", "0.2")
    page.wait_for_selector("#release")
    said = page.inner_text("#quote")
    assert "It costs epsilon 0.2" in said
    assert "3 % of what is left" in said
    assert "more questions like this" in said
    assert re.search(r"n\s+±\s\d+", said)
    assert left(site, "ada") == before
    page.click("#release")
    page.wait_for_url("**/ask/receipts/*")
    assert left(site, "ada") == pytest.approx(before - 0.2)
    assert page.locator("svg.chart .whisker").count() == 6
    assert page.locator("tbody tr").count() == 6
    assert re.search(r"Lyon\s+[\d,]+ ± \d+", page.inner_text("table"))
    assert "epsilon 0.2" in page.inner_text("dl.facts")
    number = int(re.search(r"receipts/(\d+)", page.url)[1])
    files = {}
    for link in page.locator("#downloads a").all():
        with page.expect_download() as caught:
            link.click()
        files[caught.value.suggested_filename.rpartition(".")[2]] = caught.value.path().read_bytes()
    rows = list(csv.DictReader(io.StringIO(files["csv"].decode())))
    assert {row["receipt"] for row in rows} == {str(number)}
    assert {row["paid_epsilon"] for row in rows} == {"0.2"}
    assert (
        float(rows[0]["n_low"])
        < float(rows[0]["n"])
        < float(rows[0]["n_low"]) + 2 * float(rows[0]["n_error"])
    )
    held = pq.read_schema(io.BytesIO(files["parquet"])).metadata
    assert json.loads(held[b"sfumato.receipt"])["number"] == number
    assert json.loads(files["json"])["paid_by"]["number"] == number
    size, kind = struct.unpack(">I4s", files["png"][33:41])
    assert kind == b"tEXt"
    assert json.loads(files["png"][41 : 41 + size].partition(b"\0")[2])["number"] == number
    page.reload()
    page.goto("/ask/history")
    page.click(f"text=See answer {number}")
    page.wait_for_url("**/ask/receipts/*")
    assert re.search(r"Lyon\s+[\d,]+ ± \d+", page.inner_text("table"))
    page.click("text=Edit this question")
    page.wait_for_url("**/ask?from=*")
    assert page.input_value("#sql") == COUNTS.format(age=11)
    assert "This is free" in page.inner_text("#quote")
    assert left(site, "ada") == pytest.approx(before - 0.2)


def test_a_second_tab_a_double_click_and_the_way_back_pay_once(site, visit):
    before = left(site, "ada")
    page = visit("ada", "/ask?sql=" + COUNTS.format(age=12) + "&epsilon=0.1")
    other = page.context.new_page()
    other.goto(page.url)
    page.dblclick("#release")
    other.click("#release")
    page.wait_for_url("**/ask/receipts/*")
    other.wait_for_url("**/ask/receipts/*")
    assert "again" not in page.url
    assert "Nothing was paid" in other.inner_text("main")
    page.go_back()
    page.wait_for_selector("#release")
    page.click("#release")
    page.wait_for_url("**/ask/receipts/*")
    assert left(site, "ada") == pytest.approx(before - 0.1)


def test_the_same_form_twice_is_one_request_and_another_question_is_not_what_was_seen(site):
    with site.entered("ada") as client:
        sent = {"sql": COUNTS.format(age=13), "epsilon": "0.1"}
        quote = asked(client, "/ask/quote", **sent)
        assert quote.status_code == 200
        before = left(site, "ada")
        other = asked(
            client, "/ask/release", **sent | {"sql": COUNTS.format(age=14)}, seen=seen_in(quote.text)
        )
        assert other.status_code == 409
        assert left(site, "ada") == before
        dearer = asked(client, "/ask/release", **sent | {"epsilon": "0.3"}, seen=seen_in(quote.text))
        assert dearer.status_code == 409
        for path in ("/ask", "/ask/quote", "/ask/release"):
            client.get(path, params=sent | {"seen": seen_in(quote.text)})
        unseen = asked(client, "/ask/release", **sent)
        assert unseen.status_code == 409
        assert left(site, "ada") == before
        answers = [asked(client, "/ask/release", **sent, seen=seen_in(quote.text), word="w1") for _ in "ab"]
        assert len({answer.headers["location"] for answer in answers}) == 1
        assert "again" not in answers[0].headers["location"]
        assert [answer.headers["sfumato-paid"] for answer in answers] == ["yes", "no"]
        assert left(site, "ada") == pytest.approx(before - 0.1)


def test_the_same_numbers_are_shown_under_the_names_that_are_asked_for(site):
    with site.entered("ada") as client:
        quote = asked(client, "/ask/quote", sql=COUNTS.format(age=15), epsilon="0.1").text
        asked(client, "/ask/release", sql=COUNTS.format(age=15), epsilon="0.1", seen=seen_in(quote))
        other = COUNTS.format(age=15).replace("AS n", "AS people") + " ORDER BY 2 DESC LIMIT 2"
        quote = asked(client, "/ask/quote", sql=other, epsilon="0.1").text
        assert "This is free" in quote
        answer = asked(client, "/ask/release", sql=other, epsilon="0.1", seen=seen_in(quote))
        page = client.get(answer.headers["location"]).text
        assert "people ± noise" in page
        assert page.count("<tr ") == 3
        where = re.search(r'href="(/ask/receipts/\d+/answer\.csv[^"]*)"', page)[1].replace("&amp;", "&")
        assert client.get(where).text.startswith('"city","people","people_error"')


def test_an_answer_that_somebody_else_paid_for_counts_and_is_shown(site):
    sent = {"sql": COUNTS.format(age=18), "epsilon": "0.1"}
    secret = sent | {"sql": f"/* for my boss */ {sent['sql']}".replace("AS n", "AS layoffs")}
    with site.entered("ada") as client:
        quote = asked(client, "/ask/quote", **secret).text
        where = asked(client, "/ask/release", **secret, seen=seen_in(quote)).headers["location"]
        where = where.partition("?")[0]
    with site.api("ada") as api:
        paid = api.get(where.replace("/ask", "/api")).json()
    before = left(site, "ben")
    with site.entered("ben") as client:
        assert client.get(where).status_code == 404
        quote = asked(client, "/ask/quote", **sent).text
        assert "Somebody else has paid for an answer" in quote
        answer = asked(client, "/ask/release", **sent, seen=seen_in(quote))
        page = client.get(answer.headers["location"])
        assert page.status_code == 200
        assert "Somebody else paid for this answer" in page.text
        kinds = ("csv", "json", "parquet", "png")
        files = [client.get(f"{where}/answer.{kind}", params=sent) for kind in kinds]
        assert [file.status_code for file in files] == [200] * 4
        for told in (page, *files):
            for word in (b"boss", b"layoffs", paid["mac"].encode(), b'"time"', b"totals"):
                assert word not in told.content
        assert not any(b"ada" in file.content for file in files[:3])
        for path in (where, *(f"{where}/answer.{kind}" for kind in kinds)):
            assert client.get(path).status_code == 404
    assert left(site, "ben") == pytest.approx(before - 0.1)


def test_what_another_paid_is_what_counts_and_what_is_seen(site):
    """However little one names for it: a larger figure than the one on the button is never counted."""
    sent = {"sql": COUNTS.format(age=19), "epsilon": "0.02"}
    with site.entered("ada") as ada, site.entered("ben") as ben:
        for price in ("0.1", "0.15"):
            dear = sent | {"epsilon": price}
            bought = asked(ada, "/ask/release", **dear, seen=seen_in(asked(ada, "/ask/quote", **dear).text))
            assert bought.status_code == 303
            before, quote = left(site, "ben"), asked(ben, "/ask/quote", **sent).text
            assert f"counts epsilon {price} toward your limit" in quote
            assert "epsilon 0.02 and see" not in quote
            if price == "0.1":
                early = seen_in(quote)
        assert asked(ben, "/ask/release", **sent, seen=early).status_code == 409
        assert left(site, "ben") == before
        asked(ben, "/ask/release", **sent, seen=seen_in(quote))
    assert left(site, "ben") == pytest.approx(before - 0.15)


TOO_LONG = {
    "sql": COUNTS.format(age=20).ljust(20_000) + " HAVING n > 10",
    "epsilon": "0.2".ljust(64, "0") + "e-3",
    "error": "300.".ljust(64, "0") + "e3",
}


@pytest.mark.parametrize("field", TOO_LONG)
def test_what_is_too_long_is_refused_and_never_cut(site, field):
    """The beginning of a question is another question, and that of a number another number."""
    sent = {"sql": COUNTS.format(age=20)} | ({"epsilon": "0.2"} if field == "sql" else {})
    sent[field] = TOO_LONG[field]
    before = left(site, "ada")
    with site.entered("ada") as client:
        quote = asked(client, "/ask/quote", **sent)
        assert quote.status_code == 422
        assert "has at most" in quote.text
        cut = sent | {field: sent[field][: 20_000 if field == "sql" else 64]}
        seen = seen_in(asked(client, "/ask/quote", **cut).text)
        assert asked(client, "/ask/release", **sent, seen=seen).status_code == 422
    assert left(site, "ada") == before


def test_a_refusal_is_mended_with_one_click_and_names_are_completed(visit):
    page = visit("ada", "/ask")
    page.fill("#epsilon", "0.1")
    page.fill("#sql", "SELECT city, AVG(csot) AS mean FROM visits GROUP BY city")
    page.click("button[name=repair]")
    page.wait_for_selector("#release")
    assert page.input_value("#sql") == "SELECT city, AVG(cost) AS mean FROM visits GROUP BY city"
    page.fill("#sql", "")
    page.locator("#sql").press_sequentially("SELECT AV")
    assert page.locator("#suggestions li[aria-selected=true]").inner_text().startswith("AVG")
    page.keyboard.press("Tab")
    page.keyboard.type("c")
    page.keyboard.press("ArrowDown")
    taken = page.locator("#suggestions li[aria-selected=true]").inner_text().split()[0]
    assert page.get_attribute("#sql", "aria-activedescendant")
    page.keyboard.press("Enter")
    assert page.input_value("#sql") == f"SELECT AVG({taken}"
    page.keyboard.type("x")
    page.keyboard.press("Escape")
    assert page.locator("#suggestions").is_hidden()


def test_whoever_runs_out_is_told_what_fits_and_whom_to_ask(site, visit):
    page = visit("chloe", "/ask?sql=" + COUNTS.format(age=16) + "&epsilon=99")
    said = page.inner_text("#quote")
    assert "more than you have left" in said
    assert "ask sofia, the steward" in said
    assert page.locator("#release").count() == 0
    page.click("button[name=price]")
    page.wait_for_selector("#release")
    assert float(page.input_value("#epsilon")) == pytest.approx(left(site, "chloe"), rel=0.1)
    with site.entered("chloe") as client:
        refused = asked(client, "/ask/release", sql=COUNTS.format(age=16), epsilon="99", seen="x")
    assert refused.status_code == 402
    page.click("#release")
    page.wait_for_url("**/ask/receipts/*")
    page.goto("/ask?sql=" + COUNTS.format(age=17) + "&epsilon=1")
    assert "more than you have left" in page.inner_text("#quote")
    assert left(site, "chloe") < 0.4


BAD = "<script>alert(1)</script>"


def test_what_looks_like_markup_is_text(visit):
    who = f"CASE WHEN age < 40 THEN '{BAD}' ELSE '=1+1' END AS who"
    sql = f'SELECT {who}, COUNT(*) AS "{BAD}" FROM visits GROUP BY 1'
    page = visit("ben", "/ask")
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.fill("#sql", sql)
    page.fill("#epsilon", "0.1")
    page.wait_for_selector("#release")
    assert BAD in page.inner_text("#quote")
    page.click("#release")
    page.wait_for_url("**/ask/receipts/*")
    assert page.inner_text("main").count(BAD) >= 4
    with page.expect_download() as caught:
        page.click("#downloads a >> nth=0")
    assert '\n"\'=1+1",' in caught.value.path().read_text()
    page.goto("/ask/history")
    assert BAD in page.inner_text("main")
    page.goto(f"/ask?sql={BAD}")
    assert page.input_value("#sql") == BAD


def test_all_of_it_works_without_scripts(site, visit):
    before = left(site, "ben")
    page = visit("ben", "/ask", java_script_enabled=False)
    page.fill("#sql", "SELECT wrad, COUNT(*) AS n FROM visits WHERE age > 18 GROUP BY wrad")
    page.click("#ask-quote")
    page.click("button[name=repair]")
    page.click("button[name=price] >> nth=0")
    assert left(site, "ben") == before
    page.click("#release")
    page.wait_for_url("**/ask/receipts/*")
    assert left(site, "ben") < before
    page.select_option("#confidence", "0.99")
    page.click("#settings button")
    page.wait_for_url("**confidence=0.99*")
    assert "holds 99 % of the time" in page.inner_text("figure")


def test_receipts_of_others_and_long_links_are_not_taken(site):
    with site.api("ben") as api:
        number = next(each["number"] for each in api.get("/api/receipts").json() if each["kind"] == "debit")
    with site.entered("ada") as client:
        for path in (f"/ask/receipts/{number}", f"/ask/receipts/{number}/answer.csv", "/ask/receipts/999999"):
            assert client.get(path).status_code == 404
        assert client.get(f"/ask?from={number}").status_code == 404
        assert "too long" in client.get("/ask", params={"sql": "x" * 10_001}).text
    with site.entered("omar") as client:
        assert client.get("/ask").status_code == 403


def test_nobody_is_kept_out(visit):
    page = visit("ada", "/ask?sql=" + COUNTS.format(age=11) + "&epsilon=0.1")
    assert violations(page) == []
    page.fill("#sql", "SELECT cty")
    page.locator("#sql").press_sequentially(" FROM vis")
    page.wait_for_selector("button[name=repair]")
    assert violations(page) == []
    page.goto("/ask/history")
    assert violations(page) == []
    page.click("text=See answer >> nth=0")
    page.wait_for_url("**/ask/receipts/*")
    page.wait_for_selector("svg.chart")
    assert violations(page) == []
