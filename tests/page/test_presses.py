"""What comes while somebody types or presses: no press is lost, no letter moves, no old price can be paid."""

import pytest

COUNT = "SELECT COUNT(*) AS n FROM visits"
BUILT = "/ask/build?by0=0:&where0=1&is0=ge&value0=18"


class Held:
    """Parts of a page that are asked for, and come when the test lets them."""

    def __init__(self, page, address):
        self.page, self._routes = page, []
        page.route(f"**{address}", self._hold)

    def _hold(self, route):
        if route.request.method == "POST":
            self._routes.append(route)
        else:
            route.continue_()

    def asked(self, act):
        """Acts, and waits until a part is asked for."""
        before = len(self._routes)
        with self.page.expect_request(lambda asked: asked.method == "POST"):
            act()
        while len(self._routes) == before:
            self.page.evaluate("0")  # what the browser has told is heard meanwhile

    def come(self):
        """Lets all of them come, and their scripts run."""
        while self._routes:
            route = self._routes.pop(0)
            route.continue_()
            route.request.response().finished()
        self.page.evaluate("() => fetch('/static/mark.svg').then(answer => answer.text())")


def middle(page, selector):
    place = page.locator(selector)
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.parametrize(
    ("path", "typed", "part", "link", "leads"),
    [
        (BUILT, ("#value0", "65"), "/ask/build", "text=Ask this", "**/ask?sql=*"),
        (BUILT, ("#value0", "65"), "/ask/build", "text=Feel its price", "**/feel?sql=*"),
        ("/feel", ("#epsilon", "2"), "/feel", "text=Go on to ask it", "**/ask?sql=*"),
        (
            f"/ask?sql={COUNT}&epsilon=999",
            ("#epsilon", "998"),
            "/ask/quote",
            "text=read them again",
            "**/ask/history",
        ),
    ],
)
def test_a_press_is_not_lost_to_what_comes_meanwhile(visit, path, typed, part, link, leads):
    page = visit("ben", path)
    held = Held(page, part)
    held.asked(lambda: page.fill(*typed))
    page.mouse.move(*middle(page, link))
    page.mouse.down()
    held.come()
    page.mouse.up()
    page.wait_for_url(leads)


def test_a_typed_value_is_written_once(visit):
    page = visit("ben", BUILT)
    sent = []
    page.on("request", lambda asked: sent.append(asked.post_data) if asked.method == "POST" else None)
    page.fill("#value0", "65")
    page.locator("#written pre", has_text="age >= 65").wait_for()
    page.keyboard.press("Tab")  # the field is left
    page.fill("#value0", "66")
    page.keyboard.press("Tab")  # before it is written
    page.locator("#written pre", has_text="age >= 66").wait_for()
    page.select_option("#order", "1:down")
    page.locator("#written pre", has_text="ORDER BY").wait_for()
    assert len(sent) == 3


def test_what_is_the_same_stays(visit):
    page = visit("ben", "/ask/build?where0=1&is0=ge")
    parts = page.evaluate_handle("() => ['picks', 'written'].map(name => document.getElementById(name))")
    held = Held(page, "/ask/build")
    held.asked(lambda: page.select_option("#is0", "lt"))
    held.come()
    assert parts.evaluate("them => them.map(part => part.isConnected)") == [True, True]
    held.asked(lambda: page.fill("#value0", "65"))
    held.come()
    assert "age < 65" in page.inner_text("#written pre")
    assert parts.evaluate("them => them.map(part => part.isConnected)") == [True, False]


def test_what_is_typed_while_the_form_is_drawn_again_stays_in_order(visit):
    page = visit("ben", "/ask/build?where0=1&is0=ge")
    held = Held(page, "/ask/build")
    held.asked(lambda: page.select_option("#by0", label="ward"))
    page.focus("#value0")
    held.asked(lambda: page.keyboard.type("6"))
    held.come()
    page.locator("#order").wait_for()
    held.asked(lambda: page.keyboard.type("5"))
    assert page.input_value("#value0") == "65"
    held.come()
    assert "age >= 65" in page.inner_text("#written pre")


def test_a_price_that_comes_too_late_cannot_be_paid(visit):
    page = visit("ben", f"/ask?sql={COUNT}&epsilon=0.3")
    page.clock.install()
    page.clock.pause_at("2100-01-01")  # what waits for a moment without typing waits for the test
    held = Held(page, "/ask/quote")
    page.fill("#epsilon", "0.1")
    held.asked(lambda: page.clock.run_for(200))
    page.fill("#epsilon", "0.2")
    held.come()
    assert page.locator("#release").is_disabled()
    held.asked(lambda: page.clock.run_for(200))
    held.come()
    page.locator("#release:enabled", has_text="epsilon 0.2").wait_for()


def test_what_was_opened_stays_open(visit):
    page = visit("ben", "/feel")
    page.click("text=As a table")
    page.fill("#epsilon", "2")
    page.locator("#said", has_text="Epsilon 2:").wait_for(state="attached")
    assert page.locator("details[open]", has_text="As a table").is_visible()
