"""The nerves as a pass feels them: may it act on what it found, and is its plan worth it?

`once` has none: whoever calls it has chosen the moment.
"""

from __future__ import annotations

import time

from sar_agent.agent.decide import Reason
from sar_agent.agent.gather import Observation
from sar_agent.agent.reroute_pacer import PATIENT, ReroutePacer
from sar_agent.config.model import AgentConfig
from sar_agent.install.plan import Plan
from sar_agent.jobs.filter import host_sets, young
from sar_agent.quality import Measures

TOO_LITTLE = "other routes would bring too little, waiting for more to change"


class Pacing:
    """`nerves` is None where every change is acted on at once."""

    def __init__(self, config: AgentConfig, nerves: ReroutePacer | None) -> None:
        self.config, self.nerves = config, nerves
        self._little: object = None
        """Jobs and fabric for which a plan brought too little."""

    def calm(self) -> None:
        """There is nothing to act on."""
        if self.nerves:
            self.nerves.calm()

    def acted(self) -> None:
        """Other routes are installed, or planned where nothing is installed."""
        if self.nerves:
            self.nerves.installed(time.monotonic())

    def saw(self, look: Observation) -> None:
        """Young jobs count from a moment on that is known."""
        age, now = self.config.min_job_age_seconds, time.time()
        starts = [one.start for one in young(look.records, now, age) if one.start is not None]
        if self.nerves and starts:
            self.nerves.ripe(time.monotonic() + min(starts) + age - now)

    def later(self, reason: Reason, look: Observation) -> str:
        """Why not to act now; empty where it is time."""
        if self.nerves is None:
            return ""
        now = time.monotonic()
        if wait := self.nerves.hold_back(now, reason):
            return f"the last reroute is young, the next may be in {wait:.1f} s"
        little = reason in PATIENT and self._little == work_of(look)
        return TOO_LITTLE if little and not self.nerves.worth(now, 0.0) else ""

    def worth(self, reason: Reason, look: Observation, before: Measures | None, plan: Plan) -> bool:
        """Whether what the plan betters is worth an install now."""
        if self.nerves is None or before is None or reason not in PATIENT:
            return True
        name = "load_max" if self.config.objective == "load" else "effective_efi_max"
        old, new = getattr(before, name), getattr(plan.measures, name)
        good = self.nerves.worth(time.monotonic(), 1 - new / old if old else 0.0)
        self._little = None if good else work_of(look)
        return good


def work_of(look: Observation) -> tuple[object, ...]:
    """What a reroute depends on: where it failed, or was not worth it, another may be."""
    return host_sets(look.records), look.fabric.digest, look.status and look.status.pid
