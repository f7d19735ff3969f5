"""The driver of a five-phase update: carries out, in a pass, the actions of the coordinator.

A pass stays here until the run is over: at most for the deadline, a third of it, and the loads. A
run that is left behind, because the agent is killed or OpenSM goes away in the middle, is ended by
the next pass (`end_run`): with tables that were read back, and all subscribers on LID offset 0.

INSTALL ends only when OpenSM is done, all switches have confirmed, and the tables in force are
those that a restart would bring back, or another engine's. While anything else prevents its end (a
full disk, a switch that does not confirm), passes go on: routes installed meanwhile affect no
subscriber, since all of them are on LID offset 1 until the run is over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

from prometheus_client import Counter, Gauge, Histogram

from sar_agent.errors import InputError, SarError, Unavailable
from sar_agent.install.subnet_manager import SmStatus, SubnetManager
from sar_agent.services.five_phase.coordinator import Coordinator
from sar_agent.services.five_phase.messages import (
    Action,
    AskQueue,
    BeginUpdate,
    GiveUp,
    InstallTables,
    Message,
    Phase,
    RaiseNotice,
    RunEnded,
    RunningJobs,
    TablesInstalled,
    Tick,
)
from sar_agent.services.five_phase.trace import InstalledFiles
from sar_agent.util.plural import plural
from sar_agent.util.problem_log import ProblemLog

log = logging.getLogger(__name__)
Owners = Mapping[str, int | None]


@dataclass
class RunSummary:
    """The run as the history keeps it."""

    update: int = 0
    subscribers: int = 0
    late: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of each phase, by its name."""


@dataclass(frozen=True)
class UnfinishedRun:
    """A run that could not be ended. `blocks`: nothing may be installed, since tables are being
    sent."""

    why: str = ""
    blocks: bool = False


class RunNotBegun(SarError):
    """No step could be saved, so no subscriber was moved."""


class TablesOnTheirWay(Unavailable):
    """Tables are being sent, or it is not known whether they are."""


class InstallNotOver(SarError):
    """No tables are being sent, but the run cannot end with those in force."""


class UpdateCounts(Protocol):
    """The metrics that a run sets; `telemetry.metrics.Metrics` provides them."""

    @property
    def subscribers(self) -> Gauge:
        """Number of subscribers."""

    @property
    def update_phase(self) -> Gauge:
        """Index of the phase in `Phase`."""

    @property
    def update_phase_seconds(self) -> Histogram:
        """Durations, by phase."""

    @property
    def updates(self) -> Counter:
        """Updates, by method and result."""


