"""docs/look-only.md beside a real Slurm: its two scripts as they stand there, and `place`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.doc_blocks import blocks, run

pytestmark = pytest.mark.live
PAGE = Path(__file__).parents[2] / "docs" / "look-only.md"
SPEC = "xgft:2;4,4;1,2"
"""16 hosts, n001 to n016, as Slurm's: four leaf switches, 2:1."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Slurm's scripts find sar-agent, the fabric and the queue."""
    folder = tmp_path_factory.mktemp("look-only")
    folder.chmod(0o755)
    write_ibsim_net(load_fabric(SPEC), folder / "fabric.net")
    (folder / "sar-agent").write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(PAGE.parents[1])!r})\n"
        "from sar_agent.cli import main\n\nmain()\n"
    )
    (folder / "sar-agent").chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[SlurmCluster]:
    extra = f"PrologSlurmctld={folder / 'comment'}\nTaskProlog={folder / 'prolog'}\n"
    for name in ("comment", "prolog"):
        (folder / name).touch(0o755)
    with SlurmCluster("n[001-016]", leaf_size=4, extra=extra) as cluster:
        write_scripts(folder, cluster.conf)
        yield cluster


def write_scripts(folder: Path, conf: Path) -> None:
    """The page's scripts with the paths of this test; slurmctld gives its own no SLURM_CONF."""
    paths = {
        "/etc/slurm/fabric.ibnetdiscover": str(folder / "fabric.net"),
        " --routes /run/opensm-lfts.dump": "",
        "/tmp/hostfile": str(folder / "hostfile"),
        "sar-agent ": f"{folder / 'sar-agent'} ",
        "setsid sh": f"export SLURM_CONF={conf}; setsid sh",
    }
    for kind, name, text in blocks(PAGE):
        if kind == "file":
            for path, ours in paths.items():
                text = text.replace(path, ours)
            (folder / name).write_text(text)


def save_queue(cluster: SlurmCluster, folder: Path) -> None:
    """What cron does each minute."""
    text = cluster.squeue("-h", "-o", "%i|%T|%N|%P|%u|%a|%D|%S|%k")
    (folder / "queue.txt").write_text(text)


def test_a_comment_says_how_many_jobs_share_the_busiest_link(cluster: SlurmCluster) -> None:
    def comment(job: str) -> str:
        found = re.search(r"AdminComment=(.+)", cluster.run("scontrol", "show", "job", job))
        return found[1].strip() if found else ""

    first = cluster.salloc("n[001-002,005-006]")
    assert wait_until(lambda: comment(first), 60)
    assert comment(first).startswith(f"job {first} shares its busiest link with no other jobs (")
    second = cluster.salloc("n[003-004,007-008]")
    assert wait_until(lambda: comment(second), 60)
    assert re.fullmatch(
        rf"job {second} shares its busiest link with 1 other job \(predicted load \d\.\d\d\)",
        comment(second),
    )
    cluster.scancel(first, second)
    assert "shares" in comment(first)  # it stays, and accounting gets it


def test_rank_order_is_a_host_file_in_the_task_prolog(cluster: SlurmCluster, folder: Path) -> None:
    """Hosts by leaf switch; a job's first task finds the file in its environment."""
    where = ("-N4", "-w", "n[001,005,002,006]", "--ntasks-per-node=1")
    printed = cluster.run("srun", *where, "sh", "-c", "cat $SAR_HOSTFILE 2>/dev/null", timeout=120)
    hosts = [row.split()[0] for row in printed.splitlines()]
    assert sorted(hosts) == ["n001", "n002", "n005", "n006"]
    leaves = [(int(host[1:]) - 1) // 4 for host in hosts]
    assert leaves == sorted(leaves) or leaves == sorted(leaves, reverse=True)
    assert all(row.endswith("slots=1") for row in printed.splitlines())


@pytest.mark.parametrize("form", [("-h", "-N", "-o", "%N|%T|%P"), (), ("--json",)])
def test_place_reads_sinfo_and_the_queue(
    cluster: SlurmCluster,
    folder: Path,
    tmp_path: Path,
    form: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = cluster.salloc("n[001-003,005]")
    save_queue(cluster, folder)
    (folder / "sinfo").write_text(cluster.run("sinfo", *form))
    given = f"--fabric {folder / 'fabric.net'} --jobs {folder / 'queue.txt'}"
    printed = run(f"sar-agent place -N 4 {given} --nodes {folder / 'sinfo'}", tmp_path)
    assert printed.startswith("4 nodes of 12 free ones:\n- Slurm's tree rule: n[")
    assert not {"n001", "n002", "n003", "n005"} & set(re.findall(r"n\d{3}", printed))
    spread = run(f"sar-agent place {given} --nodes {folder / 'sinfo'}", tmp_path)
    assert f"job {job} (root): 4 nodes on 2 switches, 1 would do" in spread
    links = run(f"sar-agent link --job {job} {given}", tmp_path)
    assert f"job {job} (root)" in links
    for command in ("cables", "what-if --down S2-0"):
        assert run(f"sar-agent {command} {given}", tmp_path)
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))  # squeue and sinfo are asked
    asked = run(f"sar-agent place -N 4 --fabric {folder / 'fabric.net'}", tmp_path)
    assert asked == printed
    cluster.scancel(job)
    cluster.wait_idle()
