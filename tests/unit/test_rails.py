"""Rail-optimised pods: port k of a host sends to port k of the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.rails import rails_for
from sar_agent.quality.measures import measure
from sar_agent.routing import Options, load_engine
from sar_lab.assess.site_data import read_site_data
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import ibnetdiscover_text


def pod(hosts: int = 8, rails: int = 4, *, mixed: int = 0, missing: int = -1) -> Fabric:
    """Two pods, each of `hosts` / 2 hosts and a leaf switch for each rail; one cable from each leaf
    to the one spine. `mixed` hosts have all their ports on the leaf of rail 0; host `missing` lacks
    its first port."""
    builder = FabricBuilder("pod")
    for s in range(2 * rails):
        builder.add_switch(0x5000 + s, f"leaf{s}", 64)
    spine = builder.add_switch(0x6000, "spine", 64)
    for h in range(hosts):
        pod_of = 2 * h // hosts * rails
        for k in range(rails):
            if (h, k) != (missing, 0):
                leaf = pod_of + (0 if h < mixed else k)
                guid = 0xA000 + 16 * h + k
                builder.add_terminal(
                    guid, f"n{h} mlx5_{k}", f"n{h}", leaf, 1 + h * rails + k, node_guid=guid
                )
    for s in range(2 * rails):
        builder.add_link(s, 60, spine, 1 + s)
    return builder.build()


def whole(fabric: Fabric) -> JobMix:
    return JobMix.of([make_job("7", range(fabric.terminals))])


def load(fabric: Fabric, mix: JobMix) -> float:
    routes = load_engine("minhop").route(fabric, mix, Options())
    return measure(fabric, mix, routes).load_max


def test_a_rail_optimised_pod_is_recognised_and_its_load_is_that_of_rails() -> None:
    fabric = pod()
    rails = rails_for(fabric, None)
    assert rails is not None and rails.recognised
    assert rails.note.startswith("The 4 ports of a host end on leaf switches of their own rails, ")
    mix = rails.split(whole(fabric))
    assert [(job.id, len(job.terminals)) for job in mix.jobs] == [
        (f"7 rail {k}", 8) for k in range(4)
    ]
    # By hand: 4 of 8 hosts of a rail are behind each uplink and send 4/7 of their traffic over it;
    # of all 32 ports, 4 are behind it and send 28/31.
    assert load(fabric, mix) == pytest.approx(4 * 4 / 7)
    assert load(fabric, whole(fabric)) == pytest.approx(4 * 28 / 31)
    assert rails_for(fabric, "alltoall") is None


def test_a_host_without_its_first_port_has_the_others_on_their_rails() -> None:
    fabric = pod(missing=2)
    rails = rails_for(fabric, None)
    assert rails is not None
    for t in range(fabric.terminals):
        assert rails.rail[t] == fabric.terminal_switch[t] % 4


def test_hosts_with_all_ports_on_one_switch_are_no_rails() -> None:
    assert rails_for(pod(mixed=4), None) is None
    forced = rails_for(pod(mixed=8), "rail")
    assert forced is not None and not forced.recognised and not forced.note
    assert len(forced.split(whole(pod(mixed=8))).jobs) == 4
    assert rails_for(pod(mixed=8), None) is None
    with pytest.raises(InputError, match="--traffic 'rails' is neither rail nor alltoall"):
        rails_for(pod(), "rails")


def test_a_history_has_rails_at_every_moment(tmp_path: Path) -> None:
    fabric = pod()
    file = tmp_path / "history.csv"
    file.write_text("job,start,end,nodelist\n7,1767607200,1767610800,n[0-7]\n")
    given = read_site_data(fabric, None, file, None, None, rails=rails_for(fabric, None))
    assert len(given.mix.jobs) == 4
    assert given.placed is not None
    assert len(given.placed.mix_of(np.array([0])).jobs) == 4


def test_measure_and_assess_say_it(tmp_path: Path) -> None:
    (tmp_path / "fabric").write_text(ibnetdiscover_text(pod()))
    (tmp_path / "queue").write_text("7|RUNNING|n[0-7]|b|u|a|8|1795221989|\n")
    same = ("--fabric", tmp_path / "fabric", "--jobs", tmp_path / "queue")
    done = sar_agent("route", *same, "--engine", "minhop", "--out", tmp_path / "routes")
    assert done.returncode == 0, done.stderr
    command = ("measure", *same, "--routes", tmp_path / "routes")
    plain, rail = (sar_agent(*command, *more) for more in ((), ("--traffic", "rail")))
    assert "1 multi-switch jobs" in plain.stdout
    assert "; --traffic rail counts only what these send to their like" in plain.stderr
    assert "4 multi-switch jobs" in rail.stdout
    assert "max 2.29 " in rail.stdout
    assert "rail" not in rail.stderr
    quick = ("--no-simulate", "--engine", "minhop", "--engine", "sar-plus")
    said = sar_agent("assess", *same, *quick, "--out", tmp_path / "o").stdout
    assert "\nThe 4 ports of a host end on leaf switches of their own rails, so each is" in said
    said = sar_agent("assess", *same, *quick, "--out", tmp_path / "o", "--traffic", "alltoall")
    assert "rails" not in said.stdout
