"""A day of an agent that observes a real fabric from files alone, window by window.

The fabric is a capture, its tables are those of `minhop`. Jobs and counters are written again for
each window. All counters go on from high totals and hold what a fabric without faults counts:
single errors on any port, hosts that reboot, packets that switches throw away, waits, and somebody
who clears all counters at noon. Only the clock is set: each window ends 180 s after the one before.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.build import build_agent
from sar_agent.agent.history import CABLE, History, Row
from sar_agent.agent.loop import Agent
from sar_agent.agent.observe_site import SETTLED_SECONDS
from sar_agent.config.model import parse_config
from sar_agent.demand.endpoints import mix_of_records
from sar_agent.fabric.model import I64
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.export import export_routes
from sar_agent.jobs.record import JobRecord
from sar_agent.routing import Options, load_engine

WINDOW = 180.0
DAY = 480
"""Windows."""
NAMES = ("port_xmit_data_extended", "port_rcv_data_extended", "port_xmit_wait",
         "symbol_error_counter", "link_down_counter", "port_xmit_discard")  # fmt: skip
SENT, RECEIVED, WAITS, SYMBOLS, DOWNED, DISCARDS = range(len(NAMES))
MOST_HOSTS = 96
SETTINGS = """
[agent]
engine = "minhop"
state_dir = "{0}/state"
run_dir = "{0}/run"
metrics_address = "{1}"
[slurm]
source = "file"
jobs_file = "{0}/jobs"
topology_conf = ""
[fabric]
file = "{0}/fabric"
[opensm]
plugin_socket = "{0}/no-such.sock"
lfts_dump = "{0}/lfts.dump"
[watch]
counters = "{0}/ibdiagnet2.pm"
"""


class ObservedDay:
    """The files of a site in `folder`, and the agent that reads them."""

    def __init__(
        self,
        folder: Path,
        capture: Path,
        patch: pytest.MonkeyPatch,
        address: str = "",
        behind: float = 2 * 86400.0,
    ) -> None:
        self.folder, self.draw = folder, np.random.default_rng(7)
        self.fabric = load_fabric(capture)
        self.now = time.time() - behind
        self.windows = 0
        patch.setattr(time, "time", lambda: self.now)
        (folder / "fabric").write_bytes(capture.read_bytes())
        hosts = [host for host, ports in self.fabric.job_ports.items() if ports][:MOST_HOSTS]
        jobs = {str(n): hosts[n::3] for n in range(3)}
        self.jobs_text = "".join(
            f"{job}|RUNNING|{','.join(of)}|batch|ada|lab|{len(of)}|2026-11-20T08:00:00|\n"
            for job, of in jobs.items()
        )
        records = [JobRecord(job, tuple(of), "RUNNING") for job, of in jobs.items()]
        mix = mix_of_records(self.fabric, records).mix
        routes = load_engine("minhop").route(self.fabric, mix, Options())
        export_routes(folder, self.fabric, routes, ["lfts"])
        fabric = self.fabric
        guids = np.concatenate([fabric.switch_guid[fabric.channel_source],
                                fabric.switch_guid[fabric.terminal_switch]])  # fmt: skip
        ports = np.concatenate([fabric.channel_port, fabric.terminal_switch_port])
        self.ends = list(zip(guids.tolist(), ports.tolist(), strict=True))
        """(GUID, port) of all ports of switches that have a cable, channels first."""
        self.totals: I64 = self.draw.integers(0, 10**12, (len(self.ends), len(NAMES)))
        self.totals[:, SYMBOLS:] = self.draw.integers(0, 5000, (len(self.ends), 3))
        self.agent: Agent = build_agent(parse_config(SETTINGS.format(folder, address)))
        self.step()

    def step(self, symbols: dict[int, int] | None = None) -> None:
        """One window without faults, but for `symbols` errors by index of `ends`; then a pass."""
        draw, fabric, ends = self.draw, self.fabric, len(self.ends)
        if self.windows == DAY // 2:
            self.totals[:] = 0
        # Words of 4 bytes; both ends of a cable count the same.
        words = np.concatenate([fabric.channel_rate, fabric.terminal_rate]) * 1e9 / 32 * WINDOW
        sent = (draw.uniform(0, 0.6, ends) * words).astype(np.int64)
        received = (draw.uniform(0, 0.6, ends) * words).astype(np.int64)
        received[: fabric.channels] = sent[fabric.channel_reverse]
        self.totals[:, SENT] += sent
        self.totals[:, RECEIVED] += received
        self.totals[:, WAITS] += draw.integers(0, int(1e8 * WINDOW), ends)
        self.totals[draw.integers(0, ends, 4), SYMBOLS] += draw.integers(1, 4, 4)
        self.totals[draw.integers(0, ends, 4), DISCARDS] += 5000
        if self.windows % 24 == 0:
            self.totals[draw.integers(fabric.channels, ends), DOWNED] += 2
        for end, count in (symbols or {}).items():
            self.totals[end, SYMBOLS] += count
        self.now += WINDOW
        self.windows += 1
        self._write("ibdiagnet2.pm", self._counters())
        self._write("jobs", self.jobs_text)
        at = self.now - 2 * SETTLED_SECONDS  # a file that may be written still is not read
        os.utime(self.folder / "fabric", (at, at))
        self.agent.observers["cables"].reader._due = 0.0  # its clock is the real one
        assert self.agent.pass_once().ok

    def _counters(self) -> str:
        lines = list[str]()
        for (guid, port), counts in zip(self.ends, self.totals.tolist(), strict=True):
            lines.append(f"Port={port} Lid=0x0000 GUID=0x{guid:016x} Device=1 Port Name=x/P{port}")
            lines += [f"{name}={count}" for name, count in zip(NAMES, counts, strict=True)]
        return "\n".join(lines) + "\n"

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        os.utime(self.folder / name, (self.now, self.now))

    def busiest(self) -> int:
        """The channel with the largest load."""
        measures = self.agent.current.measures
        assert measures is not None
        return int(np.argmax(measures.traffic.load))

    def over(self, channel: int) -> set[str]:
        """The jobs over both directions of its cable."""
        dumps = self.agent.observers["cables"].watch._last
        ways = channel, int(self.fabric.channel_reverse[channel])
        return {job.job for way in ways for job in dumps.jobs_over(way)}

    def events(self) -> list[Row]:
        """Of cables, newest first."""
        return History(self.folder / "state").last(1000, CABLE)

    def value(self, name: str, **labels: str) -> float | None:
        return self.agent.metrics.registry.get_sample_value(f"sar_agent_{name}", labels)
