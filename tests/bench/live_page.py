"""The cost of the page at a large fabric: `python -m tests.bench.live_page [SPEC] [FOLDER]`, by
default the tree of 11,664 hosts. In a real Chromium, screenshots of which go to FOLDER."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from sar_agent.counters import CounterWindow, align, compare
from sar_agent.counters.plugin_file import decode_counters
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.live_page import LivePages, PageSnapshot, Trouble
from sar_agent.live_page.lost_links import LostLinks
from sar_agent.live_page.web_app import WebApp
from sar_agent.quality import measure
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Options, load_engine
from sar_agent.telemetry.http_server import serve_http
from sar_lab.live.process import free_port, wait_until
from tests.bench.counter_window import LARGE, counters_image, timed
from tests.live.helpers.browser import chromium


def large_snapshot(spec: str = LARGE, jobs: int = 200) -> PageSnapshot:
    """A fabric under random jobs, with counters as predicted but for one link."""
    fabric = load_fabric(spec)
    rng = np.random.default_rng(1)
    used = rng.permutation(fabric.terminals)[: fabric.terminals * 9 // 10]
    cuts = np.sort(rng.choice(np.arange(2, len(used)), min(jobs, len(used) // 4) - 1, False))
    mix = JobMix.of(
        [
            make_job(str(41200 + j), part.tolist())
            for j, part in enumerate(np.split(used, cuts))
            if len(part) > 1
        ]
    )
    routes = load_engine("minhop").route(fabric, mix, Options())
    traffic = traffic_of(fabric, mix, routes)
    share = traffic.load / traffic.load.max() * 0.6 * rng.uniform(0.7, 1, fabric.channels)
    share[fabric.channels // 3] = 0.93
    window: CounterWindow = align(fabric, decode_counters(counters_image(fabric, share)))
    found = compare(fabric, window, traffic.load, traffic)
    measures, now = measure(fabric, mix, routes, traffic=traffic), time.time()
    return PageSnapshot(
        number=1,
        at=now,
        version="0",
        mode="install",
        engine="sar-plus",
        result="nothing",
        sentence="the same jobs on the same fabric",
        troubles=(
            Trouble('1 link is down: "S2-1"[5] -> "S3-7"[2]', now - 420),
            Trouble("squeue does not answer; going on with what was read 64 s ago", now - 64),
        ),
        in_force={"engine": "sar", "ours": True, "generation": 412, "amendments": 0,
                  "since": now - 8000, "held": False, "routing": "sar-plus"},
        fabric=fabric,
        mix=mix,
        routes=routes,
        load=traffic.load,
        measures={name: getattr(measures, name) for name in
                  ("load_max", "lower_bound_load_max", "dark_fiber_ratio", "throughput_min",
                   "switches", "terminals", "channels")},
        window=window,
        comparison=found,
        counted_at=now - 41,
        decisions=tuple(
            {"at": now - 900 * i - 60, "who": "agent", "reason": "jobs_changed",
             "why": "1 multi-switch job started, 2 ended", "result": "installed", "message": "",
             "generation": 412 - i, "before": {"load_max": 3.1}, "predicted": {"load_max": 2.4},
             "entries_changed": 4120, "how": "direct"}
            for i in range(3)
        ),
    )  # fmt: skip


def main(spec: str = LARGE, folder: str = "") -> None:
    """Prints all numbers."""
    page = large_snapshot(spec)
    fabric, mix, routes = page.fabric, page.mix, page.routes
    assert fabric is not None and mix is not None and routes is not None
    print(f"{fabric.terminals} hosts, {fabric.channels} channels")
    pages = LivePages("bench")
    timed("pass: show", lambda: pages.show(page))
    other = fabric.with_links_down([5])

    def lose() -> None:
        lost = LostLinks()
        lost.see(fabric)
        lost.see(other)

    timed("pass, changed fabric only: which links are lost", lose)
    timed("server, all jobs' links, once per change", lambda: traffic_of(fabric, mix, routes))
    parts = {"state": "", "fabric": "", "loads": "", "job": mix.jobs[0].id, "link": "7"}
    for path, value in parts.items():
        answer = pages.answer(f"/api/{path}.json", value)
        assert answer is not None

        def again(path: str = path, value: str = value) -> None:
            pages._kept.clear()
            pages.answer(f"/api/{path}.json", value)

        timed(f"server, {path}.json ({len(answer.body)} bytes, {len(answer.packed)} packed)", again)
    port = free_port()
    serve_http("127.0.0.1", port, {}, WebApp(pages, "loopback"))
    with tempfile.TemporaryDirectory() as profiles:
        for width, dark in ((1280, False), (1280, True), (400, False), (400, True)):
            name = f"{width}-{'dark' if dark else 'light'}"
            with chromium(Path(profiles) / name, width, dark=dark) as browser:
                began = time.perf_counter()
                browser.get(f"http://127.0.0.1:{port}/")
                assert wait_until(
                    lambda b=browser: b.execute_script(
                        "return document.body && document.body.dataset.snapshot === '1'"
                    ),
                    30,
                    0.02,
                )
                seconds = time.perf_counter() - began
                drawn = browser.execute_script(
                    "const all = [];"
                    "for (let i = 0; i < 5; i++) { Heat.draw();"
                    " all.push(+document.getElementById('maps').dataset.drawn); }"
                    "return Math.min(...all)"
                )
                first = browser.execute_script("return +document.body.dataset.first")
                print(
                    f"  Chromium, {name}: all is drawn {first:.0f} ms after the address was given "
                    f"({seconds:.2f} s with the driver); drawing all links takes {drawn:.0f} ms"
                )
                browser.execute_script("document.querySelector('#jobs tbody button').click()")
                if folder:
                    tall = browser.execute_script("return document.documentElement.scrollHeight")
                    browser.execute_cdp_cmd(
                        "Emulation.setDeviceMetricsOverride",
                        {"width": width, "height": min(tall, 4000), "deviceScaleFactor": 1,
                         "mobile": False},
                    )  # fmt: skip
                    time.sleep(0.5)
                    browser.save_screenshot(str(Path(folder) / f"{name}.png"))
                errors = [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]
                assert not errors, errors


if __name__ == "__main__":
    main(*sys.argv[1:])
