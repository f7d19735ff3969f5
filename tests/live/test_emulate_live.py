"""`sar-lab emulate --live`: ranks that real slurmds start, on routes that follow ibsim's
switches."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sar_agent.errors import CheckFailed
from sar_agent.opensm.plugin_client import AT_REST
from sar_lab.emulate.live.losses import losses_of
from sar_lab.emulate.live.play import FIRST, SECOND, THIRD
from sar_lab.emulate.live.site import LiveSite, start_site
from sar_lab.emulate.tables import write_entry
from sar_lab.live.ibsim import TIMEOUTS
from sar_lab.live.process import PATIENCE, wait_until
from sar_lab.live.requirements import PLUGIN, SPANK
from tests.worlds.live.built import built
from tests.worlds.live.emulation import possible as possible
from tests.worlds.live.site import plugin

pytestmark = pytest.mark.live
RATE, SIZE = 2e6, 30_000


@pytest.fixture(scope="module")
def named() -> dict[str, str]:
    """The environment that names what is built but not installed."""
    return {
        PLUGIN: str(plugin()),
        SPANK: str(built("slurm_spank", "sar_spank.so")),
        TIMEOUTS: os.environ[TIMEOUTS],
    }


@pytest.fixture(scope="module")
def site(named: dict[str, str]) -> Iterator[LiveSite]:
    """Without the agent: the tables are those of OpenSM's ftree. Two jobs run."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        for name, value in named.items():
            patch.setenv(name, value)
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sar-")))
        made = start_site(stack, scratch, RATE, SIZE, print)
        assert wait_until(lambda: bool(made.followed.look()), 30), made.followed.trouble
        for terminals in (FIRST, SECOND):
            made.jobs.start(terminals)
        assert goes_on(made)
        yield made


def goes_on(site: LiveSite, iterations: int = 2) -> bool:
    """Each job prints so many more iterations, while routes follow the switches."""
    site.jobs.read()
    before = [len(job.iterations) for job in site.jobs.running]

    def more() -> bool:
        site.followed.look()
        site.jobs.read()
        assert not any(job.ended for job in site.jobs.running), site.jobs.running[0].last_words()
        now = [len(job.iterations) for job in site.jobs.running]
        return all(b - a >= iterations for a, b in zip(before, now, strict=True))

    return wait_until(more, 60, 0.2)


def test_slurm_s_ranks_send_over_the_cables(site: LiveSite) -> None:
    """Each in its own host, by PMIx; all sums are right, and no packet is lost."""
    before, up = losses_of(site.network), [space.sent() for space in site.network.switches]
    assert goes_on(site)
    job = site.jobs.running[0]
    said = site.slurm.run(
        "srun", f"--jobid={job.number}", "--overlap", "-N5", "-n5",
        "sh", "-c", "echo $(hostname) $(ip -4 -o address show dev ib0)",
    )  # fmt: skip
    places = {tuple(re.findall(r"^(\S+)|inet (\S+)/32", line)) for line in said.splitlines()}
    assert places == {
        ((site.slurm.nodes[t], ""), ("", site.network.address(t))) for t in job.terminals
    }
    leaf = site.network.switches[int(site.fabric.terminal_switch[0])].sent()
    ups = [name for name in leaf if int(name[1:]) > 4]
    assert sum(leaf[name] - up[int(site.fabric.terminal_switch[0])][name] for name in ups) > SIZE
    assert site.jobs.wrong() == 0
    assert losses_of(site.network).minus(before).dropped == 0


def test_a_planted_route_is_seen(site: LiveSite) -> None:
    """The routes of the namespaces are compared with what the switches answer, at every look."""
    leaf, far = int(site.fabric.terminal_switch[0]), 15
    right = int(site.followed.tables.entries[far, leaf])
    wrong = right % 4 + 5
    write_entry(site.network, leaf, far, wrong)
    with pytest.raises(CheckFailed, match=f"by port {wrong} instead of port {right}"):
        site.followed.look()
    write_entry(site.network, leaf, far, right)
    compared = site.followed.compared
    assert wait_until(lambda: site.followed.look() == 0 and not site.followed.trouble, 10)
    assert site.followed.compared == compared + 16 * 8


def test_routes_follow_opensm_after_a_cable_is_pulled(site: LiveSite) -> None:
    """Ranks wait and go on; what was on the cable is lost and sent again."""
    leaf, far = int(site.fabric.terminal_switch[0]), 15
    port = int(site.followed.tables.entries[far, leaf])
    site.pull(leaf, port)
    try:
        tables = site.followed.tables
        assert wait_until(
            lambda: bool(site.followed.look()) and int(tables.entries[far, leaf]) != port, 30
        )
        assert not (tables.entries[:, leaf] == port).any()
        assert goes_on(site)
    finally:
        site.plug(leaf, port)
    assert wait_until(
        lambda: bool(site.followed.look()) and (tables.entries[:, leaf] == port).any(), 30
    )
    assert goes_on(site)
    assert site.jobs.wrong() == 0


def test_opensm_is_killed_and_ranks_go_on(site: LiveSite) -> None:
    before = losses_of(site.network)
    site.manager.kill()
    assert goes_on(site)
    assert losses_of(site.network).minus(before).dropped == 0
    site.manager.start().wait_up()
    assert goes_on(site)


