"""A fabric whose ports have counted: the plugin's file, and a snapshot of the live page."""

from __future__ import annotations

import struct
import time
import zlib

import numpy as np

from sar_agent.counters import CounterWindow, PortReadings, align, compare
from sar_agent.counters.plugin_file import decode_counters
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.record import JobRecord
from sar_agent.live_page import PageSnapshot, Trouble
from sar_agent.quality import measure
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Options, load_engine


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
        *(b"SARCOUNT", 1, 64, 64 + len(payload), len(order), 2, max(1, round(seconds)), 0),
        *(int(time.time() * 1000), 0, zlib.crc32(payload)),
    )
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def snapshot_of(spec: str, jobs: int) -> PageSnapshot:
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
                  "since": now - 8000, "held": False, "routing": "sar-plus", "dumped": 0.0},
        fabric=fabric,
        mix=mix,
        pending=(
            JobRecord(
                "41300", tuple(fabric.terminal_host[:: fabric.terminals // 4]), "PENDING",
                "ada", start=now + 3600
            ),
        ),
        starts={mix.jobs[0].id: 1_790_000_000.0},
        routes=routes,
        measures=measures,
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


SECONDS = 180.0


def readings(fabric: Fabric, share: F64, hosts: float = 0.0) -> PortReadings:
    """As PerfMgr would report that each channel carried `share` of its speed, both ends counting;
    HCA ports sent the share `hosts`."""
    c, t = fabric.channels, fabric.terminals
    sent = np.rint(share * fabric.channel_rate * 1e9 / 8 * SECONDS).astype(np.uint64)
    ports = c + t
    own = np.rint(hosts * fabric.terminal_rate * 1e9 / 8 * SECONDS).astype(np.uint64)
    zero = np.zeros(ports, np.uint64)
    return PortReadings(
        source="test",
        identity="1",
        guid=np.concatenate([fabric.switch_guid[fabric.channel_source], fabric.terminal_node_guid]),
        lid=np.zeros(ports, np.int32),
        port=np.concatenate([fabric.channel_port, fabric.terminal_port_number]).astype(np.int32),
        sent=np.concatenate([sent, own]),
        received=np.concatenate([sent[fabric.channel_reverse], np.zeros(t, np.uint64)]),
        waits=zero + np.uint64(18),
        seconds=np.full(ports, SECONDS),
        age=np.full(ports, 3.0),
        counted=np.ones(ports, np.bool_),
        waits_counted=np.ones(ports, np.bool_),
        stuck=np.zeros(ports, np.bool_),
        went_back=np.zeros(ports, np.bool_),
    )
