"""`Routes`: the forwarding tables of one plan.

Tables are destination-major (one row is one destination's tree over all switches), because every
kernel that grows, walks or counts trees works on one destination at a time; a switch's LFT is a
column. Entries are egress *ports*, as the hardware and OpenSM hold them: a byte instead of a 4-byte
channel index, so that tables for 11,664 hosts take 21 MB.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32, U8, Bool, Fabric
from sar_agent.util.plural import plural

NO_ROUTE = 255
UPDN_INSTEAD = "+updn"
"""Ending of the engine's name where tables of `updn` took the place of its own."""


@dataclass(frozen=True, eq=False)
class Routes:
    """Egress ports for O LID offsets, T + S destinations (terminals, then switches), S switches."""

    engine: str
    fabric_digest: bytes
    """32 bytes: the fabric that the routes were made for."""
    egress: U8
    """uint8[O, T + S, S]: the port by which switch s forwards to destination d; 0 where d is switch
    s itself; `NO_ROUTE` where there is no route."""
    service_level: U8 | None = None
    """uint8[O, T + S, S]: service level from source leaf switch s to d; None: all 0."""
    virtual_lanes: int = 1
    """How many lanes the routes use. Service level i travels in lane i, unless lanes are chosen hop
    by hop."""
    jobs_digest: bytes = b""
    """16 bytes: the jobs that the routes were made for; empty for engines that do not know jobs."""
    mark: int = 0
    """A number by which the engine recognises its routes in this process; 0: there is no number."""
    hop_lane: U8 | None = None
    """uint8[S, P + 1, P + 1], P the fabric's highest port: lane of a packet that enters switch s by
    port i (0: the switch sends it itself) and leaves by port o, whatever its service level. None:
    the lane depends on the service level alone. Never set together with `service_level`."""
    remarks: tuple[str, ...] = ()
    """Remarks for the administrator, a sentence each; no file holds them."""
    senders: Bool | None = None
    """bool[S]: switches at which hosts that the plan does not know may send
    (`check.senders_proved`). None: in a plan, only hosts that it knows may send; in routes that
    were read back, nothing is known about it."""

    def __post_init__(self) -> None:
        """Kernels read these arrays without bounds checks, so arrays that do not fit each other are
        refused here, with `InputError`."""
        _, destinations, switches = shape = self.egress.shape
        lanes, levels = self.hop_lane, self.service_level
        fits = {
            "egress": self.egress.dtype == np.uint8 and destinations >= switches,
            "service_level": levels is None
            or (levels.shape[1:] == shape[1:] and levels.dtype == np.uint8),
            "hop_lane": lanes is None or (len(lanes) == switches and lanes.dtype == np.uint8),
            "senders": self.senders is None or self.senders.shape == (switches,),
        }
        if wrong := [name for name, good in fits.items() if not good]:
            raise InputError(
                f"routes of engine {self.engine}: {', '.join(wrong)} do not fit tables of "
                f"{destinations} destinations and {plural(switches, 'switch', 'switches')}",
                remedy="this is an error in the engine",
            )

    def require_fit(self, fabric: Fabric) -> None:
        """Raises `InputError` where the tables are not of the fabric's size."""
        shape = (fabric.destinations, fabric.switches)
        if self.egress.shape[1:] != shape:
            raise InputError(
                f"routes for {self.egress.shape[1:]} (destinations, switches) do not fit "
                f"{fabric.name} with {shape}",
                remedy="compute them for this fabric",
            )

    @property
    def needs_host_levels(self) -> bool:
        """Whether the routes are safe only if hosts take service levels from path records."""
        return self.virtual_lanes > 1 and self.service_level is not None

    @property
    def lanes_in_words(self) -> str:
        """How the routes do without credit loops, and what hosts have to do for it."""
        if self.needs_host_levels:
            told = "hosts must take the service level from path records"
            return f"{self.virtual_lanes}, by path: {told}"
        if self.hop_lane is not None:
            return f"{self.virtual_lanes}, hop by hop: hosts need no change"
        if self.engine.endswith(UPDN_INSTEAD):
            return "1, by Up*/Down* paths: the engine's own would close a credit loop"
        return "1"

    def next_channel(self, fabric: Fabric) -> I32:
        """int32[T + S, S], of LID offset 0: the channel instead of the port; -1 at the last switch
        or no route."""
        switch = np.arange(fabric.switches)
        table: I32 = fabric.channel_by_port[switch[None, :], self.egress[0]]
        return table

    def entries_changed(self, before: Routes) -> int:
        """How many entries differ from `before`, routes of the same destinations and switches. All
        entries of LID offsets that only these routes have count as changed."""
        both = min(len(before.egress), len(self.egress))
        changed = np.count_nonzero(before.egress[:both] != self.egress[:both])
        return int(changed) + self.egress[both:].size

    def same_tables(self, other: Routes) -> bool:
        """Whether tables, service levels and lanes hop by hop are equal: `digest`, but quicker."""

        def same(name: str) -> bool:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is None or theirs is None:
                return mine is theirs
            return mine is theirs or np.array_equal(mine, theirs)

        return all(map(same, ("egress", "service_level", "hop_lane")))

    @property
    def digest(self) -> bytes:
        """32 bytes that identify the tables, service levels and lanes hop by hop, and nothing
        else."""
        state = hashlib.blake2b(np.ascontiguousarray(self.egress).data, digest_size=32)
        if self.service_level is not None:
            state.update(self.service_level.tobytes())
        if self.hop_lane is not None:
            state.update(b"hop" + self.hop_lane.tobytes())
        return state.digest()
