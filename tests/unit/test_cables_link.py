"""`sar-agent cables` and `link`: what they say of a fabric, its jobs and its counters; cables and
switches that are slower or fewer than most of their like."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.cli import app
from sar_agent.counters.counter_files import read_counter_file
from sar_agent.counters.port_errors import PortErrors, added, read_port_errors
from sar_agent.demand.endpoints import mix_of_records
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.cable_changes import cable_changes
from sar_agent.fabric.cable_names import cable_name
from sar_agent.fabric.odd_cables import odd_cables
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.record import JobRecord
from sar_agent.reports.cables import cable_report
from sar_agent.reports.link import links
from sar_agent.reports.places import find_places
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.routing import Options, load_engine
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import ibnetdiscover_text

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture(scope="module")
def tree() -> Fabric:
    return load_fabric("xgft:2;4,8;1,4")


def site(fabric: Fabric, jobs: dict[str, list[int]], **more: object) -> SiteDumps:
    """A site whose jobs run on the hosts of these terminals."""
    records = tuple(
        JobRecord(job, tuple(fabric.terminal_host[t] for t in terminals), "RUNNING", user="ada")
        for job, terminals in jobs.items()
    )
    mix = mix_of_records(fabric, records).mix
    routes = load_engine("dmodk").route(fabric, mix, Options())
    return SiteDumps(fabric, records, mix, routes, **more)  # type: ignore[arg-type]


def first_up(fabric: Fabric) -> int:
    """A channel from a leaf switch to a spine."""
    return int(fabric.channel_offset[fabric.leaves[0]])


def test_a_link_names_the_jobs_whose_routes_cross_it_and_their_number(tree: Fabric) -> None:
    dumps = site(tree, {"7": [0, 1, 4, 5], "8": [2, 6]})
    for c in range(tree.channels):
        over = {job.job: job.routes for job in dumps.jobs_over(c)}
        assert sum(over.values()) == dumps.traffic.efi[c]
        assert set(over) <= {"7", "8"}
    (link,) = links(dumps, find_places(tree, [f"{tree.switch_name[tree.leaves[0]]}[5]"]))
    out, back = link.directions
    assert link.up and link.speed and out.name != back.name
    assert out.load == dumps.traffic.load[first_up(tree)]
    assert {job.user for job in (*out.jobs, *back.jobs)} <= {"ada"}


def test_both_directions_of_a_cable_are_one_link(tree: Fabric) -> None:
    dumps = site(tree, {"7": [0, 4]})
    leaf = int(tree.leaves[0])
    places = find_places(tree, [tree.switch_name[leaf]]).cables_of(tree)
    found = links(dumps, places)
    assert len(found) == 8  # four hosts, four spines
    assert len({each.name for each in found}) == 8


@pytest.mark.parametrize("form", ["{0}[{1}]", "{0}:{1}", '"{0}"[{1}]', "0x{2:x}[{1}]"])
def test_a_port_may_be_written_in_several_ways(tree: Fabric, form: str) -> None:
    leaf = int(tree.leaves[3])
    channel = int(tree.channel_offset[leaf])
    text = form.format(tree.switch_name[leaf], tree.channel_port[channel], tree.switch_guid[leaf])
    assert find_places(tree, [text]).channels == (channel,)


def test_a_cable_may_be_written_as_our_reports_print_it(tree: Fabric) -> None:
    name = tree.channel_name(3).replace("->", "–")
    assert find_places(tree, [name]).channels == (3,)


def test_a_switch_with_a_twin_and_a_dash_in_its_name_is_found_by_what_reports_print(
    tree: Fabric,
) -> None:
    twin = "Voltaire 4036 - 36 QDR ports"
    odd = replace(tree, switch_name=(twin, twin, *tree.switch_name[2:]))
    channel = int(odd.channel_offset[1])
    name = cable_name(odd, channel)
    assert f'"{twin}" (0x' in name
    assert find_places(odd, [name]).channels == (channel,)
    single = replace(tree, switch_name=(twin, *tree.switch_name[1:]))
    port = int(single.channel_port[0])
    assert find_places(single, [f"{twin}[{port}]"]).channels == (0,)


def test_a_pattern_names_several_switches_and_a_host_its_cables(tree: Fabric) -> None:
    assert find_places(tree, ["S1-*"]).switches == tuple(tree.leaves.tolist())
    assert find_places(tree, [tree.terminal_host[9]]).terminals == (9,)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("S1-99", "did you mean S1-"),
        ("S1-0[99]", "no cable is at port 99"),
        ("S9*[1]", "no switch or host"),
        ("S1-*[1]", "name one by its GUID: 0x"),
    ],
)
def test_what_is_not_there_is_refused_with_a_remedy(tree: Fabric, named: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        find_places(tree, [named])
    assert said in str(refused.value)


def test_odd_cables_are_reported_with_the_jobs_on_them(tree: Fabric) -> None:
    slow, rate = first_up(tree), tree.channel_rate.copy()
    rate[[slow, tree.channel_reverse[slow]]] /= 2
    dumps = site(replace(tree, channel_rate=rate), {"7": list(range(0, 32, 2))})
    finding = cable_report(dumps).findings[0]
    assert "is 2xEDR among 4xEDR" in finding.sentence or "among" in finding.sentence
    assert finding.jobs == ("7",)
    assert finding.load == pytest.approx(
        max(dumps.traffic.load[slow], dumps.traffic.load[tree.channel_reverse[slow]])
    )
    assert "instead of" in cable_report(dumps).repair


def test_a_host_with_a_slow_cable_and_one_with_fewer_ports_are_odd() -> None:
    fabric = load_fabric("xgft:2;4,8;1,4")
    rate = fabric.terminal_rate.copy()
    rate[5] /= 4
    host = tuple(fabric.terminal_host[t - t % 2] for t in range(32))
    assert [each.terminals for each in odd_cables(replace(fabric, terminal_rate=rate)).odd] == [
        (5,)
    ]
    twin = replace(fabric, terminal_host=host).with_links_down(terminals=[9])
    said = [each for each in odd_cables(twin).odd if "in the fabric" in each.sentence]
    assert [each.terminals for each in said] == [(8,)]
    assert "has 1 port in the fabric, most hosts have 2" in said[0].sentence


def test_errors_are_read_from_perfquery_ibdiagnet_and_db_csv(tmp_path: Path, tree: Fabric) -> None:
    leaf = int(tree.leaves[0])
    guid = int(tree.switch_guid[leaf])
    fabric = replace(tree, switch_lid=np.where(np.arange(tree.switches) == leaf, 6, 0).astype("i4"))
    texts = {
        "perfquery": "# Port counters: Lid 6 port 5 (CapMask: 0x1200)\nSymbolErrorCounter:.....7\n"
        "LinkDownedCounter:.........2\nPortXmitData:.....1\n",
        "ibdiagnet2.pm": f"Port=5 Lid=0x0006 GUID=0x{guid:x} Device=1 Port Name=x\n---\n"
        "link_down_counter=2\nsymbol_error_counter=7\n",
        "ibdiagnet2.db_csv": "START_PM_INFO\nNodeGUID,PortGUID,PortNumber,LinkDownedCounter,"
        f"SymbolErrorCounter,PortRcvErrors\n0x{guid:016x},0x{guid:016x},5,2,7,N/A\nEND_PM_INFO\n",
    }
    for old, (symbols, downed) in enumerate(
        (("SymbolErrorCounter", "LinkDownedCounter"), ("SymbolErrors", "LinkDowned"))
    ):
        values = f"[{symbols} == 7] [{downed} == 2] [PortXmitWait == 3 (3.0)]"
        texts[f"ibqueryerrors {old}"] = (
            f'Errors for 0x{guid:x} "leaf"\n   GUID 0x{guid:x} port ALL: {values}\n'
            f"   GUID 0x{guid:x} port 0: [PortRcvErrors == 1]\n"
            f"   GUID 0x{guid:x} port 5: {values}\n\n## Summary: 9 nodes checked, 1 bad"
        )
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        errors = read_port_errors(tmp_path / name).of(fabric)
        assert errors.counts == {(guid, 0, 5): {"link_downed": 2, "symbol_errors": 7}}, name
    dumps = site(fabric, {"7": [0, 4]}, errors=errors)
    report = cable_report(dumps)
    assert report.with_errors == 1
    assert "2 link downed, 7 symbol errors at" in report.findings[-1].sentence


def test_two_readings_give_what_was_added_and_a_cleared_counter_counts_whole(
    tmp_path: Path,
) -> None:
    def reading(name: str, downed: int, symbols: int) -> Path:
        path = tmp_path / name
        path.write_text(
            f"# Port counters: Lid 6 port 5 (CapMask: 0x1200)\nSymbolErrorCounter:..{symbols}\n"
            f"LinkDownedCounter:...{downed}\n"
        )
        return path

    before, after = (read_port_errors(reading(*each)) for each in (("a", 2, 9), ("b", 3, 4)))
    assert added(before, after).counts == {(0, 6, 5): {"link_downed": 1, "symbol_errors": 4}}


def test_counters_of_other_dates_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors alone, as in the example, are enough; files the wrong way round are not."""
    early, late = tmp_path / "early.pm", tmp_path / "late.pm"
    text = (EXAMPLES / "ibdiagnet2.pm").read_text()
    early.write_text(text)
    late.write_text(text.replace("symbol_error_counter=14", "symbol_error_counter=20"))
    os.utime(early, (1.6e9, 1.6e9))
    os.utime(late, (1.7e9, 1.7e9))
    given = [
        *("cables", "--fabric", str(EXAMPLES / "cluster.ibnetdiscover")),
        *("--jobs", str(EXAMPLES / "squeue.txt"), "--counters"),
    ]
    app([*given, str(early), "--counters", str(late)], standalone_mode=False)
    said = capsys.readouterr()
    assert '6 symbol errors at "S1-0"[8]' in said.out
    assert "before 5 of 5 jobs started: what it counts is of other jobs" in said.err
    with pytest.raises(InputError, match="give the earlier one first"):
        app([*given, str(late), "--counters", str(early)], standalone_mode=False)


