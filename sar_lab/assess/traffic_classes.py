"""What an assessment can know of each class of traffic where switches may route adaptively.

Sources: NVIDIA's subnet manager (`ar_sl_mask`, `hbf_sl_mask`, AR transports RC and DC by default;
ar_updn is its default engine since 5.10), NCCL's variables, and upstream OpenSM, which has no
adaptive engine. docs/adaptive-routing.md explains them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from sar_agent.fabric import Fabric

FAST = 200.0
"""Gbit/s: HDR and later switches route adaptively under NVIDIA's subnet manager by default."""


class TrafficClass(NamedTuple):
    """One class of traffic, what decides its path, and what follows for the gain."""

    traffic: str
    follows: Literal["tables", "switches", "unknown"]
    sentence: str


def is_fast(fabric: Fabric) -> bool:
    """Whether the fabric has links of HDR or faster."""
    return bool(fabric.terminal_rate.max(initial=0.0) >= FAST)


def traffic_classes(fabric: Fabric, adaptive: bool) -> tuple[TrafficClass, ...]:
    """`adaptive`: the site says that adaptive routing is in force."""
    if adaptive:
        return _ADAPTIVE
    if is_fast(fabric):
        return (_UPSTREAM, _NVIDIA)
    return (_OLDER,)


_ADAPTIVE = (
    TrafficClass(
        "RC and DC on service levels of ar_sl_mask (most of MPI and NCCL)", "switches",
        "Switches choose among the shortest paths, packet by packet. New tables change this "
        "traffic little; how much is not known, since this report does not simulate switches.",
    ),
    TrafficClass(
        "UD and UC (IPoIB, some control messages of MPI)", "tables",
        "They follow the tables, and what the report states applies to them.",
    ),
    TrafficClass(
        "service levels outside ar_sl_mask", "tables",
        "They follow the tables, and what the report states applies to them, unless hbf_sl_mask "
        "selects them: then a hash of each flow chooses the port.",
    ),
    TrafficClass(
        "NCCL", "unknown",
        "With NCCL_IB_ADAPTIVE_ROUTING=1, messages above NCCL_IB_AR_THRESHOLD (8 KiB by default) "
        "are made fit for adaptive routing; the service level decides whether it is used.",
    ),
    TrafficClass(
        "links above a slimmed level", "unknown",
        "Adaptive routing spreads traffic over all links of a level, but cannot add links. Where "
        "jobs need more than the level has, only placement helps.",
    ),
)  # fmt: skip
_UPSTREAM = TrafficClass(
    "all traffic, under upstream OpenSM", "tables",
    "Upstream OpenSM has no adaptive engine: what the report states applies.",
)  # fmt: skip
_NVIDIA = TrafficClass(
    "all traffic, under NVIDIA's subnet manager (MLNX_OFED, DOCA, UFM)", "unknown",
    "Its default is adaptive (ar_updn) since version 5.10. If it is in force, give --adaptive; the "
    "report then tells the classes of traffic apart.",
)  # fmt: skip
_OLDER = TrafficClass(
    "all traffic", "tables",
    "No link of this network is HDR or faster, so its routing is most likely static, and what the "
    "report states applies. If your subnet manager uses an ar_ engine, give --adaptive.",
)  # fmt: skip
