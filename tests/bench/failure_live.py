"""Failures under a stock OpenSM with the plugin, which repairs the routes without an agent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import net_ids
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import decode, encode, write_routes_file
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.opensm.plugin_client import PluginClient
from sar_agent.routing import Options, load_engine
from sar_lab.live.generated import ibsim_for
from sar_lab.live.ibsim import Ibsim
from tests.bench.bench_fabrics import LARGEST, MIDDLE, fabric_of, size_of
from tests.bench.opensm_on_ibsim import opensm
from tests.bench.table import Table
from tests.certificates import numbered
from tests.property.least_entries import LeastEntries

PATIENCE = 900.0
INTERVAL = 0.002


@dataclass
class Observed:
    """What `status` showed from a failure until everything was confirmed."""

    began: float = 0.0  # seconds from the failure to OpenSM's routing
    computed: float = 0.0  # from there until the tables are computed, the longest
    served: float = 0.0  # from there until the switches have confirmed paths between all hosts
    confirmed: float = 0.0  # from there until they have confirmed the last step, too
    entries: int = 0
    blocks: int = 0
    steps: int = 0
    milliseconds: float = 0.0  # the longest repair
    engines: str = ""


def tables(full: bool) -> Iterator[Table]:
    """A table for each size."""
    for name in (MIDDLE, LARGEST) if full else (MIDDLE,):
        yield _table(fabric_of(name), name)


def _table(fabric: Fabric, name: str) -> Table:
    routes = load_engine("sar-plus").route(fabric, synthetic_mix(fabric, 1), Options())
    plan = numbered(decode(encode(routes_to_file(fabric, routes, 1))))
    assert plan is not None, "a tree has an order"
    table = Table(
        f"Failures in OpenSM, without an agent, {size_of(fabric)}",
        (
            "failure", "OpenSM has noticed, s", "computed, s", "repair, ms", "hosts served, s",
            "confirmed, s", "entries", "least", "LFT blocks", "steps", "engines",
        ),
        f"`{name}`, sar-plus, `routing_engine sar,updn`, ibsim. Noticed: from the failure to the "
        "start of OpenSM's routing. Computed and confirmed count from there, as `status` showed "
        f"them every {1000 * INTERVAL:g} ms. Hosts served: all switches have confirmed a repair "
        "that drops no packets of hosts. Confirmed: also the second step, which is for management "
        "traffic. Least: entries into dead channels, and the fewest others that give hosts rising "
        "paths.",
    )  # fmt: skip
    with ibsim_for(fabric) as ibsim, opensm(ibsim, fabric, "sar,updn", PATIENCE) as manager:
        bridge = PluginClient(manager.socket_path)
        write_routes_file(manager.next_path, plan)
        bridge.load(1, None)
        for what, act, dead in _failures(fabric, ibsim):
            least = f"{LeastEntries(plan, dead).count():,}" if dead else ""
            seen = _observe(bridge, act, manager.sweep)
            table.add(
                what,
                *(f"{seconds:.3f}" for seconds in (seen.began, seen.computed)),
                f"{seen.milliseconds:.1f}",
                f"{seen.served:.3f}",
                f"{seen.confirmed:.3f}",
                f"{seen.entries:,}",
                least,
                f"{seen.blocks:,}",
                str(seen.steps),
                seen.engines,
            )
    return table


def _failures(
    fabric: Fabric, ibsim: Ibsim
) -> Iterator[tuple[str, Callable[[], None], set[tuple[int, int]]]]:
    """Each failure with its dead channels (switch, port), and its end with none."""
    names = net_ids(fabric)[0]
    leaf = int(fabric.terminal_switch[-1])  # OpenSM is on another one
    bears = np.zeros(fabric.switches, np.bool_)
    bears[fabric.terminal_switch] = True
    above = ~bears
    for c in np.flatnonzero(bears[fabric.channel_source]):
        above[fabric.channel_target[c]] = False
    spine = int(np.flatnonzero(above)[0]) if above.any() else int(np.flatnonzero(~bears)[0])
    drawn = np.random.default_rng(1).choice(np.flatnonzero(fabric.channel_up), 4, replace=False)
    first = int(np.flatnonzero(fabric.channel_source == leaf)[0])

    def ends(channels: list[int]) -> list[tuple[str, int]]:
        return [(names[fabric.channel_source[c]], int(fabric.channel_port[c])) for c in channels]

    def dead(channels: list[int]) -> set[tuple[int, int]]:
        both = [*channels, *(int(fabric.channel_reverse[c]) for c in channels)]
        return {(int(fabric.channel_source[c]), int(fabric.channel_port[c])) for c in both}

    def of(switch: int) -> list[int]:
        return [int(c) for c in np.flatnonzero(fabric.channel_source == switch)]

    for what, channels in (
        ("one cable", [first]),
        ("four cables", [int(c) for c in drawn]),
        ("a spine switch", of(spine)),
        ("a leaf switch", of(leaf)),
    ):
        cables = ends(channels)
        yield what, partial(_each, ibsim.unlink, cables), dead(channels)
        yield f"{what}, back", partial(_each, ibsim.relink, cables), set()


def _each(act: Callable[[str, int], None], cables: list[tuple[str, int]]) -> None:
    for node, port in cables:
        act(node, port)


def _observe(bridge: PluginClient, act: Callable[[], None], sweep: Callable[[], None]) -> Observed:
    before, seen = bridge.status(), Observed()
    last, engines, building = before, {before.engine_in_force}, 0.0
    failed = time.perf_counter()
    act()
    sweep()
    quiet = asked = time.perf_counter()
    while time.perf_counter() - failed < PATIENCE:
        status, now = bridge.status(), time.perf_counter()
        engines.add(status.engine_in_force)
        if status.state == "building" and last.state != "building":
            building = now
            seen.began = seen.began or now - failed
        if last.state == "building" and status.state != "building":
            seen.computed = max(seen.computed, now - building)
        repaired = status.amendments != last.amendments
        if repaired:
            seen.steps += 1
            seen.entries += status.amended_entries
            seen.milliseconds = max(seen.milliseconds, status.repair_ms)
        noticed = status.topology_changes > before.topology_changes
        if noticed and status.routings != last.routings and not status.unconfirmed_switches:
            seen.began = seen.began or asked - failed  # it was too quick to be seen building
            finished = now - failed - seen.began
            if not (seen.served or status.repair_drops):
                seen.served = finished
            if repaired or not seen.confirmed:
                seen.confirmed = finished
        if not (status.settled and noticed):
            quiet = now
        if now - quiet > 3:  # OpenSM sweeps more than once after a failure
            break
        last, asked = status, now
        time.sleep(INTERVAL)
    seen.blocks = last.lft_blocks_confirmed - before.lft_blocks_confirmed
    seen.engines = ", ".join(sorted(engines))
    return seen
