"""How Chromium is started for tests, and what axe finds on a page of it."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

__all__ = ["FLAGS", "PATIENCE", "violations"]

PATIENCE = 60_000
"""Milliseconds that an event may take on a busy machine; only what never comes takes as long."""
_ABSENT = (
    # What Playwright leaves out; the last list of a command line is the one that holds.
    *(
        "AvoidUnnecessaryBeforeUnloadCheckSync",
        "DestroyProfileOnBrowserClose",
        "HttpsUpgrades",
        "MediaRouter",
    ),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying"),
    *("AimEnabled", "PreconnectToSearch"),
    # Pages below the address bar, drawn anew for each window, though nobody sees it: two fifths of all time.
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup"),
)
FLAGS = (
    *("--no-sandbox", "--headless", "--disable-background-networking", "--disable-gpu"),
    f"--disable-features={','.join(_ABSENT)}",
)


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds: all rules in light, and those about colours in dark, which changes nothing else."""
    page.emulate_media(color_scheme="light")
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    page.emulate_media(color_scheme="dark")
    rules = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
    found += page.evaluate("rules => axe.run({runOnly: rules})", rules)["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]
