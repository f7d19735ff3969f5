"""Windows of counters: what is believed, what is left out with which sentence, and comparisons."""

from __future__ import annotations

import gzip
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_agent.counters import PortReadings, WindowLeftOut, align, compare
from sar_agent.counters.compare import comparison_words
from sar_agent.counters.counter_files import decode_counter_text, read_growth
from sar_agent.counters.readings import STUCK, WORD, PortTotals, difference
from sar_agent.counters.sources import window_of
from sar_agent.errors import InputError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import F64
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.routing import Options, load_engine
from tests.worlds.db_csv_text import AT, counted, tables_of, written
from tests.worlds.fabric_texts import SMALL

TREE = load_fabric("xgft:2;6,6;1,6")
MIX = JobMix.of([make_job("1", range(0, 36, 5)), make_job("2", range(1, 24, 4))])


def traffic(fabric: Fabric = TREE, mix: JobMix = MIX) -> Traffic:
    return traffic_of(fabric, mix, load_engine("minhop").route(fabric, mix, Options()))


SECONDS = 180.0


def readings(fabric: Fabric, share: F64, hosts: float = 0.0) -> PortReadings:
    """Each channel carried `share` of its speed, both ends count it; HCA ports sent
    the share `hosts`."""
    c, t = fabric.channels, fabric.terminals
    sent = np.rint(share * fabric.channel_rate * 1e9 / 8 * SECONDS).astype(np.uint64)
    ports = c + t
    own = np.rint(hosts * fabric.terminal_rate * 1e9 / 8 * SECONDS).astype(np.uint64)
    zero = np.zeros(ports, np.uint64)
    return PortReadings(
        source="test",
        guid=np.concatenate([fabric.switch_guid[fabric.channel_source], fabric.terminal_node_guid]),
        lid=np.zeros(ports, np.int32),
        port=np.concatenate([fabric.channel_port, fabric.terminal_port_number]).astype(np.int32),
        sent=np.concatenate([sent, own]),
        received=np.concatenate([sent[fabric.channel_reverse], np.zeros(t, np.uint64)]),
        waits=zero + np.uint64(18),
        seconds=np.full(ports, SECONDS),
        age=np.full(ports, 3.0),
        counted=np.ones(ports, np.bool_),
        waits_counted=np.ones(ports, np.bool_),
        stuck=np.zeros(ports, np.bool_),
        went_back=np.zeros(ports, np.bool_),
    )


GOOD = readings(TREE, traffic().load * 0.1, hosts=0.3)
FEW, MANY = slice(0, 1), slice(0, 5)
"""Of 72 channels: one is left out by itself, five are more than one in twenty."""


def changed(where: slice, **values: Any) -> PortReadings:
    arrays = {}
    for name, value in values.items():
        arrays[name] = getattr(GOOD, name).copy()
        arrays[name][where] = value
    return replace(GOOD, **arrays)


WRONG = [
    ({"went_back": True, "counted": False}, "the counter went back"),
    ({"stuck": True}, "a counter of 32 bits stood at its maximum"),
    ({"age": 200.0}, "the counter is of another window"),
    ({"seconds": 400.0}, "the counter is of another window"),
    ({"sent": np.uint64(1) << np.uint64(60)}, "the counter jumped by more than the link can carry"),
]


@pytest.mark.parametrize(("values", "what"), WRONG)
def test_one_bad_port_is_left_out_by_name_and_many_leave_out_the_window(
    values: dict[str, Any], what: str
) -> None:
    window = align(TREE, changed(FEW, **values))
    assert window.notes == (f"{what} on 1 of 72 links, such as {TREE.channel_name(0)}; left out",)
    assert not window.known[0]
    assert window.known[1:].all()
    with pytest.raises(WindowLeftOut) as left_out:
        align(TREE, changed(MANY, **values))
    assert str(left_out.value) == (
        f"test: {what} on 5 of 72 links, such as {TREE.channel_name(0)}; the window is left out"
    )


def test_a_good_window_has_every_byte_where_it_was_counted() -> None:
    window = align(TREE, GOOD)
    assert window.known.all()
    assert window.notes == ()
    assert np.allclose(window.share, traffic().load * 0.1, atol=1e-9)
    assert np.allclose(window.terminal_share, 0.3)
    assert np.allclose(window.waits, 0.1)
    assert (window.seconds, window.ended) == (SECONDS, 3.0)


