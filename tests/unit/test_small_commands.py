"""`config`, `rank-order`, `anonymize`, `status --check`, `route --dry-run`, and notes on stderr."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.state import State
from sar_agent.agent.status import AgentStatus
from sar_agent.commands import service
from sar_agent.commands.config_file import _manager_now
from sar_agent.commands.status_check import MonitoringCode, judge_status
from sar_agent.config.model import parse_config
from sar_agent.fabric.spec import load_fabric
from sar_agent.install import subnet_manager
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.slurm.switch_order import in_switch_order
from tests.worlds.command_line import sar_agent
from tests.worlds.fake_squeue import fake_squeue

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FABRIC = EXAMPLES / "cluster.ibnetdiscover"
JOBS = EXAMPLES / "squeue.txt"
BOTH = ("--fabric", FABRIC, "--jobs", JOBS)


def test_config_check_says_what_answers_and_what_has_no_effect(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    squeue = fake_squeue(tmp_path, [{"%i": "7"}, {"%i": "8"}])
    file.write_text(
        f"[agent]\nmode = 'install'\nrun_dir = '{tmp_path}'\nmin_gain = 0.1\n"
        f"max_staleness_seconds = 60\n[slurm]\nsqueue = ['{squeue}']\n"
        f"[opensm]\nplugin_socket = '{tmp_path}/none'\npid_file = '/run/x'\n"
    )
    done = sar_agent("config", "check", "--config", file)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines.pop(3).startswith("fabric: no answer now: ")
    assert lines[0].startswith(f"{file}: no problem; changed from the defaults: agent.mode, ")
    assert lines[1:4] == [
        "opensm.pid_file has no effect, since opensm.method is not file",
        "agent.min_gain has no effect, since agent.max_staleness_seconds is not longer than "
        "agent.min_install_interval_seconds",
        "slurm.topology_conf = '/etc/slurm/topology.conf': no such file; the leaf switches are "
        "those of the fabric",
    ]
    assert lines[4] == "jobs: squeue answers, 2 running"
    assert lines[5].startswith("subnet manager: no answer now: ")
    file.write_text("[slurm]\nsqueue = ['/bin/false']\ndeadline_seconds = 0.5\n")
    done = sar_agent("config", "check", "--config", file)
    assert done.returncode == 0 and "jobs: no answer now: " in done.stdout


@pytest.mark.parametrize(("lanes", "most"), [(2, 1), (2, 2), (1, 1)])
def test_config_check_names_lanes_in_force_that_new_routes_may_not_use(
    monkeypatch: pytest.MonkeyPatch, lanes: int, most: int
) -> None:
    class Manager:
        def status(self) -> SmStatus:
            return SmStatus(engine="sar", ours=True, details={"lanes": lanes})

    monkeypatch.setattr(subnet_manager, "load_subnet_manager", lambda _: Manager())
    said = _manager_now(parse_config(f"[agent]\nmax_lanes = {most}\n"))
    assert said.startswith("answers, engine sar is in force")
    assert ("; its routes use 2 virtual lanes, and agent.max_lanes is 1" in said) == (lanes > most)


def test_config_check_reads_what_is_named_and_says_what_it_is(tmp_path: Path) -> None:
    squeue = fake_squeue(tmp_path, [])
    conf, gone, file = tmp_path / "topology.conf", tmp_path / "gone.conf", tmp_path / "a.toml"
    conf.write_text("SwitchName=s1 Nodes=n[001-009]\n")
    dump = EXAMPLES / "opensm-lfts.dump"

    def check(fabric: Path, lfts: Path, topology: Path, policy: Path | str = "") -> tuple[int, str]:
        file.write_text(
            f"[agent]\nib_partitions_file = '{policy}'\nrun_dir = '{tmp_path}'\n"
            f"[slurm]\nsqueue = ['{squeue}']\ntopology_conf = '{topology}'\n"
            f"[fabric]\nfile = '{fabric}'\n[opensm]\nlfts_dump = '{lfts}'\n"
        )
        done = sar_agent("config", "check", "--config", file)
        return done.returncode, done.stdout + done.stderr

    code, said = check(FABRIC, dump, conf)
    assert code == 0
    assert f"fabric.file: {FABRIC} is a fabric of 36 hosts and " in said
    assert f"opensm.lfts_dump: {dump} is a dump of forwarding tables of " in said
    assert f"slurm.topology_conf: {conf} is Slurm's topology of 1 switch and 9 hosts" in said
    code, said = check(FABRIC, dump, gone)
    assert code == 0
    assert f"slurm.topology_conf = '{gone}': no such file; the leaf switches are" in said
    code, said = check(conf, conf, FABRIC, FABRIC)
    assert code == 2 and "4 problems" in said
    assert f"fabric.file: {conf}: this is Slurm's topology.conf" in said
    policy = "agent.ib_partitions_file", FABRIC
    for key, name in (("opensm.lfts_dump", conf), ("slurm.topology_conf", FABRIC), policy):
        assert f"{key}: {name}:" in said
    code, said = check(FABRIC, dump, conf, FABRIC)
    assert code == 2 and f"agent.ib_partitions_file: {FABRIC}:" in said


def test_config_show_prints_what_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("[agent]\ninterval_seconds = 12\n")
    monkeypatch.setenv("SAR_AGENT_CONFIG", str(file))
    shown = sar_agent("config", "show").stdout
    assert "interval_seconds = 12  # changed\n" in shown
    (tmp_path / "again.toml").write_text(shown)
    again = sar_agent("config", "show", "--config", tmp_path / "again.toml").stdout
    assert again == shown


def test_hosts_of_a_job_come_switch_by_switch() -> None:
    """Near leaf switches follow each other, whatever the order of the job's hosts."""
    fabric = load_fabric("xgft:3;2,2,2;1,2,2")
    hosts = sorted(fabric.hosts)
    known, unknown = in_switch_order(fabric, [*hosts[::-1], "elsewhere"])
    assert unknown == ["elsewhere"]
    assert [host for host, _ in known] == hosts
    assert len({switch for _, switch in known}) == 4


