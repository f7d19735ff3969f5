"""What an agent does about its peer, again and again: look at its claim, then adopt its state, take
a higher term, or do nothing (`terms.precedence`)."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sar_agent.agent.history import MOST_ROWS, History
from sar_agent.agent.state import StateStore
from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.standby.adopt import StateRefused, adopt
from sar_agent.standby.channel import tls_context
from sar_agent.standby.peer_client import FilesChanged, PeerClient, PeerSilent, PeerState
from sar_agent.standby.snapshot import CONNECTIONS, ROUTES, Snapshot, SnapshotSource, StateFolders
from sar_agent.standby.terms import Claim, Precedence, TermRecord, TermStore, precedence
from sar_agent.util.lock_file import Lock
from sar_agent.util.problem_log import ProblemLog

log = logging.getLogger(__name__)
LOCK_SECONDS = 60.0
"""Seconds to wait for a person's rollback that is under way."""
COPY_ATTEMPTS = 5
"""For a copy of files that change meanwhile."""
CLOCK_DIFFERENCE_SECONDS = 3600.0
"""Seconds by which the clocks of two machines may differ: so far back decisions are compared.

**Weak spot:** two decisions of one machine at the same microsecond count as one."""


@dataclass
class PeerReport:
    """What is known of the peer. Times are Unix seconds, 0 for never."""

    claim: Claim | None = None
    answered_at: float = 0.0
    same_at: float = 0.0
    """When this agent's copy was last seen to be the peer's state."""
    problem: str = ""
    refused: int = 0
    adopted: int = 0


