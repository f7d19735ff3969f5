"""What a trial decides without daemons: numbers of benchmarks, nodes, intervals, the way back."""

from __future__ import annotations

import doctest
from dataclasses import replace

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.errors import InputError, TooMany
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import routed
from sar_agent.routing.routes import NO_ROUTE
from sar_lab.emulate import benchmark, statistics
from sar_lab.emulate.benchmark import Benchmark, Reading, read_output
from sar_lab.emulate.statistics import summary
from sar_lab.trial import page
from sar_lab.trial.rehearsal import require_small
from sar_lab.trial.site_look import split_nodes
from sar_lab.trial.way_back import own_tables

FABRIC = xgft_fabric("xgft:2;4,4;1,3")

OSU = """
# OSU MPI All-to-All Personalized Exchange Latency Test v7.4
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)
4096                  101.50            90.00            120.00
1048576             29511.20         29000.00          30100.00
"""
MBW = "# OSU MPI Multiple Bandwidth / Message Rate Test\n# Size   MB/s   Messages/s\n8 12.5 9e5\n"
IMB = """
#       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
             4         1000         2.11         2.30         2.20
       1048576           40      5100.00      5300.50      5200.25
"""
NCCL = "#\n 1024 256 float sum -1 20.1 0.05 0.10 0\n# Out of bounds values : 0 OK\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (OSU, Reading(29511.2, "us")),
        (MBW, Reading(12.5, "MB/s")),
        (IMB, Reading(5200.25, "us")),
        (NCCL + "# Avg bus bandwidth    : 91.7\n", Reading(91.7, "GB/s")),
        ("…\nreal 12.50\nuser 1.00\nsys 0.10\n", Reading(12.5, "s")),
        ("trial: 3.5 ns/day/s\n", Reading(3.5, "ns/day/s")),
        ("", None),
        ("finished in 12 steps\n", None),
        ("trial: nan s\n", None),
        ("trial: 0 s\n", None),
    ],
)
def test_the_number_of_a_benchmark(text: str, found: Reading | None) -> None:
    assert read_output(text) == found


def test_a_rate_becomes_a_time() -> None:
    assert Reading(4.0, "GB/s").time == 0.25
    assert Reading(4.0, "us").time == 4.0


def test_names_of_benchmarks() -> None:
    assert Benchmark.of("a2a=osu_alltoall -m 8").command == ("osu_alltoall", "-m", "8")
    assert Benchmark.of("/opt/osu/osu_alltoall --x=1").name == "osu_alltoall"
    for text in ("", "a2a=", "bash -c 'oh"):
        with pytest.raises(InputError):
            Benchmark.of(text)


def test_intervals_say_how_much_they_cover() -> None:
    assert summary([]) is None
    one = summary([2.0])
    assert one and one.coverage == 0
    many = summary([float(n) for n in range(20)])
    assert many and (many.low, many.high) == (5.0, 14.0) and 0.9 <= many.coverage < 0.96


def test_the_doctests() -> None:
    for module in (benchmark, page, statistics):
        assert doctest.testmod(module).failed == 0


def test_jobs_share_the_leaves() -> None:
    first, second = split_nodes(FABRIC, list(FABRIC.hosts), second=True)
    assert len(first) == len(second) == 8 and not set(first) & set(second)
    ports = FABRIC.hosts
    leaves = [
        {int(FABRIC.terminal_switch[ports[h][0]]) for h in hosts} for hosts in (first, second)
    ]
    assert leaves[0] == leaves[1] and len(leaves[0]) == 4


@pytest.mark.parametrize(
    ("hosts", "second", "words"),
    [
        (["n001", "n002", "n003"], False, "all 3 nodes of the reservation are on leaf switch"),
        (["n001", "n005"], True, "too small for two jobs"),
        (["login1"], False, "no node of the reservation is in the fabric, such as login1"),
    ],
)
def test_reservations_that_show_nothing(hosts: list[str], second: bool, words: str) -> None:
    with pytest.raises(InputError, match=words):
        split_nodes(FABRIC, hosts, second=second)


def test_own_tables_come_back_entry_for_entry_and_around_what_is_dead() -> None:
    own = routed(load_engine("ftree"), FABRIC, JobMix(()), Options())
    holes = own.egress.copy()
    holes[0, FABRIC.terminals :][holes[0, FABRIC.terminals :] > 4] = NO_ROUTE  # as OpenSM may
    file = routes_to_file(FABRIC, replace(own, egress=holes), 0)
    back, instead, filled = own_tables(FABRIC, file)
    there = holes != NO_ROUTE
    assert (instead, filled) == (0, np.count_nonzero(~there))
    assert np.array_equal(back.egress[there], holes[there])
    assert check_routes(FABRIC, back).passed

    broken = FABRIC.with_links_down([int(np.flatnonzero(FABRIC.channel_source == 0)[0])])
    back, instead, _ = own_tables(broken, file)
    assert check_routes(broken, back).passed
    differs = (back.egress != holes) & there
    assert 0 < instead == np.count_nonzero(differs) < 60


def test_a_site_that_is_too_large_to_rehearse_gets_a_way_to_do_it_smaller() -> None:
    require_small(FABRIC)
    with pytest.raises(TooMany, match=r"11664 host ports.*sar-lab emulate --fabric"):
        require_small(xgft_fabric("xgft:3;18,18,36;1,18,18"))
