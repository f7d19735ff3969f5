"""The client of our plugin inside OpenSM: one line out, one line of JSON back, over a Unix socket.

An answer describes what is in force, not what was requested. Only requests that change nothing are
repeated; a `load` is sent once. A signal must not be used to find out whether the plugin is loaded:
SIGUSR2 kills an OpenSM without it.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from sar_agent.errors import Unavailable
from sar_agent.install.subnet_manager import SmRefused

PROTOCOL = 2
MAX_ANSWER = 65536
STATUS_TIMEOUT = 5.0  # the plugin answers from memory
AWAIT_TIMEOUT = 45.0  # longer than the plugin lets a client wait for a call
AT_REST = frozenset({"built", "waiting"})
"""States in which tables can be read and loaded."""


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")  # a newer plugin may answer more


_T = TypeVar("_T", bound=_Answer)


class PluginStatus(_Answer):
    """The plugin's report on OpenSM, its routes and the fabric."""

    protocol: Literal[2]
    plugin_version: str
    opensm_version: str
    pid: int
    sm_state: str  # master, standby, discovering, not-active
    state: Literal["starting", "asked", "building", "waiting", "sending", "built"]
    """starting: nothing was routed yet; asked: a load or a sweep was requested, and OpenSM does not
    route yet; building: a routing engine computes, ours or another; waiting: our engine has no
    routes for this fabric, and waits for a load within OpenSM's routing (a few seconds at most; the
    tables of before are in force); sending: tables are being sent; built: OpenSM is done with the
    last of them, and nothing is under way."""
    last_error: str  # why the newest routes are not in force; empty when they are
    engine_in_force: (
        str  # which engine really built the tables: "sar", a stock engine, or "none" yet
    )
    routes_engine: str  # with "sar": the engine that the routes file names
    generation_in_force: int  # 0 unless engine_in_force is "sar"
    generation_loaded: int  # the newest valid routes in the plugin's memory, 0 for none
    lmc: int
    switches: int
    hca_ports: int
    lanes: int  # virtual lanes of the routes in force
    # The plugin's own repairs of the routes in force, since they were loaded:
    amendments: int = 0
    amended_entries: int = 0  # changed by the last one
    repair_drops: bool = False  # packets of a live host are dropped
    repair_ms: float = 0  # that the last one took to compute
    repairs_refused: int = 0  # since OpenSM started: repairs that are not installed
    listening: int = 0  # clients that wait to be asked for routes within a routing
    repair_calls: int = 0  # how often the agent was asked for routes within a routing
    repair_calls_answered: int = 0  # how often it sent routes in time
    unknown_terminals: int  # live ports that the routes in force do not know (or know elsewhere)
    vanished_terminals: int  # terminals of the routes in force that are not in the fabric
    # As of the last routing that OpenSM finished:
    unconfirmed_switches: int  # switches that have not confirmed their whole table
    unconfirmed_lft_blocks: int  # blocks of 64 LIDs, of all of them
    unconfirmed_sl2vl_ports: int  # of switches, that have not confirmed the lanes of our routes
    head_of_queue_seconds: float  # longest wait at the head of a queue; -1: without limit
    heavy_sweeps: int  # grows when discovery ran again
    topology_changes: int  # grows when what was discovered differs from the time before
    routings: int  # grows with each set of tables that was sent out
    lft_blocks_confirmed: int
    sl2vl_tables_sent: int = 0  # to switches, by our engine; one for each pair of ports
    unconfirmed_sl2vl_tables: int = 0
    last_build_unix: int

    @property
    def settled(self) -> bool:
        """Whether nothing is under way, and the switches have confirmed all that was sent."""
        return self.state in AT_REST and not (
            self.unconfirmed_switches or self.unconfirmed_lft_blocks or self.unconfirmed_sl2vl_ports
        )


class LoadAnswer(_Answer):
    """The answer to a `load` that succeeded: its routes are in force on every switch."""

    engine_in_force: str
    generation_in_force: int
    unknown_terminals: int


class FabricAnswer(_Answer):
    """The subnet that OpenSM discovered was written to `path`."""

    path: Path
    digest: str  # 16 hex digits; the same as long as nothing changed


class CallAnswer(_Answer):
    """Whether a routing waits for the agent."""

    call: int  # 0: none does


class DumpAnswer(_Answer):
    """The present tables, written to `path` as a routes file."""

    path: Path
    digest: str  # 16 hex digits: names the tables in the `load` of a plan proved from them
    unconfirmed_sl2vl_ports: int = 0  # which is in no section of the file


LATER_IN_FORCE = frozenset({"deadline", "unconfirmed"})
"""Codes of refusals after which the loaded routes may come into force all the same."""


class PluginRefused(SmRefused):
    """The plugin refused, in one sentence. `code`: busy (another load, or one past its deadline, is
    under way), changed (other tables are in force than the load was proved from), stale (the routes
    do not fit the fabric), invalid (the file is bad), deadline (not done in time, and still under
    way), not-master, unconfirmed (in force but for what switches did not confirm), other."""

    def __init__(self, message: str, code: str = "other") -> None:
        super().__init__(message, changed=code == "changed", pending=code in LATER_IN_FORCE)
        self.code = code


