"""Cards and dossiers for reviewers, and releases as pages: who sees what, and what a page may hold."""

import re

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe

EVIL = '<script>alert("x")</script>'
NAME = EVIL.replace('"', "")  # of a column
PLACES = (
    "/show",
    "/show/datasets/visits/card",
    "/show/datasets/visits/dossier",
    "/show/releases/{number}",
    "/public/{number}",
)


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
        sent = {"form": form_of(client), "title": f"Wards {EVIL}"}
        assert client.post(f"/show/releases/{number}/publish", data=sent).status_code == 303
        yield number
        client.post(f"/show/releases/{number}/withdraw", data={"form": form_of(client)})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible(visit, published, scheme):
    page = visit("sofia", "/show", color_scheme=scheme)
    for place in PLACES:
        page.goto(place.format(number=published))
        found = Axe().run(page)
        assert found.violations_count == 0, f"{place}: {found.generate_report()}"


def test_a_reviewer_opens_the_card_and_prints_it(visit):
    page = visit("omar", "/show")
    page.get_by_role("link", name="Privacy card").click()
    assert page.get_by_role("heading", name="Privacy card: visits").is_visible()
    assert "epsilon 20" in page.inner_text("article")
    assert "Suppose that an attacker" in page.inner_text("article")
    page.emulate_media(media="print")
    assert not page.locator("header.top").is_visible()
    page.emulate_media(media="screen")
    page.get_by_role("link", name="The whole dossier").click()
    assert page.locator("ol.steps li").count() == 12


def test_a_release_is_saved_as_one_file_that_needs_nothing_else(visit, number, browser, tmp_path):
    page = visit("ada", "/show")
    page.get_by_role("link", name=f"Page of release {number}").click()
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
    page.get_by_role("button", name="Publish").click()
    page.get_by_role("link", name="the public page").wait_for()
    stranger = visit(None, f"/public/{number}")
    assert stranger.inner_text("h1") == f"Wards {EVIL}"
    assert stranger.locator("h1").evaluate("it => getComputedStyle(it).borderBottomStyle") == "solid"
    assert "Wards" in visit("ada", "/show").inner_text("main")
    page.get_by_role("button", name="Withdraw it").click()
    page.get_by_role("button", name="Publish").wait_for()
    with httpx.Client(base_url=site.address) as client:
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
