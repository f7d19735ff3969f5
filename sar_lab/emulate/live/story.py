"""Waits for what is expected, tells what happens in lines of text and on the page, and gives up
with a sentence that says why and what to do."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from sar_agent.agent.history import Row
from sar_agent.agent.outcome import Result
from sar_agent.errors import CheckFailed, SarError
from sar_agent.util.plural import plural
from sar_lab.emulate.idle import LEAST, counts, idle_share, read_ticks
from sar_lab.emulate.live.losses import Losses, losses_of
from sar_lab.emulate.live.mpi_jobs import MpiJob
from sar_lab.emulate.live.page import LivePage
from sar_lab.emulate.live.site import LiveSite
from sar_lab.live.process import wait_until, waited

STEP_SECONDS = 60.0
"""The time limit for each step on a quiet machine, where a step takes some seconds."""
_LOOK = 0.3
"""Seconds between two looks at everything."""


class StepFailed(CheckFailed):
    """An expected event did not happen."""


class Timing(NamedTuple):
    """What jobs printed of some iterations."""

    seconds: dict[str, float]
    """Median of an iteration, by job."""
    idle: float
    """Idle share of the processors meanwhile."""

    def __str__(self) -> str:
        much = "" if counts(self.idle) else f": below {LEAST:.0%}, does not count"
        return f"{self.idle:.0%} idle{much}"


class Story:
    """Lines with the time since the start, and the page in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._begin = time.monotonic()
        self._console = Console(highlight=False, soft_wrap=True)
        self._page = LivePage(folder)
        self.page = self._page.path
        self._engine = ""
        self._site: LiveSite | None = None
        self._since: Losses | None = None
        self._rows: list[Row] = []
        self.interrupted = False

    @property
    def site(self) -> LiveSite:
        assert self._site
        return self._site

    def begin(self, site: LiveSite) -> None:
        """From now on look at this site."""
        self._site = site

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handles Ctrl-C; a second one is ignored, so that it cannot interrupt the cleanup. While a
        kernel is compiled, the compiler drops the exception; then `tell` raises it."""
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        self.interrupted = True
        raise KeyboardInterrupt

    def tell(self, line: str) -> None:
        """Print one line, and show it on the page."""
        if self.interrupted:
            raise KeyboardInterrupt
        seconds = time.monotonic() - self._begin
        self._console.print(f"\\[{seconds:5.1f} s] {line}")
        self._page.lines.append((seconds, Text.from_markup(line).plain))
        self._page.write(self._site)

    def end(self, line: str) -> None:
        """The last line, when everything is stopped."""
        self.interrupted, self._page.over = False, True
        self.tell(line)

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Look at everything until `holds`. Raises `StepFailed`."""

        def look() -> bool:
            self.look()
            return holds()

        if not wait_until(look, STEP_SECONDS, _LOOK):
            raise self.failed(f"{what} did not happen within {waited(STEP_SECONDS)}")

    def failed(self, what: str) -> StepFailed:
        """What went wrong, where the logs are, what to try."""
        logs = f"; the logs are in {self._keep_logs()}"
        settings = f"; settings that are not the defaults: {self.site.settings()}"
        trouble = self.site.followed.trouble
        if trouble:
            what += f"; {trouble}"
        return StepFailed(
            f"{what}{logs}{settings}; if the machine is busy, try SAR_PATIENCE=10 make demo-live, "
            "or sar-lab emulate --live --mbit 1"
        )

    def decision(self, what: str, seen: Callable[[Row], bool]) -> Row:
        """The agent's next decision that is `seen`. Raises `StepFailed`."""
        found: list[Row] = []

        def holds() -> bool:
            found.extend(row for row in self._rows if seen(row))
            self._rows.clear()
            return bool(found)

        self.wait(what, holds)
        self.look()
        return found[-1]

    def look(self) -> None:
        """The tables in the switches, the agent, OpenSM and the jobs. Raises `StepFailed` where a
        job has ended or computed a wrong sum."""
        site = self.site
        if changed := site.followed.look():
            entries = plural(changed, "other entry", "other entries")
            self.tell(
                f"  the switches answer MADs with {entries}: {plural(changed, 'route')} of the "
                f"namespaces changed accordingly; all {site.followed.tables.entries.size} are "
                "compared, equal"
            )
        for row in site.agent.news():
            self._rows.append(row)
            self.tell(in_words(row))
        with suppress(SarError):  # it may have been killed
            self._look_at_opensm()
        site.jobs.read()
        for job in site.jobs.running:
            if job.ended:
                raise self.failed(f"job {job.number} has ended: {job.last_words()}")
        if wrong := site.jobs.wrong():
            raise self.failed(f"{wrong} sums of the jobs are wrong")
        self._page.write(site)

    def timed(self, iterations: int = 6) -> Timing:
        """The next iterations of all running jobs. Raises `StepFailed`."""
        jobs, begin, before = self.site.jobs.running, time.time(), read_ticks()

        def done(job: MpiJob) -> bool:
            return len(job.since(begin)) >= iterations

        self.wait(f"{iterations} iterations of each job", lambda: all(map(done, jobs)))
        medians = {job.number: job.median(begin) for job in jobs}
        timing = Timing(medians, idle_share(before, read_ticks()))
        self._page.idle = timing.idle
        return timing

    def mark(self) -> None:
        """What counts now is what is lost and decided from here on."""
        self._rows.clear()
        self._since = losses_of(self.site.network)

    def lost(self) -> Losses:
        """Since the last mark."""
        assert self._since
        self._page.losses = losses_of(self.site.network).minus(self._since)
        return self._page.losses

    def _look_at_opensm(self) -> None:
        status = self.site.bridge.status()
        if status.engine_in_force != self._engine:
            self._engine = status.engine_in_force
            self.tell(f"  OpenSM has engine [bold]{self._engine}[/] in force")

    def _keep_logs(self) -> Path:
        """A folder with the logs, which the end does not remove."""
        site, outside = self.site, Path(tempfile.gettempdir()).parent
        folder = Path(tempfile.mkdtemp(prefix="sar-live-logs-", dir=outside))
        slurm = site.slurm.folder
        logs = [site.agent.log_path, site.manager.log_path, *slurm.glob("log/*")]
        for path in (*logs, *slurm.glob("job-*.out")):
            with suppress(OSError):
                name = "agent.log" if path == site.agent.log_path else path.name
                shutil.copy(path, folder / name)
        return folder


def in_words(row: Row) -> str:
    """A decision of the agent."""
    if row.reason == "cable":
        hurt = f" ({escape(row.message)})" if row.message else ""
        return f"  the agent sees: {escape(row.why)}{hurt}"
    if row.result == Result.FOLLOWED:
        return f"  {escape(row.why)}; the agent has checked the tables and goes on from them"
    if row.result != Result.INSTALLED:
        return f"  the agent [red]{row.result}[/]: {escape(row.why)}; {escape(row.message)}"
    entries = plural(row.entries_changed, "entry", "entries")
    return (
        f"  the agent installed [bold]generation {row.generation}[/], because {escape(row.why)}: "
        f"{entries} changed; {escape(row.transition)} ({row.seconds:.1f} s)"
    )
