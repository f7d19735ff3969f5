"""Which switches and service levels route adaptively, where the settings contradict each other, and
which jobs' traffic follows the tables after all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import Bool
from sar_agent.formats.adaptive_dumps import ALL_LEVELS, TRANSPORTS, AdaptiveDump, mask_of
from sar_agent.formats.fdbs import lids_of
from sar_agent.jobs import Job
from sar_agent.quality.channel_traffic import Traffic
from sar_agent.reports.wording import some
from sar_agent.util.plural import plural

NAMES_SHOWN = 5
_TRANSPORTS_IF_UNSAID = "0xA"


@dataclass(frozen=True)
class AdaptiveReport:
    """What the dumps say together."""

    settings: tuple[str, ...]
    """A sentence each."""
    contradictions: tuple[str, ...]
    follow_tables: tuple[str, ...] | None
    """Jobs that pass no adaptive entry; None where no dump tells of switches."""
    jobs: int
    notes: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)

    def words(self) -> str:
        """For people."""
        lines = [f"adaptive routing: {each}" for each in self.settings]
        lines += [f"contradiction: {each}" for each in self.contradictions]
        if self.follow_tables is not None:
            lines.append(
                f"{self.jobs - len(self.follow_tables)} of "
                f"{plural(self.jobs, 'job passes', 'jobs pass')} switches that "
                "route adaptively"
                + (
                    f"; by tables alone: {some(self.follow_tables, NAMES_SHOWN)}"
                    if self.follow_tables
                    else ""
                )
            )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def adaptive_report(traffic: Traffic, dumps: Sequence[AdaptiveDump]) -> AdaptiveReport:
    """What the dumps say of the fabric and the jobs of the traffic. Raises `InputError` where no
    switch of theirs is in the fabric, and for a mask that is none."""
    fabric, said, wrong = traffic.fabric, list[str](), list[str]()
    row = {int(guid): s for s, guid in enumerate(fabric.switch_guid)}
    told = [guid for dump in dumps for guid in (*dump.switches, *dump.groups)]
    if told and not row.keys() & set(told):
        raise InputError(
            f"no switch of {dumps[0].source} is in {fabric.name}", remedy="give dumps of one fabric"
        )
    options = {name: text for dump in dumps for name, text in dump.options.items()}
    switches = {row[g]: s for dump in dumps for g, s in dump.switches.items() if g in row}
    far = [dump for dump in dumps if dump.groups]
    if options:
        _options(options, said, wrong)
    if switches:
        _switches(fabric, switches, options, said, wrong)
    adaptive = np.zeros((fabric.destinations, fabric.switches), np.bool_)
    for s, each in switches.items():
        adaptive[:, s] = each.enabled and each.levels > 0
    if far:
        of_entries = _entries(fabric, row, far, said, wrong)
        idle = [s for s, each in switches.items() if each.enabled and not of_entries[:, s].any()]
        if idle:
            wrong.append(f"switched on, but without an adaptive entry: {_names(fabric, idle)}")
        adaptive = of_entries & adaptive if switches else of_entries
    follow = None
    if switches or far:
        follow = tuple(job.id for job in _by_tables(traffic, adaptive))
    notes = tuple(note for dump in dumps for note in dump.notes)
    return AdaptiveReport(tuple(said), tuple(wrong), follow, len(traffic.mix.whole_jobs), notes)


def _options(options: dict[str, str], said: list[str], wrong: list[str]) -> None:
    engine = options.get("routing_engine", "")
    levels, hashed = (
        mask_of(options.get(n, d)) for n, d in (("ar_sl_mask", "0xFFFF"), ("hbf_sl_mask", "0"))
    )
    transports = mask_of(options.get("ar_transport_mask", _TRANSPORTS_IF_UNSAID))
    chosen = [name for bit, name in enumerate(TRANSPORTS) if transports >> bit & 1]
    said.append(
        f"opensm.conf has {engine or 'no routing_engine'}, service levels {_levels(levels)}, "
        f"{', '.join(chosen) or 'no transport'}"
        + (f"; by a hash of the flow {_levels(hashed)}" if hashed else "")
    )
    if engine and not any(e.strip().startswith(("ar_", "dfp", "kdor")) for e in engine.split(",")):
        wrong.append(
            f"routing_engine {engine} has no adaptive routing, so the masks have no effect"
        )
    if levels & hashed and "ar_sl_mask" in options:
        wrong.append(
            f"service levels {_levels(levels & hashed)} are in ar_sl_mask and in hbf_sl_mask"
        )


def _switches(
    fabric: Fabric,
    switches: dict[int, Any],
    options: dict[str, str],
    said: list[str],
    wrong: list[str],
) -> None:
    on = [s for s, each in switches.items() if each.enabled]
    off = [s for s in range(fabric.switches) if s not in on and fabric.switch_up[s]]
    said.append(
        f"on at {len(on)} of {plural(fabric.switches, 'switch', 'switches')}"
        + (f", not at {_names(fabric, off)}" if on and off else "")
    )
    for what, of in (("service levels", "levels"), ("hashed service levels", "hashed")):
        masks = Counter(getattr(switches[s], of) for s in on)
        if not masks:
            continue
        usual = masks.most_common(1)[0][0]
        if of == "levels" or usual:
            said.append(f"{what} {_levels(usual)} on {plural(masks[usual], 'switch', 'switches')}")
        odd = [s for s in on if getattr(switches[s], of) != usual]
        for s in odd[:NAMES_SHOWN]:
            mask = getattr(switches[s], of)
            wrong.append(
                f'"{fabric.switch_name[s]}" has {what} {_levels(mask)}, most have {_levels(usual)}'
            )
        name = "ar_sl_mask" if of == "levels" else "hbf_sl_mask"
        if name in options and mask_of(options[name]) != usual:
            wrong.append(
                f"{name} of opensm.conf has {_levels(mask_of(options[name]))}, switches have "
                f"{_levels(usual)}"
            )
    masks = Counter(switches[s].excluded for s in on)
    for mask, number in masks.most_common(2):
        names = [name for bit, name in enumerate(TRANSPORTS) if mask >> bit & 1]
        if names:
            said.append(f"not for {', '.join(names)} on {plural(number, 'switch', 'switches')}")


def _entries(
    fabric: Fabric,
    row: dict[int, int],
    far: Iterable[AdaptiveDump],
    said: list[str],
    wrong: list[str],
) -> Bool:
    """bool[destination, switch]: adaptive entries."""
    found = np.zeros((fabric.destinations, fabric.switches), np.bool_)
    lids, empty, outside = lids_of(fabric), Counter[int](), Counter[int]()
    for dump in far:
        for guid, entries in dump.entries.items():
            s, groups = row.get(guid), dump.groups[guid]
            for lid, (port, group) in entries.items():
                if s is None or lid not in lids:
                    continue
                found[lids[lid][0], s] = True
                empty[s] += not groups.get(group)
                outside[s] += bool(groups.get(group)) and port not in groups[group]
    said.append(
        f"{plural(int(found.sum()), 'entry', 'entries')} on {int(found.any(axis=0).sum())} of "
        f"{fabric.switches} "
        "switches are adaptive"
    )
    for count, what in ((empty, "a group without ports"), (outside, "a group without their port")):
        if names := [s for s, number in count.items() if number]:
            wrong.append(
                f"{plural(sum(count.values()), 'entry names', 'entries name')} {what}: "
                + _names(fabric, names)
            )
    return found


def _by_tables(traffic: Traffic, adaptive: Bool) -> list[Job]:
    """Jobs of whose terminals no switch that sends their traffic on has an adaptive entry."""
    others: dict[int, Job] = {}
    for j, part in enumerate(traffic.mix.jobs):
        switches = np.unique(traffic.fabric.channel_source[traffic.links_of([j])])
        if adaptive[np.ix_(part.terminals, switches)].any():
            others[id(part.whole)] = part.whole
    return [job for job in traffic.mix.whole_jobs if id(job) not in others]


def _levels(mask: int) -> str:
    """`0-3,5`, `all` or `none`."""
    if mask == ALL_LEVELS:
        return "all"
    levels = [level for level in range(16) if mask >> level & 1]
    starts = [level for level in levels if level - 1 not in levels]
    ends = [level for level in levels if level + 1 not in levels]
    spans = zip(starts, ends, strict=True)
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans) or "none"


def _names(fabric: Fabric, switches: Sequence[int]) -> str:
    return some([f'"{fabric.switch_name[s]}"' for s in switches], NAMES_SHOWN)
