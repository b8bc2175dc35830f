"""Feel: an epsilon redraws errors, attackers and shares of the budget, and nothing is ever spent."""

from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from chromium import violations
from sfumato.errors import BudgetExceeded
from sfumato.explain import tradeoff
from sfumato.loss import ApproximateLoss, PureLoss
from sfumato.server.house import House
from sfumato.server.page.common import Common
from sfumato.server.page.feel.meaning import attack, stands
from sfumato.server.page.feel.mock import mock
from sfumato.server.page.feel.section import Feel
from sfumato.server.page.looks import Looks
from sfumato.server.page.rest import how_many, price_of_quote

GROUPED = "SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY city"
CITIES = ("Bordeaux", "Lille", "Lyon", "Nantes", "Nice", "Toulouse")


@pytest.fixture
def debits(site):
    """How many debits are on record; the same after the test."""

    def number():
        with site.api("omar") as client:
            return sum(one["debits"] for one in client.get("/api/datasets/visits/analysts").json())

    before = number()
    assert before
    yield before
    assert number() == before


@pytest.mark.parametrize("who", ["ada", "sofia", "omar"])
def test_it_is_there_for_everybody_and_without_scripts(site, debits, who):
    with site.entered(who) as client:
        page = client.get("/feel", params={"epsilon": "0.4", "sql": GROUPED}).text
        for city in CITIES[:2]:
            assert city in page
        quote = client.get("/feel", params={"epsilon": "0.4"}).text
    assert "± 45" in quote  # a count of at most 6 rows each, at epsilon 0.4
    assert "of the time, where a coin is right 50 %" in quote
    assert "such questions fit into what is left" in quote
    assert "Broadband Coverage" in quote
    assert "deployments-registry" in quote
    assert ('href="/ask?sql=' in quote) == (who != "omar")


def test_what_is_drawn_is_what_the_quote_says(site, debits):
    with site.entered("ada") as client, site.api("ada") as api:
        for price in ("0.05", "0.4", "3"):
            asked = {"sql": "SELECT COUNT(*) AS answer FROM visits", "epsilon": price}
            width = api.post("/api/quote", json=asked).json()["quote"]["columns"][0]["error"]
            page = client.get("/feel", params={"epsilon": price}).text
            assert f"± {sf.render.shown(width, width)}" in page


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"epsilon": "0"}, "The epsilon must be a number from 0.001 to 100."),
        ({"epsilon": "nan"}, "The epsilon must be a number"),
        ({"epsilon": "1" * 100}, "The epsilon must be a number"),
        ({"epsilon": "<script>"}, "The epsilon must be a number"),
        ({"about": "-4"}, "The size of the mock must be a number"),
        ({"sql": "SELECT * FROM visits"}, "What helps:"),
        ({"sql": 'SELECT COUNT(*) AS n FROM "<script>alert(1)</script>"'}, "What helps:"),
    ],
)
def test_what_cannot_be_drawn_is_told(site, debits, sent, told):
    with site.entered("ada") as client:
        answer = client.get("/feel", params=sent)
    assert 400 <= answer.status_code < 500
    assert told in answer.text
    assert "<script>alert" not in answer.text
    assert 'value="<script>' not in answer.text


def test_a_script_as_an_alias_or_a_group_is_text(site, debits):
    key = "CASE WHEN age > 40 THEN '<script>x' ELSE '</svg>' END AS k"
    asked = f'SELECT {key}, COUNT(*) AS "<script>alert(1)</script>" FROM visits GROUP BY 1'
    with site.entered("ada") as client:
        page = client.get("/feel", params={"sql": asked}).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page
    assert "<script>x" not in page


def test_the_slider_redraws_at_once_and_spends_nothing(visit, debits):
    page = visit("ben", "/feel")
    with page.expect_response("**/feel") as drawn:
        page.focus("#slider")
        page.keyboard.press("ArrowLeft")
    assert drawn.value.ok
    page.locator("#said", has_text="Epsilon 0.45: off by 40.").wait_for(state="attached")
    assert page.input_value("#epsilon") == "0.45"
    assert page.get_attribute("#slider", "aria-valuetext") == "epsilon 0.45"
    page.fill("#epsilon", "2")
    page.locator("#said", has_text="Epsilon 2:").wait_for(state="attached")
    assert page.input_value("#slider") == "6"
    assert "2" in page.text_content("tr.here td")


def test_it_is_accessible(visit, debits):
    page = visit("omar", f"/feel?sql={GROUPED}")
    for summary in page.query_selector_all("#felt summary"):
        summary.click()
    assert violations(page) == []


def test_without_scripts_a_button_does_the_same(visit, debits):
    page = visit("ada", "/feel", java_script_enabled=False)
    assert not page.is_visible("#slider")
    page.fill("#epsilon", "1.5")
    page.click("#feel button.main")
    page.wait_for_url("**epsilon=1.5*")
    assert "1.5" in page.text_content("tr.here td")


# ── what it is made of


@pytest.fixture(scope="module")
def session():
    data = pa.table({"who": [1, 2, 3], "x": [1.0, 2.0, 3.0], "g": ["<b>", "b", None]})
    table = sf.PrivateTable(
        "t",
        source=data,
        unit=sf.PrivacyUnit("who", max_groups=2),
        schema={"x": sf.Float(0, 10), "g": sf.Enum("<b>", "b", "c")},
        size=300,
    )
    with sf.Session(table, budget=sf.Budget(epsilon=4, delta=1e-6)) as made:
        yield made


