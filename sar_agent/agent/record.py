"""What a decision came to, as a row of the history."""

from __future__ import annotations

import time
from typing import Any

from sar_agent.agent.decide import Decision
from sar_agent.agent.history import History, Row, summary
from sar_agent.agent.report import Result
from sar_agent.agent.reroute import Done
from sar_agent.errors import SarError
from sar_agent.quality import Measures
from sar_agent.util.problem_log import ProblemLog


class Records:
    """Of decisions of `who` about the routes of `engine`."""

    def __init__(self, engine: str, history: History, who: str, say: ProblemLog) -> None:
        self.engine, self.history, self.who, self.say = engine, history, who, say

    def add(
        self,
        decision: Decision,
        result: Result,
        *,
        jobs: int,
        seconds: float,
        before: Measures | None,
        done: Done | None = None,
        achieved: Measures | None = None,
        phases: dict[str, Any] | None = None,
        message: str = "",
    ) -> None:
        """See `Row`. A full disk is no reason to fail."""
        assert decision.reason is not None
        installed = done if done and done.read_back is not None else None
        changed = installed.changed if installed else None
        transition = done.plan.transition if done else None
        row = Row(
            at=time.time(),
            who=self.who,
            reason=decision.reason.value,
            why=decision.why,
            result=result.value,
            message=message,
            engine=self.engine,
            generation=installed.plan.generation if installed else 0,
            jobs=jobs,
            seconds=seconds,
            entries_changed=changed.entries if changed else None,
            blocks_changed=changed.blocks if changed else None,
            transition=transition.words if transition else "",
            before=summary(before),
            predicted=summary(done.plan.measures) if done else None,
            achieved=summary(achieved),
            how=installed.choice.how.value if installed and installed.choice else "",
            phases=phases,
        )
        try:
            self.history.add(row)
            self.say.problem("history", "", "the history can be written again")
        except SarError as error:
            self.say.problem("history", f"{error}; this decision is not in the history")
