"""Mistakes that an administrator made: what is said to each.

A row has the mistake, the words by which the program recognises it, and those that say what to do.
Data of a real cluster cannot be here, so the files are the examples'.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sar_agent.slurm.job_files import read_jobs_file
from tests.worlds.command_line import sar_agent

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
FABRIC = (EXAMPLES / "cluster.ibnetdiscover").read_text()
JOBS = (EXAMPLES / "squeue.txt").read_text()
SQUEUE = "save it with: squeue -h -o '%i|%T|%N|%P|%u|%a|%D|%S|%k'"
IBNETDISCOVER = "save what ibnetdiscover prints"
ONE = "|b|u||3|2026-01-01T00:00:00|\n"
CUT = '{"jobs":[{"job_id":4711,"job_state":["RUNNING"],"nodes":"n[001'

FABRICS = {
    "squeue's output": (JOBS, "this is squeue's output", "are --fabric and --jobs exchanged?"),
    "iblinkinfo": (
        'CA: n001 HCA-1:\n   0x2c9  1  1[  ] ==( 4X 14 Gbps Active/  LinkUp)==>  2 "S1" ( )\n',
        "this is iblinkinfo's output", IBNETDISCOVER,
    ),
    "topology.conf": (
        (EXAMPLES / "topology.conf").read_text(), "this is Slurm's topology.conf", IBNETDISCOVER
    ),
    "opensm-lfts.dump": (
        (EXAMPLES / "opensm-lfts.dump").read_text(), "forwarding tables", "give it as --routes"
    ),
    "ibswitches": (
        'Switch\t: 0x0002c90200000001 ports 36 "S1-0" enhanced port 0 lid 1 lmc 0\n',
        "this is a list of nodes without cables", IBNETDISCOVER,
    ),
    "ibhosts": (
        'Ca\t: 0x0002c903000000f1 ports 1 "n1 HCA-1"\n',
        "a list of nodes without cables", IBNETDISCOVER,
    ),
    "ibstat": ("CA 'mlx5_0'\n\tCA type: MT4123\n", "this is ibstat's output", IBNETDISCOVER),
    "ibnetdiscover's error": (
        "ibwarn: [1] mad_rpc_open_port: can't open UMAD port ((null):0)\n",
        "an error of ibnetdiscover", "who may open /dev/infiniband/umad*",
    ),
    "cut in a line": (FABRIC[: len(FABRIC) // 2 - 7], "cannot read this node", "again"),
    "cut at a node": (
        FABRIC[: FABRIC.index("\n\n", len(FABRIC) // 2) + 2], "the file is cut short", "again"
    ),
    "cut before the hosts": (FABRIC[: FABRIC.index("\nCa")], "the file ends before", "again"),
    "given twice": (FABRIC + FABRIC, "occurs twice", "again"),
    "empty": ("", "is empty", "write it again"),
}  # fmt: skip
JOB_FILES = {
    "default squeue": (
        "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
        "              4711     batch     wrap     root  R       0:10      2 n[001-002]\n",
        "squeue's default table, which cuts columns short", SQUEUE,
    ),
    "two columns": ("4711|n[001-004]\n", "is not a job line of 9 columns", SQUEUE),
    "three columns": ("4711|RUNNING|n[001-004]\n", "is not a job line of 9 columns", SQUEUE),
    "columns in another order": (
        f"RUNNING|4711|n[001-004]{ONE}", ":1: 'RUNNING' is not a Slurm job id", SQUEUE
    ),
    "sinfo": (
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nall*  up  infinite  9 idle n[001-9]\n",
        "this is sinfo's output", SQUEUE,
    ),
    "sinfo -N": ("NODELIST   NODES PARTITION STATE \nn001  1  a* idle\n", "sinfo's output", SQUEUE),
    "scontrol show job": (
        "JobId=7 JobName=a\n   UserId=ada(1) GroupId=x\n", "this is scontrol's output", SQUEUE
    ),
    "scontrol show node": ("NodeName=n1 Arch=x86_64\n", "this is scontrol's output", SQUEUE),
    "default sacct": (
        "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
        "------------ ---------- ---------- ---------- ---------- ---------- -------- \n",
        "sacct's table, which cuts columns short", SQUEUE,
    ),
    "blanks for |": (JOBS.replace("|", " "), "with blanks between them", SQUEUE),
    "an error of Slurm": (
        "slurm_load_jobs error: Unable to contact slurm controller\n", "an error of Slurm", SQUEUE
    ),
    "no squeue": ("bash: squeue: command not found\n", "an error of a shell", SQUEUE),
    "jobid host": (
        "4711 n001\n4711 n002\n", "the columns are exchanged", "write the host first"
    ),
    "JSON cut": (CUT, "the JSON is cut short", "save it again with: squeue --json"),
}  # fmt: skip
WORKS = {
    "a header": "JOBID|STATE|NODELIST|PARTITION|USER|ACCOUNT|NODES|START_TIME|COMMENT\n" + JOBS,
    "R and PD": JOBS.replace("RUNNING", "R").replace("PENDING", "PD"),
    "CRLF": JOBS.replace("\n", "\r\n"),
    "a byte order mark": b"\xef\xbb\xbf" + JOBS.encode(),
    "UTF-16": JOBS.encode("utf-16"),
    "gzip": gzip.compress(JOBS.encode()),
    "a last line cut short": JOBS + "4799|RUNNING|n[0",
}
NO_ANSWER = {
    "pending only": (
        JOBS.replace("RUNNING", "PENDING"), "no job runs on this network", "jobs are pending, and"
    ),
    "empty": ("", "no job runs on this network", "No job in the list is running"),
    "hosts with a suffix": (
        f"4711|RUNNING|n001-ib,n002-ib,n009-ib{ONE}", "3 of 3 hosts of the jobs are not in the",
        "The jobs name n001-ib, n002-ib, n009-ib; the fabric has n001, n002, n003",
    ),
    "most hosts renamed": (
        f"4711|RUNNING|x[001-100],n001,n009{ONE}", "100 of 102 hosts", "The jobs name x001, x002"
    ),
}  # fmt: skip
TYPED = {
    "a command": (["asess"], "Did you mean 'assess'?", "See sar-agent --help"),
    "an option": (["assess", "--fabrik", "x"], "--fabric", "See sar-agent assess --help"),
    "a short option": (["assess", "-f", "x"], "No such option: -f", "See sar-agent assess --help"),
    "an option of a group": (["config", "check", "-x"], "-x", "See sar-agent config check --help"),
    "an engine": (
        ["route", "--fabric", "xgft:2;4,4;1,2", "--jobs", "mix:1", "--engine", "sarplus"],
        "did you mean sar-plus?", "`sar-agent engines --all` lists all",
    ),
    "stdin": (["assess", "--fabric", "-", "--jobs", "mix:1"], "-: no such file", "check the path"),
    "no such fabric": (["assess", "--fabric", "/nope", "--jobs", "mix:1"], "/nope: no", "check"),
    "no such jobs": (["assess", "--fabric", "xgft:2;4,4;1,2", "--jobs", "/nope"], "/nope", "check"),
    "no jobs": (["assess", "--fabric", "xgft:2;4,4;1,2"], "no jobs were given", "give --jobs FILE"),
    "no fabric": (["assess", "--jobs", "mix:1"], "no fabric was given", "give --fabric FILE"),
    "no such tables": (
        ["assess", "--fabric", "xgft:2;4,4;1,2", "--jobs", "mix:1", "--routes", "/nope"],
        "/nope: the file does not exist", "check the name",
    ),
    "another cluster's tables": (
        ["assess", "--fabric", "xgft:2;4,4;1,2", "--jobs", "mix:1", "--routes",
         EXAMPLES / "opensm-lfts.dump"],
        "is not in xgft:2;4,4;1,2", "take the fabric and its tables at the same time",
    ),
    "a file as a folder": (
        ["assess", "--fabric", "xgft:2;4,4;1,2", "--jobs", "mix:1", "--out",
         EXAMPLES / "squeue.txt"],
        "is a file", "See sar-agent assess --help",
    ),
}  # fmt: skip


def assess(tmp_path: Path, fabric: str | None = None, jobs: str | bytes | None = None) -> str:
    """One line of error, or two of an answer that is none."""
    given = {"fabric": fabric, "jobs": jobs}
    paths = {"fabric": EXAMPLES / "cluster.ibnetdiscover", "jobs": EXAMPLES / "squeue.txt"}
    for name, text in given.items():
        if text is not None:
            paths[name] = tmp_path / name
            paths[name].write_bytes(text if isinstance(text, bytes) else text.encode())
    done = sar_agent(
        "assess", "--fabric", paths["fabric"], "--jobs", paths["jobs"], "--out", tmp_path / "out",
        "--engine", "minhop", "--engine", "sar-plus", "--no-simulate",
    )  # fmt: skip
    assert done.returncode == (1 if done.stdout else 2), done
    said = done.stdout or done.stderr
    assert len(said.splitlines()) == (2 if done.stdout else 1), said
    return said


@pytest.mark.parametrize("mistake", FABRICS)
def test_another_file_as_fabric(mistake: str, tmp_path: Path) -> None:
    text, what, remedy = FABRICS[mistake]
    said = assess(tmp_path, fabric=text)
    assert what in said and remedy in said


@pytest.mark.parametrize("mistake", JOB_FILES)
def test_another_file_as_jobs(mistake: str, tmp_path: Path) -> None:
    text, what, remedy = JOB_FILES[mistake]
    said = assess(tmp_path, jobs=text)
    assert what in said and remedy in said


@pytest.mark.parametrize("form", WORKS)
def test_forms_of_a_queue_that_serve(form: str, tmp_path: Path) -> None:
    (tmp_path / "jobs").write_bytes(
        text if isinstance(text := WORKS[form], bytes) else text.encode()
    )
    assert read_jobs_file(tmp_path / "jobs") == read_jobs_file(EXAMPLES / "squeue.txt")


@pytest.mark.parametrize("case", ["upper", "domain"])
def test_hosts_are_compared_without_case_and_domain(case: str, tmp_path: Path) -> None:
    hosts = "N001,N009,N017" if case == "upper" else "n001.c.org,n009.c.org,n017.c.org"
    (tmp_path / "jobs").write_text(f"4711|RUNNING|{hosts}{ONE}")
    fabric = EXAMPLES / "cluster.ibnetdiscover"
    done = sar_agent("route", "--fabric", fabric, "--jobs", tmp_path / "jobs", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["jobs"] == 1, done


@pytest.mark.parametrize("mistake", NO_ANSWER)
def test_where_no_answer_is_possible(mistake: str, tmp_path: Path) -> None:
    text, what, why = NO_ANSWER[mistake]
    said = assess(tmp_path, jobs=text)
    assert what in said and why in said


def test_a_history_with_too_many_unknown_hosts_has_no_answer_either(tmp_path: Path) -> None:
    """Half of them are known, so there is a timeline, and yet no verdict."""
    history = tmp_path / "history.csv"
    rows = (EXAMPLES / "history.csv").read_text().splitlines()
    lost = [row.replace("n[0", "x[0") if i % 2 else row for i, row in enumerate(rows)]
    history.write_text("\n".join(lost))
    words = ("--history", history, "--samples", "3", "--engine", "sar-plus", "--no-simulate")
    fabric = EXAMPLES / "cluster.ibnetdiscover"
    done = sar_agent("assess", "--fabric", fabric, *words, "--out", tmp_path)
    assert "No answer is possible" in done.stdout and done.returncode == 1, done


def test_a_fabric_in_place_of_tables_or_topology_is_named(tmp_path: Path) -> None:
    fabric = EXAMPLES / "cluster.ibnetdiscover"
    given = ("--fabric", fabric)
    tables = sar_agent("measure", *given, "--jobs", EXAMPLES / "squeue.txt", "--routes", fabric)
    topology = sar_agent("topology", "check", *given, "--topology-conf", fabric)
    for done, wanted in ((tables, "forwarding tables"), (topology, "Slurm's topology")):
        assert done.returncode == 2
        assert f"this is ibnetdiscover's output, not {wanted}; give " in done.stderr


@pytest.mark.parametrize("mistake", TYPED)
def test_typing_errors(mistake: str) -> None:
    arguments, what, remedy = TYPED[mistake]
    done = sar_agent(*arguments)
    assert done.returncode == 2 and not done.stdout
    [line] = done.stderr.splitlines()
    assert what in line and remedy in line


def test_all_problems_of_a_configuration_at_once(tmp_path: Path) -> None:
    path = tmp_path / "sar-agent.toml"
    path.write_text(
        '[agent]\nmode = "instal"\nengine = "sarplus"\ninterval = 5\n'
        '[slurm]\nsqueue = ["/nope/squeue"]\n[opensm]\nlfts_dump = "relative"\n[foo]\n'
    )
    done = sar_agent("config", "check", "--config", path)
    assert done.returncode == 2
    assert "6 problems" in done.stderr
    for said in ("should be 'observe' or 'install'", "did you mean interval_seconds?",
                 "give an absolute path", "foo: no such key", "did you mean sar-plus?",
                 "/nope/squeue"):  # fmt: skip
        assert said in done.stderr
