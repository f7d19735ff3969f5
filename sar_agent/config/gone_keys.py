"""Keys of earlier releases that have no effect any more, and what to do instead.

A file that names one is read all the same: an upgrade must not stop an agent.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

COUNTERS = (
    "the agent reads counters by `watch.counters` only, for bad cables; `sar-agent assess "
    "--counters BEGIN --counters END` compares two dumps, or two times of a Prometheus server, "
    "with the predicted loads"
)
LANES = (
    'more than one lane is used only where max_lanes says so: hop by hop, as lanes = "hop" did, or '
    'with `hosts_use_path_records = true` by path, as lanes = "path" did'
)
ARCHIVE = "the agents copy nothing themselves any more; "
GONE = {
    "agent": {"lanes": LANES},
    "standby": {
        "peer": ARCHIVE + "agent.peer is now a command of ssh that reaches the other machine, and "
        "sar-agent-archive.service sends it an archive (docs/ha.md)",
        "listen": ARCHIVE + "sshd takes the archive; close the port",
        "certificate": ARCHIVE + "a key of ssh takes its place; delete the file on both machines",
        "interval_seconds": ARCHIVE + "sar-agent-archive.service looks each second",
    },
    "counters": dict.fromkeys(
        (
            "source",
            "prometheus_url",
            "prometheus_series",
            "files",
            "window_seconds",
            "hot_load",
            "hot_factor",
        ),
        COUNTERS,
    ),
}
"""By section and key: why the key has no effect, and the way out."""


def gone_keys(path: Path) -> tuple[str, ...]:
    """A sentence for each such key in a file of settings that can be read."""
    return take_gone_keys(tomllib.loads(path.read_text(encoding="utf-8-sig")))


def take_gone_keys(document: dict[str, Any]) -> tuple[str, ...]:
    """Removes such keys from the `document`; returns a sentence for each."""
    said = list[str]()
    for section, keys in GONE.items():
        given = document.get(section)
        if not isinstance(given, dict):
            continue
        for key in [key for key in given if key in keys]:
            del given[key]
            said.append(f"{section}.{key} has no effect, since {keys[key]}; remove the key")
        if not given:
            del document[section]
    return tuple(said)
