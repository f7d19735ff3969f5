"""Users who subscribe and do not keep to the protocol, and queues that are not to be believed: the
machine and the server's messages as they are, with a clock of the test's."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from sar_agent.events.authority import Authority, KnownJob
from sar_agent.events.message import MessageRefused, parse
from sar_agent.services.five_phase.coordinator import Coordinator
from sar_agent.services.five_phase.messages import (
    BeginUpdate,
    Phase,
    RunningJobs,
    Subscribe,
    Tick,
)
from sar_agent.services.five_phase.protocol import LeaseRules
from sar_agent.services.five_phase.subscribers import MODELS, Subscribers

HONEST, BAD = 1001, 1666
QUEUE: dict[str, int | None] = {"1": HONEST, "2": BAD}
GOOD = "a" * 16


class Site:
    """A coordinator, its message server, and one subscriber that does as it should."""

    def __init__(self, folder: Any) -> None:
        self.now = 100.0
        self.coordinator = Coordinator(folder, LeaseRules(lease=30, deadline=15), lambda: self.now)
        self.authority = Authority(frozenset({0}))
        self.authority.known = {job: KnownJob(uid, None) for job, uid in QUEUE.items()}
        self.family = Subscribers(self.coordinator, self.authority)
        self.ids = count(1)

    def say(self, event: str, uid: int, **keys: Any) -> dict[str, Any]:
        """Raises `MessageRefused`."""
        said = {"v": 1, "event": event, "id": f"{next(self.ids):016x}"} | keys
        return dict(self.family.handle(parse(json.dumps(said).encode(), MODELS), uid))

    def subscribe(self, uid: int, job: str, name: str) -> None:
        self.say("subscribe", uid, job=job, subscriber=name, offset=0)

    def look(self, jobs: dict[str, int | None]) -> None:
        at, self.now = self.now, self.now + 0.05
        self.coordinator.drive(RunningJobs(jobs, at))


@pytest.fixture
def site(tmp_path: Any) -> Site:
    here = Site(tmp_path)
    here.subscribe(HONEST, "1", GOOD)
    return here


def test_quotas(site: Site) -> None:
    users, jobs_ = site.coordinator.of_user, site.coordinator.of_job
    users.most, users.kept, users.of_one, jobs_.of_one = 12, 4, 3, 2
    jobs = {"2": BAD, "3": BAD, "4": 1, "5": 2, "6": 3}
    site.authority.known = {n: KnownJob(uid, None) for n, uid in jobs.items()}
    names = (f"{n:016x}" for n in count())
    for job, uid, full in (
        *[("2", BAD, ""), ("2", BAD, ""), ("2", BAD, "job 2 has 2")],
        *[("3", BAD, ""), ("3", BAD, "uid 1666 has 3")],
        *[("4", 1, ""), ("4", 1, ""), ("5", 2, ""), ("5", 2, ""), ("6", 3, "no room")],
        ("6", 0, ""),
    ):
        if full:
            with pytest.raises(MessageRefused, match=full):
                site.subscribe(uid, job, next(names))
        else:
            site.subscribe(uid, job, next(names))
    # Who leaves makes room.
    for n in range(2):
        site.say("unsubscribe", BAD, job="2", subscriber=f"{n:016x}")
    site.subscribe(BAD, "3", "f" * 16)


# -- an empty queue ---------------------------------------------------------------------------


def test_an_empty_queue_drops_nobody_at_the_first_look(site: Site) -> None:
    """squeue succeeds and shows nothing, as to an account without rights."""
    for n in range(300):
        site.coordinator.hear(Subscribe(f"{n:016x}", str(n), 1000 + n, 0, 0))
    site.coordinator.drive(BeginUpdate(1, 5))
    site.coordinator.drive(Tick())
    site.look({})
    assert site.coordinator.drive(Tick()) == ()
    assert len(site.coordinator.state.members) == 301
    assert site.coordinator.state.phase is Phase.UNPATH
