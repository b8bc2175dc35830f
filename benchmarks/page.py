"""The page in a real browser: how long it takes, what it weighs, and how soon a quote follows what is typed.

The server is `sfumato serve --demo` in a process of its own, the browser Debian's Chromium without a window.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.harness import Report, seconds

TURNS = 15
FLAGS = ["--no-sandbox", "--headless", "--disable-background-networking", "--disable-gpu"]
CARD = "/show/datasets/visits/card"
PAGES = ("/ask", "/ask/build", "/feel", "/watch", "/show", CARD, "/start")
_LAST = "() => performance.getEntriesByType('resource').filter(e => e.name.includes('quote')).at(-1).duration"
QUESTION = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits WHERE age >= {} GROUP BY ward"
SUMS = "SELECT COUNT(*) AS n, SUM(cost) AS cost, SUM(age) AS age FROM visits WHERE age >= {}"


@contextmanager
def _site() -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a demonstration, and the tokens of its people."""
    command = [sys.executable, "-m", "sfumato", "serve", "--demo", "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    tokens = dict[str, str]()
    try:
        for line in process.stdout:
            words = line.split()
            if words[0] == "token":
                tokens[words[1]] = words[3]
            elif words[1].startswith("http"):
                yield words[1], tokens
                break
    finally:
        process.terminate()
        process.communicate(timeout=60)


@contextmanager
def _browsing() -> Iterator[tuple[Any, str, dict[str, str]]]:
    """A browser, and a site to look at."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    assert found is not None, "apt-get install chromium"
    with _site() as (address, tokens), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser, address, tokens
        browser.close()


def _opened(page: Any, path: str) -> tuple[float, float]:
    """Seconds until an address has been loaded, and the bytes that were sent for it."""
    page.goto(path, wait_until="load")
    timing = page.evaluate(
        "() => { const one = performance.getEntriesByType('navigation')[0];"
        " const all = [one, ...performance.getEntriesByType('resource')];"
        " return [one.loadEventStart / 1000, all.reduce((sum, each) => sum + each.transferSize, 0)]; }"
    )
    return timing[0], timing[1]


def _entered(context: Any, token: str) -> Any:
    page = context.new_page()
    page.goto("/login")
    page.fill("#token", token)
    page.click("main button")
    page.wait_for_url(lambda url: "/login" not in url)
    return page


def loading(report: Report) -> None:
    """How long pages take, and what they weigh."""
    with _browsing() as (browser, address, tokens):
        report.row("browser", "Chromium", browser.version, version=browser.version)
        _first(report, browser, address)
        _others(report, browser, address, tokens)


def _first(report: Report, browser: Any, address: str) -> None:
    report.heading("Pages in headless Chromium", "cold", "warm", "bytes, cold")
    cold, warm, weights = list[float](), list[float](), list[float]()
    for _ in range(TURNS):
        with browser.new_context(base_url=address) as context:
            page = context.new_page()
            taken, weight = _opened(page, "/login")
            cold.append(taken)
            weights.append(weight)
            warm.append(_opened(page, "/login")[0])
    _row(report, "/login", cold, warm, max(weights))
    report.figure("first page, cold", statistics.median(cold), "<", 1, unit=" s")
    report.figure("first page, warm", statistics.median(warm), "<", 0.3, unit=" s")
    report.figure("weight of the first page", max(weights) / 1e3, "<=", 200, unit=" kB")


def _others(report: Report, browser: Any, address: str, tokens: dict[str, str]) -> None:
    for path in PAGES:
        first, again, heavy = list[float](), list[float](), 0.0
        for _ in range(3):
            with browser.new_context(base_url=address) as context:
                page = _entered(context, tokens["sofia"])
                page.goto("about:blank")
                taken, weight = _opened(page, path)
                first.append(taken)
                heavy = max(heavy, weight)
                again.extend(_opened(page, path)[0] for _ in range(3))
        _row(report, path, first, again, heavy)


def _row(report: Report, path: str, cold: list[float], warm: list[float], weight: float) -> None:
    middle = statistics.median(cold), statistics.median(warm)
    cells = (*map(seconds, middle), f"{weight:,.0f}")
    report.row(path, "page", *cells, cold=middle[0], warm=middle[1], bytes=weight)


def quoting(report: Report) -> None:
    """How soon a quote follows what is typed: for a price, and for an error that is wanted."""
    report.heading("A quote while one types, of a question that was not asked before", "median", "p95")
    with _browsing() as (browser, address, tokens), browser.new_context(base_url=address) as context:
        page = _entered(context, tokens["ada"])
        page.goto("/ask")
        _quotes(report, page, "live quote", "live quote while typing", QUESTION)
        _typed(page, "#error", "200000")
        _quotes(report, page, "for a wanted error", "live quote for a wanted error", SUMS)


def _quotes(report: Report, page: Any, name: str, figure: str, question: str) -> None:
    taken = [_typed(page, "textarea", question.format(20 + turn)) for turn in range(TURNS * 2)]
    ordered = sorted(taken)
    middle, late = statistics.median(ordered), ordered[int(0.95 * len(ordered))]
    report.row(name, "page", seconds(middle), seconds(late), median=middle, p95=late)
    report.figure(figure, middle * 1e3, "<=", 150, unit=" ms", p95=late * 1e3)


def _typed(page: Any, where: str, text: str) -> float:
    """Seconds until the quote for what is typed is there."""
    with page.expect_response(lambda answer: answer.request.method == "POST") as waiting:
        page.fill(where, text)
    waiting.value.finished()
    time.sleep(0.05)  # until the browser has noted how long it took
    return float(page.evaluate(_LAST)) / 1000


def cards(report: Report) -> None:
    """How long a privacy card takes: right after a release, for which it is computed, and again."""
    import httpx

    report.heading("A privacy card", "after a release", "again")
    first, again = list[float](), list[float]()
    with _browsing() as (browser, address, tokens), browser.new_context(base_url=address) as context:
        page = _entered(context, tokens["sofia"])
        headers = {"Authorization": f"Bearer {tokens['ada']}"}
        for turn in range(TURNS):
            asked = {"sql": QUESTION.format(20 + turn), "epsilon": "0.01"}
            httpx.post(f"{address}/api/release", json=asked, headers=headers, timeout=60).raise_for_status()
            first.append(_opened(page, CARD)[0])
            again.extend(_opened(page, CARD)[0] for _ in range(3))
    middle = statistics.median(first), statistics.median(again)
    report.row("privacy card", "page", *map(seconds, middle), first=middle[0], again=middle[1])
    report.figure("privacy card, opened again", middle[1], "<", 0.3, unit=" s", first=middle[0])


PARTS = (loading, quoting, cards)