class NoticeAnswer(_Answer):
    """A notice that OpenSM sent out; whether it arrives, only the subscriber can tell."""

    subscribed: int  # subscriptions to this trap that the SA holds


class PluginClient:
    """A client; it holds no connection between calls."""

    def __init__(self, socket_path: str | Path, timeout: float = 90.0) -> None:
        """`timeout` is for one answer; keep it above the plugin's own deadline (60 s)."""
        self.socket_path, self.timeout = Path(socket_path), timeout
        self._status: tuple[bytes, PluginStatus] | None = None
        """The last answer to `status`: as long as nothing happens, the next one has its bytes."""

    def status(self) -> PluginStatus:
        """Retried, since asking changes nothing."""
        answer = self._ask_again("status")
        if self._status and self._status[0] == answer:
            return self._status[1]
        try:
            spoken = _Protocol.model_validate_json(answer).protocol
            if spoken != PROTOCOL:
                raise Unavailable(
                    f"{self.socket_path}: the plugin speaks protocol {spoken}, this agent "
                    f"{PROTOCOL}; install both from one release"
                )
            self._status = answer, PluginStatus.model_validate_json(answer)
            return self._status[1]
        except ValidationError as error:
            raise self._garbage(answer) from error

    def load(self, generation: int, proved_from: str | None) -> LoadAnswer:
        """Have OpenSM install the routes of `routes.next`, beside the routes file, in place of the
        tables that a `dump` called `proved_from` (None: whatever is in force); returns once they
        are in force and confirmed.

        Raises Refused with the plugin's own sentence when they are not.
        """
        return self._command(f"load {generation} {proved_from or 'any'}", LoadAnswer)

    def dump(self) -> DumpAnswer:
        """Have the present tables written as a routes file; waits while OpenSM routes."""
        return self._command("dump", DumpAnswer)

    def fabric(self) -> FabricAnswer:
        """Have the discovered subnet written (opensm_bridge/FABRIC.md).

        Raises SarError with the plugin's own sentence where OpenSM is not the master or its sweep
        is under way.
        """
        return self._command("fabric", FabricAnswer)

    def await_call(self, answered: int) -> int:
        """Wait, for half a minute at most, until a routing asks for routes; returns the number of
        the call, or 0. `answered` is the last call that was heard."""
        return self._command(f"await {answered}", CallAnswer, AWAIT_TIMEOUT).call

    def decline(self, call: int) -> None:
        """Tell the routing that waits in `call` that there are no routes for it. Raises SarError
        where it waits no longer."""
        self._command(f"decline {call}", _Answer)

    def notice(
        self, kind: Literal["unpath", "repath"], update: int, generation: int
    ) -> NoticeAnswer:
        """Report the five-phase update's trap 68 or 69 to its subscribers at the SA (sar-2016,
        Section 3.3; libs/migrate/PROTOCOL.md). A notice may be lost, so it is repeated until it
        is acknowledged.

        Raises SarError with the plugin's own sentence where this OpenSM is not the master.
        """
        return self._command(f"notice {kind} {update} {generation}", NoticeAnswer)

    def _command(self, request: str, answer_type: type[_T], timeout: float = 0.0) -> _T:
        answer = self._ask(request, timeout or self.timeout)
        try:
            refusal = _Refused.model_validate_json(answer)
            if not refusal.ok:
                raise PluginRefused(f"{self.socket_path}: {refusal.error}", refusal.code)
            return answer_type.model_validate_json(answer)
        except ValidationError as error:
            raise self._garbage(answer) from error

    @retry(
        retry=retry_if_exception_type(Unavailable),
        stop=stop_after_attempt(4),
        wait=wait_fixed(0.25),
        reraise=True,
    )
    def _ask_again(self, request: str) -> bytes:
        return self._ask(request, min(self.timeout, STATUS_TIMEOUT))

    def _ask(self, request: str, timeout: float) -> bytes:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
                talk.settimeout(timeout)
                talk.connect(os.fspath(self.socket_path))
                talk.sendall(request.encode() + b"\n")
                answer = bytearray()
                while not answer.endswith(b"\n"):
                    piece = talk.recv(4096)
                    if not piece or len(answer) > MAX_ANSWER:
                        raise self._garbage(bytes(answer))
                    answer += piece
                return bytes(answer)
        except OSError as error:
            late = f"no answer within {timeout:g} s"
            why = late if isinstance(error, TimeoutError) else error.strerror or str(error)
            raise Unavailable(
                f"{self.socket_path}: OpenSM's plugin does not answer ({why}); "
                "is OpenSM running with event_plugin_name sarbridge?"
            ) from error

    def _garbage(self, answer: bytes) -> Unavailable:
        shown = answer[:80].decode("ascii", "replace")
        return Unavailable(f"{self.socket_path}: not an answer of our plugin: {shown!r}")


class _Protocol(_Answer):
    protocol: int


class _Refused(_Answer):
    ok: bool
    code: str = "other"
    error: str = ""
