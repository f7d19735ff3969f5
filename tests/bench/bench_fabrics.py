"""The fabrics of the benchmarks: specs of generated fabrics, file names of real ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from tests.data import data_root

SMALL = "xgft:2;18,36;1,18"
MIDDLE = "xgft:3;12,12,12;1,12,12"
LARGEST = "xgft:3;18,18,36;1,18,18"


def available(names: Iterable[str]) -> Iterator[str]:
    """The fabrics whose data are on this machine; the others are printed."""
    for name in names:
        if ":" in name or (data_root() / _file(name)).exists():
            yield name
        else:
            print(f"{name}: not in {data_root()} ($SAR_DATA), left out")


def fabric_of(name: str) -> Fabric:
    """The fabric of a name."""
    return load_fabric(name if ":" in name else data_root() / _file(name))


def _file(name: str) -> str:
    return f"{name}.ibnetdiscover"


def size_of(fabric: Fabric) -> str:
    """`1,728 hosts, 432 switches`; HCA ports where hosts have several."""
    what = "hosts" if fabric.terminals == len(fabric.hosts) else "HCA ports"
    return f"{fabric.terminals:,} {what}, {fabric.switches:,} switches"
