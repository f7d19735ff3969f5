"""Who wants to be moved off LID offset 0 before its tables change: subscribe, ack, unsubscribe.

What they say goes to the coordinator (install/five_phase/) at once, and the answer tells them the
phase, so that a lost notice costs time and nothing else.

A user becomes a member only for a job that the queue has shown as his: an update waits for members.
Until then he is refused and asks again; nothing is kept of him, and his connections stay on LID
offset 1, where they begin, since he holds no lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from sar_agent.errors import InputError
from sar_agent.events.authority import Authority
from sar_agent.events.message import Message, MessageRefused, RefusalReason
from sar_agent.five_phase.coordinator import Coordinator, UncoveredSubscriber
from sar_agent.five_phase.messages import Acknowledge, Phase, Subscribe, Unsubscribe
from sar_agent.five_phase.protocol import CoordinatorState

MOST = 65536
MOST_OF_A_USER = 8192
MOST_OF_A_JOB = 1024
KEPT = 4096
"""Of `MOST`, for those who may speak for all."""

Name = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Update = Annotated[int, Field(ge=0, lt=2**64)]


class Subscription(Message):
    """A newcomer, or a renewal. `offset` is in use now, `update` was seen last."""

    event: Literal["subscribe"]
    subscriber: Name
    offset: Literal[0, 1]
    update: Update = 0


class Acknowledgement(Message):
    """All connections are where `phase` of `update` wants them."""

    event: Literal["ack"]
    subscriber: Name
    phase: Literal["unpath", "repath"]
    update: Update
    offset: Literal[0, 1]


class Leave(Message):
    """The job has no connections any more."""

    event: Literal["unsubscribe"]
    subscriber: Name


MODELS: Mapping[str, type[Message]] = {
    "subscribe": Subscription,
    "ack": Acknowledgement,
    "unsubscribe": Leave,
}


class Subscribers:
    """A `Family`. `counted` is told how many there are whenever that may have changed."""

    models = MODELS

    def __init__(
        self,
        coordinator: Coordinator,
        authority: Authority,
        counted: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.coordinator, self.authority, self.counted = coordinator, authority, counted

    def take(self, message: Message, uid: int) -> Mapping[str, Any]:
        """Raises `MessageRefused` for somebody else's job or subscriber, for a job that the queue
        has not
        shown, and where there is no room."""
        self.authority.check_owner(message, uid)
        state = self.coordinator.state
        name = getattr(message, "subscriber", "")
        speaker = None if uid in self.authority.trusted else uid
        known = state.members.get(name)
        if known and speaker is not None and known.uid != speaker:
            raise MessageRefused(
                RefusalReason.NOT_OWNER, f"subscriber {name} does not belong to uid {uid}"
            )
        try:
            if isinstance(message, Subscription):
                if known is None:
                    self._seen(message.job, speaker)
                    self._room(message.job, speaker)
                after = self.coordinator.hear(
                    Subscribe(name, message.job, speaker, message.offset, message.update)
                )
                self.counted(len(after.members))
                return self._phase(after)
            if isinstance(message, Acknowledgement):
                if known is None:
                    raise MessageRefused(
                        RefusalReason.NOT_ALLOWED,
                        f"subscriber {name} is not known; subscribe again",
                    )
                if message.offset != (message.phase == "unpath"):
                    raise MessageRefused(
                        RefusalReason.GARBAGE,
                        f"phase {message.phase} is not done on offset {message.offset}",
                    )
                self.coordinator.hear(Acknowledge(name, Phase(message.phase), message.update))
                return {}
            self.counted(len(self.coordinator.hear(Unsubscribe(name)).members))
        except InputError as error:  # the disk: nobody may believe to be registered
            raise MessageRefused(RefusalReason.FULL, str(error)) from error
        except UncoveredSubscriber as error:
            sentence = f"{error}, so it is not waited for, and stays on LID offset 1 until it ends"
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
                "sheltered": sum(one.offset == 1 for one in state.members.values()),
                "jobs": len({one.job for one in state.members.values()}),
            }
        }

    def _phase(self, state: CoordinatorState) -> Mapping[str, Any]:
        return {
            "lease": self.coordinator.rules.lease,
            "phase": state.phase.value,
            "update": state.update,
            "generation": state.generation,
        }

    def _seen(self, job: str, speaker: int | None) -> None:
        if speaker is not None and job not in self.authority.known:
            raise MessageRefused(
                RefusalReason.NOT_ALLOWED,
                f"job {job} was not in Slurm's queue at the last look; subscribe again, on LID "
                "offset 1 until then",
            )

    def _room(self, job: str, speaker: int | None) -> None:
        one = self.coordinator
        if len(one.state.members) >= MOST - (0 if speaker is None else KEPT):
            raise MessageRefused(RefusalReason.FULL, "there is no room for more subscribers")
        if speaker is not None and one.of_user[speaker] >= MOST_OF_A_USER:
            raise MessageRefused(
                RefusalReason.FULL, f"uid {speaker} has {MOST_OF_A_USER} subscribers already"
            )
        if one.of_job[job] >= MOST_OF_A_JOB:
            raise MessageRefused(
                RefusalReason.FULL,
                f"job {job} has {MOST_OF_A_JOB} subscribers already; one is enough",
            )
