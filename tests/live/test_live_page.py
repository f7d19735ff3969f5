"""The page in a real Chromium, against the live loop: OpenSM, ibsim, Slurm and the agent."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By

from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live.browser import chromium, runs
from tests.worlds.live.loop import LoopSite, loop_site

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not runs(), reason="no Chromium: run make browser"),
]


def words(browser: Chrome, name: str) -> str:
    """The text of an element as a person sees it."""
    return browser.find_element(By.ID, name).text


def listed(browser: Chrome) -> list[str]:
    """The jobs in the table, read at one moment."""
    found: list[str] = browser.execute_script(
        "return [...document.querySelectorAll('#jobs tbody button')].map((b) => b.textContent)"
    )
    return found


def colours(browser: Chrome) -> int:
    """How many colours the first level's map has."""
    found: int = browser.execute_script(
        "const canvas = document.querySelector('#maps canvas');"
        "if (!canvas) return 0;"
        "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
        "const seen = new Set();"
        "for (let i = 0; i < data.length; i += 4) seen.add(data.slice(i, i + 3).join());"
        "return seen.size"
    )
    return found


def console(browser: Chrome) -> list[str]:
    """What the browser complains about, such as a broken Content-Security-Policy; a server that is
    away is no complaint about the page."""
    return [
        entry["message"]
        for entry in browser.get_log("browser")
        if entry["level"] == "SEVERE" and "net::ERR" not in entry["message"]
    ]


def test_a_job_starts_a_cable_dies_and_the_agent_ends(
    tmp_path: Path, cluster: SlurmCluster
) -> None:
    with loop_site(tmp_path, cluster) as site:
        daemon = site.start()
        site.wait_installed()
        with chromium(tmp_path / "profile") as browser:
            browser.get(f"http://127.0.0.1:{site.port}/")
            assert wait_until(lambda: "Generation" in words(browser, "force"), 60), site.log()
            assert words(browser, "jobs-more") == "No job runs on several leaf switches."

            first = str(cluster.salloc("n[001,005,009]"))
            other = str(cluster.salloc("n[002,006,010,014]"))
            assert wait_until(lambda: set(listed(browser)) == {first, other}, 60), site.log()
            assert wait_until(
                lambda: "installed as generation" in words(browser, "decisions"), 60
            ), words(browser, "decisions")
            assert wait_until(lambda: words(browser, "wrong-head") == "Nothing is wrong", 60)

            pick_by_keyboard(browser, first)
            assert colours(browser) > 1 and words(browser, "levels").count("\n") == 2
            cable(browser, site)

            cluster.scancel(first)
            cluster.scancel(other)
            assert wait_until(lambda: listed(browser) == [], 60)
            assert console(browser) == []
            daemon.terminate()
            assert wait_until(lambda: "the agent does not answer" in words(browser, "age"), 60)


def pick_by_keyboard(browser: Chrome, job: str) -> None:
    """Job and link are chosen without a mouse."""
    button = browser.find_element(By.CSS_SELECTOR, f"#jobs button[data-job='{job}']")
    button.send_keys(Keys.ENTER)
    assert wait_until(lambda: f"of job {job} on n001 n005 n009" in words(browser, "picked"), 30)
    assert browser.switch_to.active_element.get_attribute("data-job") == job, "focus stays"
    lit = browser.execute_script("return document.querySelectorAll('#jobs tr.on').length")
    assert lit == 1
    canvas = browser.find_element(By.CSS_SELECTOR, "#maps canvas")
    canvas.send_keys(Keys.HOME)
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert wait_until(lambda: words(browser, "readout").startswith('"S1-1"[5] ->'), 30)
    assert "predicted" in words(browser, "readout")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    assert wait_until(lambda: words(browser, "picked") == "", 30)


def cable(browser: Chrome, site: LoopSite) -> None:
    """A cable dies and comes back."""
    site.fabric.unlink("S1-2", 6)

    def said() -> bool:
        lines = [line for line in words(browser, "troubles").split("\n") if "is down" in line]
        ends = ('"S1-2"[6]', '"S2-1"[3]')
        return len(lines) == 1 and "1 link is down" in lines[0] and all(e in lines[0] for e in ends)

    assert wait_until(said, 60), (words(browser, "troubles"), site.log()[-2000:])
    why = ("fabric has changed", "has repaired")  # by the agent, or by the plugin itself
    assert wait_until(lambda: any(w in words(browser, "decisions") for w in why), 60)
    site.fabric.relink("S1-2", 6)
    assert wait_until(lambda: "is down" not in words(browser, "troubles"), 60)


def test_it_fits_every_screen(tmp_path: Path, cluster: SlurmCluster) -> None:
    """At 1280 and 400 pixels, light and dark: nothing is wider than the screen, text has contrast,
    and the keyboard reaches everything."""
    job = str(cluster.salloc("n[003,007,011]"))
    wide = str(cluster.salloc("n[002,004,006,008,010,012]"))  # on all links of three leaves
    ends = str(cluster.salloc("n[001,005,009]", "--time=10"))
    where = ("-w", "n[001,005,009]", "-N3", "--time=5", "--parsable", "--wrap", "true")
    later = cluster.run("sbatch", *where).strip()
    with loop_site(tmp_path, cluster) as site:
        site.start()
        site.wait_installed()
        for width, dark in ((1280, False), (1280, True), (400, False), (400, True)):
            with chromium(tmp_path / f"{width}{dark}", width, dark=dark) as browser:
                browser.get(f"http://127.0.0.1:{site.port}/")
                assert wait_until(lambda b=browser: job in listed(b), 60), site.log()
                assert wait_until(lambda b=browser: colours(b) > 2, 60)
                assert wait_until(lambda b=browser: later in words(b, "pending-jobs"), 120)
                pending = words(browser, "pending-jobs")
                shared = re.search(r": load [0-9.]+, with ([0-9, ]+)", pending)
                assert shared and set(shared[1].split(", ")) <= {job, wide}
                assert browser.execute_script("return document.body.scrollWidth") <= width
                if folder := os.environ.get("SAR_PICTURES"):  # to look at them
                    browser.execute_script(
                        "arguments[0].scrollIntoView()", browser.find_element(By.ID, "jobs-head")
                    )
                    browser.save_screenshot(
                        f"{folder}/page-{width}-{'dark' if dark else 'light'}.png"
                    )
                contrasts = browser.execute_script(CONTRASTS)
                assert len(contrasts) > 20
                low = {what: ratio for what, ratio in contrasts.items() if ratio < 4.5}
                assert not low
                reached = set()
                for _ in range(40):
                    ActionChains(browser).send_keys(Keys.TAB).perform()
                    reached.add(browser.execute_script("return document.activeElement.localName"))
                assert {"a", "input", "button", "div", "canvas"} <= reached
                assert console(browser) == []
    cluster.scancel(job, wide, ends, later)


CONTRASTS = """
const luminance = (c) => {
  const part = c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92
    : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
};
const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
const behind = (node) => {
  for (let n = node; n; n = n.parentElement) {
    const c = numbers(getComputedStyle(n).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
const found = {};
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !node.checkVisibility() || node.matches('script, noscript, .skip')) continue;
  const a = luminance(numbers(getComputedStyle(node).color).slice(0, 3));
  const b = luminance(behind(node).slice(0, 3));
  found[`${node.tagName} ${node.id} ${node.textContent.slice(0, 20)}`] =
    (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}
return found;
"""
