"""The driver of a five-phase update: does in a pass what the coordinator says is to be done.

A pass stays in here until the run is over, for at most the deadline, a third of it, and the load.
What it leaves behind when it is killed, or when OpenSM goes away in the middle, the next pass ends
(`settle`): with tables that were read back, and everybody on LID offset 0.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from sar_agent.agent.say import SayOnce
from sar_agent.errors import SarError, Unavailable
from sar_agent.install.bridge import Bridge
from sar_agent.install.five_phase.coordinator import Coordinator
from sar_agent.install.five_phase.words import (
    Action,
    AskQueue,
    Begin,
    Done,
    GiveUp,
    Install,
    Installed,
    Message,
    Notice,
    Phase,
    Queue,
    Tick,
)
from sar_agent.install.routes_file import read_routes_file
from sar_agent.measure.metrics import Metrics

log = logging.getLogger(__name__)
_T = TypeVar("_T")
Owners = Mapping[str, int | None]


@dataclass
class Told:
    """What the history keeps of a run."""

    update: int = 0
    subscribers: int = 0
    late: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    """By phase."""


class FivePhase:
    """`queue` looks at Slurm now: the owners of running jobs, None where it cannot be told."""

    def __init__(
        self,
        coordinator: Coordinator,
        bridge: Bridge,
        queue: Callable[[], Owners | None],
        metrics: Metrics,
    ) -> None:
        self.coordinator, self.bridge = coordinator, bridge
        self.queue, self.metrics = queue, metrics
        self.say = SayOnce(log)
        self.told = Told()
        """Of the last run."""
        self._since = 0.0

    def install(self, generation: int, load: Callable[[], _T]) -> _T:
        """Move all subscribers away, `load`, and move them back; returns what `load` does.

        Raises `SarError` where it was given up, or the load failed; then the tables are the old
        ones, or the next `settle` finds out."""
        coordinator = self.coordinator
        if coordinator.state.phase is not Phase.IDLE:
            raise Unavailable(f"update {coordinator.state.update} is under way still")
        self.told, self._since = Told(subscribers=len(coordinator.state.members)), time.monotonic()
        self._do(Begin(generation, time.time_ns()))
        self.told.update = coordinator.state.update
        return self._run(load)

    def settle(self) -> str:
        """Ends a run that another pass, or another process, left behind; why it cannot be ended
        yet, or nothing."""
        state = self.coordinator.state
        if state.phase is Phase.IDLE:
            return ""
        self._since = time.monotonic()
        if state.phase is Phase.INSTALL:
            why, found = self._read_back()
            if found is None:
                self.say.problem("settle", f"update {state.update} is not over: {why}")
                return f"update {state.update} is not over: {why}"
            other = f"the run was broken off, generation {found} is in force"
            self._do(Installed("" if found == state.generation else other))
        try:
            self._run(None)
        except SarError as error:
            log.warning("update %d was broken off: %s", state.update, error)
        self.say.problem("settle", "")
        return ""

    def know(self, jobs: Owners, looked_at: float) -> None:
        """The queue of a pass: who subscribed and whose job is over is let go."""
        self.coordinator.drive(Queue(jobs, looked_at))
        self.metrics.subscribers.set(len(self.coordinator.state.members))

    def _run(self, load: Callable[[], _T] | None) -> _T:
        found: _T | None = None
        problem: SarError | None = None
        actions: tuple[Action, ...] = ()
        while True:
            for action in actions:
                match action:
                    case Notice():
                        self._notice(action)
                    case AskQueue():
                        self._ask_queue()
                    case Install():
                        try:
                            found = load() if load else None  # what was left behind is given up
                        except SarError as error:
                            problem = error
                            if self._read_back()[1] is None:
                                raise
                        self._do(Installed(str(problem) if problem else ""))
                    case Done():
                        self._over(action)
                        if problem or found is None:
                            raise problem or SarError(action.why or "nothing was to be installed")
                        return found
            self.coordinator.wait()
            actions = self._do(Tick())

    def _do(self, message: Message) -> tuple[Action, ...]:
        before = self.coordinator.state.phase
        actions = self.coordinator.drive(message)
        state = self.coordinator.state
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

    def _over(self, done: Done) -> None:
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

    def _notice(self, notice: Notice) -> None:
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
            self._do(Queue(jobs, at))

    def _read_back(self) -> tuple[str, int | None]:
        """The generation in force (0 where it is not ours), once all switches have confirmed what
        they were sent; else why that cannot be told."""
        try:
            status = self.bridge.status()
            if status.sm_state != "master":
                return f"this OpenSM is not the master but {status.sm_state}", None
            if status.state != "built" or status.engine_in_force == "none":
                return "OpenSM is still at work on the tables", None
            if status.unconfirmed_switches:
                return f"{status.unconfirmed_switches} switches have not confirmed theirs", None
            read_routes_file(self.bridge.dump().path)
        except SarError as error:
            return str(error), None
        return "", status.generation_in_force
