"""Messages of rings that meet on a link: where, which, and that no others are said to meet."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.explain import JobExplanation, explain
from sar_agent.config.model import parse_config
from sar_agent.demand.endpoints import mix_of_records
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.read_tables import read_tables
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.record import JobRecord
from sar_agent.quality.measures import measure
from sar_agent.quality.ring_messages import meeting_of, ring_messages, ring_sentence
from sar_agent.routing import Options, load_engine
from sar_agent.routing.template import template_of
from tests.worlds.command_line import said, sar_agent
from tests.worlds.fake_squeue import fake_squeue

FABRIC = Path(__file__).parents[2] / "docs/examples/cluster.ibnetdiscover"
JOBS = {"4711": "n[001,007]", "4802": "n[002,013]", "4900": "n[020,026]"}
CONFIG = """\
[agent]
state_dir = "{folder}/state"
run_dir = "{folder}/run"
metrics_address = ""
[slurm]
squeue = ["{squeue}"]
topology_conf = ""
[fabric]
file = "{fabric}"
[opensm]
lfts_dump = "{lfts}"
"""


def by_hand(text: str, port: dict[tuple[str, str], int]) -> str:
    """What `ibroute` printed of each switch, with other ports for some (switch, host)."""
    parts = re.split(r"(?m)^(?=Unicast lids)", text)
    for (switch, host), number in port.items():
        [n] = [n for n, part in enumerate(parts) if f"({switch}):" in part]
        line = rf"(?m)^(0x\S+) \d+ (: .*'{host} HCA-1'\))$"
        parts[n], count = re.subn(line, rf"\1 {number:03} \2", parts[n])
        assert count == 1
    return "".join(parts)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """n001 → n007 and n002 → n013 leave S1-0 by port 8; the ways back are apart."""
    out = tmp_path / "minhop"
    done = sar_agent(
        "route", "--fabric", FABRIC, "--jobs", "mix:1", "--engine", "minhop", "--out", out,
        "--export", "lfts",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ports = {("S1-0", "n007"): 8, ("S1-0", "n013"): 8, ("S1-1", "n001"): 7, ("S1-2", "n002"): 9}
    text = by_hand((out / "lfts.dump").read_text(), ports)
    path = tmp_path / "ibroute.txt"
    path.write_text(text)
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "squeue.txt"
    path.write_text("".join(
        f"{job}|RUNNING|{nodes}|batch|ada||1|2026-01-01T00:00:00|\n" for job, nodes in JOBS.items()
    ))  # fmt: skip
    return path


def test_link_names_the_messages_that_meet_on_it(dump: Path, jobs: Path) -> None:
    given = ("--fabric", FABRIC, "--jobs", jobs, "--routes", dump)
    done = sar_agent("link", "S1-0[8]", *given)
    assert done.returncode == 0, done.stderr
    both = "n002 → n013 (job 4802), n001 → n007 (job 4711)"
    assert f"ring messages meet: {both}" in done.stdout
    for port in (7, 9, 10):
        assert "ring messages" not in sar_agent("link", f"S1-0[{port}]", *given).stdout
    measured = said("measure", *given, "--json")
    assert measured["collectives"]["ring"]["meet"] == 2  # type: ignore[index]
    each = {job["job"]: job["contention"]["ring"] for job in measured["jobs_detail"]}  # type: ignore[attr-defined]
    assert each == {"4711": 2.0, "4802": 2.0, "4900": 1.0}


def test_explain_names_the_messages_and_the_link(dump: Path, tmp_path: Path) -> None:
    squeue = fake_squeue(tmp_path, [{"%i": job, "%N": nodes} for job, nodes in JOBS.items()])
    text = CONFIG.format(folder=tmp_path, squeue=squeue, fabric=FABRIC, lfts=dump)
    told = {job: explain(parse_config(text), job).words() for job in JOBS}
    where = 'its ring waits on "S1-0"[8] -> "S2-1"[1]'
    assert f"{where}: n001 → n007 (job 4711), n002 → n013 (job 4802)" in told["4711"]
    assert f"{where}: n002 → n013 (job 4802), n001 → n007 (job 4711)" in told["4802"]
    assert "its ring waits" not in told["4900"].partition("planned")[0]


def test_the_first_line_counts_the_jobs_and_names_the_slowest(dump: Path) -> None:
    fabric = load_fabric(str(FABRIC))
    hosts = {"4711": ("n001", "n007"), "4802": ("n002", "n013"), "4900": ("n020", "n026")}
    records = [JobRecord(job, names, "RUNNING", user="ada") for job, names in hosts.items()]
    mix = mix_of_records(fabric, records).mix
    before = measure(fabric, mix, read_tables(dump, fabric))
    free = measure(fabric, mix, load_engine("sar-plus").route(fabric, mix, Options()))
    assert ring_sentence(before, free) == (
        "Ring all-reduce: messages of 2 of 3 jobs meet on a link, so that they take 2.0 times as "
        "long (job 4802: 2.0). With routes for these jobs: none."
    )
    assert ring_sentence(free) == "Ring all-reduce: no messages of the 3 jobs meet on a link."


def test_two_messages_on_a_link_with_room_for_both_do_not_meet() -> None:
    fabric = load_fabric("xgft:2;2,2;1,1")
    mix = JobMix((make_job("1", [0, 2]), make_job("2", [1, 3])))
    routes = load_engine("minhop").route(fabric, mix, Options())
    assert meeting_of(ring_messages(fabric, mix, routes), (0,))[0] >= 0
    wide = replace(fabric, channel_rate=(2 * fabric.channel_rate).astype(np.float32))
    rings = ring_messages(wide, mix, routes)
    assert measure(wide, mix, routes).contention["ring"].tolist() == [1.0, 1.0]
    assert meeting_of(rings, (0,)) == (-1, [])
    assert not any(rings.on(c) for c in range(wide.channels))


def test_phases_of_declared_traffic_do_not_meet_each_other() -> None:
    """Ranks of a 2 x 1 grid send to each other twice, in one phase after the other."""
    fabric = load_fabric("xgft:2;2,2;1,1")
    mix = JobMix((replace(make_job("1", [0, 2]), traffic="stencil2d:2x1"),))
    routes = load_engine("minhop").route(fabric, mix, Options())
    rings = ring_messages(fabric, mix, routes)
    assert measure(fabric, mix, routes).contention["ring"].tolist() == [1.0]
    assert meeting_of(rings, (0,)) == (-1, [])
    assert not any(rings.on(c) for c in range(fabric.channels))


def test_explain_names_the_reason_of_each_exception(dump: Path, tmp_path: Path) -> None:
    """Two rings that meet on D-mod-k: hosts of S1-0 send to two hosts behind one port."""
    fabric = load_fabric(str(FABRIC))
    usual = template_of(fabric).egress[:, fabric.terminal_switch[0]].tolist()
    port = {host: usual[d] for d, host in enumerate(fabric.terminal_host)}
    other = next(f"n{k:03}" for k in range(13, 19) if port[f"n{k:03}"] == port["n007"])
    jobs = {"4711": "n[001,007]", "4802": f"n[002,{other[1:]}]"}
    squeue = fake_squeue(tmp_path, [{"%i": job, "%N": nodes} for job, nodes in jobs.items()])
    text = CONFIG.format(folder=tmp_path, squeue=squeue, fabric=FABRIC, lfts=dump)
    reports = (explain(parse_config(text), job) for job in jobs)
    told = {report.job: report for report in reports if isinstance(report, JobExplanation)}
    [(job, each)] = [(j, e) for j, r in told.items() if r.planned for e in r.planned.exceptions]
    rest = "4802" if job == "4711" else "4711"
    assert each.reason == f"keeps the ring of job {job} apart from job {rest}'s"
    assert (each.switch, each.destination) == ("S1-0", "n007" if job == "4711" else other)
    assert each.port != port[each.destination]
    assert f"\n  entry of S1-0 for {each.destination}: {each.reason}\n" in told[job].words()
    assert told[job].json()["planned"]["exceptions"] == [asdict(each)]
    assert not any(report.in_force and report.in_force.exceptions for report in told.values())
