"""`sar-agent what-if`: failures and one switch more, beside fabrics that were built so."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.cli import app
from sar_agent.demand.endpoints import mix_of_spec, multi_switch_mix
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.one_more import with_one_more
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.reports.made_by import maker_of, of_engine
from sar_agent.reports.places import Places
from sar_agent.reports.screening import ranked_failures, worst_failures
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.reports.what_if import names_of, pulled, what_if
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import routed
from tests.worlds.fabric_texts import without_dead
from tests.worlds.oracles import path

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TREES = ("xgft:2;6,12;1,6", "xgft:3;4,4,6;1,3,4", "xgft:2;8,6;1,4")


def site(spec: str, engine: str, seed: int = 1) -> SiteDumps:
    fabric = load_fabric(spec)
    mix = mix_of_spec(f"mix:{seed}", fabric)
    return SiteDumps(fabric, (), mix, routed(load_engine(engine), fabric, mix, Options()))


def on(mix: JobMix, before: Fabric, after: Fabric) -> JobMix:
    """The same jobs on the terminals of the same GUIDs."""
    place = {int(guid): t for t, guid in enumerate(after.terminal_guid)}
    guids = [[int(before.terminal_guid[t]) for t in job.terminals] for job in mix.jobs]
    kept = [[place[guid] for guid in of_job if guid in place] for of_job in guids]
    jobs = (make_job(job.id, each) for job, each in zip(mix.jobs, kept, strict=True))
    return multi_switch_mix(after, jobs)


@pytest.mark.parametrize("spec", TREES)
@pytest.mark.parametrize("engine", ["minhop", "ftree", "dfsssp"])
def test_a_failure_is_that_of_a_fabric_that_never_had_the_part(
    spec: str, engine: str, tmp_path: Path
) -> None:
    """23 random failures of each, 207 in all: pairs that are cut off, loads, the verdict."""
    dumps, rng = site(spec, engine), random.Random(7)
    failures = [each.places for each in ranked_failures(dumps)]
    for places in rng.sample(failures, 23):
        found = pulled(dumps, load_engine(engine), places)
        failed = dumps.fabric.with_links_down(places.channels)
        bare = without_dead(failed.with_switches_down(places.switches), tmp_path)
        mix = on(dumps.mix, dumps.fabric, bare)
        routes = routed(load_engine(engine), bare, mix, Options())
        verdict = check_routes(bare, routes)
        assert found.proved == verdict.passed
        assert found.load[1] == pytest.approx(traffic_of(bare, mix, routes).load.max(), rel=1e-6)
        assert set(dumps.fabric.hosts) - set(found.lost_hosts) == set(bare.hosts)
        assert None not in (
            path(bare, routes, leaf, to) for leaf in bare.leaves for to in range(bare.terminals)
        )


def test_the_estimate_names_the_worst_failures_of_an_engine_that_balances() -> None:
    for spec in TREES:
        dumps, engine = site(spec, "sar-plus"), load_engine("sar-plus")
        ranked = [each for each in ranked_failures(dumps) if not each.lost]
        load = [pulled(dumps, engine, each.places).load[1] or np.inf for each in ranked]
        worst = sorted(load, reverse=True)[9]
        assert sum(each >= worst for each in load[:40]) >= 9, spec


def test_of_the_routed_failures_a_fifth_may_lose_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = site(TREES[0], "minhop")
    ranked = ranked_failures(dumps)
    assert worst_failures(ranked, dumps.fabric) == ranked  # a small fabric: all are routed
    monkeypatch.setattr("sar_agent.reports.screening.ENTRIES_ROUTED", 0)
    some = worst_failures(ranked, dumps.fabric)
    assert len(some) == 50
    assert sum(bool(each.lost) for each in some) == 10


def test_a_leaf_switch_takes_its_hosts_with_it() -> None:
    dumps = site(TREES[0], "minhop")
    leaf = int(dumps.fabric.leaves[2])
    found = pulled(dumps, load_engine("minhop"), Places(switches=(leaf,)))
    on_leaf = {dumps.fabric.terminal_host[t] for t in range(12, 18)}
    assert set(found.lost_hosts) == on_leaf
    for job in found.jobs:
        of_job = next(j for j in dumps.mix.jobs if j.id == job.job)
        assert set(job.lost_hosts) == on_leaf & {
            dumps.fabric.terminal_host[t] for t in of_job.terminals
        }


def test_a_switch_that_is_cut_off_counts_as_dead() -> None:
    dumps = site(TREES[0], "minhop")
    leaf = int(dumps.fabric.leaves[2])
    ways = range(*dumps.fabric.channel_offset[leaf : leaf + 2])
    found = pulled(dumps, load_engine("minhop"), Places(channels=tuple(ways)))
    assert len(found.lost_hosts) == 6 and found.proved


def test_an_engine_that_cannot_serve_what_is_left_is_said() -> None:
    dumps = site(TREES[0], "dmodk")
    found = pulled(dumps, load_engine("dmodk"), Places(channels=(0,)))
    assert not found.proved and found.load[1] is None and found.problem
    assert "not proved" in found.words()


def test_one_more_spine_takes_its_share() -> None:
    dumps = site("xgft:2;8,6;1,4", "dmodk")
    spine = int(dumps.fabric.channel_target[0])
    more = with_one_more(dumps.fabric, spine)
    assert more.fabric.switches == dumps.fabric.switches + 1
    assert more.fabric.channels == dumps.fabric.channels + 2 * 6
    assert set(more.full) == {dumps.fabric.switch_name[s] for s in dumps.fabric.leaves}
    bigger = load_fabric("xgft:2;8,6;1,5")
    mix = on(dumps.mix, dumps.fabric, bigger)
    expected = traffic_of(bigger, mix, routed(load_engine("dmodk"), bigger, mix, Options()))
    found = what_if(dumps, load_engine("dmodk"), more.fabric, ("one more",))
    assert found.load[1] == pytest.approx(expected.load.max())
    assert found.load[1] < found.load[0]


def test_a_switch_without_cables_cannot_be_a_model() -> None:
    fabric = load_fabric(TREES[0])
    lonely = fabric.with_switches_down([fabric.switches - 1])
    with pytest.raises(InputError, match="no live cable"):
        with_one_more(lonely, fabric.switches - 1)


def test_commands_on_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    given = [
        "what-if", "--fabric", str(EXAMPLES / "cluster.ibnetdiscover"),
        "--jobs", str(EXAMPLES / "squeue.txt"), "--json",
    ]  # fmt: skip
    app([*given, "--down", "S2-0", "--down", "S1-1[8]"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert found["changed"][0] == 'switch "S2-0"' and found["proved"]
    app(given, standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert found["failures"] == len(found["worst"]) == 34
    with pytest.raises(InputError, match="two questions"):
        app([*given, "--down", "S2-0", "--add", "S2-0"], standalone_mode=False)
    with pytest.raises(InputError, match="not one switch"):
        app([*given, "--add", "S2-*"], standalone_mode=False)


def test_tables_are_compared_with_those_of_the_engine_that_made_them() -> None:
    for engine in ("minhop", "ftree"):
        dumps = site(TREES[1], engine)
        dumped = replace(dumps, routes=replace(dumps.routes, engine="opensm"))
        assert maker_of(dumped) == engine
        assert of_engine(dumped, load_engine(engine)) == (dumped, "")
    dumps = site(TREES[1], "dmodk")
    assert maker_of(dumps) == "dmodk"


def test_tables_of_another_engine_are_replaced_and_said() -> None:
    dumps = site(TREES[1], "ftree")
    same, differ = of_engine(dumps, load_engine("minhop"))
    assert "not those of minhop" in differ and "% of the entries differ" in differ
    assert (same.routes.egress == site(TREES[1], "minhop").routes.egress).all()


@pytest.mark.parametrize("made", ["minhop", "ftree"])
def test_the_command_takes_the_engine_of_the_tables(
    made: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--fabric", TREES[1], "--jobs", "mix:1"]
    app(["route", *given, "--engine", made, "--out", str(tmp_path / "r")], standalone_mode=False)
    capsys.readouterr()
    given += ["--routes", str(tmp_path / "r"), "--down", "S1-0[7]", "--json"]
    app(["what-if", *given], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert found["engine"] == made and found["notes"] == []
    app(["what-if", *given, "--engine", "sar-plus"], standalone_mode=False)
    other = json.loads(capsys.readouterr().out)
    assert other["engine"] == "sar-plus" and "not those of sar-plus" in other["notes"][0]
    assert found["load"][0] != other["load"][0]


def test_a_leaf_cannot_be_added(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="a switch with hosts"):
        app(["what-if", "--fabric", TREES[0], "--add", "S1-0"], standalone_mode=False)


def test_the_cable_of_a_host_hurts_its_job() -> None:
    dumps = site(TREES[0], "minhop")
    job = dumps.mix.jobs[0]
    found = pulled(dumps, load_engine("minhop"), Places(terminals=(job.terminals[0],)))
    assert found.routes_over == 2 * (len(job.terminals) - 1)
    hurt = next(each for each in found.jobs if each.job == job.id)
    assert hurt.lost_hosts == (dumps.fabric.terminal_host[job.terminals[0]],)


def test_a_host_that_keeps_a_port_is_said() -> None:
    dumps = site(TREES[0], "minhop")
    first, second = dumps.mix.jobs[0].terminals[:2]
    hosts = list(dumps.fabric.terminal_host)
    hosts[second] = hosts[first]
    two = replace(dumps, fabric=replace(dumps.fabric, terminal_host=tuple(hosts)))
    found = pulled(two, load_engine("minhop"), Places(terminals=(first,)))
    assert found.lost_hosts == ()
    hurt = next(each for each in found.jobs if each.job == dumps.mix.jobs[0].id)
    assert hurt.fewer_ports == (hosts[first],)
    assert "a port fewer at" in found.words()


def test_switches_of_one_name_are_told_apart() -> None:
    dumps = site(TREES[0], "minhop")
    twins = replace(dumps.fabric, switch_name=("twin", "twin", *dumps.fabric.switch_name[2:]))
    (name,) = names_of(twins, Places(switches=(1,)))
    assert name == f'switch "twin" (0x{int(twins.switch_guid[1]):016x})'