def test_a_dash_in_a_name_is_no_end_of_it(tree: Fabric) -> None:
    """It was taken for that between the two ends of a cable."""
    name = ("leaf – 1", *tree.switch_name[1:])
    description = ("n001 – a", *tree.terminal_description[1:])
    odd = replace(tree, switch_name=name, terminal_description=description)
    guids = int(tree.terminal_guid[0]), int(tree.switch_guid[0])
    up = int(tree.channel_port[0])
    errors = PortErrors(
        "x", {(guids[0], 0, 1): {"discards": 1}, (guids[1], 0, up): {"discards": 2}}
    )
    report = cable_report(site(odd, {}, errors=errors))
    assert [each.sentence.partition("]: ")[2] for each in report.findings] == [
        f'2 discards at "leaf – 1"[{up}]', '1 discards at "n001 – a"[1]'
    ]  # fmt: skip


def test_ibqueryerrors_that_found_nothing_is_a_reading_without_errors(
    tmp_path: Path, tree: Fabric
) -> None:
    path = tmp_path / "x"
    path.write_text("\n## Summary: 9 nodes checked, 0 bad nodes found\n")
    assert read_port_errors(path).of(tree).counts == {}
    with pytest.raises(InputError, match="has no counter of a port; give the output"):
        read_counter_file(path)
    path.write_text("   GUID 0x1 port 5: [SymbolErrorCounter == 7]\n")
    with pytest.raises(InputError, match="has no counter of what ports sent; give"):
        read_counter_file(path)