@dataclass
class PeerLink:
    """`installs`: whether this agent makes passes, so that nothing may be copied. `lock` is for
    methods that are called by several threads."""

    config: Config
    installs: Callable[[], bool]
    status: Callable[[], SmStatus | None]
    """The own subnet manager's status now; None where it does not answer."""
    report: PeerReport = field(default_factory=PeerReport)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        """Raises `InputError` where the certificate cannot be used."""
        agent, standby = self.config.agent, self.config.standby
        certificate = Path(standby.certificate)
        self.folders = StateFolders.of(agent)
        self.terms, self.history = TermStore(agent.state_dir), History(agent.state_dir)
        self.client = PeerClient(standby.peer_host_port, tls_context(certificate, server=False))
        self.source = SnapshotSource(self.folders)
        self._problems, self._silent = ProblemLog(log), False
        self._rows_of: tuple[object, ...] = ()

    def claim(self) -> Claim:
        """What this agent says about its state. Raises `InputError`."""
        record, status = self.terms.load(), self.status()
        state = StateStore(self.folders.state).load()
        generation = state.generation if state else 0
        newest = self.history.last(1)
        heard = status.highest_generation if status else 0
        return Claim(
            node=record.node,
            name=socket.gethostname()[:255],
            master=self.installs() and status is not None and status.role == "master",
            term=record.term,
            holder=record.holder,
            generation=generation,
            highest=max(generation, heard, record.highest),
            decided=newest[0].at if newest else 0.0,
        )

    def exchange(self) -> bool:
        """Look at the peer, and do what follows. False where the peer did not answer, or its state
        was refused; that is logged once."""
        with self.lock:
            problem, silent = "", False
            try:
                self.exchange_once()
            except SarError as error:
                problem, silent = str(error), isinstance(error, PeerSilent)
                self.report.refused += isinstance(error, StateRefused)
            except OSError as error:
                problem = f"the other agent's state cannot be kept: {error.strerror}"
            # How it fails to answer may differ from try to try; that it does is logged once.
            if not (silent and self._silent):
                self._problems.problem("peer", problem, "the other agent answers again")
            self.report.problem, self._silent = problem, silent
            return not problem

    def exchange_once(self) -> None:
        """The same for a command. Raises `SarError`."""
        with self.lock:
            for tries_left in reversed(range(COPY_ATTEMPTS)):
                try:
                    self._exchange()
                    return
                except FilesChanged:
                    if not tries_left:
                        raise

    def take_over(self) -> TermRecord:
        """This agent's OpenSM is the master: the last state of the peer, if it answers, and a term
        of its own, unless the state is its own. Raises `InputError`."""
        with self.lock:
            if not self.report.problem:  # else it did not answer a moment ago, either
                self.exchange()
            record = self.terms.load()
            peer = self.report.claim
            heard = max(record.term, peer.term if peer else 0)
            if record.holder != record.node or heard > record.term:
                record = self._take_term(record, heard + 1)
            return record

    def close(self) -> None:
        """End the connection."""
        with self.lock:
            self.client.close()

    def _exchange(self) -> None:
        peer = self.client.look()
        record, own = self.terms.load(), self.claim()
        if peer.claim.node == record.node:
            raise StateRefused(
                f"the agent at {self.client.name} is this one, or a copy of it: remove "
                f"{self.terms.path} on the machine that was copied"
            )
        self.report.claim, self.report.answered_at = peer.claim, time.time()
        if peer.claim.highest > record.highest:
            record = record.model_copy(update={"highest": peer.claim.highest})
            self.terms.write(record)
        match precedence(own, peer.claim):
            case Precedence.ADOPT if not self.installs():
                self._adopt(peer, own, record)
            case Precedence.REFUSE if not self.installs():
                raise StateRefused(
                    f"the state of {peer.claim.name} is refused: it says generation "
                    f"{peer.claim.generation}, and this agent has generation {own.generation} of "
                    f"the same term {own.term}"
                )
            case Precedence.RAISE:
                self._take_term(record, peer.claim.term + 1)
                log.warning(
                    "%s has had a term of its own (%d, generation %d) while this OpenSM was a "
                    "master, too; its state is replaced by that of this agent",
                    peer.claim.name,
                    peer.claim.term,
                    peer.claim.generation,
                )
        two = own.master and peer.claim.master
        self._problems.problem(
            "masters",
            f"the OpenSM of {peer.claim.name} is a master, too: either the fabric is in two parts, "
            "or one of them gives way in a moment" * two,
            "one OpenSM is the master again",
        )
        self._add_rows(peer)

    def _adopt(self, peer: PeerState, own: Claim, record: TermRecord) -> None:
        term, holder = peer.claim.term, peer.claim.holder
        same_term = term == own.term
        files, ours = peer.files, self.source.snapshot()
        if (status := self.status()) and status.role == "master":
            # This agent is about to take over: its OpenSM has begun with the routes that it has.
            files, ours = _without_routes(files), _without_routes(ours)
        copied = files != ours
        if copied or not same_term or holder != own.holder:
            with Lock(self.folders.state, "pass.lock", LOCK_SECONDS):
                if copied:
                    name = peer.claim.name
                    adopt(self.client, files, ours, self.folders, name, same_term=same_term)
                    record = record.model_copy(update={"copied_at": time.time()})
                if not same_term:  # the subscribers of an earlier term are not known
                    for name in CONNECTIONS:
                        (self.folders.state / name).unlink(missing_ok=True)
                self.terms.write(record.model_copy(update={"term": term, "holder": holder}))
        if peer.claim.term > own.term and own.term and own.holder == own.node:
            log.log(
                logging.WARNING
                if copied and own.generation > peer.claim.generation
                else logging.INFO,
                "the state of %s counts now (term %d, generation %d): its OpenSM became the master "
                "after this one, whose state (term %d, generation %d) is replaced",
                peer.claim.name,
                peer.claim.term,
                peer.claim.generation,
                own.term,
                own.generation,
            )
        if copied:
            self.report.adopted += 1
            log.info(
                "copied the state of %s: generation %d, term %d",
                peer.claim.name,
                peer.claim.generation,
                peer.claim.term,
            )
        self.report.same_at = time.time()

    def _take_term(self, record: TermRecord, term: int) -> TermRecord:
        record = record.model_copy(update={"term": term, "holder": record.node})
        self.terms.write(record)
        return record

    def _add_rows(self, peer: PeerState) -> None:
        """The peer's decisions that this history does not have; both keep all of them."""
        version = (peer.claim.node, peer.claim.decided)
        if version == self._rows_of:
            return
        # A row from a clock that was ahead must not hide those that come after it.
        after = max(0.0, self.history.newest_at(time.time()) - CLOCK_DIFFERENCE_SECONDS)
        known = {row.at for row in self.history.after(after, MOST_ROWS)}
        while rows := self.client.rows(after):
            if new := [row for row in rows if row.at not in known]:
                self.history.add(*new)
                known.update(row.at for row in new)
            after = rows[-1].at
        self._rows_of = version


def _without_routes(files: Snapshot) -> Snapshot:
    return frozenset(file for file in files if file.name != ROUTES)
