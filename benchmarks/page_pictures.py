"""Pictures of the page for its documentation, in a real browser: `python -m benchmarks.page_pictures`.

Each page of the demonstration, light and dark, at 1280 points; the page for a question on a phone, too.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.page import _browsing, _entered

FOLDER = Path(__file__).parents[1] / "docs" / "pictures" / "page"
QUESTION = (
    "SELECT city, COUNT(*) AS visits, AVG(cost) AS mean_cost\nFROM visits WHERE age >= 40 GROUP BY city"
)
PLACES = (
    ("ada", "ask", "/ask"),
    ("ada", "build", "/ask/build"),
    ("ada", "feel", "/feel"),
    ("sofia", "watch", "/watch"),
    ("sofia", "show", "/show"),
    ("omar", "card", "/show/datasets/visits/card"),
    ("omar", "dossier", "/show/datasets/visits/dossier"),
    ("sofia", "start", "/start"),
)
_COLOURS, _TALLEST = 96, 1600


def _kept(data: bytes, name: str) -> None:
    """Writes a picture with few colours, so that it stays small, and cut where it is very long."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    picture = picture.crop((0, 0, picture.width, min(picture.height, _TALLEST)))
    FOLDER.mkdir(parents=True, exist_ok=True)
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(FOLDER / f"{name}.png", optimize=True)


def _answer(page: Any) -> str:
    """Asks a question, and gives the address of its answer."""
    page.goto("/ask")
    page.fill("textarea", QUESTION)
    page.fill("input[name=epsilon]", "0.5")
    page.click("#release")
    page.wait_for_url("**/ask/receipts/*")
    return str(page.url)


def main() -> None:
    """Takes them all."""
    with _browsing() as (browser, address, tokens):
        with browser.new_context(base_url=address) as context:
            answer = _answer(_entered(context, tokens["ada"]))
        for scheme in ("light", "dark"):
            with browser.new_context(base_url=address, color_scheme=scheme) as context:
                page = context.new_page()
                page.goto("/login", wait_until="networkidle")
                _kept(page.screenshot(full_page=True), f"login-{scheme}")
            for who, name, path in (*PLACES, ("ada", "answer", answer)):
                size = {"width": 1280, "height": 800}
                with browser.new_context(base_url=address, color_scheme=scheme, viewport=size) as context:
                    page = _entered(context, tokens[who])
                    page.goto(path, wait_until="networkidle")
                    _kept(page.screenshot(full_page=True), f"{name}-{scheme}")
        phone = {"width": 390, "height": 844}
        with browser.new_context(base_url=address, viewport=phone, device_scale_factor=1.5) as context:
            page = _entered(context, tokens["ada"])
            page.goto(answer, wait_until="networkidle")
            _kept(page.screenshot(full_page=True), "answer-phone")


if __name__ == "__main__":
    main()