def test_a_file_without_a_port_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nothing here\n")
    with pytest.raises(InputError, match="names no port"):
        read_port_errors(tmp_path / "x")


def test_ports_of_hosts_and_of_other_fabrics(tree: Fabric) -> None:
    """A host's port is the same by its own GUID, its node's and its LID."""
    fabric = replace(tree, terminal_lid=np.arange(9, 9 + tree.terminals).astype("i4"))
    own, node = int(tree.terminal_guid[3]), int(tree.terminal_node_guid[3])
    for place in ((own, 0, 1), (node, 0, 1), (0, 12, 1)):
        counted = PortErrors("x", {place: {"discards": 1}, (5, 0, 1): {}}).of(fabric)
        assert counted.counts == {(own, 0, 1): {"discards": 1}}
        assert site(fabric, {}, errors=counted).terminal_errors(3) == ({"discards": 1}, {})
    with pytest.raises(InputError, match=f"x has no port of {tree.name}; give counters of this"):
        PortErrors("x", {(5, 0, 1): {}, (0, 7, 1): {}}).of(fabric)
    with pytest.raises(InputError, match="has no switch and no host of"):
        guids = {
            name: getattr(tree, name) + np.uint64(1 << 40)
            for name in ("switch_guid", "terminal_guid")
        }
        cable_changes(replace(tree, **guids), tree)