class FivePhase:
    """`queue` polls Slurm now and returns the owners of running jobs, None where it cannot."""

    def __init__(
        self,
        coordinator: Coordinator,
        manager: SubnetManager,
        queue: Callable[[], Owners | None],
        metrics: UpdateCounts,
    ) -> None:
        self.coordinator, self.manager = coordinator, manager
        self.queue, self.metrics = queue, metrics
        self.problems = ProblemLog(log)
        self.summary = RunSummary()
        """The last run."""
        self._since = 0.0

    @contextmanager
    def phases(self, generation: int) -> Iterator[None]:
        """Around the install of a generation: all subscribers are moved to LID offset 1, and back
        when it is over. Where a run that could not be ended has them there already, that run goes
        on.

        Raises `RunNotBegun`, or `SarError` where the run was given up or the install failed; then
        the tables are the old ones, or the next `end_run` finds out."""
        coordinator = self.coordinator
        if coordinator.state.phase is Phase.INSTALL:
            yield
            self.end_run()
            return
        if coordinator.state.phase is not Phase.IDLE:
            raise RunNotBegun(f"update {coordinator.state.update} is not over")
        self.summary = RunSummary(subscribers=len(coordinator.state.members))
        self._since = time.monotonic()
        try:
            self._do(BeginUpdate(generation, time.time_ns()))
        except InputError as error:
            raise RunNotBegun(f"no update in phases can begin: {error}") from error
        self.summary.update = coordinator.state.update
        steps = self._steps()
        if isinstance(ended := next(steps), RunEnded):
            self._over(ended)
            raise SarError(ended.why)
        problem: SarError | None = None
        try:
            yield
        except SarError as error:
            problem = error
        try:
            self._end_install(str(problem or ""))
        except SarError as error:
            if problem or not isinstance(error, InputError):
                raise (problem or error) from error
            # The tables are in force; the next pass ends the run.
            self.problems.problem("run", f"the update is not over: {error}")
            return
        self._finish(steps)
        if problem:
            raise problem

    def end_run(self) -> UnfinishedRun:
        """End a run that another pass, or another process, left behind."""
        state = self.coordinator.state
        self._since = time.monotonic()
        unfinished = UnfinishedRun()
        try:
            if state.phase is Phase.INSTALL:
                self._end_install("the run was broken off")
            elif state.phase is Phase.UNPATH:
                self._do(GiveUp("the run was broken off before the install"))
            if state.phase is not Phase.IDLE:
                self._finish(self._steps())
        except SarError as error:
            why = f"update {state.update} is not over: {error}"
            unfinished = UnfinishedRun(why, blocks=isinstance(error, TablesOnTheirWay))
        self.problems.problem("run", unfinished.why)
        return unfinished

    def pop_summary(self) -> RunSummary:
        """The last run, once: afterwards the summary is empty."""
        summary, self.summary = self.summary, RunSummary()
        return summary

    def queue_read(self, jobs: Owners, began: float) -> None:
        """The running jobs by a poll that began at `began`: subscribers of ended jobs are
        dropped."""
        self._do(RunningJobs(jobs, began))
        self.metrics.subscribers.set(len(self.coordinator.state.members))

    def refresh_subscribers(self) -> None:
        """Drop subscribers of ended jobs by a new poll; keep all where the queue cannot be
        read."""
        with suppress(InputError):
            self._ask_queue()
        self.metrics.subscribers.set(len(self.coordinator.state.members))

    def _steps(self) -> Iterator[InstallTables | RunEnded]:
        """Goes on with the run until tables are to be installed, and then until it has ended."""
        while True:
            self.coordinator.wait()
            for action in self._do(Tick()):
                match action:
                    case RaiseNotice():
                        self._notice(action)
                    case AskQueue():
                        self._ask_queue()
                    case _:
                        yield action

    def _finish(self, steps: Iterator[InstallTables | RunEnded]) -> None:
        ended = next(steps)
        assert isinstance(ended, RunEnded)  # nothing is installed any more
        self._over(ended)

    def _end_install(self, problem: str) -> None:
        """Leave INSTALL, by what is in force. `problem` is why the load failed, or why its result
        is not known. Raises `TablesOnTheirWay` or `InstallNotOver` where INSTALL must last."""
        begun = self.coordinator.state.generation
        found = self._read_back(compare=bool(problem))
        why = problem
        if found == begun:
            why = ""
        elif problem or not found:
            in_force = f"generation {found}" if found else "another engine"
            why = f"{problem}; {in_force} is in force" if problem else f"{in_force} is in force"
        self._do(TablesInstalled(why, moved=found >= begun))

    def _read_back(self, compare: bool) -> int:
        """The generation in force, which a restart would bring back, too; 0 where another engine's
        tables are in force. `compare`: entry by entry, where the load has not done so. Raises
        `SarError`."""
        before = self._settled()
        self._trace(before)
        if done := self.manager.recover():
            log.info("%s", done)
        generation = before.generation if before.ours else 0
        if generation:
            try:
                self.manager.confirm_restart(generation, compare=compare)
            except (InputError, Unavailable):
                raise
            except SarError as error:
                raise InstallNotOver(str(error)) from error
        # A manager that starts from here on brings back these tables.
        after = self._settled()
        if after.tables_version != before.tables_version:
            raise TablesOnTheirWay("OpenSM has routed meanwhile")
        self._trace(after)
        return generation

    def _settled(self) -> SmStatus:
        try:
            status = self.manager.status()
        except SarError as error:
            raise TablesOnTheirWay(str(error)) from error
        if status.role != "master":
            raise TablesOnTheirWay(f"this {self.manager.name} is not the master but {status.role}")
        if status.state != "built" or status.engine == "none":
            raise TablesOnTheirWay(
                status.unsettled or f"{self.manager.name} is still at work on the tables"
            )
        if not status.settled:
            switches = status.unconfirmed_switches
            raise InstallNotOver(
                f"{plural(switches, 'switch has', 'switches have')} not confirmed all tables"
            )
        return status

    def _trace(self, status: SmStatus) -> None:
        if kept := status.restart_generation:
            files = InstalledFiles(kept, status.install_pending, status.generation)
            self.coordinator.trace_files(files)

    def _do(self, message: Message) -> tuple[Action, ...]:
        before, struck = self.coordinator.state.phase, self.coordinator.state.strikes
        actions = self.coordinator.drive(message)
        state = self.coordinator.state
        if state.strikes is not struck:
            self._log_uncovered(struck)
        if state.phase is not before:
            now = time.monotonic()
            if before is not Phase.IDLE:
                seconds = now - self._since
                self.summary.seconds[before.value] = round(seconds, 4)
                self.metrics.update_phase_seconds.labels(before.value).observe(seconds)
            self._since = now
            self.metrics.update_phase.set(list(Phase).index(state.phase))
            if state.phase is not Phase.IDLE:
                log.info(
                    "update %d, generation %d: phase %s with %d subscribers%s",
                    state.update,
                    state.generation,
                    state.phase.value,
                    len(state.members),
                    f" ({state.why})" if state.why else "",
                )
        return actions

    def _log_uncovered(self, before: Mapping[str, int]) -> None:
        most = self.coordinator.rules.strikes
        for job, count in self.coordinator.state.strikes.items():
            if before.get(job, 0) < most <= count:
                log.warning(
                    "job %s has kept %d updates from happening: its subscribers get no more "
                    "leases, and no update waits for them until the job ends",
                    job,
                    count,
                )

    def _over(self, done: RunEnded) -> None:
        self.summary.late = len(done.late)
        times = ", ".join(
            f"{name} {seconds:.2f} s" for name, seconds in self.summary.seconds.items()
        )
        late = f"; {len(done.late)} are not back on offset 0 yet" if done.late else ""
        result = "given_up" if done.why else "installed"
        self.metrics.updates.labels("five-phase", result).inc()
        log.info(
            "update %d %s (%s)%s",
            self.coordinator.state.update,
            f"was given up: {done.why}" if done.why else "is over",
            times,
            late,
        )

    def _notice(self, notice: RaiseNotice) -> None:
        try:
            kind: Literal["unpath", "repath"] = (
                "unpath" if notice.phase is Phase.UNPATH else "repath"
            )
            self.manager.notice(kind, notice.update, notice.generation)
        except Unavailable as error:
            # The notice is repeated, and subscribers ask the agent now and then.
            self.problems.problem("notice", str(error))
        except SarError as error:
            sentence = (
                f"{self.manager.name} sends no notice ({error}); is its plugin of the same release "
                "as the agent?"
            )
            self.problems.problem("notice", sentence)
            self._do(GiveUp(sentence))
        else:
            self.problems.problem("notice", "")

    def _ask_queue(self) -> None:
        at = time.monotonic()
        jobs = self.queue()
        if jobs is not None:
            self._do(RunningJobs(jobs, at))