@pytest.mark.parametrize(
    ("form", "first"),
    [("hostfile", "n001 slots=2"), ("rankfile", "rank 0=n001 slot=0"), ("list", "n001,n002,n003")],
)
def test_order_prints_files_of_mpi(form: str, first: str) -> None:
    done = sar_agent("rank-order", "4711", *BOTH, "--form", form, "--tasks-per-node", "2")
    assert done.stdout.startswith(first)
    if form == "rankfile":
        assert len(done.stdout.splitlines()) == 18
        assert "rank 17=n019 slot=1\n" in done.stdout


def test_order_of_a_job_that_does_not_run() -> None:
    done = sar_agent("rank-order", "99", *BOTH)
    assert done.returncode == 2 and "no job 99 is running" in done.stderr


def test_anonymous_copies_have_the_same_measures_and_no_name(tmp_path: Path) -> None:
    done = sar_agent(
        *("anonymize", *BOTH, "--out", tmp_path, "--key", "secret"),
        *("--routes", EXAMPLES / "opensm-lfts.dump"),
        *("--topology-conf", EXAMPLES / "topology.conf"),
    )
    assert done.returncode == 0, done.stderr
    text = "".join(file.read_text() for file in tmp_path.iterdir())
    for name in ("n001", "S1-0", "leaf", "4711", "ada", "phys", "0002c903", "0008f104"):
        assert name not in text, name
    ours = sar_agent("measure", *BOTH, "--routes", EXAMPLES / "opensm-lfts.dump", "--json")
    copy = ("--fabric", tmp_path / "fabric.net", "--jobs", tmp_path / "jobs.txt")
    theirs = sar_agent("measure", *copy, "--routes", tmp_path / "lfts.dump", "--json")
    assert _without_names(theirs.stdout) == _without_names(ours.stdout)
    files = ("--fabric", tmp_path / "fabric.net", "--topology-conf", tmp_path / "topology.conf")
    assert sar_agent("topology", "check", *files).returncode == 0


def _without_names(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output)
    for job in found["jobs_detail"]:
        del job["job"]
    return found


