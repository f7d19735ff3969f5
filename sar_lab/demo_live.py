"""The whole loop on real parts, told as it happens: a simulated fabric under a stock OpenSM with
our plugin, a real Slurm, and the agent between them. Jobs come and go, a cable is pulled.

Everything lives in scratch folders and ends with the demo, on Ctrl-C, too.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType

from rich.console import Console
from rich.markup import escape

from sar_agent.agent.decide import Reason
from sar_agent.agent.history import Row
from sar_agent.agent.rehearsal import rehearse
from sar_agent.config.model import Config
from sar_agent.errors import CheckFailed
from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.formats.routes_file import read_routes_file
from sar_agent.opensm.plugin_client import PluginClient
from sar_lab.live.agent import AgentProcess
from sar_lab.live.generated import ibsim_for
from sar_lab.live.ibdmchk import ibdmchk
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_until
from sar_lab.live.requirements import plugin, require_everything
from sar_lab.live.slurm import SlurmCluster

HOSTS_PER_LEAF, LEAVES, SPINES = 6, 4, 4
DUMP_FILES = 0x43  # log flags: errors, information, and the files that ibdmchk reads
PATIENCE = 20.0
"""Seconds that the agent may take for anything: on a quiet machine it is about one."""
PAUSE = 1.5
"""Seconds after each act, to read what was said."""


def demo_live() -> int:
    """Runs it; the exit code: 0 if all that was expected was seen."""
    require_everything("demo-live")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    story = DemoLog()
    try:
        with ExitStack() as stack:
            _play(story, stack)
            story.tell("the end; stopping everything")
    except KeyboardInterrupt:
        story.tell("interrupted; everything is stopped")
        return 130
    except DemoStepFailed as error:
        story.tell(f"[red]NOT SEEN[/]: {escape(str(error))}; everything is stopped")
        return 1
    story.tell("everything is stopped, all that was expected was seen")
    return 0


class DemoStepFailed(CheckFailed):
    """What the demo waited for did not happen."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C once; a second one must not stop the stopping."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


class DemoLog:
    """Lines with the time since the start, and what the agent and OpenSM did meanwhile."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._console = Console(highlight=False, soft_wrap=True)
        self.agent: AgentProcess | None = None
        self.bridge: PluginClient | None = None
        self._engine = ""

    def tell(self, line: str) -> None:
        """One line."""
        self._console.print(f"\\[{time.monotonic() - self._start:5.1f} s] {line}")

    def expect(self, what: str, seen: Callable[[Row], bool]) -> Row:
        """Tell all news until the agent's decision `seen`. Raises `DemoStepFailed`."""
        end = time.monotonic() + PATIENCE
        found = None
        while found is None:
            if time.monotonic() > end:
                raise DemoStepFailed(f"{what}, not within {PATIENCE:g} s")
            time.sleep(0.05)
            self._look_at_opensm()
            assert self.agent
            for row in self.agent.news():
                self.tell(_in_words(row))
                found = row if seen(row) else found
        self._look_at_opensm()
        time.sleep(PAUSE)
        return found

    def quiet(self, what: str, seconds: float) -> None:
        """Raises `DemoStepFailed` if the agent decides anything meanwhile."""
        time.sleep(seconds)
        assert self.agent
        for row in self.agent.news():
            self.tell(_in_words(row))
            raise DemoStepFailed(f"{what} was to change nothing")

    def _look_at_opensm(self) -> None:
        assert self.bridge
        status = self.bridge.status()
        if status.engine_in_force != self._engine:
            self._engine = status.engine_in_force
            why = f"; the plugin says: {escape(status.last_error)}" if status.last_error else ""
            self.tell(f"  OpenSM has engine [bold]{self._engine}[/] in force{why}")


def _in_words(row: Row) -> str:
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
    story.tell("the agent runs in install mode and looks at Slurm twice a second")
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

    _cut_and_mend(story, ibsim, fabric)
    replaced = start("n[001,007-008,013,019-020]")
    story.expect("routes for the newcomer", jobs_changed)
    slurm.scancel(second, local)
    story.tell(f"jobs {second} and {local} ended; {replaced} goes on")
    last = story.expect("routes for those that are left", jobs_changed)
    _verify(story, manager, last.generation)


def _start(story: DemoLog, stack: ExitStack, fabric: Fabric) -> tuple[Ibsim, OpenSM, SlurmCluster]:
    ibsim = stack.enter_context(ibsim_for(fabric))
    story.tell(
        f"a simulated fabric: {fabric.terminals} hosts, {LEAVES} leaf and {SPINES} spine switches"
    )
    manager = stack.enter_context(
        OpenSM(ibsim, host=fabric.terminal_host[0], plugin=plugin(), log_flags=DUMP_FILES)
    )
    manager.wait_up()
    story.bridge = PluginClient(manager.socket_path)
    story.tell("a stock OpenSM with our plugin is up, its engines are sar,dfsssp,updn")
    slurm = stack.enter_context(SlurmCluster(f"n[001-{fabric.terminals:03d}]", HOSTS_PER_LEAF))
    story.tell(f"a real Slurm is up: slurmctld and {fabric.terminals} slurmd, all nodes idle")
    return ibsim, manager, slurm


def _cut_and_mend(story: DemoLog, ibsim: Ibsim, fabric: Fabric) -> None:
    leaf, port = fabric.switch_name[0], HOSTS_PER_LEAF + 1
    mending = (Reason.FALLBACK, Reason.FABRIC)

    def mended(row: Row) -> bool:
        return row.result == "installed" and row.reason in mending

    ibsim.unlink(leaf, port)
    story.tell(f"[bold]the cable at port {port} of leaf switch {leaf} is pulled[/]")
    story.expect("routes around the cable", mended)
    ibsim.relink(leaf, port)
    story.tell("[bold]the cable is back[/]")
    story.expect("routes over the cable again", mended)


def _verify(story: DemoLog, manager: OpenSM, generation: int) -> None:
    """By others' means: what OpenSM dumped, judged by ibdmchk."""
    assert story.bridge
    status = story.bridge.status()
    if (status.engine_in_force, status.generation_in_force) != ("sar", generation):
        raise DemoStepFailed(
            f"engine sar and generation {generation} in force at the end, but "
            f"{status.engine_in_force} and {status.generation_in_force}"
        )
    story.tell(f"in force at the end: engine sar, generation {generation}, on all switches")
    before = status.heavy_sweeps
    manager.sweep()
    bridge = story.bridge
    if not wait_until(lambda: bridge.status().heavy_sweeps > before, PATIENCE):
        raise DemoStepFailed("OpenSM's sweep")
    judgement = ibdmchk(manager, read_routes_file(bridge.dump().path), manager.lids())
    paths = re.search(r"Scanned:(\d+) CA to CA paths", judgement.text)
    errors = re.findall(r"^-E- (.*)", judgement.text, re.MULTILINE)
    if not judgement.clean or not paths or errors:
        raise DemoStepFailed(
            f"a good verdict of ibdmchk, but {(errors or [judgement.text[-300:]])[0]}"
        )
    story.tell(f"ibdmchk on what OpenSM installed: {paths[1]} paths, no credit loops found")
