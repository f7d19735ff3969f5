"""Windows of counters: what is believed, what is left out with which sentence, and comparisons."""

from __future__ import annotations

import gzip
import logging
import os
import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sar_agent.agent.history import DecisionLog, History
from sar_agent.agent.observers.counters import CountedTraffic
from sar_agent.agent.outcome import Report, Result
from sar_agent.config.model import ConfigError, parse_config
from sar_agent.counters import PortReadings, WindowLeftOut, align, compare
from sar_agent.counters.counter_files import (
    FileCounters,
    decode_counter_text,
    read_growth,
)
from sar_agent.counters.last_window import LastWindow, comparison_words
from sar_agent.counters.plugin_file import decode_counters, read_counters_file
from sar_agent.counters.readings import STUCK, WORD, PortTotals, difference
from sar_agent.counters.sources import counter_source
from sar_agent.errors import InputError, SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.routing import Options, load_engine
from sar_agent.telemetry.declare import PREFIX
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.problem_log import ProblemLog
from tests.worlds.counted_fabric import SECONDS, readings
from tests.worlds.db_csv_text import AT, counted, tables_of, written
from tests.worlds.fabric_texts import SMALL
from tests.worlds.live.built import built

TREE = load_fabric("xgft:2;6,6;1,6")
MIX = JobMix.of([make_job("1", range(0, 36, 5)), make_job("2", range(1, 24, 4))])


def traffic(fabric: Fabric = TREE, mix: JobMix = MIX) -> Traffic:
    return traffic_of(fabric, mix, load_engine("minhop").route(fabric, mix, Options()))


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


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^f: has no counter of a port; give the output"):
        decode_counter_text("hello\n", "f", 0.0)
    with pytest.raises(InputError, match=r"^f: has no counter of a port \(1 line was passed over"):
        decode_counter_text("Port=1 Lid=x\nport_xmit_data=1\n", "f", 0.0)
    with pytest.raises(Unavailable, match=r"has 0 files, and a window needs two"):
        FileCounters(str(tmp_path / "*.txt")).read()


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


def test_two_files_are_a_window(tmp_path: Path) -> None:
    now = time.time()
    for name, at, sent in (("a", now - 300, 1), ("b", now - 200, 100), ("c", now - 20, 1100)):
        path = tmp_path / name
        path.write_text(PERFQUERY.format(sent))
        os.utime(path, (at, at))
    found = FileCounters(str(tmp_path / "*")).read()
    assert found.sent.tolist() == [4000, 0]
    assert found.seconds[0] == pytest.approx(180, abs=0.01)
    assert found.age[0] == pytest.approx(20, abs=5)


def test_the_time_of_ibdiagnet_s_dump_is_in_its_heading(tmp_path: Path) -> None:
    """A copy has another file time. `File created at` is nearer to the reading than the other."""
    began, dump = "# Running timestamp : 2026-01-01 09:59:00 UTC +0000\n", IBDIAGNET
    for name, minute, more in (("b", 5, 0x1000), ("a", 0, 0)):
        made = f"# File created at   : 2026-01-01 12:{minute:02d}:00 EET +0200\n"
        grown = dump.replace("0x200000000", hex(0x200000000 + more))
        (tmp_path / name).write_text(began + made + grown)
    os.utime(tmp_path / "b", (5.0, 5.0))  # copied in the wrong order
    found = FileCounters(str(tmp_path / "*")).read()
    assert (found.seconds.tolist(), found.sent.tolist()) == ([300.0], [4 * 0x1000])
    at = 1767261540.0
    assert decode_counter_text(began + dump, "x", 5.0).at.tolist() == [at]
    csv = written(tables_of(SMALL) | {"PM_INFO": counted(WIDE, [[GUID, 3, 1, 7, 16, 2, 3]])})
    csv = began + re.sub(r"(?s)START_RUN_INFO.*END_RUN_INFO\n", "", csv)
    assert set(decode_counter_text(csv, "x", 5.0).at.tolist()) == {at}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Written by the plugin's own writer."""
    path = tmp_path_factory.mktemp("counters") / "counters.sar"
    program = built("opensm_bridge", "test_port_counters")
    subprocess.run([program, path, "72"], check=True, capture_output=True)
    return path.read_bytes()


