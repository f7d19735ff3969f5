"""The cost of one window of counters in the agent and in the plugin: `python -m
tests.bench.counter_window [HOSTS-SPEC]`, by default the tree of 11,664 hosts."""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from sar_agent.counters import align, compare
from sar_agent.counters.plugin_file import decode_counters
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Options, load_engine

ROOT = Path(__file__).parents[2]
LARGE = "xgft:3;18,18,36;1,18,18"
_T = TypeVar("_T")


def counters_image(fabric: Fabric, share: F64, milliseconds: int = 180_000) -> bytes:
    """The plugin's file (opensm_bridge/COUNTERS.md) in which each channel carried `share` of its
    speed, and each HCA port a tenth of its own."""
    guid = np.concatenate([fabric.switch_guid[fabric.channel_source], fabric.terminal_node_guid])
    port = np.concatenate([fabric.channel_port, fabric.terminal_port_number])
    seconds = milliseconds / 1000
    sent = np.concatenate([share * fabric.channel_rate, 0.1 * fabric.terminal_rate])
    words = np.rint(sent * 1e9 / 8 * seconds / 4).astype("<u8")
    received = np.concatenate(
        [words[: fabric.channels][fabric.channel_reverse], words[fabric.channels :]]
    )
    order = np.lexsort((port, guid))
    wide = np.zeros((6, len(order)), "<u8")
    wide[0], wide[1], wide[2], wide[5] = guid, words, received, 7
    narrow = np.zeros((4, len(order)), "<u4")
    narrow[0], narrow[1:3], narrow[3] = 3000, milliseconds, 2
    small = np.zeros((2, len(order)), np.uint8)
    small[0], small[1] = port, 3
    payload = b"".join(array[:, order].tobytes() for array in (wide, narrow, small))
    head = struct.pack(
        "<8sIIQIIIIQQI",
        *(b"SARCOUNT", 1, 64, 64 + len(payload), len(order), 2, seconds_of(seconds), 0),
        *(int(time.time() * 1000), 0, zlib.crc32(payload)),
    )
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def seconds_of(seconds: float) -> int:
    """Whole seconds, as PerfMgr's sweep time."""
    return max(1, round(seconds))


def timed(what: str, work: Callable[[], _T]) -> _T:
    """Prints the processor time of the best of three."""
    best, found = np.inf, work()
    for _ in range(3):
        begin = time.process_time()
        found = work()
        best = min(best, time.process_time() - begin)
    print(f"  {what}: {best * 1000:.1f} ms")
    return found


def main(spec: str = LARGE) -> None:
    """Prints all numbers."""
    fabric = load_fabric(spec)
    rng = np.random.default_rng(1)
    hosts = rng.permutation(fabric.terminals)
    mix = JobMix.of(
        [make_job(str(j), part.tolist()) for j, part in enumerate(np.array_split(hosts, 200))]
    )
    routes = load_engine("minhop").route(fabric, mix, Options())
    traffic = traffic_of(fabric, mix, routes)
    image = counters_image(fabric, traffic.load / traffic.load.max() * 0.5)
    print(f"{fabric.terminals} hosts, {fabric.channels} channels, {len(image)} bytes of counters")
    readings = timed("agent, decode", lambda: decode_counters(image))
    window = timed("agent, align", lambda: align(fabric, readings))
    timed("agent, traffic of the same jobs and routes",
          lambda: traffic_of(fabric, mix, routes, traffic))  # fmt: skip
    found = timed("agent, compare", lambda: compare(fabric, window, traffic.load, traffic))
    print(f"  rank {found.rank}, {len(found.jobs)} jobs")
    tracemalloc.start()
    compare(fabric, align(fabric, decode_counters(image)), traffic.load, traffic)
    print(f"  agent, largest memory meanwhile: {tracemalloc.get_traced_memory()[1] / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as folder:
        program, bridge = Path(folder) / "bench", ROOT / "opensm_bridge"
        sources = ["tests/test_port_counters.c", "port_counters.c", "crc32.c", "write_file.c"]
        command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-I.", "-I../c_common"]
        subprocess.run([*command, "-o", str(program), *sources], cwd=bridge, check=True)
        run = [program, f"{folder}/counters.sar", str(fabric.terminals)]
        print(f"  plugin, {subprocess.check_output(run, text=True).strip()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
