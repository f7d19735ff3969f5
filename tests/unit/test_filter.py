"""The jobs that matter to routes, and their changes; what is known of hosts is kept where only
cables between switches change."""

from __future__ import annotations

from sar_agent.demand.endpoints import mix_of_records
from sar_agent.fabric.same_hosts import same_hosts
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.filter import JobChange, Running, host_sets, job_change, multi_switch, young
from sar_agent.jobs.record import JobRecord

LEAVES = {f"n{i}": {f"leaf{(i - 1) // 2}"} for i in range(1, 9)}  # two nodes a leaf


def job(identity: str, hosts: str, start: float | None = None) -> JobRecord:
    return JobRecord(identity, tuple(hosts.split()), "RUNNING", start=start)


def test_an_unknown_host_is_left_out_and_the_rest_goes_on():
    result = multi_switch([job("1", "n1 x n3"), job("2", "n5 x"), job("3", "y z")], LEAVES.get)
    assert [(one.id, one.hosts) for one in result.jobs] == [("1", ("n1", "n3"))]
    assert result.unknown_hosts == {"x", "y", "z"}


def test_rails_on_several_leaves():
    rails = {"a": {"r1", "r2"}, "b": {"r1", "r2"}}
    result = multi_switch([job("1", "a"), job("2", "a b")], rails.get)
    assert [one.id for one in result.jobs] == ["2"]


def test_a_start_and_an_end_are_changes():
    before = host_sets([job("1", "n1 n3"), job("2", "n2 n5")])
    change = job_change(before, [job("1", "n1 n3"), job("3", "n4 n6")])
    assert change
    assert change.started == {frozenset({"n4", "n6"})}
    assert change.ended == {frozenset({"n2", "n5"})}


def test_young_jobs_do_not_trigger():
    records = [job("1", "n1 n3", start=100.0), job("2", "n2 n5", start=50.0)]
    assert young(records, now=110.0, min_age=30.0) == (records[0],)
    change = job_change(frozenset(), records, now=110.0, min_age=30.0)
    assert change.started == {frozenset({"n2", "n5"})}
    assert not job_change(frozenset(), records[:1], now=110.0, min_age=30.0)
    assert job_change(frozenset(), records[:1], now=130.0, min_age=30.0)


def test_a_young_job_routed_for_is_no_end():
    records = [job("1", "n1 n3", start=100.0)]
    assert not job_change(host_sets(records), records, now=101.0, min_age=30.0)


def test_hosts_that_leave_and_come_back_are_no_starts_and_ends():
    all_hosts = [
        job("1", "n1 n3 n7", start=0.0),
        job("2", "n2 n8", start=0.0),
        job("3", "n4 n5", start=0.0),
    ]
    without = [job("1", "n1 n3", start=0.0), all_hosts[2]]
    lost = Running(all_hosts, frozenset({"n7", "n8"}), since=1000.0)
    change = job_change(host_sets(all_hosts), without, running=lost)
    assert change == JobChange(frozenset(), frozenset(), 2, frozenset({"n7", "n8"}))
    unknown = Running([one._replace(start=None) for one in all_hosts], lost.missing, 1000.0)
    assert job_change(host_sets(all_hosts), without, running=unknown) == change
    back = Running(all_hosts, since=1000.0)
    change = job_change(host_sets(without), all_hosts, running=back)
    assert change == JobChange(frozenset(), frozenset(), 1, back=frozenset({"n7"}), late=1)


def test_a_job_on_the_hosts_of_one_that_ended_has_started():
    """Whether or not it is known when it did."""
    for start in (2000.0, None):
        new = job("2", "n1 n3 n5", start=start)
        change = job_change(
            host_sets([job("1", "n1 n3")]), [new], running=Running([new], since=1000.0)
        )
        assert change == JobChange(
            frozenset({frozenset(new.hosts)}), frozenset({frozenset({"n1", "n3"})})
        )
    ended = Running([job("9", "n8 n9")], frozenset({"n9"}), since=1000.0)
    change = job_change(host_sets([job("1", "n1 n3")]), [], running=ended)
    assert change.ended == {frozenset({"n1", "n3"})} and not change.moved


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