def test_the_plugin_s_file(image: bytes, tmp_path: Path) -> None:
    found = decode_counters(image)
    assert len(found.port) == 72 + 10 * 36
    assert found.identity == "sweep 3"
    assert found.counted.all()
    assert (found.seconds == 180).all()
    assert (found.age == 1).all()
    switches = found.guid < 1 << 40
    assert (
        found.sent[switches] == WORD * (1000 * found.guid + found.port.astype(np.uint64))[switches]
    ).all()
    assert found.waits_counted.tolist() == switches.tolist()
    with pytest.raises(InputError, match="cannot be read"):
        read_counters_file(tmp_path / "none")


class Source:
    """Gives what it is told to."""

    def __init__(self, given: PortReadings | SarError) -> None:
        self.given = given

    def read(self) -> PortReadings:
        if isinstance(self.given, SarError):
            raise self.given
        return self.given


def test_the_agent_compares_each_window_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    metrics, found = Metrics("0", "observe", "minhop"), traffic()
    routes = load_engine("minhop").route(TREE, MIX, Options())
    in_force = SimpleNamespace(routes=routes, status=SimpleNamespace(ours=False))
    site: Any = SimpleNamespace(fabric=TREE, mix=MIX, in_force=in_force, records=())
    current: Any = SimpleNamespace(measures=SimpleNamespace(channel_load=found.load), state=None)
    problems = ProblemLog(logging.getLogger("x"))
    source = Source(Unavailable("no answer"))
    config = parse_config("")
    counted = LastWindow()
    decisions = DecisionLog(History(Path("no folder")), "agent", problems)
    parts: Any = SimpleNamespace(
        config=config,
        metrics=metrics,
        problems=[problems],
        committer=SimpleNamespace(decisions=decisions),
        window=counted,
    )
    observer = CountedTraffic(parts)
    observer.source = source

    def observe() -> None:
        observer.after_pass(current, site, Report(Result.NOTHING, ""))

    def value(name: str) -> float | None:
        return metrics.registry.get_sample_value(PREFIX + name, {"source": "off"})

    observe()
    assert counted.summary() is None
    assert value("counters_usable") == 0
    source.given = GOOD
    observe()
    assert "loads were predicted for 0 s of a window of 180 s only" in caplog.text
    clock[0] += SECONDS + 3
    observe()
    assert counted.summary() == {
        "rank": pytest.approx(1.0),
        "top": 1.0,
        "counted_max": pytest.approx(found.load.max() * 0.1),
        "hot_links": 0,
    }
    assert value("counters_usable") == 1
    assert value("prediction_rank_correlation") == pytest.approx(1.0)
    first = counted.comparison
    observe()
    assert counted.comparison is first, "the same window is not compared again"

    for n, link in enumerate((3, 4)):
        share = found.load * 0.1
        share[link] = 0.9
        source.given = replace(readings(TREE, share), identity=f"hot {n}")
        observe()
        assert f"hot but not predicted: {TREE.channel_name(link)} carried 90%" in caplog.text
        assert value("unexplained_hot_links") == 1
    assert counted.comparison is not None
    assert TREE.channel_name(4) in comparison_words(counted.comparison)
    source.given = replace(readings(TREE, np.zeros(TREE.channels)), identity="idle")
    observe()
    assert value("prediction_rank_correlation") is None, "all links carried the same"
    assert value("unexplained_hot_links") == 0


def test_the_settings_of_files() -> None:
    with pytest.raises(ConfigError, match="give an absolute pattern"):
        parse_config('[counters]\nsource = "files"\n')
    assert counter_source(parse_config("")) is None
    made = counter_source(parse_config('[counters]\nsource = "files"\nfiles = "/x/*"\n'))
    assert isinstance(made, FileCounters)
