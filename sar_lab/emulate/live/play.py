"""What happens: jobs meet, the agent reroutes, a cable is pulled, daemons are killed."""

from __future__ import annotations

import re
import signal
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from rich.markup import escape

from sar_agent.agent.decide import Reason
from sar_agent.agent.history import Row
from sar_agent.agent.outcome import Result
from sar_agent.agent.rehearsal import rehearse
from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.formats.routes_file import read_routes_file
from sar_agent.quality.measures import MEETS
from sar_lab.emulate.live.page import rings_of
from sar_lab.emulate.live.site import LiveSite, start_site
from sar_lab.emulate.live.story import Story, Timing
from sar_lab.emulate.namespaces import require_emulation
from sar_lab.live.ibdmchk import ibdmchk
from sar_lab.live.requirements import require_everything

FIRST, SECOND, THIRD = (0, 4, 9, 11, 15), (2, 8, 10, 12, 14), (1, 5, 7, 13)
"""Terminals of three jobs. With the tables of OpenSM's ftree messages of the first two meet on a
cable, and each of these jobs waits for its slowest message."""
SECONDS_ALONE = 0.5
"""About as long an iteration takes whose messages meet none: a ring sends each sum twice."""


def emulate_live(folder: Path, rate: float) -> int:
    """The whole loop; returns the exit code, 0 if every expected event happened. `folder` gets the
    page; `rate` is that of each cable, bits a second. Raises `SarError` before anything is started
    where the machine lacks something."""
    require_everything("emulate --live")
    require_emulation()
    story = Story(folder)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, story.interrupt)
    story.tell(f"the page to watch: {story.page}")
    code, end = 0, "everything is stopped; every expected event happened"
    kept = tempfile.tempdir
    try:
        with tempfile.TemporaryDirectory(prefix="sar-live-") as scratch, ExitStack() as stack:
            tempfile.tempdir = scratch
            Path(scratch).chmod(0o711)  # munged and commands of other users enter it
            size = int(rate * SECONDS_ALONE / 8 / 2)
            _play(story, start_site(stack, Path(scratch), rate, size, story.tell))
            story.tell("the end; stopping everything")
    except KeyboardInterrupt:
        code, end = 130, "interrupted; everything is stopped"
    except SarError as error:
        code, end = 1, f"[red]FAILED[/]: {escape(str(error))}; everything is stopped"
    finally:
        tempfile.tempdir = kept
    story.end(end)
    return code


def _play(story: Story, site: LiveSite) -> None:
    story.tell(
        "the agent's kernels are loaded; the first time they are compiled, in a minute or two"
    )
    rehearse(Config())
    story.begin(site)
    story.tell(f"settings of the agent that are not the defaults: {site.settings()}")
    story.wait("an answer of all switches", lambda: site.followed.answers > 0)
    before = _two_jobs(story, site)
    _agent_starts(story, site, before)
    _third_job(story, site)
    _cable(story, site)
    _daemons_are_killed(story, site)
    _verify(story, site)


def _two_jobs(story: Story, site: LiveSite) -> Timing:
    for terminals in (FIRST, SECOND):
        job = site.jobs.start(terminals)
        story.tell(
            f"job {job.number} started by sbatch and srun --mpi=pmix on {len(terminals)} hosts: an "
            "all-reduce of Open MPI, again and again"
        )
    _running(story, site)
    timing = story.timed()
    meet = " and ".join(f"{seconds:.2f} s" for seconds in timing.seconds.values())
    story.tell(
        f"their messages meet on OpenSM's own tables: an iteration takes [bold]{meet}[/], by what "
        f"the program prints ({timing})"
    )
    return timing


def _agent_starts(story: Story, site: LiveSite, before: Timing) -> None:
    story.mark()
    site.agent.start()
    story.tell("the agent starts in install mode, under the running all-reduces")
    story.decision("the agent's first routes", lambda row: row.result == Result.INSTALLED)
    _compare(story, before, story.timed())
    story.tell(f"  over the change: [bold]{story.lost()}[/]; wrong sums: {site.jobs.wrong()}")


def _third_job(story: Story, site: LiveSite) -> None:
    story.mark()
    job = site.jobs.start(THIRD)
    story.tell(f"job {job.number} starts; Slurm's SPANK plugin reports it to the agent")
    story.decision("routes for the third job", _jobs_changed)
    _running(story, site)
    timing = story.timed()
    each = ", ".join(f"job {job} {seconds:.2f} s" for job, seconds in timing.seconds.items())
    story.tell(f"  now {each} ({timing})")
    story.tell(f"  over the change: [bold]{story.lost()}[/]; wrong sums: {site.jobs.wrong()}")


