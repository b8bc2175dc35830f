"""Numbers on a phone: whatever columns are called, no figure that is bought lies beyond an edge."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from chromium import violations

NAMES = [
    ("n", "mean_cost"),
    ("W" * 72, "ein sehr langer Name ohne Ende der niemals aufhört und noch weiter"),
]
# Cells of tables of which a part cannot be seen, or only after scrolling sideways.
CUT = """() => [...document.querySelectorAll('.scroll table')].flatMap(table => {
  const frame = table.closest('.scroll').getBoundingClientRect()
  const right = Math.min(frame.right, innerWidth) + 1
  return [...table.querySelectorAll('td, tbody th')].filter(cell => {
    const range = document.createRange(); range.selectNodeContents(cell)
    return [cell.getBoundingClientRect(), ...range.getClientRects()].some(
      box => box.left < -1 || box.right > right || !box.height)
  }).map(cell => cell.innerText)
})"""


def wide(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


@pytest.mark.parametrize("names", NAMES, ids=range(len(NAMES)))
def test_no_figure_is_cut_at_an_edge(visit: Any, names: tuple[str, str]) -> None:
    first, second = names
    sql = f'SELECT ward, COUNT(*) AS "{first}", AVG(cost) AS "{second}" FROM visits GROUP BY ward'
    page = visit(
        "ada", "/ask?" + urlencode({"sql": sql, "epsilon": "0.05"}), viewport={"width": 360, "height": 780}
    )
    page.wait_for_selector("#release")
    for width in (320, 360, 640, 641, 800, 1280):
        page.set_viewport_size({"width": width, "height": 780})
        assert page.evaluate(CUT) == []
        assert not wide(page)
    page.set_viewport_size({"width": 360, "height": 780})
    assert "±" in page.inner_text(".quote td.error >> nth=0")
    page.click("#release")
    page.wait_for_selector("td.number")
    for width in (320, 360, 640):
        page.set_viewport_size({"width": width, "height": 780})
        assert page.evaluate(CUT) == []
        assert not wide(page)
    assert page.get_by_role("cell").count() > 10  # it is a table still, for whoever hears it
    assert page.get_by_role("columnheader", name="ward").count() == 1
    assert violations(page) == []


def test_a_figure_that_is_cut_is_seen(visit: Any) -> None:
    page = visit("ada", "/ask?" + urlencode({"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.05"}))
    page.set_viewport_size({"width": 360, "height": 780})
    page.wait_for_selector("#release")
    assert page.evaluate(CUT) == []
    page.evaluate("document.querySelector('.quote tbody th').style.whiteSpace = 'nowrap'")
    page.evaluate("document.querySelector('.quote tbody th').innerText = 'a'.repeat(72)")
    assert page.evaluate(CUT)
