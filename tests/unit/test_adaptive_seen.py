"""What dumps tell of adaptive routing, and whose traffic follows the tables after all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.adaptive_dumps import SwitchSettings, read_adaptive_dump
from sar_agent.formats.export import export_routes
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.reports.adaptive import AdaptiveReport, adaptive_report
from sar_agent.routing import Options, load_engine
from tests.worlds.command_line import sar_agent
from tests.worlds.table_texts import as_far

TREE = load_fabric("xgft:2;4,4;1,2")
ROUTES = load_engine("ftree").route(TREE, JobMix(()), Options())
MIX = JobMix((make_job("7", (0, 1, 4, 5)), make_job("8", (8, 12))))
HEAD = (
    "NodeGUID,e,is_arn_sup,by_sl_cap,by_sl_en,enable_by_sl_mask,by_transport_disable,"
    "is_hbf_supported,by_sl_hbf_en,enable_by_sl_mask_hbf"
)


def traffic() -> Traffic:
    return traffic_of(TREE, MIX, ROUTES)


def csv_of(rows: dict[int, str]) -> str:
    """AR_INFO: switch → `e,…` as in `HEAD`."""
    lines = [f"0x{int(TREE.switch_guid[s]):016x},{row}" for s, row in rows.items()]
    text = "\n".join(["START_AR_INFO", HEAD, *lines, "END_AR_INFO", ""])
    return f"START_NODES\nNodeDesc,NumPorts\nEND_NODES\n\n{text}"


def report(folder: Path, **files: str) -> AdaptiveReport:
    for name, text in files.items():
        (folder / name).write_text(text)
    return adaptive_report(traffic(), [read_adaptive_dump(folder / name) for name in files])


ON = "1,0,1,1,0x00ff,5,1,0,0"
OFF = "0,0,1,0,0,0,0,0,0"


def test_settings_of_switches_and_contradictions(tmp_path: Path) -> None:
    rows = dict.fromkeys(range(TREE.switches), ON) | {1: "1,0,1,1,0xf,5,1,1,3", 2: OFF}
    conf = "# made by hand\nrouting_engine ar_updn\nar_sl_mask 0xFFFF\nhbf_sl_mask 0x4\n"
    found = report(tmp_path, csv=csv_of(rows), conf=conf)
    assert found.settings == (
        "opensm.conf has ar_updn, service levels all, RC, DC; by a hash of the flow 2",
        f'on at 5 of 6 switches, not at "{TREE.switch_name[2]}"',
        "service levels 0-7 on 4 switches",
        "not for UD, UC on 5 switches",
    )
    odd = f'"{TREE.switch_name[1]}"'
    assert found.contradictions == (
        "service levels 2 are in ar_sl_mask and in hbf_sl_mask",
        f"{odd} has service levels 0-3, most have 0-7",
        "ar_sl_mask of opensm.conf has all, switches have 0-7",
        f"{odd} has hashed service levels 0-1, most have none",
        "hbf_sl_mask of opensm.conf has 2, switches have none",
    )


def test_a_job_follows_tables_where_no_switch_that_sends_it_on_adapts(tmp_path: Path) -> None:
    jobs = {each.id: each.terminals for each in MIX.jobs}
    of_8 = {int(TREE.terminal_switch[t]) for t in jobs["8"]}
    spines = {s for s in range(TREE.switches) if not TREE.terminals_at[s]}
    rows = {s: OFF if s in of_8 | spines else ON for s in range(TREE.switches)}
    found = report(tmp_path, csv=csv_of(rows))
    assert found.follow_tables == ("8",) and not found.contradictions
    assert "1 of 2 jobs pass switches that route adaptively; by tables alone: 8" in found.words()
    assert report(tmp_path, csv=csv_of(dict.fromkeys(rows, OFF))).follow_tables == ("7", "8")


def test_groups_and_entries_of_far(tmp_path: Path) -> None:
    export_routes(tmp_path, TREE, ROUTES, ["ibdm"])
    text = as_far((tmp_path / "fdbs").read_text())
    dump = tmp_path / "far"
    dump.write_text(text)
    found = read_adaptive_dump(dump)
    assert len(found.groups) == TREE.switches
    assert all(groups == {0: {1, 2}, 1: set()} for groups in found.groups.values())
    assert sum(map(len, found.entries.values())) == text.count("Free")
    said = adaptive_report(traffic(), [found])
    assert said.settings == (f"{text.count('Free')} entries on 6 of 6 switches are adaptive",)
    outside = sum(port not in (1, 2) for of in found.entries.values() for port, _ in of.values())
    assert said.contradictions[0].startswith(f"{outside} entries name a group without their port:")
    dump.write_text(text.replace("Free\t\t0", "Free\t\t1").replace("Free\t0", "Free\t1"))
    said = adaptive_report(traffic(), [read_adaptive_dump(dump)])
    assert "entries name a group without ports" in said.contradictions[0]
    dump.write_text(text.replace("Free", "Static"))
    (tmp_path / "csv").write_text(csv_of(dict.fromkeys(range(TREE.switches), ON)))
    said = adaptive_report(traffic(), [*map(read_adaptive_dump, (dump, tmp_path / "csv"))])
    assert said.contradictions[-1].startswith("switched on, but without an adaptive entry: ")
    assert said.follow_tables == ("7", "8")


def test_an_engine_without_adaptive_routing(tmp_path: Path) -> None:
    found = report(tmp_path, conf="routing_engine ftree\nar_sl_mask 0x1\n")
    assert found.contradictions == (
        "routing_engine ftree has no adaptive routing, so the masks have no effect",
    )
    assert found.follow_tables is None


@pytest.mark.parametrize("text", ["routing_engine minhop\n", "nothing\n", "START_NODES\n"])
def test_files_that_say_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(InputError, match="says nothing of adaptive routing"):
        read_adaptive_dump(tmp_path / "file")


def test_bad_rows_are_passed_over_and_other_fabrics_refused(tmp_path: Path) -> None:
    (tmp_path / "csv").write_text(csv_of({0: ON, 1: ON.replace("0x00ff", "0xfffff")}))
    found = read_adaptive_dump(tmp_path / "csv")
    assert found.switches == {int(TREE.switch_guid[0]): SwitchSettings(True, 255, 0, 5)}
    assert "1 line was passed over" in found.notes[0]
    (tmp_path / "csv").write_text(csv_of({0: ON}).replace(f"{int(TREE.switch_guid[0]):016x}", "7"))
    with pytest.raises(InputError, match=r"no switch of .* is in"):
        adaptive_report(traffic(), [read_adaptive_dump(tmp_path / "csv")])


def test_measure_prints_it(tmp_path: Path) -> None:
    (tmp_path / "csv").write_text(csv_of(dict.fromkeys(range(TREE.switches), ON)))
    sar_agent("route", "--fabric", "xgft:2;4,4;1,2", "--engine", "ftree", "--jobs", "mix:1",
              "--out", tmp_path / "routes")  # fmt: skip
    arguments = ["measure", "--fabric", "xgft:2;4,4;1,2", "--jobs", "mix:1", "--routes",
                 tmp_path / "routes", "--adaptive", tmp_path / "csv"]  # fmt: skip
    assert "adaptive routing: on at 6 of 6 switches" in sar_agent(*arguments).stdout
    assert json.loads(sar_agent(*arguments, "--json").stdout)["adaptive"]["contradictions"] == []
