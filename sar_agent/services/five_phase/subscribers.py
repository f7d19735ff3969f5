"""Messages of subscribers, which leave LID offset 0 before its tables change: subscribe, ack,
unsubscribe.

Each message goes to the coordinator at once, and the answer tells the phase, so a lost notice costs
time and nothing else.

A process may subscribe only for a job that the queue has shown as its user's, since updates wait
for subscribers. Until then it is refused and tries again. Nothing is recorded about it, and its
connections stay on LID offset 1, where they begin, since it holds no lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from sar_agent.errors import InputError
from sar_agent.events.authority import Authority
from sar_agent.events.message import Message, MessageRefused, RefusalReason
from sar_agent.services.five_phase.coordinator import Coordinator, UncoveredSubscriber
from sar_agent.services.five_phase.messages import Acknowledge, Phase, Subscribe, Unsubscribe
from sar_agent.services.five_phase.protocol import CoordinatorState
from sar_agent.util.quota import Bound

Name = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Update = Annotated[int, Field(ge=0, lt=2**64)]


class Subscription(Message):
    """A new subscriber, or a renewal. `offset` is in use now, `update` was seen last."""

    event: Literal["subscribe"]
    subscriber: Name
    offset: Literal[0, 1]
    update: Update = 0


class Acknowledgement(Message):
    """All connections are on the offset that `phase` of `update` requires."""

    event: Literal["ack"]
    subscriber: Name
    phase: Literal["unpath", "repath"]
    update: Update
    offset: Literal[0, 1]


class Leave(Message):
    """The subscriber has no connections any more."""

    event: Literal["unsubscribe"]
    subscriber: Name


MODELS: Mapping[str, type[Message]] = {
    "subscribe": Subscription,
    "ack": Acknowledgement,
    "unsubscribe": Leave,
}


class Subscribers:
    """A `MessageHandler`. `counted` is called with the number of subscribers when it may change."""

    models = MODELS

    def __init__(
        self,
        coordinator: Coordinator,
        authority: Authority,
        counted: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.coordinator, self.authority, self.counted = coordinator, authority, counted

    def handle(self, message: Message, uid: int) -> Mapping[str, Any]:
        """Handles a message. Raises `MessageRefused` for a job or a subscriber of another user, for
        a job that the queue has not shown, and if there is no room."""
        self.authority.check_owner(message, uid)
        state = self.coordinator.state
        name = getattr(message, "subscriber", "")
        owner = None if uid in self.authority.trusted else uid
        known = state.members.get(name)
        if known and owner is not None and known.uid != owner:
            raise MessageRefused(
                RefusalReason.NOT_OWNER, f"subscriber {name} does not belong to uid {uid}"
            )
        try:
            if isinstance(message, Subscription):
                if known is None:
                    self._require_known_job(message.job, owner)
                    self._require_room(message.job, owner)
                after = self.coordinator.hear(
                    Subscribe(name, message.job, owner, message.offset, message.update)
                )
                self.counted(len(after.members))
                return self._phase(after)
            if isinstance(message, Acknowledgement):
                if known is None:
                    raise MessageRefused(
                        RefusalReason.NOT_ALLOWED, f"subscriber {name} is unknown; subscribe again"
                    )
                if message.offset != (message.phase == "unpath"):
                    raise MessageRefused(
                        RefusalReason.GARBAGE,
                        f"phase {message.phase} does not end on offset {message.offset}",
                    )
                self.coordinator.hear(Acknowledge(name, Phase(message.phase), message.update))
                return {}
            self.counted(len(self.coordinator.hear(Unsubscribe(name)).members))
        except InputError as error:
            # The disk: the subscriber must not believe that it is registered.
            raise MessageRefused(RefusalReason.FULL, str(error)) from error
        except UncoveredSubscriber as error:
            sentence = (
                f"{error}, so updates do not wait for it; it stays on LID offset 1 until it ends"
            )
            raise MessageRefused(RefusalReason.NOT_ALLOWED, sentence) from error
        return {}

    def status(self) -> Mapping[str, Any]:
        """`{"update": {"phase": …, "update": …, "subscribers": …, "sheltered": …}}`."""
        state = self.coordinator.state
        return {
            "update": {
                "phase": state.phase.value,
                "update": state.update,
                "generation": state.generation,
                "subscribers": len(state.members),
                "sheltered": sum(member.offset == 1 for member in state.members.values()),
                "jobs": len({member.job for member in state.members.values()}),
            }
        }

    def _phase(self, state: CoordinatorState) -> Mapping[str, Any]:
        return {
            "lease": self.coordinator.rules.lease,
            "phase": state.phase.value,
            "update": state.update,
            "generation": state.generation,
        }

    def _require_known_job(self, job: str, owner: int | None) -> None:
        if owner is not None and job not in self.authority.known:
            raise MessageRefused(
                RefusalReason.NOT_ALLOWED,
                f"job {job} was not in Slurm's queue when it was last read; subscribe again, and "
                "use LID offset 1 until then",
            )

    def _require_room(self, job: str, owner: int | None) -> None:
        users, jobs = self.coordinator.of_user, self.coordinator.of_job
        why = ""
        if full := users.lacks(owner):
            one = f"uid {owner} has {users.of_one} subscribers already"
            why = one if full is Bound.ONE else "there is no room for more subscribers"
        elif jobs.lacks(job):
            why = f"job {job} has {jobs.of_one} subscribers already; one is enough"
        if why:
            raise MessageRefused(RefusalReason.FULL, why)
