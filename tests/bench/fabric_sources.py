"""The time to read a `Fabric` from OpenSM's plugin and from ibnetdiscover."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import net_ids
from sar_agent.fabric.opensm_file import PortNames, read_opensm_fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.opensm.plugin_client import PluginClient
from tests.bench.bench_fabrics import LARGEST, MIDDLE, size_of
from tests.bench.opensm_on_ibsim import cpu_of, opensm_with_plan
from tests.bench.table import Table, goal
from tests.bench.timing import Times

ROUNDS = 5
GOAL = 0.3
START = 900.0
"""Seconds that OpenSM may take to start."""


def tables(full: bool) -> Iterator[Table]:
    """A table for each fabric."""
    for spec in (MIDDLE, LARGEST) if full else (MIDDLE,):
        yield _sources(spec)


def _sources(spec: str) -> Table:
    made, load = load_fabric(spec), os.getloadavg()[0]
    answer, first, again, printing, parsing = Times(), Times(), Times(), Times(), Times()
    mapper, host = HostMapper(), net_ids(made)[1][1]
    with opensm_with_plan(made, START) as (ibsim, manager):
        bridge = PluginClient(manager.socket_path)
        before = cpu_of(manager.pid)
        for _ in range(ROUNDS):
            with answer.one():
                reply = bridge.fabric()
        opensm = (cpu_of(manager.pid) - before) / ROUNDS
        for _ in range(ROUNDS):
            names = PortNames(mapper)
            with first.one():
                ours = read_opensm_fabric(reply.path, names=names).fabric
            with again.one():
                known = read_opensm_fabric(reply.path, names=names).fabric
        with printing.one():
            text = ibsim.run("ibnetdiscover", host=host, timeout=600).stdout
        with parsing.one():
            theirs = read_ibnetdiscover(text, mapper)
        size = reply.path.stat().st_size
    same = ours.digest == known.digest == theirs.digest == made.digest
    table = Table(
        f"Sources of the fabric, {size_of(made)}",
        ("source", "the answer, s", "to a `Fabric`, s", "of that CPU, s", "bytes"),
        f"`{spec}` under ibsim: the plugin's answer to `fabric`, or ibnetdiscover's run; then "
        f"reading it. All give {'the same' if same else 'ANOTHER'} digest. *Again*: after a change "
        "of cables between switches, names and order of the hosts' ports are known. OpenSM took "
        f"{opensm:.3f} s of CPU time for an answer. Load average {load:.1f} at the start, "
        f"{os.getloadavg()[0]:.1f} at the end. On hardware ibnetdiscover waits for real switches.",
    )
    for what, waited, read, bytes_read in (
        ("OpenSM's plugin, first", answer, first, size),
        ("OpenSM's plugin, again", answer, again, size),
        ("ibnetdiscover", printing, parsing, len(text)),
    ):
        cpu = Times(read.cpu)
        table.add(what, waited.show(), read.show(), cpu.show(), f"{bytes_read:,}")
    table.goals.append(f"digests: {'the same' if same else 'NOT the same'}")
    for what, read in (("first", first), ("again", again)):
        table.goals.append(goal(f"by the plugin, {what}", answer.median + read.median, GOAL, "s"))
        work = opensm + Times(read.cpu).median
        table.goals.append(goal(f"by the plugin, {what}, CPU alone", work, GOAL, "s"))
    return table
