"""A real Chromium, headless, driven by Debian's chromedriver."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

DRIVER = shutil.which("chromedriver")


def runs() -> bool:
    """Whether there is a chromedriver; Ubuntu's package is a script that asks for a snap."""
    return DRIVER is not None and not subprocess.run([DRIVER, "--version"], check=False).returncode


@contextmanager
def chromium(
    folder: Path, width: int = 1280, height: int = 900, *, dark: bool = False
) -> Iterator[webdriver.Chrome]:
    """A browser whose viewport is `width` wide; its profile is in `folder`, and its console's
    errors are in `get_log("browser")`."""
    options = Options()
    for word in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu",
                 "no-proxy-server", "hide-scrollbars", f"user-data-dir={folder}"):  # fmt: skip
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        scheme = "dark" if dark else "light"
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        yield browser
    finally:
        browser.quit()
