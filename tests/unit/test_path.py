"""The way between two hosts: what the tables say, cable by cable, there and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sar_agent.demand.endpoints import mix_of_records
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.record import JobRecord
from sar_agent.reports.path import path_report
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.routing import Options, load_engine
from sar_agent.routing.routes import NO_ROUTE

TREE = load_fabric("xgft:2;4,8;1,4")
FIRST, LAST = TREE.terminal_host[0], TREE.terminal_host[-1]


def site(fabric: Fabric = TREE) -> SiteDumps:
    hosts = fabric.terminal_host
    records = (
        JobRecord("7", (hosts[0], hosts[-1]), "RUNNING"),
        JobRecord("8", (hosts[1], hosts[-2]), "RUNNING"),
    )
    mix = mix_of_records(fabric, records).mix
    return SiteDumps(fabric, records, mix, load_engine("dmodk").route(fabric, mix, Options()))


def test_each_cable_of_the_way_is_the_one_that_the_tables_name_there_and_back():
    there, back = path_report(site(), FIRST, LAST).paths
    assert (there.problem, back.problem, there.rail) == ("", "", None)
    assert [way.name for way in there.cables][0::3] == [f"from {FIRST}", f"to {LAST}"]
    dumps, switch, names = site(), int(TREE.terminal_switch[0]), []
    while switch != TREE.terminal_switch[-1]:
        port = dumps.routes.egress[0, TREE.terminals - 1, switch]
        channel = int(TREE.channel_by_port[switch, port])
        names.append(TREE.channel_name(channel))
        switch = int(TREE.channel_target[channel])
    assert [way.name for way in there.cables][1:-1] == names and len(names) == 2
    assert all("7" in [j.job for j in way.jobs] and way.load > 0 for way in there.cables[1:-1])
    assert back.cables[0].name == f"from {LAST}"


def test_with_a_job_the_others_that_it_meets_are_named():
    report = path_report(site(), FIRST, LAST, "7")
    paths, words = report.paths, report.words()
    for way, line in zip(paths[0].cables, words.splitlines()[1:], strict=False):
        others = [j.job for j in way.jobs if j.job != "7"]
        assert [j.job for j in way.jobs if j.job == "7"] == ["7"]
        assert "no job" not in line  # job 7 leads over each cable of its own way
        assert ("other jobs 8" in line) == bool(others)
        assert ("no other job" in line) == (not others)
    assert "jobs 7" not in words
    for a, b, job, why in (
        (FIRST, "n99", None, "no switch or host"),
        (FIRST, FIRST, None, "are one host"),
        (TREE.terminal_host[1], LAST, "7", f"job 7 does not run on {TREE.terminal_host[1]};"),
        (FIRST, LAST, "99", "no job 99 is running"),
    ):
        with pytest.raises(InputError, match=why):
            path_report(site(), a, b, job)


def test_what_stops_packets_is_a_sentence():
    dumps = site()
    last, leaf = TREE.terminals - 1, int(TREE.terminal_switch[0])
    spine = int(TREE.channel_target[TREE.channel_by_port[leaf, dumps.routes.egress[0, last, leaf]]])

    def sends(switch: int, port: int) -> str:
        egress = dumps.routes.egress.copy()
        egress[0, last, switch] = port
        routes = replace(dumps.routes, egress=egress)
        return path_report(replace(dumps, routes=routes), FIRST, LAST).paths[0].problem

    assert "has no route to" in sends(leaf, NO_ROUTE)
    home = int(TREE.channel_port[np.flatnonzero(
        (TREE.channel_source == spine) & (TREE.channel_target == leaf))[0]])  # fmt: skip
    assert sends(spine, home) == "the tables lead in a circle"
    end = int(TREE.terminal_switch[-1])
    assert "sends it to another port" in sends(end, int(TREE.terminal_switch_port[0]) + 1)
    up = TREE.channel_up.copy()
    up[int(TREE.channel_by_port[leaf, dumps.routes.egress[0, last, leaf]])] = False
    down = replace(dumps, fabric=replace(TREE, channel_up=up))
    assert path_report(down, FIRST, LAST).paths[0].problem.endswith("is down")
