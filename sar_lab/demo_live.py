"""`demo-live`: the whole loop on real parts. A stock OpenSM with our plugin runs on a simulated
fabric, the agent connects it with a real Slurm, jobs start and end, and a cable is pulled.

All files are in scratch folders, and all processes end with the demo, also on Ctrl-C.
"""

from __future__ import annotations

import re
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.markup import escape

from sar_agent.agent.decide import Reason
from sar_agent.agent.history import Row
from sar_agent.agent.outcome import Result
from sar_agent.agent.rehearsal import rehearse
from sar_agent.config.model import Config
from sar_agent.errors import CheckFailed
from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.formats.routes_file import read_routes_file
from sar_agent.opensm.plugin_client import PluginClient
from sar_agent.util.plural import plural
from sar_lab.live.agent import AgentProcess
from sar_lab.live.generated import ibsim_for
from sar_lab.live.ibdmchk import ibdmchk
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_until, waited
from sar_lab.live.requirements import plugin, require_everything
from sar_lab.live.slurm import SlurmCluster

HOSTS_PER_LEAF, LEAVES, SPINES = 6, 4, 4
DUMP_FILES = 0x43  # log flags: errors, information, and the files that ibdmchk reads
STEP_SECONDS = 60.0
"""The time limit for each step on a quiet machine, where a step takes about one second."""
PAUSE = 1.5
"""Seconds after each step, for the reader."""


def demo_live() -> int:
    """Runs the demo; returns the exit code, 0 if every expected event happened."""
    require_everything("demo-live")
    story = DemoLog()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, story.interrupt)
    code, end = 0, "everything is stopped; every expected event happened"
    try:
        with ExitStack() as stack:
            _play(story, stack)
            story.tell("the end; stopping everything")
    except KeyboardInterrupt:
        code, end = 130, "interrupted; everything is stopped"
    except DemoStepFailed as error:
        code, end = 1, f"[red]FAILED[/]: {escape(str(error))}; everything is stopped"
    story.interrupted = False
    story.tell(end)
    return code


class DemoStepFailed(CheckFailed):
    """An expected event did not happen."""


class DemoLog:
    """Prints lines with the time since the start, and the actions of the agent and OpenSM."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._console = Console(highlight=False, soft_wrap=True)
        self.agent: AgentProcess | None = None
        self.bridge: PluginClient | None = None
        self.manager: OpenSM | None = None
        self.interrupted = False
        self._engine = ""

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handles Ctrl-C; a second one is ignored, so that it cannot interrupt the cleanup. While a
        kernel is compiled, the compiler drops the exception; then `tell` raises it."""
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        self.interrupted = True
        raise KeyboardInterrupt

    def tell(self, line: str) -> None:
        """Print one line."""
        if self.interrupted:
            raise KeyboardInterrupt
        self._console.print(f"\\[{time.monotonic() - self._start:5.1f} s] {line}")

    def expect(self, what: str, seen: Callable[[Row], bool]) -> Row:
        """Print all actions up to the agent's decision `seen`. Raises `DemoStepFailed`."""
        found: list[Row] = []

        def look() -> bool:
            self._look_at_opensm()
            assert self.agent
            for row in self.agent.news():
                self.tell(_in_words(row))
                found.extend([row] if seen(row) else [])
            return bool(found)

        if not wait_until(look, STEP_SECONDS):
            raise DemoStepFailed(
                f"{what} did not appear within {waited(STEP_SECONDS)}; the logs are in "
                f"{self._keep_logs()}; if the machine is busy, try SAR_PATIENCE=10 make demo-live"
            )
        self._look_at_opensm()
        time.sleep(PAUSE)
        return found[-1]

    def quiet(self, what: str, seconds: float) -> None:
        """Raises `DemoStepFailed` if the agent makes a decision within `seconds`."""
        time.sleep(seconds)
        assert self.agent
        for row in self.agent.news():
            self.tell(_in_words(row))
            raise DemoStepFailed(f"{what} should change nothing")

    def _keep_logs(self) -> Path:
        """A folder with the logs, which the end of the demo does not remove."""
        folder = Path(tempfile.mkdtemp(prefix="sar-demo-live-"))
        if self.agent:
            (folder / "agent.log").write_text(self.agent.log)
        if self.manager:
            (folder / "opensm.log").write_text(self.manager.log())
        return folder

    def _look_at_opensm(self) -> None:
        assert self.bridge
        status = self.bridge.status()
        if status.engine_in_force != self._engine:
            self._engine = status.engine_in_force
            why = f"; the plugin reports: {escape(status.last_error)}" if status.last_error else ""
            self.tell(f"  OpenSM has engine [bold]{self._engine}[/] in force{why}")


def _in_words(row: Row) -> str:
    if row.result == Result.FOLLOWED:
        return f"  {escape(row.why)}; the agent has checked the tables and goes on from them"
    if row.result != "installed":
        return f"  the agent [red]{row.result}[/]: {escape(row.why)}; {escape(row.message)}"
    text = (
        f"  the agent installed [bold]generation {row.generation}[/], because {escape(row.why)}: "
        f"{row.entries_changed} table entries changed"
    )
    if row.before and row.achieved:
        text += (
            f", dark fiber {row.before['dark_fiber_ratio']:.0%} → "
            f"[bold]{row.achieved['dark_fiber_ratio']:.0%}[/], largest effective EFI "
            f"{row.before['effective_efi_max']} → {row.achieved['effective_efi_max']}"
        )
    return f"{text} ({row.seconds:.1f} s)"


