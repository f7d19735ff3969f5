"""The driver of a five-phase update: does in a pass what the coordinator says is to be done.

A pass stays in here until the run is over, for at most the deadline, a third of it, and the loads.
What it leaves behind when it is killed, or when OpenSM goes away in the middle, the next pass ends
(`settle`): with tables that were read back, and everybody on LID offset 0.

INSTALL ends only when OpenSM is done, all switches have confirmed, and what is in force is what
`routes.sar` holds, or another engine's. While something else is in the way of its end (a full disk,
a switch that does not confirm), passes go on: whatever is installed meanwhile meets nobody who
subscribed, since all of them are on LID offset 1 until the run is over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from sar_agent.agent.decide import OUR_ENGINE
from sar_agent.errors import InputError, SarError, Unavailable
from sar_agent.five_phase.coordinator import Coordinator
from sar_agent.five_phase.messages import (
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
from sar_agent.five_phase.trace import InstalledFiles
from sar_agent.five_phase.update_metrics import UpdateCounts
from sar_agent.formats.routes_file import read_generation, read_routes_file
from sar_agent.opensm.plugin_client import PluginClient, PluginStatus
from sar_agent.opensm.plugin_install import differences, finish_or_restore, next_path
from sar_agent.util.problem_log import ProblemLog

log = logging.getLogger(__name__)
_T = TypeVar("_T")
Owners = Mapping[str, int | None]


@dataclass
class RunSummary:
    """What the history keeps of a run."""

    update: int = 0
    subscribers: int = 0
    late: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    """By phase."""


@dataclass(frozen=True)
class UnfinishedRun:
    """A run that could not be ended. `blocks`: nothing may be installed, as tables are on their
    way."""

    why: str = ""
    blocks: bool = False


class RunNotBegun(SarError):
    """No step could be saved, so nobody was moved."""


class Moving(Unavailable):
    """Tables are on their way, or nobody tells whether they are."""


class Unclear(SarError):
    """No tables are on their way, but those in force are not the end of a run."""


class FivePhase:
    """`queue` looks at Slurm now: the owners of running jobs, None where it cannot be told. `path`
    is `routes.sar`."""

    def __init__(
        self,
        coordinator: Coordinator,
        bridge: PluginClient,
        queue: Callable[[], Owners | None],
        metrics: UpdateCounts,
        path: Path,
    ) -> None:
        self.coordinator, self.bridge = coordinator, bridge
        self.queue, self.metrics, self.path = queue, metrics, path
        self.say = ProblemLog(log)
        self.told = RunSummary()
        """Of the last run."""
        self._since = 0.0

    def install(self, generation: int, load: Callable[[], _T]) -> _T:
        """Move all subscribers away, `load`, and move them back; returns what `load` does. Where
        they are away still, of a run that could not be ended, that one goes on.

        Raises `RunNotBegun`, or `SarError` where it was given up, or the load failed; then the
        tables
        are the old ones, or the next `settle` finds out."""
        coordinator = self.coordinator
        if coordinator.state.phase is Phase.INSTALL:
            found = load()
            self.settle()
            return found
        if coordinator.state.phase is not Phase.IDLE:
            raise RunNotBegun(f"update {coordinator.state.update} is not over")
        self.told, self._since = (
            RunSummary(subscribers=len(coordinator.state.members)),
            time.monotonic(),
        )
        try:
            self._do(BeginUpdate(generation, time.time_ns()))
        except InputError as error:
            raise RunNotBegun(f"no update in phases can begin: {error}") from error
        self.told.update = coordinator.state.update
        return self._run(load)

    def settle(self) -> UnfinishedRun:
        """Ends a run that another pass, or another process, left behind."""
        state = self.coordinator.state
        self._since = time.monotonic()
        unfinished = UnfinishedRun()
        try:
            if state.phase is Phase.INSTALL:
                self._end_install("the run was broken off")
            elif state.phase is Phase.UNPATH:
                self._do(GiveUp("the run was broken off before the install"))
            if state.phase is not Phase.IDLE:
                self._run(None)
        except SarError as error:
            why = f"update {state.update} is not over: {error}"
            unfinished = UnfinishedRun(why, blocks=isinstance(error, Moving))
        self.say.problem("settle", unfinished.why)
        return unfinished

    def know(self, jobs: Owners, looked_at: float) -> None:
        """The queue of a pass: who subscribed and whose job is over is let go."""
        self._do(RunningJobs(jobs, looked_at))
        self.metrics.subscribers.set(len(self.coordinator.state.members))

    def look(self) -> None:
        """Who has subscribed by the queue of now; by that of the pass where it cannot be read."""
        with suppress(InputError):
            self._ask_queue()
        self.metrics.subscribers.set(len(self.coordinator.state.members))

    def _run(self, load: Callable[[], _T] | None) -> _T:
        """Without `load` only to its end; then what it returns is nothing's."""
        found: _T | None = None
        problem: SarError | None = None
        actions: tuple[Action, ...] = ()
        while True:
            for action in actions:
                match action:
                    case RaiseNotice():
                        self._notice(action)
                    case AskQueue():
                        self._ask_queue()
                    case InstallTables():
                        assert load  # what was left behind is never installed
                        try:
                            found = load()
                        except SarError as error:
                            problem = error
                        try:
                            self._end_install(str(problem or ""))
                        except InputError as error:
                            if found is None:
                                raise (problem or error) from error
                            self.say.problem("settle", f"the update is not over: {error}")
                            return found  # in force it is; the next pass ends the run
                        except SarError as error:
                            raise (problem or error) from error
                    case RunEnded():
                        self._over(action)
                        if load and (problem or found is None):
                            raise problem or SarError(action.why)
                        return found  # type: ignore[return-value]
            self.coordinator.wait()
            actions = self._do(Tick())

    def _end_install(self, problem: str) -> None:
        """Out of INSTALL, by what is in force. `problem` is why the load failed, or why it is not
        known how it went. Raises `Moving` or `Unclear` where it must last."""
        begun = self.coordinator.state.generation
        found = self._read_back(compare=bool(problem))
        why = problem
        if found == begun:
            why = ""
        elif problem or not found:
            there = f"generation {found}" if found else "another engine"
            why = f"{problem}; {there} is in force" if problem else f"{there} is in force"
        self._do(TablesInstalled(why, moved=found >= begun))

    def _read_back(self, compare: bool) -> int:
        """The generation in force, which `routes.sar` holds, too; 0 where another engine's tables
        are. `compare`: entry for entry, where the load has not done so. Raises `SarError`."""
        before = self._settled()
        self._saw(before)
        if done := finish_or_restore(self.bridge, self.path):
            log.info("%s", done)
        generation = before.generation_in_force if before.engine_in_force == OUR_ENGINE else 0
        if generation:
            if (kept := read_generation(self.path)) != generation:
                raise Unclear(f"generation {generation} is in force, {self.path} holds {kept}")
            if compare:
                found = read_routes_file(self.bridge.dump().path)
                wrong = differences(read_routes_file(self.path), found)
                if wrong or found.had is not None:
                    raise Unclear(f"what is in force differs from {self.path} in {wrong} entries")
        # An OpenSM that starts from here on finds these tables in the file.
        after = self._settled()
        if (after.pid, after.routings) != (before.pid, before.routings):
            raise Moving("OpenSM has routed meanwhile")
        self._saw(after)
        return generation

    def _settled(self) -> PluginStatus:
        try:
            status = self.bridge.status()
        except SarError as error:
            raise Moving(str(error)) from error
        if status.sm_state != "master":
            raise Moving(f"this OpenSM is not the master but {status.sm_state}")
        if status.state != "built" or status.engine_in_force == "none":
            raise Moving(f"OpenSM is still at work on the tables ({status.state})")
        if not status.settled:
            raise Unclear(f"{status.unconfirmed_switches} switches have not confirmed theirs")
        return status

    def _saw(self, status: PluginStatus) -> None:
        """For the trace."""
        with suppress(SarError):
            file, next = read_generation(self.path), next_path(self.path).exists()
            self.coordinator.saw(InstalledFiles(file, next, status.generation_in_force))

    def _do(self, message: Message) -> tuple[Action, ...]:
        before, struck = self.coordinator.state.phase, self.coordinator.state.strikes
        actions = self.coordinator.drive(message)
        state = self.coordinator.state
        if state.strikes is not struck:
            self._tell_uncovered(struck)
        if state.phase is not before:
            now = time.monotonic()
            if before is not Phase.IDLE:
                seconds = now - self._since
                self.told.seconds[before.value] = round(seconds, 4)
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

    def _tell_uncovered(self, before: Mapping[str, int]) -> None:
        most = self.coordinator.rules.strikes
        for job, count in self.coordinator.state.strikes.items():
            if before.get(job, 0) < most <= count:
                log.warning(
                    "job %s has kept %d updates from happening: its subscribers get no more "
                    "leases, and nobody waits for them until it ends",
                    job,
                    count,
                )

    def _over(self, done: RunEnded) -> None:
        self.told.late = len(done.late)
        times = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.told.seconds.items())
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
            self.bridge.notice(kind, notice.update, notice.generation)
        except Unavailable as error:
            # It is repeated, and subscribers ask at the door now and then.
            self.say.problem("notice", str(error))
        except SarError as error:
            sentence = (
                f"OpenSM's plugin raises no notice ({error}); is it of the same release as the "
                "agent?"
            )
            self.say.problem("notice", sentence)
            self._do(GiveUp(sentence))
        else:
            self.say.problem("notice", "")

    def _ask_queue(self) -> None:
        at = time.monotonic()
        jobs = self.queue()
        if jobs is not None:
            self._do(RunningJobs(jobs, at))
