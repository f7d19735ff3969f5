"""Connected random fabrics with job mixes, small enough for brute force."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from sar_agent.fabric import Fabric, Kind
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """2-7 switches in one piece, parallel and broken cables, 2-12 terminals of every kind."""
    size = draw(st.integers(2, 7))
    builder = FabricBuilder("random")
    for index in range(size):
        builder.add_switch(draw(st.sampled_from([100, 900])) + index, f"s{index}", 40)
    used = [0] * size

    def port(switch: int) -> int:
        used[switch] += 1
        return used[switch]

    pairs = [(draw(st.integers(0, later - 1)), later) for later in range(1, size)]
    spare = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    extra = [(a, b) for a, b in draw(st.lists(spare, max_size=10)) if a != b]
    for place, (a, b) in enumerate(pairs + extra):
        up = place < len(pairs) or draw(st.booleans())  # the first ones keep it in one piece
        builder.add_link(a, port(a), b, port(b), up=up)
    kinds = st.sampled_from([Kind.COMPUTE] * 4 + [Kind.STORAGE, Kind.OTHER, Kind.IN_SWITCH])
    hosts = draw(st.integers(2, 12))
    guids = draw(st.permutations(range(5000, 5000 + hosts)))
    for index in range(hosts):
        switch = draw(st.integers(0, size - 1))
        kind = Kind.COMPUTE if index < 2 else draw(kinds)
        builder.add_terminal(
            guids[index], f"h{index} HCA-1", f"h{index // draw(st.integers(1, 2))}", switch,
            port(switch), kind=kind, up=index < 2 or draw(st.integers(0, 9)) > 0,
        )  # fmt: skip
    return builder.build()


@st.composite
def networks(draw: st.DrawFn) -> tuple[Fabric, JobMix]:
    """A fabric and jobs that may overlap (shared nodes), each of at least two live host ports."""
    fabric = draw(fabrics())
    live = [t for t in range(fabric.terminals) if fabric.is_host_port[t]]
    member = st.lists(st.sampled_from(live), min_size=2, max_size=6, unique=True)
    found = draw(st.lists(member, max_size=4)) if len(live) > 1 else []
    return fabric, JobMix.of(make_job(str(i), terminals) for i, terminals in enumerate(found))


def cabled_by_hand(whole: Fabric, seed: int) -> Fabric:
    """The same cables between switches of another order, with other names, GUIDs and ports."""
    random = np.random.default_rng(seed)
    place = random.permutation(whole.switches)
    ports = [random.permutation(np.arange(1, 65)).tolist() for _ in place]
    builder = FabricBuilder("by hand")
    for n in range(whole.switches):
        builder.add_switch(10_000 + int(random.integers(1000)) * 1000 + n, f"x{n}", 64)
    for c in random.permutation(whole.channels):
        if c < whole.channel_reverse[c]:
            a, b = (int(place[e[c]]) for e in (whole.channel_source, whole.channel_target))
            builder.add_link(a, ports[a].pop(), b, ports[b].pop())
    for t in random.permutation(whole.terminals).tolist():
        at = int(place[whole.terminal_switch[t]])
        builder.add_terminal(10**7 + t, f"h{t} HCA-1", f"h{t}", at, ports[at].pop())
    return builder.build()


ENGINES = ("minhop", "dfsssp", "sar", "sar-plus")