@pytest.mark.parametrize(
    ("text", "about", "labels"),
    [
        ("SELECT COUNT(*) AS n FROM t", 300, ["the answer"]),
        ("SELECT g, COUNT(*) AS n FROM t GROUP BY g", 100, ["<b>", "b", "c"]),
        ("SELECT g, SUM(x) AS s FROM t GROUP BY g", 500, ["<b>", "b", "c"]),
        ("SELECT AVG(x) AS m FROM t", 5, ["the answer"]),
        ("SELECT MEDIAN(x) AS m FROM t", 5, ["the answer"]),
        ("SELECT COUNT(*) + 7 AS n FROM t", 300, ["the answer"]),
    ],
)
def test_a_mock_is_made_of_what_is_declared(session, text, about, labels):
    """The same at every price: only the noise follows the epsilon."""
    drawn = [mock(session.sql(text).quote(epsilon=price), size=300) for price in ("0.1", "1", "10")]
    assert {one.about for one in drawn} == {float(about)}
    assert [[name for name, _ in one.rows] for one in drawn] == [labels] * 3
    assert len({tuple(height for _, height in one.rows) for one in drawn}) == 1
    widths = [one.half_width for one in drawn]
    assert widths[0] is None or widths[0] > widths[1] > widths[2]
    assert all("<b>" not in one.picture for one in drawn)


def test_many_groups_are_a_line_and_unknown_ones_have_no_names(session):
    days = sf.PrivateTable(
        "d",
        source=pa.table({"day": ["2024-01-01"], "t": ["secret"]}),
        unit=sf.PrivacyUnit.row(),
        schema={"day": sf.Date("2024-01-01", "2024-12-31"), "t": sf.Text()},
    )
    with sf.Session(days, budget=sf.Budget(epsilon=4, delta=1e-6)) as own:
        line = mock(own.sql("SELECT day, COUNT(*) AS n FROM d GROUP BY day").quote(epsilon=1), size=None)
        found = mock(own.sql("SELECT t, COUNT(*) AS n FROM d GROUP BY t").quote(epsilon=1), size=None)
    assert len(line.rows) == line.groups == 366
    assert 'class="band"' in line.picture
    assert found.groups is None
    assert "secret" not in found.picture
    assert found.rows[0][0] == "group A"


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("text", ["SELECT COUNT(*) AS n FROM t", "SELECT COUNT(*) AS n, AVG(x) AS m FROM t"])
def test_the_attacker_s_curve_is_a_ceiling(session, text, mechanism):
    quote = session.sql(text).quote(epsilon=1, mechanism=mechanism)
    unit = session.tables["t"].unit
    seen = attack(quote.loss, unit)
    for (rate, best), share in zip(seen.rows, (0.01, 0.05, 0.1, 0.5), strict=True):
        assert rate == f"{100 * share:.0f} %"
        shown = float(best.removesuffix(" %")) / 100
        assert shown >= share
        point = quote.loss.approximate
        most = ApproximateLoss(*point) if point[1] else PureLoss(point[0])
        best = most if seen.of_price else quote.loss
        assert shown >= float(tradeoff(best, share)) - 1e-9
        assert shown <= float(tradeoff(most, share)) + 2e-3


def test_how_many_fit_is_how_many_are_admitted():
    """By the gate itself, for each accountant."""
    for accountant in ("basic", "zcdp"):
        table = sf.PrivateTable(
            "t", source=pa.table({"x": [1]}), unit=sf.PrivacyUnit.row(), schema={"x": sf.Int(0, 999)}
        )
        budget = sf.Budget(2, 1e-6, accountant)
        with sf.Session(table, budget=budget) as session:
            quote = session.sql("SELECT COUNT(*) AS n FROM t").quote(epsilon="0.3")
            price = price_of_quote(budget, quote)
            many = how_many(session.balance(), price)
            paid = sum(_is_paid(session, least) for least in range(many + 3))
            assert many == paid > 3
            assert how_many(session.balance(), price) == 0


def _is_paid(session, least):
    try:
        session.sql(f"SELECT COUNT(*) AS n FROM t WHERE x > {least}").release(epsilon="0.3")
    except BudgetExceeded:
        return False
    return True


def test_prices_stand_among_those_of_their_own_kind():
    row, person = sf.PrivacyUnit.row(), sf.PrivacyUnit("who")
    daily = sf.PrivacyUnit("who", window="day", time="at")
    kinds = [stands(Fraction(1), Fraction(0), unit).kind for unit in (row, person, daily)]
    assert kinds == ["record", "person", "person and period"]


@pytest.mark.parametrize("end", ["2024-12-31", "2999-12-31", None])
def test_where_each_window_has_a_budget_the_first_question_names_one(end):
    day = sf.Date(end and "2024-01-01", end)
    table = sf.PrivateTable(
        "m",
        source=pa.table({"who": [1], "the day": ["2024-01-01"]}),
        unit=sf.PrivacyUnit("who", window="month", time="the day"),
        schema={"the day": day},
    )
    with sf.Session(table, budget=sf.Budget(4, each="month")) as session:
        common = Common(House(session), None, None, None, Looks(), None)
        text = Feel(common)._first(session, "")
        quote = session.sql(text).quote(epsilon="0.5")
        windows = session.windows_of(quote.report)
        assert windows.count == 1
        assert (
            how_many(session.balance(window=windows), price_of_quote(sf.Budget(4, each="month"), quote)) == 8
        )
    if end == "2024-12-31":
        assert str(windows) == "2024-12"
