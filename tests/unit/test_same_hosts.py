"""Knowledge of hosts is kept where only cables between switches change."""

from __future__ import annotations

from sar_agent.fabric.same_hosts import same_hosts
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.jobs.record import JobRecord

FABRIC = load_fabric("xgft:3;2,2,2;1,2,2")


def test_jobs_are_those_of_the_fabric_of_now() -> None:
    hosts = sorted(FABRIC.hosts)
    records = (JobRecord("1", tuple(hosts), "RUNNING"), JobRecord("2", tuple(hosts[:3]), "RUNNING"))
    first = mix_of_records(FABRIC, records).mix
    cable = FABRIC.with_links_down([0])
    assert same_hosts(FABRIC, cable) and mix_of_records(cable, records).mix == first
    leaf = int(FABRIC.terminal_switch[0])
    dead = FABRIC.with_links_down([], [leaf])
    assert not same_hosts(FABRIC, dead)
    less = mix_of_records(dead, records).mix
    assert len(less.jobs[0].terminals) < len(first.jobs[0].terminals)
    assert mix_of_records(FABRIC, records).mix == first
