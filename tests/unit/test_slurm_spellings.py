"""What Slurm's commands print with other options, of other versions, and what shells add to it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sar_agent.counters.counter_files import decode_counter_text
from sar_agent.counters.port_errors import read_port_errors
from sar_agent.errors import InputError
from sar_agent.slurm.job_files import read_jobs_file
from sar_agent.slurm.sinfo import parse_sinfo
from sar_agent.slurm.topology_files import read_topology
from sar_lab.history.files import is_history, read_history

LINE = "7|RUNNING|n[1-2]|b|u|a|2|2026-01-01T00:00:00|(null)\n"
WARNING = "squeue: warning: the cache is old\n\n"


def job(**more: object) -> dict[str, object]:
    return {"job_id": 7, "job_state": ["RUNNING"], "nodes": "n[1-2]", "user_id": 1000, **more}


def wrapped(number: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": number}


@pytest.mark.parametrize(
    "text",
    [
        f"CLUSTER: alpha\n{LINE}CLUSTER: beta\n",
        "CLUSTER: alpha\nJOBID|STATE|NODELIST\n7|RUNNING|n[1-2]\n\nCLUSTER: beta\n",
        json.dumps([job()]),
        WARNING + json.dumps({"jobs": [job()]}),
        WARNING + json.dumps([job()], indent=1),
        json.dumps({"jobs": [job(job_id=wrapped(7), user_id=wrapped(1000))]}),
        json.dumps({"jobs": [job(), None, job(nodes={"list": ["n1"]}), job(job_state=7), job()]}),
    ],
)
def test_a_queue(text: str, tmp_path: Path) -> None:
    """Of `squeue -M`, of `jq .jobs`, behind a warning, with wrapped numbers."""
    file = tmp_path / "queue"
    file.write_text(text)
    assert {(record.id, record.hosts) for record in read_jobs_file(file)} == {("7", ("n1", "n2"))}


def test_an_entry_that_is_no_job_is_said_in_plain_words(tmp_path: Path) -> None:
    file = tmp_path / "queue"
    file.write_text(json.dumps({"jobs": [job(nodes={"list": []})]}))
    with pytest.raises(InputError, match=r"job no\. 1 of the list has a value of another kind$"):
        read_jobs_file(file)


HEAD = "JobID|Start|End|State|NodeList\n"
ROW = "7|2026-01-01T00:00:00|2026-01-01T01:00:00|COMPLETED|n[1-2]\n"
SACCT = {
    "job_id": 7, "state": {"current": ["COMPLETED"]}, "nodes": "n[1-2]",
    "time": {"start": 1767225600, "end": 1767229200},
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        (HEAD + ROW).replace("|", ";"),
        (HEAD + ROW).replace("|", "\t"),
        HEAD + ROW + HEAD,
        json.dumps([SACCT]),
        "sacct: warning\n" + json.dumps({"jobs": [SACCT]}),
    ],
)
def test_a_history(text: str, tmp_path: Path) -> None:
    """With `--delimiter`, two in one file, of `jq .jobs`, behind a warning."""
    file = tmp_path / "history"
    file.write_text(text)
    history = read_history(file)
    assert (history.ids, history.left_out) == (("7",), ())
    assert is_history(file)


def test_a_history_that_is_cut_inside_gzip(tmp_path: Path) -> None:
    file = tmp_path / "history.gz"
    file.write_bytes(gzip.compress((HEAD + ROW * 500).encode())[:-30])
    with pytest.raises(InputError, match="damaged gzip file"):
        read_history(file)
    assert not is_history(file)


def test_a_table_of_sacct_is_named(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_text("JobID           Start      NodeList \n------- ------ -----\n7  2026  n[1-\n")
    with pytest.raises(InputError, match="this is sacct's table, which cuts columns short"):
        read_history(file)


def test_nodes() -> None:
    """States with flags, a warning before JSON; lists of reasons are refused."""
    text = "NODELIST|STATECOMPLETE\nn1|IDLE+CLOUD\nn2|idle+planned\nn3|IDLE+DRAIN\nn4|MIXED+CLOUD\n"
    found = parse_sinfo(text, None)
    assert (found.free, found.planned) == ({"n1", "n2"}, {"n2"})
    assert (len(found.nodes), found.left_out) == (4, ())
    nodes = {"nodes": [{"name": "n1", "state": ["IDLE"], "partitions": ["b"]}]}
    assert parse_sinfo("sinfo: warning\n" + json.dumps(nodes), None).free == {"n1"}
    for other in ("REASON USER TIMESTAMP NODELIST\nNot root 2026 n1\n", "[7]\n", "{}\n"):
        with pytest.raises(InputError, match="not the output of sinfo"):
            parse_sinfo(other, None)


SHOWN = (
    "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
    "SwitchName=r Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=s1\n"
)


def test_topologies(tmp_path: Path) -> None:
    """What a terminal showed of scontrol, and gzip; a file that is no text, in one line."""
    file, yaml = tmp_path / "topology.conf", tmp_path / "topology.yaml"
    file.write_text(f"[root@mgmt ~]# scontrol show topology\n{SHOWN}[root@mgmt ~]# \n")
    assert not read_topology(file).problems
    file.write_bytes(gzip.compress(SHOWN.encode()))
    assert set(read_topology(file).switches) == {"s1", "r"}
    yaml.write_text("- topology: t\x01\n")
    with pytest.raises(InputError, match="is not YAML") as raised:
        read_topology(yaml)
    assert "\n" not in str(raised.value)


def test_perfquery_of_ofed_1(tmp_path: Path) -> None:
    text = "# Port counters: Lid 6 port 1\nLinkDowned:......3\nXmtData:......23\nRcvBytes:....5\n"
    totals = decode_counter_text(text, "file", 0.0)
    assert (totals.sent.tolist(), totals.received.tolist()) == ([92], [20])
    file = tmp_path / "counters"
    file.write_text(text)
    assert read_port_errors(file).counts == {(0, 6, 1): {"link_downed": 3}}


def test_sentences_have_one_line_whatever_a_name_holds() -> None:
    error = InputError(f'"a\u2028b\r{"9" * 5000}" is not here')
    assert str(error).splitlines() == [str(error)] and len(str(error)) < 300
