"""The ranks of jobs: one for each terminal, in the order of hosts' names and rails.

Slurm numbers the tasks of a job along its list of nodes, which is sorted by name, numbers as
numbers. A dump of a fabric has its own order, so the ranks do not follow the indices of terminals.
**Weak spot:** a program may number its ranks otherwise (`--distribution=cyclic`, a rank file), and
several tasks on a host are one rank here.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import hca_order
from sar_agent.fabric.model import I32
from sar_agent.jobs.model import JobMix


def ranks_of(fabric: Fabric, mix: JobMix) -> I32:
    """int32[sum of N]: `mix.terminal` with each job's terminals in the order of its ranks. The
    first call for a list of hosts sorts them (70 ms for 11,664)."""
    place = _places(fabric.terminal_host, fabric.terminal_rail.tobytes())[mix.terminal]
    job = np.repeat(np.arange(len(mix.jobs)), np.diff(mix.offset))
    return mix.terminal[np.lexsort((place, job))]


@lru_cache(maxsize=2)
def _places(hosts: tuple[str, ...], rails: bytes) -> I32:
    """int32[T]: the place of each terminal in the order of names and rails."""
    rail = np.frombuffer(rails, np.int32)
    keys = {host: hca_order(host) for host in hosts}
    ranked = sorted(range(len(hosts)), key=lambda t: (keys[hosts[t]], hosts[t], int(rail[t])))
    place = np.empty(len(hosts), np.int32)
    place[ranked] = np.arange(len(hosts), dtype=np.int32)
    place.flags.writeable = False
    return place