def test_a_port_that_moved_counts_unlike_the_far_end_of_its_cable() -> None:
    share = np.full(TREE.channels, 0.4)
    good = readings(TREE, share)
    received = good.received.copy()
    received[: TREE.channels] = np.roll(received[: TREE.channels], 1)
    assert align(TREE, replace(good, received=received)).known.all(), "all carry the same"
    for wrong, raises in ((1, False), (12, True)):
        sent = good.sent.copy()
        sent[:wrong] //= np.uint64(5)
        if raises:
            with pytest.raises(WindowLeftOut, match="the two ends of a cable count unlike on 12"):
                align(TREE, replace(good, sent=sent))
        else:
            assert not align(TREE, replace(good, sent=sent)).known[0]


def test_ports_of_another_fabric_and_readings_by_lid() -> None:
    with pytest.raises(WindowLeftOut, match="72 of 72 links are missing"):
        align(TREE, replace(GOOD, guid=GOOD.guid ^ np.uint64(1 << 63)))
    switch_lid, terminal_lid = assign_lids(TREE)
    fabric = replace(TREE, switch_lid=switch_lid, terminal_lid=terminal_lid)
    lids = np.concatenate([fabric.switch_lid[fabric.channel_source], fabric.terminal_lid])
    by_lid = replace(GOOD, guid=np.zeros_like(GOOD.guid), lid=lids.astype(np.int32))
    window = align(fabric, by_lid)
    assert np.array_equal(window.sent, align(TREE, GOOD).sent)
    assert np.allclose(window.terminal_share, 0.3)


def test_as_predicted_is_rank_one_and_a_perturbed_link_is_named() -> None:
    found = traffic()
    comparison = compare(TREE, align(TREE, GOOD), found.load, found)
    assert comparison.rank == pytest.approx(1.0, abs=1e-12)
    assert comparison.top == 1.0
    assert comparison.scale == pytest.approx(0.1)
    assert comparison.hot_links == 0
    quiet = int(np.argmin(np.where(found.load > 0, found.load, np.inf)))
    share = found.load * 0.1
    share[quiet] = 0.8
    more = compare(TREE, align(TREE, readings(TREE, share)), found.load, found)
    assert [link.link for link in more.hot] == [TREE.channel_name(quiet)]
    assert f"{TREE.channel_name(quiet)}: counted 80.0%, explained by jobs" in comparison_words(more)
    assert more.hot[0].counted == pytest.approx(0.8)
    assert more.rank is not None
    assert more.rank < 0.999
    assert more.top == 0.0
    job = next(job for job in more.jobs if job.hottest == pytest.approx(0.8))
    assert job.hottest_link == TREE.channel_name(quiet)


def test_links_of_equal_load_are_equal_whatever_the_order_of_sums_and_mads() -> None:
    """The hottest link by 40 bytes was not among the most loaded by 1e-15, with rank 1."""
    load = np.linspace(0.1, 0.5, TREE.channels)
    load[:5] = 0.9
    share = load * 0.1
    load[1:5] += 1e-15
    good = readings(TREE, share)
    sent = good.sent.copy()
    sent[0] += np.uint64(40)
    comparison = compare(TREE, align(TREE, replace(good, sent=sent)), load)
    assert comparison.rank == pytest.approx(1.0, abs=1e-12)
    assert comparison.top == 1.0


def totals(at: float, sent: list[int], source: str = "x") -> PortTotals:
    n = len(sent)
    return PortTotals(
        source,
        np.arange(1, n + 1, dtype=np.uint64),
        np.zeros(n, np.int32),
        np.ones(n, np.int32),
        np.array(sent, np.uint64),
        np.array(sent, np.uint64),
        np.array(sent, np.uint64),
        np.full(n, at),
    )


