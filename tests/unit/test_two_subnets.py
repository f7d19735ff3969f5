"""A site of two subnets with one Slurm: an agent for each plans for the parts of jobs in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds.command_line import said, sar_agent
from tests.worlds.fake_squeue import fake_squeue

EXAMPLE = Path(__file__).parents[2] / "docs/examples/cluster.ibnetdiscover"
PARTS = {  # of each job the hosts in one subnet and in the other
    "n": {"7": (1, 30), "8": (31, 36), "9": (10, 18)},
    "m": {"7": (1, 30), "8": (2, 9), "10": (5, 36)},
}
MULTI_SWITCH = {"n": 2, "m": 3}  # all hosts of job 8 in subnet n are on one leaf switch
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
"""


def hosts(letter: str, job: str) -> list[str]:
    first, last = PARTS[letter].get(job, (1, 0))
    return [f"{letter}{number:03d}" for number in range(first, last + 1)]


def job_map(path: Path, letters: str) -> Path:
    jobs = {job: None for letter in letters for job in PARTS[letter]}
    path.write_text(
        "".join(f"{h} {job}\n" for job in jobs for letter in letters for h in hosts(letter, job))
    )
    return path


@pytest.fixture(params=sorted(PARTS))
def subnet(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A subnet's letter and its fabric: hosts n001 … or m001 …"""
    path = tmp_path / "fabric.ibnetdiscover"
    path.write_text(EXAMPLE.read_text().replace('"n0', f'"{request.param}0'))
    return request.param, path


def test_hosts_of_another_subnet_change_no_route(subnet: tuple[str, Path], tmp_path: Path) -> None:
    letter, fabric = subnet
    tables, notes = [], []
    for number, letters in enumerate(("mn", letter)):
        out = tmp_path / str(number)
        jobs = job_map(tmp_path / f"jobs-{number}", letters)
        done = sar_agent(
            "route", "--fabric", fabric, "--jobs", jobs, "--engine", "sar-plus",
            "--out", out, "--export", "lfts",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        notes.append(done.stderr)
        tables.append((out / "lfts.dump").read_bytes())
    assert tables[0] == tables[1]
    (other,) = set(PARTS) - {letter}
    elsewhere = {host for job in PARTS[other] for host in hosts(other, job)}
    assert f"{len(elsewhere)} hosts of jobs are not in the fabric" in notes[0]
    assert "not in the fabric" not in notes[1]


def test_each_agent_plans_for_the_parts_of_jobs_in_its_subnet(
    subnet: tuple[str, Path], tmp_path: Path
) -> None:
    letter, fabric = subnet
    everywhere = {job: None for part in PARTS.values() for job in part}
    squeue = fake_squeue(
        tmp_path,
        [{"%i": job, "%N": ",".join(hosts("n", job) + hosts("m", job))} for job in everywhere],
    )
    config = tmp_path / "sar-agent.toml"
    config.write_text(CONFIG.format(folder=tmp_path, squeue=squeue, fabric=fabric))
    planned = said("once", "--json", "--config", config)
    assert planned["result"] == "planned"
    assert f"(sar-plus, {MULTI_SWITCH[letter]} jobs," in str(planned["sentence"])
    told = said("explain", "7", "--json", "--config", config)
    (other,) = set(PARTS) - {letter}
    assert told["unknown_hosts"] == hosts(other, "7")
    leaves = told["leaves"]
    assert isinstance(leaves, dict)
    assert sorted(host for names in leaves.values() for host in names) == hosts(letter, "7")
