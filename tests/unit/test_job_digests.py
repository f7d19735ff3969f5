"""The names of job mixes: of the hosts' GUIDs and weights, whatever the ids and indices."""

from __future__ import annotations

import hashlib

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import live_part, make_job, multi_switch_mix
from sar_agent.jobs.synthetic import synthetic_mix


def by_definition(fabric: Fabric, mix: JobMix) -> bytes:
    """Each job's GUIDs in order, and its weight unless that is 1; all different ones in order."""
    parts = set()
    for job in mix.jobs:
        weight = b"" if job.weight == 1.0 else np.float64(job.weight).tobytes()
        parts.add(np.sort(fabric.terminal_guid[job.terminals]).tobytes() + weight)
    state = hashlib.blake2b(digest_size=16)
    for part in sorted(parts):
        state.update(len(part).to_bytes(8, "little") + part)
    return state.digest()


def test_the_digest_is_that_of_the_jobs_guids_and_weights():
    fabric = load_fabric("xgft:2;4,6;1,4")
    sharing = [
        make_job("a", (0, 5, 9)),
        make_job("again", (9, 5, 0)),
        make_job("heavier", (0, 5, 9), weight=2.0),
        make_job("b", (3, 20)),
    ]
    for mix in (JobMix(()), synthetic_mix(fabric, 1), multi_switch_mix(fabric, sharing)):
        assert mix.digest(fabric) == by_definition(fabric, mix)
        assert mix.digest(fabric) == JobMix(mix.jobs[::-1]).digest(fabric)


def test_a_job_without_dead_ports_is_kept_as_it_is():
    fabric = load_fabric("xgft:2;4,6;1,4")
    job = make_job("a", (0, 5, 9))
    assert live_part(fabric, job) is job
    dead = fabric.with_switches_down([int(fabric.terminal_switch[9])])
    left = live_part(dead, job)
    assert left is not None and left.terminals.tolist() == [0, 5]
    assert left.key != job.key
