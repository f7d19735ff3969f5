"""squeue's pipe format and Slurm's JSON, from text written here and from a real Slurm's output."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from sar_agent.errors import InputError
from sar_agent.jobs.record import JobRecord, traffic_hint
from sar_agent.slurm.job_files import read_jobs_file
from sar_agent.slurm.squeue_json import parse_squeue_json
from sar_agent.slurm.squeue_text import parse_squeue_pipe
from sar_agent.slurm.states import STATES
from tests.data import data_path


def line(job="7", state="RUNNING", nodes="n[1-2]", start="1795221989", comment="(null)"):
    return f"{job}|{state}|{nodes}|batch|root|(null)|2|{start}|{comment}\n"


def test_a_line_becomes_a_record():
    (job,) = parse_squeue_pipe(line(comment="x sar:ring"))
    assert job == JobRecord("7", ("n1", "n2"), "RUNNING", "root", "batch", 1795221989.0, "ring")


@pytest.mark.parametrize("state", ["RUNNING", "CONFIGURING", "SUSPENDED", "R", "CF", "S"])
def test_states_that_hold_the_fabric(state):
    assert len(parse_squeue_pipe(line(state=state))) == 1


@pytest.mark.parametrize("state", ["COMPLETING", "PENDING", "COMPLETED", "FAILED", "CG", "PD"])
def test_states_that_do_not(state):
    assert parse_squeue_pipe(line(state=state)) == ()


@pytest.mark.parametrize("nodes", ["", "(null)", "N/A", "None assigned"])
def test_a_job_without_nodes_is_left_out(nodes, caplog):
    assert parse_squeue_pipe(line(nodes=nodes)) == ()
    assert not caplog.text


def test_a_state_of_a_later_slurm_is_left_out_and_named(caplog):
    text = line("1") + line("2", "HOVERING", "") + line("3", "HOVERING") + line("4")
    assert [job.id for job in parse_squeue_pipe(text, "queue.txt")] == ["1", "4"]
    assert "queue.txt: 2 jobs in states that are not known here" in caplog.text
    assert "line 2: job 2: 'HOVERING'" in caplog.text
    with pytest.raises(InputError, match="is not a Slurm job state"):
        parse_squeue_pipe(line(state="HOVERING"))


def test_a_header_names_the_columns():
    text = (
        "ST|USER|NODELIST(REASON)|JOBID|START_TIME\n"
        "R|eve|a-b[1-2]c[08-10]|12|N/A\n"
        "PD|eve|(None)|13|N/A\n"
    )
    (job,) = parse_squeue_pipe(text)
    assert (job.id, job.state, job.user, job.start) == ("12", "RUNNING", "eve", None)
    assert len(job.hosts) == 6
    assert job.hosts[0] == "a-b1c08"


def test_iso_times_are_local(monkeypatch):
    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    try:
        (job,) = parse_squeue_pipe(line(start="2001-02-03T04:05:06"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert job.start == 981165906.0  # 02:05:06 UTC


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("garbage", "columns"),
        (line("x7"), "job id"),
        (line(nodes="n[1-"), "host list"),
        (line(nodes="n1 rm"), "host list"),
    ],
)
def test_a_broken_line_is_named(bad, said):
    with pytest.raises(InputError, match=rf"^jobs\.txt:3: .*{said}") as caught:
        parse_squeue_pipe(f"{line()}\n{bad}", "jobs.txt")
    assert caught.value.line == 3


@pytest.mark.parametrize("bad", ["garbage", line("x7"), line("7", nodes="n[1-")])
def test_broken_lines_among_others_are_passed_over(bad, caplog):
    text = "".join([line("1"), bad.rstrip("\n") + "\n", line("2"), line("3")])
    assert [job.id for job in parse_squeue_pipe(text, "jobs.txt")] == ["1", "2", "3"]
    assert "1 entry was passed over, the first: jobs.txt:2: " in caplog.text


def test_a_header_without_nodes_is_refused():
    with pytest.raises(InputError, match="no node list"):
        parse_squeue_pipe("JOBID|STATE\n1|RUNNING\n", "x")


@pytest.mark.parametrize(
    ("comments", "hint"),
    [(("sar:ring",), "ring"), (("", "a sar:x-1:2"), "x-1:2"), (("quasar:no", "sar:"), None)],
)
def test_traffic_hint(comments, hint):
    assert traffic_hint(*comments) == hint


OLD = {"job_id": 11, "job_state": "RUNNING", "nodes": "n1", "user_name": "u", "partition": "p"}


@pytest.mark.parametrize(
    ("states", "seen"),
    [
        (["RUNNING", "CONFIGURING", "POWER_UP_NODE"], "CONFIGURING"),
        (["RUNNING", "POWER_UP_NODE"], "RUNNING"),
        (["RUNNING", "SIGNALING", "STOPPED"], "STOPPED"),
        (["SUSPENDED"], "SUSPENDED"),
    ],
)
def test_json_states_are_those_that_squeue_prints(states, seen):
    job = OLD | {"job_state": states}
    assert parse_squeue_json(json.dumps({"jobs": [job]}))[0].state == seen


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"jobs":\n[', "f:2: the JSON is cut short; save it again with: squeue --json"),
        (json.dumps({"jobs": [OLD]})[:90], "f:1: the JSON is cut short"),
        ('{"jobs": [7], x}', "f:1: not JSON"),
        ("[]", 'without a list "jobs"'),
        ('{"jobs": [7]}', 'without a list "jobs"'),
        ('{"jobs": [{}]}', "no. 1 .*job_state"),
        (json.dumps({"jobs": [OLD | {"nodes": "n["}]}), "no. 1 .*host list"),
        (json.dumps({"jobs": [OLD | {"start_time": "x"}]}), "no. 1 .*another kind"),
        (json.dumps({"jobs": [OLD | {"job_state": []}]}), "no. 1 .*another kind"),
    ],
)
def test_broken_json_is_named(text, said):
    with pytest.raises(InputError, match=said):
        parse_squeue_json(text, "f")


def test_every_form_of_file_is_recognised(tmp_path):
    document = json.dumps({"jobs": [OLD | {"nodes": "n[1-2]"}]})
    forms = {
        "pipe": line("11").encode(),
        "json": document.encode(),
        "json.gz": gzip.compress(document.encode()),
        "map": b"# a map\n\nn1 11\nn2 11 # the last\n",
        "map.gz": gzip.compress(b"n1 11\nn2 11\n"),
    }
    for name, content in forms.items():
        (tmp_path / name).write_bytes(content)
        (job,) = read_jobs_file(tmp_path / name)
        assert (job.id, job.hosts) == ("11", ("n1", "n2")), name


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x7fELF\0\0", "binary"),
        (gzip.compress(b"n1 11\n" * 99, mtime=0)[:-9], "damaged gzip"),
        (b"n1 7\nn2\n", ":2: .*host jobid"),
        (b'Ca\t: 0x0002c90300001e00 ports 1 "n031 HCA-1"\n', "a list of nodes without cables"),
    ],
)
def test_files_that_are_no_jobs(tmp_path, content, said):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_jobs_file(tmp_path / "f")


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_jobs_file(tmp_path / "none")
    (tmp_path / "empty").touch()
    assert read_jobs_file(tmp_path / "empty") == ()


def by_id(records):
    return {record.id: record for record in records}


@pytest.mark.data
@pytest.mark.parametrize(("jobs", "running"), [("5000", 346), ("500", 277)])
def test_real_queues(jobs, running):
    assert len(read_jobs_file(data_path(f"slurm/squeue_{jobs}_pipe.txt"))) == running


@pytest.mark.data
@pytest.mark.parametrize("name", ["squeue_5000.json.gz", "squeue_500.json.gz"])
def test_real_json(name):
    path = data_path(f"slurm/{name}")
    jobs = json.loads(gzip.decompress(path.read_bytes()))["jobs"]
    expected = {str(job["job_id"]) for job in jobs if job["job_state"] == "RUNNING"}
    assert set(by_id(read_jobs_file(path))) == expected
    assert {job["job_state"] for job in jobs} <= STATES


SET = {"set": True, "infinite": False}
UNSET = {"set": False, "infinite": False, "number": 0}


def of_data_parser(version: int) -> dict[str, object]:
    """A job as `squeue --json` of this data_parser prints the fields that are read: types from
    PARSER_ARRAY(JOB_INFO) in Slurm's sources (src/plugins/data_parser/v0.0.VERSION/parsers.c)."""
    return {
        "account": "physics",
        "admin_comment": "",
        "array_job_id": SET | {"number": 40},
        "array_task_id": SET | {"number": 3},
        "comment": "sar:ring",
        "het_job_id": SET | {"number": 0},
        "het_job_offset": UNSET,
        "job_id": 43,
        "job_state": "RUNNING" if version == 39 else ["RUNNING"],
        "nodes": "n[1-2]",
        "partition": "batch",
        "start_time": 1763500000 if version == 39 else SET | {"number": 1763500000},
        "user_id": 1000,
        "user_name": "ada",
    }


RELEASES = {
    39: "23.02",
    40: "23.11",
    41: "24.05",
    42: "24.11",
    43: "25.05",
    44: "25.11",
    45: "26.05",
}


@pytest.mark.parametrize("version", RELEASES)
def test_json_of_every_data_parser(version):
    document = {
        "jobs": [of_data_parser(version)],
        "last_update": SET | {"number": 1763500001},
        "meta": {
            "plugin": {"type": "openapi/slurmctld", "data_parser": f"data_parser/v0.0.{version}"},
            "slurm": {"release": RELEASES[version]},
        },
        "errors": [],
        "warnings": [],
    }
    assert parse_squeue_json(json.dumps(document)) == (
        JobRecord(
            "40_3", ("n1", "n2"), "RUNNING", "ada", "batch", 1763500000.0, "ring", 1000, ("43",)
        ),
    )