def test_differences_of_totals() -> None:
    found = difference(
        totals(100.0, [10, 20, 30]), totals(160.0, [15, 19, WORD * STUCK, 7]), now=170.0
    )
    assert found.sent.tolist() == [5, 0, WORD * STUCK - 30, 0]
    assert found.counted.tolist() == [True, False, True, False]
    assert found.went_back.tolist() == [False, True, False, False]
    assert found.stuck.tolist() == [False, False, True, False]
    assert found.seconds[0] == 60
    assert found.age[0] == 10
    cleared = replace(totals(160.0, [15]), waits=np.array([3], np.uint64))
    found = difference(totals(100.0, [10]), cleared, 170.0)
    assert (found.sent.tolist(), found.waits.tolist()) == ([5], [0])
    assert found.counted.tolist() == [True] and found.waits_counted.tolist() == [False]
    with pytest.raises(WindowLeftOut, match="is not later than"):
        difference(totals(100.0, [1]), totals(100.0, [2]), 100.0)
    with pytest.raises(WindowLeftOut, match="x has no counter of a port"):
        difference(totals(100.0, []), totals(101.0, [2]), 101.0)


PERFQUERY = """\
# Port extended counters: Lid 7 port 1 (CapMask: 0x1300)
PortSelect:......................1
CounterSelect:...................0x0000
PortXmitData:....................{0}
PortRcvData:.....................3
PortXmitPkts:....................9
# Port counters: Lid 7 port 2 (CapMask: 0x1300)
PortXmitData:....................11
PortXmitWait:....................5
# Port extended counters: Lid 7 port 255
PortXmitData:....................1000000
"""
IBDIAGNET = """\
---------------------------------------------
Port=3 Lid=0x0007 GUID=0x248a070300f88ff0 Device=52000 Port Name=sw1/P3
---------------------------------------------
link_down_counter=0x0
port_xmit_data=0xffffffff
port_xmit_wait=0x10
port_xmit_data_extended=0x200000000
port_rcv_data_extended=NA
"""


def test_perfquery_s_output() -> None:
    found = decode_counter_text(PERFQUERY.format(12), "p.txt", 5.0)
    assert (found.lid.tolist(), found.port.tolist()) == ([7, 7], [1, 2])
    assert found.sent.tolist() == [48, 44]
    assert found.received.tolist() == [12, 0]
    assert found.waits.tolist() == [0, 5]


def test_ibdiagnet_s_dump() -> None:
    found = decode_counter_text(IBDIAGNET, "ibdiagnet2.pm", 5.0)
    assert found.guid.tolist() == [0x248A070300F88FF0]
    assert found.port.tolist() == [3]
    assert found.sent.tolist() == [4 * 0x200000000]
    assert found.waits.tolist() == [16]


def test_files_that_are_none() -> None:
    with pytest.raises(InputError, match=r"^f: has no counter of a port; give the output"):
        decode_counter_text("hello\n", "f", 0.0)
    with pytest.raises(InputError, match=r"^f: has no counter of a port \(1 line was passed over"):
        decode_counter_text("Port=1 Lid=x\nport_xmit_data=1\n", "f", 0.0)


def test_a_bad_line_is_passed_over() -> None:
    found = decode_counter_text(PERFQUERY.format(1 << 64), "f", 0.0)
    assert (found.port.tolist(), found.sent.tolist()) == ([2], [44])
    assert found.notes == (
        "f: 1 line was passed over, the first is line 4 (PortXmitData is no counter of 64 bits)",
    )
    found = decode_counter_text(IBDIAGNET + "Port=4 Lid=\nport_xmit_data=0x1\n", "f", 0.0)
    assert found.sent.tolist() == [4 * 0x200000000]
    assert found.notes == ("f: 1 line was passed over, the first is line 9 (names no port)",)


WIDE = "PortXmitData,PortRcvData,PortXmitWait,PortXmitDataExtended,PortRcvDataExtended"
GUID = 0x248A070300F88FF0


def test_ibdiagnet_s_db_csv() -> None:
    tables = tables_of(SMALL)
    rows: list[list[object]] = [[GUID, 3, 4294967295, 7, 16, 1 << 33, "N/A"], [GUID, 4, 11, 2]]
    rows += [[GUID, 5, "-1", 2, 3, "N/A", "ERR"], [GUID, 6, 9, 2, 1, 1 << 64, 1]]
    rows[1] += [0, 5, "0x3"]
    tables["PM_INFO"] = counted(WIDE, rows)
    text = written(tables)
    line = text[: text.index(str(1 << 64))].count("\n") + 1
    found = decode_counter_text(text, "d", 5.0)
    assert (found.guid.tolist(), found.port.tolist()) == ([GUID] * 2, [3, 4])
    assert found.sent.tolist() == [4 << 33, 20]
    assert found.received.tolist() == [28, 12]
    assert found.waits.tolist() == [16, 0]
    assert found.at.tolist() == [AT, AT]  # not when the file was written
    assert found.notes == (
        f"d: 1 line was passed over, the first is line {line} (PM_INFO: '18446744073709551616' is "
        "no number of 0 … 18446744073709551615)",
    )


