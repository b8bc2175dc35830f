"""`site`: a server of the demonstration for all tests of the page; `visit`: a browser, logged in."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import httpx
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import sfumato as sf
from chromium import FLAGS, PATIENCE

expect.set_options(timeout=PATIENCE)


class Site:
    """A server that runs, and the tokens of who may log in."""

    def __init__(self, lines: list[str]) -> None:
        self.address = lines[-1].removeprefix("serving ")
        words = [line.split() for line in lines if line.startswith("token ")]
        self.tokens = {name: token for _, name, _, token in words}

    def api(self, name: str) -> httpx.Client:
        """What programs ask, in a name."""
        return httpx.Client(
            base_url=self.address, headers={"Authorization": f"Bearer {self.tokens[name]}"}, timeout=60
        )

    @contextmanager
    def entered(self, name: str) -> Iterator[httpx.Client]:
        """The page without a browser, logged in."""
        with httpx.Client(base_url=self.address, timeout=60) as client:
            answer = client.post("/login", data={"token": self.tokens[name]})
            assert answer.status_code == 303
            yield client


@contextmanager
def served(*arguments: str, by: str = "serve") -> Iterator[Site]:
    """A server in a process of its own."""
    command = [sys.executable, "-m", "sfumato", by, "--port", "0", "--no-browser", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith("serving http"):
            break
    try:
        yield Site(lines)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="session")
def serving() -> Callable[..., AbstractContextManager[Site]]:
    """Starts a server of one's own."""
    return served


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with served("--demo") as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for each file: while it runs, no other test could run a loop of its own."""
    found = shutil.which("chromium")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("There is no Chromium: apt-get install chromium.")
        pytest.skip("There is no Chromium: apt-get install chromium.")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=[*FLAGS])
        yield made
        made.close()


class Seen:
    """What a tab said and asked for, held against what it may."""

    def __init__(self, page: Page, address: str) -> None:
        self.wrong: list[str] = []
        page.on("console", lambda said: self._said(said.type, said.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda asked: self._asked(asked.url, address))

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "status of 4" not in text:  # a refusal is not a fault
            self.wrong.append(text)

    def _asked(self, url: str, address: str) -> None:
        if not url.startswith((address + "/", "data:", "blob:")):
            self.wrong.append(f"asked {url}")


@pytest.fixture
def visit(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens an address of the page as somebody, in a browser of their own; no fault may be seen there."""
    open_ones: list[tuple[BrowserContext, Seen]] = []

    def opened(who: str | None, path: str = "/", *, at: Site | None = None, **wishes: object) -> Page:
        where: Site = at or request.getfixturevalue("site")
        context = browser.new_context(base_url=where.address, **wishes)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        open_ones.append((context, Seen(page, where.address)))
        if who is not None:  # the form for it is a test of its own
            sent = {"token": where.tokens[who]}
            assert context.request.post("/login", form=sent, max_redirects=0).status == 303
        page.goto(path)
        return page

    yield opened
    for context, seen in open_ones:
        context.close()
        assert seen.wrong == []


@pytest.fixture(scope="module")
def session() -> Iterator[sf.Session]:
    """A few rows in this process, for what needs no server."""
    table = pa.table(
        {
            "user_id": [1, 2, 3],
            "age": [30, 40, 50],
            "city": ["Lyon", "Nice", "Lyon"],
            "cost": [1.0, 2.0, 3.0],
            "day": [datetime.date(2024, 1, 1)] * 3,
        }
    )
    visits = sf.PrivateTable(
        "visits",
        source=table,
        unit=sf.PrivacyUnit("user_id", max_groups=3, max_rows=3),
        schema={
            "age": sf.Int(0, 100),
            "city": sf.Enum("Lyon", "Nice"),
            "cost": sf.Float(0, 2000),
            "day": sf.Date("2024-01-01", "2024-12-31"),
        },
    )
    with sf.Session(visits, budget=sf.Budget(epsilon=10, delta=1e-6)) as made:
        yield made