def _cable(story: Story, site: LiveSite) -> None:
    fabric, job = site.fabric, site.jobs.running[0]
    switch, port = _used_by(site, 0)
    name = fabric.switch_name[switch]
    usual = story.timed().seconds[job.number]
    story.mark()
    pulled = time.time()
    site.pull(switch, port)
    story.tell(
        f"[bold]the cable at port {port} of {name} is pulled[/], which job {job.number} uses"
    )
    row = story.decision("a repair", _repaired)
    repaired = time.time()
    who = "OpenSM's plugin" if row.reason == Reason.AMENDED else "the agent"
    story.wait("an iteration after the repair", lambda: bool(job.since(repaired)))
    slowest = max(each.seconds for each in job.iterations if each.ended > pulled)
    story.tell(
        f"  {who} repaired the tables; the ranks of job {job.number} waited [bold]"
        f"{max(0.0, slowest - usual):.1f} s[/]; meanwhile {story.lost()}"
    )
    story.mark()
    site.plug(switch, port)
    story.tell("[bold]the cable is back[/]")
    story.decision("routes over the cable again", _repaired)
    story.wait("rings apart again", lambda: not (rings_of(site).time > MEETS).any())


def _daemons_are_killed(story: Story, site: LiveSite) -> None:
    story.mark()
    before = story.timed()
    site.agent.kill()
    story.tell("[bold]the agent is killed[/] (SIGKILL)")
    _compare(story, before, story.timed())
    site.manager.kill()
    story.tell("[bold]OpenSM is killed[/] (SIGKILL)")
    _compare(story, before, story.timed())
    story.tell(f"  nothing stopped: {story.lost()}; wrong sums: {site.jobs.wrong()}")
    site.manager.start().wait_up()
    site.agent.start()
    story.tell("OpenSM and the agent start again")

    def in_force() -> bool:
        try:
            return site.bridge.status().engine_in_force == "sar"
        except SarError:
            return False

    story.wait("our engine in force again", in_force)
    _compare(story, before, story.timed())


def _verify(story: Story, site: LiveSite) -> None:
    """Checks the result by independent means: ibdmchk on OpenSM's own dumps."""
    bridge = site.bridge
    before = bridge.status().heavy_sweeps
    site.manager.sweep()
    story.wait("a sweep of OpenSM", lambda: bridge.status().heavy_sweeps > before)
    verdict = ibdmchk(site.manager, read_routes_file(bridge.dump().path), site.manager.lids())
    paths = re.search(r"Scanned:(\d+) CA to CA paths", verdict.text)
    errors = re.findall(r"^-E- (.*)", verdict.text, re.MULTILINE)
    if not verdict.clean or not paths or errors:
        raise story.failed(f"ibdmchk found {(errors or [verdict.text[-300:]])[0]}")
    story.tell(
        f"in force at the end: engine sar, generation {bridge.status().generation_in_force}; "
        f"ibdmchk on what OpenSM installed: {paths[1]} paths, no credit loops found"
    )


def _running(story: Story, site: LiveSite) -> None:
    """Until each job has finished an iteration."""
    jobs = site.jobs.running
    story.wait("the first iteration of each job", lambda: all(job.iterations for job in jobs))


def _compare(story: Story, before: Timing, after: Timing) -> None:
    """Prints what the same jobs took, before and after."""
    story.tell(
        "  an iteration takes "
        + ", ".join(
            f"[bold]{seconds:.2f} s → {after.seconds[job]:.2f} s[/] (job {job})"
            for job, seconds in before.seconds.items()
        )
        + f" ({before} → {after})"
    )


def _used_by(site: LiveSite, number: int) -> tuple[int, int]:
    """Switch and port of an up-link over which messages of the running job of this index go."""
    fabric, rings = site.fabric, rings_of(site)
    hop, message = np.argwhere((rings.channel >= 0) & (rings.part == number))[0]
    channel = int(rings.channel[hop, message])
    return int(fabric.channel_source[channel]), int(fabric.channel_port[channel])


def _jobs_changed(row: Row) -> bool:
    return row.result == Result.INSTALLED and row.reason == Reason.JOBS


def _repaired(row: Row) -> bool:
    """By OpenSM's plugin in its own sweep, or by the agent."""
    return row.reason == Reason.AMENDED or (
        row.result == Result.INSTALLED and row.reason == Reason.FABRIC
    )
