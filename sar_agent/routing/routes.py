"""`Routes`: the forwarding tables of one plan.

Tables are destination-major (one row is one destination's tree over all switches) because every
kernel — growing trees, walking them, counting routes — works on one destination at a time; a
switch's LFT is a column. Entries are egress *ports*, as the hardware and OpenSM hold them: a byte
instead of a 4-byte channel index, which is what lets 11,664 hosts fit in 21 MB.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from sar_agent.fabric.model import I32, U8, Bool, Fabric

NO_ROUTE = 255


@dataclass(frozen=True, eq=False)
class Routes:
    """Egress ports for O LID offsets, T + S destinations (terminals, then switches), S switches."""

    engine: str
    fabric_digest: bytes
    """32 bytes: the fabric they were made for."""
    egress: U8
    """uint8[O, T + S, S]: port by which switch s forwards to destination d; 0 at the switch that
    d is; 255 where there is no route."""
    service_level: U8 | None = None
    """uint8[O, T + S, S]: service level from source leaf switch s to d; None: all 0."""
    virtual_lanes: int = 1
    """Lanes used; service level i travels in lane i, unless lanes are chosen hop by hop."""
    jobs_digest: bytes = b""
    """16 bytes: the mix they were made for; empty for engines that look at none."""
    seconds: float = 0.0
    """How long the engine took."""
    mark: int = 0
    """The engine's own, to know its routes again in this process; 0: none."""
    hop_lane: U8 | None = None
    """uint8[S, P + 1, P + 1], P the fabric's highest port: lane of a packet that entered switch s
    by port i (0: it is the switch's own) and leaves by port o, whatever its service level; None:
    the service level alone says the lane. Never beside `service_level`."""
    remarks: tuple[str, ...] = ()
    """What a person should know of them, a sentence each; no file holds them."""
    regular: bool = False
    """Whether lanes replaced the engine's tables by tables that depend on the fabric alone, so that
    no job changes them; no file holds it."""
    senders: Bool | None = None
    """bool[S]: switches at which hosts that they do not know may send (`check.senders_proved`);
    None: of a plan, only hosts that it knows; of what is in force, it is not known."""

    @property
    def needs_host_levels(self) -> bool:
        """Whether they are safe only where hosts take their service levels from path records."""
        return self.virtual_lanes > 1 and self.service_level is not None

    def next_channel(self, fabric: Fabric, offset: int = 0) -> I32:
        """int32[T + S, S]: the channel instead of the port; -1 at the last switch or no route."""
        switch = np.arange(fabric.switches)
        table: I32 = fabric.channel_by_port[switch[None, :], self.egress[offset]]
        return table

    def entries_changed(self, before: Routes) -> int:
        """Entries that differ from routes of the same destinations and switches; those of LID
        offsets that only these have are all new."""
        rows = 512  # at a time, so that what is compared stays in the cache
        same = 0
        for old, new in zip(before.egress, self.egress, strict=False):
            for start in range(0, len(new), rows):
                part = slice(start, start + rows)
                same += int(np.count_nonzero(old[part] == new[part]))
        return self.egress.size - same

    @property
    def digest(self) -> bytes:
        """32 bytes that name the tables, service levels and lanes hop by hop, nothing else."""
        state = hashlib.blake2b(self.egress.tobytes(), digest_size=32)
        if self.service_level is not None:
            state.update(self.service_level.tobytes())
        if self.hop_lane is not None:
            state.update(b"hop" + self.hop_lane.tobytes())
        return state.digest()
