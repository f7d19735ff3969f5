"""Bad cables with their jobs, and since when; a day without faults has no event."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import parse_qs

import numpy as np
import pytest

from sar_agent.counters.lost_bandwidth import lost_gbits
from sar_agent.counters.port_errors import PortErrors
from sar_agent.demand.endpoints import mix_of_records
from sar_agent.fabric import Fabric
from sar_agent.fabric.odd_cables import cable_name
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.record import JobRecord
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.routing import Options, load_engine
from sar_agent.services.cable_watch import growth as growth_module
from sar_agent.services.cable_watch.growth import Growth, GrowthReader
from sar_agent.services.cable_watch.page_box import cable_box, lost_by_job
from sar_agent.services.cable_watch.watch import CableEvent, CableWatch
from tests.data import data_path
from tests.worlds.rude_server import rude_server, says

TREE = load_fabric("xgft:2;4,8;1,4")
JOBS = {"7": [0, 1, 4, 5], "8": [2, 6]}


def site(fabric: Fabric = TREE) -> SiteDumps:
    records = tuple(
        JobRecord(job, tuple(TREE.terminal_host[t] for t in terminals), "RUNNING")
        for job, terminals in JOBS.items()
    )
    mix = mix_of_records(fabric, records).mix
    routes = load_engine("minhop").route(fabric, mix, Options())
    return SiteDumps(fabric, records, mix, routes)


def counted(channel: int, at: float | None = None, **counts: int) -> Growth:
    """Errors at the port where the channel begins."""
    guid = int(TREE.switch_guid[TREE.channel_source[channel]])
    place = guid, 0, int(TREE.channel_port[channel])
    return Growth(PortErrors("x", {place: counts}, (), at or time.time()), None)


def busy_channel(dumps: SiteDumps) -> int:
    return int(np.argmax(dumps.traffic.load))


def said(events: list[CableEvent]) -> list[tuple[bool, str]]:
    return [(event.bad, event.cable.kind) for event in events]


def test_a_cable_with_errors_is_bad_within_its_window_with_its_jobs_and_then_well():
    watch, dumps = CableWatch(), site()
    c = busy_channel(dumps)
    assert watch.look(dumps, None) == [] == watch.look(dumps, counted(c, symbol_errors=9))
    (event,) = watch.look(dumps, counted(c, symbol_errors=10))
    assert event.bad and event.cable.kind == "errors"
    assert event.cable.sentence.startswith(f"{cable_name(TREE, c)}: 10 symbol errors at ")
    over = {j.job for way in (c, int(TREE.channel_reverse[c])) for j in dumps.jobs_over(way)}
    assert set(event.cable.jobs) == over and over
    assert watch.look(dumps, counted(c, symbol_errors=500)) == [], "it is bad still"
    (bad,) = watch.bad.values()
    assert bad.since == event.cable.since and "500 symbol errors" in bad.sentence
    (end,) = watch.look(dumps, counted(c, symbol_errors=1))
    assert not end.bad and end.cable.since == event.cable.since and not watch.bad


def test_discards_alone_and_a_host_that_reboots_are_no_bad_cable():
    watch, dumps, now = CableWatch(), site(), time.time()
    assert watch.look(dumps, counted(0, now - 9, discards=10**6, link_downed=2)) == []
    assert not watch.bad


def test_a_link_that_goes_down_again_and_again_flaps_for_an_hour():
    watch, dumps, now = CableWatch(), site(), time.time()
    for ago in (3000, 2000):
        assert watch.look(dumps, counted(3, now - ago, link_downed=1)) == []
    assert watch.look(dumps, counted(3, now - 2000, link_downed=1)) == [], "the same window"
    (event,) = watch.look(dumps, counted(3, now - 10, link_downed=1))
    assert event.bad and event.cable.kind == "flapping"
    assert "3 link downed at" in event.cable.sentence and "within an hour" in event.cable.sentence
    later = counted(3, now, link_downed=0)
    watch._downs.clear()
    assert said(watch.look(dumps, later)) == [(False, "flapping")]


def without(channel: int) -> Fabric:
    up = TREE.channel_up.copy()
    up[[channel, int(TREE.channel_reverse[channel])]] = False
    return replace(TREE, channel_up=up)


def test_a_cable_that_is_pulled_is_missing_with_the_jobs_that_led_over_it():
    watch, dumps = CableWatch(), site()
    c = busy_channel(dumps)
    over = {j.job for way in (c, int(TREE.channel_reverse[c])) for j in dumps.jobs_over(way)}
    watch.look(dumps, None)
    events = watch.look(site(without(c)), None)
    missing = [e.cable for e in events if e.cable.kind == "missing"]
    assert len(missing) == 1 and set(missing[0].jobs) == over
    assert {e.cable.kind for e in events} == {"missing", "degraded"}, "a leaf has one way up less"
    assert all(not event.bad for event in watch.look(dumps, None)) and not watch.bad


def slow(channel: int) -> Fabric:
    rate = TREE.channel_rate.copy()
    rate[[channel, int(TREE.channel_reverse[channel])]] /= 4
    return replace(TREE, channel_rate=rate)


def test_what_was_so_when_the_agent_first_looked_is_no_event_and_what_becomes_so_is():
    c = busy_channel(site())
    old = CableWatch()
    assert old.look(site(slow(c)), None) == []
    assert {cable.kind for cable in old.bad.values()} == {"unlike"}
    assert said(old.look(site(), None)) == [(False, "unlike")]
    assert said(old.look(site(slow(c)), None)) == [(True, "degraded")], "once repaired, it is new"
    new = CableWatch()
    new.look(site(), None)
    (event,) = new.look(site(slow(c)), None)
    assert event.cable.kind == "degraded" and event.cable.jobs


def test_lost_bandwidth_is_ticks_of_eight_bytes_and_at_most_the_link_s_speed():
    waits = np.zeros(TREE.channels)
    waits[:3] = 1e8, 1e12, np.nan  # 1e8 ticks of 8 bytes a second: 6.4 Gbit/s
    lost = lost_gbits(TREE, waits)
    assert lost[0] == pytest.approx(6.4) and lost[1] == TREE.channel_rate[1] and np.isnan(lost[2])
    assert lost_gbits(TREE, waits, 32)[0] == pytest.approx(25.6)


def test_the_box_names_cables_jobs_and_what_links_lose():
    watch, dumps = CableWatch(), site()
    c = busy_channel(dumps)
    watch.look(dumps, counted(c, symbol_errors=99))
    lost = np.zeros(TREE.channels)
    lost[c] = TREE.channel_rate[c] / 4
    box = cable_box(watch.bad, dumps, lost, lost_by_job(dumps, lost), "http://p:9090", 1e9)
    assert "99 symbol errors" in box.wrong and ", under job" in box.wrong
    kinds = [row[1] for row in box.rows]
    over = {job.job for job in dumps.jobs_over(c)}
    assert box.head == "Cables: 1 bad" and kinds == ["errors", *["waits"] * (1 + len(over))]
    of_jobs = box.rows[2:]
    assert {row[3] for row in of_jobs} == over
    gbits = f"{TREE.channel_rate[c] / 4:.1f} Gbit/s"
    assert all(row[0].startswith("all links of job") and gbits in row[0] for row in of_jobs)
    assert all("7" in row[3] or "8" in row[3] for row in box.rows)
    assert "by waiting" in box.rows[1][0] and box.note.startswith("Counters until 2001-09-09")
    others = {**watch.bad, ("errors", "x"): replace(next(iter(watch.bad.values())))}
    twice = cable_box(others, dumps, lost, {}, "", 0.0).wrong
    assert twice.endswith("; 1 more cable with errors, too")
    assert "No counters are read" in cable_box({}, dumps, None, {}, "", 0.0).note


def prometheus(
    now: dict[str, float], then: dict[str, float]
) -> Callable[[str, socket.socket], None]:
    """A server whose series (as JSON of their labels) have other values a minute ago."""

    def answer(text: str, peer: socket.socket) -> None:
        form = parse_qs(text.partition("\r\n\r\n")[2])
        at = float(form["time"][0])
        values = now if at > time.time() - 60 else then
        names = form["query"][0]
        found = [
            {"metric": json.loads(labels), "value": [at, str(value)]}
            for labels, value in values.items()
            if json.loads(labels)["__name__"] in names
        ]
        body = json.dumps({"status": "success", "data": {"result": found}}).encode()
        says("200 OK", body)(text, peer)

    return answer


def series(name: str, channel: int, **labels: str) -> str:
    guid = f"0x{int(TREE.switch_guid[TREE.channel_source[channel]]):016x}"
    port = str(TREE.channel_port[channel])
    return json.dumps({"__name__": name, "guid": guid, "port": port, **labels})


SYMBOLS, DOWNED = (
    f"infiniband_switch_port_{n}_total" for n in ("symbol_error", "link_downed")
)  # fmt: skip


def test_a_server_s_window_is_by_series_and_counters_that_go_back_count_whole():
    a, b = series(SYMBOLS, 0), series(SYMBOLS, 1)
    new = series(SYMBOLS, 2)
    with rude_server(prometheus({a: 125, b: 3, new: 900}, {a: 100, b: 5000})) as server:
        reader = GrowthReader(server.url, 180.0)
        reader.read(TREE, wait=True)
    assert reader.problem == "" and reader.last is not None and not reader.stale
    assert sorted(of["symbol_errors"] for of in reader.last.errors.counts.values()) == [3, 25]
    (note,) = [note for note in reader.last.notes if "went back" in note]
    assert f"port {TREE.channel_port[1]}" in note and "counts from 0" in note


def test_two_exporters_that_disagree_are_one_note_and_the_larger_counts():
    a, b = series(DOWNED, 0, job="one"), series(DOWNED, 0, job="two")
    with rude_server(prometheus({a: 9, b: 4}, {a: 4, b: 4})) as server:
        reader = GrowthReader(server.url, 180.0)
        reader.read(TREE, wait=True)
    assert reader.last is not None
    assert [of["link_downed"] for of in reader.last.errors.counts.values()] == [5]
    assert any("exporters disagree on 1 counters: link downed of" in n for n in reader.last.notes)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (says("200 OK", b"<html>sign in</html>"), "sent a web page"),
        (says("302 Found", b"", "Location: http://sso/"), "redirects to http://sso/"),
        (says("401 Unauthorized", b"no"), "answered HTTP 401: no"),
        (says("200 OK", b'{"data": {"result": [{}]}}'), "not an answer of Prometheus"),
        (says("200 OK", b'{"data": {"result": []}}'), "has no error counters of InfiniBand"),
        (prometheus({series(SYMBOLS, 0): 1}, {}), "has no counters of 180 s ago yet"),
    ],
)
def test_what_a_server_does_wrong_is_one_sentence_and_stale(answer, why):
    with rude_server(answer) as server:
        reader = GrowthReader(server.url, 180.0)
        reader.read(TREE, wait=True)
    assert reader.last is None and why in reader.stale and "\n" not in reader.stale


def test_a_reading_that_ends_is_stale_after_three_windows(monkeypatch):
    a = series(SYMBOLS, 0)
    with rude_server(prometheus({a: 2}, {a: 1})) as server:
        reader = GrowthReader(server.url, 180.0)
        reader.read(TREE, wait=True)
    reader._due = 0.0
    reader.read(TREE, wait=True)
    assert "does not answer" in reader.problem and not reader.stale
    later = time.time() + 700
    monkeypatch.setattr(growth_module.time, "time", lambda: later)
    assert "does not answer" in reader.stale and "the last window ended 7" in reader.stale


QUERYERRORS = "   GUID 0x{:016x} port {}: [SymbolErrorCounter == {}]\n"


def test_a_dump_that_is_written_again_is_a_window(tmp_path):
    file, port = tmp_path / "errors.txt", (int(TREE.switch_guid[0]), 1)
    file.write_text(QUERYERRORS.format(*port, 100))
    reader = GrowthReader(str(file), 180.0)
    reader.read(TREE, wait=True)
    assert reader.last is None and reader.stale == ""
    time.sleep(0.01)
    file.write_text(QUERYERRORS.format(*port, 140))
    reader._due = 0.0
    reader.read(TREE, wait=True)
    assert reader.problem == "" and reader.last is not None
    assert [of["symbol_errors"] for of in reader.last.errors.counts.values()] == [40]
    time.sleep(0.01)
    file.write_text(QUERYERRORS.format(*port, 6))
    reader._due = 0.0
    reader.read(TREE, wait=True)
    assert [of["symbol_errors"] for of in reader.last.errors.counts.values()] == [6]
    assert any("symbol errors of port 1 of 0x" in n for n in reader.last.notes)
    file.write_text("no counters\n")
    reader._due = 0.0
    reader.read(TREE, wait=True)
    assert "names no port" in reader.problem and reader.last is not None


def test_a_dump_of_a_machine_whose_clock_is_ahead_is_one_sentence(tmp_path):
    file = tmp_path / "errors.txt"
    file.write_text(QUERYERRORS.format(int(TREE.switch_guid[0]), 1, 100))
    later = time.time() + 3600
    os.utime(file, (later, later))
    reader = GrowthReader(str(file), 180.0)
    reader.read(TREE, wait=True)
    assert reader.last is None and "the clock of the machine that wrote it" in reader.stale


CAPTURES = ("small-2014", "dgx-ndr", "selene-storage", "director-notabs", "psmn-x5")


@pytest.mark.data
@pytest.mark.parametrize("name", CAPTURES)
def test_a_day_of_a_real_fabric_has_no_event_and_a_planted_bad_cable_has_one_in_its_window(name):
    """480 windows: single errors on any port, hosts that reboot, switches that throw away packets;
    then a cable with errors, under jobs."""
    draw, begin = np.random.default_rng(7), time.time() - 86400
    fabric = load_fabric(data_path(f"{name}.ibnetdiscover"))
    hosts = [host for host, ports in fabric.job_ports.items() if ports][:96]
    jobs = [JobRecord(str(n), tuple(hosts[n::3]), "RUNNING") for n in range(3)]
    mix = mix_of_records(fabric, jobs).mix
    routes = load_engine("minhop").route(fabric, mix, Options())
    dumps = SiteDumps(fabric, tuple(jobs), mix, routes)
    dumps = replace(dumps, predicted=dumps.traffic)
    watch, events = CableWatch(), list[CableEvent]()
    ends = [(int(fabric.switch_guid[s]), 0, int(p))
            for s, p in zip(fabric.channel_source, fabric.channel_port, strict=True)]  # fmt: skip
    ends += [(int(fabric.switch_guid[s]), 0, int(p)) for s, p in
             zip(fabric.terminal_switch, fabric.terminal_switch_port, strict=True)]  # fmt: skip
    for number in range(480):
        errors = {
            ends[i]: {"symbol_errors": int(draw.integers(1, 4)), "discards": 5000}
            for i in draw.integers(0, len(ends), 4)
        }
        if number % 24 == 0:
            host = int(draw.integers(fabric.channels, len(ends)))
            errors[ends[host]] = {"link_downed": 2}
        at = begin + 180 * (number + 1)
        events += watch.look(dumps, Growth(PortErrors("x", errors, (), at), None))
    assert events == []
    c = int(np.argmax(dumps.traffic.load))
    bad = {ends[c]: {"symbol_errors": 50}}
    (event,) = watch.look(dumps, Growth(PortErrors("x", bad, (), time.time()), None))
    over = {j.job for way in (c, int(fabric.channel_reverse[c])) for j in dumps.jobs_over(way)}
    assert event.bad and set(event.cable.jobs) == over and over
    assert cable_name(fabric, c).split("[")[0] in event.cable.sentence
