"""The folder that a site may send: the trial without names, GUIDs and commands, and a list of what
is in it. Nothing is sent from here."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sar_agent.commands.anonymize import Pseudonyms, anonymous_fabric, anonymous_jobs
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.formats.export import export_routes
from sar_agent.slurm.squeue_text import squeue_pipe
from sar_agent.util.text_files import write_text
from sar_lab.emulate.benchmark import Benchmark
from sar_lab.trial.site_look import SiteLook

_KEPT = ("rehearsal", "seed", "rounds", "order", "installs", "seconds", "tables", "samples")
_PUBLIC = re.compile(r"(osu_\w+|IMB-\w+|\w+_perf|HPCC|hpl|xhpl)(?:-\d[\d.]*)?$")
"""Names of programs that say nothing of a site."""


def write_to_send(
    look: SiteLook, found: dict[str, Any], benchmarks: Sequence[Benchmark], folder: Path
) -> list[str]:
    """Writes the folder; returns a line for each file. A later trial has other pseudonyms."""
    folder.mkdir(parents=True, exist_ok=True)
    names = Pseudonyms(secrets.token_bytes(32))
    fabric = anonymous_fabric(look.fabric, names)
    write_ibsim_net(fabric, folder / "fabric.net")
    write_text(folder / "jobs.txt", squeue_pipe(anonymous_jobs(look.records, look.fabric, names)))
    own = replace(look.way_back, fabric_digest=fabric.digest)
    export_routes(folder, fabric, own, ["lfts"])
    said = {b.name: _public(b, n) for n, b in enumerate(benchmarks, 1)}
    kept: dict[str, Any] = {key: found[key] for key in _KEPT}
    for each in [*kept["tables"], *kept["samples"]]:
        each["benchmark"] = said[each["benchmark"]]
    kept["facts"] = {k: v for k, v in look.facts if not k.startswith("without")}
    write_text(folder / "trial.json", json.dumps(kept, indent=1) + "\n")
    what = {
        "fabric.net": "cables, ports and link rates, under other names and GUIDs",
        "jobs.txt": "which hosts the jobs had, without users, names and partitions",
        "lfts.dump": "the site's own tables, on that fabric",
        "trial.json": "what was timed and counted; benchmarks by public names or numbers; versions",
    }
    return [f"{name} ({(folder / name).stat().st_size:,} bytes): {what[name]}" for name in what]


def _public(benchmark: Benchmark, number: int) -> str:
    for word in benchmark.command:
        if found := _PUBLIC.match(word.rpartition("/")[2]):
            return f"{number} {found[1]}"
    return f"{number}"
