"""The time to read a `Fabric` from OpenSM's plugin and from ibnetdiscover, alternately."""

from __future__ import annotations

from collections.abc import Iterator

from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import net_ids
from sar_agent.fabric.opensm_file import read_opensm_fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.opensm.plugin_client import PluginClient
from sar_lab.live.generated import ibsim_for
from tests.bench.bench_fabrics import LARGEST, MIDDLE, size_of
from tests.bench.opensm_on_ibsim import opensm
from tests.bench.table import Table, goal
from tests.bench.timing import Times

ROUNDS = 5
GOAL = 0.3


def tables(full: bool) -> Iterator[Table]:
    """A table for each fabric."""
    for spec in (MIDDLE, LARGEST) if full else (MIDDLE,):
        yield _sources(spec)


def _sources(spec: str) -> Table:
    made = load_fabric(spec)
    answer, reading, printing, parsing = Times(), Times(), Times(), Times()
    with ibsim_for(made) as ibsim, opensm(ibsim, made, "sar,minhop", 900) as manager:
        bridge, mapper, host = PluginClient(manager.socket_path), HostMapper(), net_ids(made)[1][1]
        for _ in range(ROUNDS):
            with answer.one():
                reply = bridge.fabric()
            with reading.one():
                ours = read_opensm_fabric(reply.path, mapper).fabric
            with printing.one():
                text = ibsim.run("ibnetdiscover", host=host, timeout=600).stdout
            with parsing.one():
                theirs = read_ibnetdiscover(text, mapper)
        size = reply.path.stat().st_size
    same = "the same" if ours.digest == theirs.digest == made.digest else "ANOTHER"
    table = Table(
        f"Sources of the fabric, {size_of(made)}",
        ("source", "the answer, s", "to a `Fabric`, s", "bytes", "runs"),
        f"`{spec}` under ibsim: the plugin's answer to `fabric`, or ibnetdiscover's run; then "
        f"reading it. Both give {same} digest. On hardware ibnetdiscover waits for real switches.",
    )
    table.add("OpenSM's plugin", answer.show(), reading.show(), f"{size:,}", str(ROUNDS))
    table.add("ibnetdiscover", printing.show(), parsing.show(), f"{len(text):,}", str(ROUNDS))
    both = max(a + b for a, b in zip(answer, reading, strict=True))
    table.goals.append(goal("slowest by the plugin", both, GOAL, "s"))
    return table