def test_changes_between_two_dumps(tree: Fabric) -> None:
    slow, rate = first_up(tree), tree.channel_rate.copy()
    rate[[slow, tree.channel_reverse[slow]]] /= 2
    assert cable_changes(tree, tree) == ()
    (said,) = cable_changes(tree, replace(tree, channel_rate=rate))
    assert "was 4xEDR" in said
    (said,) = cable_changes(tree, tree.with_links_down([slow]))
    assert said.endswith("is gone")
    (said,) = cable_changes(tree.with_links_down([slow]), tree)
    assert said.endswith("is new")
    assert cable_changes(tree, tree.with_links_down(terminals=[3])) == (
        f'"{tree.terminal_description[3]}" is gone',
    )


def test_without_jobs_a_report_says_nothing_of_them(tree: Fabric) -> None:
    dumps = replace(site(tree, {}), mix=JobMix.of([]))
    assert cable_report(dumps).words(5) == "64 cables, none unlike its like"


TREE = load_fabric("xgft:2;4,6;1,4")


def test_a_slow_cable_is_named_with_its_ports_and_speeds() -> None:
    rate = TREE.channel_rate.copy()
    c = int(np.flatnonzero(TREE.channel_source == TREE.leaves[1])[2])
    back = int(TREE.channel_reverse[c])
    rate[[c, back]] = 16.0
    odd = odd_cables(replace(TREE, channel_rate=rate))
    a, b = TREE.switch_name[TREE.channel_source[c]], TREE.switch_name[TREE.channel_target[c]]
    ends = [f'"{a}"[{TREE.channel_port[c]}]', f'"{b}"[{TREE.channel_port[back]}]']
    [sentence] = odd.sentences
    assert all(end in sentence for end in ends) and "is 4xDDR among 4xEDR" in sentence
    assert odd.slow == 1 and odd.repaired.channel_rate.tolist() == TREE.channel_rate.tolist()


def test_a_leaf_with_fewer_cables_up() -> None:
    c = int(np.flatnonzero(TREE.channel_source == TREE.leaves[1])[0])
    spine, back = TREE.channel_target[c], TREE.channel_port[TREE.channel_reverse[c]]
    a, b = TREE.switch_name[TREE.leaves[1]], TREE.switch_name[spine]
    [odd] = odd_cables(TREE.with_links_down([c])).odd
    assert odd.sentence == (
        f'"{a}" has 3 cables up, most leaf switches have 4: none to "{b}" '
        f"(free: {a}[{TREE.channel_port[c]}], {b}[{back}])"
    )
    assert odd.switches == (TREE.leaves[1], spine)


def test_assess_names_them_before_any_gain(tmp_path: Path) -> None:
    text = ibnetdiscover_text(TREE)
    first = text.index(f'"S-{int(TREE.switch_guid[TREE.leaves[0]]):016x}"')
    line = text.rindex("4xEDR", 0, text.index("\n\n", first))
    (tmp_path / "fabric").write_text(text[:line] + "4xSDR" + text[line + 5 :])
    done = sar_agent(
        "assess", "--fabric", tmp_path / "fabric", "--jobs", "mix:1", "--no-simulate",
        "--engine", "minhop", "--engine", "sar-plus", "--out", tmp_path / "o",
    )  # fmt: skip
    said = done.stdout.splitlines()[0]
    assert said.startswith("Repair these first: ") and "4xSDR among 4xEDR" in said
    assert "With this cable as fast as its like, the fullest link would carry" in said
    assert "Repair these first" in (tmp_path / "o" / "index.html").read_text()