def test_bad_input_leaves_no_copies(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("a b c d\n")
    out = tmp_path / "out"
    done = sar_agent("anonymize", "--fabric", FABRIC, "--jobs", tmp_path / "jobs", "--out", out)
    assert done.returncode == 2 and not out.exists()


OURS = SmStatus(
    engine="sar", ours=True, identity="a", generation=3, highest_generation=3, switches=4,
    hca_ports=8,
)  # fmt: skip


def status(**changed: Any) -> AgentStatus:
    wanted = State.model_construct(identity="a", generation=3, hold=None)
    whole = AgentStatus("install", "agent 17", wanted, OURS, "", [1, 2, 3])
    return replace(whole, **changed)


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({}, "OK", "generation 3 is in force"),
        ({"running": ""}, "CRITICAL", "the agent is not running"),
        ({"in_force": None, "problem": "no answer"}, "CRITICAL", "does not answer: no answer"),
        ({"unread": "state.json cannot be read"}, "CRITICAL", "cannot be read"),
        ({"wanted": None}, "WARNING", "no routes were installed yet"),
        ({"in_force": replace(OURS, ours=False, engine="dfsssp")}, "WARNING", "engine dfsssp"),
        ({"in_force": replace(OURS, identity="b")}, "WARNING", "generation 3 is in force, not 3"),
        ({"in_force": replace(OURS, unsettled="2 switches")}, "WARNING", "2 switches"),
        ({"in_force": replace(OURS, drops="some are dropped")}, "WARNING", "are dropped"),
        ({"mode": "observe"}, "OK", "observes"),
        ({"mode": "observe", "running": ""}, "WARNING", "not running (observe mode)"),
    ],
)
def test_the_state_as_a_code_of_monitoring(changed: dict[str, Any], code: str, words: str) -> None:
    found, sentence = judge_status(status(**changed))
    assert found.name == code and words in sentence


def test_status_check_prints_one_line_and_returns_its_code(tmp_path: Path) -> None:
    assert [code.value for code in MonitoringCode] == [0, 1, 2, 3]
    done = sar_agent("status", "--check", "--config", tmp_path / "none.toml")
    assert done.returncode == 3
    assert done.stdout.startswith("sar-agent UNKNOWN: ") and done.stdout.count("\n") == 1


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "routes"
    done = sar_agent("route", *BOTH, "--engine", "dfsssp", "--out", out, "--dry-run")
    assert f"would be written to {out}" in done.stdout and not out.exists()


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ("4716|PENDING||batch|grace|chem|16|N/A|\n", "has no running job"),
        ("", "has no running job"),
        ("cn001 1\ncn002 1\n", "no host of the 1 job"),
        ("n001 1\nn002 1\n", "none of the 1 job in"),
    ],
)
def test_routes_for_nobody_are_noted(jobs: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text(jobs)
    done = sar_agent("route", "--fabric", FABRIC, "--jobs", tmp_path / "jobs", "--engine", "dfsssp")
    assert done.returncode == 0
    assert words in done.stderr


def test_lines_of_the_journal_have_a_priority(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = os.fstat(2)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        for stream, mark in ((f"{found.st_dev}:{found.st_ino}", "<4>"), ("1:2", "")):
            monkeypatch.setenv("JOURNAL_STREAM", stream)
            service.log_to_stderr()
            logging.getLogger("x").warning("two\nlines")
            assert capfd.readouterr().err == f"{mark}warning: two\n{mark}lines\n"
    finally:
        root.handlers[:], root.level = before


@pytest.fixture
def no_plugin(tmp_path: Path) -> Path:
    """A configuration in observe mode: the fabric's command fails; there is a dump of tables."""
    for name in ("state", "run"):
        (tmp_path / name).mkdir()
    file = tmp_path / "agent.toml"
    file.write_text(
        f'[agent]\nstate_dir = "{tmp_path}/state"\nrun_dir = "{tmp_path}/run"\n'
        f'[slurm]\nsqueue = ["{EXAMPLES}/squeue"]\n'
        f'[fabric]\ncommand = ["sh", "-c", "echo first >&2; echo no umad here >&2; exit 3"]\n'
        f'[opensm]\nlfts_dump = "{EXAMPLES}/opensm-lfts.dump"\n'
    )
    return file


def test_a_program_s_stderr_is_shown_whole_and_once(no_plugin: Path) -> None:
    done = sar_agent("once", "--config", no_plugin)
    assert done.returncode == 1
    said = "sh failed with exit code 3: first no umad here"
    assert done.stderr.count(said) == 1, done.stderr


def test_status_names_the_dump_that_observe_mode_reads(no_plugin: Path) -> None:
    done = sar_agent("status", "--config", no_plugin)
    assert f"in observe mode the agent reads {EXAMPLES}/opensm-lfts.dump instead" in done.stdout
