"""The simulators against measurements of others on machines whose set-up is public.

Each measurement is beside what the fluid model and the packet simulator say of the same set-up, as
a share of what the flow, pair or engine has in the comparison that the authors make.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from sar_agent.errors import SarError
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.fluid import PATTERNS
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import flows_of_steps, job_ends
from sar_lab.opensm_tables import lab_engine
from sar_lab.research.packets import PacketModel, packet_times
from sar_lab.research.packets.adaptive_groups import minimal_groups
from sar_lab.research.packets.packet_model import adaptive_times
from sar_lab.research.papers.claims import NEAR, Claim, value
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Outcome, ResultTable
from sar_lab.research.papers.pftree_fig7 import STEPS, victims_share
from sar_lab.research.papers.pftree_worked import THREE
from sar_lab.research.papers.published import Quote, quotes
from sar_lab.research.papers.sar_fig8 import SMALL, taurus, whole_mix

SAID = {**quotes("measured-by-others"), **quotes("pftree-fig7"), **quotes("sar-fig8")}
FLUID, PACKETS = "fluid", "packets"
CLOS, SEGMENTS = "xgft:2;16,32;1,16", 256
"""512 hosts on crossbars of 32 ports; segments of a message."""
QDR, MEGABYTE = 32.0, 8e-3
"""Gbit/s of the data of 4xQDR; Gbit of a megabyte."""
MODEL = PacketModel()
Models = dict[str, float]
"""Model → its number; a model that cannot say is left out."""


def measured_by_others(seeds: Sequence[int]) -> Outcome:
    """All measurements under both models."""
    clos = [clos_bandwidth(seed) for seed in seeds]
    fig8 = [all_to_all(seed) for seed in seeds]
    alone, beside = SAID["first"].numbers[:2]
    lines: list[tuple[str, Quote, float, Models]] = [
        ("one flow alone on 4xQDR, MB/s", SAID["first"], alone, {FLUID: QDR / MEGABYTE}),
        ("a flow beside one other: share of alone", SAID["first"], beside / alone, victim(0)),
        ("a flow beside two others: share of alone", SAID["second"],
         SAID["second"].number / alone, victim(1)),
        ("random pairs on 512 hosts, static routes: share of a pair alone", SAID["static"],
         SAID["static"].number / 100, _mean(clos, "static")),
        ("the same, adaptive routing", SAID["adaptive"], SAID["adaptive"].number / 100,
         _mean(clos, "adaptive")),
    ]  # fmt: skip
    for slow, fast, name, percent in (
        ("opensm-dfsssp", "opensm-ftree", "dfsssp", 1 + SAID["dfsssp"].number / 100),
        ("sar", "opensm-dfsssp", "sar", 1 - SAID["sar"].numbers[0] / 100),
        ("sar", "opensm-ftree", "sar", 1 - SAID["sar"].numbers[1] / 100),
    ):
        ratio = {
            model: float(np.median([each[model, slow] / each[model, fast] for each in fig8]))
            for model in (FLUID, PACKETS)
            if all((model, slow) in each for each in fig8)
        }
        says = f"all-to-all of 28 hosts, {slow} over {fast}: time"
        lines.append((says, SAID[name], percent, ratio))
    rows = [
        [says, _number(given), *(_cell(models.get(m), given) for m in (FLUID, PACKETS))]
        for says, _, given, models in lines
    ]
    return Outcome(
        [claim for line in lines for claim in _claims(*line)],
        [ResultTable(["measurement", "measured", *(FLUID, PACKETS)], rows)],
    )


def _claims(says: str, said: Quote, given: float, models: Models) -> list[Claim]:
    return [
        value(f"{model}: {says}", given, found, NEAR, said=said, ratio=True)
        for model, found in models.items()
    ]


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _cell(found: float | None, given: float) -> str:
    return "–" if found is None else f"{_number(found)} ({100 * (found / given - 1):+.0f} %)"


def _mean(draws: Sequence[dict[tuple[str, str], float]], routes: str) -> Models:
    models = [model for model, of in draws[0] if of == routes]
    return {model: float(np.mean([each[model, routes] for each in draws])) for model in models}


def victim(step: int) -> Models:
    """The share that the victim of pftree-fig7 keeps beside one or two flows."""
    routes = THREE.routed("pftree")
    return {
        FLUID: victims_share(routes, STEPS[step]),
        PACKETS: victims_share(routes, STEPS[step], packets=True),
    }


@measured
def clos_bandwidth(seed: int) -> dict[tuple[str, str], float]:
    """(model, routes) → the bandwidth of the mean pair; partners send to each other."""
    fabric = load_fabric(CLOS)
    hosts = np.random.default_rng(seed).permutation(fabric.terminals)
    to = np.roll(hosts.reshape(2, -1), 1, axis=0).ravel()
    size = SEGMENTS * MODEL.segment_bytes * 8e-9
    flows = flows_of_steps([np.stack([hosts, to], axis=1)], size)
    routes = load_engine("ftree").route(fabric, JobMix(()), Options())
    links = routed_links(fabric, routes, flows)
    alone = size / float(fabric.terminal_rate.min())
    ends = {
        (FLUID, "static"): end_times(links, flows),
        (PACKETS, "static"): packet_times(fabric, links, flows, MODEL).end,
        (PACKETS, "adaptive"): adaptive_times(
            fabric, minimal_groups(fabric), flows, MODEL, "packet"
        ).end,
    }
    return {key: float((alone / end).mean()) for key, end in ends.items()}


@measured
def all_to_all(seed: int) -> dict[tuple[str, str], float]:
    """(model, engine) → seconds of sar-fig8's job, one message after the other, beside all other
    jobs, which do the same."""
    mix, at = whole_mix(seed, SMALL)
    flows = PATTERNS["shift-free"](taurus(), mix)
    flows = flows._replace(size=np.full(len(flows.size), 2.0**20 * 8e-9))
    found: dict[tuple[str, str], float] = {}
    for name in ("opensm-ftree", "opensm-dfsssp", "sar"):
        routes = lab_engine(name).route(taurus(), mix, Options())
        links = routed_links(taurus(), routes, flows)
        ends = {FLUID: end_times(links, flows)}
        with suppress(SarError):  # speeds that have no common clock
            ends[PACKETS] = packet_times(taurus(), links, flows, MODEL).end
        for model, end in ends.items():
            found[model, name] = float(job_ends(flows, end, len(mix.jobs))[at])
    return found