@pytest.mark.parametrize(
    ("args", "stage", "wanted"),
    [
        ("", None, 1.0), ("-o /tmp --pm_pause_time 60", None, 60.0),
        ("-pm_pause_time 5 -r", "7.000000", 6.0), ("", "x", 1.0), ("", "1.2", 1.1),
    ],
)  # fmt: skip
def test_one_db_csv_is_a_window(
    tmp_path: Path, args: str, stage: str | None, wanted: float
) -> None:
    tables = tables_of(SMALL)
    tables["RUN_INFO"][1][0][2] = f'"{args}"'
    tables["PM_INFO"] = counted(WIDE, [[GUID, 3, 100, 7, 1, 500, 1], [GUID, 4, STUCK, 0, 0, 0, 0]])
    tables["PM_DELTA"] = counted(WIDE, [[GUID, 3, 50, 6, 2, 60, 3], [GUID, 4, 0, 0, 0, "N/A", 0]])
    if stage:
        tables["STAGE_PERF_INFO"] = "Name,Real,User,Sys", [["Port Counters", stage, 1, 1]]
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(written(tables).encode()))
    found = read_growth(path)
    assert found is not None
    assert found.sent.tolist() == [240, 0]
    assert found.stuck.tolist() == [False, True]
    assert found.received.tolist() == [12, 0]
    assert found.waits.tolist() == [2, 0]
    assert found.seconds.tolist() == pytest.approx([wanted] * 2)
    again = read_growth(path, 30.0)
    assert again is not None
    assert again.seconds.tolist() == [30.0] * 2
    (tmp_path / "ibdiagnet2.db_csv").write_text(written(tables))
    assert read_growth(tmp_path) is not None
    del tables["PM_DELTA"]
    path.write_text(written(tables))
    assert read_growth(path) is None


def test_two_files_are_a_window_and_one_server_is_the_last_minutes(tmp_path: Path) -> None:
    now = time.time()
    for name, at, sent in (("a", now - 200, 100), ("b", now - 20, 1100)):
        path = tmp_path / name
        path.write_text(PERFQUERY.format(sent))
        os.utime(path, (at, at))
    begin, end = (str(tmp_path / name) for name in "ab")
    found = window_of([begin, end])
    assert found is not None and found.sent.tolist() == [4000, 0]
    assert found.seconds[0] == pytest.approx(180, abs=0.01)
    assert found.age[0] == pytest.approx(0, abs=0.01)
    found = window_of([begin, end], 90.0)
    assert found is not None and found.seconds[0] == 90
    nobody = "http://127.0.0.1:9"
    assert window_of([begin, nobody]) is None, "they have no common window"
    with pytest.raises(Unavailable, match="Prometheus does not answer"):
        window_of([nobody])


def test_the_time_of_ibdiagnet_s_dump_is_in_its_heading(tmp_path: Path) -> None:
    """A copy has another file time. `File created at` is nearer to the reading than the other."""
    began, dump = "# Running timestamp : 2026-01-01 09:59:00 UTC +0000\n", IBDIAGNET
    for name, minute, more in (("b", 5, 0x1000), ("a", 0, 0)):
        made = f"# File created at   : 2026-01-01 12:{minute:02d}:00 EET +0200\n"
        grown = dump.replace("0x200000000", hex(0x200000000 + more))
        (tmp_path / name).write_text(began + made + grown)
    os.utime(tmp_path / "b", (5.0, 5.0))  # a copy
    found = window_of([str(tmp_path / "a"), str(tmp_path / "b")])
    assert found is not None
    assert (found.seconds.tolist(), found.sent.tolist()) == ([300.0], [4 * 0x1000])
    at = 1767261540.0
    assert decode_counter_text(began + dump, "x", 5.0).at.tolist() == [at]
    csv = written(tables_of(SMALL) | {"PM_INFO": counted(WIDE, [[GUID, 3, 1, 7, 16, 2, 3]])})
    csv = began + re.sub(r"(?s)START_RUN_INFO.*END_RUN_INFO\n", "", csv)
    assert set(decode_counter_text(csv, "x", 5.0).at.tolist()) == {at}