def _play(story: DemoLog, stack: ExitStack) -> None:
    fabric = xgft_fabric(f"xgft:2;{HOSTS_PER_LEAF},{LEAVES};1,{SPINES}")
    ibsim, manager, slurm = _start(story, stack, fabric)
    done = rehearse(Config(), lambda what: story.tell(f"  {what}"))
    if done.compiled:
        story.tell(f"  {done.compiled} kernels are compiled, in {done.seconds:.0f} s")
    story.agent = stack.enter_context(AgentProcess(manager, slurm))
    story.tell("the agent runs in install mode and polls Slurm twice a second")
    story.expect("first routes", lambda row: row.result == "installed")

    def start(nodes: str) -> str:
        job = slurm.salloc(nodes)
        story.tell(f"job {job} started on {nodes}")
        return job

    def jobs_changed(row: Row) -> bool:
        return row.result == "installed" and row.reason == Reason.JOBS

    first = start("n[001,007-008,013,019-020]")
    story.expect("routes for the first job", jobs_changed)
    second = start("n[002-003,009,014-016,021]")
    story.expect("routes for the second job", jobs_changed)
    local = start("n[004-006]")
    story.tell("  it stays on one leaf switch, so no route needs to change")
    story.quiet(f"job {local}", 2)
    start("n[010-012,017-018,022-024]")
    story.expect("routes for the third job", jobs_changed)

    slurm.scancel(first)
    story.tell(f"job {first} ended; its nodes are free")
    story.expect("routes without the first job", jobs_changed)

    _pull_and_restore_cable(story, ibsim, fabric)
    replaced = start("n[001,007-008,013,019-020]")
    story.expect("routes for the new job", jobs_changed)
    slurm.scancel(second, local)
    story.tell(f"jobs {second} and {local} ended; {replaced} continues")
    last = story.expect("routes for the remaining jobs", jobs_changed)
    _verify(story, manager, last.generation)


def _start(story: DemoLog, stack: ExitStack, fabric: Fabric) -> tuple[Ibsim, OpenSM, SlurmCluster]:
    ibsim = stack.enter_context(ibsim_for(fabric))
    story.tell(
        f"a simulated fabric: {plural(fabric.terminals, 'host')}, {LEAVES} leaf and {SPINES} "
        "spine switches"
    )
    manager = stack.enter_context(
        OpenSM(ibsim, host=fabric.terminal_host[0], plugin=plugin(), log_flags=DUMP_FILES)
    )
    manager.wait_up()
    story.manager, story.bridge = manager, PluginClient(manager.socket_path)
    story.tell("a stock OpenSM with our plugin is up, its engines are sar,dfsssp,updn")
    slurm = stack.enter_context(SlurmCluster(f"n[001-{fabric.terminals:03d}]", HOSTS_PER_LEAF))
    story.tell(f"a real Slurm is up: slurmctld and {fabric.terminals} slurmd, all nodes idle")
    return ibsim, manager, slurm


def _pull_and_restore_cable(story: DemoLog, ibsim: Ibsim, fabric: Fabric) -> None:
    leaf, port = fabric.switch_name[0], HOSTS_PER_LEAF + 1

    def repaired(row: Row) -> bool:
        return row.reason == Reason.AMENDED

    def restored(row: Row) -> bool:
        """By OpenSM's plugin, or by the agent if it has installed better routes meanwhile."""
        return repaired(row) or (row.result == Result.INSTALLED and row.reason == Reason.FABRIC)

    ibsim.unlink(leaf, port)
    story.tell(f"[bold]the cable at port {port} of leaf switch {leaf} is pulled[/]")
    story.expect("a repair in OpenSM's own sweep", repaired)
    ibsim.relink(leaf, port)
    story.tell("[bold]the cable is back[/]")
    story.expect("routes over the cable again", restored)


def _verify(story: DemoLog, manager: OpenSM, generation: int) -> None:
    """Checks the result by independent means: ibdmchk on OpenSM's own dumps."""
    assert story.bridge
    status = story.bridge.status()
    if (status.engine_in_force, status.generation_in_force) != ("sar", generation):
        raise DemoStepFailed(
            f"engine sar and generation {generation} should be in force, but OpenSM has "
            f"{status.engine_in_force} and {status.generation_in_force}"
        )
    story.tell(f"in force at the end: engine sar, generation {generation}, on all switches")
    before = status.heavy_sweeps
    manager.sweep()
    bridge = story.bridge
    if not wait_until(lambda: bridge.status().heavy_sweeps > before, 20):
        raise DemoStepFailed("OpenSM did not sweep")
    verdict = ibdmchk(manager, read_routes_file(bridge.dump().path), manager.lids())
    paths = re.search(r"Scanned:(\d+) CA to CA paths", verdict.text)
    errors = re.findall(r"^-E- (.*)", verdict.text, re.MULTILINE)
    if not verdict.clean or not paths or errors:
        raise DemoStepFailed(
            f"a good verdict of ibdmchk, but {(errors or [verdict.text[-300:]])[0]}"
        )
    story.tell(f"ibdmchk on what OpenSM installed: {paths[1]} paths, no credit loops found")
