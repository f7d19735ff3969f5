"""Counters by way of a real Prometheus that scrapes the series of two exporters."""

from __future__ import annotations

import http.server
import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from sar_agent.commands.dump_inputs import read_dumps
from sar_agent.counters import CounterWindow, WindowLeftOut, align, compare
from sar_agent.counters.lost_bandwidth import lost_of
from sar_agent.counters.prometheus import PrometheusCounters, Series
from sar_agent.errors import InputError, SarError, Unavailable
from sar_agent.fabric.model import F64
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.routing import Options, load_engine
from sar_agent.services.cable_watch.growth import GrowthReader
from sar_agent.services.cable_watch.watch import CableWatch
from sar_lab.live.process import PATIENCE, free_port, wait_until
from tests.worlds.doc_blocks import run
from tests.worlds.live.scraping import Prometheus

pytestmark = pytest.mark.live

SPEC = "xgft:2;4,4;1,4"
TREE = load_fabric(SPEC)
BEGAN = time.time() - 1e5
GUID = f"{TREE.switch_guid[0]:#018x}"
WAITS = 1e8
"""Ticks a second in which the first channel waits."""
ERRORS = {"symbol": 14, "downed": 1}
"""What is counted now, on a port of a switch and of a host."""


def share() -> F64:
    """Different on every channel, at most 0.6."""
    return np.linspace(0.01, 0.6, TREE.channels)


def exported() -> str:
    """The series of infiniband_exporter and of UFM Telemetry, as both count since `BEGAN`."""
    lines, counted = [], share() * TREE.channel_rate * 1e9 / 8 * (time.time() - BEGAN)
    for c, sent in enumerate(counted):
        guid, port = int(TREE.switch_guid[TREE.channel_source[c]]), TREE.channel_port[c]
        received = counted[TREE.channel_reverse[c]]
        ours = f'{{guid="{guid:#018x}",port="{port}",switch="s"}}'
        ufm = f'{{source="{guid:#x}",node_guid="{guid:x}",port_guid="{guid:x}",port_num="{port}"}}'
        lines += [
            f"infiniband_switch_port_transmit_data_bytes_total{ours} {sent:.0f}",
            f"infiniband_switch_port_receive_data_bytes_total{ours} {received:.0f}",
            f"infiniband_switch_port_transmit_wait_total{ours} "
            f"{WAITS * (c == 0) * (time.time() - BEGAN):.0f}",
            f"PortXmitDataExtended{ufm} {sent // 4:.0f}",
            f"PortRcvDataExtended{ufm} {received // 4:.0f}",
        ]
    lines += [
        f'infiniband_switch_port_symbol_error_total{{guid="{GUID}",port="5"}} {ERRORS["symbol"]}',
        f'node_infiniband_link_downed_total{{host="n003",device="mlx5_0",port="1"}} '
        f"{ERRORS['downed']}",
    ]
    return "".join(f"{line}\n" for line in sorted(lines))


@contextmanager
def exporter() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = exported().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    with exporter() as target, Prometheus([target]) as made:
        yield made


@pytest.mark.parametrize("series", ["infiniband_exporter", "ufm"])
def test_a_window_of_each_exporter(prometheus: Prometheus, series: Series) -> None:
    source = PrometheusCounters(prometheus.url, series, 6.0, 10.0 * PATIENCE)
    windows: list[CounterWindow] = []

    def there() -> bool:
        try:
            windows.append(align(TREE, source.read(time.time())))
        except SarError:  # until the first window is over
            return False
        return windows[-1].known.all() and np.allclose(windows[-1].share, share(), rtol=0.1)

    assert wait_until(there, 40, 0.5)
    assert windows[-1].seconds == pytest.approx(6.0, abs=2)
    comparison = compare(TREE, windows[-1], share() * 3)
    assert comparison.rank is not None
    assert comparison.rank > 0.99
    assert comparison.scale == pytest.approx(1 / 3, rel=0.1)
    assert comparison.hot_links == 0