COMMAND = [sys.executable, "-c", "from sar_lab.cli import main; main()", "emulate", "--live"]
TWO_JOBS = """
import os, tempfile, time
from contextlib import ExitStack
from pathlib import Path
from sar_lab.emulate.live.site import start_site
from sar_lab.emulate.live.play import FIRST, SECOND
with ExitStack() as stack:
    site = start_site(stack, Path(tempfile.gettempdir()), 2e6, 30_000, print)
    for terminals in (FIRST, SECOND):
        site.jobs.start(terminals)
    while not all(job.iterations for job in site.jobs.running):
        site.followed.look()
        site.jobs.read()
        time.sleep(0.2)
    print("all ranks run", flush=True)
    time.sleep(1000)
"""


@pytest.fixture
def scratch(named: dict[str, str]) -> Iterator[dict[str, str]]:
    """An environment in which all that is left behind is left in a folder of ours; its path is
    short, since those of Unix sockets may have 107 characters."""
    with tempfile.TemporaryDirectory(prefix="sar-", ignore_cleanup_errors=True) as folder:
        yield os.environ | named | {"TMPDIR": folder}


def test_nothing_is_left_after_kill_9(scratch: dict[str, str]) -> None:
    """Neither processes, ranks and slurmds in their networks included, nor files."""
    with subprocess.Popen(
        [sys.executable, "-c", TWO_JOBS], env=scratch, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert any("all ranks run" in line for line in process.stdout)
        assert any("all_reduce" in found for found in left_behind(scratch))
        process.kill()
    assert wait_until(lambda: left_behind(scratch) == [], 30), left_behind(scratch)


def test_ctrl_c(scratch: dict[str, str], tmp_path: Path) -> None:
    with subprocess.Popen(
        # A shell starts what is in the background with SIGINT ignored, tests perhaps, too.
        ["env", "--default-signal=INT", *COMMAND, "--out", str(tmp_path)],
        env=scratch, stdout=subprocess.PIPE, text=True,
    ) as command:  # fmt: skip
        assert command.stdout
        for line in command.stdout:
            if "a real Slurm is up" in line:
                break
        time.sleep(1)
        command.send_signal(signal.SIGINT)
        assert "interrupted; everything is stopped" in command.stdout.read()
        assert command.wait(30 * PATIENCE) == 130
    assert left_behind(scratch) == []


@pytest.mark.long
def test_the_whole_loop(scratch: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--out", str(tmp_path)], env=scratch, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line in (
        r"a real Slurm is up: slurmctld, and a slurmd in each of the 16 hosts",
        r"settings of the agent that are not the defaults: agent\.mode, .*events\.munge_socket",
        r"job 2 started by sbatch and srun --mpi=pmix on 5 hosts",
        r"messages meet on OpenSM's own tables: an iteration takes \S+ s and \S+ s.* idle",
        r"the agent installed generation 1, because",
        r"an iteration takes \S+ s → \S+ s \(job 1\), \S+ s → \S+ s \(job 2\)",
        r"because 1 multi-switch job started, 0 ended: \d+ entries changed",
        r"the cable at port \d+ of \S+ is pulled",
        r"repaired the tables; the ranks of job 1 waited \S+ s",
        r"the cable is back",
        r"the agent is killed",
        r"OpenSM is killed",
        r"in force at the end: engine sar, generation \d+; ibdmchk on .*: 240 paths, no credit",
        r"everything is stopped; every expected event happened",
    ):
        assert re.search(line, done.stdout), f"{line!r} is not in\n{done.stdout}"
    changes = re.findall(r"(?:change|stopped): packets lost: (\d+).*; wrong sums: 0", done.stdout)
    assert changes == ["0", "0", "0"], done.stdout
    page = (tmp_path / "index.html").read_text()
    assert "every expected event happened" in page and "http-equiv" not in page
    assert left_behind(scratch) == []


@pytest.mark.long
def test_ten_proved_transitions_lose_nothing(site: LiveSite) -> None:
    """A third job comes and goes, and the agent reroutes under the all-reduces of two others."""
    with site.agent as agent:
        generation = 0

        def installed() -> bool:
            nonlocal generation
            site.followed.look()
            agent.news()  # it still runs
            status = site.bridge.status()
            fresh = status.state in AT_REST and status.generation_in_force > generation
            if fresh:
                generation = status.generation_in_force
            return fresh

        before = losses_of(site.network)
        assert wait_until(installed, 120, 0.2), agent.log
        for _ in range(5):
            job = site.jobs.start(THIRD)
            assert wait_until(installed, 120, 0.2), agent.log
            assert goes_on(site)
            site.jobs.cancel(job)
            assert wait_until(installed, 120, 0.2), agent.log
            assert goes_on(site)
        lost = losses_of(site.network).minus(before)
    assert lost.dropped == 0, lost
    assert site.jobs.wrong() == 0


def left_behind(scratch: dict[str, str]) -> list[str]:
    """Files in the scratch folder, and processes whose environment or command names it."""
    folder = scratch["TMPDIR"]
    found = [path.name for path in Path(folder).iterdir()] if Path(folder).exists() else []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            known = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:  # it ended meanwhile, or is a zombie
            continue
        if folder.encode() in known:
            found.append(known.decode(errors="replace"))
    return found
