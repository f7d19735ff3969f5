"""The smallest change among routes that are as good, against walks in plain Python."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.demand.rates import route_demand
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality import measure
from sar_agent.routing import Options, PreviousRoutes, Routes, load_engine
from sar_agent.routing.minimise_changes import keep_unchanged_rows
from tests.examples import examples
from tests.worlds.networks import networks
from tests.worlds.oracles import path

Network = tuple[Fabric, JobMix]
OBJECTIVES = st.sampled_from(["load", "routes"])


def sar(fabric: Fabric, mix: JobMix, options: Options) -> Routes:
    return load_engine("sar").route(fabric, mix, options)


def loads(fabric: Fabric, mix: JobMix, routes: Routes, options: Options) -> Counter[int]:
    """What each channel carries, pair by pair."""
    found: Counter[int] = Counter()
    demand = route_demand(fabric, mix)
    for job, amount in zip(mix.jobs, demand, strict=True):
        for d in job.terminals:
            for t in job.terminals:
                for c in path(fabric, routes, int(fabric.terminal_switch[t]), d) or ():
                    rate = float(fabric.channel_rate[c])
                    found[c] += amount / rate if options.objective == "load" else 1
    return found


@examples(80)
@given(network=networks(), dropped=st.integers(0, 3), objective=OBJECTIVES)
def test_kept_entries_make_routes_no_worse_and_change_less(
    network: Network, dropped: int, objective: str
) -> None:
    fabric, mix = network
    options = Options(objective="load" if objective == "load" else "routes")
    less = JobMix.of(mix.jobs[: len(mix.jobs) - dropped])
    old, new = sar(fabric, mix, options), sar(fabric, less, options)
    kept = keep_unchanged_rows(PreviousRoutes(fabric, mix, old), fabric, less, new, options)
    assert kept.entries_changed(old) <= new.entries_changed(old)
    for d in range(fabric.destinations):
        row = kept.egress[0, d].tolist()
        assert row in (old.egress[0, d].tolist(), new.egress[0, d].tolist())
    most = [max(loads(fabric, less, one, options).values(), default=0) for one in (kept, new)]
    assert most[0] <= most[1] * (1 + 1e-6)
    assert check_routes(fabric, kept).unreachable_pairs == 0
    used = {int(t) for job in less.jobs for t in job.terminals}
    unused = [d for d in range(fabric.destinations) if d not in used]
    assert (kept.egress[0, unused] == old.egress[0, unused]).all()


@examples(60)
@given(network=networks(), data=st.data())
def test_entries_over_dead_links_are_never_kept(network: Network, data: st.DataObject) -> None:
    fabric, mix = network
    cut = fabric.with_links_down([data.draw(st.integers(0, max(0, fabric.channels - 1)))])
    try:
        old, new = sar(fabric, mix, Options()), sar(cut, mix, Options())
    except Exception:  # the fabric fell apart
        return
    if check_routes(cut, new).unreachable_pairs:
        return
    kept = keep_unchanged_rows(PreviousRoutes(fabric, mix, old), cut, mix, new, Options())
    assert check_routes(cut, kept).unreachable_pairs == 0
    assert measure(cut, mix, kept).load_max <= measure(cut, mix, new).load_max * (1 + 1e-6)