def test_a_prometheus_without_these_series(prometheus: Prometheus) -> None:
    source = PrometheusCounters(f"{prometheus.url}/", "infiniband_exporter", 1e6, 10.0 * PATIENCE)
    with pytest.raises(WindowLeftOut, match=r"\(infiniband_exporter\) has no counter of a port"):
        source.read(time.time())


def test_no_prometheus() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unavailable, match=r"does not answer .*is the address right\?"):
        PrometheusCounters(url, "ufm", 60.0, 5.0).read(time.time())
    with exporter() as other, pytest.raises(Unavailable, match=r"answered HTTP 501|not an answer"):
        PrometheusCounters(f"http://{other}", "ufm", 60.0, 5.0).read(time.time())


def test_cables_reads_errors_and_what_a_maintenance_added(
    prometheus: Prometheus, tmp_path: Path
) -> None:
    """Now, since an earlier time, and between a file and now; a window of what links carried."""

    def cables(*counters: str) -> str:
        given = "".join(f" --counters {each}" for each in counters)
        return run(f"sar-agent cables --fabric '{SPEC}'{given}", tmp_path)

    node_exporter = "node_infiniband_link_downed_total"
    prometheus.wait_for(node_exporter)
    assert '14 symbol errors at "S1-0"[5]' in cables(prometheus.url)
    assert '1 link downed at "n003 HCA-1"[1]' in cables(prometheus.url)
    second = math.ceil(time.time())
    # A scrape has the time of its start, so one that began later must have seen the old count.
    symbols = "infiniband_switch_port_symbol_error_total"
    prometheus.wait_for(f"timestamp({symbols}) > {second} and {symbols} == 14")
    before = f"{prometheus.url}?time={second}"
    ERRORS.update(symbol=20, downed=1)
    prometheus.wait_for(f"{symbols} == 20")
    later = cables(before, prometheus.url)
    assert '6 symbol errors at "S1-0"[5]' in later and "n003" not in later
    assert "carried" in later
    (tmp_path / "before").write_text(f"Port=5 Lid=0x0006 GUID={GUID}\nsymbol_error_counter=3\n")
    os.utime(tmp_path / "before", (0, 0))
    assert "17 symbol errors" in cables(str(tmp_path / "before"), prometheus.url)
    with pytest.raises(InputError, match=r"is later than .*give the earlier one first"):
        read_dumps(SPEC, None, None, "minhop", [prometheus.url, before])
    with pytest.raises(InputError, match="has no error counters of InfiniBand ports for 2001-"):
        read_dumps(SPEC, None, None, "minhop", [f"{prometheus.url}?time=1000000000"])


def test_the_watch_names_a_cable_in_the_window_in_which_it_began_to_count(
    prometheus: Prometheus,
) -> None:
    """Of three exporters' series, with the bandwidth that a link loses by waiting."""
    mix = JobMix.of([make_job("7", [0, 5, 10, 15])])
    routes = load_engine("dmodk").route(TREE, mix, Options())
    dumps, watch = SiteDumps(TREE, (), mix, routes), CableWatch()
    reader = GrowthReader(prometheus.url, 10.0)

    def look() -> list[str]:
        reader._due = 0.0
        reader.read(TREE, wait=True)
        growth = None if reader.stale else reader.last
        return [e.cable.sentence for e in watch.look(dumps, growth) if e.bad]

    assert wait_until(lambda: (look(), reader.last)[1] is not None, 60, 1.0), reader.problem
    assert not watch.bad, "what was counted before the first window is nobody's fault now"
    ERRORS["symbol"] += 50
    seen = list[str]()
    assert wait_until(lambda: seen.extend(look()) or bool(seen), 60, 1.0), reader.problem
    assert len(seen) == 1 and 'symbol errors at "S1-0"[5]' in seen[0]
    assert wait_until(lambda: (look(), watch.bad == {})[1], 60, 1.0), "the window is over"

    def loses() -> bool:
        look()
        window = reader.last.window if reader.last else None
        return window is not None and np.isclose(lost_of(TREE, window)[0], 6.4, rtol=0.2)

    assert wait_until(loses, 60, 1.0), reader.last
