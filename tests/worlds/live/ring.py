"""Five switches in a ring, one host each, all traffic the shorter way round: in one lane the
textbook's credit loop; free of it when the paths over one link have a lane of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sar_agent.formats.routes_file import NO_SWITCH, RoutesFile

HOST, NEXT, PREVIOUS, PORTS = 1, 2, 3, 3


@dataclass(frozen=True)
class Ring:
    size: int = 5

    def switches(self) -> dict[str, int]:
        return {f"ring{i}": 0x1000 + i for i in range(self.size)}

    def terminals(self) -> dict[str, int]:
        return {f"n{i + 1:03d}": 0x10000 + 16 * i + 1 for i in range(self.size)}

    def net(self) -> str:
        lines = ["width=2", "speed=4", "extspeed=3", ""]
        for i, (name, guid) in enumerate(self.terminals().items()):
            lines += [f"caguid={guid - 1:#x}", f'Hca 1 "{name}" # "{name} HCA-1"']
            lines += [f'[1] "ring{i}"[{HOST}]', ""]
        for i, (name, guid) in enumerate(self.switches().items()):
            after, before = (i + 1) % self.size, (i - 1) % self.size
            lines += [f"switchguid={guid:#x}", f'Switch {PORTS} "{name}" # "{name}"']
            lines += [f'[{HOST}] "n{i + 1:03d}"[1]', f'[{NEXT}] "ring{after}"[{PREVIOUS}]']
            lines += [f'[{PREVIOUS}] "ring{before}"[{NEXT}]', ""]
        return "\n".join(lines)

    def routes(self, generation: int, *, lanes: int = 1) -> RoutesFile:
        size = self.size
        here, target = np.indices((size, 2 * size))
        target_switch = target % size
        own = np.where(target < size, HOST, 0)
        clockwise = (target_switch - here) % size <= size // 2
        on = np.where(clockwise, NEXT, PREVIOUS)
        forwarding = np.where(here == target_switch, own, on).astype(np.uint8)[None]
        # A path between ring4 and ring0 would close the circle: it takes the other lane.
        passes = np.where(clockwise, target_switch < here, target_switch > here)
        service_levels = passes.astype(np.uint8)[None]
        far_ends = np.full((size, PORTS + 1), NO_SWITCH, np.uint32)
        far_ends[:, NEXT] = (np.arange(size) + 1) % size << 8 | PREVIOUS
        far_ends[:, PREVIOUS] = (np.arange(size) - 1) % size << 8 | NEXT
        return RoutesFile(
            generation=generation,
            engine="shorter-way",
            fabric_digest=bytes(32),
            made_at=1_700_000_000,
            lanes=lanes,
            switch_guids=np.array(list(self.switches().values()), np.uint64),
            terminal_guids=np.array(list(self.terminals().values()), np.uint64),
            terminal_leaf=np.arange(size, dtype=np.uint32),
            switch_ports=np.full(size, PORTS, np.uint8),
            forwarding=forwarding,
            far_ends=far_ends,
            senders=np.ones(size, np.uint8),
            service_levels=service_levels if lanes > 1 else None,
            sl_to_vl=(np.arange(16) % lanes).astype(np.uint8) if lanes > 1 else None,
            fallback_sl=np.zeros(1, np.uint8) if lanes > 1 else None,
        )
