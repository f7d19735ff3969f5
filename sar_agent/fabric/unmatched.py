"""Patterns of settings and options to which nothing of a fabric fits: most often a slip."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sar_agent.fabric.hostnames import HostMapper, hca_order
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.name_patterns import between_commas, matches, matches_host
from sar_agent.fabric.slurm_names import SlurmNames


class Unmatched(NamedTuple):
    """A pattern of a field of `HostMapper`."""

    key: str
    pattern: str
    what: str
    """`host`, `HCA`, …."""
    there: str
    """What the fabric has instead, for the remedy."""

    def __str__(self) -> str:
        return f"has {self.pattern!r}, and no {self.what} fits; {self.there}"


def unmatched(fabric: Fabric, mapper: HostMapper) -> list[Unmatched]:
    """Those of the mapper with which the fabric was read."""
    found, plain = list[Unmatched](), replace(mapper, job_hcas=(), slurm_names=())
    described = [plain(text) for text in dict.fromkeys(fabric.terminal_description)]
    own = list(dict.fromkeys(each.host for each in described if each.host))
    hosts = [*fabric.hosts, *own]
    there = f"the first host is {hosts[0] if hosts else 'missing'}"
    for key in ("storage_hosts", "other_hosts"):
        for pattern in getattr(mapper, key):
            if not any(matches_host(host, (pattern,)) for host in hosts):
                found.append(Unmatched(key, pattern, "host", there))
    for pair in mapper.slurm_names:
        names = SlurmNames((pair,))
        if not any(names.fits(host) for host in own):
            first = f"the first is {own[0]}" if own else "they name none"
            found.append(Unmatched("slurm_names", pair, "host of a node description", first))
    hcas = {each.hca for each in described}
    ports = {f"{hca}/{p}" for hca in hcas for p in set(fabric.terminal_port_number.tolist())}
    named = ", ".join(sorted(filter(None, hcas), key=hca_order)[:4])
    there = f"there are {named}" if named else "no description names an HCA, so write /1"
    for pattern in mapper.job_hcas:
        if not any(matches(each, between_commas(pattern)) for each in hcas | ports):
            found.append(Unmatched("job_hcas", pattern, "HCA", there))
    return found
