"""Records a five-phase update for the lab: `python -m tests.bench.record_five_phase`.

A minute; needs OpenSM, ibsim and munge. Writes `sar_lab/research/recorded/testbed.json`: events
of the agent and of two ranks, blocks of tables confirmed by OpenSM, and tables before and after.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.routes_file import RoutesFile
from sar_lab.live.process import wait_until
from sar_lab.research.recorded_update import RECORD, TESTBED, path_channels
from tests.live import conftest
from tests.worlds.live.phased import phased
from tests.worlds.live.plugin_watch import PluginWatch

RANKS = "n[002,004]"
"""One host of each switch, the job of the figure."""
OTHERS = "n[001,003]"
"""A second job. Algorithm 1 sorts its hosts first, so the routes of the first job move to the other
cable."""
PATIENT = 600.0
"""Seconds within which tables are installed, also on a machine that does much else."""


def recorded(folder: Path) -> dict[str, Any]:
    """One update: a second job starts beside the first, which has subscribed."""
    with phased(folder, TESTBED, deadline_seconds=30, lease_seconds=30) as site:
        site.jobs(RANKS)
        site.start(engine="sar")
        site.wait_installed(seconds=PATIENT)
        ranks = site.subscribe(1, "count=2")
        site.wait_subscribed(2)
        site.wait_all_on(0)
        before, status = site.dumped(), site.bridge.status()
        began = time.time()
        with PluginWatch(site) as watch:
            site.jobs(RANKS, OTHERS)
            site.wait_installed(status.generation_in_force, PATIENT)
            site.wait_all_on(0)
            wait_until(lambda: site.saved_phase() == "idle", 30)
        after = site.dumped()
        site.assert_model_could()
        agent = [json.loads(line) for line in site.trace.read_text().splitlines()]
        lines = [line for line in (*agent, *ranks.lines()) if line["at"] >= began]
        seconds = next(row.phases["seconds"] for row in site.rows() if row.phases)
    # Before the update there are renewals of leases only.
    first = next(line["at"] for line in lines if line["event"] == "run")
    over = next(line["at"] for line in lines if line["event"] == "idle")
    lines = [line for line in lines if first <= line["at"] <= over]
    return {
        "fabric": TESTBED,
        "ranks": 2,
        "seconds": seconds,
        "events": [
            {**line, "at": round(line["at"] - first, 6)}
            for line in sorted(lines, key=lambda line: line["at"])
        ],
        "blocks": [[round(at - first, 6), *each] for at, *each in _changes(watch)],
        "tables": {"before": _tables(before), "after": _tables(after)},
    }


def _changes(watch: PluginWatch) -> list[tuple[float, int, int]]:
    """When, how many blocks of tables were confirmed, which generation was in force: the first
    look, and each that differs from the one before it."""
    seen = [(at, one.lft_blocks_confirmed, one.generation_in_force) for at, one in watch.seen]
    return [now for last, now in zip([None, *seen], seen, strict=False)
            if last is None or now[1:] != last[1:]]  # fmt: skip


def _tables(dumped: RoutesFile) -> list[list[list[int]]]:
    """Offset → switch → destination → egress port."""
    return dumped.forwarding.tolist()  # type: ignore[no-any-return]


def main() -> None:
    """Writes the record and prints the links of both directions."""
    conftest.pytest_configure()
    with tempfile.TemporaryDirectory(prefix="sar-record-") as folder:
        record = recorded(Path(folder))
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=None, separators=(",", ":")) + "\n")
    fabric = load_fabric(TESTBED)
    for when, tables in record["tables"].items():
        for offset, table in enumerate(tables):
            ways = [path_channels(fabric, table, *pair) for pair in ((1, 3), (3, 1))]
            print(when, "offset", offset, ways)
    print(record["seconds"], f"{RECORD.name}: {RECORD.stat().st_size} bytes")


if __name__ == "__main__":
    main()
